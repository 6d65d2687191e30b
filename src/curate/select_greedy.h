/* SPDX-License-Identifier: Apache-2.0
 *
 * The greedy choice of rows: one at a time, always the row with the highest score (ties: the first). The
 * score is the product of
 *
 *   2 ^ weight[row]                              constant
 *   distance to the nearest chosen row ^ diversity
 *   factor of the row's group                    (want / (chosen in the group + 1/2)) ^ strength
 *
 * Scores are held as base-2 logarithms: products of many strategies with high strengths can exceed the
 * range of double, and their order must be kept.
 *
 * A score never rises while rows are chosen. So an old score is an upper bound, and only rows whose bound
 * is the highest are evaluated again (lazy evaluation). The result is exact.
 */
#ifndef LEAT_CURATE_SELECT_GREEDY_H
#define LEAT_CURATE_SELECT_GREEDY_H

#include "curate/saved.h"
#include "curate/thread_team.h"
#include "curate/vectors.h"

#define LEAT__SELECT_FAR 2.0 /* distance before the first choice: the largest between unit vectors */

typedef enum leat__row_state {
    LEAT__ROW_OPEN = 0,
    LEAT__ROW_CHOSEN = 1,
    LEAT__ROW_PREVIOUS = 2,  /* chosen before; counts for distances and groups */
    LEAT__ROW_NEAR = 3,      /* nearer to a chosen row than min_distance */
    LEAT__ROW_UNKNOWN = 4,   /* a column of weights is not a finite number */
    LEAT__ROW_BLANK = 5,     /* has no vector */
    LEAT__ROW_SHARELESS = 6, /* a balance gives its group no share */
    LEAT__ROW_OUT = 7        /* excluded by the caller; so are higher values */
} leat__row_state;

typedef struct leat__balance {
    uint32_t groups;
    uint32_t *of;   /* group of each row */
    double *want;   /* share of each group, times `sum` */
    uint64_t *have; /* number of rows chosen in each group */
    double strength;
    double sum; /* of `want`, which stays undivided: quotients of counts that are equal compare as equal */
} leat__balance;

typedef struct leat__greedy {
    uint64_t rows, count;         /* count: maximum rows to choose */
    uint8_t *state;               /* leat__row_state of each row; changed here */
    const double *weight;         /* logarithm for each row; NULL = 0 */
    const leat__vectors *vectors; /* NULL = no diversity */
    double diversity;             /* strength, above 0 */
    double min_distance;
    leat__balance *balance;
    uint32_t balances;
    leat__thread_team *crew;
    /* Called when a row was chosen. score: the product, clamped to the range of double. distance: to
     * the nearest chosen row, or LEAT__SELECT_FAR. Non-zero stops. */
    int (*take)(void *cookie, uint64_t row, double score, double distance);
    void *cookie;
    leat__saved *saved; /* NULL = the choice cannot be resumed */
    uint64_t distances; /* out: number of computed distances */
    uint64_t resumed;   /* out: choices from the saved state, which were passed to take again */
} leat__greedy;

int leat__greedy_run(leat__greedy *g, leat_error *err) LEAT_MUST_CHECK;

/* Returns the bytes that a run needs besides the vectors, weights and states. */
uint64_t leat__greedy_bytes(uint64_t rows, uint64_t centres, size_t dim);

#endif
