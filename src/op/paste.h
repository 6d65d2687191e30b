/* SPDX-License-Identifier: Apache-2.0
 *
 * CopyPaste: copies objects of one sample of a batch onto another, at the same position. Pure functions;
 * the loader calls them on finished batches (src/loader/pasting.c).
 */
#ifndef LEAT_OP_PASTE_H
#define LEAT_OP_PASTE_H

#include "op/op.h"
#include "op/targets.h"

/* True when a batch op is a CopyPaste. */
bool leat__paste_is(const leat__op_spec *op);

/* happens draws whether a sample gets objects at all, takes whether a given object is pasted. */
bool leat__paste_happens(const leat__op_spec *op, leat__rng *rng);
bool leat__paste_takes(const leat__op_spec *op, leat__rng *rng);

/* The pixels that a box touches, clipped to the image; an empty one has no width or height. */
typedef struct leat__paste_rect {
    uint32_t x, y, width, height;
} leat__paste_rect;
leat__paste_rect leat__paste_pixels(const leat__box_rule *rule, uint32_t width, uint32_t height,
                                    const float box[4]);

/* Marks these pixels in a map of the image, with one byte per pixel; with a mask, only where it is not 0. */
void leat__paste_mark(uint8_t *map, uint32_t width, const leat__paste_rect *r, const uint8_t *mask);

/* Returns how many of these pixels are marked. */
uint64_t leat__paste_marked(const uint8_t *map, uint32_t width, const leat__paste_rect *r);

/* Copies the marked pixels among `count` pixels of `pixel` bytes each. */
void leat__paste_copy(const uint8_t *map, size_t count, size_t pixel, const uint8_t *from, uint8_t *to);

#endif
