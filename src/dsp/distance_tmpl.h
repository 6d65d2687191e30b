/* SPDX-License-Identifier: Apache-2.0
 *
 * The distance kernel, compiled once per ISA. Vectors of 64 bytes take as many registers as the ISA needs.
 */
#ifndef LEAT_DSP_DISTANCE_TMPL_H
#define LEAT_DSP_DISTANCE_TMPL_H

#include <string.h>

#include "dsp/distance.h"

typedef float tmpl_lanes __attribute__((vector_size(4 * LEAT__DISTANCE_LANES)));

#define TMPL_LOAD(to, from) memcpy(&(to), (from), sizeof(to))

static inline float tmpl_sum(const float *lane)
{
    float half[LEAT__DISTANCE_LANES / 2];
    for (int i = 0; i < 8; i++) half[i] = lane[i] + lane[i + 8];
    for (int i = 0; i < 4; i++) half[i] += half[i + 4];
    return (half[0] + half[2]) + (half[1] + half[3]);
}

static inline void tmpl_distance(const float *a, const float *b, size_t dim, size_t count, float *out)
{
    float sums[2][LEAT__DISTANCE_LANES];
    size_t row = 0;
    for (; row + 2 <= count; row += 2, b += 2 * dim) { /* two rows share the loads of `a` */
        tmpl_lanes s0 = {0}, s1 = {0};
        for (size_t i = 0; i < dim; i += LEAT__DISTANCE_LANES) {
            tmpl_lanes x, y, z;
            TMPL_LOAD(x, a + i);
            TMPL_LOAD(y, b + i);
            TMPL_LOAD(z, b + dim + i);
            y = x - y;
            z = x - z;
            s0 = s0 + y * y;
            s1 = s1 + z * z;
        }
        memcpy(sums[0], &s0, sizeof s0);
        memcpy(sums[1], &s1, sizeof s1);
        out[row] = tmpl_sum(sums[0]);
        out[row + 1] = tmpl_sum(sums[1]);
    }
    if (row == count) return;
    tmpl_lanes s0 = {0};
    for (size_t i = 0; i < dim; i += LEAT__DISTANCE_LANES) {
        tmpl_lanes x, y;
        TMPL_LOAD(x, a + i);
        TMPL_LOAD(y, b + i);
        y = x - y;
        s0 = s0 + y * y;
    }
    memcpy(sums[0], &s0, sizeof s0);
    out[row] = tmpl_sum(sums[0]);
}

static void tmpl_rows(const float *a, const float *b, size_t dim, size_t count, float *out)
{
    tmpl_distance(a, b, dim, count, out);
}

#endif
