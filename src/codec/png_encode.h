/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes pixels as PNG, for pixels that become files again (export of raw images).
 */
#ifndef LEAT_CODEC_PNG_ENCODE_H
#define LEAT_CODEC_PNG_ENCODE_H

#include "base/buf.h"
#include "codec/codec.h"

/* Appends a PNG to `out`. 1, 3 or 4 channels. */
int leat__png_encode(const leat__planes *image, const leat__encode_opts *opts, leat__buf *out,
                     leat_error *err) LEAT_MUST_CHECK;

#endif
