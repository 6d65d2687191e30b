/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies stored samples from pack to pack unchanged. Private to the module.
 */
#ifndef LEAT_PACK_COMPACT_H
#define LEAT_PACK_COMPACT_H

#include <stdbool.h>

#include <leat/pack.h>

#include "base/error.h"

/* Copies the samples for which `select` returns true, in order, to a new pack at opts->output
 * with this provenance. The caller opens the pack. */
int leat__pack_copy(leat_pack *pack, const leat_pack_compact_opts *opts, const char *source,
                    bool (*select)(void *cookie, uint64_t sample), void *cookie, leat_packer_stats *stats,
                    leat_error *err) LEAT_MUST_CHECK;

#endif
