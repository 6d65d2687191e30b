/* SPDX-License-Identifier: Apache-2.0
 *
 * The distance kernel compiled for AVX-512.
 */
#include "dsp/x86/distance_x86.h"

#include "dsp/distance_tmpl.h"

const leat__distance_dsp leat__distance_avx512 = {.isa = "avx512", .rows = tmpl_rows};
