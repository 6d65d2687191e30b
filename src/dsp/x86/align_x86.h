/* SPDX-License-Identifier: Apache-2.0
 *
 * The x86 kernels, for the selection in align.c, and the code they share.
 */
#ifndef LEAT_DSP_X86_ALIGN_X86_H
#define LEAT_DSP_X86_ALIGN_X86_H

#include "dsp/align.h"
#include "probe/cpu.h"

extern const leat__align_dsp leat__align_avx2;
extern const leat__align_dsp leat__align_avx512;

#endif
