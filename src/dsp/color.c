/* SPDX-License-Identifier: Apache-2.0
 *
 * The portable colour kernels and the selection of a variant: see color.h. Pure functions.
 */
#include "dsp/color.h"

#include "dsp/color_tmpl.h"
#include "dsp/x86/color_x86.h"

static const leat__color_dsp color_c = {
    .isa = "scalar",
    .lut = tmpl_lut,
    COLOR_TMPL_MEMBERS,
};

const leat__color_dsp *leat__color_dsp_for(uint32_t cpu_flags)
{
    const leat__color_dsp *best = &color_c;
#ifdef LEAT_X86
    if (cpu_flags & LEAT__CPU_AVX2) best = &leat__color_avx2;
    if (cpu_flags & LEAT__CPU_AVX512ICL) best = &leat__color_avx512;
#endif
    return best;
}

void leat__blend_table(uint8_t table[256], uint8_t constant, float alpha)
{
    for (int v = 0; v < 256; v++) table[v] = tmpl_blend_one(constant, v, alpha);
}
