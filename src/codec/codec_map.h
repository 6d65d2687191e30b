/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of image formats. Names, file suffixes, decoding memory, costs and media types all come from
 * it, so a new format needs one row here and a decoder. Packs store the numbers: append only.
 *
 * X(ID, number, name, label, suffixes, memory, cost_kilobyte, cost_kilopixel, cost_channel, method, lossless,
 *   media)
 *   name            in JSON, Python and class lists
 *   label           for people
 *   suffixes        of its files, without dots, separated by spaces; the first is the usual one
 *   memory          bytes per pixel that decoding any such file may use in addition to the decoded crop;
 *                   leat__image_info.memory is more exact
 *   cost_kilobyte   decode time on the reference machine in ns: per 1,000 bytes of the file, per 1,000
 *   cost_kilopixel  pixels, and per 1,000 pixels of each channel. JPEG, WebP: src/ingest/image_cost.c
 *   cost_channel
 *   method          row of data/plan/costs.txt, or the most similar one that was measured
 *   lossless        1: files keep all pixels. GIF keeps 256 colours; WebP and JPEG XL only some files
 *   media           media type of a file that browsers show, else NULL; tiles are shown as JPEG
 */
#ifndef LEAT_CODEC_CODEC_MAP_H
#define LEAT_CODEC_CODEC_MAP_H

/* Memory. JPEG: coefficients of 4 components. PNG: an interlaced image. WebP: colours, alpha and the lossless
 * decoder's picture. GIF, BMP: colours and palette indices. TIFF: colours, a strip that is the whole image,
 * and its encoded bytes. AVIF, HEIF: frames of up to 16 bits, of a grid twice. JPEG XL: planes of floats. */
#define LEAT_CODEC_MAP(X)                                                                                    \
    X(JPEG, 1, "jpeg", "JPEG", "jpg jpeg jpe jfif pjpeg", 8, 0, 0, 0, "plain", 0, "image/jpeg")              \
    X(PNG, 2, "png", "PNG", "png", 4, 6330, 0, 4100, "png", 1, "image/png")                                  \
    X(WEBP, 3, "webp", "WebP", "webp", 9, 44100, 2900, 0, "webp", 0, "image/webp")                           \
    X(RAW, 4, "raw", "raw pixels", "", 0, 0, 0, 100, "raw", 1, NULL)            /* docs/raw-format.md */     \
    X(TILE, 5, "tiled", "tiles", "", 0, 1800, 950, 0, "tiled", 0, "image/jpeg") /* docs/tile-format.md */    \
    X(GIF, 6, "gif", "GIF", "gif", 5, 6000, 3000, 0, "png", 0, "image/gif")                                  \
    X(BMP, 7, "bmp", "BMP", "bmp", 5, 0, 0, 100, "raw", 1, "image/bmp")                                      \
    X(TIFF, 8, "tiff", "TIFF", "tif tiff", 13, 5000, 0, 1000, "png", 1, NULL)                                \
    X(AVIF, 9, "avif", "AVIF", "avif", 22, 60000, 6000, 0, "webp", 0, "image/avif")                          \
    X(JXL, 10, "jxl", "JPEG XL", "jxl", 46, 60000, 15000, 0, "webp", 0, NULL)                                \
    X(HEIF, 11, "heif", "HEIF", "heic heif", 20, 60000, 6000, 0, "webp", 0, NULL)

#endif
