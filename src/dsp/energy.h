/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of squares of the quantised coefficients of many blocks, separately for each frequency. Sums are
 * modulo 2^32, so they are the same in every variant for any coefficients.
 */
#ifndef LEAT_DSP_ENERGY_H
#define LEAT_DSP_ENERGY_H

#include "dsp/idct.h"

typedef struct leat__energy_dsp {
    const char *isa;
    /* Adds the squares of `count` plain blocks to sum, which is in natural (row by row) order. */
    void (*plain)(uint32_t sum[64], const int16_t *blocks, uint32_t count);
    /* Adds the squares of a rectangle of sparse blocks, by position in the bitmap (leat__tile_order). sum[0]
     * gets the squares of differences, because DC coefficients are predicted. */
    void (*area)(uint32_t sum[64], const leat__tile_coefs *coefs, const leat__idct_area *area);
} leat__energy_dsp;

const leat__energy_dsp *leat__energy_dsp_for(uint32_t cpu_flags);

#endif
