/* SPDX-License-Identifier: Apache-2.0
 *
 * leat's raw images: a 16-byte header, then interleaved pixels, row by row, no padding.
 *
 *   0  "LRAW"   4  version   5  channels   6  EXIF orientation (1..8)   7  type of samples
 *   8  width, u32   12  height, u32   16  height * width * channels samples
 *
 * Version 1: bytes (type 0), 1, 3 or 4 channels. Version 2: everything else up to 16 channels of bytes (0),
 * u16 (1) or f32 (2), little-endian. Readers of version 1 refuse version 2.
 */
#ifndef LEAT_CODEC_RAW_H
#define LEAT_CODEC_RAW_H

#include "base/buf.h"
#include "codec/codec.h"

#define LEAT__RAW_HEADER 16

void leat__raw_header(uint8_t header[LEAT__RAW_HEADER], uint32_t width, uint32_t height, uint32_t channels,
                      leat__sample_type type, uint32_t orientation);

/* Appends header and pixels; `pixels` are height * width * channels samples without padding. */
int leat__raw_encode_wide(const void *pixels, uint32_t width, uint32_t height, uint32_t channels,
                          leat__sample_type type, uint32_t orientation, leat__buf *out,
                          leat_error *err) LEAT_MUST_CHECK;

/* Appends header and pixels of a planar image to `out`. */
int leat__raw_encode(const leat__planes *image, const leat__encode_opts *opts, leat__buf *out,
                     leat_error *err) LEAT_MUST_CHECK;

#endif
