/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of integers with AVX2, for both x86 variants: they are limited by memory rather than by lanes.
 * Also sums of floats.
 */
#ifndef LEAT_DSP_X86_ALIGN_PRODUCTS_TMPL_H
#define LEAT_DSP_X86_ALIGN_PRODUCTS_TMPL_H

#include <immintrin.h>

#include "dsp/align.h"

/* Sums a vector: adds halves until one number is left. */
static inline float tmpl_total_of(__m256 v)
{
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

static inline __m256i tmpl_widen(const int8_t *from)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)from));
}

static inline __m256i tmpl_product(const __m256i *q, const int8_t *code, size_t words)
{
    __m256i sum = _mm256_madd_epi16(q[0], tmpl_widen(code));
    for (size_t i = 1; i < words; i++)
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(q[i], tmpl_widen(code + 16 * i)));
    return sum;
}

/* Returns the sums of four vectors. */
static inline __m128i tmpl_add_up(__m256i a, __m256i b, __m256i c, __m256i d)
{
    const __m256i all = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    return _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}

static inline void tmpl_products_of(const __m256i *wide, const int8_t *codes, size_t words, size_t count,
                                    int32_t *out)
{
    const size_t bytes = 16 * words;
    size_t n = 0;
    for (; n + 4 <= count; n += 4, codes += 4 * bytes) {
        const __m128i four = tmpl_add_up(
            tmpl_product(wide, codes, words), tmpl_product(wide, codes + bytes, words),
            tmpl_product(wide, codes + 2 * bytes, words), tmpl_product(wide, codes + 3 * bytes, words));
        _mm_storeu_si128((__m128i *)(out + n), four);
    }
    for (; n < count; n++, codes += bytes) {
        const __m256i one = tmpl_product(wide, codes, words);
        out[n] = _mm_cvtsi128_si32(tmpl_add_up(one, one, one, one));
    }
}

static void tmpl_products(const int8_t *q, const int8_t *codes, size_t bytes, size_t count, int32_t *out)
{
    __m256i wide[3];
    const size_t words = bytes / 16;
    if (words == 3) { /* the usual length, unrolled */
        for (size_t i = 0; i < 3; i++) wide[i] = tmpl_widen(q + 16 * i);
        tmpl_products_of(wide, codes, 3, count, out);
        return;
    }
    for (size_t n = 0; n < count; n++, codes += bytes) {
        __m256i sum = _mm256_setzero_si256();
        for (size_t i = 0; i < words; i++)
            sum =
                _mm256_add_epi32(sum, _mm256_madd_epi16(tmpl_widen(q + 16 * i), tmpl_widen(codes + 16 * i)));
        out[n] = _mm_cvtsi128_si32(tmpl_add_up(sum, sum, sum, sum));
    }
}

static void tmpl_slide(const int16_t *a, const int16_t *b, int n, int span, int32_t *out)
{
    __m256i row[LEAT__ALIGN_COARSE];
    for (int y = 0; y < n; y++) row[y] = _mm256_loadu_si256((const __m256i *)(a + y * LEAT__ALIGN_COARSE));
    for (int top = 0; top <= span; top++)
        for (int left = 0; left <= span; left++) {
            const int16_t *at = b + top * LEAT__ALIGN_COARSE + left;
            __m256i sum = _mm256_setzero_si256();
            for (int y = 0; y < n; y++) {
                const __m256i v = _mm256_loadu_si256((const __m256i *)(at + y * LEAT__ALIGN_COARSE));
                sum = _mm256_add_epi32(sum, _mm256_madd_epi16(row[y], v));
            }
            *out++ = _mm_cvtsi128_si32(tmpl_add_up(sum, sum, sum, sum));
        }
}

#endif
