/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects the x86 variants of the tile decoder's kernels: functions that return early, from the lowest ISA
 * to the highest. Included only by the portable file of each family. AVX-512 here requires VBMI and VBMI2:
 * without them there is no vpexpandb, and the AVX2 kernels are faster.
 */
#ifndef LEAT_DSP_X86_TILE_X86_H
#define LEAT_DSP_X86_TILE_X86_H

#include "dsp/x86/tile_variants.h"
#include "probe/cpu.h"

static inline void leat__tile_entropy_init_x86(leat__tile_entropy_dsp *dsp, uint32_t flags)
{
    if (!(flags & LEAT__CPU_AVX2)) return;
    bool slow_pdep = (flags & LEAT__CPU_SLOW_PDEP) != 0;
    dsp->decode = slow_pdep ? leat__tile_decode_avx2_shuffle : leat__tile_decode_avx2;
    dsp->isa = slow_pdep ? "avx2 without pdep" : "avx2";

    if (!(flags & LEAT__CPU_AVX512ICL)) return;
    dsp->decode = leat__tile_decode_avx512;
    dsp->isa = "avx512";
}

static inline void leat__tile_pack_init_x86(leat__tile_pack_dsp *dsp, uint32_t flags)
{
    if (!(flags & LEAT__CPU_AVX2)) return;
    dsp->take = leat__tile_take_avx2;
    dsp->order = leat__tile_order_avx2;
    dsp->same = leat__tile_same_avx2;
    dsp->isa = "avx2 without pext";
    if (!(flags & LEAT__CPU_SLOW_PDEP)) {
        dsp->put_values = leat__tile_put_values_avx2;
        dsp->isa = "avx2";
    }

    if (!(flags & LEAT__CPU_AVX512ICL)) return;
    dsp->take = leat__tile_take_avx512;
    dsp->put_values = leat__tile_put_values_avx512;
    dsp->order = leat__tile_order_avx512;
    dsp->same = leat__tile_same_avx512;
    dsp->isa = "avx512";
}

static inline void leat__idct_init_x86(leat__idct_dsp *dsp, uint32_t flags)
{
    if (!(flags & LEAT__CPU_AVX2)) return;
    dsp->area = leat__idct_area_avx2;
    dsp->plain = leat__idct_plain_avx2;
    dsp->isa = "avx2";

    if (!(flags & LEAT__CPU_AVX512ICL)) return;
    dsp->area = leat__idct_area_avx512;
    dsp->plain = leat__idct_plain_avx512;
    dsp->isa = "avx512";
}

/* Repeating samples is portable only: it is for the rare 4:1:1 and for images of a few columns. */
static inline void leat__ycc_init_x86(leat__ycc_dsp *dsp, uint32_t flags)
{
    if (!(flags & LEAT__CPU_AVX2)) return;
    dsp->h2v1 = leat__up_h2v1_avx2;
    dsp->h2v2 = leat__up_h2v2_avx2;
    dsp->h1v2 = leat__up_h1v2_avx2;
    dsp->rgb = leat__ycc_rgb_avx2;
    dsp->isa = "avx2";

    if (!(flags & LEAT__CPU_AVX512ICL)) return;
    dsp->h2v1 = leat__up_h2v1_avx512;
    dsp->h2v2 = leat__up_h2v2_avx512;
    dsp->h1v2 = leat__up_h1v2_avx512;
    dsp->rgb = leat__ycc_rgb_avx512;
    dsp->isa = "avx512";
}

#endif
