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

/* Groups 0 to 3 of block b, without its mean. */
FAST_INLINE V low_half(const leat__tile_coefs *c, uint32_t b)
{
    return _mm512_maskz_expand_epi16((__mmask32)c->mask[b], load512(c->value + c->first[b]));
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

/* The means of four blocks into word 0 of their lanes. */
FAST_INLINE V with_means(V v, const int16_t dc[4])
{
    const V lanes = _mm512_setr_epi64(0, 0, 1, 0, 2, 0, 3, 0);
    const V dcs = _mm512_castsi128_si512(_mm_loadl_epi64((const __m128i *)(const void *)dc));
    return _mm512_mask_permutexvar_epi16(v, 0x01010101, lanes, dcs);
}

/* Byte of column c, row r of block b in two packed pairs of columns. */
#define AT(b, r, c) (uint8_t)(((c) & 2) * 32 + 16 * (b) + ((c) & 1) * 8 + (r))
#define FOUR(b, r) AT(b, r, 0), AT(b, r, 1), AT(b, r, 2), AT(b, r, 3)
#define LANE(b, r) FOUR(b, r), FOUR((b) + 1, r), FOUR(b, (r) + 2), FOUR((b) + 1, (r) + 2)
#define ROWS(r) LANE(0, r), LANE(2, r), LANE(0, (r) + 1), LANE(2, (r) + 1)
static const uint8_t rows_at[2][64] __attribute__((aligned(64))) = {{ROWS(0)}, {ROWS(4)}};

FAST_INLINE void store_two(int8_t *dst, size_t stride, V rows)
{
    _mm256_storeu_si256((__m256i *)(void *)dst, _mm512_castsi512_si256(rows));
    _mm256_storeu_si256((__m256i *)(void *)(dst + stride), _mm512_extracti64x4_epi64(rows, 1));
}

/* Columns of 16-bit sums -> eight rows of four blocks. */
FAST_INLINE void store8(int8_t *dst, size_t stride, const V x[8])
{
    V pair[4];
    for (int i = 0; i < 4; i++)
        pair[i] = V_PACK(V_MUL(x[2 * i], 1 << (15 - IDCT_FAST_SHIFT)),
                         V_MUL(x[2 * i + 1], 1 << (15 - IDCT_FAST_SHIFT)));
    for (size_t h = 0; h < 2; h++, dst += 4 * stride) {
        const V at = _mm512_load_si512(rows_at[h]);
        const V left = _mm512_permutex2var_epi8(pair[0], at, pair[1]);
        const V right = _mm512_permutex2var_epi8(pair[2], at, pair[3]);
        store_two(dst, stride, V_LO32(left, right));
        store_two(dst + 2 * stride, stride, V_HI32(left, right));
    }
}

FAST_INLINE void quant_rows(const uint16_t quant[64], V q[8])
{
    for (int i = 0; i < 8; i++) q[i] = _mm512_broadcast_i32x4(fast_quant_row(quant, i));
}

/* Groups 0 and 1 of block b. */
FAST_INLINE void corner_of(const leat__tile_coefs *c, uint32_t b, __m128i *lo, __m128i *hi)
{
    const __m256i two = _mm256_maskz_expand_epi16(
        (__mmask16)c->mask[b], _mm512_castsi512_si256(load512(c->value + c->first[b])));
    *lo = _mm_insert_epi16(_mm256_castsi256_si128(two), c->dc[b], 0);
    *hi = _mm256_extracti128_si256(two, 1);
}

/* Four blocks of which nothing is outside the corner. */
FAST_INLINE void corner_four(const leat__tile_coefs *coefs, uint32_t b, const __m256i quant[2],
                             V x[8])
{
    static const uint8_t order[4] = {0, 2, 1, 3};
    __m128i lo[4], hi[4];
    __m256i first[4], second[4];
    for (uint32_t i = 0; i < 4; i++) corner_of(coefs, b + order[i], &lo[i], &hi[i]);
    fast_corner_columns(lo, hi, quant, first, second);
    for (int i = 0; i < 4; i++)
        x[i] = _mm512_inserti64x4(_mm512_castsi256_si512(first[i]), second[i], 1);
    fast_corner8(x);
}

static void row8(int8_t *dst, size_t stride, const leat__tile_coefs *coefs, uint32_t first,
                 uint32_t count, const uint16_t quant[64])
{
    const __m256i q4[2] = {fast_quant4(quant, 0), fast_quant4(quant, 1)};
    V q[8], g[8], x[8];
    quant_rows(quant, q);
    for (uint32_t b = first; b < first + count; b += 4, dst += 32) {
        const uint64_t *const m = coefs->mask + b;
        const uint64_t any = m[0] | m[1] | m[2] | m[3];
        if (any <= 1) {
            flat_four(dst, stride, coefs->dc + b, quant[0]);
            continue;
        }
        if ((any & ~LEAT__TILE_CORNER) == 0) {
            corner_four(coefs, b, q4, x);
            store8(dst, stride, x);
            continue;
        }
        for (uint32_t i = 0; i < 4; i++) x[i] = low_half(coefs, b + i);
        lanes_4x4(x, g);
        g[0] = with_means(g[0], coefs->dc + b);
        if (any >> 32 != 0) {
            for (uint32_t i = 0; i < 4; i++) x[i] = high_half(coefs, b + i);
            lanes_4x4(x, g + 4);
        } else {
            for (int i = 4; i < 8; i++) g[i] = _mm512_setzero_si512();
        }
        fast_rows_of(g, x);
        for (int i = 0; i < 8; i++) x[i] = _mm512_mullo_epi16(x[i], q[i]);
        fast_block8(x);
        store8(dst, stride, x);
    }
}

static void plain8(int8_t *dst, size_t stride, const int16_t *blocks, const uint8_t *last,
                   uint32_t count, const uint16_t quant[64])
{
    V q[8], r[4], x[8];
    quant_rows(quant, q);
    for (uint32_t b = 0; b < count; b += 4, dst += 32, blocks += 256) {
        for (int h = 0; h < 2; h++) {
            for (int i = 0; i < 4; i++) r[i] = _mm512_loadu_si512(blocks + 64 * i + 32 * h);
            lanes_4x4(r, x + 4 * h);
        }
        for (int i = 0; i < 8; i++) x[i] = _mm512_mullo_epi16(x[i], q[i]);
        fast_block8(x);
        store8(dst, stride, x);
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
