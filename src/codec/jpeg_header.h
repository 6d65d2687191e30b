/* SPDX-License-Identifier: Apache-2.0
 *
 * What the marker segments of a JPEG say, without a decoder: size, sampling, colour, EXIF,
 * and where the first scan begins. Only headers are touched.
 */
#ifndef LEAT_CODEC_JPEG_HEADER_H
#define LEAT_CODEC_JPEG_HEADER_H

#include <stdbool.h>

#include "base/error.h"
#include "codec/jpeg_coef.h"

typedef struct leat__jpeg_header {
    uint32_t width, height;
    uint32_t bits;
    uint32_t components;
    struct {
        uint8_t id, h, v, quant;
    } component[4];
    leat__jpeg_colour colour;
    bool progressive, arithmetic, lossless;
    uint32_t restart_interval;
    uint32_t orientation;
    size_t scan_offset;   /* first entropy-coded byte of the first scan */
    const uint8_t *quant; /* table of the first component, in the file; NULL: none before the scan */
    bool quant_wide;      /* of 16 bits */
} leat__jpeg_header;

/* LEAT_EDATA (err->offset where) when the segments do not add up. */
int leat__jpeg_header_read(const uint8_t *data, size_t len, leat__jpeg_header *header,
                           leat_error *err) LEAT_MUST_CHECK;

/* The table of the first component, row by row. False when there is none. */
bool leat__jpeg_header_quant(const leat__jpeg_header *header, uint16_t quant[64]) LEAT_MUST_CHECK;

/* "jpeg 4:2:0 progressive" into out, as in leat__image_info. */
void leat__jpeg_header_describe(const leat__jpeg_header *header, char *out, size_t size);

#endif
