/* SPDX-License-Identifier: Apache-2.0
 *
 * Images of any sample type and 1 to 16 channels, in memory: the samples of a pixel together, rows
 * top to bottom. 8-bit images of 1, 3 and 4 channels have planes instead (leat__planes), and a
 * separate path. Belongs to one thread at a time.
 */
#ifndef LEAT_CODEC_WIDE_H
#define LEAT_CODEC_WIDE_H

#include "codec/codec.h"

/* Zeroed is empty. `pixels` is a view of `block`: a crop moves it. */
typedef struct leat__wide {
    leat__sample_type type;
    uint32_t width, height, channels;
    size_t stride;   /* bytes from row to row */
    uint8_t *pixels; /* of the first pixel */
    uint8_t *block;  /* owned; grows, never shrinks */
    size_t capacity;
} leat__wide;

/* Makes it hold an image of this kind, with rows 64 bytes aligned; the pixels are undefined. */
int leat__wide_resize(leat__wide *w, leat__sample_type type, uint32_t channels, uint32_t width,
                      uint32_t height, leat_error *err) LEAT_MUST_CHECK;
void leat__wide_reset(leat__wide *w);

static inline size_t leat__wide_pixel(const leat__wide *w)
{
    return (size_t)w->channels * leat__sample_bytes(w->type);
}

static inline uint8_t *leat__wide_row(const leat__wide *w, uint32_t y)
{
    return w->pixels + y * w->stride;
}

/* Decodes the region into `out`: wide images only. Errors as leat__codec_decode. */
int leat__codec_decode_wide(leat__decoder *d, const leat__image_info *info, const uint8_t *data, size_t len,
                            const leat__decode_request *request, leat__wide *out,
                            leat_error *err) LEAT_MUST_CHECK;

/* Turns `in` as its EXIF orientation (1 to 8) says; `out` is another image. */
int leat__wide_turn(const leat__wide *in, uint32_t orientation, leat__wide *out,
                    leat_error *err) LEAT_MUST_CHECK;

#endif
