/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether two thumbnails show the same picture: finds the shift, scale and small rotation
 * that aligns them, and compares their gradients. Brightness and contrast do not matter.
 */
#ifndef LEAT_CURATE_IMAGE_MATCH_H
#define LEAT_CURATE_IMAGE_MATCH_H

#include "curate/image_sign.h"

#define LEAT__MATCH_SCALES 7 /* 16/16 to 10/16 of the side */
#define LEAT__MATCH_COARSE 16

/* A thumbnail, prepared for comparison. */
typedef struct leat__match_side {
    float pixel[LEAT__THUMB_SIDE * LEAT__THUMB_SIDE];
    int16_t shrunk[LEAT__MATCH_SCALES][LEAT__MATCH_COARSE * LEAT__MATCH_COARSE]; /* x 16, less their mean */
    float energy[LEAT__MATCH_SCALES];
    int32_t sum[LEAT__MATCH_COARSE + 1][LEAT__MATCH_COARSE + 1];     /* of shrunk[0], and of its squares, */
    int64_t squares[LEAT__MATCH_COARSE + 1][LEAT__MATCH_COARSE + 1]; /* above and left of a place */
} leat__match_side;

/* `orientation` as in image_sign.h: the thumbnail is turned first. */
void leat__match_side_make(leat__match_side *side, const uint8_t *thumb, unsigned orientation);

/* -1 to 1: correlation of gradients in the best alignment found. */
float leat__match(const leat__match_side *a, const leat__match_side *b);

#endif
