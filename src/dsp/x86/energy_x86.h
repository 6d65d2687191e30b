/* SPDX-License-Identifier: Apache-2.0
 *
 * The sums of squares of x86, for the selection in energy.c.
 */
#ifndef LEAT_DSP_X86_ENERGY_X86_H
#define LEAT_DSP_X86_ENERGY_X86_H

#include "dsp/energy.h"
#include "probe/cpu.h"

extern const leat__energy_dsp leat__energy_avx2;
extern const leat__energy_dsp leat__energy_avx512;

#endif
