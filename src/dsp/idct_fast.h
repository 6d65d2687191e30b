/* SPDX-License-Identifier: Apache-2.0
 *
 * Dequantise and inverse DCT in 16 bits, for `like=fast`: within one level of the exact one
 * (idct.h) for coefficients that a JPEG encoder can produce, and the same bits in every variant:
 *
 *   - coefficient x quantiser x 8, and all sums, modulo 2^16, signed;
 *   - products with cosines rounded to 16 bits: (x * k + 2^14) >> 15, which is pmulhrsw;
 *   - columns first; after the rows shifted right by 5 with rounding, clamped to 8 bits.
 *
 * Samples are signed, centred at 0: what ycc_resize.h works on. `shrink` halves the size of the
 * block that often: 4x4 or 2x2 samples from as many coefficients, or the mean alone. For images
 * that are to be made much smaller, this costs little and is a better filter than leaving out.
 */
#ifndef LEAT_DSP_IDCT_FAST_H
#define LEAT_DSP_IDCT_FAST_H

#include <stddef.h>
#include <stdint.h>

#include "dsp/tile_entropy.h"

#define LEAT__IDCT_SHRINKS 4 /* 8x8, 4x4, 2x2, 1x1 */

/* Blocks first .. first+count-1 of `coefs`, side by side: 8 >> shrink rows of as many samples each
 * at dst. Kernels work on up to four blocks at a time: each row is written up to the next
 * multiple of four blocks. quant: row by row. */
typedef void (*leat__idct_fast_row_fn)(int8_t *dst, size_t stride, const leat__tile_coefs *coefs,
                                       uint32_t first, uint32_t count, const uint16_t quant[64]);

/* The same of plain blocks; as leat__idct_plain_fn, with its padding of the input. */
typedef void (*leat__idct_fast_plain_fn)(int8_t *dst, size_t stride, const int16_t *blocks,
                                         const uint8_t *last, uint32_t count,
                                         const uint16_t quant[64]);

typedef struct leat__idct_fast_dsp {
    leat__idct_fast_row_fn row[LEAT__IDCT_SHRINKS]; /* by shrink */
    leat__idct_fast_plain_fn plain[LEAT__IDCT_SHRINKS];
    const char *isa;
} leat__idct_fast_dsp;

void leat__idct_fast_init(leat__idct_fast_dsp *dsp, uint32_t cpu_flags);

/* Cosines of multiples of pi / 16, 15 bits after the point. */
enum {
    IDCT_FAST_C1 = 32138,
    IDCT_FAST_C2 = 30274,
    IDCT_FAST_C3 = 27246,
    IDCT_FAST_C4 = 23170,
    IDCT_FAST_C5 = 18205,
    IDCT_FAST_C6 = 12540,
    IDCT_FAST_C7 = 6393,
    IDCT_FAST_BITS = 3,  /* added to dequantised coefficients */
    IDCT_FAST_SHIFT = 5, /* taken off samples: the above, and 2 of each pass */
};

/* x k, rounded. */
static inline int16_t leat__idct_fast_mul(int16_t x, int16_t k)
{
    return (int16_t)((x * k + (1 << 14)) >> 15);
}

static inline int8_t leat__idct_fast_sample(int16_t v)
{
    const int32_t s = (v + (1 << (IDCT_FAST_SHIFT - 1))) >> IDCT_FAST_SHIFT;
    return (int8_t)(s < INT8_MIN ? INT8_MIN : s > INT8_MAX ? INT8_MAX : s);
}

/* Sample of a block that is only its mean; `dc` is quantised. */
static inline int8_t leat__idct_fast_flat(int16_t dc, uint16_t quant)
{
    const int16_t x = (int16_t)(uint16_t)((uint32_t)dc * quant << IDCT_FAST_BITS);
    return leat__idct_fast_sample(
        leat__idct_fast_mul(leat__idct_fast_mul(x, IDCT_FAST_C4), IDCT_FAST_C4));
}

#endif
