/* SPDX-License-Identifier: Apache-2.0
 *
 * What a device has to do for a sample: the draws, the crop and the list of tiles, as jobs of
 * src/gpu/kernels. A tiled image whose recipe is geometry (crops, one resize, flips), then
 * colour steps, then output can be decoded on a device, with the same bits; the rest is left to the CPU.
 *
 * A chunk collects the images of some samples. One thread at a time.
 */
#ifndef LEAT_OP_DEVICE_PLAN_H
#define LEAT_OP_DEVICE_PLAN_H

#include <stdatomic.h>

#include "base/buf.h"
#include "dsp/copy.h"
#include "gpu/kernels/tile_job.h"
#include "op/pipeline.h"

/* Workspace of one image, at most: larger ones are decoded on the CPU. */
#define LEAT__DEVICE_WORK_MAX (UINT64_C(64) << 20)

/* Bytes after the tiles of an image that the device may read, whatever they are. */
#define LEAT__DEVICE_SLACK 16

/* Memory that several chunks fill at once: each takes its part with one addition. */
typedef struct leat__device_arena {
    uint8_t *data; /* NULL: there is none */
    uint64_t size;
    _Atomic uint64_t used;     /* can be more than `size` */
    _Atomic uint64_t missing;  /* bytes that found no room */
    _Atomic uint64_t gathered; /* bytes that the device reads elsewhere: no memory of the host */
} leat__device_arena;

/* Images with their tiles. An image's bytes are its quantisers, then tiles, then padding, aligned to 16;
 * `data` of an image counts from the arena's begin, or from the chunk's own bytes where the arena is full. */
typedef struct leat__device_chunk {
    leat__buf images; /* leat_job_image */
    leat__buf tiles;  /* leat_job_tile; `image` counts in this chunk */
    leat__buf ranges; /* leat_job_range: what the device reads from page-locked memory; `to` counts in
                         what is gathered of the arena, `first` is not set */
    leat__buf data;   /* what the arena had no room for */
    leat__device_arena *arena; /* or NULL */
    const leat__copy_dsp *copy;
} leat__device_chunk;

/* Where an image's bytes come from, and whether they shall stay on the device. */
typedef struct leat__device_place {
    uint64_t resident; /* address of its quantisers and all of its tiles on the device; 0: not there */
    uint64_t mapped;   /* where the device can read the encoded image, in page-locked memory that has whole
                          lines of LEAT_JOB_LINE and LEAT__DEVICE_SLACK bytes after it; 0: nowhere */
    bool whole;        /* in: put all tiles into the arena, not only those the crop needs; out: done */
} leat__device_place;

void leat__device_chunk_init(leat__device_chunk *c);
void leat__device_chunk_clear(leat__device_chunk *c);
void leat__device_chunk_reset(leat__device_chunk *c);
uint32_t leat__device_chunk_images(const leat__device_chunk *c);
uint32_t leat__device_chunk_tiles(const leat__device_chunk *c);

/* Where a chunk ends; back to there. */
typedef struct leat__device_mark {
    size_t images, tiles, ranges, data;
} leat__device_mark;
leat__device_mark leat__device_chunk_mark(const leat__device_chunk *c);
void leat__device_chunk_rewind(leat__device_chunk *c, leat__device_mark mark);

/* Returns why a device cannot run any part of the pipeline, or NULL when it can. The text ends a sentence
 * that begins with *op. Ops on whole batches are checked elsewhere (loader/device_mix.h). */
const char *leat__device_refuses(const leat__pipeline *p, const char **op);

uint32_t leat__device_dtype(leat_dtype dtype); /* LEAT_JOB_… */

/* What the kernels need to know of the output; `data` is set by the caller. */
void leat__device_output(const leat__pipeline *p, leat_job_output *out);

/* Bytes of a tiled image before its tiles: what is needed of an image that is resident. 0: not tiled. */
uint32_t leat__device_header_bytes(const leat__encoded *image);

/* Adds an image for row `row` of output `column`. *taken false (with 0): the CPU has to decode it, also
 * when it is damaged or its draw fails: the CPU then says why. Of an image that is resident only the header
 * is read. Fails only with LEAT_ENOMEM. */
int leat__device_plan(leat__device_chunk *c, const leat__pipeline *p, const leat__encoded *image,
                      const leat__draw_key *key, uint32_t row, uint32_t column, leat__device_place *place,
                      bool *taken, leat_error *err) LEAT_MUST_CHECK;

#endif
