/* SPDX-License-Identifier: Apache-2.0
 *
 * BMP: all depths, runs, masks, refused files, damage.
 */
#include "codec/foreign.h"

#include "base/bytes.h"

static uint8_t grey(uint32_t x, uint32_t y, uint32_t c)
{
    return formula(x, y, 0);
}

static uint8_t black_or_white(uint32_t x, uint32_t y, uint32_t c)
{
    return formula(x, y, 0) >= 128 ? 255 : 0;
}

static void pixels_are_known(void **state)
{
    foreign_same(LEAT__CODEC_BMP, "bmp/rgb.bmp", 3, formula);
    foreign_same(LEAT__CODEC_BMP, "bmp/rgba.bmp", 3, formula);
    foreign_same(LEAT__CODEC_BMP, "bmp/palette.bmp", 3, palette_colour);
    foreign_same(LEAT__CODEC_BMP, "bmp/grey.bmp", 3, grey);
    foreign_same(LEAT__CODEC_BMP, "bmp/one.bmp", 3, black_or_white);
}

static void damage_is_known(void **state)
{
    foreign_damage(LEAT__CODEC_BMP, "bmp/rgb.bmp");
    foreign_damage(LEAT__CODEC_BMP, "bmp/palette.bmp");
}

/* Writes a file of 4 x 2 pixels: the header, a palette of `colours` grey steps of 10, then `data`. */
static size_t make(uint8_t *to, int32_t height, uint32_t bits, uint32_t compression, uint32_t colours,
                   const uint8_t *data, size_t len)
{
    memset(to, 0, 512);
    memcpy(to, "BM", 2);
    leat__store_u32(to + 10, 54 + colours * 4);
    leat__store_u32(to + 14, 40);
    leat__store_u32(to + 18, 4);
    leat__store_u32(to + 22, (uint32_t)height);
    leat__store_u16(to + 26, 1);
    leat__store_u16(to + 28, (uint16_t)bits);
    leat__store_u32(to + 30, compression);
    leat__store_u32(to + 46, bits <= 8 ? colours : 0);
    for (uint32_t i = 0; i < colours; i++) memset(to + 54 + i * 4, (int)(i * 10), 3);
    memcpy(to + 54 + colours * 4, data, len);
    return 54 + colours * 4 + len;
}

/* Writes the first plane of the decoded image to out[8]; returns the code of the decode. */
static int decode(uint8_t *file, size_t len, uint8_t out[8], leat_error *err)
{
    leat__decoder *d = NULL;
    leat__planes p = {0};
    leat__image_info info;
    int rc = leat__codec_probe(LEAT__CODEC_BMP, file, len, &info, err);
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    if (rc == 0) rc = leat__codec_decode_planes(d, &info, file, len, NULL, &p, err);
    for (uint32_t i = 0; rc == 0 && i < 8; i++) out[i] = p.plane[0][i / 4 * p.stride + i % 4];
    leat__planes_reset(&p);
    leat__decoder_close(&d);
    return rc;
}

static void runs_are_unpacked(void **state)
{
    static const uint8_t rle8[] = {3, 2, 1, 1, 0, 0, 0, 3, 1, 2, 3, 0, 0, 1}; /* 2 2 2 1 | 1 2 3 0 */
    static const uint8_t rle4[] = {4, 0x12, 0, 0, 0, 2, 1, 0, 3, 0x34, 0, 1}; /* 1 2 1 2 | 0 3 4 3 */
    static const uint8_t want8[8] = {10, 20, 30, 0, 20, 20, 20, 10};
    static const uint8_t want4[8] = {0, 30, 40, 30, 10, 20, 10, 20};
    static const uint8_t outside[] = {5, 2, 0, 1};
    uint8_t file[1024], out[8];
    leat_error err = {0};
    size_t len = make(file, 2, 8, 1, 5, rle8, sizeof rle8);
    assert_int_equal(decode(file, len, out, &err), 0);
    assert_memory_equal(out, want8, 8);
    assert_int_equal(decode(file, len - 2, out, &err), LEAT_EDATA); /* no end of the bitmap */
    assert_non_null(strstr(err.message, "truncated"));
    len = make(file, 2, 4, 2, 5, rle4, sizeof rle4);
    assert_int_equal(decode(file, len, out, &err), 0);
    assert_memory_equal(out, want4, 8);
    len = make(file, 2, 8, 1, 5, outside, sizeof outside);
    assert_int_equal(decode(file, len, out, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "a run outside of the image"));
}

static void masks_and_rows_from_the_top(void **state)
{
    static const uint8_t five[] = {0, 0x7c, 0, 0x04, 0, 0, 0, 0x3c, 0, 0, 0, 0, 0, 0, 0, 0};
    static const uint8_t want[8] = {255, 8, 0, 123};
    uint8_t file[1024], out[8];
    leat_error err = {0};
    size_t len = make(file, -2, 16, 0, 0, five, sizeof five); /* red 31, 1, 0, 15 of 31, first row first */
    assert_int_equal(decode(file, len, out, &err), 0);
    assert_memory_equal(out, want, 8);
    static const uint8_t pixel[] = {1, 2, 3, 77, 1, 2, 3, 77, 1, 2, 3, 77, 1, 2, 3, 77};
    static const uint32_t masks[4] = {0xff0000, 0xff00, 0xff, 0xff000000};
    leat__image_info info;
    make(file, 1, 32, 3, 0, pixel, 0);
    leat__store_u32(file + 10, 14 + 108); /* a header of 108 bytes, with a mask for alpha */
    leat__store_u32(file + 14, 108);
    memcpy(file + 54, masks, sizeof masks);
    memcpy(file + 14 + 108, pixel, sizeof pixel);
    len = 14 + 108 + sizeof pixel;
    assert_int_equal(leat__codec_probe(LEAT__CODEC_BMP, file, len, &info, &err), 0);
    assert_int_equal(info.channels, 4);
    leat__decoder *d = NULL;
    leat__planes p = {0};
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    assert_int_equal(leat__codec_decode_planes(d, &info, file, len, NULL, &p, &err), 0);
    for (uint32_t c = 0; c < 4; c++) assert_int_equal(p.plane[c][0], c < 3 ? 3 - c : 77);
    leat__planes_reset(&p);
    leat__decoder_close(&d);
    leat__store_u32(file + 54, 0x00fe0100); /* a mask with a gap */
    assert_int_equal(leat__codec_probe(LEAT__CODEC_BMP, file, len, &info, &err), LEAT_EFORMAT);
}

static void others_are_refused(void **state)
{
    uint8_t file[1024], out[8], data[8] = {0};
    leat_error err = {0};
    size_t len = make(file, 2, 24, 4, 0, data, sizeof data); /* a JPEG inside */
    assert_int_equal(decode(file, len, out, &err), LEAT_EFORMAT);
    assert_string_equal(err.message, "BMP: 24 bits per pixel with compression 4 are not supported");
    len = make(file, 0, 24, 0, 0, data, sizeof data);
    assert_int_equal(decode(file, len, out, &err), LEAT_EDATA);
    len = make(file, 2, 8, 0, 5, data, sizeof data);
    leat__store_u32(file + 46, 257);
    assert_int_equal(decode(file, len, out, &err), LEAT_EDATA);
    len = make(file, 2, 24, 0, 0, data, sizeof data);
    leat__store_u32(file + 18, 1000001);
    assert_int_equal(decode(file, len, out, &err), LEAT_ELIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_known),   cmocka_unit_test(damage_is_known),
        cmocka_unit_test(runs_are_unpacked),  cmocka_unit_test(masks_and_rows_from_the_top),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
