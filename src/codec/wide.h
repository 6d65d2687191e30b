/* SPDX-License-Identifier: Apache-2.0
 *
 * Images of any sample type and 1 to 16 channels, in memory: interleaved samples, rows from top to bottom.
 * 8-bit images of 1, 3 and 4 channels are planar instead (leat__planes) and take a separate path. Belongs
 * to one thread at a time.
 */
#ifndef LEAT_CODEC_WIDE_H
#define LEAT_CODEC_WIDE_H

#include "codec/codec.h"

/* Zeroed is empty. `pixels` is a view of `block`: a crop moves it. */
typedef struct leat__wide {
    leat__sample_type type;
    uint32_t width, height, channels;
    size_t stride;   /* bytes from row to row */
    uint8_t *pixels; /* the first pixel */
    uint8_t *block;  /* owned; grows, never shrinks */
    size_t capacity;
} leat__wide;

/* Resizes to an image of this kind, with rows aligned to 64 bytes; the pixels are undefined. */
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

/* Decodes the region of a wide image into `out`. Errors as for leat__codec_decode. */
int leat__codec_decode_wide(leat__decoder *d, const leat__image_info *info, const uint8_t *data, size_t len,
                            const leat__decode_request *request, leat__wide *out,
                            leat_error *err) LEAT_MUST_CHECK;

/* Rotates and mirrors `in` by its EXIF orientation (1 to 8) into `out`, which must be another image. */
int leat__wide_turn(const leat__wide *in, uint32_t orientation, leat__wide *out,
                    leat_error *err) LEAT_MUST_CHECK;

#endif
