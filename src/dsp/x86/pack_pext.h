/* SPDX-License-Identifier: Apache-2.0
 *
 * Extra bits of four values at once: gathered by pext for AVX2, and written by both x86 variants of
 * packing.
 */
#ifndef LEAT_DSP_X86_PACK_PEXT_H
#define LEAT_DSP_X86_PACK_PEXT_H

#include <immintrin.h>

#include "dsp/tile_pack_tmpl.h"

/* Some bits, lowest first, and their number. */
typedef struct pext_bits {
    uint64_t value;
    uint32_t n;
} pext_bits;

/* Gathers the bits of four values that are set in `ones`. */
PACK_INLINE pext_bits pext_four(const uint16_t *extra, const uint16_t *ones)
{
    uint64_t which, bits;
    memcpy(&which, ones, sizeof which);
    memcpy(&bits, extra, sizeof bits);
    return (pext_bits){_pext_u64(bits, which), (uint32_t)_mm_popcnt_u64(which)};
}

PACK_INLINE pext_bits pext_join(pext_bits a, pext_bits b)
{
    return (pext_bits){a.value | b.value << (a.n & 63), a.n + b.n};
}

PACK_INLINE void pack_four(pack_bits *b, pext_bits four)
{
    uint32_t half = four.n / 2;
    if (__builtin_expect(four.n > 56, 0)) { /* too many in addition to seven waiting bits */
        pack_put(b, _bzhi_u64(four.value, half), half);
        pack_spill(b);
        four.value >>= half;
        four.n -= half;
    }
    pack_put(b, four.value, four.n);
    pack_spill(b);
}

/* Writes sixteen values. They usually fit into one step of the dependency chain from byte to byte. */
PACK_INLINE void pack_sixteen(pack_bits *b, const uint16_t *extra, const uint16_t *ones)
{
    pext_bits four[4];
    for (uint32_t i = 0; i < 4; i++) four[i] = pext_four(extra + 4 * i, ones + 4 * i);
    pext_bits low = pext_join(four[0], four[1]), high = pext_join(four[2], four[3]);
    if (__builtin_expect(low.n + high.n <= 56, 1)) {
        pext_bits all = pext_join(low, high);
        pack_put(b, all.value, all.n);
        pack_spill(b);
    } else {
        for (uint32_t i = 0; i < 4; i++) pack_four(b, four[i]);
    }
}

#endif
