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

/* The lowest k bytes of v, all of it for k >= 8. */
static inline uint64_t leat__low_bytes(uint64_t v, size_t k)
{
    return k >= 8 ? v : v & ~(~UINT64_C(0) << (8 * k));
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
    uint64_t w0 = leat__low_bytes(leat__load_u64(p), n);
    uint64_t w1 = leat__low_bytes(leat__load_u64(p + 8), n > 8 ? n - 8 : 0);
    uint64_t w2 = leat__low_bytes(leat__load_u64(p + 16), n > 16 ? n - 16 : 0);
    uint64_t w3 = leat__low_bytes(leat__load_u64(p + 24), n > 24 ? n - 24 : 0);
    a = leat__fold(w0 ^ a, w1 ^ LEAT__HW0);
    b = leat__fold(w2 ^ b, w3 ^ LEAT__HW1);
    return leat__fold(a ^ LEAT__HW2, b ^ LEAT__HW3);
}

#endif
