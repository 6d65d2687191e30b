/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of images that a pack stores as pixels: PNG, or TIFF for images that PNG cannot represent. One
 * thread per object.
 */
#ifndef LEAT_INGEST_PIXEL_FILE_H
#define LEAT_INGEST_PIXEL_FILE_H

#include "base/buf.h"
#include "codec/codec.h"
#include "codec/wide.h"

/* A zeroed struct is empty. */
typedef struct leat__pixel_file {
    leat__decoder *decoder;
    leat__planes planes;
    leat__wide wide;
} leat__pixel_file;

void leat__pixel_file_reset(leat__pixel_file *f);

/* Writes the file of a raw image to `out`; *ext is "png" or "tif". `data` is followed by
 * LEAT__CODEC_PADDING readable bytes. */
int leat__pixel_file_write(leat__pixel_file *f, const uint8_t *data, size_t size, leat__buf *out,
                           const char **ext, leat_error *err) LEAT_MUST_CHECK;

#endif
