/* SPDX-License-Identifier: Apache-2.0
 *
 * Where boxes and points of an image go under a recipe's geometry. Arithmetic is in float, step by
 * step, as torchvision's v2 functions on tv_tensors do it: crop, flip, resize and pad give the
 * same bits. Pure functions.
 */
#ifndef LEAT_OP_TARGETS_H
#define LEAT_OP_TARGETS_H

#include "op/step.h"

typedef enum leat__box_format { LEAT__BOX_XYXY, LEAT__BOX_XYWH, LEAT__BOX_CXCYWH } leat__box_format;

typedef struct leat__box_rule {
    leat__box_format format; /* of what comes in and goes out */
    bool relative;           /* shares of width and height, of the input and of the output */
    float min_visible;       /* least share of the area that is left in the image */
    float min_size;          /* least width and height, in pixels of the output */
} leat__box_rule;

/* A box of an image of this size as two corners in pixels, and back. */
void leat__box_corners(const leat__box_rule *rule, uint32_t width, uint32_t height, float box[4]);
void leat__box_format_of(const leat__box_rule *rule, uint32_t width, uint32_t height, float box[4]);

/* Moves n boxes of 4 numbers in place, clipped to the image; keep[i] false when box i is dropped.
 * The share that is left is measured at every step, before and after clipping. */
void leat__recipe_boxes(const leat__recipe *r, const leat__box_rule *rule, float *boxes, bool *keep,
                        uint64_t n);

typedef struct leat__point_rule {
    bool relative;
    uint32_t stride; /* numbers per point: 2, or 3 with the visibility, which becomes 0 outside */
} leat__point_rule;

/* Moves n points in place; those that leave the image are not clipped. One that a
 * perspective cannot show becomes NaN. */
void leat__recipe_points(const leat__recipe *r, const leat__point_rule *rule, float *points, uint64_t n);

#endif
