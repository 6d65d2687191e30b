/* SPDX-License-Identifier: Apache-2.0
 *
 * Tile entropy decoder for AVX2 and BMI2. Sizes are built bottom-up by shuffles from a table. The extra
 * bits of eight values are distributed by one pdep or, where that is slow (AMD before Zen 3), fetched by
 * shuffles and shifted by multiplications.
 */
#include <immintrin.h>

#include "dsp/tile_front_tmpl.h"
#include "dsp/x86/expand_tables.h"
#include "dsp/x86/tile_variants.h"

static const uint8_t expand_bytes[256][8] __attribute__((aligned(64))) = {EXPAND_256(EXPAND_BYTES_OF)};

TILE_INLINE __m128i two_halves(const void *low, const void *high)
{
    return _mm_castpd_si128(
        _mm_loadh_pd(_mm_castsi128_pd(_mm_loadl_epi64((const __m128i *)low)), (const double *)high));
}

/* Computes level l from the level above it, sixteen values at a time: see the portable version. */
TILE_INLINE void spread_level(uint8_t *level, const uint8_t *above, const uint8_t *plane, uint32_t count)
{
    const __m128i minus_one = _mm_set1_epi8(-1);
    const __m128i high_half = _mm_set_epi64x(INT64_C(0x0808080808080808), 0);
    for (const uint8_t *const end = level + count; level < end; level += 16, plane += 2) {
        const size_t low = plane[0], high = plane[1];
        const uint8_t *const middle = above + _mm_popcnt_u64(low);
        __m128i to = _mm_add_epi8(two_halves(expand_bytes[low], expand_bytes[high]), high_half);
        __m128i from = _mm_shuffle_epi8(two_halves(above, middle), to);
        _mm_storeu_si128((__m128i *)(void *)level, _mm_sub_epi8(from, minus_one));
        above = middle + _mm_popcnt_u64(high);
    }
}

/* Returns the sizes of all values, followed by zeros. */
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

/* Converts numbers of `ones` bits to signed ones: the lower half is negative. */
TILE_INLINE __m256i amplitudes(__m256i v, __m256i ones)
{
    __m256i positive = _mm256_cmpgt_epi16(v, _mm256_srli_epi16(ones, 1));
    return _mm256_sub_epi16(v, _mm256_andnot_si256(positive, ones));
}

/* Decodes sixteen values of any size, which is rare. Returns where their bits end. */
static __attribute__((noinline, cold)) uint64_t large_values(int16_t *value, const uint8_t *size,
                                                             const uint8_t *extra, uint64_t pos)
{
    for (int i = 0; i < 16; i++) {
        value[i] = tile_amplitude(tile_bits_at(extra, pos), size[i]);
        pos += size[i];
    }
    return pos;
}

/* Returns one bit per byte of s that is above 8. */
TILE_INLINE int above_8(__m128i s)
{
    return _mm_movemask_epi8(_mm_add_epi8(s, _mm_set1_epi8(119)));
}

/* Like large_values, by pdep, four at a time. */
static __attribute__((noinline, cold)) uint64_t large_values_pdep(int16_t *value, const uint8_t *size,
                                                                  const uint8_t *extra, uint64_t pos)
{
    const __m128i low_ones = _mm_setr_epi8(0, 1, 3, 7, 15, 31, 63, 127, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i high_ones = _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 7, 15, 31, 63, 127);
    const __m128i s = _mm_loadu_si128((const __m128i *)(const void *)size);
    const __m128i low = _mm_shuffle_epi8(low_ones, s), high = _mm_shuffle_epi8(high_ones, s);
    const __m256i ones = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_unpacklo_epi8(low, high)),
                                                 _mm_unpackhi_epi8(low, high), 1);
    _Alignas(32) uint64_t mask[4], bits[4];
    _mm256_store_si256((__m256i *)(void *)mask, ones);
    for (int i = 0; i < 4; i++) {
        const uint64_t byte = extra[(pos >> 3) + 8]; /* a load may lack up to 7 bits */
        bits[i] = _pdep_u64(tile_bits_at(extra, pos) | byte << (63 - (pos & 7)) << 1, mask[i]);
        pos += (uint64_t)_mm_popcnt_u64(mask[i]);
    }
    const __m256i v = _mm256_load_si256((const __m256i *)(const void *)bits);
    _mm256_storeu_si256((__m256i *)(void *)value, amplitudes(v, ones));
    return pos;
}

static __attribute__((noinline)) void values_pdep(int16_t *value, const uint8_t *size, uint32_t n,
                                                  const uint8_t *extra)
{
    const __m128i ones_of = _mm_setr_epi8(0, 1, 3, 7, 15, 31, 63, 127, -1, -1, -1, -1, -1, -1, -1, -1);
    uint64_t pos = 0;
    for (const uint8_t *const end = size + n; size < end; size += 16, value += 16) {
        const __m128i s = _mm_loadu_si128((const __m128i *)(const void *)size);
        const __m128i ones = _mm_shuffle_epi8(ones_of, s);
        const uint64_t ones0 = (uint64_t)_mm_cvtsi128_si64(ones);
        const uint64_t ones1 = (uint64_t)_mm_extract_epi64(ones, 1);
        const int64_t n0 = _mm_popcnt_u64(ones0), n1 = _mm_popcnt_u64(ones1);
        const uint64_t pos1 = pos + (uint64_t)n0;
        /* a load gives 57 bits or more */
        if (__builtin_expect(above_8(s) != 0 || n0 > 57 || n1 > 57, 0)) {
            pos = large_values_pdep(value, size, extra, pos);
            continue;
        }
        const uint64_t v0 = _pdep_u64(tile_bits_at(extra, pos), ones0);
        const uint64_t v1 = _pdep_u64(tile_bits_at(extra, pos1), ones1);
        __m256i v = _mm256_cvtepu8_epi16(_mm_set_epi64x((long long)v1, (long long)v0));
        _mm256_storeu_si256((__m256i *)(void *)value, amplitudes(v, _mm256_cvtepu8_epi16(ones)));
        pos = pos1 + (uint64_t)n1;
    }
}

/* Each lane processes eight values. Their bit offsets from a common byte are the running sums of the sizes. A
 * shuffle fetches two bytes per value, a multiplication moves its first bit to bit 7, a shift drops the bits
 * below, a mask those above. */
static void values_shuffle(int16_t *value, const uint8_t *size, uint32_t n, const uint8_t *extra)
{
    const __m256i twice =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7));
    const __m256i ones_of = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 3, 7, 15, 31, 63, 127, -1, -1, -1, -1, -1, -1, -1, -1));
    const __m256i power =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(-128, 64, 32, 16, 8, 4, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0));
    const __m256i next_byte = _mm256_set1_epi16(0x0100), low = _mm256_set1_epi16(0xff);
    const uint64_t each = UINT64_C(0x0101010101010101);
    uint64_t pos = 0;
    for (uint32_t i = 0; i < n; i += 16) {
        uint64_t s0 = leat__load_u64(size + i), s1 = leat__load_u64(size + i + 8);
        uint64_t sum0 = s0 * each, sum1 = s1 * each, pos1 = pos + (sum0 >> 56);
        const __m128i both = _mm_loadu_si128((const __m128i *)(const void *)(size + i));
        if (__builtin_expect(above_8(both) != 0, 0)) {
            pos = large_values(value + i, size + i, extra, pos);
            continue;
        }
        uint64_t at0 = (sum0 << 8) + (pos & 7) * each, at1 = (sum1 << 8) + (pos1 & 7) * each;
        __m256i at = _mm256_shuffle_epi8(_mm256_set_epi64x(0, (long long)at1, 0, (long long)at0), twice);
        __m256i bytes = _mm256_inserti128_si256(
            _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(extra + (pos >> 3)))),
            _mm_loadu_si128((const __m128i *)(const void *)(extra + (pos1 >> 3))), 1);
        __m256i from =
            _mm256_add_epi8(_mm256_and_si256(_mm256_srli_epi16(at, 3), _mm256_set1_epi8(0x1f)), next_byte);
        __m256i pair = _mm256_shuffle_epi8(bytes, from);
        __m256i up =
            _mm256_and_si256(_mm256_shuffle_epi8(power, _mm256_and_si256(at, _mm256_set1_epi16(7))), low);
        __m256i s = _mm256_cvtepu8_epi16(_mm_set_epi64x((long long)s1, (long long)s0));
        __m256i ones = _mm256_and_si256(_mm256_shuffle_epi8(ones_of, s), low);
        __m256i v = _mm256_and_si256(_mm256_srli_epi16(_mm256_mullo_epi16(pair, up), 7), ones);
        _mm256_storeu_si256((__m256i *)(void *)(value + i), amplitudes(v, ones));
        pos = pos1 + (sum1 >> 56);
    }
}

TILE_INLINE leat__tile_damage decode(leat__tile_coefs *c, const uint8_t *in, size_t len,
                                     const leat__tile_shape *shape, const leat__tile_codes *codes, bool pdep)
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
