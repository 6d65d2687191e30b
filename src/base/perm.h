/* SPDX-License-Identifier: Apache-2.0
 *
 * Keyed bijections on [0, n), n up to 2^48: a shuffle that needs no array. Maps position to element and back
 * in O(1), as a pure function of (key, tweak, n). docs/internals/random.md explains how it works and why it
 * is uniform enough.
 */
#ifndef LEAT_BASE_PERM_H
#define LEAT_BASE_PERM_H

#include <stdint.h>

#define LEAT__PERM_MAX (UINT64_C(1) << 48)
#define LEAT__PERM_TABLE 64 /* up to this n the shuffle is stored as a table */

typedef struct leat__perm {
    uint64_t n;
    uint32_t left_bits, right_bits; /* 0: `table` holds the shuffle itself */
    union {
        uint64_t round_key[8];
        uint8_t table[LEAT__PERM_TABLE];
    };
} leat__perm;

/* Makes the permutation of n elements, n in [1, LEAT__PERM_MAX]. All bits of `key` and `tweak` are used. */
void leat__perm_init(leat__perm *p, uint64_t n, uint64_t key, uint64_t tweak);
uint64_t leat__perm_at(const leat__perm *p, uint64_t position);  /* position < n */
uint64_t leat__perm_find(const leat__perm *p, uint64_t element); /* its position; element < n */

#endif
