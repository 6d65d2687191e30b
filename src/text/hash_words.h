/* SPDX-License-Identifier: Apache-2.0
 *
 * Hashes of words and lines: folded 64 x 64-bit products. Static inline, so that each variant of
 * the kernels has its own copy; the same values everywhere.
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

/* The bytes of v, which is at offset `at` of a word of k bytes, that belong to the word. No branches: lengths
 * of words cannot be predicted. */
static inline uint64_t leat__word_bytes(uint64_t v, size_t k, size_t at)
{
    static const uint64_t masks[9] = {
        0, 0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff, ~UINT64_C(0)};
    size_t n = k > at ? k - at : 0;
    return v & masks[n < 8 ? n : 8];
}

/* Up to 16 bytes, given as two masked words. */
static inline uint64_t leat__hash_short(uint64_t a, uint64_t b, size_t len)
{
    return leat__fold(a ^ LEAT__HW0, b ^ LEAT__HW1 ^ (uint64_t)len << 32);
}

/* Any number of bytes; reads up to 32 bytes past the end. */
static inline uint64_t leat__hash_run(const uint8_t *p, size_t n, uint64_t seed)
{
    uint64_t a = seed ^ LEAT__HW2, b = (uint64_t)n ^ LEAT__HW3;
    for (; n > 32; p += 32, n -= 32) {
        a = leat__fold(leat__load_u64(p) ^ a, leat__load_u64(p + 8) ^ LEAT__HW0);
        b = leat__fold(leat__load_u64(p + 16) ^ b, leat__load_u64(p + 24) ^ LEAT__HW1);
    }
    uint64_t w0 = leat__word_bytes(leat__load_u64(p), n, 0);
    uint64_t w1 = leat__word_bytes(leat__load_u64(p + 8), n, 8);
    uint64_t w2 = leat__word_bytes(leat__load_u64(p + 16), n, 16);
    uint64_t w3 = leat__word_bytes(leat__load_u64(p + 24), n, 24);
    a = leat__fold(w0 ^ a, w1 ^ LEAT__HW0);
    b = leat__fold(w2 ^ b, w3 ^ LEAT__HW1);
    return leat__fold(a ^ LEAT__HW2, b ^ LEAT__HW3);
}

#endif
