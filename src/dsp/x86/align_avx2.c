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

const leat__align_dsp leat__align_avx2 = {.isa = "avx2",
                                          .products = tmpl_products,
                                          .prepare = tmpl_prepare,
                                          .shrink = tmpl_shrink,
                                          .slide = tmpl_slide,
                                          .sample = tmpl_sample,
                                          .sums = tmpl_sums,
                                          .compare = tmpl_compare};
