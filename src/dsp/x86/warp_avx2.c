/* SPDX-License-Identifier: Apache-2.0
 *
 * The warp kernels compiled for AVX2.
 */
#include "dsp/x86/warp_move.h"

const leat__warp_dsp leat__warp_avx2 = {.isa = "avx2", WARP_MOVE_MEMBERS, WARP_TMPL_MEMBERS};
