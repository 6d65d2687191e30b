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

/* The rows of a map that hardly rotates are two or three, and in the lanes at both ends the first and the
 * last of them. Four rows of pixels are two registers, from which one permutation takes all lanes; a gather
 * takes several times as long. */
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

const leat__align_dsp leat__align_avx512 = {.isa = "avx512",
                                            .products = tmpl_products,
                                            .prepare = tmpl_prepare,
                                            .shrink = tmpl_shrink,
                                            .slide = tmpl_slide,
                                            .sample = tmpl_sample,
                                            .sums = tmpl_sums,
                                            .compare = tmpl_compare};
