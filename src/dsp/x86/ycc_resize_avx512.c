/* SPDX-License-Identifier: Apache-2.0
 *
 * Component resize for AVX-512 (VBMI). Across: 32 outputs per vector; a byte permutation
 * collects the next two samples of each from 64 or 128 bytes of the row.
 */
#include <immintrin.h>

#include "dsp/x86/ycc_resize.h"

#define V __m512i
#define V_BYTES 64
#define V_SET16(x) _mm512_set1_epi16(x)
#define V_LOAD(p) _mm512_loadu_si512(p)
#define V_STORE(p, v) _mm512_storeu_si512(p, v)
#define V_ADD _mm512_add_epi16
#define V_SUB _mm512_sub_epi16
#define V_SRA _mm512_srai_epi16
#define V_DOT _mm512_maddubs_epi16
#define V_MUL(v, k) _mm512_mulhrs_epi16(v, _mm512_set1_epi16(k))
#define V_LO8 _mm512_unpacklo_epi8
#define V_HI8 _mm512_unpackhi_epi8
#define V_PACK _mm512_packs_epi16
#define V_PACKU _mm512_packus_epi16
#define V_XOR _mm512_xor_si512
#include "dsp/x86/ycc_resize_tmpl.h"

enum { GROUP = 32, LOAD = 64 };

/* `pairs` is a constant 1, 2, or 0 = any. */
YCC_INLINE __m256i thirty_two(const leat__ycc_axis *a, uint32_t j, const int8_t *src,
                              const uint32_t pairs, const bool two)
{
    const int8_t *s = src + a->base[j / GROUP];
    const uint16_t *w = a->weight + j;
    const V take = V_LOAD(a->take + j);
    V sum = _mm512_setzero_si512();
    for (uint32_t p = 0; p < (pairs ? pairs : a->pairs); p++, s += 2, w += a->stride) {
        const V px = two ? _mm512_permutex2var_epi8(V_LOAD(s), take, V_LOAD(s + LOAD))
                         : _mm512_permutexvar_epi8(take, V_LOAD(s));
        const V dot = V_DOT(V_LOAD(w), px);
        sum = p == 0 ? dot : V_ADD(sum, dot);
    }
    return _mm512_cvtepi16_epi8(V_MUL(sum, LEAT__YCC_ROUND8));
}

YCC_INLINE void row_of(const leat__ycc_axis *a, const int8_t *src, int8_t *dst,
                       const uint32_t pairs, const bool two)
{
    for (uint32_t j = 0; j < a->count; j += GROUP)
        _mm256_storeu_si256((__m256i *)(void *)(dst + j), thirty_two(a, j, src, pairs, two));
}

static void across(const leat__ycc_axis *a, const int8_t *src, int8_t *dst)
{
    if (a->loads == 0) ycc_across_far(a, src, dst);
    else if (a->loads == 2) row_of(a, src, dst, 0, true);
    else if (a->pairs == 1) row_of(a, src, dst, 1, false);
    else if (a->pairs == 2) row_of(a, src, dst, 2, false);
    else row_of(a, src, dst, 0, false);
}

const leat__ycc_dsp8 leat__ycc_dsp8_avx512 = {.isa = "avx512",
                                              .group = GROUP,
                                              .load = LOAD,
                                              .across = across,
                                              .grey = ycc_grey,
                                              .colour = ycc_colour};
