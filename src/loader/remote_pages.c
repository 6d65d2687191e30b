/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/remote_pages.h"

#include "base/num.h"
#include "io/http.h"

#define FLOW_BYTES (UINT64_C(8) << 20) /* of a flow, in addition to its batches and runs */
/* Of the page cache that the open pages leave, 3/4 is for pages requested ahead. If that is less than 1/8 of
 * the cache, it is too little. */
#define AHEAD_PARTS 3
#define AHEAD_OF 4
#define LEAST_PART 8
/* Chunks of the page cache that pages do not fill: at most this part. */
#define UNUSED_PART 16
/* Of the memory for samples read alone, the rest holds those that wait for their run, a worker or their
 * batch. Measured: 0.5 to 0.6 at 50 and 150 ms. */
#define REQUESTED_PART 2
#define REQUEST_BYTES (UINT64_C(8) << 10) /* of libcurl, besides the receive buffer */

uint64_t leat__pages_flow(uint32_t threads, uint64_t run_bytes, uint64_t frame_bytes)
{
    return 4 * frame_bytes + (uint64_t)threads * 4 * run_bytes + FLOW_BYTES;
}

uint64_t leat__pages_cap(uint64_t free, uint64_t flow)
{
    return free - LEAT_MIN(flow, free / 2);
}

uint64_t leat__pages_free(uint64_t cap, uint64_t flow)
{
    return cap > 0 ? cap + LEAT_MIN(flow, cap - 1) : 0;
}

uint64_t leat__pages_open(leat_order order, uint64_t bytes, uint64_t pages, uint64_t window_pages)
{
    uint64_t mean = bytes / LEAT_MAX(pages, UINT64_C(1));
    if (order == LEAT_ORDER_SEQUENTIAL) return mean;
    if (order != LEAT_ORDER_QUASI || window_pages >= pages) return bytes;
    return mean * window_pages;
}

uint64_t leat__pages_ahead(leat_order order, uint64_t bytes, uint64_t open, uint64_t cap)
{
    if (open >= cap) return 0;
    uint64_t most = LEAT_MIN(LEAT__REMOTE_BYTES, (cap - open) / AHEAD_OF * AHEAD_PARTS);
    if (most < cap / LEAST_PART && most < LEAT__REMOTE_BYTES) return 0;
    /* all pages are needed at once; neighbours are read with one request */
    return open == bytes && order != LEAT_ORDER_SEQUENTIAL ? UINT64_MAX : most;
}

uint64_t leat__pages_whole(uint64_t bytes)
{
    uint64_t ahead = bytes / UNUSED_PART + LEAT__REMOTE_BYTES / AHEAD_PARTS * AHEAD_OF;
    return bytes + LEAT_MIN(bytes / 5 + LEAST_PART, ahead); /* with 6/5, 1/8 of it is for pages ahead */
}

uint64_t leat__pages_enough(uint64_t bytes, uint64_t open)
{
    uint64_t enough = open + LEAT__REMOTE_BYTES / AHEAD_PARTS * AHEAD_OF + AHEAD_OF;
    return LEAT_MIN(enough, leat__pages_whole(bytes));
}

uint32_t leat__singles_depth(uint64_t budget, uint64_t run_bytes, uint32_t share)
{
    uint64_t runs = LEAT_MIN(LEAT__REMOTE_BYTES, budget / share) / LEAT_MAX(run_bytes, UINT64_C(1));
    return (uint32_t)LEAT_MAX(LEAT__REMOTE_DEPTH, LEAT_MIN(runs, (uint64_t)LEAT__REMOTE_DEPTH_MAX));
}

uint64_t leat__singles_at_once(uint64_t budget, uint64_t room, uint64_t sample_bytes, uint32_t run)
{
    uint64_t depth = leat__singles_depth(budget, run * sample_bytes, LEAT__SINGLES_SHARE_MOST);
    uint64_t fit = room / LEAT_MAX(sample_bytes, UINT64_C(1)) + run; /* one run has room in the floor */
    return LEAT_MIN(depth * run, LEAT_MAX(fit / REQUESTED_PART, (uint64_t)run));
}

uint64_t leat__requests_memory(uint64_t requests, uint64_t range_bytes)
{
    return requests * (REQUEST_BYTES + leat__http_buffer_bytes(range_bytes));
}
