/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuses a sequence of crops, resizes and flips into one request: the part of the source that is needed, and
 * how each axis is resized, windowed and mirrored. A head has at most one resize; a second one starts a new
 * head. Pure functions.
 */
#ifndef LEAT_OP_HEAD_H
#define LEAT_OP_HEAD_H

#include "op/step.h"

typedef struct leat__head {
    uint32_t steps;               /* number of recipe steps that this replaces */
    uint32_t x, y, width, height; /* crop of the source, before any mirroring */
    leat__axis_request ax, ay;
    leat__pass_order order;
} leat__head;

/* Fuses steps of the recipe from number `from` on; the source has width x height pixels. */
void leat__head_fuse(leat__head *h, const leat__recipe *r, uint32_t from, uint32_t width, uint32_t height);

/* Converts the request to pixels in stored order: EXIF mirroring becomes part of the axes. Orientations 5 to
 * 8 also exchange rows and columns, which the caller must do. */
void leat__head_orient(leat__head *h, uint32_t width, uint32_t height, uint32_t orientation);

bool leat__head_takes(leat__step_kind kind);

#endif
