/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-1 of a block of memory.
 */
#include "base/sha1.h"

#include <string.h>

static uint32_t left(uint32_t x, int n)
{
    return x << n | x >> (32 - n);
}

static uint32_t load_be(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_be(uint8_t *p, uint32_t x)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(x >> (24 - 8 * i));
}

static void block(uint32_t h[5], const uint8_t *p)
{
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 16; i++) w[i] = load_be(p + 4 * i);
    for (int i = 16; i < 80; i++) w[i] = left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f, k;
        if (i < 20) f = (b & c) | (~b & d), k = 0x5a827999;
        else if (i < 40) f = b ^ c ^ d, k = 0x6ed9eba1;
        else if (i < 60) f = (b & c) | (b & d) | (c & d), k = 0x8f1bbcdc;
        else f = b ^ c ^ d, k = 0xca62c1d6;
        uint32_t t = left(a, 5) + f + e + k + w[i];
        e = d;
        d = c;
        c = left(b, 30);
        b = a;
        a = t;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void leat__sha1_of(const void *data, size_t len, uint8_t out[LEAT__SHA1_BYTES])
{
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    const uint8_t *p = data;
    uint8_t last[128] = {0};
    size_t rest = len % 64, blocks = rest < 56 ? 1 : 2;
    for (size_t i = 0; i + 64 <= len; i += 64) block(h, p + i);
    if (rest > 0) memcpy(last, p + len - rest, rest);
    last[rest] = 0x80;
    store_be(last + 64 * blocks - 8, (uint32_t)((uint64_t)len >> 29));
    store_be(last + 64 * blocks - 4, (uint32_t)((uint64_t)len << 3));
    for (size_t i = 0; i < blocks; i++) block(h, last + 64 * i);
    for (int i = 0; i < 5; i++) store_be(out + 4 * i, h[i]);
}
