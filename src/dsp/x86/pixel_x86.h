/* SPDX-License-Identifier: Apache-2.0
 *
 * The row writers of x86, for the selection in pixel.c.
 */
#ifndef LEAT_DSP_X86_PIXEL_X86_H
#define LEAT_DSP_X86_PIXEL_X86_H

#include "dsp/pixel.h"
#include "probe/cpu.h"

extern const leat__pixel_dsp leat__pixel_avx2;
extern const leat__pixel_dsp leat__pixel_avx512;

#endif
