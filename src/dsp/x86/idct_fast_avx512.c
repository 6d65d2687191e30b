/* SPDX-License-Identifier: Apache-2.0
 *
 * 16-bit inverse DCT for AVX-512 (VBMI2): four blocks at a time.
 */
#include <immintrin.h>
#include <string.h>

#include "dsp/x86/idct_fast.h"
#include "dsp/x86/load512.h"

#define V __m512i
#define V_ADD _mm512_add_epi16
#define V_SUB _mm512_sub_epi16
#define V_MUL(v, k) _mm512_mulhrs_epi16(v, _mm512_set1_epi16(k))
#define V_PACK _mm512_packs_epi16
#define V_LO8 _mm512_unpacklo_epi8
#define V_HI8 _mm512_unpackhi_epi8
#define V_LO16 _mm512_unpacklo_epi16
#define V_HI16 _mm512_unpackhi_epi16
#define V_LO32 _mm512_unpacklo_epi32
#define V_HI32 _mm512_unpackhi_epi32
#define V_LO64 _mm512_unpacklo_epi64
#define V_HI64 _mm512_unpackhi_epi64
#include "dsp/x86/idct_fast_tmpl.h"

/* Groups 0 to 3 of block b, the mean put in. */
FAST_INLINE V low_half(const leat__tile_coefs *c, uint32_t b)
{
    V v = _mm512_maskz_expand_epi16((__mmask32)c->mask[b], load512(c->value + c->first[b]));
    return _mm512_mask_set1_epi16(v, 1, c->dc[b]);
}

FAST_INLINE V high_half(const leat__tile_coefs *c, uint32_t b)
{
    uint32_t before = (uint32_t)_mm_popcnt_u32((uint32_t)c->mask[b]);
    return _mm512_maskz_expand_epi16((__mmask32)(c->mask[b] >> 32),
                                     load512(c->value + c->first[b] + before));
}

/* x[block] with four vectors of a block in lanes -> g[vector] with blocks in lanes. */
FAST_INLINE void lanes_4x4(const V x[4], V g[4])
{
    V a = _mm512_shuffle_i32x4(x[0], x[1], 0x44), b = _mm512_shuffle_i32x4(x[2], x[3], 0x44);
    V c = _mm512_shuffle_i32x4(x[0], x[1], 0xee), d = _mm512_shuffle_i32x4(x[2], x[3], 0xee);
    g[0] = _mm512_shuffle_i32x4(a, b, 0x88);
    g[1] = _mm512_shuffle_i32x4(a, b, 0xdd);
    g[2] = _mm512_shuffle_i32x4(c, d, 0x88);
    g[3] = _mm512_shuffle_i32x4(c, d, 0xdd);
}

/* Eight rows of four blocks. */
FAST_INLINE void store8(int8_t *dst, size_t stride, const V rows[4])
{
    const V order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    for (size_t i = 0; i < 4; i++) {
        const V two = _mm512_permutexvar_epi64(order, rows[i]);
        int8_t *const at = dst + 2 * i * stride;
        _mm256_storeu_si256((__m256i *)(void *)at, _mm512_castsi512_si256(two));
        _mm256_storeu_si256((__m256i *)(void *)(at + stride), _mm512_extracti64x4_epi64(two, 1));
    }
}

FAST_INLINE void quant_rows(const uint16_t quant[64], V q[8])
{
    for (int i = 0; i < 8; i++) q[i] = _mm512_broadcast_i32x4(fast_quant_row(quant, i));
}

/* Groups 0 and 1 of block b. */
FAST_INLINE void corner_of(const leat__tile_coefs *c, uint32_t b, __m128i *lo, __m128i *hi)
{
    const __m256i two = _mm512_castsi512_si256(low_half(c, b));
    *lo = _mm256_castsi256_si128(two);
    *hi = _mm256_extracti128_si256(two, 1);
}

/* Four blocks of which nothing is outside the corner. */
FAST_INLINE void corner_four(const leat__tile_coefs *coefs, uint32_t b, const __m256i quant[2],
                             V out[4])
{
    static const uint8_t order[4] = {0, 2, 1, 3};
    __m128i lo[4], hi[4];
    __m256i first[4], second[4];
    V x[8];
    for (uint32_t i = 0; i < 4; i++) corner_of(coefs, b + order[i], &lo[i], &hi[i]);
    fast_corner_columns(lo, hi, quant, first, second);
    for (int i = 0; i < 4; i++)
        x[i] = _mm512_inserti64x4(_mm512_castsi256_si512(first[i]), second[i], 1);
    fast_corner8(x);
    fast_samples8(x, out);
}

static void row8(int8_t *dst, size_t stride, const leat__tile_coefs *coefs, uint32_t first,
                 uint32_t count, const uint16_t quant[64])
{
    const __m256i q4[2] = {fast_quant4(quant, 0), fast_quant4(quant, 1)};
    V q[8], g[8], x[8], out[4];
    quant_rows(quant, q);
    for (uint32_t b = first; b < first + count; b += 4, dst += 32) {
        const uint64_t *const m = coefs->mask + b;
        const uint64_t any = m[0] | m[1] | m[2] | m[3];
        if (any <= 1) {
            flat_four(dst, stride, coefs->dc + b, quant[0]);
            continue;
        }
        if ((any & ~LEAT__TILE_CORNER) == 0) {
            corner_four(coefs, b, q4, out);
            store8(dst, stride, out);
            continue;
        }
        for (uint32_t i = 0; i < 4; i++) x[i] = low_half(coefs, b + i);
        lanes_4x4(x, g);
        if (any >> 32 != 0) {
            for (uint32_t i = 0; i < 4; i++) x[i] = high_half(coefs, b + i);
            lanes_4x4(x, g + 4);
        } else {
            for (int i = 4; i < 8; i++) g[i] = _mm512_setzero_si512();
        }
        fast_rows_of(g, x);
        for (int i = 0; i < 8; i++) x[i] = _mm512_mullo_epi16(x[i], q[i]);
        fast_block8(x, out);
        store8(dst, stride, out);
    }
}

static void plain8(int8_t *dst, size_t stride, const int16_t *blocks, const uint8_t *last,
                   uint32_t count, const uint16_t quant[64])
{
    V q[8], r[4], x[8], out[4];
    quant_rows(quant, q);
    for (uint32_t b = 0; b < count; b += 4, dst += 32, blocks += 256) {
        for (int h = 0; h < 2; h++) {
            for (int i = 0; i < 4; i++) r[i] = _mm512_loadu_si512(blocks + 64 * i + 32 * h);
            lanes_4x4(r, x + 4 * h);
        }
        for (int i = 0; i < 8; i++) x[i] = _mm512_mullo_epi16(x[i], q[i]);
        fast_block8(x, out);
        store8(dst, stride, out);
    }
}

static void row4(int8_t *dst, size_t stride, const leat__tile_coefs *coefs, uint32_t first,
                 uint32_t count, const uint16_t quant[64])
{
    const __m256i q[2] = {fast_quant4(quant, 0), fast_quant4(quant, 1)};
    for (uint32_t b = first; b < first + count; b += 4, dst += 16) {
        __m128i lo[4], hi[4];
        for (uint32_t i = 0; i < 4; i++) corner_of(coefs, b + i, &lo[i], &hi[i]);
        fast_block4(dst, stride, lo, hi, q);
    }
}

void leat__idct_fast_avx512(leat__idct_fast_dsp *dsp)
{
    dsp->row[0] = row8;
    dsp->row[1] = row4;
    dsp->plain[0] = plain8;
    dsp->plain[1] = fast_plain4;
    dsp->isa = "avx512";
}
