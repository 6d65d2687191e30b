/* SPDX-License-Identifier: Apache-2.0
 *
 * Squared Euclidean distances between vectors of floats. A distance is the sum of sixteen partial sums,
 * added in a fixed order without fused operations, so every variant gives the same bits.
 */
#ifndef LEAT_DSP_DISTANCE_H
#define LEAT_DSP_DISTANCE_H

#include <stddef.h>
#include <stdint.h>

#define LEAT__DISTANCE_LANES 16

typedef struct leat__distance_dsp {
    const char *isa;
    /* out[i]: distance between `a` and row i of `b`, whose rows are adjacent. `dim` is a multiple of
     * LEAT__DISTANCE_LANES. */
    void (*rows)(const float *a, const float *b, size_t dim, size_t count, float *out);
} leat__distance_dsp;

const leat__distance_dsp *leat__distance_dsp_for(uint32_t cpu_flags);

#endif
