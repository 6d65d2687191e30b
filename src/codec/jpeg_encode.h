/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes pixels as JPEG: baseline, optimised Huffman tables, slow-integer DCT. Deterministic.
 */
#ifndef LEAT_CODEC_JPEG_ENCODE_H
#define LEAT_CODEC_JPEG_ENCODE_H

#include "base/buf.h"
#include "codec/codec.h"

/* Appends a JPEG to `out`. 1, 3 or 4 channels; the fourth (alpha) is dropped. */
int leat__jpeg_encode(const leat__planes *image, const leat__encode_opts *opts, leat__buf *out,
                      leat_error *err) LEAT_MUST_CHECK;

#endif
