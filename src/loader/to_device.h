/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies batches to a device: a thread and a stream per loader. The flow's last stage pushes a finished
 * batch. The thread allocates device memory, queues the copies, waits for them, releases the host's memory
 * and ends the stage's task. Batches take device memory in order, so one that the consumer waits for never
 * waits for a later one. Rows whose tiles the device decodes are decoded after the copies. If decoding has no
 * room, the CPUs do it, so the limit need not hold more than two batches.
 */
#ifndef LEAT_LOADER_TO_DEVICE_H
#define LEAT_LOADER_TO_DEVICE_H

#include "loader/batch.h"
#include "loader/device_decode.h"
#include "loader/loader_run.h"
#include "loader/mixing.h"

typedef struct leat__to_device leat__to_device;

typedef enum leat__shortage {
    LEAT__ENOUGH,
    LEAT__ALL_BORROWED, /* the consumer holds all memory of the limit */
    LEAT__DEVICE_FULL,  /* the consumer holds all memory that the device had left */
    LEAT__NO_WORKSPACE, /* the batch has its memory, but decoding it needs more */
} leat__shortage;

typedef struct leat__to_device_opts {
    const char *device;   /* "cuda" or "cuda:N" */
    uint64_t memory;      /* limit, 0 = a quarter of what is free */
    uint64_t frame_bytes; /* device memory of a full batch; the limit must hold two */
} leat__to_device_opts;

typedef struct leat__to_device_stats {
    leat__device_pool_stats pool;
    uint64_t copied_bytes, copy_ns, wait_ns;
    uint64_t decoded;   /* images */
    double share;       /* share of the images in recent batches that the device decoded */
    uint64_t decode_ns; /* time of the decoding kernels */
    leat__device_store_stats store;
    uint64_t overlap_ns; /* time of copies and kernels that overlapped with those of the previous batch */
} leat__to_device_stats;

/* Opens the device and starts the thread. LEAT_ENOTSUP: no CUDA; LEAT_EINVAL: unknown device; LEAT_EBUDGET:
 * the limit is too small. */
int leat__to_device_open(leat__to_device **d, const leat__to_device_opts *opts,
                         leat_error *err) LEAT_MUST_CHECK;
/* Call it after the flow was closed. Borrowed batches stay valid. */
void leat__to_device_close(leat__to_device **d);

/* Returns the device memory to reserve for batches in flight, which resident tiles cannot use. */
uint64_t leat__to_device_reserve(uint64_t frame_bytes);
/* Lets tiles stay on the device; sets `pool` and `limit` of `opts`. *store is owned by `d`. Call it before
 * leat__to_device_decodes. */
int leat__to_device_caches(leat__to_device *d, leat__device_store_opts *opts, leat__device_store **store,
                           leat_error *err) LEAT_MUST_CHECK;

/* Lets the device decode tiles, and mix what it decodes. `env` is used for damaged samples; `pipelines` as in
 * device_decode.h; `mixing` must outlive `d`. Call it before the first batch. LEAT_ENOTSUP: there are no
 * kernels for this device. */
int leat__to_device_decodes(leat__to_device *d, leat__run_env *env, const leat__mixing *mixing,
                            const leat__tile_tables *tables, const leat__pipeline *const *pipelines,
                            uint32_t columns, leat_error *err) LEAT_MUST_CHECK;

/* Change the size of batches between epochs, which is possible only while batches are only copied. Full
 * batches take `frame_bytes` on the device from then on. LEAT_EBUDGET: the limit does not hold two. */
bool leat__to_device_only_copies(const leat__to_device *d);
int leat__to_device_fits(leat__to_device *d, uint64_t frame_bytes, leat_error *err) LEAT_MUST_CHECK;
void leat__to_device_resize(leat__to_device *d, uint64_t frame_bytes);

leat__gpu *leat__to_device_gpu(leat__to_device *d); /* owned by `d` */
int32_t leat__to_device_index(const leat__to_device *d);

/* begin: an epoch starts with batch `first`. cancel: it ends, and pushed batches end with LEAT_ECANCELED. */
void leat__to_device_begin(leat__to_device *d, uint64_t first);
void leat__to_device_cancel(leat__to_device *d);

/* Takes a batch; leat_task_done(task) follows. Any thread, batches in any order. */
void leat__to_device_push(leat__to_device *d, leat__frame *f, leat_task *task);

/* Marks the work of released batches: see device_pool.h. Call it on the consumer's thread. */
void leat__to_device_settle(leat__to_device *d, bool capturing);
/* Returns why a batch waits for device memory that only the consumer can release. */
leat__shortage leat__to_device_starved(leat__to_device *d);
/* Reports that the consumer waits for such a batch. Memory kept for decoding is freed, and a batch that still
 * lacks a workspace is decoded by the CPUs. */
void leat__to_device_hurry(leat__to_device *d);
/* True once the CPUs had to decode a batch, because the limit is too small for decoding besides the
 * consumer's batches.
 */
bool leat__to_device_cramped(leat__to_device *d);
/* Returns how many bytes the waiting batch needs. */
uint64_t leat__to_device_needs(leat__to_device *d);
void leat__to_device_read(leat__to_device *d, leat__to_device_stats *stats);

#endif
