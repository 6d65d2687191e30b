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
#define LEAT__MATCH_PLACES 140 /* positions at all scales: 1 + 4 + 9 ... + 49 */

/* A thumbnail, prepared for comparison. */
typedef struct leat__match_side {
    uint8_t luma[LEAT__THUMB_SIDE * LEAT__THUMB_SIDE + 1]; /* turned; kernels read one byte more */
    leat__align_image image;
    /* Shrunk to 16 x 16, 15 x 15, … pixels, minus their means. Rows have 16 entries, plus padding for
     * kernels. */
    int16_t shrunk[LEAT__MATCH_SCALES][LEAT__ALIGN_COARSE * LEAT__ALIGN_COARSE + LEAT__ALIGN_COARSE];
    float by[LEAT__MATCH_SCALES];       /* 1 / length of each */
    float by_place[LEAT__MATCH_PLACES]; /* the same for the parts of shrunk[0] that others slide over */
} leat__match_side;

/* Turns the luma of a thumbnail to `orientation` (see image_sign.h). */
void leat__match_turn(const uint8_t *thumb, unsigned orientation, uint8_t *to);
/* Prepares a thumbnail after turning it. */
void leat__match_side_make(leat__match_side *side, const uint8_t *thumb, unsigned orientation);

/* True when both have the same frame, or when at least a quarter of both is plain at the same places,
 * as in a mat. Their descriptors are then similar whatever else they show. Both must have the same
 * orientation. */
bool leat__match_share_plain(const uint8_t *a, const uint8_t *b);

/* The similarity that a caller needs, and the distance of the descriptors of both images. */
typedef struct leat__match_need {
    float similarity, distance;
} leat__match_need;

/* Returns the similarity, -1 to 1: the correlation of gradients in the best alignment found.
 * Borders of one colour: if both have them, the similarity is at most that of the inside, since two
 * frames are similar whatever they show. If one has them, its inside is also compared with the whole
 * other image. A small inside costs up to 0.12.
 * Covered parts: a rectangle of up to a quarter of the image may be covered. The result is then the
 * similarity of the rest less 0.15, if the rest has 0.85 or more, and half of the detail of one image.
 * `parts`: also finds that one image is a large crop of the other. Detail of the crop that the other
 * lacks is removed first, at a cost of 0.1.
 * `need` (NULL: none): images that clearly do not reach its similarity give -1, in less time. */
float leat__match(const leat__match_side *a, const leat__match_side *b, bool parts,
                  const leat__match_need *need);

#endif
