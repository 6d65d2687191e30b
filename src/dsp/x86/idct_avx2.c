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
#define V_MADD _mm256_madd_epi16
#define V_ADD8 _mm256_add_epi8
#define V_ADD16 _mm256_add_epi16
#define V_ADD32 _mm256_add_epi32
#define V_SUB32 _mm256_sub_epi32
#define V_SRA32 _mm256_srai_epi32
#define V_PACK32 _mm256_packs_epi32
#define V_PACK16 _mm256_packs_epi16
#define V_LO16 _mm256_unpacklo_epi16
#define V_HI16 _mm256_unpackhi_epi16
#define V_LO32 _mm256_unpacklo_epi32
#define V_HI32 _mm256_unpackhi_epi32
#define V_LO64 _mm256_unpacklo_epi64
#define V_HI64 _mm256_unpackhi_epi64
#define V_SHUFFLE8 _mm256_shuffle_epi8
#include "dsp/x86/idct_tmpl.h"

static const uint8_t expand_words[256][16] __attribute__((aligned(64))) = {
    EXPAND_256(EXPAND_WORDS_OF)};

IDCT_INLINE V two_lanes(const void *low, const void *high)
{
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low)),
        _mm_loadu_si128((const __m128i *)high), 1);
}

/* Two blocks on their way out of the sparse form. */
typedef struct pair {
    uint64_t mask[2];
    const int16_t *value[2];
    V dc;
} pair;

/* The next group of each block; moves past it. */
IDCT_INLINE V next_group(pair *p)
{
    uint32_t a = p->mask[0] & 255, b = p->mask[1] & 255;
    V v = _mm256_shuffle_epi8(two_lanes(p->value[0], p->value[1]),
                              two_lanes(expand_words[a], expand_words[b]));
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

IDCT_INLINE void corner_pair(pair *p, const V q[8], V r[8])
{
    V g0 = first_group(p), g1 = next_group(p);
    r[0] = _mm256_mullo_epi16(g0, q[0]);
    r[1] = _mm256_mullo_epi16(_mm256_srli_si256(g0, 8), q[1]);
    r[2] = _mm256_mullo_epi16(g1, q[2]);
    r[3] = _mm256_mullo_epi16(_mm256_srli_si256(g1, 8), q[3]);
    idct_corner(r);
}

/* Rows of coefficients -> columns of samples. */
IDCT_INLINE void full_rows(const V q[8], V r[8])
{
    for (int i = 0; i < 8; i++) r[i] = _mm256_mullo_epi16(r[i], q[i]);
    idct_pass(r, IDCT_SHIFT1);
    idct_transpose(r);
    idct_pass(r, IDCT_SHIFT2);
}

IDCT_INLINE void full_pair(pair *p, uint64_t any, const V q[8], V r[8])
{
    V g[8];
    g[0] = first_group(p);
    for (int i = 1; i < 3; i++) g[i] = next_group(p);
    if (any >> 24 != 0)
        for (int i = 3; i < 8; i++) g[i] = next_group(p);
    else
        for (int i = 3; i < 8; i++) g[i] = _mm256_setzero_si256();
    idct_rows_of_groups(g, r);
    full_rows(q, r);
}

IDCT_INLINE void store_pair(uint8_t *dst, size_t stride, const V r[8])
{
    V bytes[4];
    idct_bytes(r, bytes);
    for (size_t i = 0; i < 4; i++) {
        V rows = _mm256_permute4x64_epi64(bytes[i], 0xd8);
        _mm_storeu_si128((__m128i *)(void *)(dst + 2 * i * stride),
                         _mm256_castsi256_si128(rows));
        _mm_storeu_si128((__m128i *)(void *)(dst + (2 * i + 1) * stride),
                         _mm256_extracti128_si256(rows, 1));
    }
}

static void flat_pair(uint8_t *dst, size_t stride, int16_t dc0, int16_t dc1, uint16_t quant)
{
    uint8_t low = idct_flat((int16_t)(dc0 * quant)), high = idct_flat((int16_t)(dc1 * quant));
    for (size_t y = 0; y < 8; y++) {
        memset(dst + y * stride, low, 8);
        memset(dst + y * stride + 8, high, 8);
    }
}

IDCT_VARIANT(leat__idct_row_avx2)
{
    V q[8], r[8];
    for (int i = 0; i < 8; i++)
        q[i] = V_LANES(_mm_loadu_si128((const __m128i *)(const void *)(quant + 8 * i)));
    for (uint32_t b = first; b < first + count; b += 2, dst += 16) {
        pair p = {{coefs->mask[b], coefs->mask[b + 1]},
                  {coefs->value + coefs->first[b], coefs->value + coefs->first[b + 1]},
                  _mm256_setzero_si256()};
        uint64_t any = p.mask[0] | p.mask[1];
        if (any <= 1) {
            flat_pair(dst, stride, coefs->dc[b], coefs->dc[b + 1], quant[0]);
            continue;
        }
        p.dc = _mm256_inserti128_si256(
            _mm256_castsi128_si256(_mm_cvtsi32_si128(coefs->dc[b])),
            _mm_cvtsi32_si128(coefs->dc[b + 1]), 1);
        if ((any & ~LEAT__TILE_CORNER) == 0) corner_pair(&p, q, r);
        else full_pair(&p, any, q, r);
        store_pair(dst, stride, r);
    }
}

IDCT_PLAIN_VARIANT(leat__idct_plain_avx2)
{
    V q[8], r[8];
    for (int i = 0; i < 8; i++)
        q[i] = V_LANES(_mm_loadu_si128((const __m128i *)(const void *)(quant + 8 * i)));
    for (uint32_t b = 0; b < count; b += 2, dst += 16, blocks += 128) {
        uint8_t behind = idct_latest(last + b, count - b < 2 ? 1 : 2);
        if (behind == 0) {
            flat_pair(dst, stride, blocks[0], blocks[64], quant[0]);
            continue;
        }
        const int rows = behind <= LEAT__IDCT_CORNER_LAST ? 4 : 8;
        for (int i = 0; i < rows; i++) r[i] = two_lanes(blocks + 8 * i, blocks + 64 + 8 * i);
        if (rows == 4) {
            for (int i = 0; i < 4; i++) r[i] = _mm256_mullo_epi16(r[i], q[i]);
            idct_corner(r);
        } else {
            full_rows(q, r);
        }
        store_pair(dst, stride, r);
    }
}
