/* SPDX-License-Identifier: Apache-2.0
 *
 * How noisy the luma of an image is: the standard deviation of its noise, if that is white.
 *
 * Each measured block of 8 x 8 pixels has a level: the root mean square of Immerkaer's filter
 * (1 -2 1; -2 4 -2; 1 -2 1), divided by its response to noise of deviation 1. The filter removes slopes, and
 * edges along rows and columns. Other detail remains, so the level of the image is the lower quartile of its
 * blocks: noise is everywhere, detail is not.
 *
 * Coefficients give the level of a block by Parseval's theorem: the filter multiplies each frequency by a
 * constant. Sums are integers, so a JPEG and its tiles have the same level.
 */
#ifndef LEAT_CURATE_IMAGE_NOISE_H
#define LEAT_CURATE_IMAGE_NOISE_H

#include <stdbool.h>
#include <stdint.h>

#include "dsp/idct.h"

#define LEAT__NOISE_BLOCKS 512u /* maximum blocks that are measured: evenly spaced ones of large images */
#define LEAT__NOISE_BINS 256    /* of levels; the last one has all higher ones */

typedef struct leat__image_noise {
    uint32_t wide, high; /* blocks that are wholly inside the image */
    uint32_t step;       /* every step-th block in both directions is measured */
    uint32_t last_row;   /* the last row of pixels that has one below it */
    uint64_t weight[64]; /* of a squared coefficient, row by row */
    uint32_t count[LEAT__NOISE_BINS];
    /* For images decoded to pixels: sums over the current row of blocks */
    uint64_t sum[LEAT__NOISE_BLOCKS];
    uint32_t pixels[LEAT__NOISE_BLOCKS];
} leat__image_noise;

/* Begins an image. `quant`: the luma table, row by row; NULL when the image is measured by its pixels. */
void leat__image_noise_begin(leat__image_noise *n, uint32_t width, uint32_t height, const uint16_t *quant);
/* Adds `count` plain blocks of one row, from block x of row y on. */
void leat__image_noise_plain(leat__image_noise *n, const int16_t *blocks, uint32_t x, uint32_t y,
                             uint32_t count);
/* Adds a rectangle of sparse blocks, of which the first is block x of row y. */
void leat__image_noise_area(leat__image_noise *n, const leat__tile_coefs *coefs, const leat__idct_area *area,
                            uint32_t x, uint32_t y);
/* Adds row y of luma, between the rows above and below it. Rows come from the top. */
void leat__image_noise_row(leat__image_noise *n, uint32_t y, const int16_t *above, const int16_t *at,
                           const int16_t *below, uint32_t width);
/* Returns the level of the blocks so far; NaN when no block was measured. */
double leat__image_noise_level(const leat__image_noise *n);

#endif
