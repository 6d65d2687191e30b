/* SPDX-License-Identifier: Apache-2.0
 *
 * The component resize on x86, for the selection in ycc_resize.c. Each kernel is in a file compiled for its
 * ISA: call it only if the CPU supports that ISA.
 */
#ifndef LEAT_DSP_X86_YCC_RESIZE_X86_H
#define LEAT_DSP_X86_YCC_RESIZE_X86_H

#include "dsp/ycc_resize.h"
#include "probe/cpu.h"

extern const leat__ycc_resize_dsp leat__ycc_resize_avx2;
extern const leat__ycc_resize_dsp leat__ycc_resize_avx512;

#endif
