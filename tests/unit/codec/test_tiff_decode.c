/* SPDX-License-Identifier: Apache-2.0
 *
 * TIFF: files of another program, lossless ones pixel for pixel; regions, damage.
 */
#include "codec/foreign.h"

#include "base/bytes.h"
#include "base/mem.h"
#include "codec/wide.h"

static void pixels_are_known(void **state)
{
    if (!foreign_loads(LEAT__CODEC_TIFF, "tiff/grey.tif")) skip();
    foreign_same(LEAT__CODEC_TIFF, "tiff/rgb_raw.tif", 3, formula);
    foreign_same(LEAT__CODEC_TIFF, "tiff/rgb_tiff_lzw.tif", 3, formula);
    foreign_same(LEAT__CODEC_TIFF, "tiff/rgb_tiff_deflate.tif", 3, formula);
    foreign_same(LEAT__CODEC_TIFF, "tiff/rgb_packbits.tif", 3, formula);
    foreign_same(LEAT__CODEC_TIFF, "tiff/rgba.tif", 4, formula);
    foreign_same(LEAT__CODEC_TIFF, "tiff/tiled.tif", 3, formula);
    foreign_same(LEAT__CODEC_TIFF, "tiff/separate.tif", 3, formula);
    foreign_same(LEAT__CODEC_TIFF, "tiff/big_endian.tif", 3, formula);
    foreign_same(LEAT__CODEC_TIFF, "tiff/bigtiff.tif", 4, formula);
    foreign_same(LEAT__CODEC_TIFF, "tiff/grey.tif", 1, formula);
    foreign_same(LEAT__CODEC_TIFF, "tiff/palette.tif", 3, palette_colour);
    foreign_same(LEAT__CODEC_TIFF, "tiff/jpeg.tif", 3, NULL);
    foreign_same(LEAT__CODEC_TIFF, "tiff/group4.tif", 1, NULL);
    foreign_same(LEAT__CODEC_TIFF, "tiff/pages.tif", 3, NULL);
}

static void damage_is_known(void **state)
{
    if (!foreign_loads(LEAT__CODEC_TIFF, "tiff/grey.tif")) skip();
    foreign_damage(LEAT__CODEC_TIFF, "tiff/rgb_tiff_lzw.tif");
    foreign_damage(LEAT__CODEC_TIFF, "tiff/palette.tif");
    foreign_damage(LEAT__CODEC_TIFF, "tiff/jpeg.tif");
}

static void check_wide(const char *name, leat__sample_type type, uint32_t channels)
{
    bytes b = foreign_file(name);
    leat__decoder *d = NULL;
    leat__image_info info;
    leat__wide out = {0};
    leat_error err = {0};
    uint32_t s = 4;
    assert_int_equal(leat__codec_probe(LEAT__CODEC_TIFF, b.data, b.len, &info, &err), 0);
    assert_int_equal(info.type, type);
    assert_int_equal(info.channels, channels);
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    for (int i = 0; i < 10; i++) {
        leat__decode_request rq = {.width = 1 + dice_below(&s, FOREIGN_W),
                                   .height = 1 + dice_below(&s, FOREIGN_H)};
        rq.x = dice_below(&s, FOREIGN_W - rq.width + 1);
        rq.y = dice_below(&s, FOREIGN_H - rq.height + 1);
        if (leat__codec_decode_wide(d, &info, b.data, b.len, &rq, &out, &err) != 0)
            fail_msg("%s: %s", name, err.message);
        for (uint32_t y = 0; y < rq.height; y++)
            for (uint32_t x = 0; x < rq.width * channels; x++) {
                const uint16_t want = formula16(rq.x + x / channels, rq.y + y, x % channels);
                const uint8_t *const row = leat__wide_row(&out, y);
                if (type == LEAT__SAMPLE_U8) assert_int_equal(row[x], want % 256);
                else if (type == LEAT__SAMPLE_U16) assert_int_equal(((const uint16_t *)row)[x], want);
                else assert_true(((const float *)row)[x] == (float)want / 16);
            }
    }
    for (size_t len = 0; len < b.len; len += b.len / 20 + 1) /* cut */
        if (leat__codec_probe(LEAT__CODEC_TIFF, b.data, len, &info, NULL) == 0)
            assert_int_equal(leat__codec_decode_wide(d, &info, b.data, len, NULL, &out, &err), LEAT_EDATA);
    leat__wide_reset(&out);
    leat__decoder_close(&d);
    free(b.data);
}

static void wide_samples_are_kept(void **state)
{
    if (!foreign_loads(LEAT__CODEC_TIFF, "tiff/grey.tif")) skip();
    check_wide("tiff/u16_5.tif", LEAT__SAMPLE_U16, 5);
    check_wide("tiff/u16_3_big_planar.tif", LEAT__SAMPLE_U16, 3);
    check_wide("tiff/u16_white.tif", LEAT__SAMPLE_U16, 1);
    check_wide("tiff/f32_3.tif", LEAT__SAMPLE_F32, 3);
    check_wide("tiff/f32_16_big.tif", LEAT__SAMPLE_F32, 16);
    check_wide("tiff/u8_7.tif", LEAT__SAMPLE_U8, 7);
    assert_int_equal(leat__mem_blocks(), 0);
}

/* Lab, 8-bit floats and 24-bit integers are refused. */
static void others_are_refused(void **state)
{
    static const struct {
        uint16_t tag, value;
    } changes[] = {{262, 8}, {339, 3}, {258, 24}};
    if (!foreign_loads(LEAT__CODEC_TIFF, "tiff/grey.tif")) skip();
    for (size_t i = 0; i < 3; i++) {
        bytes b = foreign_file("tiff/grey.tif");
        leat__image_info info;
        leat_error err = {0};
        size_t at = leat__load_u32(b.data + 4), n = leat__load_u16(b.data + at);
        for (size_t k = 0; k < n; k++) {
            uint8_t *entry = b.data + at + 2 + 12 * k;
            if (leat__load_u16(entry) == 284 && changes[i].tag == 339) leat__store_u16(entry, 339);
            if (leat__load_u16(entry) == changes[i].tag) leat__store_u16(entry + 8, changes[i].value);
        }
        assert_int_equal(leat__codec_probe(LEAT__CODEC_TIFF, b.data, b.len, &info, &err), LEAT_EFORMAT);
        assert_non_null(strstr(err.message, "are not supported"));
        free(b.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_known),
        cmocka_unit_test(damage_is_known),
        cmocka_unit_test(wide_samples_are_kept),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
