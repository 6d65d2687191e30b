/* SPDX-License-Identifier: Apache-2.0
 *
 * The colour kernels of x86, for the selection in color.c.
 */
#ifndef LEAT_DSP_X86_COLOR_X86_H
#define LEAT_DSP_X86_COLOR_X86_H

#include "dsp/color.h"
#include "probe/cpu.h"

extern const leat__color_dsp leat__color_avx2;
extern const leat__color_dsp leat__color_avx512;

#endif
