/* SPDX-License-Identifier: Apache-2.0
 *
 * Component resize for AVX2. Horizontal: 8 outputs per lane; a byte shuffle collects the next two samples
 * of each from 16 or 32 bytes of the row.
 */
#include <immintrin.h>

#include "dsp/x86/ycc_resize_x86.h"

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

YCC_INLINE V two_loads(const uint8_t *low, const uint8_t *high)
{
    return _mm256_loadu2_m128i((const __m128i *)(const void *)high, (const __m128i *)(const void *)low);
}

/* Multiplies a pair of taps of 16 outputs: one group in each lane. */
YCC_INLINE V dots_at(const uint8_t *low, const uint8_t *high, V take, V weights, const bool two)
{
    /* pshufb gives 0 for indices of 128 or more: only the indices of each load stay below */
    const V near = _mm256_adds_epu8(take, _mm256_set1_epi8(128 - LOAD));
    const V far = _mm256_sub_epi8(take, _mm256_set1_epi8(LOAD));
    V px = _mm256_shuffle_epi8(two_loads(low, high), two ? near : take);
    if (two) px = _mm256_or_si256(px, _mm256_shuffle_epi8(two_loads(low + LOAD, high + LOAD), far));
    return V_DOT(weights, V_XOR(px, V_SET16((short)0x8080)));
}

/* Computes sixteen outputs of each of `rows` rows, rounded, in 16 bits. `rows` is a constant 1 or 2, `pairs`
 * a constant 1, 2, or 0 = any. */
YCC_INLINE void sixteen(const leat__ycc_axis *a, uint32_t j, const uint8_t *const src[2], const uint32_t rows,
                        const uint32_t pairs, const bool two, V out[2])
{
    const uint16_t *w = a->weight + j;
    const V take = V_LOAD(a->take + j), first = V_LOAD(w);
    const ptrdiff_t low = a->base[j / GROUP], high = a->base[j / GROUP + 1];
    for (uint32_t r = 0; r < rows; r++) out[r] = dots_at(src[r] + low, src[r] + high, take, first, two);
    for (uint32_t p = 1; p < (pairs ? pairs : a->pairs); p++) {
        const V next = V_LOAD(w + p * a->stride);
        for (uint32_t r = 0; r < rows; r++)
            out[r] = V_ADD(out[r], dots_at(src[r] + low + 2 * p, src[r] + high + 2 * p, take, next, two));
    }
    for (uint32_t r = 0; r < rows; r++) out[r] = V_MUL(out[r], LEAT__YCC_ROUND8);
}

YCC_INLINE void rows_of(const leat__ycc_axis *a, const uint8_t *const src[2], int8_t *const dst[2],
                        const uint32_t rows, const uint32_t pairs, const bool two)
{
    for (uint32_t j = 0; j < a->count; j += 32) {
        V left[2], right[2];
        sixteen(a, j, src, rows, pairs, two, left);
        sixteen(a, j + 16, src, rows, pairs, two, right);
        for (uint32_t r = 0; r < rows; r++)
            V_STORE(dst[r] + j, _mm256_permute4x64_epi64(V_PACK(left[r], right[r]), 0xd8));
    }
}

YCC_INLINE void some_rows(const leat__ycc_axis *a, const uint8_t *const src[2], int8_t *const dst[2],
                          const uint32_t rows)
{
    if (a->loads == 2 && a->pairs == 2) rows_of(a, src, dst, rows, 2, true);
    else if (a->loads == 2) rows_of(a, src, dst, rows, 0, true);
    else if (a->pairs == 1) rows_of(a, src, dst, rows, 1, false);
    else if (a->pairs == 2) rows_of(a, src, dst, rows, 2, false);
    else rows_of(a, src, dst, rows, 0, false);
}

const leat__ycc_resize_dsp leat__ycc_resize_avx2 = {
    .isa = "avx2",
    .group = GROUP,
    .load = LOAD,
    .across = ycc_across,
    .grey = ycc_grey,
    .colour = ycc_colour,
};
