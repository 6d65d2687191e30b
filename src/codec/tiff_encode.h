/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes wide pixels as TIFF, for pixels that become files again (export of raw images). No library.
 */
#ifndef LEAT_CODEC_TIFF_ENCODE_H
#define LEAT_CODEC_TIFF_ENCODE_H

#include "base/buf.h"
#include "codec/wide.h"

/* Appends a TIFF to `out`: one uncompressed little-endian strip; three and four channels as RGB, others as
 * grey with extra samples. LEAT_EOVERFLOW from 4 GiB on, the limit of TIFF. */
int leat__tiff_encode(const leat__wide *image, uint32_t orientation, leat__buf *out,
                      leat_error *err) LEAT_MUST_CHECK;

#endif
