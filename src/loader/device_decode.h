/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoding the tiles of a batch on a device. Lists of several runs become one job: descriptors and bytes
 * are copied to the device, the kernels are queued behind them, and what they found is copied back.
 * Everything runs on one stream, so the memory that batches share (input and workspace) is used by one
 * after the other. The copying thread of the loader alone enters.
 */
#ifndef LEAT_LOADER_DEVICE_DECODE_H
#define LEAT_LOADER_DEVICE_DECODE_H

#include "codec/tile/tile.h"
#include "gpu/device_pool.h"
#include "gpu/kernels.h"
#include "loader/batch.h"

typedef struct leat__device_decoder leat__device_decoder;

typedef struct leat__device_decoder_opts {
    leat__gpu *gpu;
    leat__gpu_stream *stream;
    leat__device_pool *pool;
    const leat__tile_tables *tables; /* of the pack, or NULL */
    const leat__pipeline *const *pipelines; /* by column; NULL where the column is not an image */
    uint32_t columns;
    leat__blocks *blocks; /* for descriptors */
} leat__device_decoder_opts;

int leat__device_decoder_open(leat__device_decoder **d, const leat__device_decoder_opts *opts,
                              leat_error *err) LEAT_MUST_CHECK;
void leat__device_decoder_close(leat__device_decoder **d);

/* A batch being decoded: what must stay until its event. */
typedef struct leat__device_job {
    leat__block descriptors;
    const uint32_t *status; /* per image, in the order of the lists: valid after the event */
    uint32_t images;
    uint64_t bytes; /* copied to the device */
} leat__device_job;

/* Queues the decoding of the frame's lists into `batch`. LEAT_EAGAIN: memory of the device is short. */
int leat__device_decoder_start(leat__device_decoder *d, const leat__frame *f,
                               const leat__device_block *batch, leat__device_job *job,
                               leat_error *err) LEAT_MUST_CHECK;
/* After the batch's event, or when it was not queued to its end: gives the descriptors back. */
void leat__device_decoder_end(leat__device_decoder *d, leat__device_job *job);

#endif
