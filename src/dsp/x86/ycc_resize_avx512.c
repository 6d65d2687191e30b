/* SPDX-License-Identifier: Apache-2.0
 *
 * Component resize for AVX-512 (VBMI). Horizontal: 32 outputs per vector; a byte permutation collects the
 * next two samples of each from 64 or 128 bytes of the row.
 */
#include <immintrin.h>

#include "dsp/x86/ycc_resize_x86.h"

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

/* Multiplies a pair of taps of 32 outputs. */
YCC_INLINE V dots_at(const uint8_t *src, V take, V weights, const bool two)
{
    const V low = V_LOAD(src);
    const V px =
        two ? _mm512_permutex2var_epi8(low, take, V_LOAD(src + LOAD)) : _mm512_permutexvar_epi8(take, low);
    return V_DOT(weights, V_XOR(px, V_SET16((short)0x8080)));
}

/* Computes 32 outputs of each of `rows` rows, rounded, in 16 bits. `rows` is a constant 1 or 2, `pairs` a
 * constant 1, 2, or 0 = any. */
YCC_INLINE void thirty_two(const leat__ycc_axis *a, uint32_t j, const uint8_t *const src[2],
                           const uint32_t rows, const uint32_t pairs, const bool two, V out[2])
{
    const uint16_t *w = a->weight + j;
    const V take = V_LOAD(a->take + j), first = V_LOAD(w);
    const ptrdiff_t at = a->base[j / GROUP];
    for (uint32_t r = 0; r < rows; r++) out[r] = dots_at(src[r] + at, take, first, two);
    for (uint32_t p = 1; p < (pairs ? pairs : a->pairs); p++) {
        const V next = V_LOAD(w + p * a->stride);
        for (uint32_t r = 0; r < rows; r++)
            out[r] = V_ADD(out[r], dots_at(src[r] + at + 2 * p, take, next, two));
    }
    for (uint32_t r = 0; r < rows; r++) out[r] = V_MUL(out[r], LEAT__YCC_ROUND8);
}

YCC_INLINE void rows_of(const leat__ycc_axis *a, const uint8_t *const src[2], int8_t *const dst[2],
                        const uint32_t rows, const uint32_t pairs, const bool two)
{
    const V order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    V left[2], right[2];
    uint32_t j = 0;
    for (; j + GROUP < a->count; j += 2 * GROUP) {
        thirty_two(a, j, src, rows, pairs, two, left);
        thirty_two(a, j + GROUP, src, rows, pairs, two, right);
        for (uint32_t r = 0; r < rows; r++)
            V_STORE(dst[r] + j, _mm512_permutexvar_epi64(order, V_PACK(left[r], right[r])));
    }
    if (j >= a->count) return;
    thirty_two(a, j, src, rows, pairs, two, left);
    for (uint32_t r = 0; r < rows; r++)
        _mm256_storeu_si256((__m256i *)(void *)(dst[r] + j), _mm512_cvtepi16_epi8(left[r]));
}

YCC_INLINE void some_rows(const leat__ycc_axis *a, const uint8_t *const src[2], int8_t *const dst[2],
                          const uint32_t rows)
{
    if (a->loads == 2) rows_of(a, src, dst, rows, 0, true);
    else if (a->pairs == 1) rows_of(a, src, dst, rows, 1, false);
    else if (a->pairs == 2) rows_of(a, src, dst, rows, 2, false);
    else rows_of(a, src, dst, rows, 0, false);
}

const leat__ycc_resize_dsp leat__ycc_resize_avx512 = {
    .isa = "avx512",
    .group = GROUP,
    .load = LOAD,
    .across = ycc_across,
    .grey = ycc_grey,
    .colour = ycc_colour,
};
