/* SPDX-License-Identifier: Apache-2.0
 *
 * The quantised coefficients of a JPEG, and the bytes around them: the input of the tile codec. No
 * third-party types are exposed. One reader per thread; it owns the memory of the result and reuses it.
 */
#ifndef LEAT_CODEC_JPEG_COEF_H
#define LEAT_CODEC_JPEG_COEF_H

#include "codec/codec.h"

typedef enum leat__jpeg_colour {
    LEAT__JPEG_GREY = 1,
    LEAT__JPEG_YCC = 2,
    LEAT__JPEG_RGB = 3,
    LEAT__JPEG_CMYK = 4,
    LEAT__JPEG_YCCK = 5
} leat__jpeg_colour;

typedef struct leat__jpeg_component {
    uint32_t id;            /* as in the frame header */
    uint32_t h, v;          /* sampling factors, 1..4 */
    uint32_t width, height; /* in samples: ceil(image * h / max_h) */
    /* Blocks with pixels, and the stored grid, which is rounded up to whole MCUs. The other blocks are
     * padding of interleaved scans (zero if the file has none). */
    uint32_t blocks_x, blocks_y;
    uint32_t grid_x, grid_y;
    uint32_t quant_index; /* table number in the file */
    uint16_t quant[64];   /* natural (row by row) order */
    const int16_t *coefs; /* grid_y * grid_x blocks of 64 in natural order; 64-byte aligned. Kernels may
                             read LEAT__IDCT_BLOCKS_PAD blocks past the last. */
} leat__jpeg_component;

typedef struct leat__jpeg_coef_reader leat__jpeg_coef_reader;
struct leat__jpeg_scan;   /* jpeg_scan.h */
struct leat__jpeg_cursor; /* jpeg_scan.h */

typedef struct leat__jpeg_coefs {
    uint32_t width, height;
    uint32_t components; /* 1, 3 or 4 */
    uint32_t max_h, max_v;
    uint32_t mcus_x, mcus_y; /* of an interleaved scan */
    leat__jpeg_colour colour;
    bool progressive, arithmetic;
    uint32_t scans;            /* scans in the file */
    uint32_t restart_interval; /* in MCUs, 0 = none; as of the last scan */
    leat__jpeg_component component[4];
    /* The file in three parts. header: up to the first entropy-coded byte (SOI … first SOS
     * segment). tail: from the EOI marker on (EOI and anything after it). With one scan, the
     * entropy-coded bytes are those in between. Views into the caller's data. */
    const uint8_t *header, *scan, *tail;
    size_t header_len, scan_len, tail_len;
    /* usual: the scan is exactly what the usual encoder writes for these coefficients and headers. pads_zero:
     * its unused bits are zeros, not ones. If usual is not set, this is not known. */
    bool usual, pads_zero;
    leat__jpeg_coef_reader *pixels; /* the reader that can give the pixels, or NULL */
} leat__jpeg_coefs;

int leat__jpeg_coef_reader_open(leat__jpeg_coef_reader **r, leat_error *err) LEAT_MUST_CHECK;
void leat__jpeg_coef_reader_close(leat__jpeg_coef_reader **r);

/* Reads all coefficients: by leat itself if possible (jpeg_scan.h), else through libjpeg, which also decides
 * whether the file is damaged. `coefs` is a view, valid until the next read or close, while `data` lives.
 * LEAT_EDATA: damaged or truncated. LEAT_EFORMAT: not a JPEG that this library reads. LEAT_ELIMIT: over a
 * limit (zeroed limits = the defaults). */
int leat__jpeg_coef_read(leat__jpeg_coef_reader *r, const uint8_t *data, size_t len,
                         const leat__decode_limits *limits, leat__jpeg_coefs *coefs,
                         leat_error *err) LEAT_MUST_CHECK;

/* Room for one row of MCUs that another scan decodes. `begin` allocates it; `put` decodes the next `count`
 * MCUs of the row that the cursor is in. grid_y of each component is that of one row, so rows stay in the
 * caches until they are used. begin returns false when a row needs more than `most` bytes, or when out of
 * memory. Header, scan, tail, usual and pixels of the result are not set. */
bool leat__jpeg_coef_begin(leat__jpeg_coef_reader *r, const struct leat__jpeg_scan *scan, uint64_t most,
                           leat__jpeg_coefs *coefs) LEAT_MUST_CHECK;
bool leat__jpeg_coef_put(leat__jpeg_coef_reader *r, const struct leat__jpeg_scan *scan,
                         const leat__jpeg_coefs *coefs, struct leat__jpeg_cursor *at,
                         uint32_t count) LEAT_MUST_CHECK;

/* Like leat__jpeg_coef_read, through libjpeg alone. */
int leat__jpeg_coef_read_libjpeg(leat__jpeg_coef_reader *r, const uint8_t *data, size_t len,
                                 const leat__decode_limits *limits, leat__jpeg_coefs *coefs,
                                 leat_error *err) LEAT_MUST_CHECK;

/* Returns libjpeg's pixels of the last file without reading its scans again: libjpeg's inverse transform,
 * upsampling and colour conversion of the coefficients, using the file's own headers. Only if coefs.pixels is
 * set: grey and YCbCr with ordinary sampling. `pixels` starts a pass and may be repeated. Each call of `row`
 * then returns the next row with interleaved channels (1 or 3), valid until the next call. */
int leat__jpeg_coef_pixels(leat__jpeg_coef_reader *r, leat_error *err) LEAT_MUST_CHECK;
int leat__jpeg_coef_row(leat__jpeg_coef_reader *r, const uint8_t **row, leat_error *err) LEAT_MUST_CHECK;

#endif
