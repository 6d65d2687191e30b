/* SPDX-License-Identifier: Apache-2.0
 *
 * leat's raw images: a 16-byte header, then interleaved 8-bit pixels, row by row, no padding.
 *
 *   0  "LRAW"   4  version (1)   5  channels (1, 3, 4)   6  EXIF orientation (1..8)   7  zero
 *   8  width, u32   12  height, u32   16  height * width * channels bytes
 */
#ifndef LEAT_CODEC_RAW_H
#define LEAT_CODEC_RAW_H

#include "base/buf.h"
#include "codec/codec.h"

#define LEAT__RAW_HEADER 16

void leat__raw_header(uint8_t header[LEAT__RAW_HEADER], uint32_t width, uint32_t height,
                      uint32_t channels, uint32_t orientation);

/* Appends to `out`. */
int leat__raw_encode(const leat__planes *image, const leat__encode_opts *opts, leat__buf *out,
                     leat_error *err) LEAT_MUST_CHECK;

#endif
