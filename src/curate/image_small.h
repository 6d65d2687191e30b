/* SPDX-License-Identifier: Apache-2.0
 *
 * A small version of an image, for scores and signatures: luma with at least two samples per 8 pixels
 * and chroma with at least one, and at least 40 (chroma 20) samples on the shorter side. Ordinary JPEGs
 * and tiles are inverse-transformed at that size directly from their coefficients; the energy of each
 * luma frequency is summed as well. Other images are decoded to pixels and averaged; transparent ones
 * are first drawn over grey (128).
 *
 * Planes are as stored, before the EXIF orientation.
 *
 * The whole image is decoded, so a damaged one is an error. One object per thread.
 */
#ifndef LEAT_CURATE_IMAGE_SMALL_H
#define LEAT_CURATE_IMAGE_SMALL_H

#include "codec/codec.h"
#include "codec/jpeg_coef.h"
#include "codec/tile/tile.h"
#include "curate/image_noise.h"

typedef struct leat__small_plane {
    uint8_t *data;
    size_t stride, capacity;
    uint32_t width, height; /* samples */
    float across, down;     /* samples with pixels; the last sample of a row may be partial */
    uint32_t filled;        /* rows filled so far */
} leat__small_plane;

typedef struct leat__image_small {
    leat__image_info info;
    uint32_t components; /* 1 or 3 */
    leat__small_plane plane[3];
    uint64_t content; /* hash of size, pixels, alpha where not opaque, and orientation; the same for a
                       * JPEG and its tiles */
    leat__image_noise noise;
    bool has_quant;     /* JPEGs and tiles: */
    uint16_t quant[64]; /* luma table, row by row */
    /* Ordinary JPEGs and tiles: */
    bool coefficients;
    uint64_t energy[64]; /* sums of squares of the quantised luma coefficients */
    uint64_t blocks;     /* number of luma blocks */
    /* All other images: */
    double sum, squares;           /* sums over luma - 128 */
    double edge_sum, edge_squares; /* sums over its Laplacian */
    uint64_t edges;                /* pixels with a Laplacian */
} leat__image_small;

typedef struct leat__image_looker leat__image_looker;

int leat__image_looker_open(leat__image_looker **l, const leat__decode_limits *limits,
                            leat_error *err) LEAT_MUST_CHECK;
void leat__image_looker_close(leat__image_looker **l);

/* Shrinks an image. `data` is followed by LEAT__CODEC_PADDING readable bytes. `tables`: those of the
 * pack, for tiles. *small is valid until the next call. Fails like leat__codec_decode with
 * LEAT_EDATA, LEAT_EFORMAT or LEAT_ELIMIT. small->info is set as far as the headers could be read
 * (codec 0: not at all). */
int leat__image_look(leat__image_looker *l, const uint8_t *data, size_t len, const leat__tile_tables *tables,
                     const leat__image_small **small, leat_error *err) LEAT_MUST_CHECK;

/* Returns the bytes of the small version of an image, at most. Those of narrow images are as large as the
 * image. */
uint64_t leat__image_look_bytes(const leat__image_info *info);

/* Takes coefficients of the JPEG that is shrunk next, even when it is then given as tiles. The packer
 * has already decoded them, so the image is not decoded again. Each call gives the next grid_y rows
 * of blocks of each component, from the top. NULL: the next coefficients are of another image. */
int leat__image_prepare(leat__image_looker *l, const leat__jpeg_coefs *coefs,
                        leat_error *err) LEAT_MUST_CHECK;

#endif
