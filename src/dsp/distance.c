/* SPDX-License-Identifier: Apache-2.0
 *
 * The portable distance kernel and the selection of a variant: see distance.h.
 */
#include "dsp/distance.h"

#include "dsp/distance_tmpl.h"
#include "dsp/x86/distance_x86.h"

static const leat__distance_dsp distance_c = {.isa = "scalar", .rows = tmpl_rows};

const leat__distance_dsp *leat__distance_dsp_for(uint32_t cpu_flags)
{
    const leat__distance_dsp *best = &distance_c;
#ifdef LEAT_X86
    if (cpu_flags & LEAT__CPU_AVX2) best = &leat__distance_avx2;
    if (cpu_flags & LEAT__CPU_AVX512ICL) best = &leat__distance_avx512;
#endif
    return best;
}
