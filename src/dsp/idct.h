/* SPDX-License-Identifier: Apache-2.0
 *
 * Dequantises and inverts the DCT of sparse or plain blocks, to 8-bit samples. Equal in every bit to
 * libjpeg-turbo's ISLOW for coefficients that a JPEG encoder can produce. For all others the result is
 * still defined, and the same in every variant:
 *
 *   - coefficient x quantiser, and the two sums of odd coefficients (1 + 5, 3 + 7), modulo
 *     2^16, signed;
 *   - products and sums inside a pass modulo 2^32, signed;
 *   - after pass 1 (columns) shifted right by 11 with rounding, clamped to 16 bits;
 *   - after pass 2 (rows) shifted right by 18 with rounding, clamped to 8 bits, plus 128.
 */
#ifndef LEAT_DSP_IDCT_H
#define LEAT_DSP_IDCT_H

#include <stddef.h>
#include <stdint.h>

#include "dsp/tile_entropy.h"

/* A rectangle of blocks of a tile. */
typedef struct leat__idct_area {
    uint32_t first;      /* top left block */
    uint32_t wide, high; /* blocks, at most LEAT__IDCT_AREA_SIDE each */
    uint32_t pitch;      /* blocks from one row to the next */
} leat__idct_area;

#define LEAT__IDCT_AREA_SIDE 8 /* as in a tile */

/* Transforms blocks of `coefs` to 8 * high rows of 8 * wide samples at dst. Kernels process up to four blocks
 * at a time, so each row is written up to the next multiple of 32 samples. quant: row by row. */
typedef void (*leat__idct_area_fn)(uint8_t *dst, size_t stride, const leat__tile_coefs *coefs,
                                   const leat__idct_area *area, const uint16_t quant[64]);

/* Transforms `count` adjacent plain blocks of 64 coefficients each, row by row, to samples side by side.
 * last: for each block, a zigzag position after which all coefficients are zero. Up to LEAT__IDCT_BLOCKS_PAD
 * blocks past the last are read (and not used). */
typedef void (*leat__idct_plain_fn)(uint8_t *dst, size_t stride, const int16_t *blocks, const uint8_t *last,
                                    uint32_t count, const uint16_t quant[64]);

#define LEAT__IDCT_BLOCKS_PAD 3
#define LEAT__IDCT_CORNER_LAST 9 /* positions up to here are in the 4x4 corner */
#define LEAT__IDCT_ROUND 32      /* samples: count * 8 is rounded up to a multiple of this */

typedef struct leat__idct_dsp {
    leat__idct_area_fn area;
    leat__idct_plain_fn plain;
    const char *isa;
} leat__idct_dsp;

void leat__idct_init(leat__idct_dsp *dsp, uint32_t cpu_flags);

/* Expands block b of `coefs` to 64 quantised coefficients, row by row. */
void leat__tile_block_expand(int16_t out[64], const leat__tile_coefs *coefs, uint32_t b);

#endif
