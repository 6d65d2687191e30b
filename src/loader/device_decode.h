/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes the tiles of a batch on a device. The lists of all runs become one job. Descriptors and the arena
 * of the batch are copied to the device on the copying stream, in two copies. Tiles in page-locked pages of
 * the cache are read from there by a kernel, without a copy on the host. The decoding kernels are queued
 * afterwards on the stream of a lane, and their status is copied back. Lanes have their own streams and
 * working memory, so the last tiles of one batch overlap with the first of the next. Slots hold the input of
 * batches, so that copies of one batch overlap with the kernels of others and no lane waits for the host.
 * Only the loader's copying thread calls these functions.
 */
#ifndef LEAT_LOADER_DEVICE_DECODE_H
#define LEAT_LOADER_DEVICE_DECODE_H

#include "codec/tile/tile.h"
#include "gpu/device_pool.h"
#include "gpu/kernels.h"
#include "loader/batch.h"

#define LEAT__DECODE_LANES 4 /* batches decoded at once */
#define LEAT__DECODE_SLOTS 8 /* batches in flight: being copied, waiting or being decoded */
#define LEAT__DECODE_LANE_BYTES (UINT64_C(256) << 20) /* device memory that is usually enough for a lane */

typedef struct leat__device_decoder leat__device_decoder;

typedef struct leat__device_decoder_opts {
    leat__gpu *gpu;
    leat__gpu_stream *copies;
    leat__device_pool *pool;
    const leat__tile_tables *tables;        /* of the pack, or NULL */
    const leat__pipeline *const *pipelines; /* by column; NULL where the column is not an image */
    uint32_t columns;
    leat__blocks *blocks;          /* for descriptors */
    leat__device_store *store;     /* keeps tiles on the device, or NULL */
    _Atomic uint64_t *arena_bytes; /* size of a batch's arena; grows as needed */
    uint64_t arena_most;           /* limit of arena_bytes */
} leat__device_decoder_opts;

int leat__device_decoder_open(leat__device_decoder **d, const leat__device_decoder_opts *opts,
                              leat_error *err) LEAT_MUST_CHECK;
void leat__device_decoder_close(leat__device_decoder **d);

/* A batch being decoded: data that must stay until its event. */
typedef struct leat__device_job {
    leat__block descriptors;
    const uint32_t *status; /* per image, in the order of the lists: valid after the event */
    uint32_t images;
    uint64_t bytes;          /* bytes copied over the bus */
    uint64_t needs;          /* device memory for input and workspace */
    leat__gpu_memory stored; /* address in the store, if the arena stays on the device; else 0 */
} leat__device_job;

/* Events of a batch: end of its copies, start and end of its kernels. */
typedef struct leat__device_marks {
    leat__gpu_event *copied, *start, *end;
} leat__device_marks;

/* Arrays of a batch to mix after decoding, in this order. */
typedef struct leat__device_mixes {
    const leat_job_mix *list;
    uint32_t count;
} leat__device_mixes;

/* Queues the decoding of the frame's lists into `batch` and the mixing, and records the marks. The last
 * batch of `slot` must have ended. LEAT_EAGAIN: not enough device memory. */
int leat__device_decoder_start(leat__device_decoder *d, uint32_t slot, const leat__frame *f,
                               const leat__device_block *batch, const leat__device_mixes *mixes,
                               const leat__device_marks *marks, leat__device_job *job,
                               leat_error *err) LEAT_MUST_CHECK;
/* After the batch's event: lets claimed images that were decoded without damage stay on the device. */
void leat__device_decoder_keep(leat__device_decoder *d, const leat__frame *f, const leat__device_job *job);
/* After the batch's event, or when it was not fully queued: releases the descriptors. */
void leat__device_decoder_end(leat__device_decoder *d, leat__device_job *job);

void leat__device_decoder_drain(leat__device_decoder *d); /* waits for all kernels */
/* Returns the memory of all slots to the pool; nothing may be queued. */
void leat__device_decoder_trim(leat__device_decoder *d);

#endif
