/* SPDX-License-Identifier: Apache-2.0
 *
 * MinHash signatures equal, bit for bit, to those of other tools. Slower than sketches
 * (text/sketch.h); for comparing results. A minhasher belongs to one thread.
 *
 * datatrove 0.10 (MinhashDedupSignature with its defaults, English): shingles of words of the
 * simplified text, XXH64, permutations modulo 2^61 - 1. A text with fewer words than a shingle has
 * none.
 * datasketch 2.0 (MinHash, seed 1) leaves shingles to its user. Here they are n consecutive words of
 * text.lower().split(), joined by blanks, or n characters of all of these words; a shorter text is
 * one shingle. SHA-1; permutations modulo 2^32, or of the scheme "legacy", the only one before 2.0.
 */
#ifndef LEAT_TEXT_MINHASH_H
#define LEAT_TEXT_MINHASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "text/sketch.h"

typedef enum leat__minhash_family {
    LEAT__MINHASH_NONE,
    LEAT__MINHASH_DATASKETCH,
    LEAT__MINHASH_DATASKETCH_LEGACY,
    LEAT__MINHASH_DATATROVE
} leat__minhash_family;

typedef struct leat__minhasher {
    uint32_t family, words, chars; /* shingles of words, or of characters with words == 0 */
    uint32_t count;                /* values of a signature */
    uint64_t a[LEAT__SKETCH_MAX], b[LEAT__SKETCH_MAX];
    uint8_t *text; /* the document: write it here */
    uint64_t text_capacity;
    uint8_t *folded, *joined;
    uint32_t *start;
    void *slab;
} leat__minhasher;

int leat__minhasher_init(leat__minhasher *m, uint32_t family, uint32_t words, uint32_t chars, uint32_t count,
                         leat_error *err) LEAT_MUST_CHECK;
void leat__minhasher_reset(leat__minhasher *m);
int leat__minhasher_reserve(leat__minhasher *m, size_t bytes, leat_error *err) LEAT_MUST_CHECK;
uint64_t leat__minhasher_need(uint64_t bytes);
/* Writes m->count values of m->text[0, len). Returns the number of shingles; without any, nothing is
 * written. */
uint32_t leat__minhasher_sign(leat__minhasher *m, size_t len, uint64_t *values);

/* Like leat__sketch_band and leat__sketch_bytes. */
uint64_t leat__minhash_band(const uint64_t *values, uint32_t rows);
void leat__minhash_bytes(const uint64_t *values, uint32_t k, uint8_t *out);

#endif
