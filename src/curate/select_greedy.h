/* SPDX-License-Identifier: Apache-2.0
 *
 * The greedy choice of rows: one at a time, always the row with the highest score, the
 * first of equal ones. The score is the product of
 *
 *   2 ^ weight[row]                              what does not change
 *   distance to the nearest chosen row ^ diversity
 *   factor of the row's group                    (want / (chosen in the group + 1/2)) ^ strength
 *
 * Scores are held as base-2 logarithms: products of many strategies with high strengths leave the range of
 * double, and their order must stay.
 *
 * A score never rises while rows are chosen. So an old score is an upper bound, and only
 * rows whose bound is the highest are evaluated again (lazy evaluation). The result is
 * exact.
 */
#ifndef LEAT_CURATE_SELECT_GREEDY_H
#define LEAT_CURATE_SELECT_GREEDY_H

#include "curate/saved.h"
#include "curate/thread_team.h"
#include "curate/vectors.h"

#define LEAT__SELECT_FAR 2.0 /* distance while nothing is chosen: the largest of unit vectors */

typedef enum leat__row_state {
    LEAT__ROW_OPEN = 0,
    LEAT__ROW_CHOSEN = 1,
    LEAT__ROW_PREVIOUS = 2, /* chosen before; counts for distances and groups */
    LEAT__ROW_NEAR = 3,     /* nearer to a chosen row than min_distance */
    LEAT__ROW_UNKNOWN = 4,  /* a column of weights is not a finite number */
    LEAT__ROW_OUT = 5       /* left out by the caller; higher values, too */
} leat__row_state;

typedef struct leat__balance {
    uint32_t groups;
    uint32_t *of;   /* group of each row */
    double *want;   /* share of each group */
    uint64_t *have; /* rows chosen in it */
    double strength;
} leat__balance;

typedef struct leat__greedy {
    uint64_t rows, count;         /* count: how many to choose at most */
    uint8_t *state;               /* of each row, leat__row_state; changed */
    const double *weight;         /* of each row: its logarithm; NULL = 0 */
    const leat__vectors *vectors; /* NULL = no diversity */
    double diversity;             /* strength, above 0 */
    double min_distance;
    leat__balance *balance;
    uint32_t balances;
    leat__thread_team *crew;
    /* A row was chosen; score: the product, or the largest or least number when it is out of range;
     * distance: to the nearest chosen one, or LEAT__SELECT_FAR. Non-zero stops. */
    int (*take)(void *cookie, uint64_t row, double score, double distance);
    void *cookie;
    leat__saved *saved; /* NULL = the choice cannot be resumed */
    uint64_t distances; /* out: how many were computed */
    uint64_t resumed;   /* out: choices of the saved state, which were passed to take again */
} leat__greedy;

int leat__greedy_run(leat__greedy *g, leat_error *err) LEAT_MUST_CHECK;

/* Bytes that a run needs besides the vectors, weights and states. */
uint64_t leat__greedy_bytes(uint64_t rows, uint64_t centres, size_t dim);

#endif
