/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of x86, for the choice in align.c, and what they share.
 */
#ifndef LEAT_DSP_X86_ALIGN_X86_H
#define LEAT_DSP_X86_ALIGN_X86_H

#include "dsp/align.h"
#include "probe/cpu.h"

extern const leat__align_dsp leat__align_avx2;
extern const leat__align_dsp leat__align_avx512;

#endif
