/* SPDX-License-Identifier: Apache-2.0
 *
 * How a loader shares its budget between the page cache and other data, and which pages of a remote pack it
 * requests ahead. Pure functions: the loader decides with them, and `leat plan` predicts with them. Any
 * thread.
 */
#ifndef LEAT_LOADER_REMOTE_PAGES_H
#define LEAT_LOADER_REMOTE_PAGES_H

#include <stdint.h>

#include <leat/loader.h>

/* Limit of the bytes in flight from a bucket, including the batches they go into. A range is in flight for
 * one round trip and its transfer. */
#define LEAT__REMOTE_BYTES (UINT64_C(256) << 20)

/* Returns what the flow needs of a budget, above the floor, to run well. */
uint64_t leat__pages_flow(uint32_t threads, uint64_t run_bytes, uint64_t frame_bytes);
/* Returns the limit of the page cache, when the budget has `free` bytes above the floor: what the flow does
 * not need, or half of them. */
uint64_t leat__pages_cap(uint64_t free, uint64_t flow);
/* Returns the least `free` bytes with which the page cache may have `cap` bytes. */
uint64_t leat__pages_free(uint64_t cap, uint64_t flow);

/* Returns the bytes of the pages that the order reads from at a time, of a pack with `bytes` in `pages`. */
uint64_t leat__pages_open(leat_order order, uint64_t bytes, uint64_t pages, uint64_t window_pages);
/* Returns the bytes of pages that may be requested before they are needed. 0: too few, so that pages are
 * requested with their first sample. UINT64_MAX: all pages, because all are needed at once. */
uint64_t leat__pages_ahead(leat_order order, uint64_t bytes, uint64_t open, uint64_t cap);
/* Returns a page cache that has room for all pages of the pack and requests them all ahead. */
uint64_t leat__pages_whole(uint64_t bytes);
/* Returns a page cache that has room for the open pages and the most that are requested ahead. */
uint64_t leat__pages_enough(uint64_t bytes, uint64_t open);

/* Without page requests ahead, samples are read alone where the page cache has no room. The runs in flight
 * start at a small share of the budget, which leaves room for pages, and grow quickly. */
#define LEAT__SINGLES_SHARE_FIRST 16u
#define LEAT__SINGLES_SHARE_MOST 4u
#define LEAT__REMOTE_DEPTH 16u      /* runs in flight that every budget allows */
#define LEAT__REMOTE_DEPTH_MAX 256u /* the most for the controller */
/* Returns how many runs of this many bytes may be in flight: 1/`share` of the budget. */
uint32_t leat__singles_depth(uint64_t budget, uint64_t run_bytes, uint32_t share);
/* Returns how many samples are requested at a time, on average, by a flow with memory for `room` bytes of
 * them. `sample_bytes` includes the sample's part of a batch; a run has `run` samples. */
uint64_t leat__singles_at_once(uint64_t budget, uint64_t room, uint64_t sample_bytes, uint32_t run);
/* Returns the memory of `requests` in flight for ranges of this size, outside the budget. */
uint64_t leat__requests_memory(uint64_t requests, uint64_t range_bytes);

#endif
