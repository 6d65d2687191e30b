/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverse DCT for AVX-512 (VBMI2): four blocks at a time, one per lane; vpexpandw takes the
 * coefficients out of the sparse form, half a block at once.
 */
#include <immintrin.h>
#include <string.h>

#include "dsp/idct.h"
#include "dsp/idct_constants.h"
#include "dsp/x86/load512.h"
#include "dsp/x86/tile_variants.h"

#define V __m512i
#define V_SET32(x) _mm512_set1_epi32(x)
#define V_LANES(x) _mm512_broadcast_i32x4(x)
#define V_MADD _mm512_madd_epi16
#define V_DOT _mm512_dpwssd_epi32
#define V_BOTH(s, x, a, b, sum, difference)                                                \
    do {                                                                                   \
        *(sum) = V_DOT(s, x, IDCT_PAIR(a, b));                                             \
        *(difference) = V_DOT(s, x, IDCT_PAIR(-(a), -(b)));                                \
    } while (0)
#define V_XOR _mm512_xor_si512
#define V_ADD16 _mm512_add_epi16
#define V_ADD32 _mm512_add_epi32
#define V_SUB32 _mm512_sub_epi32
#define V_SRA32 _mm512_srai_epi32
#define V_SRA16 _mm512_srai_epi16
#define V_PACK32 _mm512_packs_epi32
#define V_PACK16 _mm512_packs_epi16
#define V_LO16 _mm512_unpacklo_epi16
#define V_HI16 _mm512_unpackhi_epi16
#define V_LO32 _mm512_unpacklo_epi32
#define V_HI32 _mm512_unpackhi_epi32
#define V_LO64 _mm512_unpacklo_epi64
#define V_HI64 _mm512_unpackhi_epi64
#define V_HIGHS(a, b) _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(a, 16), b)
#define V_SHUFFLE8 _mm512_shuffle_epi8
#include "dsp/x86/idct_tmpl.h"

/* Groups 0 to 3 of block b, the mean put in. */
IDCT_INLINE V low_half(const leat__tile_coefs *c, uint32_t b)
{
    V v = _mm512_maskz_expand_epi16((__mmask32)c->mask[b],
                                    load512(c->value + c->first[b]));
    return _mm512_mask_set1_epi16(v, 1, c->dc[b]);
}

IDCT_INLINE V high_half(const leat__tile_coefs *c, uint32_t b)
{
    uint32_t before = (uint32_t)_mm_popcnt_u32((uint32_t)c->mask[b]);
    return _mm512_maskz_expand_epi16((__mmask32)(c->mask[b] >> 32),
                                     load512(c->value + c->first[b] + before));
}

/* x[block] with groups in lanes -> g[group] with blocks in lanes. */
IDCT_INLINE void lanes_4x4(const V x[4], V g[4])
{
    V a = _mm512_shuffle_i32x4(x[0], x[1], 0x44), b = _mm512_shuffle_i32x4(x[2], x[3], 0x44);
    V c = _mm512_shuffle_i32x4(x[0], x[1], 0xee), d = _mm512_shuffle_i32x4(x[2], x[3], 0xee);
    g[0] = _mm512_shuffle_i32x4(a, b, 0x88);
    g[1] = _mm512_shuffle_i32x4(a, b, 0xdd);
    g[2] = _mm512_shuffle_i32x4(c, d, 0x88);
    g[3] = _mm512_shuffle_i32x4(c, d, 0xdd);
}

/* Two rows of 32 samples from a vector. */
IDCT_INLINE void store_rows(uint8_t *dst, size_t stride, V rows)
{
    _mm256_storeu_si256((__m256i *)(void *)dst, _mm512_castsi512_si256(rows));
    _mm256_storeu_si256((__m256i *)(void *)(dst + stride), _mm512_extracti64x4_epi64(rows, 1));
}

/* Byte of row r, column c of block b in a pair of idct_samples. */
#define AT(b, r, c) (uint8_t)(((c) & 4) * 16 + 16 * (b) + ((c) & 2) * 4 + 2 * (r) + ((c) & 1))
#define BLOCK(b, r)                                                                        \
    AT(b, r, 0), AT(b, r, 1), AT(b, r, 2), AT(b, r, 3), AT(b, r, 4), AT(b, r, 5), AT(b, r, 6), \
        AT(b, r, 7)
#define ROW(r) BLOCK(0, r), BLOCK(1, r), BLOCK(2, r), BLOCK(3, r)
static const uint8_t rows_at[2][64] __attribute__((aligned(64))) = {{ROW(0), ROW(1)},
                                                                    {ROW(2), ROW(3)}};

/* Four rows of four blocks. */
IDCT_INLINE void store_half(uint8_t *dst, size_t stride, const V columns[8])
{
    V left = idct_samples(columns), right = idct_samples(columns + 4);
    for (size_t i = 0; i < 2; i++)
        store_rows(dst + 2 * i * stride, stride,
                   _mm512_permutex2var_epi8(left, _mm512_load_si512(rows_at[i]), right));
}

static void flat_four(uint8_t *dst, size_t stride, const int16_t dc[4], uint16_t quant)
{
    uint64_t v[4];
    for (int i = 0; i < 4; i++)
        v[i] = idct_flat((int16_t)(dc[i] * quant)) * UINT64_C(0x0101010101010101);
    for (size_t y = 0; y < 8; y++) memcpy(dst + y * stride, v, sizeof v);
}

IDCT_VARIANT(leat__idct_row_avx512)
{
    V q[8], g[8], x[4], top[8], bottom[8];
    idct_quant(quant, q);
    for (uint32_t b = first; b < first + count; b += 4, dst += 32) {
        const uint64_t *m = coefs->mask + b;
        uint64_t any = m[0] | m[1] | m[2] | m[3];
        if (any <= 1) {
            flat_four(dst, stride, coefs->dc + b, quant[0]);
            continue;
        }
        for (uint32_t i = 0; i < 4; i++) x[i] = low_half(coefs, b + i);
        lanes_4x4(x, g);
        if ((any & ~LEAT__TILE_CORNER) == 0) {
            for (int i = 0; i < 2; i++) g[i] = _mm512_mullo_epi16(g[i], q[i]);
            idct_corner(V_LO16(g[0], g[1]), V_HI16(g[0], g[1]), top, bottom);
        } else {
            for (uint32_t i = 0; i < 4; i++) x[i] = high_half(coefs, b + i);
            lanes_4x4(x, g + 4);
            for (int i = 0; i < 8; i++) g[i] = _mm512_mullo_epi16(g[i], q[i]);
            const idct_block block = idct_of_groups(g);
            idct_full(&block, top, bottom);
        }
        store_half(dst, stride, top);
        store_half(dst + 4 * stride, stride, bottom);
    }
}

IDCT_PLAIN_VARIANT(leat__idct_plain_avx512)
{
    V q[8], r[8], x[4], top[8], bottom[8];
    idct_quant_rows(quant, q);
    for (uint32_t b = 0; b < count; b += 4, dst += 32, blocks += 256) {
        uint8_t behind = idct_latest(last + b, count - b < 4 ? count - b : 4);
        if (behind == 0) {
            const int16_t dc[4] = {blocks[0], blocks[64], blocks[128], blocks[192]};
            flat_four(dst, stride, dc, quant[0]);
            continue;
        }
        for (int i = 0; i < 4; i++) x[i] = _mm512_loadu_si512(blocks + 64 * i);
        lanes_4x4(x, r);
        if (behind <= LEAT__IDCT_CORNER_LAST) {
            for (int i = 0; i < 4; i++) r[i] = _mm512_mullo_epi16(r[i], q[i]);
            idct_corner(V_LO16(r[0], r[2]), V_LO16(r[1], r[3]), top, bottom);
        } else {
            for (int i = 0; i < 4; i++) x[i] = _mm512_loadu_si512(blocks + 64 * i + 32);
            lanes_4x4(x, r + 4);
            for (int i = 0; i < 8; i++) r[i] = _mm512_mullo_epi16(r[i], q[i]);
            const idct_block block = idct_of_rows(r);
            idct_full(&block, top, bottom);
        }
        store_half(dst, stride, top);
        store_half(dst + 4 * stride, stride, bottom);
    }
}
