/* SPDX-License-Identifier: Apache-2.0
 *
 * CopyPaste: objects of one sample of a batch onto another, at the same place. Pure functions; the loader
 * calls them on finished batches (src/loader/pasting.c).
 */
#ifndef LEAT_OP_PASTE_H
#define LEAT_OP_PASTE_H

#include "op/op.h"
#include "op/targets.h"

/* Whether a batch op is a CopyPaste. */
bool leat__paste_is(const leat__op_spec *op);

/* Whether a sample gets objects at all; whether a given object is one of them. */
bool leat__paste_happens(const leat__op_spec *op, leat__rng *rng);
bool leat__paste_takes(const leat__op_spec *op, leat__rng *rng);

/* The pixels that a box touches, inside the image; empty ones have no width or height. */
typedef struct leat__paste_rect {
    uint32_t x, y, width, height;
} leat__paste_rect;
leat__paste_rect leat__paste_pixels(const leat__box_rule *rule, uint32_t width, uint32_t height,
                                    const float box[4]);

/* Marks them in a map of the image, a byte per pixel; only where the mask (NULL: everywhere) is not 0. */
void leat__paste_mark(uint8_t *map, uint32_t width, const leat__paste_rect *r, const uint8_t *mask);

/* How many of these pixels are marked. */
uint64_t leat__paste_marked(const uint8_t *map, uint32_t width, const leat__paste_rect *r);

/* Copies the marked ones of `count` pixels of this many bytes. */
void leat__paste_copy(const uint8_t *map, size_t count, size_t pixel, const uint8_t *from, uint8_t *to);

#endif
