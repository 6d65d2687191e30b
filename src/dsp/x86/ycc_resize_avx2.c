/* SPDX-License-Identifier: Apache-2.0
 *
 * Component resize for AVX2. Across: 8 outputs per lane; a byte shuffle collects the next two
 * samples of each from 16 or 32 bytes of the row.
 */
#include <immintrin.h>

#include "dsp/x86/ycc_resize.h"

#define V __m256i
#define V_BYTES 32
#define V_SET16(x) _mm256_set1_epi16(x)
#define V_LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define V_STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define V_ADD _mm256_add_epi16
#define V_SUB _mm256_sub_epi16
#define V_SRA _mm256_srai_epi16
#define V_DOT _mm256_maddubs_epi16
#define V_MUL(v, k) _mm256_mulhrs_epi16(v, _mm256_set1_epi16(k))
#define V_LO8 _mm256_unpacklo_epi8
#define V_HI8 _mm256_unpackhi_epi8
#define V_PACK _mm256_packs_epi16
#define V_PACKU _mm256_packus_epi16
#define V_XOR _mm256_xor_si256
#include "dsp/x86/ycc_resize_tmpl.h"

enum { GROUP = 8, LOAD = 16 };

YCC_INLINE V two_loads(const int8_t *low, const int8_t *high)
{
    return _mm256_loadu2_m128i((const __m128i *)(const void *)high,
                               (const __m128i *)(const void *)low);
}

/* Sixteen outputs, rounded, in 16 bits: a group in each lane. `pairs` is a constant 1, 2, or 0 =
 * any. */
YCC_INLINE V sixteen(const leat__ycc_axis *a, uint32_t j, const int8_t *src, const uint32_t pairs,
                     const bool two)
{
    const int8_t *low = src + a->base[j / GROUP], *high = src + a->base[j / GROUP + 1];
    const uint16_t *w = a->weight + j;
    const V take = V_LOAD(a->take + j);
    /* pshufb gives 0 for indices of 128 and more: each load's own stay below */
    const V near = _mm256_adds_epu8(take, _mm256_set1_epi8(128 - LOAD));
    const V far = _mm256_sub_epi8(take, _mm256_set1_epi8(LOAD));
    V sum = _mm256_setzero_si256();
    for (uint32_t p = 0; p < (pairs ? pairs : a->pairs); p++, low += 2, high += 2) {
        V px = _mm256_shuffle_epi8(two_loads(low, high), two ? near : take);
        if (two)
            px = _mm256_or_si256(px, _mm256_shuffle_epi8(two_loads(low + LOAD, high + LOAD), far));
        sum = V_ADD(sum, V_DOT(V_LOAD(w), px));
        w += a->stride;
    }
    return V_MUL(sum, LEAT__YCC_ROUND8);
}

YCC_INLINE void row_of(const leat__ycc_axis *a, const int8_t *src, int8_t *dst,
                       const uint32_t pairs, const bool two)
{
    for (uint32_t j = 0; j < a->count; j += 32) {
        const V both = V_PACK(sixteen(a, j, src, pairs, two), sixteen(a, j + 16, src, pairs, two));
        V_STORE(dst + j, _mm256_permute4x64_epi64(both, 0xd8));
    }
}

static void across(const leat__ycc_axis *a, const int8_t *src, int8_t *dst)
{
    if (a->loads == 0) ycc_across_far(a, src, dst);
    else if (a->loads == 2 && a->pairs == 2) row_of(a, src, dst, 2, true);
    else if (a->loads == 2) row_of(a, src, dst, 0, true);
    else if (a->pairs == 1) row_of(a, src, dst, 1, false);
    else if (a->pairs == 2) row_of(a, src, dst, 2, false);
    else row_of(a, src, dst, 0, false);
}

const leat__ycc_dsp8 leat__ycc_dsp8_avx2 = {.isa = "avx2",
                                            .group = GROUP,
                                            .load = LOAD,
                                            .across = across,
                                            .grey = ycc_grey,
                                            .colour = ycc_colour};
