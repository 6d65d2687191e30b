/* SPDX-License-Identifier: Apache-2.0
 *
 * Hashes of words and lines: folded 64 x 64-bit products. Static inline, so that each variant of the
 * kernels has its own copy; all give the same values.
 */
#ifndef LEAT_TEXT_HASH_WORDS_H
#define LEAT_TEXT_HASH_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define LEAT__HW0 UINT64_C(0x9e3779b97f4a7c15)
#define LEAT__HW1 UINT64_C(0xd1b54a32d192ed03)
#define LEAT__HW2 UINT64_C(0x8cb92ba72f3d8dd7)
#define LEAT__HW3 UINT64_C(0xaef17502108ef2d9)

static inline uint64_t leat__fold(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 r = (unsigned __int128)a * b;
    return (uint64_t)r ^ (uint64_t)(r >> 64);
}

/* Ones, then 64 zeros. From byte 96 - n on, it is a mask of the first n of 64 bytes. A load from it needs no
 * branch: the lengths of words and lines are unpredictable. Masks of words are within one cache line. */
static const uint8_t leat__first_bytes[160] __attribute__((aligned(64))) = {
#define LEAT_FF16 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255
    LEAT_FF16, LEAT_FF16, LEAT_FF16, LEAT_FF16, LEAT_FF16, LEAT_FF16,
#undef LEAT_FF16
};

/* Returns the mask of the first n bytes; n is at most 64. */
static inline const uint8_t *leat__mask_of(size_t n)
{
    return leat__first_bytes + 96 - n;
}

/* Returns eight bytes at offset `at` of p, with zeros where the mask has them. */
static inline uint64_t leat__masked_u64(const uint8_t *p, const uint8_t *mask, size_t at)
{
    return leat__load_u64(p + at) & leat__load_u64(mask + at);
}

/* Hashes up to 16 bytes, given as two masked words. The length distinguishes trailing zeros. It is not mixed
 * with the bytes of the word, which could cancel it. */
static inline uint64_t leat__hash_short(uint64_t a, uint64_t b, size_t len)
{
    return leat__fold(a ^ LEAT__HW0, b ^ LEAT__HW1) ^ (uint64_t)len << 32;
}

/* Hashes any number of bytes; reads up to 64 bytes past the end. */
static inline uint64_t leat__hash_run(const uint8_t *p, size_t n, uint64_t seed)
{
    uint64_t a = seed ^ LEAT__HW2, b = LEAT__HW3, len = (uint64_t)n << 32;
    for (; n > 64; p += 64, n -= 64) {
        a = leat__fold(leat__load_u64(p) ^ a, leat__load_u64(p + 8) ^ LEAT__HW0);
        b = leat__fold(leat__load_u64(p + 16) ^ b, leat__load_u64(p + 24) ^ LEAT__HW1);
        a = leat__fold(leat__load_u64(p + 32) ^ a, leat__load_u64(p + 40) ^ LEAT__HW0);
        b = leat__fold(leat__load_u64(p + 48) ^ b, leat__load_u64(p + 56) ^ LEAT__HW1);
    }
    const uint8_t *m = leat__mask_of(n);
    uint64_t c = leat__fold(leat__masked_u64(p, m, 0) ^ a, leat__masked_u64(p, m, 8) ^ LEAT__HW0);
    uint64_t d = leat__fold(leat__masked_u64(p, m, 16) ^ b, leat__masked_u64(p, m, 24) ^ LEAT__HW1);
    a = leat__fold(leat__masked_u64(p, m, 32) ^ c, leat__masked_u64(p, m, 40) ^ LEAT__HW0);
    b = leat__fold(leat__masked_u64(p, m, 48) ^ d, leat__masked_u64(p, m, 56) ^ LEAT__HW1);
    return leat__fold(a ^ LEAT__HW2, b ^ LEAT__HW3) ^ len;
}

#endif
