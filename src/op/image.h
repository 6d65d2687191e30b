/* SPDX-License-Identifier: Apache-2.0
 *
 * A planar 8-bit image in a worker's scratch. Rows have readable slack on both sides, as the
 * resize kernels want it. Grows to what is asked and keeps its memory. One thread.
 */
#ifndef LEAT_OP_IMAGE_H
#define LEAT_OP_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct leat__image {
    uint32_t width, height, channels; /* channels: 1 or 3 */
    size_t stride;                    /* bytes from row to row; a multiple of 64 */
    uint8_t *plane[4];
    uint8_t *block; /* owned */
    size_t cap;
} leat__image;

/* Zeroed struct = empty image. Gives it this shape; the pixels are undefined. */
int leat__image_shape(leat__image *im, uint32_t width, uint32_t height, uint32_t channels,
                      leat_error *err) LEAT_MUST_CHECK;
void leat__image_reset(leat__image *im);
void leat__image_swap(leat__image *a, leat__image *b);

static inline uint8_t *leat__image_row(const leat__image *im, uint32_t channel, uint32_t y)
{
    return im->plane[channel] + (size_t)y * im->stride;
}

#endif
