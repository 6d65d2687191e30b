/* SPDX-License-Identifier: Apache-2.0
 *
 * The warp kernels of x86, for the selection in warp.c.
 */
#ifndef LEAT_DSP_X86_WARP_X86_H
#define LEAT_DSP_X86_WARP_X86_H

#include "dsp/warp.h"
#include "probe/cpu.h"

extern const leat__warp_dsp leat__warp_avx2;
extern const leat__warp_dsp leat__warp_avx512;

#endif
