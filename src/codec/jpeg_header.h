/* SPDX-License-Identifier: Apache-2.0
 *
 * The content of a JPEG's marker segments, without a decoder: size, sampling, colour, EXIF, and the start
 * of the first scan. Only headers are read.
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
    bool separate_scans; /* the first scan lacks components, which later scans have */
    uint32_t restart_interval;
    uint32_t orientation;
    size_t scan_offset;   /* first entropy-coded byte of the first scan */
    const uint8_t *quant; /* table of the first component, in the file; NULL: none before the scan */
    bool quant_wide;      /* 16-bit entries */
} leat__jpeg_header;

/* LEAT_EDATA (at err->offset) when the segments are inconsistent. */
int leat__jpeg_header_read(const uint8_t *data, size_t len, leat__jpeg_header *header,
                           leat_error *err) LEAT_MUST_CHECK;

/* Returns the quantisation table of the first component, row by row. False when there is none. */
bool leat__jpeg_header_quant(const leat__jpeg_header *header, uint16_t quant[64]) LEAT_MUST_CHECK;

/* Returns the bytes of all coefficients, in whole MCUs. A decoder holds them if the file has many scans. */
uint64_t leat__jpeg_header_coefs(const leat__jpeg_header *header);
static inline bool leat__jpeg_header_many_scans(const leat__jpeg_header *header)
{
    return header->progressive || header->separate_scans;
}

/* Writes a description such as "jpeg 4:2:0 progressive" to out, as in leat__image_info. */
void leat__jpeg_header_describe(const leat__jpeg_header *header, char *out, size_t size);

#endif
