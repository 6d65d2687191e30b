/* SPDX-License-Identifier: Apache-2.0
 *
 * The copies of x86, for the selection in copy.c.
 */
#ifndef LEAT_DSP_X86_COPY_X86_H
#define LEAT_DSP_X86_COPY_X86_H

#include "dsp/copy.h"
#include "probe/cpu.h"

extern const leat__copy_dsp leat__copy_avx2;
extern const leat__copy_dsp leat__copy_avx512;

#endif
