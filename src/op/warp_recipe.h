/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotations and affine maps as steps, for the warp ops and the policies. Pure functions.
 */
#ifndef LEAT_OP_WARP_RECIPE_H
#define LEAT_OP_WARP_RECIPE_H

#include "base/param.h"
#include "op/step.h"

/* Interpolation and fill outside the image: common to all maps. */
typedef struct leat__warp_style {
    leat__filter filter; /* nearest, bilinear or bicubic */
    float fill[LEAT__CHANNELS_MAX];
} leat__warp_style;
#define LEAT__WARP_CHOICES "nearest|bilinear|bicubic"

leat__warp_style leat__warp_style_of(const leat__value *interpolation, const leat__value *fill);

/* Rotates by counter-clockwise degrees around `center` (NULL: the centre of the image), like Image.rotate. */
int leat__recipe_rotate(leat__recipe *r, double degrees, bool expand, const double *center,
                        const leat__warp_style *style, leat_error *err) LEAT_MUST_CHECK;

/* Parameters of torchvision's affine on PIL images: clockwise degrees, pixels, factor, degrees. */
typedef struct leat__affine {
    double angle, translate[2], scale, shear[2];
    const double *center; /* NULL: the centre of the image */
} leat__affine;
int leat__recipe_affine(leat__recipe *r, const leat__affine *a, const leat__warp_style *style,
                        leat_error *err) LEAT_MUST_CHECK;

#endif
