/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects the variant for this CPU.
 */
#include "text/text_dsp.h"

#include "probe/cpu.h"

const leat__text_dsp *leat__text_dsp_for(uint32_t cpu_flags)
{
#ifdef LEAT_X86
    if (cpu_flags & LEAT__CPU_AVX512ICL) return &leat__text_avx512;
    if (cpu_flags & LEAT__CPU_AVX2) return &leat__text_avx2;
#endif
    return &leat__text_c;
}

const leat__text_dsp *leat__text_dsp_now(void)
{
    return leat__text_dsp_for(leat__cpu_flags());
}
