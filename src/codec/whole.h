/* SPDX-License-Identifier: Apache-2.0
 *
 * For formats whose library decodes all pixels at once: a buffer of interleaved pixels, from which the
 * region is passed to the sink. It is the state of their decoders; one thread at a time.
 */
#ifndef LEAT_CODEC_WHOLE_H
#define LEAT_CODEC_WHOLE_H

#include "codec/codec_ops.h"
#include "codec/planes.h"

/* Longest side of images of these formats: a row costs far more than one pixel. */
#define LEAT__WHOLE_SIDE_MAX 1000000u

typedef struct leat__whole {
    leat__band band;
    uint8_t *pixels;
    size_t capacity;
} leat__whole;

/* `open` and `close` of leat__codec_ops. */
int leat__whole_open(void **state, leat_error *err);
void leat__whole_close(void **state);

/* LEAT_EDATA, LEAT_EFORMAT or LEAT_ELIMIT with the byte offset: "GIF: no signature at byte 0". */
int leat__whole_bad(leat_error *err, int code, const char *format, size_t offset, const char *what);

/* LEAT_ELIMIT when a side is over LEAT__WHOLE_SIDE_MAX. */
int leat__whole_sides(const leat__image_info *info, const char *format, leat_error *err) LEAT_MUST_CHECK;

/* LEAT_EDATA unless the file still matches the probed info. */
int leat__whole_same(const leat__decode_job *job, const leat__image_info *now, const char *format,
                     leat_error *err) LEAT_MUST_CHECK;

/* Makes room in `pixels` for `height` rows of `stride` bytes. */
int leat__whole_fit(leat__whole *w, size_t stride, uint32_t height, leat_error *err) LEAT_MUST_CHECK;

/* Passes the region of `pixels` to the sink. `pixels` holds the whole image, with rows `stride` bytes
 * apart. */
int leat__whole_emit(leat__whole *w, const leat__decode_job *job, const uint8_t *pixels, size_t stride,
                     leat_error *err) LEAT_MUST_CHECK;

#endif
