/* SPDX-License-Identifier: Apache-2.0
 *
 * Orders as pure functions: (seed, epoch, position) -> sample. Nothing is shuffled in memory.
 *
 * quasi: when one window holds all pages, the order is the random one. Otherwise the pages are
 * put into a keyed order. Their samples, concatenated in that order, are split into `streams`
 * equal parts. Every round of `streams` positions takes one sample of each stream, in a keyed
 * order of turns. Within a stream, samples are shuffled inside windows. The first windows have
 * different lengths, so that streams do not all move to new pages at once.
 *
 *   pages:    7 2 9 | 4 0 8 | 1 5 3        (keyed order, cut into 3 streams)
 *   stream 0: [7 2][9]   stream 1: [4][0 8]   …   [ ] = a window, shuffled inside
 *
 * The order does not depend on the world size. Ranks take turns in all streams, so they share the open pages,
 * and every rank sees a mix of classes as with `random`. With separate pages, a rank would see window_pages /
 * world pages at a time, which gave 4 of 100 classes per rank at world 64. The cost is that processes without
 * a shared page cache each read the page.
 *
 * An order is set up for one epoch at a time and then constant: any thread may call.
 */
#ifndef LEAT_LOADER_ORDER_H
#define LEAT_LOADER_ORDER_H

#include <stdbool.h>

#include <leat/loader.h>

#include "base/perm.h"
#include "loader/defaults.h"
#include "loader/shares.h"

#define LEAT__ORDER_STREAMS LEAT__DEFAULT_STREAMS
#define LEAT__ORDER_WINDOW_PAGES LEAT__DEFAULT_WINDOW_PAGES
#define LEAT__ORDER_WINDOW_BYTES (UINT64_C(2) << 30)
#define LEAT__ORDER_WINDOW_LEAST 64u /* pages of the default, however large they are */

typedef struct leat__order_opts {
    leat_order kind;
    uint64_t seed;
    uint64_t count;        /* positions of an epoch, all ranks together */
    uint32_t streams;      /* quasi: maximum streams; there are fewer if windows would have under 8 pages */
    uint32_t window_pages; /* quasi: pages in the windows of all streams together */
    uint64_t pages;        /* quasi: pages of the pack */
    const uint32_t *page_samples; /* quasi: samples in each page; must outlive the order */
    const uint64_t *indices;      /* subset, or NULL; must outlive the order */
    const double *weights;        /* draw with replacement by weight, or NULL; copied into a table */
    uint64_t weight_count;
    const uint64_t *bucket_ends; /* random: batches of similar samples (buckets.h), or NULL */
    uint32_t bucket_count;
    uint64_t global_batch;           /* with buckets */
    const leat__shares_opts *shares; /* shares of several mixed packs, or NULL. With shares, count is 0: they
                                        determine the positions of an epoch */
} leat__order_opts;

typedef struct leat__order leat__order;

/* Returns the default of window_pages for a pack with pages of this size: LEAT__ORDER_WINDOW_PAGES, or fewer
 * if these are more than LEAT__ORDER_WINDOW_BYTES. Depends on the pack alone, as the order does. */
uint32_t leat__order_window(uint64_t page_bytes);

int leat__order_open(leat__order **o, const leat__order_opts *opts, leat_error *err) LEAT_MUST_CHECK;
void leat__order_close(leat__order **o);

/* Sets up an epoch; no other thread may use the order meanwhile. Cannot fail, because all memory is allocated
 * at open. */
void leat__order_epoch(leat__order *o, uint64_t epoch);

/* Returns the sample at a global position of the epoch; position < count. */
uint64_t leat__order_at(const leat__order *o, uint64_t position);
/* The inverse of leat__order_at. False with weights, shares, buckets or a subset: not supported. */
bool leat__order_position(const leat__order *o, uint64_t sample, uint64_t *position);
/* Looks up `n` positions first, first + step …: their samples and salts (shares.h; 0 without shares). */
void leat__order_fill(const leat__order *o, uint64_t first, uint64_t step, uint32_t n, uint64_t *samples,
                      uint64_t *salts);

uint64_t leat__order_count(const leat__order *o);             /* positions of an epoch */
const leat__shares *leat__order_shares(const leat__order *o); /* owned by the order, or NULL */

uint64_t leat__order_memory(const leat__order *o); /* bytes it holds */

/* Returns the size of a rank's share: rank r of world w has the positions p = j * w + r. */
static inline uint64_t leat__share_count(uint64_t count, uint32_t rank, uint32_t world)
{
    return count / world + (count % world > rank);
}

#endif
