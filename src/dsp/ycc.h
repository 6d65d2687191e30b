/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts planes of a JPEG to RGB rows: "fancy" (triangle) upsampling of chroma and YCbCr -> RGB, equal in
 * every bit to libjpeg-turbo's defaults. Works on rows; the caller selects them.
 *
 * Kernels may write an output row, and read an input row, up to the next multiple of LEAT__YCC_ROUND bytes.
 * The h2 kernels also read one sample before the start and one past that. At the edges of the image, the
 * caller must repeat the edge sample.
 */
#ifndef LEAT_DSP_YCC_H
#define LEAT_DSP_YCC_H

#include <stdint.h>

#define LEAT__YCC_ROUND 64

/* Upsamples n input samples to 2n output samples, from in[-1] .. in[n]. */
typedef void (*leat__up_h2v1_fn)(uint8_t *out, const uint8_t *in, uint32_t n);
/* Upsamples in both directions, between two rows: `near` has weight 3, `far` 1. */
typedef void (*leat__up_h2v2_fn)(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t n);
/* Upsamples n samples only vertically. bias: 1 when `far` is the row above, 2 when it is below. */
typedef void (*leat__up_h1v2_fn)(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t n,
                                 uint32_t bias);
/* Repeats each of n samples twice or four times. */
typedef void (*leat__up_repeat_fn)(uint8_t *out, const uint8_t *in, uint32_t n);
typedef void (*leat__ycc_rgb_fn)(uint8_t *r, uint8_t *g, uint8_t *b, const uint8_t *y, const uint8_t *cb,
                                 const uint8_t *cr, uint32_t n);

typedef struct leat__ycc_dsp {
    leat__up_h2v1_fn h2v1;
    leat__up_h2v2_fn h2v2;
    leat__up_h1v2_fn h1v2;
    leat__up_repeat_fn repeat2, repeat4;
    leat__ycc_rgb_fn rgb;
    const char *isa;
} leat__ycc_dsp;

void leat__ycc_init(leat__ycc_dsp *dsp, uint32_t cpu_flags);

#endif
