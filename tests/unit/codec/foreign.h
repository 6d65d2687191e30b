/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of formats that are decoded whole (codec/whole.h). Their files are in the corpora of
 * the fuzz targets. Other programs (Pillow, avifenc, cjxl, heif-enc) made them from two pictures that are
 * known here: a formula per channel, and a palette image.
 */
#ifndef LEAT_TEST_FOREIGN_H
#define LEAT_TEST_FOREIGN_H

#include "codec/make_image.h"

#include "base/mem.h"

static int foreign_tolerance; /* in steps of 255, between the pixels and those known */

enum { FOREIGN_W = 37, FOREIGN_H = 29 };

static inline uint8_t formula(uint32_t x, uint32_t y, uint32_t c)
{
    return (uint8_t)(x * 7 + y * 13 + c * 50 + x * y % 11);
}

/* Returns a sample of the 16-bit files; floats are a sixteenth of it. */
static inline uint16_t formula16(uint32_t x, uint32_t y, uint32_t c)
{
    return (uint16_t)(x * 701 + y * 1301 + c * 5003);
}

/* Returns a palette index; the palette has 64 colours. */
static inline uint8_t palette_number(uint32_t x, uint32_t y)
{
    return (uint8_t)((x + 3 * y) % 64);
}

static inline uint8_t palette_colour(uint32_t x, uint32_t y, uint32_t c)
{
    uint32_t i = palette_number(x, y);
    return (uint8_t)(c == 0 ? i * 5 + 1 : c == 1 ? i * 3 + 2 : 255 - i);
}

static inline bytes foreign_file(const char *name)
{
    char path[4096];
    const char *data = getenv("LEAT_TEST_DATA");
    snprintf(path, sizeof path, "%s/../fuzz/corpus/%s", data ? data : "tests/data", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    bytes b = {calloc(1, (1u << 20) + LEAT__CODEC_PADDING), 0};
    b.len = fread(b.data, 1, 1u << 20, f);
    fclose(f);
    assert_true(b.len > 0);
    return b;
}

/* True when the machine has the library that this build would load. */
static inline bool foreign_loads(leat__codec_id codec, const char *name)
{
    leat__image_info info;
    bytes b = foreign_file(name);
    int rc = leat__codec_probe(codec, b.data, b.len, &info, NULL);
    free(b.data);
    return rc != LEAT_ENOTSUP;
}

/* Decodes the whole image and regions, which must agree with each other, and with `want` if it is given. */
static inline void foreign_same(leat__codec_id codec, const char *name, uint32_t channels,
                                uint8_t (*want)(uint32_t, uint32_t, uint32_t))
{
    bytes b = foreign_file(name);
    leat__decoder *d = NULL;
    leat__planes whole = {0}, part = {0};
    leat__image_info info;
    leat_error err = {0};
    uint32_t s = 3;
    assert_int_equal(leat__codec_sniff(b.data, b.len), codec);
    assert_int_equal(leat__codec_probe(codec, b.data, b.len, &info, &err), 0);
    assert_int_equal(info.width, FOREIGN_W);
    assert_int_equal(info.height, FOREIGN_H);
    assert_int_equal(info.channels, channels);
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    assert_int_equal(leat__codec_decode_planes(d, &info, b.data, b.len, NULL, &whole, &err), 0);
    for (uint32_t c = 0; c < channels && want; c++)
        for (uint32_t y = 0; y < FOREIGN_H; y++)
            for (uint32_t x = 0; x < FOREIGN_W; x++)
                assert_in_range(whole.plane[c][y * whole.stride + x] + foreign_tolerance - want(x, y, c), 0,
                                2 * foreign_tolerance);
    for (int i = 0; i < 20; i++) {
        leat__decode_request rq = {.width = 1 + dice_below(&s, FOREIGN_W),
                                   .height = 1 + dice_below(&s, FOREIGN_H)};
        rq.x = dice_below(&s, FOREIGN_W - rq.width + 1);
        rq.y = dice_below(&s, FOREIGN_H - rq.height + 1);
        assert_int_equal(leat__codec_decode_planes(d, &info, b.data, b.len, &rq, &part, &err), 0);
        for (uint32_t c = 0; c < channels; c++)
            for (uint32_t y = 0; y < rq.height; y++)
                assert_memory_equal(part.plane[c] + y * part.stride,
                                    whole.plane[c] + (rq.y + y) * whole.stride + rq.x, rq.width);
    }
    leat__planes_reset(&whole);
    leat__planes_reset(&part);
    leat__decoder_close(&d);
    free(b.data);
    assert_int_equal(leat__mem_blocks(), 0);
}

/* A file that is truncated anywhere or has changed bytes gives pixels or one clear error; truncated to half,
 * an error. */
static inline void foreign_damage(leat__codec_id codec, const char *name)
{
    bytes b = foreign_file(name);
    leat__decoder *d = NULL;
    leat__planes out = {0};
    leat__image_info whole, info;
    uint32_t s = 9;
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    assert_int_equal(leat__codec_probe(codec, b.data, b.len, &whole, NULL), 0);
    for (uint32_t i = 0; i < 200; i++) {
        leat_error err = {0};
        size_t len = i < 100 ? b.len * i / 100 : b.len;
        uint8_t *x = malloc(len + LEAT__CODEC_PADDING);
        memcpy(x, b.data, len);
        memset(x + len, 0, LEAT__CODEC_PADDING);
        for (uint32_t k = 0; i >= 100 && k < 3; k++) x[dice_below(&s, (uint32_t)len)] = (uint8_t)dice(&s);
        int rc = leat__codec_probe(codec, x, len, &info, &err);
        if (rc == 0) rc = leat__codec_decode_planes(d, &info, x, len, NULL, &out, &err);
        if (rc != 0) assert_true(err.message[0] != 0);
        if (i < 50) assert_int_not_equal(rc, 0);
        err = (leat_error){0};
        rc = leat__codec_decode_planes(d, &whole, x, len, NULL, &out, &err); /* not what was probed */
        if (rc != 0) assert_true(err.message[0] != 0);
        free(x);
    }
    leat__planes_reset(&out);
    leat__decoder_close(&d);
    free(b.data);
    assert_int_equal(leat__mem_blocks(), 0);
}

#endif
