/* SPDX-License-Identifier: Apache-2.0
 *
 * Alignment of thumbnails for AVX-512.
 */
#include "dsp/x86/align_x86.h"

#include <immintrin.h>

#define TMPL_LANES 16
#define TMPL_MASK __mmask16
#include "dsp/align_tmpl.h"
#include "dsp/x86/align_products_tmpl.h"

/* If a map hardly rotates, the lanes need only two or three rows, and the lanes at both ends have the first
 * and the last of them. Four rows of pixels fit into two registers, from which one permutation takes all
 * lanes; a gather takes several times as long. */
static inline tmpl_bits tmpl_quads(const leat__align_image *d, tmpl_int x, tmpl_int y)
{
    const __m512i step = _mm512_set1_epi32(0x21200100); /* right, below, both */
    const int one = y[0], other = y[TMPL_LANES - 1], first = one < other ? one : other;
    if (one - other > 2 || other - one > 2)
        return (tmpl_bits)_mm512_i32gather_epi32((__m512i)(y * TMPL_SIDE + x), d->quad, 4);
    const uint8_t *rows = d->byte + first * TMPL_SIDE;
    const __m512i at = (__m512i)((y - first) * TMPL_SIDE + x),
                  each = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);
    return (tmpl_bits)_mm512_permutex2var_epi8(_mm512_loadu_si512(rows),
                                               _mm512_add_epi8(_mm512_shuffle_epi8(at, each), step),
                                               _mm512_loadu_si512(rows + 64));
}

static inline tmpl_float tmpl_pixels(const float *row, tmpl_int at)
{
    return (tmpl_float)_mm512_permutex2var_ps(_mm512_loadu_ps(row), (__m512i)at, _mm512_loadu_ps(row + 16));
}

static inline tmpl_float tmpl_root(tmpl_float v)
{
    return (tmpl_float)_mm512_sqrt_ps((__m512)v);
}

static inline tmpl_float tmpl_keep(tmpl_float v, __mmask16 mask)
{
    return (tmpl_float)_mm512_maskz_mov_ps(mask, (__m512)v);
}

static inline tmpl_float tmpl_max(tmpl_float v, tmpl_float other)
{
    return (tmpl_float)_mm512_max_ps((__m512)v, (__m512)other);
}

static inline tmpl_float tmpl_min(tmpl_float v, tmpl_float other)
{
    return (tmpl_float)_mm512_min_ps((__m512)v, (__m512)other);
}

static inline __mmask16 tmpl_within(tmpl_float v, float low, float high)
{
    return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask((__m512)v, _mm512_set1_ps(low), _CMP_GE_OQ), (__m512)v,
                                   _mm512_set1_ps(high), _CMP_LT_OQ);
}

static inline uint32_t tmpl_mask_bits(__mmask16 mask)
{
    return mask;
}

static inline __mmask16 tmpl_bits_mask(uint32_t bits)
{
    return (__mmask16)bits;
}

static inline tmpl_bits tmpl_widen_bytes(const uint8_t *from)
{
    return (tmpl_bits)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)from));
}

static inline void tmpl_store_shorts(int16_t *to, tmpl_int v)
{
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi32_epi16((__m512i)v));
}

static inline float tmpl_total(const float *column)
{
    const __m512 all = _mm512_add_ps(_mm512_loadu_ps(column), _mm512_loadu_ps(column + 16));
    return tmpl_total_of(_mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1)));
}

enum { WORDS = LEAT__ALIGN_CODE / 4, GROUP_BYTES = LEAT__ALIGN_GROUP * LEAT__ALIGN_CODE };

/* Handles `n` adjacent groups at once, to hide the latency of the additions. */
static inline void some_products(const __m512i *q, __m512i bias, const uint8_t *groups, size_t n,
                                 int32_t *out)
{
    __m512i sum[4];
    for (size_t g = 0; g < n; g++) sum[g] = bias;
    for (int k = 0; k < WORDS; k++)
        for (size_t g = 0; g < n; g++)
            sum[g] = _mm512_dpbusd_epi32(sum[g], _mm512_loadu_si512(groups + g * GROUP_BYTES + 64 * k), q[k]);
    for (size_t g = 0; g < n; g++) _mm512_storeu_si512(out + g * LEAT__ALIGN_GROUP, sum[g]);
}

static void group_products_avx512(const int8_t *q, const uint8_t *groups, size_t count, int32_t *out)
{
    __m512i word[WORDS];
    int32_t all = 0, v;
    for (int k = 0; k < LEAT__ALIGN_CODE; k++) all += q[k];
    for (int k = 0; k < WORDS; k++) {
        memcpy(&v, q + 4 * k, sizeof v);
        word[k] = _mm512_set1_epi32(v);
    }
    const __m512i bias = _mm512_set1_epi32(-128 * all);
    for (; count >= 4; count -= 4, groups += 4 * GROUP_BYTES, out += 4 * LEAT__ALIGN_GROUP)
        some_products(word, bias, groups, 4, out);
    for (; count > 0; count--, groups += GROUP_BYTES, out += LEAT__ALIGN_GROUP)
        some_products(word, bias, groups, 1, out);
}

/* Computes the distances of 16 codes, and returns the bits of those below the limit. */
static inline uint32_t tmpl_nearer(const int32_t *product, const float *scale, float own, float limit,
                                   float *distance)
{
    tmpl_int whole;
    memcpy(&whole, product, sizeof whole);
    const tmpl_float v = 1 - __builtin_convertvector(whole, tmpl_float) * own * tmpl_load(scale);
    tmpl_store(distance, v);
    return _mm512_cmp_ps_mask((__m512)v, _mm512_set1_ps(limit), _CMP_LT_OQ);
}

static size_t nearer_avx512(const int32_t *product, const float *scale, size_t count, float own, float limit,
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

const leat__align_dsp leat__align_avx512 = {.isa = "avx512",
                                            .products = tmpl_products,
                                            .group_products = group_products_avx512,
                                            .nearer = nearer_avx512,
                                            .prepare = tmpl_prepare,
                                            .shrink = tmpl_shrink,
                                            .slide = tmpl_slide,
                                            .outlines = tmpl_outlines,
                                            .sample = tmpl_sample,
                                            .sums = tmpl_sums,
                                            .compare = tmpl_compare,
                                            .compare_sampled = tmpl_compare_sampled};
