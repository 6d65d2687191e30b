/* SPDX-License-Identifier: Apache-2.0
 *
 * Affine and perspective maps of 8-bit images with Pillow's arithmetic, bit for bit: positions in
 * 16.16 fixed point or doubles, bilinear and bicubic in doubles.
 *
 * The image is copied once into pixels of four bytes, so that one load fetches all channels. It is
 * surrounded by extra pixels, so that no kernel has to test for an edge:
 *
 *     two pixels of border, copies of the nearest pixel, on all sides
 *     below it four rows of four pixels of the fill, to which positions outside the image point
 *
 * warp_tmpl.h has the portable code. It is compiled once per ISA; single kernels are replaced by
 * intrinsics where that is faster.
 */
#ifndef LEAT_DSP_WARP_H
#define LEAT_DSP_WARP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LEAT__WARP_BORDER = 2, LEAT__WARP_FILL = 4, LEAT__WARP_RUN = 32 };

/* Returns how many pixels of memory leat__warp_image_lay needs. 0 when the image is too large for offsets of
 * 32 bits. */
size_t leat__warp_pixels(uint32_t width, uint32_t height);

typedef struct leat__warp_image {
    const uint32_t *origin; /* the pixel (0, 0); its first channel is the lowest byte */
    int32_t stride;         /* in pixels */
    int32_t outside;        /* offset of a pixel with the fill colour */
    uint32_t width, height;
} leat__warp_image;

/* The sources of the pixels of a row: offsets from the origin and, for the filters, the distances from that
 * pixel's centre. Arrays are written in blocks and have room for that. */
typedef struct leat__warp_spots {
    int32_t *at;
    double *dx, *dy;
} leat__warp_spots;

static inline size_t leat__warp_spots_for(uint32_t n)
{
    return ((size_t)n + LEAT__WARP_RUN - 1) / LEAT__WARP_RUN * LEAT__WARP_RUN;
}

/* Maps output to input: (a0 x + a1 y + a2, a3 x + a4 y + a5), divided by a6 x + a7 y + 1 unless flat. */
typedef struct leat__warp_map {
    double a[8];
    bool flat, nearest;
} leat__warp_map;

typedef struct leat__warp_dsp {
    const char *isa;
    /* pack joins four rows of bytes into a row of pixels; unpack splits `channels` of them again */
    void (*pack)(const uint8_t *const plane[4], uint32_t *px, size_t n);
    void (*unpack)(const uint32_t *px, uint8_t *const plane[4], uint32_t channels, size_t n);
    /* computes the offsets of (x + i dx, y + i dy) in 16.16; sums wrap */
    void (*fixed)(const leat__warp_image *im, int32_t *at, size_t n, const uint32_t from[2],
                  const uint32_t step[2]);
    /* computes the sources of output row y */
    void (*mapped)(const leat__warp_image *im, const leat__warp_map *m, uint32_t y, size_t n,
                   leat__warp_spots s);
    /* compute the pixels from their sources */
    void (*nearest)(const leat__warp_image *im, leat__warp_spots s, uint32_t *px, size_t n);
    void (*bilinear)(const leat__warp_image *im, leat__warp_spots s, uint32_t *px, size_t n);
    /* bilinear, rounded to nearest instead of down */
    void (*rounded)(const leat__warp_image *im, leat__warp_spots s, uint32_t *px, size_t n);
    void (*bicubic)(const leat__warp_image *im, leat__warp_spots s, uint32_t *px, size_t n);
} leat__warp_dsp;

const leat__warp_dsp *leat__warp_dsp_for(uint32_t cpu_flags);

/* Lays out an image of four planes (several may be the same) in `memory`. */
leat__warp_image leat__warp_image_lay(const leat__warp_dsp *dsp, const uint8_t *const plane[4], size_t stride,
                                      uint32_t width, uint32_t height, const uint8_t fill[4],
                                      uint32_t *memory);

#endif
