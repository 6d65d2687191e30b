/* SPDX-License-Identifier: Apache-2.0
 *
 * Tile entropy decoder for AVX2 and BMI2. Sizes are built bottom up by shuffles from a table;
 * the extra bits of eight values are spread by one pdep or, where that is slow (AMD before
 * Zen 3), fetched by shuffles and moved down by multiplications.
 */
#include <immintrin.h>

#include "dsp/tile_front_tmpl.h"
#include "dsp/x86/expand_tables.h"
#include "dsp/x86/tile_variants.h"

static const uint8_t expand_bytes[256][8] __attribute__((aligned(64))) = {
    EXPAND_256(EXPAND_BYTES_OF)};

/* Level l from the level above it: see the portable version. */
TILE_INLINE void spread_level(uint8_t *level, const uint8_t *above, const uint8_t *plane,
                              uint32_t count)
{
    const __m128i one = _mm_set1_epi8(1);
    for (uint32_t i = 0; i < count; i += 8) {
        uint32_t bits = plane[i / 8];
        __m128i from = _mm_loadl_epi64((const __m128i *)(const void *)above);
        __m128i to = _mm_loadl_epi64((const __m128i *)(const void *)expand_bytes[bits]);
        _mm_storel_epi64((__m128i *)(void *)(level + i),
                         _mm_add_epi8(_mm_shuffle_epi8(from, to), one));
        above += _mm_popcnt_u32(bits);
    }
}

/* Sizes of all values, followed by zeros. */
TILE_INLINE const uint8_t *sizes(leat__tile_coefs *c, const tile_planes *p)
{
    uint8_t *above = c->size[0], *level = c->size[1];
    memset(above, 1, p->count[p->planes - 1] + 16);
    for (uint32_t l = p->planes - 1; l-- > 0;) {
        spread_level(level, above, p->plane[l], p->count[l]);
        uint8_t *swap = above;
        above = level;
        level = swap;
    }
    memset(above + p->values, 0, 64);
    return above;
}

/* Eight sizes as bytes of a word: is one of them above 8? */
TILE_INLINE bool any_large(uint64_t sizes8)
{
    return ((sizes8 + UINT64_C(0x7777777777777777)) & UINT64_C(0x8080808080808080)) != 0;
}

static void large_values(int16_t *value, const uint8_t *size, const uint8_t *extra,
                         uint64_t pos)
{
    for (int i = 0; i < 8; i++) {
        value[i] = tile_amplitude(tile_bits_at(extra, pos), size[i]);
        pos += size[i];
    }
}

TILE_INLINE uint64_t sum_bytes(uint64_t v)
{
    return v * UINT64_C(0x0101010101010101) >> 56;
}

/* Numbers of `ones` bits -> signed: the lower half is negative. */
TILE_INLINE __m256i amplitudes(__m256i v, __m256i ones)
{
    __m256i positive = _mm256_cmpgt_epi16(v, _mm256_srli_epi16(ones, 1));
    return _mm256_sub_epi16(v, _mm256_andnot_si256(positive, ones));
}

/* The bits of eight values, one byte each, low bits first. */
TILE_INLINE uint64_t eight_by_pdep(const uint8_t *extra, uint64_t pos, uint64_t ones)
{
    uint64_t bits = tile_bits_at(extra, pos);
    if (__builtin_expect(_mm_popcnt_u64(ones) > 56, 0)) /* the load may lack up to 7 */
        bits |= (uint64_t)extra[(pos >> 3) + 8] << (63 - (pos & 7)) << 1;
    return _pdep_u64(bits, ones);
}

static void values_pdep(int16_t *value, const uint8_t *size, uint32_t n, const uint8_t *extra)
{
    const __m128i ones_of =
        _mm_setr_epi8(0, 1, 3, 7, 15, 31, 63, 127, -1, -1, -1, -1, -1, -1, -1, -1);
    uint64_t pos = 0;
    for (uint32_t i = 0; i < n; i += 16) {
        __m128i s = _mm_loadu_si128((const __m128i *)(const void *)(size + i));
        uint64_t s0 = (uint64_t)_mm_cvtsi128_si64(s), s1 = (uint64_t)_mm_extract_epi64(s, 1);
        uint64_t pos1 = pos + sum_bytes(s0);
        if (__builtin_expect(any_large(s0) || any_large(s1), 0)) {
            large_values(value + i, size + i, extra, pos);
            large_values(value + i + 8, size + i + 8, extra, pos1);
        } else {
            __m128i ones = _mm_shuffle_epi8(ones_of, s);
            uint64_t v0 = eight_by_pdep(extra, pos, (uint64_t)_mm_cvtsi128_si64(ones));
            uint64_t v1 = eight_by_pdep(extra, pos1, (uint64_t)_mm_extract_epi64(ones, 1));
            __m256i v = _mm256_cvtepu8_epi16(_mm_set_epi64x((long long)v1, (long long)v0));
            _mm256_storeu_si256((__m256i *)(void *)(value + i),
                                amplitudes(v, _mm256_cvtepu8_epi16(ones)));
        }
        pos = pos1 + sum_bytes(s1);
    }
}

/* Each lane works on eight values: their bit offsets from a common byte are the running sums
 * of the sizes; a shuffle fetches two bytes per value, a multiplication brings its first bit
 * to bit 7, a shift drops what is below, a mask what is above. */
static void values_shuffle(int16_t *value, const uint8_t *size, uint32_t n,
                           const uint8_t *extra)
{
    const __m256i twice = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7));
    const __m256i ones_of = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 3, 7, 15, 31, 63, 127, -1, -1, -1, -1, -1, -1, -1, -1));
    const __m256i power = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(-128, 64, 32, 16, 8, 4, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0));
    const __m256i next_byte = _mm256_set1_epi16(0x0100), low = _mm256_set1_epi16(0xff);
    const uint64_t each = UINT64_C(0x0101010101010101);
    uint64_t pos = 0;
    for (uint32_t i = 0; i < n; i += 16) {
        uint64_t s0 = leat__load_u64(size + i), s1 = leat__load_u64(size + i + 8);
        uint64_t sum0 = s0 * each, sum1 = s1 * each, pos1 = pos + (sum0 >> 56);
        if (__builtin_expect(any_large(s0) || any_large(s1), 0)) {
            large_values(value + i, size + i, extra, pos);
            large_values(value + i + 8, size + i + 8, extra, pos1);
        } else {
            uint64_t at0 = (sum0 << 8) + (pos & 7) * each, at1 = (sum1 << 8) + (pos1 & 7) * each;
            __m256i at = _mm256_shuffle_epi8(
                _mm256_set_epi64x(0, (long long)at1, 0, (long long)at0), twice);
            __m256i bytes = _mm256_inserti128_si256(
                _mm256_castsi128_si256(
                    _mm_loadu_si128((const __m128i *)(const void *)(extra + (pos >> 3)))),
                _mm_loadu_si128((const __m128i *)(const void *)(extra + (pos1 >> 3))), 1);
            __m256i from = _mm256_add_epi8(
                _mm256_and_si256(_mm256_srli_epi16(at, 3), _mm256_set1_epi8(0x1f)), next_byte);
            __m256i pair = _mm256_shuffle_epi8(bytes, from);
            __m256i up = _mm256_and_si256(
                _mm256_shuffle_epi8(power, _mm256_and_si256(at, _mm256_set1_epi16(7))), low);
            __m256i s = _mm256_cvtepu8_epi16(_mm_set_epi64x((long long)s1, (long long)s0));
            __m256i ones = _mm256_and_si256(_mm256_shuffle_epi8(ones_of, s), low);
            __m256i v = _mm256_and_si256(
                _mm256_srli_epi16(_mm256_mullo_epi16(pair, up), 7), ones);
            _mm256_storeu_si256((__m256i *)(void *)(value + i), amplitudes(v, ones));
        }
        pos = pos1 + (sum1 >> 56);
    }
}

TILE_INLINE leat__tile_damage decode(leat__tile_coefs *c, const uint8_t *in, size_t len,
                                     const leat__tile_shape *shape,
                                     const leat__tile_codes *codes, bool pdep)
{
    tile_planes p;
    leat__tile_damage damage = tile_front(c, in, len, shape, codes, &p);
    if (damage != LEAT__TILE_WHOLE) return damage;
    if (p.values > 0) {
        const uint8_t *size = sizes(c, &p);
        if (pdep) values_pdep(c->value, size, p.values, p.extra);
        else values_shuffle(c->value, size, p.values, p.extra);
    }
    tile_finish(c, shape);
    return LEAT__TILE_WHOLE;
}

TILE_ENTROPY_VARIANT(leat__tile_decode_avx2)
{
    return decode(coefs, in, len, shape, codes, true);
}

TILE_ENTROPY_VARIANT(leat__tile_decode_avx2_shuffle)
{
    return decode(coefs, in, len, shape, codes, false);
}
