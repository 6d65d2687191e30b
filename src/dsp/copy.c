/* SPDX-License-Identifier: Apache-2.0
 *
 * The portable copy and the selection of a variant: see copy.h.
 */
#include "dsp/copy.h"

#include <string.h>

#include "dsp/x86/copy_x86.h"

static void out_c(uint8_t *to, const uint8_t *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static const leat__copy_dsp copy_c = {.isa = "scalar", .out = out_c};

const leat__copy_dsp *leat__copy_dsp_for(uint32_t cpu_flags)
{
    const leat__copy_dsp *best = &copy_c;
#ifdef LEAT_X86
    if (cpu_flags & LEAT__CPU_AVX2) best = &leat__copy_avx2;
    if (cpu_flags & LEAT__CPU_AVX512ICL) best = &leat__copy_avx512;
#endif
    return best;
}
