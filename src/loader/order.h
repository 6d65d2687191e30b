/* SPDX-License-Identifier: Apache-2.0
 *
 * Orders as pure functions: (seed, epoch, position) -> sample. Nothing is shuffled in memory.
 *
 * quasi: the pages are put into a keyed order. Their samples, laid end to end in that order,
 * are cut into `streams` equal stretches; position p belongs to stream p mod streams. Within a
 * stream, samples are shuffled inside windows. So a batch draws from all streams at once, a rank
 * of a world that divides the streams only ever touches its own stretches, and the order does
 * not depend on the world at all. The first window of each stream is shorter by a different
 * amount, so that streams do not all turn to new pages at the same moment.
 *
 *   pages:    7 2 9 | 4 0 8 | 1 5 3        (keyed order, cut into 3 streams)
 *   stream 0: [7 2][9]   stream 1: [4][0 8]   …   [ ] = a window, shuffled inside
 *
 * An order is set up for one epoch at a time and then constant: any thread may ask.
 */
#ifndef LEAT_LOADER_ORDER_H
#define LEAT_LOADER_ORDER_H

#include <leat/loader.h>

#include "base/perm.h"

#define LEAT__ORDER_STREAMS 64
#define LEAT__ORDER_WINDOW_PAGES 4096

typedef struct leat__order_opts {
    leat_order kind;
    uint64_t seed;
    uint64_t count;          /* positions of an epoch, all ranks together */
    uint32_t streams;        /* quasi */
    uint32_t window_pages;   /* quasi, over all streams */
    uint64_t pages;          /* quasi: pages of the pack */
    const uint32_t *page_samples; /* quasi: samples in each page; must outlive the order */
    const uint64_t *indices; /* subset, or NULL; must outlive the order */
    const double *weights;   /* draw with replacement by weight, or NULL; copied into a table */
    uint64_t weight_count;
} leat__order_opts;

typedef struct leat__order leat__order;

int leat__order_open(leat__order **o, const leat__order_opts *opts, leat_error *err)
    LEAT_MUST_CHECK;
void leat__order_close(leat__order **o);

/* Sets up an epoch; no other thread may be asking. Cannot fail: all memory is made at open. */
void leat__order_epoch(leat__order *o, uint64_t epoch);

/* The sample at a global position of the epoch; position < count. */
uint64_t leat__order_at(const leat__order *o, uint64_t position);

/* Samples that are shuffled together in one window of one stream (quasi), 0 otherwise. */
uint64_t leat__order_window_samples(const leat__order *o);

uint64_t leat__order_memory(const leat__order *o); /* bytes it holds */

/* This rank's share: rank r of world w has the positions p = j * w + r. */
static inline uint64_t leat__share_count(uint64_t count, uint32_t rank, uint32_t world)
{
    return count / world + (count % world > rank);
}

#endif
