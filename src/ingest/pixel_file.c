/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of pixels. See pixel_file.h.
 */
#include "ingest/pixel_file.h"

#include "codec/tiff_encode.h"

void leat__pixel_file_reset(leat__pixel_file *f)
{
    leat__decoder_close(&f->decoder);
    leat__planes_reset(&f->planes);
    leat__wide_reset(&f->wide);
}

int leat__pixel_file_write(leat__pixel_file *f, const uint8_t *data, size_t size, leat__buf *out,
                           const char **ext, leat_error *err)
{
    leat__image_info info;
    leat__buf_clear(out);
    if (!f->decoder) LEAT_TRY(leat__decoder_open(&f->decoder, err));
    LEAT_TRY(leat__codec_probe(LEAT__CODEC_RAW, data, size, &info, err));
    if (leat__image_wide(&info)) {
        *ext = "tif";
        LEAT_TRY(leat__codec_decode_wide(f->decoder, &info, data, size, NULL, &f->wide, err));
        return leat__tiff_encode(&f->wide, info.orientation, out, err);
    }
    *ext = "png";
    LEAT_TRY(leat__codec_decode_planes(f->decoder, &info, data, size, NULL, &f->planes, err));
    const leat__encode_opts opts = {.orientation = info.orientation};
    return leat__codec_encode(LEAT__CODEC_PNG, &f->planes, &opts, out, err);
}
