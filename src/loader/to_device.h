/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies batches to a device: a thread and a stream per loader. The flow's last stage pushes a
 * finished batch. The thread allocates device memory, queues the copies, waits for them, releases
 * the host's memory and ends the stage's task. Batches take device memory in order, so one that
 * the consumer waits for never waits for a later one. Rows whose tiles the device decodes are
 * decoded between the copies and the end. Where decoding has no room, the CPUs do it: the limit need not hold
 * more than two batches.
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
    LEAT__ALL_BORROWED, /* the consumer holds all of the limit, */
    LEAT__DEVICE_FULL,  /* or all that the device has left */
    LEAT__NO_WORKSPACE, /* the batch has its memory, but decoding it takes more */
} leat__shortage;

typedef struct leat__to_device_opts {
    const char *device;   /* "cuda" or "cuda:N" */
    uint64_t memory;      /* limit, 0 = a quarter of what is free */
    uint64_t frame_bytes; /* of a full batch, on the device: the limit must hold two */
} leat__to_device_opts;

typedef struct leat__to_device_stats {
    leat__device_pool_stats pool;
    uint64_t copied_bytes, copy_ns, wait_ns;
    uint64_t decoded;   /* images */
    double share;       /* of the images of the last batches: decoded by the device */
    uint64_t decode_ns; /* of the kernels */
    leat__device_store_stats store;
    uint64_t overlap_ns; /* of copies and kernels, beside those of the batch before */
} leat__to_device_stats;

/* Fails with LEAT_ENOTSUP without CUDA, LEAT_EINVAL for an unknown device, LEAT_EBUDGET when the limit is
 * too small. */
int leat__to_device_open(leat__to_device **d, const leat__to_device_opts *opts,
                         leat_error *err) LEAT_MUST_CHECK;
/* After the flow was closed. Borrowed batches stay valid. */
void leat__to_device_close(leat__to_device **d);

/* Device memory reserved for batches in flight, not for tiles that stay. */
uint64_t leat__to_device_reserve(uint64_t frame_bytes);
/* Lets tiles stay on the device; sets the pool and its limit of `opts`. *store is a view. Before the next,
 * like that. */
int leat__to_device_caches(leat__to_device *d, leat__device_store_opts *opts, leat__device_store **store,
                           leat_error *err) LEAT_MUST_CHECK;

/* Lets the device decode tiles, and mix what it decodes. `env` is for damaged samples; `pipelines` as in
 * device_decode.h; `mixing` is a view. Before the first batch. LEAT_ENOTSUP: there are no kernels for this
 * device. */
int leat__to_device_decodes(leat__to_device *d, leat__run_env *env, const leat__mixing *mixing,
                            const leat__tile_tables *tables, const leat__pipeline *const *pipelines,
                            uint32_t columns, leat_error *err) LEAT_MUST_CHECK;

/* Changing the batches between epochs, while they are only copied: full batches that take `frame_bytes`
 * on the device from now on. LEAT_EBUDGET: the limit does not hold two. */
bool leat__to_device_only_copies(const leat__to_device *d);
int leat__to_device_fits(leat__to_device *d, uint64_t frame_bytes, leat_error *err) LEAT_MUST_CHECK;
void leat__to_device_resize(leat__to_device *d, uint64_t frame_bytes);

leat__gpu *leat__to_device_gpu(leat__to_device *d); /* view */
int32_t leat__to_device_index(const leat__to_device *d);

/* An epoch begins with batch `first`; or ends: pushed batches return with LEAT_ECANCELED. */
void leat__to_device_begin(leat__to_device *d, uint64_t first);
void leat__to_device_cancel(leat__to_device *d);

/* Takes a batch; leat_task_done(task) follows. Any thread, batches in any order. */
void leat__to_device_push(leat__to_device *d, leat__frame *f, leat_task *task);

/* Marks the work of released batches: see device_pool.h. The consumer's thread. */
void leat__to_device_settle(leat__to_device *d, bool capturing);
/* Why a batch waits for device memory that only the consumer can release. */
leat__shortage leat__to_device_starved(leat__to_device *d);
/* The consumer waits for such a batch: memory kept for decoding is freed, and what still lacks a workspace is
 * decoded by the CPUs. */
void leat__to_device_hurry(leat__to_device *d);
/* True once that has happened: the limit is too small to decode on the device beside the consumer's batches.
 */
bool leat__to_device_cramped(leat__to_device *d);
/* How much that batch needs, while it waits. */
uint64_t leat__to_device_needs(leat__to_device *d);
void leat__to_device_read(leat__to_device *d, leat__to_device_stats *stats);

#endif
