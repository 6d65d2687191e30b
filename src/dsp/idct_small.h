/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverse DCT to smaller blocks, for components that will be reduced anyway: `shrink` is how often the
 * side of a block is halved. 8x8 is the exact transform (idct.h). 4x4, 2x2 and 1x1 samples are computed
 * from as many coefficients, in 16 bits, which costs little and filters better than dropping samples.
 * Every variant gives the same bits for any coefficients:
 *
 *   - coefficient x quantiser x 8, and all sums, modulo 2^16, signed;
 *   - products with cosines rounded to 16 bits: (x * k + 2^14) >> 15, which is pmulhrsw;
 *   - columns first; after the rows shifted right by 5 with rounding, clamped to 8 bits, plus 128.
 */
#ifndef LEAT_DSP_IDCT_SMALL_H
#define LEAT_DSP_IDCT_SMALL_H

#include "dsp/idct.h"

#define LEAT__IDCT_SHRINKS 4 /* 8x8, 4x4, 2x2, 1x1 */

/* Like leat__idct_dsp, indexed by shrink: a block gives (8 >> shrink) x (8 >> shrink) samples. Each row is
 * written up to the next multiple of four blocks. */
typedef struct leat__idct_small_dsp {
    leat__idct_area_fn area[LEAT__IDCT_SHRINKS];
    leat__idct_plain_fn plain[LEAT__IDCT_SHRINKS];
    const char *isa;
} leat__idct_small_dsp;

void leat__idct_small_init(leat__idct_small_dsp *dsp, uint32_t cpu_flags);

/* For AVX2, in a separate file. Also faster than AVX-512 where that is available. */
void leat__idct_small_avx2(leat__idct_small_dsp *dsp);

enum {
    IDCT_SMALL_C2 = 30274, /* cosines of 2, 4, 6 sixteenths of pi, with 15 fraction bits */
    IDCT_SMALL_C4 = 23170,
    IDCT_SMALL_C6 = 12540,
    IDCT_SMALL_BITS = 3,  /* fraction bits added to dequantised coefficients */
    IDCT_SMALL_SHIFT = 5, /* bits removed from samples: these, and one per pass */
};

#endif
