/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of crops, resizes and flips as one request: which part of the source is wanted and
 * how each axis is resized, windowed and mirrored. At most one resize per head; what follows
 * starts a new one. Pure functions.
 */
#ifndef LEAT_OP_HEAD_H
#define LEAT_OP_HEAD_H

#include "op/step.h"

typedef struct leat__head {
    uint32_t steps;               /* of the recipe, that this stands for */
    uint32_t x, y, width, height; /* crop of the source, before any mirroring */
    leat__axis_request ax, ay;
    leat__pass_order order;
} leat__head;

/* From step `from` on, with a source of width x height pixels. */
void leat__head_fuse(leat__head *h, const leat__recipe *r, uint32_t from, uint32_t width, uint32_t height);

/* The same request on pixels as they are stored: EXIF mirroring goes into the axes.
 * Orientations 5 to 8 also exchange rows and columns; that is left to the caller. */
void leat__head_orient(leat__head *h, uint32_t width, uint32_t height, uint32_t orientation);

bool leat__head_takes(leat__step_kind kind);

#endif
