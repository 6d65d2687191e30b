/* SPDX-License-Identifier: Apache-2.0
 *
 * The x86 variants of the tile decoder's kernels and who gets them: ladders that return early,
 * weakest first. Included only by the portable files of each family.
 */
#ifndef LEAT_DSP_X86_TILE_X86_H
#define LEAT_DSP_X86_TILE_X86_H

#include "dsp/idct.h"
#include "dsp/tile_entropy.h"
#include "dsp/ycc.h"
#include "probe/cpu.h"

static inline void leat__tile_entropy_init_x86(leat__tile_entropy_dsp *dsp, uint32_t flags)
{
    if (!(flags & LEAT__CPU_AVX2)) return;
}

static inline void leat__idct_init_x86(leat__idct_dsp *dsp, uint32_t flags)
{
    if (!(flags & LEAT__CPU_AVX2)) return;
}

static inline void leat__ycc_init_x86(leat__ycc_dsp *dsp, uint32_t flags)
{
    if (!(flags & LEAT__CPU_AVX2)) return;
}

#endif
