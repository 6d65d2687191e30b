/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of MinHash signatures: the least value of each permutation over many shingles, and SHA-1
 * of many shingles at once. One variant per instruction set; all give the same results. The tables are
 * constant: any thread.
 */
#ifndef LEAT_TEXT_PERMUTE_H
#define LEAT_TEXT_PERMUTE_H

#include <stdint.h>

#define LEAT__PERMUTE_PRIME ((UINT64_C(1) << 61) - 1)
#define LEAT__PERMUTE_LANES 16 /* arrays of factors and values are padded to a multiple of this */
#define LEAT__PERMUTE_MOST 512 /* shingles at once */

/* `a`, `b` and `values` have `count` entries, rounded up to the padding. `values` has the least values so far
 * and is updated. 0 < n <= LEAT__PERMUTE_MOST. */
typedef struct leat__permute_dsp {
    const char *isa;
    /* (hash * a + b) modulo 2^61 - 1; the product wraps at 2^64, as in numpy. */
    void (*prime)(const uint64_t *a, const uint64_t *b, uint32_t count, const uint64_t *hash, uint32_t n,
                  uint64_t *values);
    /* The low 32 bits of the values of `prime`. */
    void (*prime_low)(const uint64_t *a, const uint64_t *b, uint32_t count, const uint64_t *hash, uint32_t n,
                      uint64_t *values);
    /* (mixed * a + b) modulo 2^32, where `mixed` is the hash after the last step of MurmurHash3. */
    void (*affine)(const uint64_t *a, const uint64_t *b, uint32_t count, const uint64_t *hash, uint32_t n,
                   uint64_t *values);
    /* The first four bytes of SHA-1 of each text, as a little-endian number. The results may be in another
     * order. 64 bytes past a text are readable. */
    void (*sha1)(const uint8_t *const *text, const uint32_t *len, uint32_t n, uint64_t *out);
    /* XXH64 with seed 0 of each text. */
    void (*xxh64)(const uint8_t *const *text, const uint32_t *len, uint32_t n, uint64_t *out);
} leat__permute_dsp;

extern const leat__permute_dsp leat__permute_c;
extern const leat__permute_dsp leat__permute_avx2;
extern const leat__permute_dsp leat__permute_avx512;

const leat__permute_dsp *leat__permute_dsp_for(uint32_t cpu_flags);
/* Returns the kernels for this CPU. */
const leat__permute_dsp *leat__permute_dsp_now(void);

/* Computes one value of `prime`. */
static inline uint64_t leat__permute_one(uint64_t hash, uint64_t a, uint64_t b)
{
    uint64_t v = hash * a + b;
    v = (v & LEAT__PERMUTE_PRIME) + (v >> 61);
    return v >= LEAT__PERMUTE_PRIME ? v - LEAT__PERMUTE_PRIME : v;
}

static inline uint32_t leat__permute_mix(uint32_t h)
{
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

#endif
