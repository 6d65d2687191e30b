/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing kernels for AVX-512 with VBMI2 and BITALG: permutes put blocks in order, and vpcompress collects
 * the nonzero coefficients. (Always to a register first: with a memory operand it is microcode on Zen 4.)
 */
#include <immintrin.h>

#include "dsp/tile_pack_tmpl.h"
#include "dsp/x86/load512.h"
#include "dsp/x86/pack_pext.h"
#include "dsp/x86/tile_variants.h"

PACK_INLINE uint64_t two_masks(__mmask32 low, __mmask32 high)
{
    return (uint64_t)high << 32 | low;
}

PACK_INLINE uint64_t low_ones(uint32_t n)
{
    return _bzhi_u64(~UINT64_C(0), n);
}

/* ---- splitting blocks into parts ---- */

PACK_INLINE __m512i magnitudes(__m512i v)
{
    return _mm512_xor_si512(v, _mm512_srai_epi16(v, 15));
}

PACK_INLINE uint32_t all_bits(__m512i v)
{
    uint32_t all = (uint32_t)_mm512_reduce_or_epi32(v);
    return (all | all >> 16) & 0xffff;
}

/* The half rows in a block's two halves, in tile order. */
#define FIRST_HALF _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 8, 10)
#define SECOND_HALF _mm512_setr_epi64(5, 7, 12, 14, 9, 11, 13, 15)

TILE_TAKE_VARIANT(leat__tile_take_avx512)
{
    const __m512i first_half = FIRST_HALF, second_half = SECOND_HALF;
    __m512i all = _mm512_setzero_si512();
    int16_t *value = parts->value + parts->values; /* kept in a register from block to block */
    for (uint32_t i = 0; i < count; i++, blocks += 64) {
        __m512i a = _mm512_loadu_si512(blocks), b = _mm512_loadu_si512(blocks + 32);
        __m512i low = _mm512_permutex2var_epi64(a, first_half, b);
        __m512i high = _mm512_permutex2var_epi64(a, second_half, b);
        all = _mm512_or_si512(all, magnitudes(_mm512_maskz_mov_epi16(~1u, low)));
        all = _mm512_or_si512(all, magnitudes(high));
        low = _mm512_mask_set1_epi16(low, 1, (int16_t)(blocks[0] - guess));
        guess = blocks[0];
        __mmask32 in_low = _mm512_test_epi16_mask(low, low);
        __mmask32 in_high = _mm512_test_epi16_mask(high, high);
        _mm512_storeu_si512(value, _mm512_maskz_compress_epi16(in_low, low));
        value += _mm_popcnt_u32(in_low);
        _mm512_storeu_si512(value, _mm512_maskz_compress_epi16(in_high, high));
        value += _mm_popcnt_u32(in_high);
        pack_note(parts, first + i, two_masks(in_low, in_high));
    }
    parts->values = (uint32_t)(value - parts->value);
    return all_bits(all);
}

/* ---- values ---- */

/* Returns as many ones as each value has bits. */
PACK_INLINE __m512i ones_of(__m512i v)
{
    v = _mm512_abs_epi16(v);
    v = _mm512_or_si512(v, _mm512_srli_epi16(v, 1));
    v = _mm512_or_si512(v, _mm512_srli_epi16(v, 2));
    v = _mm512_or_si512(v, _mm512_srli_epi16(v, 4));
    return _mm512_or_si512(v, _mm512_srli_epi16(v, 8));
}

PACK_INLINE void find_sizes(uint8_t *size, const int16_t *value, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 32) {
        __m512i sizes = _mm512_popcnt_epi16(ones_of(_mm512_loadu_si512(value + i)));
        _mm256_storeu_si256((__m256i *)(void *)(size + i), _mm512_cvtepi16_epi8(sizes));
    }
}

/* Compacts the values that are too large, in place: a write never passes the read position. */
PACK_INLINE uint32_t put_plane(uint8_t *at, uint8_t *left, uint32_t n, uint32_t l)
{
    const __m512i limit = _mm512_set1_epi8((char)l);
    uint32_t next = 0;
    for (uint32_t i = 0; i < n; i += 64) {
        __m512i sizes = load512(left + i);
        uint64_t larger = _mm512_cmpgt_epu8_mask(sizes, limit);
        if (n - i < 64) larger &= low_ones(n - i);
        leat__store_u64(at + i / 8, larger);
        _mm512_storeu_si512(left + next, _mm512_maskz_compress_epi8(larger, sizes));
        next += (uint32_t)_mm_popcnt_u64(larger);
    }
    return next;
}

/* Some bits in each lane, lowest first, and their number. */
typedef struct lane_bits {
    __m512i value, n;
} lane_bits;

/* Joins the upper half of each lane to its lower half, so that neighbours become one. */
PACK_INLINE lane_bits join32(lane_bits b)
{
    const __m512i low = _mm512_set1_epi32(0xffff);
    __m512i n = _mm512_and_si512(b.n, low);
    __m512i high = _mm512_sllv_epi32(_mm512_srli_epi32(b.value, 16), n);
    return (lane_bits){_mm512_or_si512(_mm512_and_si512(b.value, low), high),
                       _mm512_add_epi32(n, _mm512_srli_epi32(b.n, 16))};
}

PACK_INLINE lane_bits join64(lane_bits b)
{
    const __m512i low = _mm512_set1_epi64(0xffffffff);
    __m512i n = _mm512_and_si512(b.n, low);
    __m512i high = _mm512_sllv_epi64(_mm512_srli_epi64(b.value, 32), n);
    return (lane_bits){_mm512_or_si512(_mm512_and_si512(b.value, low), high),
                       _mm512_add_epi64(n, _mm512_srli_epi64(b.n, 32))};
}

/* Appends each lane of `next` to that of b; correct up to 64 bits. */
PACK_INLINE lane_bits join(lane_bits b, lane_bits next)
{
    return (lane_bits){_mm512_or_si512(b.value, _mm512_sllv_epi64(next.value, b.n)),
                       _mm512_add_epi64(b.n, next.n)};
}

PACK_INLINE void put_eights(pack_bits *b, lane_bits eight)
{
    uint64_t value[8], n[8];
    _mm512_storeu_si512(value, eight.value);
    _mm512_storeu_si512(n, eight.n);
    for (uint32_t i = 0; i < 8; i += 2) {
        pack_put(b, value[i], (uint32_t)n[i]);
        pack_spill(b);
    }
}

PACK_INLINE void put_fours(pack_bits *b, lane_bits four)
{
    uint64_t value[8], n[8];
    _mm512_storeu_si512(value, four.value);
    _mm512_storeu_si512(n, four.n);
    for (uint32_t i = 0; i < 8; i++) pack_four(b, (pext_bits){value[i], (uint32_t)n[i]});
}

/* Writes the extra bits of 32 values. Eight at a time nearly always fit into one step of the dependency chain
 * from byte to byte. */
PACK_INLINE void put_extra(pack_bits *b, __m512i v)
{
    const __mmask8 even = 0x55;
    __m512i ones = ones_of(v), less = _mm512_add_epi16(v, _mm512_srai_epi16(v, 15));
    lane_bits four = join64(join32((lane_bits){_mm512_and_si512(less, ones), _mm512_popcnt_epi16(ones)}));
    lane_bits eight = join(four, (lane_bits){_mm512_unpackhi_epi64(four.value, four.value),
                                             _mm512_unpackhi_epi64(four.n, four.n)});
    if (__builtin_expect(_mm512_mask_cmpgt_epu64_mask(even, eight.n, _mm512_set1_epi64(56)), 0))
        put_fours(b, four);
    else put_eights(b, eight);
}

TILE_PUT_VALUES_VARIANT(leat__tile_put_values_avx512)
{
    const uint32_t n = parts->values;
    find_sizes(parts->size, parts->value, n);
    for (uint32_t l = 1, left = n; left > 0; l++) {
        uint32_t next = put_plane(at, parts->size, left, l);
        at += (left + 7) / 8;
        left = next;
    }
    pack_bits b = {.at = at};
    uint32_t i = 0;
    for (; i + 32 <= n; i += 32) put_extra(&b, load512(parts->value + i));
    if (i < n) {
        __mmask32 valid = (__mmask32)low_ones(n - i);
        put_extra(&b, _mm512_maskz_loadu_epi16(valid, parts->value + i));
    }
    return pack_flush(&b);
}

/* ---- restoring blocks ---- */

/* Expands the values of a block to the positions of their bits. */
PACK_INLINE void expand(__m512i *low, __m512i *high, const leat__tile_coefs *c, uint32_t b)
{
    uint32_t in_low = (uint32_t)c->mask[b], in_high = (uint32_t)(c->mask[b] >> 32);
    const int16_t *value = c->value + c->first[b];
    *low = _mm512_maskz_expand_epi16(in_low, load512(value));
    *high = _mm512_maskz_expand_epi16(in_high, load512(value + _mm_popcnt_u32(in_low)));
}

TILE_SAME_VARIANT(leat__tile_same_avx512)
{
    const __m512i first_half = FIRST_HALF, second_half = SECOND_HALF;
    __m512i differ = _mm512_setzero_si512();
    for (uint32_t i = 0; i < count; i++, blocks += 64) {
        __m512i a = _mm512_loadu_si512(blocks), b = _mm512_loadu_si512(blocks + 32), low, high;
        expand(&low, &high, coefs, first + i);
        low = _mm512_mask_set1_epi16(low, 1, coefs->dc[first + i]);
        low = _mm512_xor_si512(low, _mm512_permutex2var_epi64(a, first_half, b));
        high = _mm512_xor_si512(high, _mm512_permutex2var_epi64(a, second_half, b));
        differ = _mm512_or_si512(differ, _mm512_or_si512(low, high));
    }
    return _mm512_test_epi64_mask(differ, differ) == 0;
}

/* ---- restoring scan order ---- */

/* Maps a position in a scan to a bit of a tile's bitmap. */
static const uint16_t from_bit[64] __attribute__((aligned(64))) = {
    0,  1,  4,  8,  5,  2,  3,  6,  9,  12, 24, 13, 10, 7,  16, 17, 20, 11, 14, 25, 28, 40,
    29, 26, 15, 32, 21, 18, 19, 22, 33, 36, 27, 30, 41, 44, 45, 42, 31, 48, 37, 34, 23, 35,
    38, 49, 52, 43, 46, 47, 56, 53, 50, 39, 51, 54, 57, 60, 61, 58, 55, 59, 62, 63,
};

/* Returns the coefficients of a block in zigzag order, including its DC difference. */
PACK_INLINE void zigzag(__m512i out[2], const leat__tile_coefs *c, uint32_t b)
{
    __m512i low, high;
    expand(&low, &high, c, b);
    out[0] = _mm512_permutex2var_epi16(low, _mm512_load_si512(from_bit), high);
    out[1] = _mm512_permutex2var_epi16(low, _mm512_load_si512(from_bit + 32), high);
}

PACK_INLINE __m512i low_bytes(const __m512i v[2])
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi16_epi8(v[0])), _mm512_cvtepi16_epi8(v[1]),
                              1);
}

/* Returns the distances from the previous AC coefficient (for the first: from the DC), one byte each. */
PACK_INLINE __m512i distances(uint64_t ac)
{
    static const uint8_t before[64] __attribute__((aligned(64))) = {
        0,  0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
        21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42,
        43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62};
    const uint64_t all_ac = ~UINT64_C(1);
    const __m512i previous = _mm512_load_si512(before);
    const __m512i places = _mm512_mask_add_epi8(previous, all_ac, previous, _mm512_set1_epi8(1));
    __m512i place = _mm512_maskz_compress_epi8(ac, places);
    return _mm512_sub_epi8(place, _mm512_maskz_permutexvar_epi8(all_ac, previous, place));
}

/* Returns the low bits of the values; of a negative one, minus one. */
PACK_INLINE __m512i low_bits(__m512i v, __m512i ones)
{
    return _mm512_and_si512(_mm512_add_epi16(v, _mm512_srai_epi16(v, 15)), ones);
}

PACK_INLINE void store_symbols(leat__scan_block *out, uint64_t ac, const __m512i v[2], __m512i distance)
{
    __m512i ones[2] = {ones_of(v[0]), ones_of(v[1])};
    __m512i bits[2] = {_mm512_popcnt_epi16(ones[0]), _mm512_popcnt_epi16(ones[1])};
    __m512i size = _mm512_maskz_compress_epi8(ac, low_bytes(bits));
    __m512i run = _mm512_slli_epi16(_mm512_sub_epi8(distance, _mm512_set1_epi8(1)), 4);
    __m512i high4 = _mm512_set1_epi8((char)0xf0);
    _mm512_storeu_si512(out->symbol, _mm512_or_si512(_mm512_and_si512(run, high4), size));
    uint32_t n = (uint32_t)_mm_popcnt_u64(ac), low = (uint32_t)_mm_popcnt_u32((uint32_t)ac);
    _mm512_storeu_si512(out->extra, _mm512_maskz_compress_epi16((__mmask32)ac, low_bits(v[0], ones[0])));
    _mm512_storeu_si512(out->extra + low,
                        _mm512_maskz_compress_epi16((__mmask32)(ac >> 32), low_bits(v[1], ones[1])));
    out->symbol[n] = LEAT__SCAN_END; /* n is at most 63 */
    out->extra[n] = 0;
    n += ac >> 63 == 0;
    out->symbol[n] = LEAT__SCAN_NOTHING;
    out->extra[n] = 0;
    out->symbols = (uint8_t)n;
}

PACK_INLINE void order_one(leat__scan_block *out, const leat__tile_coefs *c, uint32_t b)
{
    __m512i v[2];
    zigzag(v, c, b);
    uint64_t ac =
        two_masks(_mm512_test_epi16_mask(v[0], v[0]), _mm512_test_epi16_mask(v[1], v[1])) & ~UINT64_C(1);
    __m512i distance = distances(ac);
    out->ac = ac;
    out->dc = c->dc[b];
    out->symbols = 0;
    out->plain = _mm512_mask_cmpgt_epu8_mask(low_ones((uint32_t)_mm_popcnt_u64(ac)), distance,
                                             _mm512_set1_epi8(LEAT__SCAN_RUN_MAX + 1)) != 0;
    if (__builtin_expect(out->plain, 0)) {
        _mm512_storeu_si512(out->at, v[0]);
        _mm512_storeu_si512(out->at + 32, v[1]);
    } else {
        store_symbols(out, ac, v, distance);
    }
}

TILE_ORDER_VARIANT(leat__tile_order_avx512)
{
    for (uint32_t i = 0; i < count; i++) order_one(out + i, coefs, first + i);
}
