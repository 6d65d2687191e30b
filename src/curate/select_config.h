/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration of a selection as YAML or JSON text:
 *
 *     count: 1000                      or share: 0.1
 *     embeddings: vectors.leat
 *     with: [photos.check.leat]
 *     previous: selected-1.leat
 *     where: issues == 0
 *     strategies:
 *       - strategy: diversity
 *         min_distance: 0.1
 *       - strategy: weights
 *         column: blur
 *         strength: 0.5
 *       - strategy: balance
 *         column: label
 *         distribution: {cat: 0.5, dog: 0.3}
 */
#ifndef LEAT_CURATE_SELECT_CONFIG_H
#define LEAT_CURATE_SELECT_CONFIG_H

#include <leat/select.h>

#include "base/error.h"

#define LEAT__SELECT_STRATEGIES 64

typedef struct leat__select_config leat__select_config;

/* Sets the options that `opts` leaves unset from opts->config. They point into *config: close it after
 * use. */
int leat__select_config_open(leat__select_config **config, leat_select_opts *opts,
                             leat_error *err) LEAT_MUST_CHECK;
void leat__select_config_close(leat__select_config **config);

/* Returns the name of a leat_select_kind; NULL past the last. */
const char *leat__select_kind_name(uint32_t kind);

#endif
