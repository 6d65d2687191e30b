/* SPDX-License-Identifier: Apache-2.0
 *
 * Extra bits by pext, four values at a time: what both x86 variants of packing share.
 */
#ifndef LEAT_DSP_X86_PACK_PEXT_H
#define LEAT_DSP_X86_PACK_PEXT_H

#include <immintrin.h>

#include "dsp/tile_pack_tmpl.h"

/* `ones` says which bits of the values count. */
PACK_INLINE void pack_four(pack_bits *b, const uint16_t *extra, const uint16_t *ones)
{
    uint64_t which, bits;
    memcpy(&which, ones, sizeof which);
    memcpy(&bits, extra, sizeof bits);
    uint64_t value = _pext_u64(bits, which);
    uint32_t n = (uint32_t)_mm_popcnt_u64(which), half = n / 2;
    if (__builtin_expect(n > 56, 0)) { /* too many beside seven that wait */
        pack_put(b, _bzhi_u64(value, half), half);
        pack_spill(b);
        value >>= half;
        n -= half;
    }
    pack_put(b, value, n);
    pack_spill(b);
}

#endif
