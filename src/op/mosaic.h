/* SPDX-License-Identifier: Apache-2.0
 *
 * Mosaic: four samples of a batch in one image, as in YOLO. The four unscaled images meet at one point with
 * their corners; parts outside the output are cropped. Pure functions; the loader calls them on finished
 * batches (src/loader/mixing.c).
 */
#ifndef LEAT_OP_MOSAIC_H
#define LEAT_OP_MOSAIC_H

#include "op/op.h"
#include "op/targets.h"

enum { LEAT__MOSAIC_PARTS = 4 };

/* The point where the four meet. Parts are upper left, upper right, lower left, lower right. */
typedef struct leat__mosaic {
    bool active; /* false: the sample stays as it is */
    uint32_t x, y;
} leat__mosaic;

/* True when a batch op is a Mosaic. */
bool leat__mosaic_is(const leat__op_spec *op);

/* Draws a mosaic for each of `n` samples of a batch, whose images have this size. Uses only `rng`, which is
 * seeded by the batch. */
void leat__mosaic_draw(leat__mosaic *m, uint32_t n, const leat__op_spec *op, uint32_t width, uint32_t height,
                       leat__rng *rng);

/* Assembles one plane (or an image with interleaved channels) from those of four samples. `pixel` is the
 * bytes of a pixel. */
void leat__mosaic_plane(const leat__mosaic *m, uint32_t width, uint32_t height, size_t pixel,
                        const uint8_t *const part[LEAT__MOSAIC_PARTS], uint8_t *out);

/* Moves a box of one part in place. False when `rule` drops it, because too little of it is left. */
bool leat__mosaic_box(const leat__mosaic *m, uint32_t width, uint32_t height, int part,
                      const leat__box_rule *rule, float box[4]);

#endif
