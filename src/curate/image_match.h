/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether two thumbnails show the same picture: finds the shift, scale and small rotation
 * that aligns them, and compares their gradients. Brightness and contrast do not matter.
 */
#ifndef LEAT_CURATE_IMAGE_MATCH_H
#define LEAT_CURATE_IMAGE_MATCH_H

#include "curate/image_sign.h"
#include "dsp/align.h"

#define LEAT__MATCH_SCALES 7   /* 16/16 to 10/16 of the side */
#define LEAT__MATCH_PLACES 140 /* of all scales: 1 + 4 + 9 ... + 49 */

/* A thumbnail, prepared for comparison. */
typedef struct leat__match_side {
    uint8_t luma[LEAT__THUMB_SIDE * LEAT__THUMB_SIDE + 1]; /* turned; kernels read one more */
    leat__align_image image;
    /* Shrunk to 16 x 16, 15 x 15 ..., x 8, less their means; rows of 16, and room to read on. */
    int16_t shrunk[LEAT__MATCH_SCALES][LEAT__ALIGN_COARSE * LEAT__ALIGN_COARSE + LEAT__ALIGN_COARSE];
    float by[LEAT__MATCH_SCALES];       /* 1 / length of each */
    float by_place[LEAT__MATCH_PLACES]; /* the same for the parts of shrunk[0] that the others slide over */
} leat__match_side;

/* `orientation` as in image_sign.h: the thumbnail is turned first. */
void leat__match_side_make(leat__match_side *side, const uint8_t *thumb, unsigned orientation);

/* Both have the same frame, or a quarter of both or more is plain at the same places, as in a mat: their
 * descriptors are similar then, whatever else they show. Both have the same orientation. */
bool leat__match_share_plain(const uint8_t *a, const uint8_t *b);

/* -1 to 1: correlation of gradients in the best alignment found. Where both have borders of one colour, at
 * most that of what is inside: two frames are similar whatever they show. Where one has, the inside is
 * compared with the whole other image, too. A small inside has a cost of up to 0.12. A rectangle of up to a
 * quarter of the image may be covered: when the rest has 0.85 or more, and half of the detail of one image,
 * that less 0.15. `parts`: also when one image is a large crop of the other; details of the crop that the
 * other does not have are then removed first, at a cost of 0.1. */
float leat__match(const leat__match_side *a, const leat__match_side *b, bool parts);

#endif
