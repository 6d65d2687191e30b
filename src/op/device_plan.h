/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans the work of a device for a sample: the draws, the crop and the list of tiles, as jobs of
 * src/gpu/kernels. The device can decode a tiled image whose recipe is geometry (crops, one resize, flips),
 * then colour steps, then output. The result has the same bits as on the CPU, which decodes all other
 * images.
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

/* Limit for the workspace of one image: images that need more are decoded on the CPU. */
#define LEAT__DEVICE_WORK_MAX (UINT64_C(64) << 20)

/* Bytes after the tiles of an image that the device may read; their values do not matter. */
#define LEAT__DEVICE_SLACK 16

/* Memory that several chunks fill at once: each reserves its part with one atomic addition. */
typedef struct leat__device_arena {
    uint8_t *data; /* NULL: no arena */
    uint64_t size;
    _Atomic uint64_t used;     /* can be more than `size` */
    _Atomic uint64_t missing;  /* bytes that found no room */
    _Atomic uint64_t gathered; /* bytes that the device gathers from page-locked memory: they take no space
                                  in `data` */
} leat__device_arena;

/* Images with their tiles. The bytes of an image are its quantisers, then tiles, then padding, aligned to 16.
 * `data` of an image is an offset in the arena, or in the chunk's own bytes when the arena is full. */
typedef struct leat__device_chunk {
    leat__buf images; /* leat_job_image */
    leat__buf tiles;  /* leat_job_tile; `image` is an index in this chunk */
    leat__buf ranges; /* leat_job_range: ranges that the device reads from page-locked memory; `to` is an
                         offset in the gathered bytes of the arena, `first` is not set */
    leat__buf data;   /* bytes that did not fit into the arena */
    leat__device_arena *arena; /* or NULL */
    const leat__copy_dsp *copy;
} leat__device_chunk;

/* The source of an image's bytes, and whether they should stay on the device. */
typedef struct leat__device_place {
    uint64_t resident; /* device address of its quantisers and all its tiles; 0: not resident */
    uint64_t mapped;   /* address at which the device can read the encoded image, in page-locked memory
                          with whole lines of LEAT_JOB_LINE and LEAT__DEVICE_SLACK bytes after it; 0: none */
    bool whole;        /* in: put all tiles into the arena, not only those the crop needs; out: done */
} leat__device_place;

void leat__device_chunk_init(leat__device_chunk *c);
void leat__device_chunk_clear(leat__device_chunk *c);
void leat__device_chunk_reset(leat__device_chunk *c);
uint32_t leat__device_chunk_images(const leat__device_chunk *c);
uint32_t leat__device_chunk_tiles(const leat__device_chunk *c);

/* Records the end of a chunk; rewind returns to it. */
typedef struct leat__device_mark {
    size_t images, tiles, ranges, data;
} leat__device_mark;
leat__device_mark leat__device_chunk_mark(const leat__device_chunk *c);
void leat__device_chunk_rewind(leat__device_chunk *c, leat__device_mark mark);

/* Returns NULL when a device can run the pipeline, otherwise the reason: the end of a sentence that begins
 * with *op. One unsupported op is enough. Ops on whole batches are checked in loader/device_mix.h. */
const char *leat__device_refuses(const leat__pipeline *p, const char **op);

/* Returns the share of tiled images of this size, from 0 to 1, that a device can decode: draws decide about
 * single images, as with RandomCrop and ColorJitter. */
double leat__device_takes(const leat__pipeline *p, uint32_t width, uint32_t height);

uint32_t leat__device_dtype(leat_dtype dtype); /* LEAT_JOB_… */

/* Describes the output to the kernels; the caller sets `data`. */
void leat__device_output(const leat__pipeline *p, leat_job_output *out);

/* Returns the bytes of a tiled image before its tiles, which are all that a resident image needs. 0: not
 * tiled. */
uint32_t leat__device_header_bytes(const leat__encoded *image);

/* Adds an image for row `row` of output `column`. Returns 0 with *taken = false when the CPU must decode it.
 * This includes damaged images and failed draws: the CPU then reports the error. Only the header of a
 * resident image is read. Fails only with LEAT_ENOMEM. */
int leat__device_plan(leat__device_chunk *c, const leat__pipeline *p, const leat__encoded *image,
                      const leat__draw_key *key, uint32_t row, uint32_t column, leat__device_place *place,
                      bool *taken, leat_error *err) LEAT_MUST_CHECK;

#endif
