/* SPDX-License-Identifier: Apache-2.0
 *
 * The last pass over the pixels: converts 8-bit planar rows to the element type and layout of a batch.
 *
 * Normalisation is exact: (v / 255 - mean) / std, with each operation rounded to float as in PyTorch. The
 * portable kernels look up the 256 results. The SIMD kernels compute them with corrected reciprocals, after
 * leat__norm_init has checked that these give the same 256 results.
 */
#ifndef LEAT_DSP_PIXEL_H
#define LEAT_DSP_PIXEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the values of one channel are converted to floats. */
typedef struct leat__norm {
    float div, rdiv; /* 255 or 1, and 1 / div */
    float mean;
    float std, rstd;
    bool computable; /* the formula with reciprocals equals the table, bit for bit */
    float f32[256];
    uint16_t f16[256], bf16[256];
} leat__norm;

/* scale: divide by 255 first. mean 0 and std 1 leave values unchanged. */
void leat__norm_init(leat__norm *n, bool scale, float mean, float std);

typedef struct leat__pixel_dsp {
    const char *isa;
    /* Convert one row of one channel; write exactly `count` elements. */
    void (*to_f32)(const leat__norm *n, const uint8_t *src, float *dst, size_t count);
    void (*to_f16)(const leat__norm *n, const uint8_t *src, uint16_t *dst, size_t count);
    void (*to_bf16)(const leat__norm *n, const uint8_t *src, uint16_t *dst, size_t count);
    /* Interleave three rows of 1-, 2- or 4-byte elements; write 3 * count elements. */
    void (*interleave8)(const uint8_t *const src[3], uint8_t *dst, size_t count);
    void (*interleave16)(const uint16_t *const src[3], uint16_t *dst, size_t count);
    void (*interleave32)(const uint32_t *const src[3], uint32_t *dst, size_t count);
    void (*reverse)(const uint8_t *src, uint8_t *dst, size_t count); /* not in place */
    /* a = wb * b + wa * a: both products and the sum are rounded to the element type; bytes are rounded once,
     * to nearest (weights from 0 to 1, sum 1). */
    void (*blend_u8)(uint8_t *a, const uint8_t *b, size_t count, float wa, float wb);
    void (*blend_f32)(float *a, const float *b, size_t count, float wa, float wb);
    void (*blend_f16)(uint16_t *a, const uint16_t *b, size_t count, float wa, float wb);
    void (*blend_bf16)(uint16_t *a, const uint16_t *b, size_t count, float wa, float wb);
} leat__pixel_dsp;

const leat__pixel_dsp *leat__pixel_dsp_for(uint32_t cpu_flags);

/* Convert with rounding to nearest even. */
uint16_t leat__f16_of(float v);
uint16_t leat__bf16_of(float v);
float leat__f32_of_f16(uint16_t v);
float leat__f32_of_bf16(uint16_t v);

#endif
