/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of device memory inside a limit. A block is reused when no stream can still read it. A
 * consumer may release a block while its kernels are still queued, on streams that leat does not
 * know. So an event marks all work of the process on the device (leat__gpu_event_record_all), and a
 * block is written again only after its event. Recording that event would fail a graph capture.
 * Releasing therefore only queues the block. The thread that takes batches records the event
 * (settle) while it captures nothing. Any thread may call.
 */
#ifndef LEAT_GPU_DEVICE_POOL_H
#define LEAT_GPU_DEVICE_POOL_H

#include "gpu/gpu_stream.h"

typedef struct leat__device_pool leat__device_pool;

/* What may still read an idle block. */
typedef enum leat__block_use {
    LEAT__BLOCK_UNUSED,    /* nothing: it was not lent */
    LEAT__BLOCK_UNSETTLED, /* work of the consumer, not marked since its release */
    LEAT__BLOCK_MARKED,    /* work before its event */
    LEAT__BLOCK_UNMARKED,  /* work that could not be marked: the driver waits for it when memory is freed */
} leat__block_use;

typedef struct leat__device_block {
    leat__gpu_memory memory; /* aligned to 256 */
    uint64_t bytes;
    /* the pool's */
    struct leat__device_block *next;
    leat__gpu_event *event;
    leat__block_use use;
    bool lent;
} leat__device_block;

typedef struct leat__device_pool_stats {
    uint64_t limit, used, peak; /* bytes: allowed, taken from the device now, and at most */
    uint32_t blocks, idle;      /* taken from the device; of them released */
    uint32_t lent;              /* with a batch that the consumer has, or will get */
    bool full;                  /* the device had less than the limit when it was last asked */
} leat__device_pool_stats;

/* Takes a reference of `gpu`. */
int leat__device_pool_open(leat__device_pool **p, leat__gpu *gpu, uint64_t limit,
                           leat_error *err) LEAT_MUST_CHECK;
/* Frees idle blocks. The pool lives until the last block was released. */
void leat__device_pool_close(leat__device_pool **p);

/* A block of at least `bytes`. `s` is the stream that will write it: where the block has to wait for its
 * mark, the stream does. LEAT_EAGAIN: the limit is reached, or the device is full, and no block is idle, or
 * what is idle is not settled; LEAT_EBUDGET: `bytes` are more than the limit. */
int leat__device_pool_take(leat__device_pool *p, uint64_t bytes, leat__gpu_stream *s,
                           leat__device_block **block, leat_error *err) LEAT_MUST_CHECK;
/* The block belongs to a batch from now on: leat__device_pool_give is up to the consumer. */
void leat__device_pool_lend(leat__device_pool *p, leat__device_block *block);
/* Releases a block; NULL is fine. Makes no call of the driver. Nothing may use a block that was not lent. */
void leat__device_pool_give(leat__device_pool *p, leat__device_block *block);
/* Marks the work of blocks that the consumer released. `capturing`: nothing is marked, because the calling
 * thread captures a CUDA graph. */
void leat__device_pool_settle(leat__device_pool *p, bool capturing);

/* Waits until a block was released or settled, or the deadline (leat__clock_ns). */
void leat__device_pool_wait(leat__device_pool *p, uint64_t deadline_ns);
void leat__device_pool_read(leat__device_pool *p, leat__device_pool_stats *stats);

#endif
