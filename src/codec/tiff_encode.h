/* SPDX-License-Identifier: Apache-2.0
 *
 * Wide pixels to TIFF, for pixels that go back to being a file (export of raw images). No library.
 */
#ifndef LEAT_CODEC_TIFF_ENCODE_H
#define LEAT_CODEC_TIFF_ENCODE_H

#include "base/buf.h"
#include "codec/wide.h"

/* Appends to `out`: one strip, not compressed, little-endian; three and four channels as RGB, others as grey
 * with further samples. LEAT_EOVERFLOW from 4 GiB on, which TIFF cannot have. */
int leat__tiff_encode(const leat__wide *image, uint32_t orientation, leat__buf *out,
                      leat_error *err) LEAT_MUST_CHECK;

#endif
