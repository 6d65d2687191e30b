/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves boxes and points of an image by a recipe's geometry. Arithmetic is in float, step by step, as in
 * torchvision's v2 functions on tv_tensors: crop, flip, resize and pad give the same bits. Pure functions.
 */
#ifndef LEAT_OP_TARGETS_H
#define LEAT_OP_TARGETS_H

#include "op/step.h"

typedef enum leat__box_format { LEAT__BOX_XYXY, LEAT__BOX_XYWH, LEAT__BOX_CXCYWH } leat__box_format;

typedef struct leat__box_rule {
    leat__box_format format; /* of input and output */
    bool relative;           /* input and output are shares of width and height */
    float min_visible;       /* minimum share of the area that must remain in the image */
    float min_size;          /* minimum width and height, in pixels of the output */
} leat__box_rule;

/* Converts a box of an image of this size to two corners in pixels, and back. */
void leat__box_corners(const leat__box_rule *rule, uint32_t width, uint32_t height, float box[4]);
void leat__box_format_of(const leat__box_rule *rule, uint32_t width, uint32_t height, float box[4]);

/* Moves n boxes of 4 numbers in place, clipped to the image; keep[i] is false when box i is dropped. The
 * remaining share is measured at every step, before and after clipping. */
void leat__recipe_boxes(const leat__recipe *r, const leat__box_rule *rule, float *boxes, bool *keep,
                        uint64_t n);

typedef struct leat__point_rule {
    bool relative;
    uint32_t stride; /* numbers per point: 2, or 3 with the visibility, which becomes 0 outside */
} leat__point_rule;

/* Moves n points in place; points outside the image are not clipped. A point that a perspective cannot show
 * becomes NaN. */
void leat__recipe_points(const leat__recipe *r, const leat__point_rule *rule, float *points, uint64_t n);

#endif
