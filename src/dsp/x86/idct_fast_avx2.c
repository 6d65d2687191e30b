/* SPDX-License-Identifier: Apache-2.0
 *
 * 16-bit inverse DCT for AVX2: 8x8 two blocks at a time, 4x4 four.
 */
#include <immintrin.h>
#include <string.h>

#include "dsp/x86/expand_tables.h"
#include "dsp/x86/idct_fast.h"

#define V __m256i
#define V_ADD _mm256_add_epi16
#define V_SUB _mm256_sub_epi16
#define V_MUL(v, k) _mm256_mulhrs_epi16(v, _mm256_set1_epi16(k))
#define V_PACK _mm256_packs_epi16
#define V_LO8 _mm256_unpacklo_epi8
#define V_HI8 _mm256_unpackhi_epi8
#define V_LO16 _mm256_unpacklo_epi16
#define V_HI16 _mm256_unpackhi_epi16
#define V_LO32 _mm256_unpacklo_epi32
#define V_HI32 _mm256_unpackhi_epi32
#define V_LO64 _mm256_unpacklo_epi64
#define V_HI64 _mm256_unpackhi_epi64
#include "dsp/x86/idct_fast_tmpl.h"

static const uint8_t expand_words[256][16] __attribute__((aligned(64))) = {
    EXPAND_256(EXPAND_WORDS_OF)};

/* A block on its way out of the sparse form: its next group; moves past it. */
typedef struct sparse {
    uint64_t mask;
    const int16_t *value;
} sparse;

FAST_INLINE __m128i next_group(sparse *s)
{
    const uint32_t bits = s->mask & 255;
    const __m128i v =
        _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)s->value),
                         _mm_load_si128((const __m128i *)(const void *)expand_words[bits]));
    s->value += _mm_popcnt_u32(bits);
    s->mask >>= 8;
    return v;
}

FAST_INLINE __m128i first_group(sparse *s, int16_t dc)
{
    return _mm_insert_epi16(next_group(s), dc, 0);
}

FAST_INLINE sparse sparse_at(const leat__tile_coefs *c, uint32_t b)
{
    return (sparse){c->mask[b], c->value + c->first[b]};
}

/* Columns of 16-bit sums -> eight rows of two blocks. */
FAST_INLINE void store8(int8_t *dst, size_t stride, const V x[8])
{
    V s[8];
    for (int i = 0; i < 8; i++) s[i] = V_MUL(x[i], 1 << (15 - IDCT_FAST_SHIFT));
    const V p02 = V_PACK(s[0], s[2]), p13 = V_PACK(s[1], s[3]);
    const V p46 = V_PACK(s[4], s[6]), p57 = V_PACK(s[5], s[7]);
    const V c01 = V_LO8(p02, p13), c23 = V_HI8(p02, p13);
    const V c45 = V_LO8(p46, p57), c67 = V_HI8(p46, p57);
    const V left0 = V_LO16(c01, c23), left4 = V_HI16(c01, c23);
    const V right0 = V_LO16(c45, c67), right4 = V_HI16(c45, c67);
    const V rows[4] = {V_LO32(left0, right0), V_HI32(left0, right0), V_LO32(left4, right4),
                       V_HI32(left4, right4)};
    for (size_t i = 0; i < 4; i++)
        fast_store4(dst + 2 * i * stride, stride, _mm256_permute4x64_epi64(rows[i], 0xd8));
}

FAST_INLINE void quant_rows(const uint16_t quant[64], V q[8])
{
    for (int i = 0; i < 8; i++) q[i] = _mm256_broadcastsi128_si256(fast_quant_row(quant, i));
}


/* Groups 0 and 1 of block b. */
FAST_INLINE void corner_of(const leat__tile_coefs *c, uint32_t b, __m128i *lo, __m128i *hi)
{
    sparse s = sparse_at(c, b);
    *lo = first_group(&s, c->dc[b]);
    *hi = next_group(&s);
}

/* Four blocks of which nothing is outside the corner. */
FAST_INLINE void corner_four(int8_t *dst, size_t stride, const leat__tile_coefs *coefs, uint32_t b,
                             const __m256i quant[2])
{
    static const uint8_t order[4] = {0, 2, 1, 3};
    __m128i lo[4], hi[4];
    V x[2][8];
    for (uint32_t i = 0; i < 4; i++) corner_of(coefs, b + order[i], &lo[i], &hi[i]);
    fast_corner_columns(lo, hi, quant, x[0], x[1]);
    for (int i = 0; i < 2; i++) {
        fast_corner8(x[i]);
        store8(dst + 16 * i, stride, x[i]);
    }
}

/* Two blocks. */
FAST_INLINE void full_pair(const leat__tile_coefs *coefs, uint32_t b, const V q[8], V x[8])
{
    sparse left = sparse_at(coefs, b), right = sparse_at(coefs, b + 1);
    const int groups = (left.mask | right.mask) >> 24 != 0 ? 8 : 3;
    V g[8];
    g[0] = _mm256_set_m128i(first_group(&right, coefs->dc[b + 1]),
                            first_group(&left, coefs->dc[b]));
    for (int i = 1; i < groups; i++)
        g[i] = _mm256_set_m128i(next_group(&right), next_group(&left));
    for (int i = groups; i < 8; i++) g[i] = _mm256_setzero_si256();
    fast_rows_of(g, x);
    for (int i = 0; i < 8; i++) x[i] = _mm256_mullo_epi16(x[i], q[i]);
    fast_block8(x);
}

static void row8(int8_t *dst, size_t stride, const leat__tile_coefs *coefs, uint32_t first,
                 uint32_t count, const uint16_t quant[64])
{
    const __m256i q4[2] = {fast_quant4(quant, 0), fast_quant4(quant, 1)};
    V q[8], x[8];
    quant_rows(quant, q);
    for (uint32_t b = first; b < first + count; b += 4, dst += 32) {
        const uint64_t *const m = coefs->mask + b;
        const uint64_t any = m[0] | m[1] | m[2] | m[3];
        if (any <= 1) {
            flat_four(dst, stride, coefs->dc + b, quant[0]);
        } else if ((any & ~LEAT__TILE_CORNER) == 0) {
            corner_four(dst, stride, coefs, b, q4);
        } else {
            for (uint32_t i = 0; i < 4 && b + i < first + count; i += 2) {
                full_pair(coefs, b + i, q, x);
                store8(dst + 8 * i, stride, x);
            }
        }
    }
}

static void plain8(int8_t *dst, size_t stride, const int16_t *blocks, const uint8_t *last,
                   uint32_t count, const uint16_t quant[64])
{
    V q[8], x[8];
    quant_rows(quant, q);
    for (uint32_t b = 0; b < count; b += 2, dst += 16, blocks += 128) {
        for (int i = 0; i < 8; i++)
            x[i] = _mm256_mullo_epi16(
                _mm256_loadu2_m128i((const __m128i *)(const void *)(blocks + 64 + 8 * i),
                                    (const __m128i *)(const void *)(blocks + 8 * i)),
                q[i]);
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

void leat__idct_fast_avx2(leat__idct_fast_dsp *dsp)
{
    dsp->row[0] = row8;
    dsp->row[1] = row4;
    dsp->plain[0] = plain8;
    dsp->plain[1] = fast_plain4;
    dsp->isa = "avx2";
}
