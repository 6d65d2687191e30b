/* SPDX-License-Identifier: Apache-2.0
 *
 * TIFF: files of another program, lossless ones pixel for pixel; regions, damage.
 */
#include "codec/foreign.h"

#include "base/bytes.h"

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

/* Lab, floats and 16 bits. */
static void others_are_refused(void **state)
{
    static const struct {
        uint16_t tag, value;
    } changes[] = {{262, 8}, {339, 3}, {258, 16}};
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
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
