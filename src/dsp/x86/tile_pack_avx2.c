/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing kernels for AVX2 and BMI2: bitmaps from comparisons, extra bits by pext.
 */
#include <immintrin.h>

#include "dsp/tile_pack_tmpl.h"
#include "dsp/x86/pack_pext.h"
#include "dsp/x86/tile_variants.h"

#define GROUPS 8

/* Loads the eight groups of a block: halves of two rows side by side. */
PACK_INLINE void load_groups(__m128i g[GROUPS], const int16_t *block)
{
    static const uint8_t left[4] = {0, 1, 3, 5}, right[4] = {2, 4, 6, 7};
    for (int i = 0; i < 4; i++) {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(block + 16 * i));
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(block + 16 * i + 8));
        g[left[i]] = _mm_unpacklo_epi64(a, b);
        g[right[i]] = _mm_unpackhi_epi64(a, b);
    }
}

PACK_INLINE uint64_t nonzero(const __m128i g[GROUPS])
{
    const __m128i none = _mm_setzero_si128();
    uint64_t zero = 0;
    for (int i = 0; i < GROUPS; i += 2) {
        __m128i both = _mm_packs_epi16(_mm_cmpeq_epi16(g[i], none), _mm_cmpeq_epi16(g[i + 1], none));
        zero |= (uint64_t)(uint32_t)_mm_movemask_epi8(both) << 8 * i;
    }
    return ~zero;
}

PACK_INLINE uint32_t all_bits(__m128i v)
{
    v = _mm_or_si128(v, _mm_srli_si128(v, 8));
    v = _mm_or_si128(v, _mm_srli_si128(v, 4));
    uint32_t all = (uint32_t)_mm_cvtsi128_si32(v);
    return (all | all >> 16) & 0xffff;
}

TILE_TAKE_VARIANT(leat__tile_take_avx2)
{
    __m128i all = _mm_setzero_si128();
    for (uint32_t i = 0; i < count; i++, blocks += 64) {
        __m128i g[GROUPS];
        int16_t ordered[64];
        load_groups(g, blocks);
        for (int k = 0; k < GROUPS; k++) {
            __m128i ac = k == 0 ? _mm_insert_epi16(g[0], 0, 0) : g[k];
            all = _mm_or_si128(all, _mm_xor_si128(ac, _mm_srai_epi16(ac, 15)));
        }
        g[0] = _mm_insert_epi16(g[0], (int16_t)(blocks[0] - guess), 0);
        guess = blocks[0];
        for (int k = 0; k < GROUPS; k++) _mm_storeu_si128((__m128i *)(void *)(ordered + 8 * k), g[k]);
        int16_t *value = parts->value + parts->values;
        uint64_t mask = nonzero(g);
        pack_note(parts, first + i, mask);
        parts->values += (uint32_t)_mm_popcnt_u64(mask);
        for (; mask != 0; mask &= mask - 1) *value++ = ordered[__builtin_ctzll(mask)];
    }
    return all_bits(all);
}

/* Returns as many ones as each value has bits. */
PACK_INLINE __m256i ones_of(__m256i v)
{
    v = _mm256_abs_epi16(v);
    v = _mm256_or_si256(v, _mm256_srli_epi16(v, 1));
    v = _mm256_or_si256(v, _mm256_srli_epi16(v, 2));
    v = _mm256_or_si256(v, _mm256_srli_epi16(v, 4));
    return _mm256_or_si256(v, _mm256_srli_epi16(v, 8));
}

TILE_PUT_VALUES_VARIANT(leat__tile_put_values_avx2)
{
    const uint32_t n = parts->values;
    for (uint32_t i = 0; i < n; i++) parts->size[i] = (uint8_t)pack_size(parts->value[i]);
    for (uint32_t l = 1, left = n; left > 0; l++) {
        uint32_t next = pack_plane(at, parts->size, left, l);
        at += (left + 7) / 8;
        left = next;
    }
    memset(parts->value + n, 0, 16 * sizeof parts->value[0]); /* zeros have no bits */
    pack_bits b = {.at = at};
    for (uint32_t i = 0; i < n; i += 16) {
        uint16_t extra[16], ones[16];
        __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(parts->value + i));
        __m256i less = _mm256_add_epi16(v, _mm256_srai_epi16(v, 15));
        _mm256_storeu_si256((__m256i *)(void *)extra, less);
        _mm256_storeu_si256((__m256i *)(void *)ones, ones_of(v));
        pack_sixteen(&b, extra, ones);
    }
    return pack_flush(&b);
}

TILE_SAME_VARIANT(leat__tile_same_avx2)
{
    bool same = true;
    for (uint32_t i = 0; i < count; i++) same &= pack_same(coefs, first + i, blocks + 64 * i);
    return same;
}

TILE_ORDER_VARIANT(leat__tile_order_avx2)
{
    for (uint32_t i = 0; i < count; i++) pack_order(out + i, coefs, first + i);
}
