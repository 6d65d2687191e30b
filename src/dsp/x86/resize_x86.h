/* SPDX-License-Identifier: Apache-2.0
 *
 * The resize kernels of x86, for the selection in resize.c. Each is in a file compiled for its ISA: call it
 * only if the CPU supports that ISA.
 */
#ifndef LEAT_DSP_X86_RESIZE_X86_H
#define LEAT_DSP_X86_RESIZE_X86_H

#include "dsp/resize.h"
#include "probe/cpu.h"

extern const leat__resize_dsp leat__resize_avx2;
extern const leat__resize_dsp leat__resize_avx512;

#endif
