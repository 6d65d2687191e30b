/* SPDX-License-Identifier: Apache-2.0
 *
 * The component resize on x86, for the ladder in ycc_resize.c. Each lives in a file compiled for
 * its ISA: call them only when the CPU has it.
 */
#ifndef LEAT_DSP_X86_YCC_RESIZE_X86_H
#define LEAT_DSP_X86_YCC_RESIZE_X86_H

#include "dsp/ycc_resize.h"
#include "probe/cpu.h"

extern const leat__ycc_resize_dsp leat__ycc_resize_avx2;
extern const leat__ycc_resize_dsp leat__ycc_resize_avx512;

#endif
