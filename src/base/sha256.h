/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 (FIPS 180-4), HMAC-SHA-256 (RFC 2104) and base64, for signing requests to object
 * stores. Checksums of leat's own data use XXH3 (base/hash.h), which is far faster.
 */
#ifndef LEAT_BASE_SHA256_H
#define LEAT_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEAT__SHA256_BYTES 32

typedef struct leat__sha256 {
    uint32_t state[8];
    uint64_t bytes; /* hashed so far */
    uint8_t block[64];
} leat__sha256;

void leat__sha256_init(leat__sha256 *s);
void leat__sha256_update(leat__sha256 *s, const void *data, size_t len);
void leat__sha256_final(leat__sha256 *s, uint8_t out[LEAT__SHA256_BYTES]);

/* Hash in one call; `hex` has room for 65 bytes. */
void leat__sha256_of(const void *data, size_t len, uint8_t out[LEAT__SHA256_BYTES]);
char *leat__sha256_hex(const void *data, size_t len, char *hex);
void leat__hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
                       uint8_t out[LEAT__SHA256_BYTES]);

/* Writes lower-case hexadecimal with a NUL; returns `hex`. */
char *leat__to_hex(const uint8_t *data, size_t len, char *hex);

/* Base64 (RFC 4648) with padding. `text` has room for 4 * ((len + 2) / 3) + 1 bytes. Decoding
 * is strict and fails when `capacity` is too small. */
char *leat__base64_encode(const void *data, size_t len, char *text);
bool leat__base64_decode(const char *text, uint8_t *out, size_t capacity, size_t *len);

#endif
