/* SPDX-License-Identifier: Apache-2.0
 *
 * Signatures of upright images (EXIF orientation): a thumbnail, and two descriptors from the lowest
 * frequencies of its DCT. The coarse one is for the search; the fine one ranks the results. Mirroring or
 * rotating an image only changes signs and positions of these numbers, so the query is turned instead of
 * the images.
 */
#ifndef LEAT_CURATE_IMAGE_SIGN_H
#define LEAT_CURATE_IMAGE_SIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "curate/image_small.h"

#define LEAT__THUMB_SIDE 32
#define LEAT__THUMB_CHROMA 16
#define LEAT__THUMB_BYTES (LEAT__THUMB_SIDE * LEAT__THUMB_SIDE + 2 * LEAT__THUMB_CHROMA * LEAT__THUMB_CHROMA)

#define LEAT__COARSE_ORDER 7 /* frequencies u + v below this */
#define LEAT__FINE_ORDER 13
#define LEAT__CHROMA_ORDER 4
#define LEAT__COARSE_BYTES 48 /* 27 of luma, 10 of each chroma, one of flags */
#define LEAT__FINE_BYTES 112  /* 90 of luma, 10 of each chroma, two zeros */
#define LEAT__COARSE_FLAGS 47 /* index of the flags */

#define LEAT__SIGN_FLAT 1 /* nearly one colour: its descriptors are meaningless */

typedef struct leat__image_sign {
    int8_t coarse[LEAT__COARSE_BYTES], fine[LEAT__FINE_BYTES];
    int8_t trimmed[LEAT__COARSE_BYTES + LEAT__FINE_BYTES]; /* the same without borders of one colour */
    bool has_trimmed;                                      /* the image has such borders */
    float border;                                          /* share of the area that is border, 0 to 1 */
    uint8_t thumb[LEAT__THUMB_BYTES];                      /* Y, Cb, Cr */
} leat__image_sign;

void leat__image_sign_make(leat__image_sign *sign, const leat__image_small *small);

/* Computes the coarse descriptor of a square part of a thumbnail. left, top and side are shares of
 * its side. */
void leat__image_sign_part(const uint8_t *thumb, float left, float top, float side, int8_t *coarse);

/* Orientations: bit 0 mirrors left and right, bit 1 top and bottom, bit 2 transposes (first). */
#define LEAT__ORIENTATIONS 8
/* Turns a descriptor. `order` is that of luma: LEAT__COARSE_ORDER or LEAT__FINE_ORDER. Flags are kept. */
void leat__image_sign_turn(const int8_t *from, int8_t *to, int order, unsigned orientation);

/* Returns 1 - cosine: 0 for equal ones, up to 2. `bytes`: LEAT__COARSE_BYTES - 1 or LEAT__FINE_BYTES. */
float leat__image_sign_distance(const int8_t *a, const int8_t *b, int bytes);

#endif
