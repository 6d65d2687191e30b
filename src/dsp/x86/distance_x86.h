/* SPDX-License-Identifier: Apache-2.0
 *
 * The distance kernels of x86, for the selection in distance.c.
 */
#ifndef LEAT_DSP_X86_DISTANCE_X86_H
#define LEAT_DSP_X86_DISTANCE_X86_H

#include "dsp/distance.h"
#include "probe/cpu.h"

extern const leat__distance_dsp leat__distance_avx2;
extern const leat__distance_dsp leat__distance_avx512;

#endif
