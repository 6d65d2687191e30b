/* SPDX-License-Identifier: Apache-2.0
 *
 * Alignment of thumbnails for AVX2.
 */
#include "dsp/x86/align_x86.h"

#include <immintrin.h>

#define TMPL_LANES 8
#define TMPL_MASK tmpl_int
#include "dsp/align_tmpl.h"
#include "dsp/x86/align_products_tmpl.h"

static inline tmpl_bits tmpl_quads(const leat__align_image *d, tmpl_int x, tmpl_int y)
{
    return (tmpl_bits)_mm256_i32gather_epi32((const int *)d->quad, (__m256i)(y * TMPL_SIDE + x), 4);
}

static inline tmpl_float tmpl_pixels(const float *row, tmpl_int at)
{
    return (tmpl_float)_mm256_i32gather_ps(row, (__m256i)at, 4);
}

static inline tmpl_float tmpl_root(tmpl_float v)
{
    return (tmpl_float)_mm256_sqrt_ps((__m256)v);
}

static inline tmpl_float tmpl_keep(tmpl_float v, tmpl_int mask)
{
    return (tmpl_float)((tmpl_int)v & mask);
}

static inline tmpl_float tmpl_max(tmpl_float v, tmpl_float other)
{
    return (tmpl_float)_mm256_max_ps((__m256)v, (__m256)other);
}

static inline tmpl_float tmpl_min(tmpl_float v, tmpl_float other)
{
    return (tmpl_float)_mm256_min_ps((__m256)v, (__m256)other);
}

static inline tmpl_int tmpl_within(tmpl_float v, float low, float high)
{
    return (v >= low) & (v < high);
}

static inline uint32_t tmpl_mask_bits(tmpl_int mask)
{
    return (uint32_t)_mm256_movemask_ps((__m256)mask);
}

static inline tmpl_int tmpl_bits_mask(uint32_t bits)
{
    const tmpl_int lane = {1, 2, 4, 8, 16, 32, 64, 128};
    return ((tmpl_int)_mm256_set1_epi32((int)bits) & lane) == lane;
}

static inline tmpl_bits tmpl_widen_bytes(const uint8_t *from)
{
    return (tmpl_bits)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)from));
}

static inline void tmpl_store_shorts(int16_t *to, tmpl_int v)
{
    const __m128i low = _mm256_castsi256_si128((__m256i)v), high = _mm256_extracti128_si256((__m256i)v, 1);
    _mm_storeu_si128((__m128i *)to, _mm_packs_epi32(low, high));
}

static inline float tmpl_total(const float *column)
{
    return tmpl_total_of(
        _mm256_add_ps(_mm256_add_ps(_mm256_loadu_ps(column), _mm256_loadu_ps(column + 16)),
                      _mm256_add_ps(_mm256_loadu_ps(column + 8), _mm256_loadu_ps(column + 24))));
}

static void group_products_avx2(const int8_t *q, const uint8_t *groups, size_t count, int32_t *out)
{
    enum { WORDS = LEAT__ALIGN_CODE / 4, PARTS = 4 }; /* four codes per part */
    __m256i wide[WORDS], bias;
    int32_t sum = 0;
    for (int k = 0; k < LEAT__ALIGN_CODE; k++) sum += q[k];
    for (int k = 0; k < WORDS; k++) {
        int32_t word;
        memcpy(&word, q + 4 * k, sizeof word);
        wide[k] = _mm256_broadcastq_epi64(_mm_cvtepi8_epi16(_mm_cvtsi32_si128(word)));
    }
    bias = _mm256_set1_epi32(-128 * sum);
    for (size_t g = 0; g < count; g++, out += LEAT__ALIGN_GROUP) {
        __m256i part[PARTS] = {0};
        for (int k = 0; k < WORDS; k++)
            for (int p = 0; p < PARTS; p++, groups += 16) {
                const __m256i four = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)groups));
                part[p] = _mm256_add_epi32(part[p], _mm256_madd_epi16(wide[k], four));
            }
        for (int p = 0; p < PARTS; p += 2) { /* adds the two sums of each code */
            const __m256i all = _mm256_permute4x64_epi64(_mm256_hadd_epi32(part[p], part[p + 1]), 0xd8);
            _mm256_storeu_si256((__m256i *)(out + 4 * p), _mm256_add_epi32(all, bias));
        }
    }
}

/* Computes the distances of 8 codes, and returns the bits of those below the limit. */
static inline uint32_t tmpl_nearer(const int32_t *product, const float *scale, float own, float limit,
                                   float *distance)
{
    tmpl_int whole;
    memcpy(&whole, product, sizeof whole);
    const tmpl_float v = 1 - __builtin_convertvector(whole, tmpl_float) * own * tmpl_load(scale);
    tmpl_store(distance, v);
    return tmpl_mask_bits(v < limit);
}

static size_t nearer_avx2(const int32_t *product, const float *scale, size_t count, float own, float limit,
                          uint32_t *at, float *distance)
{
    size_t n = 0, i = 0;
    for (; i + TMPL_LANES <= count; i += TMPL_LANES)
        for (uint32_t bits = tmpl_nearer(product + i, scale + i, own, limit, distance + i); bits;
             bits &= bits - 1)
            at[n++] = (uint32_t)i + (uint32_t)__builtin_ctz(bits);
    for (; i < count; i++) {
        distance[i] = 1 - (float)product[i] * own * scale[i];
        if (distance[i] < limit) at[n++] = (uint32_t)i;
    }
    return n;
}

const leat__align_dsp leat__align_avx2 = {.isa = "avx2",
                                          .products = tmpl_products,
                                          .group_products = group_products_avx2,
                                          .nearer = nearer_avx2,
                                          .prepare = tmpl_prepare,
                                          .shrink = tmpl_shrink,
                                          .slide = tmpl_slide,
                                          .outlines = tmpl_outlines,
                                          .sample = tmpl_sample,
                                          .sums = tmpl_sums,
                                          .compare = tmpl_compare,
                                          .compare_sampled = tmpl_compare_sampled};
