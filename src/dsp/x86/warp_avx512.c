/* SPDX-License-Identifier: Apache-2.0
 *
 * The warp kernels compiled for AVX-512.
 */
#include "dsp/x86/warp_move.h"

const leat__warp_dsp leat__warp_avx512 = {.isa = "avx512", WARP_MOVE_MEMBERS, WARP_TMPL_MEMBERS};
