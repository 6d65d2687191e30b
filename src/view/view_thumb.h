/* SPDX-License-Identifier: Apache-2.0
 *
 * Pictures of rows: small JPEGs for the grid, made from the low frequencies of tiles and JPEGs, and whole
 * images in a format that browsers support. Any thread: each call borrows a set of decoders; there are as
 * many sets as concurrent calls.
 */
#ifndef LEAT_VIEW_VIEW_THUMB_H
#define LEAT_VIEW_VIEW_THUMB_H

#include <leat/pack.h>

#include "base/buf.h"
#include "base/error.h"

#define LEAT__THUMB_SIDE_MAX 1024u

typedef struct leat__view_thumbs leat__view_thumbs;

/* Opens the thumbnails of a pack, which the caller keeps open until they are closed. */
int leat__view_thumbs_open(leat__view_thumbs **t, leat_pack *pack, uint32_t field,
                           leat_error *err) LEAT_MUST_CHECK;
void leat__view_thumbs_close(leat__view_thumbs **t);

/* Decodes the upright small image, three bytes per pixel; free *pixels with leat__free. LEAT_ENOENT
 * when the row has no image; other codes as in decoding. */
int leat__view_thumb_pixels(leat__view_thumbs *t, uint64_t row, uint32_t side, uint8_t **pixels,
                            uint32_t *width, uint32_t *height, leat_error *err) LEAT_MUST_CHECK;

/* Appends a JPEG whose longer side is at most `side`. */
int leat__view_thumb(leat__view_thumbs *t, uint64_t row, uint32_t side, leat__buf *out,
                     leat_error *err) LEAT_MUST_CHECK;
/* Appends an image as a file and sets its media type: the packed file where browsers can show it, else a
 * JPEG. */
int leat__view_image(leat__view_thumbs *t, uint64_t row, leat__buf *out, const char **type,
                     leat_error *err) LEAT_MUST_CHECK;

#endif
