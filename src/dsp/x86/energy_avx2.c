/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of squares for AVX2. Two blocks are processed at a time: their coefficients of one frequency are
 * interleaved, so that vpmaddwd squares and adds both. Sparse blocks are expanded in groups of eight.
 */
#include <immintrin.h>

#include "dsp/x86/energy_x86.h"
#include "dsp/x86/expand_tables.h"

#define INLINE static inline __attribute__((always_inline))
#define V __m256i

static const uint8_t expand_words[256][16] __attribute__((aligned(64))) = {EXPAND_256(EXPAND_WORDS_OF)};

/* Sums of coefficients 16 i to 16 i + 15, in the order of vpunpck: the first four of each eight, and the
 * others. */
typedef struct sums {
    V low[4], high[4];
} sums;

INLINE void add_pair(sums *s, int i, V a, V b)
{
    const V low = _mm256_unpacklo_epi16(a, b), high = _mm256_unpackhi_epi16(a, b);
    s->low[i] = _mm256_add_epi32(s->low[i], _mm256_madd_epi16(low, low));
    s->high[i] = _mm256_add_epi32(s->high[i], _mm256_madd_epi16(high, high));
}

INLINE void clear(sums *s)
{
    for (int i = 0; i < 4; i++) s->low[i] = s->high[i] = _mm256_setzero_si256();
}

INLINE void add_to(uint32_t *to, V v)
{
    V *const at = (V *)(void *)to;
    _mm256_storeu_si256(at, _mm256_add_epi32(_mm256_loadu_si256(at), v));
}

INLINE void store(uint32_t sum[64], const sums *s)
{
    for (int i = 0; i < 4; i++) {
        add_to(sum + 16 * i, _mm256_permute2x128_si256(s->low[i], s->high[i], 0x20));
        add_to(sum + 16 * i + 8, _mm256_permute2x128_si256(s->low[i], s->high[i], 0x31));
    }
}

INLINE V load(const int16_t *from)
{
    return _mm256_loadu_si256((const V *)(const void *)from);
}

static void plain(uint32_t sum[64], const int16_t *blocks, uint32_t count)
{
    sums s;
    clear(&s);
    for (; count >= 2; count -= 2, blocks += 128)
        for (int i = 0; i < 4; i++) add_pair(&s, i, load(blocks + 16 * i), load(blocks + 64 + 16 * i));
    if (count > 0)
        for (int i = 0; i < 4; i++) add_pair(&s, i, load(blocks + 16 * i), _mm256_setzero_si256());
    store(sum, &s);
}

/* Expands the next 16 coefficients of a block, of which `bits` are not zero. */
INLINE V expand(const int16_t **value, uint32_t bits)
{
    const int16_t *const from = *value;
    const uint32_t first = bits & 255, second = bits >> 8 & 255;
    const int16_t *const middle = from + _mm_popcnt_u32(first);
    *value = middle + _mm_popcnt_u32(second);
    const __m128i a = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)from),
                                       _mm_load_si128((const __m128i *)(const void *)expand_words[first]));
    const __m128i b = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)middle),
                                       _mm_load_si128((const __m128i *)(const void *)expand_words[second]));
    return _mm256_set_m128i(b, a);
}

static void area(uint32_t sum[64], const leat__tile_coefs *coefs, const leat__idct_area *area)
{
    sums s;
    clear(&s);
    for (uint32_t y = 0; y < area->high; y++) {
        uint32_t at = area->first + y * area->pitch;
        const uint32_t end = at + area->wide;
        for (; at < end; at += 2) {
            const uint64_t a = coefs->mask[at], b = at + 1 < end ? coefs->mask[at + 1] : 0;
            const int16_t *from_a = coefs->value + coefs->first[at],
                          *from_b = coefs->value + coefs->first[at + 1];
            for (int i = 0; i < 4; i++) {
                const V x = expand(&from_a, (uint32_t)(a >> 16 * i) & 0xffff);
                const V z = expand(&from_b, (uint32_t)(b >> 16 * i) & 0xffff);
                add_pair(&s, i, x, z);
            }
        }
    }
    store(sum, &s);
}

const leat__energy_dsp leat__energy_avx2 = {.isa = "avx2", .plain = plain, .area = area};
