/* SPDX-License-Identifier: Apache-2.0
 *
 * The 16-bit inverse DCT on x86, for idct_fast.c. Each lives in a file compiled for its ISA:
 * call them only when the CPU has it. 2x2 and smaller stay portable: they are rare and cheap.
 */
#ifndef LEAT_DSP_X86_IDCT_FAST_H
#define LEAT_DSP_X86_IDCT_FAST_H

#include "dsp/idct_fast.h"

void leat__idct_fast_avx2(leat__idct_fast_dsp *dsp);
void leat__idct_fast_avx512(leat__idct_fast_dsp *dsp);

#endif
