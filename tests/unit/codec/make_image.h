/* SPDX-License-Identifier: Apache-2.0
 *
 * Images for the tests of the codecs, and a plain libjpeg to compare with. The reference uses libjpeg
 * alone, without any code of leat.
 */
#ifndef LEAT_TEST_MAKE_IMAGE_H
#define LEAT_TEST_MAKE_IMAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jpeglib.h>

#include "codec/codec.h"

typedef struct bytes {
    uint8_t *data;
    size_t len;
} bytes;

/* A small separate generator: tests must not depend on the code that they test. */
static inline uint32_t dice(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static inline uint32_t dice_below(uint32_t *state, uint32_t n)
{
    return dice(state) % n;
}

/* Gradients, edges and noise, interleaved. */
static inline uint8_t *make_pixels(uint32_t w, uint32_t h, uint32_t channels, uint32_t seed)
{
    uint8_t *p = malloc((size_t)w * h * channels + 1);
    assert_non_null(p);
    uint32_t s = seed * 2654435761u + 1;
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++)
            for (uint32_t c = 0; c < channels; c++) {
                uint32_t v = (x * (c + 2) + y * (5 - c)) / 3 + (dice(&s) & 31);
                if ((x / 13 + y / 7 + c) & 1) v += 90;
                p[((size_t)y * w + x) * channels + c] = (uint8_t)v;
            }
    return p;
}

typedef struct jpeg_kind {
    const char *name;
    int h, v;               /* sampling of the first component */
    J_COLOR_SPACE in, file; /* of the pixels given and of the file */
    int channels;
    int progressive, restart_rows, separate_scans, odd_chroma;
} jpeg_kind;

static inline bytes make_jpeg(const jpeg_kind *kind, uint32_t w, uint32_t h, int quality, uint32_t seed)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr e;
    unsigned char *out = NULL;
    unsigned long len = 0;
    uint8_t *pixels = make_pixels(w, h, (uint32_t)kind->channels, seed);
    c.err = jpeg_std_error(&e);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &out, &len);
    c.image_width = w;
    c.image_height = h;
    c.input_components = kind->channels;
    c.in_color_space = kind->in;
    jpeg_set_defaults(&c);
    jpeg_set_colorspace(&c, kind->file);
    jpeg_set_quality(&c, quality, TRUE);
    for (int i = 0; i < c.num_components; i++)
        c.comp_info[i].h_samp_factor = c.comp_info[i].v_samp_factor = 1;
    c.comp_info[0].h_samp_factor = kind->h;
    c.comp_info[0].v_samp_factor = kind->v;
    if (kind->odd_chroma) c.comp_info[2].h_samp_factor = kind->h;
    c.restart_in_rows = kind->restart_rows;
    static const jpeg_scan_info separate[3] = {
        {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    if (kind->separate_scans) {
        c.scan_info = separate;
        c.num_scans = 3;
    }
    if (kind->progressive) jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < h) {
        JSAMPROW row = pixels + (size_t)c.next_scanline * w * (size_t)kind->channels;
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    free(pixels);
    /* what decoders are promised: readable bytes behind the data */
    bytes b = {malloc(len + LEAT__CODEC_PADDING), len};
    assert_non_null(b.data);
    memcpy(b.data, out, len);
    memset(b.data + len, 0xa5, LEAT__CODEC_PADDING);
    free(out);
    return b;
}

static const jpeg_kind jpeg_kinds[] = {
    {"4:4:4", 1, 1, JCS_RGB, JCS_YCbCr, 3, 0, 0, 0, 0},
    {"4:2:2", 2, 1, JCS_RGB, JCS_YCbCr, 3, 0, 0, 0, 0},
    {"4:2:0", 2, 2, JCS_RGB, JCS_YCbCr, 3, 0, 0, 0, 0},
    {"4:4:0", 1, 2, JCS_RGB, JCS_YCbCr, 3, 0, 0, 0, 0},
    {"4:1:1", 4, 1, JCS_RGB, JCS_YCbCr, 3, 0, 0, 0, 0},
    {"4:1:0", 4, 2, JCS_RGB, JCS_YCbCr, 3, 0, 0, 0, 0},
    {"odd", 2, 2, JCS_RGB, JCS_YCbCr, 3, 0, 0, 0, 1},
    {"grey", 1, 1, JCS_GRAYSCALE, JCS_GRAYSCALE, 1, 0, 0, 0, 0},
    {"grey 2x2", 2, 2, JCS_GRAYSCALE, JCS_GRAYSCALE, 1, 0, 0, 0, 0},
    {"rgb", 1, 1, JCS_RGB, JCS_RGB, 3, 0, 0, 0, 0},
    {"cmyk", 1, 1, JCS_CMYK, JCS_CMYK, 4, 0, 0, 0, 0},
    {"ycck", 2, 2, JCS_CMYK, JCS_YCCK, 4, 0, 0, 0, 0},
    {"4:2:0 progressive", 2, 2, JCS_RGB, JCS_YCbCr, 3, 1, 0, 0, 0},
    {"4:4:4 progressive", 1, 1, JCS_RGB, JCS_YCbCr, 3, 1, 0, 0, 0},
    {"grey progressive", 1, 1, JCS_GRAYSCALE, JCS_GRAYSCALE, 1, 1, 0, 0, 0},
    {"4:2:0 restarts", 2, 2, JCS_RGB, JCS_YCbCr, 3, 0, 1, 0, 0},
    {"4:2:2 restarts", 2, 1, JCS_RGB, JCS_YCbCr, 3, 0, 2, 0, 0},
    {"4:2:0 separate scans", 2, 2, JCS_RGB, JCS_YCbCr, 3, 0, 0, 1, 0},
};
#define JPEG_KINDS (sizeof jpeg_kinds / sizeof jpeg_kinds[0])

/* Decodes the whole image with libjpeg: interleaved, CMYK unchanged. */
static inline uint8_t *plain_jpeg(bytes b, uint32_t denom, uint32_t *w, uint32_t *h, uint32_t *channels)
{
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr e;
    c.err = jpeg_std_error(&e);
    jpeg_create_decompress(&c);
    jpeg_mem_src(&c, b.data, b.len);
    assert_int_equal(jpeg_read_header(&c, TRUE), JPEG_HEADER_OK);
    c.scale_num = 1;
    c.scale_denom = denom;
    if (c.num_components == 4) c.out_color_space = JCS_CMYK;
    if (c.num_components == 3) c.out_color_space = JCS_RGB;
    jpeg_start_decompress(&c);
    *w = c.output_width;
    *h = c.output_height;
    *channels = (uint32_t)c.output_components;
    size_t stride = (size_t)*w * *channels;
    uint8_t *out = malloc(stride * *h);
    assert_non_null(out);
    while (c.output_scanline < *h) {
        JSAMPROW row = out + c.output_scanline * stride;
        jpeg_read_scanlines(&c, &row, 1);
    }
    jpeg_finish_decompress(&c);
    assert_int_equal(e.num_warnings, 0);
    jpeg_destroy_decompress(&c);
    return out;
}

/* Returns channel c of pixel (x, y) of a reference; CMYK is converted to RGB with Pillow's rounding. */
static inline uint8_t plain_at(const uint8_t *ref, uint32_t w, uint32_t channels, uint32_t x, uint32_t y,
                               uint32_t c)
{
    const uint8_t *p = ref + ((size_t)y * w + x) * channels;
    if (channels != 4) return p[c];
    unsigned nk = p[3], t = (255u - p[c]) * nk + 128;
    unsigned ink = ((t >> 8) + t) >> 8;
    return (uint8_t)(nk - ink);
}

#endif
