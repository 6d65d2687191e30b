/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverse DCT to blocks of any size, for components that are to be made smaller anyway: `shrink`
 * halves the side of a block that often. 8x8 is the exact transform (idct.h); 4x4, 2x2 and 1x1
 * samples are made of as many coefficients, in 16 bits, which costs little and filters better
 * than leaving samples out. The same bits in every variant, whatever the coefficients:
 *
 *   - coefficient x quantiser x 8, and all sums, modulo 2^16, signed;
 *   - products with cosines rounded to 16 bits: (x * k + 2^14) >> 15, which is pmulhrsw;
 *   - columns first; after the rows shifted right by 5 with rounding, clamped to 8 bits, plus 128.
 */
#ifndef LEAT_DSP_IDCT_SMALL_H
#define LEAT_DSP_IDCT_SMALL_H

#include "dsp/idct.h"

#define LEAT__IDCT_SHRINKS 4 /* 8x8, 4x4, 2x2, 1x1 */

/* As leat__idct_dsp, indexed by shrink: a block gives (8 >> shrink) x (8 >> shrink) samples. Each row
 * is written up to the next multiple of four blocks. */
typedef struct leat__idct_small_dsp {
    leat__idct_area_fn area[LEAT__IDCT_SHRINKS];
    leat__idct_plain_fn plain[LEAT__IDCT_SHRINKS];
    const char *isa;
} leat__idct_small_dsp;

void leat__idct_small_init(leat__idct_small_dsp *dsp, uint32_t cpu_flags);

/* For AVX2, in a separate file; it is also the faster one on AVX-512. */
void leat__idct_small_avx2(leat__idct_small_dsp *dsp);

enum {
    IDCT_SMALL_C2 = 30274, /* cosines of 2, 4, 6 sixteenths of pi, 15 bits after the point */
    IDCT_SMALL_C4 = 23170,
    IDCT_SMALL_C6 = 12540,
    IDCT_SMALL_BITS = 3,  /* added to dequantised coefficients */
    IDCT_SMALL_SHIFT = 5, /* taken off samples: these, and one of each pass */
};

#endif
