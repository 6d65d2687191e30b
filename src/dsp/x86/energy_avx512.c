/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of squares for AVX-512 (VBMI2, VNNI). Two blocks are processed at a time: their coefficients of one
 * frequency are interleaved, so that vpdpwssd squares and adds both.
 */
#include <immintrin.h>

#include "dsp/x86/energy_x86.h"

#define INLINE static inline __attribute__((always_inline))
#define V __m512i

/* Sums of coefficients 0 to 31 and 32 to 63, in the order of vpunpck: the first four of each eight, and the
 * others. */
typedef struct sums {
    V low[2], high[2];
} sums;

INLINE void add_pair(sums *s, const V a[2], const V b[2])
{
    for (int i = 0; i < 2; i++) {
        const V low = _mm512_unpacklo_epi16(a[i], b[i]), high = _mm512_unpackhi_epi16(a[i], b[i]);
        s->low[i] = _mm512_dpwssd_epi32(s->low[i], low, low);
        s->high[i] = _mm512_dpwssd_epi32(s->high[i], high, high);
    }
}

INLINE void store(uint32_t sum[64], const sums *s)
{
    const V first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
            second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    for (int i = 0; i < 2; i++) {
        uint32_t *const to = sum + 32 * i;
        const V a = _mm512_permutex2var_epi64(s->low[i], first, s->high[i]);
        const V b = _mm512_permutex2var_epi64(s->low[i], second, s->high[i]);
        _mm512_storeu_si512(to, _mm512_add_epi32(_mm512_loadu_si512(to), a));
        _mm512_storeu_si512(to + 16, _mm512_add_epi32(_mm512_loadu_si512(to + 16), b));
    }
}

INLINE void load_plain(V to[2], const int16_t *block)
{
    for (int i = 0; i < 2; i++) to[i] = _mm512_loadu_si512(block + 32 * i);
}

static void plain(uint32_t sum[64], const int16_t *blocks, uint32_t count)
{
    sums s = {{_mm512_setzero_si512(), _mm512_setzero_si512()},
              {_mm512_setzero_si512(), _mm512_setzero_si512()}};
    V a[2], b[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    for (; count >= 2; count -= 2, blocks += 128) {
        load_plain(a, blocks);
        load_plain(b, blocks + 64);
        add_pair(&s, a, b);
    }
    if (count > 0) {
        load_plain(a, blocks);
        b[0] = b[1] = _mm512_setzero_si512();
        add_pair(&s, a, b);
    }
    store(sum, &s);
}

INLINE void load_sparse(V to[2], const leat__tile_coefs *coefs, uint32_t b)
{
    const uint64_t mask = coefs->mask[b];
    const int16_t *const value = coefs->value + coefs->first[b];
    to[0] = _mm512_maskz_expand_epi16((__mmask32)mask, _mm512_loadu_si512(value));
    to[1] = _mm512_maskz_expand_epi16((__mmask32)(mask >> 32),
                                      _mm512_loadu_si512(value + _mm_popcnt_u32((uint32_t)mask)));
}

static void area(uint32_t sum[64], const leat__tile_coefs *coefs, const leat__idct_area *area)
{
    sums s = {{_mm512_setzero_si512(), _mm512_setzero_si512()},
              {_mm512_setzero_si512(), _mm512_setzero_si512()}};
    for (uint32_t y = 0; y < area->high; y++) {
        uint32_t at = area->first + y * area->pitch;
        const uint32_t end = at + area->wide;
        V a[2], b[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
        for (; at + 2 <= end; at += 2) {
            load_sparse(a, coefs, at);
            load_sparse(b, coefs, at + 1);
            add_pair(&s, a, b);
        }
        if (at == end) continue;
        load_sparse(a, coefs, at);
        b[0] = b[1] = _mm512_setzero_si512();
        add_pair(&s, a, b);
    }
    store(sum, &s);
}

const leat__energy_dsp leat__energy_avx512 = {.isa = "avx512", .plain = plain, .area = area};
