/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of device memory within a limit. A block is reused when no stream can still read it. A consumer may
 * release a block while its kernels are still queued, on streams that leat does not know. So an event marks
 * all work of the process on the device (leat__gpu_event_record_all), and a block is written again only after
 * its event. Recording that event would make a graph capture fail, so a release only queues the block. The
 * thread that takes batches records the event later (settle), while it captures nothing. Any thread may call.
 */
#ifndef LEAT_GPU_DEVICE_POOL_H
#define LEAT_GPU_DEVICE_POOL_H

#include "gpu/gpu_stream.h"

typedef struct leat__device_pool leat__device_pool;

/* What may still read an idle block. */
typedef enum leat__block_use {
    LEAT__BLOCK_UNUSED,    /* nothing, because it was not lent */
    LEAT__BLOCK_UNSETTLED, /* the consumer's work; not marked since the release */
    LEAT__BLOCK_MARKED,    /* work queued before its event */
    LEAT__BLOCK_UNMARKED,  /* work that could not be marked; freeing the memory waits for it */
} leat__block_use;

typedef struct leat__device_block {
    leat__gpu_memory memory; /* aligned to 256 */
    uint64_t bytes;
    /* private to the pool */
    struct leat__device_block *next;
    leat__gpu_event *event;
    leat__block_use use;
    bool lent;
} leat__device_block;

typedef struct leat__device_pool_stats {
    uint64_t limit, used, peak; /* bytes: limit, allocated now, and their peak */
    uint32_t blocks, idle;      /* blocks allocated, and how many of them are idle */
    uint32_t lent;              /* blocks of batches that the consumer has or will get */
    bool full;                  /* the last allocation failed: the device has less memory than the limit */
} leat__device_pool_stats;

/* Opens a pool; takes a reference of `gpu`. */
int leat__device_pool_open(leat__device_pool **p, leat__gpu *gpu, uint64_t limit,
                           leat_error *err) LEAT_MUST_CHECK;
/* Frees idle blocks. The pool lives until the last block was released. */
void leat__device_pool_close(leat__device_pool **p);

/* Takes a block of at least `bytes`. `s` is the stream that will write to it; if the block is still being
 * read, the stream waits for its event. LEAT_EAGAIN: the limit is reached or the device is full, and there is
 * no idle block that has been settled. LEAT_EBUDGET: `bytes` is more than the limit. */
int leat__device_pool_take(leat__device_pool *p, uint64_t bytes, leat__gpu_stream *s,
                           leat__device_block **block, leat_error *err) LEAT_MUST_CHECK;
/* Marks the block as part of a batch, which the consumer releases with leat__device_pool_give. */
void leat__device_pool_lend(leat__device_pool *p, leat__device_block *block);
/* Releases a block; NULL is fine. Makes no driver call. A block that was never lent must not be in use any
 * more. */
void leat__device_pool_give(leat__device_pool *p, leat__device_block *block);
/* Records events for the blocks that the consumer released. `capturing`: records none, because the calling
 * thread captures a CUDA graph. */
void leat__device_pool_settle(leat__device_pool *p, bool capturing);

/* Waits until a block was released or settled, or the deadline (leat__clock_ns). */
void leat__device_pool_wait(leat__device_pool *p, uint64_t deadline_ns);
void leat__device_pool_read(leat__device_pool *p, leat__device_pool_stats *stats);

#endif
