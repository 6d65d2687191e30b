/* SPDX-License-Identifier: Apache-2.0
 *
 * The check of UTF-8 with vectors of 32 bytes, after Keiser and Lemire, "Validating UTF-8 in less than one
 * instruction per byte" (2021). Three lookups by half bytes give the possible errors of each pair of bytes;
 * their intersection is the actual errors. Included by the kernels of both vector instruction sets.
 */
#include <immintrin.h>

#include "text/unicode.h"

#define U8_INLINE __attribute__((always_inline)) static inline

enum {
    U8_SHORT = 1,  /* a first byte where a continuation byte is expected */
    U8_LONG = 2,   /* a continuation byte after ASCII */
    U8_OVER3 = 4,  /* overlong form of three bytes */
    U8_LARGE = 8,  /* past U+10FFFF */
    U8_HALF = 16,  /* surrogate */
    U8_OVER2 = 32, /* overlong form of two bytes */
    U8_OVER4 = 64, /* overlong form of four bytes, or past U+10FFFF */
    U8_TWO = 128,  /* two continuation bytes: an error unless a third or fourth one is expected */
    U8_ANY = U8_SHORT | U8_LONG | U8_TWO
};

U8_INLINE __m256i u8_table(const uint8_t *table, __m256i at)
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table)), at);
}

U8_INLINE __m256i u8_upper(__m256i v)
{
    return _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(15));
}

/* Returns bytes that are not 0 where a byte of v is wrong after those before it; `last` has the 32 bytes
 * before v. */
U8_INLINE __m256i u8_errors(__m256i v, __m256i last)
{
    static const uint8_t first_high[16] = {U8_LONG,
                                           U8_LONG,
                                           U8_LONG,
                                           U8_LONG,
                                           U8_LONG,
                                           U8_LONG,
                                           U8_LONG,
                                           U8_LONG,
                                           U8_TWO,
                                           U8_TWO,
                                           U8_TWO,
                                           U8_TWO,
                                           U8_SHORT | U8_OVER2,
                                           U8_SHORT,
                                           U8_SHORT | U8_OVER3 | U8_HALF,
                                           U8_SHORT | U8_LARGE | U8_OVER4};
    static const uint8_t first_low[16] = {U8_ANY | U8_OVER3 | U8_OVER2 | U8_OVER4,
                                          U8_ANY | U8_OVER2,
                                          U8_ANY,
                                          U8_ANY,
                                          U8_ANY | U8_LARGE,
                                          U8_ANY | U8_LARGE | U8_OVER4,
                                          U8_ANY | U8_LARGE | U8_OVER4,
                                          U8_ANY | U8_LARGE | U8_OVER4,
                                          U8_ANY | U8_LARGE | U8_OVER4,
                                          U8_ANY | U8_LARGE | U8_OVER4,
                                          U8_ANY | U8_LARGE | U8_OVER4,
                                          U8_ANY | U8_LARGE | U8_OVER4,
                                          U8_ANY | U8_LARGE | U8_OVER4,
                                          U8_ANY | U8_LARGE | U8_OVER4 | U8_HALF,
                                          U8_ANY | U8_LARGE | U8_OVER4,
                                          U8_ANY | U8_LARGE | U8_OVER4};
    static const uint8_t second_high[16] = {U8_SHORT,
                                            U8_SHORT,
                                            U8_SHORT,
                                            U8_SHORT,
                                            U8_SHORT,
                                            U8_SHORT,
                                            U8_SHORT,
                                            U8_SHORT,
                                            U8_LONG | U8_OVER2 | U8_TWO | U8_OVER3 | U8_OVER4,
                                            U8_LONG | U8_OVER2 | U8_TWO | U8_OVER3 | U8_LARGE,
                                            U8_LONG | U8_OVER2 | U8_TWO | U8_HALF | U8_LARGE,
                                            U8_LONG | U8_OVER2 | U8_TWO | U8_HALF | U8_LARGE,
                                            U8_SHORT,
                                            U8_SHORT,
                                            U8_SHORT,
                                            U8_SHORT};
    __m256i between = _mm256_permute2x128_si256(last, v, 0x21);
    __m256i one = _mm256_alignr_epi8(v, between, 15), two = _mm256_alignr_epi8(v, between, 14);
    __m256i three = _mm256_alignr_epi8(v, between, 13);
    __m256i pair =
        _mm256_and_si256(_mm256_and_si256(u8_table(first_high, u8_upper(one)),
                                          u8_table(first_low, _mm256_and_si256(one, _mm256_set1_epi8(15)))),
                         u8_table(second_high, u8_upper(v)));
    /* bit 7 where a third or fourth byte is expected */
    __m256i third = _mm256_subs_epu8(two, _mm256_set1_epi8(0xe0 - 0x80));
    __m256i fourth = _mm256_subs_epu8(three, _mm256_set1_epi8((char)(0xf0 - 0x80)));
    __m256i expected = _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8((char)0x80));
    return _mm256_xor_si256(expected, pair);
}

/* Like leat__utf8_check(), which locates an error and checks the last bytes. */
static size_t utf8_check(const uint8_t *p, size_t len)
{
    __m256i last = _mm256_setzero_si256();
    uint32_t open = 0; /* not 0 if a code point may continue in the next 32 bytes */
    size_t i = 0;
    for (; i + 32 <= len; i += 32) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(p + i));
        uint32_t high = (uint32_t)_mm256_movemask_epi8(v);
        if (high | open) {
            __m256i errors = u8_errors(v, last);
            if (!_mm256_testz_si256(errors, errors)) break;
        }
        open = high >> 29;
        last = v;
    }
    for (size_t k = 1; k <= 3 && k <= i && p[i - k] >= 0x80; k++) {
        if (p[i - k] < 0xc0) continue;
        i -= k;
        break;
    }
    return i + leat__utf8_check(p + i, len - i);
}
