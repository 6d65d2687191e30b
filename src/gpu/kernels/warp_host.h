/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels as plain C: a warp's lanes take turns. A stretch of code between two LANES is one step of
 * all lanes, so what one lane writes in a step others read in a later one only, as on a device with
 * __syncwarp between them. For the tests.
 */
#ifndef LEAT_GPU_KERNELS_WARP_HOST_H
#define LEAT_GPU_KERNELS_WARP_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define DEVICE static inline
#define CONSTANT static const

#define PER_LANE(type, name) type name[32]
#define AT(name) name[lane]
#define LANES for (int lane = 0; lane < 32; lane++)
#define WARP_SYNC() (void)0

/* 32 bits from bit `bit` of the byte at p on. */
DEVICE uint32_t load_bits(const uint8_t *p, uint32_t bit)
{
    uint64_t word = 0;
    memcpy(&word, p, 5);
    return (uint32_t)(word >> bit);
}
#define UNROLL

#define POPC(x) ((uint32_t)__builtin_popcount(x))
#define POPCLL(x) ((uint32_t)__builtin_popcountll(x))

DEVICE uint32_t warp_sum_(const uint32_t *x)
{
    uint32_t sum = 0;
    for (int i = 0; i < 32; i++) sum += x[i];
    return sum;
}
/* Sum over lanes; the same for all. */
#define WARP_SUM(x) warp_sum_(x)

DEVICE void warp_scan_(uint32_t *x)
{
    for (int i = 1; i < 32; i++) x[i] += x[i - 1];
}
/* Each lane's value becomes the sum up to and with it. */
#define WARP_SCAN(x) warp_scan_(x)

DEVICE uint32_t warp_ballot_(const uint32_t *x)
{
    uint32_t bits = 0;
    for (int i = 0; i < 32; i++) bits |= (uint32_t)(x[i] != 0) << i;
    return bits;
}
/* Which lanes have a value that is not 0. */
#define WARP_BALLOT(x) warp_ballot_(x)
/* The value of one lane. */
#define WARP_FROM(x, source) ((x)[source])

#define REPORT(where, value) (*(where) = *(where) < (value) ? *(where) : (value))

#endif
