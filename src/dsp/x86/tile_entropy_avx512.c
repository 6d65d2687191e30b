/* SPDX-License-Identifier: Apache-2.0
 *
 * Tile entropy decoder for AVX-512 with VBMI and VBMI2: sizes by vpexpandb, extra bits of 64
 * values at once by vpermb (to eight values per lane of 64 bits) and vpmultishiftqb.
 */
#include <immintrin.h>

#include "dsp/tile_front_tmpl.h"
#include "dsp/x86/load512.h"
#include "dsp/x86/tile_variants.h"

/* All levels but the lowest, bottom up: see the portable version. */
TILE_INLINE const uint8_t *upper_sizes(leat__tile_coefs *c, const tile_planes *p)
{
    const __m512i one = _mm512_set1_epi8(1);
    uint8_t *above = c->size[0], *level = c->size[1];
    memset(above, 1, p->count[p->planes - 1] + 64);
    for (uint32_t l = p->planes - 1; l-- > 1;) {
        const uint8_t *from = above;
        for (uint32_t i = 0; i < p->count[l]; i += 64) {
            uint64_t bits = leat__load_u64(p->plane[l] + i / 8);
            __m512i s = _mm512_maskz_expand_epi8(bits, load512(from));
            _mm512_storeu_si512(level + i, _mm512_add_epi8(s, one));
            from += _mm_popcnt_u64(bits);
        }
        uint8_t *swap = above;
        above = level;
        level = swap;
    }
    return above;
}

/* Sums of the bytes of each 64-bit lane up to and with each byte. */
TILE_INLINE __m512i running_sums(__m512i v)
{
    v = _mm512_add_epi8(v, _mm512_slli_epi64(v, 8));
    v = _mm512_add_epi8(v, _mm512_slli_epi64(v, 16));
    return _mm512_add_epi8(v, _mm512_slli_epi64(v, 32));
}

/* The same over the lanes of 64 bits. */
TILE_INLINE __m512i running_lanes(__m512i v)
{
    const __m512i zero = _mm512_setzero_si512();
    v = _mm512_add_epi64(v, _mm512_alignr_epi64(v, zero, 7));
    v = _mm512_add_epi64(v, _mm512_alignr_epi64(v, zero, 6));
    return _mm512_add_epi64(v, _mm512_alignr_epi64(v, zero, 4));
}

/* Numbers of `ones` bits -> signed: the lower half is negative. */
TILE_INLINE __m512i amplitudes(__m512i v, __m512i ones)
{
    __mmask32 negative = _mm512_cmple_epu16_mask(v, _mm512_srli_epi16(ones, 1));
    return _mm512_mask_sub_epi16(v, negative, v, ones);
}

TILE_INLINE __m512i low_words(__m512i bytes)
{
    return _mm512_cvtepu8_epi16(_mm512_castsi512_si256(bytes));
}

TILE_INLINE __m512i high_words(__m512i bytes)
{
    return _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(bytes, 1));
}

TILE_INLINE __m512i join_bytes(__m512i low, __m512i high)
{
    return _mm512_or_si512(low, _mm512_slli_epi16(high, 8));
}

/* 64 values one by one, for sizes that do not fit the fast way. */
static void large_values(int16_t *value, __m512i sizes, const uint8_t *extra, uint64_t pos)
{
    uint8_t size[64];
    _mm512_storeu_si512(size, sizes);
    for (int i = 0; i < 64; i++) {
        value[i] = tile_amplitude(tile_bits_at(extra, pos), size[i]);
        pos += size[i];
    }
}

/* 64 values from pos on. Returns the bits used. */
TILE_INLINE uint64_t values64(int16_t *value, __m512i sizes, const uint8_t *extra,
                              uint64_t pos)
{
    const __m512i to_bytes = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8));
    const __m512i iota = _mm512_set1_epi64(INT64_C(0x0706050403020100));
    const __m512i ones_of = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 1, 3, 7, 15, 31, 63, 127, -1, -1, -1, -1, -1, -1, -1, -1));
    __m512i sums = running_sums(sizes);
    __m512i total = _mm512_srli_epi64(sums, 56), before = _mm512_slli_epi64(sums, 8);
    __m512i ends = running_lanes(total);
    uint64_t used = (uint64_t)_mm_extract_epi64(_mm512_extracti32x4_epi32(ends, 3), 1);
    /* A lane's bits must lie in 8 bytes after a shift of up to 7, all in 64 bytes. */
    if (__builtin_expect(_mm512_cmpgt_epu64_mask(total, _mm512_set1_epi64(57)) != 0
                             || used > 64 * 8 - 8, 0)) {
        large_values(value, sizes, extra, pos);
        return used;
    }
    __m512i start = _mm512_add_epi64(_mm512_sub_epi64(ends, total),
                                     _mm512_set1_epi64((long long)(pos & 7)));
    __m512i byte = _mm512_add_epi8(
        _mm512_shuffle_epi8(_mm512_srli_epi64(start, 3), to_bytes), iota);
    __m512i bits = _mm512_permutexvar_epi8(byte, _mm512_loadu_si512(extra + (pos >> 3)));
    __m512i shift = _mm512_add_epi8(
        before,
        _mm512_shuffle_epi8(_mm512_and_si512(start, _mm512_set1_epi64(7)), to_bytes));
    __m512i ones = _mm512_shuffle_epi8(ones_of, sizes);
    __m512i v = _mm512_and_si512(_mm512_multishift_epi64_epi8(shift, bits), ones);
    __m512i v0 = low_words(v), v1 = high_words(v);
    __m512i ones0 = low_words(ones), ones1 = high_words(ones);
    if (__builtin_expect(_mm512_cmpgt_epu8_mask(sizes, _mm512_set1_epi8(8)) != 0, 0)) {
        __m512i eight = _mm512_set1_epi8(8);
        __m512i more = _mm512_shuffle_epi8(ones_of, _mm512_subs_epu8(sizes, eight));
        __m512i high = _mm512_and_si512(
            _mm512_multishift_epi64_epi8(_mm512_add_epi8(shift, eight), bits), more);
        v0 = join_bytes(v0, low_words(high));
        v1 = join_bytes(v1, high_words(high));
        ones0 = join_bytes(ones0, low_words(more));
        ones1 = join_bytes(ones1, high_words(more));
    }
    _mm512_storeu_si512(value, amplitudes(v0, ones0));
    _mm512_storeu_si512(value + 32, amplitudes(v1, ones1));
    return used;
}

TILE_INLINE void values(leat__tile_coefs *c, const tile_planes *p)
{
    const __m512i one = _mm512_set1_epi8(1);
    const uint8_t *above = upper_sizes(c, p);
    uint64_t pos = 0;
    for (uint32_t i = 0; i < p->values; i += 64) {
        uint64_t valid = _bzhi_u64(~UINT64_C(0), p->values - i < 64 ? p->values - i : 64);
        uint64_t bits = leat__load_u64(p->plane[0] + i / 8) & valid;
        __m512i sizes = _mm512_maskz_add_epi8(
            valid, _mm512_maskz_expand_epi8(bits, load512(above)), one);
        above += _mm_popcnt_u64(bits);
        pos += values64(c->value + i, sizes, p->extra, pos);
    }
}

TILE_ENTROPY_VARIANT(leat__tile_decode_avx512)
{
    tile_planes p;
    leat__tile_damage damage = tile_front(coefs, in, len, shape, codes, &p);
    if (damage != LEAT__TILE_WHOLE) return damage;
    if (p.values > 0) values(coefs, &p);
    tile_finish(coefs, shape);
    return LEAT__TILE_WHOLE;
}
