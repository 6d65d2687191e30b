/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 in portable C: see sha256.h. About 300 MB/s on one core: enough for headers and for the
 * parts of an upload over plain HTTP.
 */
#include "base/sha256.h"

#include <string.h>

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static inline uint32_t rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static void compress(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64], v[8];
    for (unsigned i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (unsigned i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(v, state, sizeof v);
    for (unsigned i = 0; i < 64; i++) {
        uint32_t e = v[4], a = v[0];
        uint32_t t1 =
            v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + K[i] + w[i];
        uint32_t t2 =
            (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (unsigned i = 0; i < 8; i++) state[i] += v[i];
}

void leat__sha256_init(leat__sha256 *s)
{
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->state, first, sizeof first);
    s->bytes = 0;
}

void leat__sha256_update(leat__sha256 *s, const void *data, size_t len)
{
    const uint8_t *p = data;
    size_t used = s->bytes % 64;
    s->bytes += len;
    if (used > 0) {
        size_t n = len < 64 - used ? len : 64 - used;
        memcpy(s->block + used, p, n);
        p += n;
        len -= n;
        if (used + n < 64) return;
        compress(s->state, s->block);
    }
    for (; len >= 64; p += 64, len -= 64) compress(s->state, p);
    if (len > 0) memcpy(s->block, p, len);
}

void leat__sha256_final(leat__sha256 *s, uint8_t out[LEAT__SHA256_BYTES])
{
    static const uint8_t padding[64] = {0x80};
    uint8_t length[8];
    uint64_t bits = s->bytes * 8;
    size_t used = s->bytes % 64;
    for (unsigned i = 0; i < 8; i++) length[i] = (uint8_t)(bits >> (56 - 8 * i));
    leat__sha256_update(s, padding, used < 56 ? 56 - used : 120 - used);
    leat__sha256_update(s, length, sizeof length);
    for (unsigned i = 0; i < 32; i++) out[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}

void leat__sha256_of(const void *data, size_t len, uint8_t out[LEAT__SHA256_BYTES])
{
    leat__sha256 s;
    leat__sha256_init(&s);
    leat__sha256_update(&s, data, len);
    leat__sha256_final(&s, out);
}

char *leat__sha256_hex(const void *data, size_t len, char *hex)
{
    uint8_t digest[LEAT__SHA256_BYTES];
    leat__sha256_of(data, len, digest);
    return leat__to_hex(digest, sizeof digest, hex);
}

void leat__hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
                       uint8_t out[LEAT__SHA256_BYTES])
{
    uint8_t block[64] = {0}, inner[64], outer[64], digest[LEAT__SHA256_BYTES];
    leat__sha256 s;
    if (key_len > sizeof block) leat__sha256_of(key, key_len, block);
    else if (key_len > 0) memcpy(block, key, key_len);
    for (unsigned i = 0; i < sizeof block; i++) {
        inner[i] = block[i] ^ 0x36;
        outer[i] = block[i] ^ 0x5c;
    }
    leat__sha256_init(&s);
    leat__sha256_update(&s, inner, sizeof inner);
    leat__sha256_update(&s, data, len);
    leat__sha256_final(&s, digest);
    leat__sha256_init(&s);
    leat__sha256_update(&s, outer, sizeof outer);
    leat__sha256_update(&s, digest, sizeof digest);
    leat__sha256_final(&s, out);
}

char *leat__to_hex(const uint8_t *data, size_t len, char *hex)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        hex[2 * i] = digits[data[i] >> 4];
        hex[2 * i + 1] = digits[data[i] & 15];
    }
    hex[2 * len] = '\0';
    return hex;
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *leat__base64_encode(const void *data, size_t len, char *text)
{
    const uint8_t *p = data;
    char *out = text;
    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        uint32_t word = (uint32_t)p[i] << 16;
        if (n > 1) word |= (uint32_t)p[i + 1] << 8;
        if (n > 2) word |= p[i + 2];
        for (unsigned d = 0; d < 4; d++) *out++ = d <= n ? alphabet[word >> (18 - 6 * d) & 63] : '=';
    }
    *out = '\0';
    return text;
}

bool leat__base64_decode(const char *text, uint8_t *out, size_t capacity, size_t *len)
{
    size_t chars = strlen(text);
    *len = 0;
    if (chars % 4 != 0) return false;
    for (size_t i = 0; i < chars; i += 4) {
        uint32_t word = 0;
        unsigned n = 3;
        for (unsigned d = 0; d < 4; d++) {
            const char *at = text[i + d] != '=' ? strchr(alphabet, text[i + d]) : NULL;
            if (at == NULL && (text[i + d] != '=' || i + 4 != chars || d < 2)) return false;
            if (at != NULL && n < 3) return false; /* a letter after padding */
            if (at == NULL) n--;
            word = word << 6 | (at != NULL ? (uint32_t)(at - alphabet) : 0);
        }
        if (capacity - *len < n) return false;
        for (unsigned b = 0; b < n; b++) out[(*len)++] = (uint8_t)(word >> (16 - 8 * b));
    }
    return true;
}
