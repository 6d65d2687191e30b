/* SPDX-License-Identifier: Apache-2.0
 *
 * Colour and neighbourhood kernels on rows of planar 8-bit images, with Pillow's arithmetic: the same float
 * and double operations in the same order, so results are equal bit for bit (except blur, which follows
 * torchvision to within one).
 *
 * color_tmpl.h has the portable code. It is compiled once per ISA, where the compiler vectorises it; single
 * kernels are replaced by intrinsics where that is faster.
 */
#ifndef LEAT_DSP_COLOR_H
#define LEAT_DSP_COLOR_H

#include <stddef.h>
#include <stdint.h>

typedef struct leat__color_dsp {
    const char *isa;
    /* dst[i] = table[src[i]]; in place is fine */
    void (*lut)(const uint8_t *src, uint8_t *dst, size_t n, const uint8_t table[256]);
    /* ITU-R 601 luma in 16-bit fixed point, and its sum over the row */
    void (*luma)(const uint8_t *const rgb[3], uint8_t *dst, size_t n);
    uint64_t (*luma_sum)(const uint8_t *const rgb[3], size_t n);
    /* dst = a + alpha * (b - a), clipped to 0..255; dst may be a or b */
    void (*blend)(const uint8_t *a, const uint8_t *b, uint8_t *dst, size_t n, float alpha);
    /* to HSV, hue + shift (mod 256), and back, in place */
    void (*hue)(uint8_t *const rgb[3], size_t n, uint8_t shift);
    /* 3x3 smoothing (1 1 1, 1 5 1, 1 1 1) / 13 in two parts. sums: adds pixels i, i+1 and i+2, weighted as in
     * the outer rows (edge) and as in the middle row. join: adds three rows of such sums. */
    void (*smooth_sums)(const uint8_t *src, float *edge, float *middle, size_t n);
    void (*smooth_join)(const float *up, const float *at, const float *down, uint8_t *dst, size_t n);
    /* dst[i] = sum of k[t] * src[i + t], 64 at a time: src and dst have room for that */
    void (*blur_row)(const float *src, float *dst, size_t n, const float *k, size_t taps);
    /* dst[i] = round(sum of k[t] * rows[t][i]), reads 64 at a time, writes exactly n */
    void (*blur_column)(const float *const *rows, uint8_t *dst, size_t n, const float *k, size_t taps);
    /* counts[v] = occurrences of v */
    void (*histogram)(const uint8_t *src, size_t stride, size_t width, size_t height, uint32_t counts[256]);
} leat__color_dsp;

const leat__color_dsp *leat__color_dsp_for(uint32_t cpu_flags);

/* Fills the table for blending every value with one constant: brightness and contrast. */
void leat__blend_table(uint8_t table[256], uint8_t constant, float alpha);

#endif
