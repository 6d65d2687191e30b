/* SPDX-License-Identifier: Apache-2.0
 *
 * Blending two rows with AVX2 and F16C, for the row writers of AVX2 and AVX-512. Every product
 * and sum is rounded as in pixel.c.
 */
#ifndef LEAT_DSP_X86_BLEND_H
#define LEAT_DSP_X86_BLEND_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

static inline __m256 blend_f32x8(__m256 a, __m256 b, float wa, float wb)
{
    return _mm256_add_ps(_mm256_mul_ps(b, _mm256_set1_ps(wb)), _mm256_mul_ps(a, _mm256_set1_ps(wa)));
}

static inline __m256 blend_bytes8(const uint8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

static inline __m256i blend_u8x8(const uint8_t *a, const uint8_t *b, float wa, float wb)
{
    const __m256 x = _mm256_mul_ps(blend_bytes8(a), _mm256_set1_ps(wa));
    const __m256 y = _mm256_mul_ps(blend_bytes8(b), _mm256_set1_ps(wb));
    return _mm256_cvttps_epi32(_mm256_add_ps(_mm256_add_ps(x, y), _mm256_set1_ps(0.5f)));
}

static void blend_u8(uint8_t *a, const uint8_t *b, size_t n, float wa, float wb)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256i lo = blend_u8x8(a + i, b + i, wa, wb);
        const __m256i hi = blend_u8x8(a + i + 8, b + i + 8, wa, wb);
        const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(lo, hi), 0xd8);
        const __m128i bytes =
            _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
        _mm_storeu_si128((__m128i *)(a + i), bytes);
    }
    for (; i < n; i++) a[i] = (uint8_t)(wa * (float)a[i] + wb * (float)b[i] + 0.5f);
}

static void blend_f32(float *a, const float *b, size_t n, float wa, float wb)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(a + i, blend_f32x8(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i), wa, wb));
    for (; i < n; i++) a[i] = b[i] * wb + a[i] * wa;
}

static inline __m256 blend_half8(__m256 v)
{
    return _mm256_cvtph_ps(_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

static inline __m128i blend_f16x8(__m128i a, __m128i b, float wa, float wb)
{
    const __m256 x = blend_half8(_mm256_mul_ps(_mm256_cvtph_ps(a), _mm256_set1_ps(wa)));
    const __m256 y = blend_half8(_mm256_mul_ps(_mm256_cvtph_ps(b), _mm256_set1_ps(wb)));
    return _mm256_cvtps_ph(_mm256_add_ps(y, x), _MM_FROUND_TO_NEAREST_INT);
}

static inline __m256i blend_bf16_round(__m256 v)
{
    const __m256i u = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
}

static inline __m256 blend_bf16_cut(__m256 v)
{
    return _mm256_castsi256_ps(_mm256_and_si256(blend_bf16_round(v), _mm256_set1_epi32((int)0xffff0000)));
}

static inline __m256 blend_bf16_wide(__m128i v)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
}

static inline __m128i blend_bf16x8(__m128i a, __m128i b, float wa, float wb)
{
    const __m256 x = blend_bf16_cut(_mm256_mul_ps(blend_bf16_wide(a), _mm256_set1_ps(wa)));
    const __m256 y = blend_bf16_cut(_mm256_mul_ps(blend_bf16_wide(b), _mm256_set1_ps(wb)));
    const __m256i high = _mm256_srli_epi32(blend_bf16_round(_mm256_add_ps(y, x)), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}

/* The end of a row is processed in a padded vector, so all elements get the same arithmetic. */
#define BLEND_16(name, eight)                                                                                \
    static void name(uint16_t *a, const uint16_t *b, size_t n, float wa, float wb)                           \
    {                                                                                                        \
        size_t i = 0;                                                                                        \
        for (; i + 8 <= n; i += 8)                                                                           \
            _mm_storeu_si128((__m128i *)(a + i), eight(_mm_loadu_si128((const __m128i *)(a + i)),            \
                                                       _mm_loadu_si128((const __m128i *)(b + i)), wa, wb));  \
        uint16_t x[8] = {0}, y[8] = {0};                                                                     \
        for (size_t k = i; k < n; k++) {                                                                     \
            x[k - i] = a[k];                                                                                 \
            y[k - i] = b[k];                                                                                 \
        }                                                                                                    \
        _mm_storeu_si128((__m128i *)x, eight(_mm_loadu_si128((const __m128i *)x),                            \
                                             _mm_loadu_si128((const __m128i *)y), wa, wb));                  \
        for (size_t k = i; k < n; k++) a[k] = x[k - i];                                                      \
    }
BLEND_16(blend_f16, blend_f16x8)
BLEND_16(blend_bf16, blend_bf16x8)

#endif
