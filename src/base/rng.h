/* SPDX-License-Identifier: Apache-2.0
 *
 * Counter-based random numbers: Philox 4x32-10. A generator is a pure function of its key and its
 * counter. So the draws of a sample depend only on (seed, epoch, sample, op), never on thread,
 * worker or time. No allocation, no failure, no locks.
 */
#ifndef LEAT_BASE_RNG_H
#define LEAT_BASE_RNG_H

#include <stdint.h>

/* One block: out[4] from a 128-bit counter and a 64-bit key. */
void leat__philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

typedef struct leat__rng {
    uint32_t key[2];
    uint32_t counter[4];
    uint32_t block[4];
    unsigned used; /* words of `block` already used */
} leat__rng;

/* The stream for one use: `seed` is the key; epoch, sample and op select the stream. epoch
 * uses its low 32 bits, op its low 16, sample its low 48; streams differ if any of them do. */
void leat__rng_init(leat__rng *r, uint64_t seed, uint64_t epoch, uint64_t sample, uint32_t op);

uint32_t leat__rng_u32(leat__rng *r);
uint64_t leat__rng_u64(leat__rng *r);
double leat__rng_double(leat__rng *r);                      /* [0, 1), 53 bits */
float leat__rng_float(leat__rng *r);                        /* [0, 1), 24 bits */
double leat__rng_range(leat__rng *r, double lo, double hi); /* [lo, hi) */
uint64_t leat__rng_below(leat__rng *r, uint64_t n);         /* [0, n), unbiased; n > 0 */
double leat__rng_normal(leat__rng *r);                      /* mean 0, deviation 1 */
double leat__rng_beta(leat__rng *r, double a, double b);    /* (0, 1); a, b > 0 */

#endif
