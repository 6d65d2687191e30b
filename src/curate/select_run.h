/* SPDX-License-Identifier: Apache-2.0
 *
 * A selection in progress: the state that all files of leat_select share.
 */
#ifndef LEAT_CURATE_SELECT_RUN_H
#define LEAT_CURATE_SELECT_RUN_H

#include <leat/select.h>

#include "base/buf.h"
#include "curate/select_config.h"
#include "curate/select_greedy.h"
#include "curate/column_packs.h"

typedef struct leat__selecting {
    leat_select_opts opts; /* with the configuration filled in */
    leat_select_stats stats;
    leat__select_config *config;
    leat__column_packs sheets;
    leat__thread_team *crew;
    uint64_t rows, count; /* count: rows to choose */
    uint8_t *state;
    double *weight;
    /* The vectors read last and their path, since strategies may share them. */
    leat__vectors vectors;
    const char *vectors_path, *vectors_field;
    const leat_select_strategy *diversity; /* or NULL */
    leat__balance balance[LEAT__SELECT_STRATEGIES];
    uint32_t balances;
    double *shown[LEAT__SELECT_STRATEGIES]; /* per strategy: the values named in reasons, or NULL */
    /* Results. */
    int64_t *order, *round;
    double *score, *distance;
    int64_t next_order;
    leat__saved saved;
} leat__selecting;

/* Checks options and strategies. */
int leat__select_check(leat__selecting *s, leat_error *err) LEAT_MUST_CHECK;
/* Fails when the run needs more memory than was given. */
int leat__select_plan(leat__selecting *s, leat_error *err) LEAT_MUST_CHECK;
/* Reads the previous selection, applies thresholds, computes weights and balances, and reads vectors. */
int leat__select_prepare(leat__selecting *s, leat_error *err) LEAT_MUST_CHECK;
void leat__select_forget(leat__selecting *s);
/* Writes the columns. */
int leat__select_write(leat__selecting *s, leat_error *err) LEAT_MUST_CHECK;

/* Returns condition i; NULL past the last. Rows that it excludes get state LEAT__ROW_OUT + i. */
const char *leat__select_where(const leat__selecting *s, uint32_t i);
bool leat__select_takes_vectors(const leat_select_strategy *of);
/* Returns the path of the pack with the vectors of a strategy. */
const char *leat__select_vectors_of(const leat__selecting *s, const leat_select_strategy *of);
/* Returns the field of these vectors; NULL: the only field of the pack. */
const char *leat__select_field_of(const leat__selecting *s, const leat_select_strategy *of);

void leat__select_json(const leat_select_stats *stats, leat__buf *out);

#endif
