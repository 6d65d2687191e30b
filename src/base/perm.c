/* SPDX-License-Identifier: Apache-2.0
 *
 * Keyed bijections: a balanced Feistel network of 8 rounds over 2h bits, where 2h is the
 * smallest even number with 2^2h >= n, followed by cycle walking: values outside [0, n) are
 * fed back until they fall inside. Since the network permutes [0, 2^2h), the walk ends and
 * the result permutes [0, n). At most 4 steps on average (2^2h < 4n).
 *
 * n < 4 would leave halves of one bit, too few for the rounds to mix: such n use the network
 * of 4 bits (and walk a little longer).
 */
#include "base/perm.h"

#include <assert.h>

#include "base/hash.h"

#define ROUNDS 8
#define MIN_HALF_BITS 2

static uint32_t round_value(const leat__perm *p, int round, uint32_t half)
{
    /* One multiply-xorshift: 64-bit mixing of a word of at most 24 bits, taken from the top
     * where every input bit has arrived. */
    uint64_t x = (half ^ p->round_key[round]) * 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return (uint32_t)(x >> 40) & p->half_mask;
}

void leat__perm_init(leat__perm *p, uint64_t n, uint64_t key, uint64_t tweak)
{
    assert(n >= 1 && n <= LEAT__PERM_MAX);
    unsigned bits = n > 1 ? 64 - (unsigned)__builtin_clzll(n - 1) : 0;
    unsigned half = (bits + 1) / 2;
    if (half < MIN_HALF_BITS) half = MIN_HALF_BITS;
    p->n = n;
    p->half_bits = half;
    p->half_mask = (uint32_t)((UINT64_C(1) << half) - 1);
    uint64_t state = leat__mix64(key ^ 0x6c6561742d706572u) + leat__mix64(tweak + n);
    for (int round = 0; round < ROUNDS; round++) {
        state += 0x9e3779b97f4a7c15u;
        p->round_key[round] = leat__mix64(state ^ (key << 1 | key >> 63));
    }
}

uint64_t leat__perm_at(const leat__perm *p, uint64_t position)
{
    uint64_t x = position;

    assert(position < p->n);
    do {
        uint32_t left = (uint32_t)(x >> p->half_bits), right = (uint32_t)x & p->half_mask;
        for (int round = 0; round < ROUNDS; round++) {
            uint32_t next = left ^ round_value(p, round, right);
            left = right;
            right = next;
        }
        x = (uint64_t)left << p->half_bits | right;
    } while (x >= p->n);
    return x;
}

uint64_t leat__perm_find(const leat__perm *p, uint64_t element)
{
    uint64_t x = element;

    assert(element < p->n);
    do {
        uint32_t left = (uint32_t)(x >> p->half_bits), right = (uint32_t)x & p->half_mask;
        for (int round = ROUNDS - 1; round >= 0; round--) {
            uint32_t previous = right ^ round_value(p, round, left);
            right = left;
            left = previous;
        }
        x = (uint64_t)left << p->half_bits | right;
    } while (x >= p->n);
    return x;
}
