/* SPDX-License-Identifier: Apache-2.0
 *
 * Keyed bijections. Pure functions; docs/internals/random.md has the measurements.
 *
 * Above 64 elements: a Feistel network over the bits of n - 1, split into a left and a right part
 * that differ by at most one bit. Rounds alternate: one part is XORed with a keyed function of
 * the other. Results >= n are fed back until they are below n (cycle walking). As the network
 * permutes [0, 2^bits), the walk ends and the result permutes [0, n). 2^bits < 2n, so the mean is
 * below two steps.
 *
 * Up to 64 elements a network is too narrow to mix well (its permutations are biased: at n = 2 by almost 1
 * %). There a Fisher-Yates shuffle is drawn once into the table.
 */
#include "base/perm.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/rng.h"

#define ROUNDS 8

static void fill_table(leat__perm *p, uint64_t key)
{
    leat__rng r;

    leat__rng_init(&r, key, 0, p->n, 0x7065);
    for (uint64_t i = 0; i < p->n; i++) p->table[i] = (uint8_t)i;
    for (uint64_t i = p->n; i > 1; i--) {
        uint64_t k = leat__rng_below(&r, i);
        uint8_t swap = p->table[i - 1];
        p->table[i - 1] = p->table[k];
        p->table[k] = swap;
    }
}

void leat__perm_init(leat__perm *p, uint64_t n, uint64_t key, uint64_t tweak)
{
    LEAT_ASSERT(n >= 1 && n <= LEAT__PERM_MAX);
    uint64_t state = leat__mix64(key ^ 0x6c6561742d706572u) ^ leat__mix64(tweak + 0x9e3779b97f4a7c15u) * 3;
    *p = (leat__perm){.n = n};
    if (n <= LEAT__PERM_TABLE) {
        fill_table(p, state);
        return;
    }
    uint32_t bits = 64 - (uint32_t)__builtin_clzll(n - 1);
    p->left_bits = bits / 2;
    p->right_bits = bits - p->left_bits;
    LEAT_ASSERT(p->left_bits <= p->right_bits && p->right_bits <= 24);
    for (int round = 0; round < ROUNDS; round++) {
        state += 0x9e3779b97f4a7c15u;
        p->round_key[round] = leat__mix64(state);
    }
}

/* The round function: 24 keyed bits for a half of at most 24 bits. They are the top bits, which depend on all
 * input bits. */
static inline uint64_t round_value(uint64_t key, uint64_t half)
{
    uint64_t x = (half ^ key) * 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return x >> 40;
}

uint64_t leat__perm_at(const leat__perm *p, uint64_t position)
{
    LEAT_ASSERT(position < p->n);
    if (p->right_bits == 0) return p->table[position];

    uint64_t left_mask = (UINT64_C(1) << p->left_bits) - 1;
    uint64_t right_mask = (UINT64_C(1) << p->right_bits) - 1;
    uint64_t x = position;
    do {
        uint64_t left = x >> p->right_bits, right = x & right_mask;
        for (int round = 0; round < ROUNDS; round += 2) {
            left ^= round_value(p->round_key[round], right) & left_mask;
            right ^= round_value(p->round_key[round + 1], left) & right_mask;
        }
        x = left << p->right_bits | right;
    } while (x >= p->n);
    return x;
}

/* Runs the rounds backwards. Cycle walking then passes through the same values >= n in reverse order. */
uint64_t leat__perm_find(const leat__perm *p, uint64_t element)
{
    LEAT_ASSERT(element < p->n);
    if (p->right_bits == 0) {
        uint64_t at = 0;
        while (p->table[at] != element) at++;
        return at;
    }

    uint64_t left_mask = (UINT64_C(1) << p->left_bits) - 1;
    uint64_t right_mask = (UINT64_C(1) << p->right_bits) - 1;
    uint64_t x = element;
    do {
        uint64_t left = x >> p->right_bits, right = x & right_mask;
        for (int round = ROUNDS - 2; round >= 0; round -= 2) {
            right ^= round_value(p->round_key[round + 1], left) & right_mask;
            left ^= round_value(p->round_key[round], right) & left_mask;
        }
        x = left << p->right_bits | right;
    } while (x >= p->n);
    return x;
}
