/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverse DCT to 4x4, 2x2 and 1x1 for AVX2: four blocks at a time.
 */
#include <immintrin.h>

#include "base/bytes.h"
#include "dsp/idct_small.h"
#include "dsp/x86/expand_tables.h"

#define INLINE static inline __attribute__((always_inline))
#define V __m256i
#define ADD _mm256_add_epi16
#define SUB _mm256_sub_epi16
#define MUL(v, k) _mm256_mulhrs_epi16(v, _mm256_set1_epi16(k))

static const uint8_t expand_words[256][16] __attribute__((aligned(64))) = {EXPAND_256(EXPAND_WORDS_OF)};

/* Transforms the rows x[0] .. x[3] vertically, in place. */
INLINE void pass(V x[4])
{
    const V a0 = MUL(ADD(x[0], x[2]), IDCT_SMALL_C4), a1 = MUL(SUB(x[0], x[2]), IDCT_SMALL_C4);
    const V b0 = ADD(MUL(x[1], IDCT_SMALL_C2), MUL(x[3], IDCT_SMALL_C6));
    const V b1 = SUB(MUL(x[1], IDCT_SMALL_C6), MUL(x[3], IDCT_SMALL_C2));
    x[0] = ADD(a0, b0);
    x[3] = SUB(a0, b0);
    x[1] = ADD(a1, b1);
    x[2] = SUB(a1, b1);
}

INLINE void turn(V x[4])
{
    const V a = _mm256_unpacklo_epi16(x[0], x[1]), b = _mm256_unpackhi_epi16(x[0], x[1]);
    const V c = _mm256_unpacklo_epi16(x[2], x[3]), d = _mm256_unpackhi_epi16(x[2], x[3]);
    const V e = _mm256_unpacklo_epi32(a, c), f = _mm256_unpackhi_epi32(a, c);
    const V g = _mm256_unpacklo_epi32(b, d), h = _mm256_unpackhi_epi32(b, d);
    x[0] = _mm256_unpacklo_epi64(e, g);
    x[1] = _mm256_unpackhi_epi64(e, g);
    x[2] = _mm256_unpacklo_epi64(f, h);
    x[3] = _mm256_unpackhi_epi64(f, h);
}

INLINE void store_two(uint8_t *dst, size_t stride, V rows)
{
    const V apart = _mm256_permute4x64_epi64(rows, 0xd8);
    _mm_storeu_si128((__m128i *)(void *)dst, _mm256_castsi256_si128(apart));
    _mm_storeu_si128((__m128i *)(void *)(dst + stride), _mm256_extracti128_si256(apart, 1));
}

/* Transforms four blocks; top and bottom are their rows 0 and 1, and rows 2 and 3, as stored. */
INLINE void four_blocks(uint8_t *dst, size_t stride, const __m128i top[4], const __m128i bottom[4],
                        const V quant[2])
{
    const V order =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 8, 4, 12, 1, 9, 5, 13, 2, 10, 6, 14, 3, 11, 7, 15));
    V x[4];
    for (int i = 0; i < 2; i++) {
        const __m128i *const from = i == 0 ? top : bottom;
        const V a = _mm256_mullo_epi16(_mm256_set_m128i(from[2], from[0]), quant[i]);
        const V b = _mm256_mullo_epi16(_mm256_set_m128i(from[3], from[1]), quant[i]);
        x[2 * i] = _mm256_unpacklo_epi64(a, b);
        x[2 * i + 1] = _mm256_unpackhi_epi64(a, b);
    }
    pass(x);
    turn(x);
    pass(x);
    for (int i = 0; i < 4; i++) x[i] = MUL(x[i], 1 << (15 - IDCT_SMALL_SHIFT));
    /* interleaves columns 0, 1 and 2, 3 row by row, then all four */
    const V left = _mm256_shuffle_epi8(_mm256_packs_epi16(x[0], x[1]), order);
    const V right = _mm256_shuffle_epi8(_mm256_packs_epi16(x[2], x[3]), order);
    const V middle = _mm256_set1_epi8((char)0x80);
    store_two(dst, stride, _mm256_xor_si256(_mm256_unpacklo_epi16(left, right), middle));
    store_two(dst + 2 * stride, stride, _mm256_xor_si256(_mm256_unpackhi_epi16(left, right), middle));
}

/* Loads four columns of two rows, which are 8 apart. */
INLINE __m128i two_rows(const void *at)
{
    const int16_t *const row = at;
    return _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)(const void *)row),
                              _mm_loadl_epi64((const __m128i *)(const void *)(row + 8)));
}

INLINE void quant_of(const uint16_t quant[64], V q[2])
{
    for (int i = 0; i < 2; i++)
        q[i] = _mm256_broadcastsi128_si256(_mm_slli_epi16(two_rows(quant + 16 * i), IDCT_SMALL_BITS));
}

/* Expands one of the first two groups of a sparse block, which are its corner. */
INLINE __m128i group_of(const int16_t *value, uint32_t bits)
{
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)value),
                            _mm_load_si128((const __m128i *)(const void *)expand_words[bits]));
}

static void area4(uint8_t *dst, size_t stride, const leat__tile_coefs *coefs, const leat__idct_area *area,
                  const uint16_t quant[64])
{
    V q[2];
    quant_of(quant, q);
    for (uint32_t y = 0; y < area->high; y++, dst += 4 * stride)
        for (uint32_t x = 0; x < area->wide; x += 4) {
            const uint32_t b = area->first + y * area->pitch + x;
            __m128i top[4], bottom[4];
            for (uint32_t i = 0; i < 4; i++) {
                const uint32_t mask = (uint32_t)coefs->mask[b + i];
                const int16_t *const value = coefs->value + coefs->first[b + i];
                top[i] = _mm_insert_epi16(group_of(value, mask & 255), coefs->dc[b + i], 0);
                bottom[i] = group_of(value + _mm_popcnt_u32(mask & 255), mask >> 8 & 255);
            }
            four_blocks(dst + 4 * x, stride, top, bottom, q);
        }
}

/* Transforms two rows of two columns of four blocks, as 32 bits each. */
INLINE void two_by_two(uint8_t *dst, size_t stride, __m128i top, __m128i bottom)
{
    const __m128i c4 = _mm_set1_epi16(IDCT_SMALL_C4);
    const __m128i level = _mm_set1_epi16(1 << (15 - IDCT_SMALL_SHIFT));
    const __m128i turns = _mm_set1_epi32((int)0xffff0001); /* 1, -1 */
    __m128i row[2] = {_mm_mulhrs_epi16(_mm_add_epi16(top, bottom), c4),
                      _mm_mulhrs_epi16(_mm_sub_epi16(top, bottom), c4)};
    for (int i = 0; i < 2; i++) {
        const __m128i swapped = _mm_or_si128(_mm_slli_epi32(row[i], 16), _mm_srli_epi32(row[i], 16));
        row[i] = _mm_mulhrs_epi16(_mm_add_epi16(swapped, _mm_sign_epi16(row[i], turns)), c4);
        row[i] = _mm_mulhrs_epi16(row[i], level);
    }
    const __m128i both = _mm_xor_si128(_mm_packs_epi16(row[0], row[1]), _mm_set1_epi8((char)0x80));
    _mm_storel_epi64((__m128i *)(void *)dst, both);
    _mm_storeh_pd((double *)(void *)(dst + stride), _mm_castsi128_pd(both));
}

static void area2(uint8_t *dst, size_t stride, const leat__tile_coefs *coefs, const leat__idct_area *area,
                  const uint16_t quant[64])
{
    const __m128i q0 = _mm_set1_epi32((int)(quant[0] | (uint32_t)quant[1] << 16));
    const __m128i q1 = _mm_set1_epi32((int)(quant[8] | (uint32_t)quant[9] << 16));
    for (uint32_t y = 0; y < area->high; y++, dst += 2 * stride)
        for (uint32_t x = 0; x < area->wide; x += 4) {
            const uint32_t b = area->first + y * area->pitch + x;
            __m128i g[4];
            for (uint32_t i = 0; i < 4; i++)
                g[i] = _mm_insert_epi16(
                    group_of(coefs->value + coefs->first[b + i], (uint32_t)coefs->mask[b + i] & 255),
                    coefs->dc[b + i], 0);
            const __m128i top =
                _mm_unpacklo_epi64(_mm_unpacklo_epi32(g[0], g[1]), _mm_unpacklo_epi32(g[2], g[3]));
            const __m128i bottom =
                _mm_unpacklo_epi64(_mm_unpackhi_epi32(g[0], g[1]), _mm_unpackhi_epi32(g[2], g[3]));
            two_by_two(dst + 2 * x, stride, _mm_slli_epi16(_mm_mullo_epi16(top, q0), IDCT_SMALL_BITS),
                       _mm_slli_epi16(_mm_mullo_epi16(bottom, q1), IDCT_SMALL_BITS));
        }
}

/* Transforms four DC coefficients, dequantised by `quant`. */
INLINE void four_means(uint8_t *dst, __m128i means, __m128i quant)
{
    const __m128i c4 = _mm_set1_epi16(IDCT_SMALL_C4);
    const __m128i level = _mm_set1_epi16(1 << (15 - IDCT_SMALL_SHIFT));
    __m128i v = _mm_mullo_epi16(means, quant);
    v = _mm_mulhrs_epi16(_mm_mulhrs_epi16(_mm_mulhrs_epi16(v, c4), c4), level);
    v = _mm_xor_si128(_mm_packs_epi16(v, v), _mm_set1_epi8((char)0x80));
    leat__store_u32(dst, (uint32_t)_mm_cvtsi128_si32(v));
}

static void area1(uint8_t *dst, size_t stride, const leat__tile_coefs *coefs, const leat__idct_area *area,
                  const uint16_t quant[64])
{
    const __m128i q = _mm_set1_epi16((short)(quant[0] << IDCT_SMALL_BITS));
    for (uint32_t y = 0; y < area->high; y++, dst += stride)
        for (uint32_t x = 0; x < area->wide; x += 4) {
            const int16_t *const dc = coefs->dc + area->first + y * area->pitch + x;
            four_means(dst + x, _mm_loadl_epi64((const __m128i *)(const void *)dc), q);
        }
}

static void plain4(uint8_t *dst, size_t stride, const int16_t *blocks, const uint8_t *last, uint32_t count,
                   const uint16_t quant[64])
{
    V q[2];
    quant_of(quant, q);
    for (uint32_t b = 0; b < count; b += 4, dst += 16, blocks += 256) {
        __m128i top[4], bottom[4];
        for (int i = 0; i < 4; i++) {
            top[i] = two_rows(blocks + 64 * i);
            bottom[i] = two_rows(blocks + 64 * i + 16);
        }
        four_blocks(dst, stride, top, bottom, q);
    }
}

/* Loads columns 0 and 1 of a row of four blocks. */
INLINE __m128i pairs_of(const int16_t *row)
{
    __m128i pair[4];
    for (int i = 0; i < 4; i++) pair[i] = _mm_cvtsi32_si128((int)leat__load_u32(row + 64 * i));
    return _mm_unpacklo_epi64(_mm_unpacklo_epi32(pair[0], pair[1]), _mm_unpacklo_epi32(pair[2], pair[3]));
}

static void plain2(uint8_t *dst, size_t stride, const int16_t *blocks, const uint8_t *last, uint32_t count,
                   const uint16_t quant[64])
{
    const __m128i q0 = _mm_set1_epi32((int)(quant[0] | (uint32_t)quant[1] << 16));
    const __m128i q1 = _mm_set1_epi32((int)(quant[8] | (uint32_t)quant[9] << 16));
    for (uint32_t b = 0; b < count; b += 4, dst += 8, blocks += 256)
        two_by_two(dst, stride, _mm_slli_epi16(_mm_mullo_epi16(pairs_of(blocks), q0), IDCT_SMALL_BITS),
                   _mm_slli_epi16(_mm_mullo_epi16(pairs_of(blocks + 8), q1), IDCT_SMALL_BITS));
}

static void plain1(uint8_t *dst, size_t stride, const int16_t *blocks, const uint8_t *last, uint32_t count,
                   const uint16_t quant[64])
{
    const __m128i q = _mm_set1_epi16((short)(quant[0] << IDCT_SMALL_BITS));
    for (uint32_t b = 0; b < count; b += 4, dst += 4, blocks += 256)
        four_means(dst, _mm_setr_epi16(blocks[0], blocks[64], blocks[128], blocks[192], 0, 0, 0, 0), q);
}

void leat__idct_small_avx2(leat__idct_small_dsp *dsp)
{
    dsp->area[1] = area4;
    dsp->area[2] = area2;
    dsp->area[3] = area1;
    dsp->plain[1] = plain4;
    dsp->plain[2] = plain2;
    dsp->plain[3] = plain1;
    dsp->isa = "avx2";
}
