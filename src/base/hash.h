/* SPDX-License-Identifier: Apache-2.0
 *
 * XXH3 through libxxhash: the checksum of packs and the digest of batches.
 */
#ifndef LEAT_BASE_HASH_H
#define LEAT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct leat__hash128 {
    uint64_t low, high;
} leat__hash128;

uint64_t leat__hash64(const void *data, size_t len, uint64_t seed);
leat__hash128 leat__hash128_of(const void *data, size_t len, uint64_t seed);

/* XXH64, for hashes equal to those of other tools. */
uint64_t leat__xxh64(const void *data, size_t len);

/* Streaming: the result equals that of one call over all bytes. */
typedef struct leat__hasher leat__hasher;
leat__hasher *leat__hasher_open(uint64_t seed); /* NULL when out of memory */
void leat__hasher_restart(leat__hasher *h, uint64_t seed);
void leat__hasher_update(leat__hasher *h, const void *data, size_t len);
uint64_t leat__hasher_value64(const leat__hasher *h);
leat__hash128 leat__hasher_value128(const leat__hasher *h);
void leat__hasher_close(leat__hasher **h);

/* Mixes one word, cheaply and well (a bijection): for keys and seeds, not for data. */
static inline uint64_t leat__mix64(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    return x;
}

#endif
