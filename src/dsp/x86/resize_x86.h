/* SPDX-License-Identifier: Apache-2.0
 *
 * The resize kernels of x86, for the ladder in resize.c. Each lives in a file compiled for its
 * ISA: call them only when the CPU has it.
 */
#ifndef LEAT_DSP_X86_RESIZE_X86_H
#define LEAT_DSP_X86_RESIZE_X86_H

#include "dsp/resize.h"
#include "probe/cpu.h"

extern const leat__resize_dsp leat__resize_avx2;
extern const leat__resize_dsp leat__resize_avx512;

#endif
