/* SPDX-License-Identifier: Apache-2.0
 *
 * Portable row writers and the conversions between float types: see pixel.h. Pure functions.
 */
#include "dsp/pixel.h"

#include <math.h>
#include <string.h>

#include "dsp/x86/pixel_x86.h"

static uint32_t bits_of(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

uint16_t leat__f16_of(float v)
{
    const uint32_t u = bits_of(v), sign = u >> 16 & 0x8000, mag = u & 0x7fffffff;
    if (mag > 0x7f800000) return (uint16_t)(sign | 0x7e00);  /* NaN */
    if (mag >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* rounds past 65504 */
    if (mag < 0x38800000) {
        /* subnormal: adding 0.5 leaves the rounded fraction in the low bits */
        const float shifted = float_of(mag) + 0.5f;
        return (uint16_t)(sign | (bits_of(shifted) - bits_of(0.5f)));
    }
    const uint32_t odd = mag >> 13 & 1;
    return (uint16_t)(sign | (mag - 0x38000000 + 0xfff + odd) >> 13);
}

float leat__f32_of_f16(uint16_t v)
{
    const uint32_t sign = (uint32_t)(v & 0x8000) << 16, exponent = v >> 10 & 31;
    const uint32_t fraction = v & 0x3ff;
    if (exponent == 31) return float_of(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) {
        const float f = (float)fraction * 0x1p-24f;
        return sign ? -f : f;
    }
    return float_of(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t leat__bf16_of(float v)
{
    const uint32_t u = bits_of(v);
    if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

float leat__f32_of_bf16(uint16_t v)
{
    return float_of((uint32_t)v << 16);
}

/* Divides like the SIMD kernels: one multiplication and one correction. */
static float divide(float a, float b, float rb)
{
    const float q = a * rb;
    return fmaf(fmaf(-q, b, a), rb, q);
}

void leat__norm_init(leat__norm *n, bool scale, float mean, float std)
{
    n->div = scale ? 255.0f : 1.0f;
    n->rdiv = 1.0f / n->div;
    n->mean = mean;
    n->std = std;
    n->rstd = 1.0f / std;
    n->computable = true;
    for (int v = 0; v < 256; v++) {
        const float exact = ((float)v / n->div - mean) / std;
        const float fast = divide(divide((float)v, n->div, n->rdiv) - mean, std, n->rstd);
        n->f32[v] = exact;
        n->f16[v] = leat__f16_of(exact);
        n->bf16[v] = leat__bf16_of(exact);
        if (bits_of(exact) != bits_of(fast)) n->computable = false;
    }
}

static void to_f32_c(const leat__norm *n, const uint8_t *src, float *dst, size_t count)
{
    for (size_t i = 0; i < count; i++) dst[i] = n->f32[src[i]];
}

static void to_f16_c(const leat__norm *n, const uint8_t *src, uint16_t *dst, size_t count)
{
    for (size_t i = 0; i < count; i++) dst[i] = n->f16[src[i]];
}

static void to_bf16_c(const leat__norm *n, const uint8_t *src, uint16_t *dst, size_t count)
{
    for (size_t i = 0; i < count; i++) dst[i] = n->bf16[src[i]];
}

#define INTERLEAVE(bits)                                                                                     \
    static void interleave##bits##_c(const uint##bits##_t *const src[3], uint##bits##_t *dst, size_t count)  \
    {                                                                                                        \
        const uint##bits##_t *const a = src[0], *const b = src[1], *const c = src[2];                        \
        for (size_t i = 0; i < count; i++, dst += 3) {                                                       \
            dst[0] = a[i];                                                                                   \
            dst[1] = b[i];                                                                                   \
            dst[2] = c[i];                                                                                   \
        }                                                                                                    \
    }
INTERLEAVE(8)
INTERLEAVE(16)
INTERLEAVE(32)

static void reverse_c(const uint8_t *src, uint8_t *dst, size_t count)
{
    for (size_t i = 0; i < count; i++) dst[i] = src[count - 1 - i];
}

static void blend_u8_c(uint8_t *a, const uint8_t *b, size_t n, float wa, float wb)
{
    for (size_t i = 0; i < n; i++) a[i] = (uint8_t)(wa * (float)a[i] + wb * (float)b[i] + 0.5f);
}

static void blend_f32_c(float *a, const float *b, size_t n, float wa, float wb)
{
    for (size_t i = 0; i < n; i++) a[i] = b[i] * wb + a[i] * wa;
}

static void blend_f16_c(uint16_t *a, const uint16_t *b, size_t n, float wa, float wb)
{
    for (size_t i = 0; i < n; i++) {
        const uint16_t x = leat__f16_of(leat__f32_of_f16(a[i]) * wa);
        const uint16_t y = leat__f16_of(leat__f32_of_f16(b[i]) * wb);
        a[i] = leat__f16_of(leat__f32_of_f16(y) + leat__f32_of_f16(x));
    }
}

static void blend_bf16_c(uint16_t *a, const uint16_t *b, size_t n, float wa, float wb)
{
    for (size_t i = 0; i < n; i++) {
        const uint16_t x = leat__bf16_of(leat__f32_of_bf16(a[i]) * wa);
        const uint16_t y = leat__bf16_of(leat__f32_of_bf16(b[i]) * wb);
        a[i] = leat__bf16_of(leat__f32_of_bf16(y) + leat__f32_of_bf16(x));
    }
}

static const leat__pixel_dsp pixel_c = {
    .isa = "scalar",
    .to_f32 = to_f32_c,
    .to_f16 = to_f16_c,
    .to_bf16 = to_bf16_c,
    .interleave8 = interleave8_c,
    .interleave16 = interleave16_c,
    .interleave32 = interleave32_c,
    .reverse = reverse_c,
    .blend_u8 = blend_u8_c,
    .blend_f32 = blend_f32_c,
    .blend_f16 = blend_f16_c,
    .blend_bf16 = blend_bf16_c,
};

const leat__pixel_dsp *leat__pixel_dsp_for(uint32_t cpu_flags)
{
    const leat__pixel_dsp *best = &pixel_c;
#ifdef LEAT_X86
    if (cpu_flags & LEAT__CPU_AVX2) best = &leat__pixel_avx2;
    if (cpu_flags & LEAT__CPU_AVX512ICL) best = &leat__pixel_avx512;
#endif
    return best;
}
