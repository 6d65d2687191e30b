/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the nearest rows of every row exactly, by comparing all pairs. Rows without a vector are never
 * neighbours.
 */
#ifndef LEAT_CURATE_NEIGHBOURS_H
#define LEAT_CURATE_NEIGHBOURS_H

#include "curate/thread_team.h"
#include "curate/vectors.h"

#define LEAT__NEIGHBOURS_MAX 1000

typedef struct leat__neighbour {
    float distance; /* squared */
    uint32_t row;
} leat__neighbour;

typedef struct leat__neighbours {
    const leat__vectors *vectors;
    uint32_t k; /* 1 to LEAT__NEIGHBOURS_MAX */
    leat__thread_team *crew;
    /* Called once per row by any member with the `count` nearest other rows, nearest first (ties: the
     * lower row). A row without a vector gets none. */
    void (*take)(void *cookie, uint64_t row, const leat__neighbour *near, uint32_t count);
    /* Called by the calling thread with the number of rows done; non-zero stops. May be
     * NULL. */
    int (*tell)(void *cookie, uint64_t done, uint64_t total);
    void *cookie;
} leat__neighbours;

int leat__neighbours_run(const leat__neighbours *n, leat_error *err) LEAT_MUST_CHECK;

#endif
