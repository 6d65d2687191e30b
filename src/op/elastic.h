/* SPDX-License-Identifier: Apache-2.0
 *
 * The shifts of ElasticTransform, computed as in torchvision: uniform noise, blurred, times alpha. The
 * noise is a hash of the pixel's number, so the shift of one pixel can be computed without the whole field.
 * Boxes and points need only a few. Pure functions; the same bits on every instruction set.
 */
#ifndef LEAT_OP_ELASTIC_H
#define LEAT_OP_ELASTIC_H

#include "op/step.h"

#define LEAT__ELASTIC_SIGMA_MAX 64
enum { LEAT__ELASTIC_TAPS_MAX = 8 * LEAT__ELASTIC_SIGMA_MAX + 1 };

/* The shift along one axis: 0 = x, 1 = y. */
typedef struct leat__elastic {
    uint32_t width, height, taps;
    int axis;
    uint64_t seed;
    float scale;                             /* factor for the blurred noise, in pixels */
    float kernel[2][LEAT__ELASTIC_TAPS_MAX]; /* along x and along y */
} leat__elastic;

/* `s` must be an ELASTIC step for an image of this size. */
void leat__elastic_init(leat__elastic *e, const leat__step *s, uint32_t width, uint32_t height, int axis);

/* Returns the distance from (x, y) to the source of the pixel shown there, along the axis, in pixels. */
float leat__elastic_at(const leat__elastic *e, uint32_t x, uint32_t y);

#endif
