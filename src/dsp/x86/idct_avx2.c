/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverse DCT for AVX2: two blocks at a time, one per lane.
 */
#include <immintrin.h>
#include <string.h>

#include "dsp/idct.h"
#include "dsp/idct_constants.h"
#include "dsp/x86/expand_tables.h"
#include "dsp/x86/tile_variants.h"

#define V __m256i
#define V_SET32(x) _mm256_set1_epi32(x)
#define V_LANES(x) _mm256_broadcastsi128_si256(x)
#define V_MADD(x, a, b) _mm256_madd_epi16(x, V_SET32(IDCT_PAIR(a, b)))
#define V_DOT(s, x, a, b) _mm256_add_epi32(s, V_MADD(x, a, b))
#define V_BOTH(s, x, a, b, sum, difference)                                                                  \
    do {                                                                                                     \
        V dot_ = V_MADD(x, a, b);                                                                            \
        *(sum) = V_ADD32(s, dot_);                                                                           \
        *(difference) = V_SUB32(s, dot_);                                                                    \
    } while (0)
#define V_XOR _mm256_xor_si256
#define V_ADD16 _mm256_add_epi16
#define V_ADD32 _mm256_add_epi32
#define V_SUB32 _mm256_sub_epi32
#define V_SRA32 _mm256_srai_epi32
#define V_SRA16 _mm256_srai_epi16
#define V_PACK32 _mm256_packs_epi32
#define V_PACK16 _mm256_packs_epi16
#define V_LO16 _mm256_unpacklo_epi16
#define V_HI16 _mm256_unpackhi_epi16
#define V_LO32 _mm256_unpacklo_epi32
#define V_HI32 _mm256_unpackhi_epi32
#define V_LO64 _mm256_unpacklo_epi64
#define V_HI64 _mm256_unpackhi_epi64
#define V_HIGHS(a, b) _mm256_blend_epi16(_mm256_srli_epi32(a, 16), b, 0xaa)
#define V_SHUFFLE8 _mm256_shuffle_epi8
#include "dsp/x86/idct_tmpl.h"

/* ---- moves: one block per lane ---- */

/* Shuffles are the bottleneck on these machines: a single transposition of 4x4 pairs converts the result of
 * the first pass to the input of the second. */

/* Converts four rows of eight columns to pairs of columns of these rows. */
IDCT_INLINE void idct_turn(const V low[4], const V high[4], idct_pairs *x)
{
    const V pairs = V_LANES(_mm_setr_epi8(0, 1, 8, 9, 4, 5, 12, 13, 14, 15, 2, 3, 6, 7, 10, 11));
    V p[4];
    for (int i = 0; i < 4; i++) {
        V row = V_PACK32(V_SRA32(low[i], IDCT_SHIFT1), V_SRA32(high[i], IDCT_SHIFT1));
        p[i] = V_SHUFFLE8(row, pairs);
    }
    V a = V_LO32(p[0], p[1]), b = V_LO32(p[2], p[3]);
    V c = V_HI32(p[0], p[1]), d = V_HI32(p[2], p[3]);
    x->x04 = V_LO64(a, b);
    x->x26 = V_HI64(a, b);
    x->x71 = V_LO64(c, d);
    x->x35 = V_HI64(c, d);
}

/* All pairs of a block: those of its left and its right four columns. */
typedef struct idct_block {
    idct_pairs left, right;
} idct_block;

/* Arranges the dequantised groups g, in the order of leat__tile_order, for the column pass. */
IDCT_INLINE idct_block idct_of_groups(const V g[8])
{
    return (idct_block){{V_LO16(g[0], g[3]), V_LO16(g[1], g[5]), V_HI16(g[5], g[0]), V_HI16(g[1], g[3])},
                        {V_LO16(g[2], g[6]), V_LO16(g[4], g[7]), V_HI16(g[7], g[2]), V_HI16(g[4], g[6])}};
}

IDCT_INLINE idct_block idct_of_rows(const V r[8])
{
    return (idct_block){{V_LO16(r[0], r[4]), V_LO16(r[2], r[6]), V_LO16(r[7], r[1]), V_LO16(r[3], r[5])},
                        {V_HI16(r[0], r[4]), V_HI16(r[2], r[6]), V_HI16(r[7], r[1]), V_HI16(r[3], r[5])}};
}

/* Runs both passes. The results are columns: rows 0 to 3 in top, 4 to 7 in bottom, still to be shifted by
 * IDCT_SHIFT2. */
IDCT_INLINE void idct_full(const idct_block *in, V top[8], V bottom[8])
{
    V low[8], high[8];
    idct_pairs x;
    idct_half(&in->left, low, IDCT_SHIFT1);
    idct_half(&in->right, high, IDCT_SHIFT1);
    idct_turn(low, high, &x);
    idct_half(&x, top, IDCT_SHIFT2);
    idct_turn(low + 4, high + 4, &x);
    idct_half(&x, bottom, IDCT_SHIFT2);
}

/* Converts two rows of four columns to the pairs of columns (0,2) of both rows, then (1,3). */
IDCT_INLINE V idct_turn_two(V first, V second)
{
    const V pairs = V_LANES(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    return V_SHUFFLE8(V_PACK32(V_SRA32(first, IDCT_SHIFT1), V_SRA32(second, IDCT_SHIFT1)), pairs);
}

/* Like idct_full, for blocks whose coefficients are all in the 4x4 corner, which are a third of the blocks of
 * photographs. Takes the pairs of rows (0,2) and (1,3). */
IDCT_INLINE void idct_corner(V x02, V x13, V top[8], V bottom[8])
{
    V d[8];
    idct_half_corner(x02, x13, d, IDCT_SHIFT1);
    V a = idct_turn_two(d[0], d[1]), b = idct_turn_two(d[2], d[3]);
    V e = idct_turn_two(d[4], d[5]), f = idct_turn_two(d[6], d[7]);
    idct_half_corner(V_LO64(a, b), V_HI64(a, b), top, IDCT_SHIFT2);
    idct_half_corner(V_LO64(e, f), V_HI64(e, f), bottom, IDCT_SHIFT2);
}

/* Loads quantisers in the order of the groups. */
IDCT_INLINE void idct_quant(const uint16_t quant[64], V q[8])
{
    for (int i = 0; i < 8; i++) {
        const uint16_t *const at = quant + leat__tile_order[8 * i];
        q[i] = V_LANES(_mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)(const void *)at),
                                          _mm_loadl_epi64((const __m128i *)(const void *)(at + 8))));
    }
}

/* Loads quantisers in the order of the rows. */
IDCT_INLINE void idct_quant_rows(const uint16_t quant[64], V q[8])
{
    for (int i = 0; i < 8; i++)
        q[i] = V_LANES(_mm_loadu_si128((const __m128i *)(const void *)(quant + 8 * i)));
}

/* ---- blocks ---- */

static const uint8_t expand_words[256][16] __attribute__((aligned(64))) = {EXPAND_256(EXPAND_WORDS_OF)};

IDCT_INLINE V two_lanes(const void *low, const void *high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low)),
                                   _mm_loadu_si128((const __m128i *)high), 1);
}

/* Two blocks being expanded from the sparse form. */
typedef struct pair {
    uint64_t mask[2];
    const int16_t *value[2];
    V dc;
} pair;

/* Expands the next group of 8 coefficients of both blocks and advances to the one after it. */
IDCT_INLINE V next_group(pair *p)
{
    uint32_t a = p->mask[0] & 255, b = p->mask[1] & 255;
    V v =
        _mm256_shuffle_epi8(two_lanes(p->value[0], p->value[1]), two_lanes(expand_words[a], expand_words[b]));
    p->value[0] += _mm_popcnt_u32(a);
    p->value[1] += _mm_popcnt_u32(b);
    p->mask[0] >>= 8;
    p->mask[1] >>= 8;
    return v;
}

IDCT_INLINE V first_group(pair *p)
{
    return _mm256_blend_epi16(next_group(p), p->dc, 1);
}

IDCT_INLINE void corner_pair(pair *p, const V q[8], V top[8], V bottom[8])
{
    V g0 = _mm256_mullo_epi16(first_group(p), q[0]);
    V g1 = _mm256_mullo_epi16(next_group(p), q[1]);
    idct_corner(V_LO16(g0, g1), V_HI16(g0, g1), top, bottom);
}

IDCT_INLINE void full_pair(pair *p, uint64_t any, const V q[8], V top[8], V bottom[8])
{
    V g[8];
    g[0] = first_group(p);
    for (int i = 1; i < 3; i++) g[i] = next_group(p);
    if (any >> 24 != 0)
        for (int i = 3; i < 8; i++) g[i] = next_group(p);
    else
        for (int i = 3; i < 8; i++) g[i] = _mm256_setzero_si256();
    for (int i = 0; i < 8; i++) g[i] = _mm256_mullo_epi16(g[i], q[i]);
    const idct_block block = idct_of_groups(g);
    idct_full(&block, top, bottom);
}

IDCT_INLINE void store_rows(uint8_t *dst, size_t stride, V blocks)
{
    V rows = _mm256_permute4x64_epi64(blocks, 0xd8);
    _mm_storeu_si128((__m128i *)(void *)dst, _mm256_castsi256_si128(rows));
    _mm_storeu_si128((__m128i *)(void *)(dst + stride), _mm256_extracti128_si256(rows, 1));
}

/* Stores four rows of two blocks. */
IDCT_INLINE void store_half(uint8_t *dst, size_t stride, const V columns[8])
{
    const V rows_of_four = V_LANES(_mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
    V left = V_SHUFFLE8(idct_samples(columns), rows_of_four);
    V right = V_SHUFFLE8(idct_samples(columns + 4), rows_of_four);
    store_rows(dst, stride, V_LO32(left, right));
    store_rows(dst + 2 * stride, stride, V_HI32(left, right));
}

static void flat_pair(uint8_t *dst, size_t stride, int16_t dc0, int16_t dc1, uint16_t quant)
{
    uint8_t low = idct_flat((int16_t)(dc0 * quant)), high = idct_flat((int16_t)(dc1 * quant));
    for (size_t y = 0; y < 8; y++) {
        memset(dst + y * stride, low, 8);
        memset(dst + y * stride + 8, high, 8);
    }
}

/* Transforms two blocks, b and b + 1. */
IDCT_INLINE void sparse_pair(uint8_t *dst, size_t stride, const leat__tile_coefs *coefs, uint32_t b,
                             const V q[8], uint16_t quant)
{
    V top[8], bottom[8];
    pair p = {{coefs->mask[b], coefs->mask[b + 1]},
              {coefs->value + coefs->first[b], coefs->value + coefs->first[b + 1]},
              _mm256_setzero_si256()};
    uint64_t any = p.mask[0] | p.mask[1];
    if (any <= 1) {
        flat_pair(dst, stride, coefs->dc[b], coefs->dc[b + 1], quant);
        return;
    }
    p.dc = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_cvtsi32_si128(coefs->dc[b])),
                                   _mm_cvtsi32_si128(coefs->dc[b + 1]), 1);
    if ((any & ~LEAT__TILE_CORNER) == 0) corner_pair(&p, q, top, bottom);
    else full_pair(&p, any, q, top, bottom);
    store_half(dst, stride, top);
    store_half(dst + 4 * stride, stride, bottom);
}

IDCT_VARIANT(leat__idct_area_avx2)
{
    V q[8];
    idct_quant(quant, q);
    for (uint32_t y = 0; y < area->high; y++, dst += 8 * stride)
        for (uint32_t x = 0; x < area->wide; x += 2)
            sparse_pair(dst + 8 * x, stride, coefs, area->first + y * area->pitch + x, q, quant[0]);
}

IDCT_PLAIN_VARIANT(leat__idct_plain_avx2)
{
    V q[8], r[8], top[8], bottom[8];
    idct_quant_rows(quant, q);
    for (uint32_t b = 0; b < count; b += 2, dst += 16, blocks += 128) {
        uint8_t behind = idct_latest(last + b, count - b < 2 ? 1 : 2);
        if (behind == 0) {
            flat_pair(dst, stride, blocks[0], blocks[64], quant[0]);
            continue;
        }
        const int rows = behind <= LEAT__IDCT_CORNER_LAST ? 4 : 8;
        for (int i = 0; i < rows; i++)
            r[i] = _mm256_mullo_epi16(two_lanes(blocks + 8 * i, blocks + 64 + 8 * i), q[i]);
        if (rows == 4) {
            idct_corner(V_LO16(r[0], r[2]), V_LO16(r[1], r[3]), top, bottom);
        } else {
            const idct_block block = idct_of_rows(r);
            idct_full(&block, top, bottom);
        }
        store_half(dst, stride, top);
        store_half(dst + 4 * stride, stride, bottom);
    }
}
