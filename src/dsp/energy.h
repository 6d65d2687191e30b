/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of squares of the quantised coefficients of many blocks, apart for each frequency. Sums are
 * modulo 2^32: the same in every variant, whatever the coefficients.
 */
#ifndef LEAT_DSP_ENERGY_H
#define LEAT_DSP_ENERGY_H

#include "dsp/idct.h"

typedef struct leat__energy_dsp {
    const char *isa;
    /* Adds the squares of `count` plain blocks to sum, row by row. */
    void (*plain)(uint32_t sum[64], const int16_t *blocks, uint32_t count);
    /* The same for a rectangle of sparse blocks, by place in the bitmap (leat__tile_order). sum[0] gets
     * the squares of differences: DC coefficients are predicted. */
    void (*area)(uint32_t sum[64], const leat__tile_coefs *coefs, const leat__idct_area *area);
} leat__energy_dsp;

const leat__energy_dsp *leat__energy_dsp_for(uint32_t cpu_flags);

#endif
