/* SPDX-License-Identifier: Apache-2.0
 *
 * The last stage: writes finished 8-bit rows into the batch, normalised, cast and laid out. Rows may come
 * in any order. One per worker; begin() for each sample.
 */
#ifndef LEAT_OP_WRITER_H
#define LEAT_OP_WRITER_H

#include "dsp/pixel.h"
#include "dsp/resizer.h"
#include "op/image.h"
#include "op/pipeline.h"

typedef struct leat__writer {
    const leat__pixel_dsp *dsp;
    const leat__output_spec *spec;
    const leat__norm *norm; /* one per channel, three in all; unused for u8 */
    uint8_t *out;
    size_t row, plane; /* bytes of a row and of a plane in a planar output */
    uint32_t planes;   /* of the incoming rows: 1 (grey, repeated) or 3; set by the caller */
    bool direct;       /* 8-bit planes: rows are computed directly in the output */
    uint8_t *line;     /* scratch: three 8-bit rows, then three of the output type */
    size_t pitch, cap;
} leat__writer;

/* A zeroed struct is empty. */
int leat__writer_begin(leat__writer *w, const leat__output_spec *spec, const leat__norm *norm, void *out,
                       leat_error *err) LEAT_MUST_CHECK;
void leat__writer_reset(leat__writer *w);

/* Returns the writer as a target of the streaming resize. */
leat__resize_out leat__writer_rows(leat__writer *w);

/* Writes a whole image of the output's size. */
void leat__writer_image(leat__writer *w, const leat__planes *im);

/* Stores one number as element `index` of `out`; integers are clipped and truncated. */
void leat__writer_put(leat_dtype dtype, void *out, size_t index, float v);

/* Fills a rectangle of the finished output with a value per channel, or with normal noise. */
void leat__writer_erase(leat__writer *w, const leat__step *s);

#endif
