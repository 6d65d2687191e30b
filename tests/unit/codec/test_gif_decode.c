/* SPDX-License-Identifier: Apache-2.0
 *
 * GIF: colours, palette indices, interlacing, transparency, frames, damage.
 */
#include "codec/animation.h"
#include "codec/foreign.h"

static uint8_t grey(uint32_t x, uint32_t y, uint32_t c)
{
    return formula(x, y, 0);
}

static uint8_t with_alpha(uint32_t x, uint32_t y, uint32_t c)
{
    if (c < 3) return palette_colour(x, y, c);
    return palette_number(x, y) == 3 ? 0 : 255;
}

static void pixels_are_known(void **state)
{
    foreign_same(LEAT__CODEC_GIF, "gif/palette.gif", 3, palette_colour);
    foreign_same(LEAT__CODEC_GIF, "gif/interlaced.gif", 3, palette_colour);
    foreign_same(LEAT__CODEC_GIF, "gif/animated.gif", 3, palette_colour);
    foreign_same(LEAT__CODEC_GIF, "gif/grey.gif", 3, grey);
    foreign_same(LEAT__CODEC_GIF, "gif/transparent.gif", 4, with_alpha);
}

static void palette_indices(void **state)
{
    bytes b = foreign_file("gif/transparent.gif");
    leat__decoder *d = NULL;
    leat__planes out = {0};
    leat__image_info info;
    assert_int_equal(leat__codec_probe(LEAT__CODEC_GIF, b.data, b.len, &info, NULL), 0);
    assert_false(info.animated);
    leat__image_as_indices(&info);
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    assert_int_equal(leat__codec_decode_planes(d, &info, b.data, b.len, NULL, &out, NULL), 0);
    for (uint32_t y = 0; y < FOREIGN_H; y++)
        for (uint32_t x = 0; x < FOREIGN_W; x++)
            assert_int_equal(out.plane[0][y * out.stride + x], palette_number(x, y));
    free(b.data);
    b = foreign_file("gif/animated.gif");
    assert_int_equal(leat__codec_probe(LEAT__CODEC_GIF, b.data, b.len, &info, NULL), 0);
    assert_true(info.animated);
    free(b.data);
    leat__planes_reset(&out);
    leat__decoder_close(&d);
}

/* Two colours on a canvas of 5 x 3, a frame of 2 x 1 at (2, 1): clear, 1, 0, end. */
static void frames_have_a_place_on_the_canvas(void **state)
{
    static const uint8_t file[] = "GIF89a\5\0\3\0\x80\0\0\x0a\x0b\x0c\x14\x15\x16"
                                  ",\2\0\1\0\2\0\1\0\0\2\2\x0c\x0a\0;";
    uint8_t x[sizeof file + LEAT__CODEC_PADDING] = {0};
    leat__decoder *d = NULL;
    leat__planes out = {0};
    leat__image_info info;
    leat_error err = {0};
    memcpy(x, file, sizeof file - 1);
    assert_int_equal(leat__codec_probe(LEAT__CODEC_GIF, x, sizeof file - 1, &info, NULL), 0);
    assert_int_equal(info.width, 5);
    assert_int_equal(info.height, 3);
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    assert_int_equal(leat__codec_decode_planes(d, &info, x, sizeof file - 1, NULL, &out, &err), 0);
    for (uint32_t i = 0; i < 15; i++)
        assert_int_equal(out.plane[0][i / 5 * out.stride + i % 5], i == 7 ? 0x14 : 0x0a);
    x[sizeof file - 5] = 0x2c; /* clear, then the end: no pixels */
    assert_int_equal(leat__codec_decode_planes(d, &info, x, sizeof file - 1, NULL, &out, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "GIF: pixels are missing"));
    x[sizeof file - 7] = 218; /* the size of codes */
    assert_int_equal(leat__codec_decode_planes(d, &info, x, sizeof file - 1, NULL, &out, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "GIF: impossible size of codes"));
    leat__planes_reset(&out);
    leat__decoder_close(&d);
}

static void damage_is_known(void **state)
{
    foreign_damage(LEAT__CODEC_GIF, "gif/palette.gif");
    foreign_damage(LEAT__CODEC_GIF, "gif/animated.gif");
    foreign_damage(LEAT__CODEC_GIF, "gif/transparent.gif");
}

/* An animation that is cut anywhere after its first frame is truncated, unless the cut is at the end of a
 * frame: then only the trailer is missing. */
static void later_frames_are_complete(void **state)
{
    bytes b = foreign_file("gif/animated.gif");
    leat__image_info info;
    leat__decoder *d = NULL;
    leat__planes out = {0};
    uint32_t ok = 0;
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    assert_int_equal(leat__codec_probe(LEAT__CODEC_GIF, b.data, b.len, &info, NULL), 0);
    const uint64_t frames = leat__anim_count(LEAT__CODEC_GIF, b.data, b.len);
    assert_true(info.animated && frames > 1);
    for (size_t len = b.len / 2; len <= b.len; len++) {
        leat_error err = {0};
        uint8_t *cut = calloc(1, len + LEAT__CODEC_PADDING); /* so that reads after it are found */
        memcpy(cut, b.data, len);
        const int rc = leat__codec_decode_planes(d, &info, cut, len, NULL, &out, &err);
        ok += rc == 0;
        if (rc != 0) {
            assert_int_equal(rc, LEAT_EDATA);
            assert_non_null(strstr(err.message, "premature end of file (truncated)"));
        }
        free(cut);
    }
    assert_true(ok <= 2 * (uint32_t)frames + 2);
    leat__planes_reset(&out);
    leat__decoder_close(&d);
    free(b.data);
}

#define HEAD "GIF89a\2\0\1\0\x80\0\0\x0a\x0b\x0c\x14\x15\x16"
#define NOTE "!\xfe\1x\0"
#define CONTROL "!\xf9\4\0\0\0\0\0"
#define FRAME ",\0\0\0\0\2\0\1\0\0\2\2\x0c\x0a\0"

/* Only the trailer may be missing, and the terminator of the first frame before it. A file that ends in the
 * header or the palette, or inside or after an extension, is truncated. */
static void a_file_may_end_only_after_a_frame(void **state)
{
    static const uint8_t file[] = HEAD NOTE CONTROL FRAME CONTROL FRAME ";";
    const size_t first = sizeof HEAD NOTE CONTROL FRAME - 1, second = sizeof file - 2;
    leat__decoder *d = NULL;
    leat__planes out = {0};
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    for (size_t len = 6; len < sizeof file; len++) {
        leat_error err = {0};
        leat__image_info info;
        uint8_t *cut = calloc(1, len + LEAT__CODEC_PADDING);
        memcpy(cut, file, len);
        int rc = leat__codec_probe(LEAT__CODEC_GIF, cut, len, &info, &err);
        if (rc == 0) rc = leat__codec_decode_planes(d, &info, cut, len, NULL, &out, &err);
        const bool ok = len == first - 1 || len == first || len >= second;
        assert_int_equal(rc, ok ? 0 : LEAT_EDATA);
        if (!ok) assert_non_null(strstr(err.message, "premature end of file (truncated)"));
        free(cut);
    }
    leat_error err = {0};
    leat__image_info info;
    uint8_t none[] = HEAD NOTE ";" FRAME; /* behind the trailer */
    assert_int_equal(leat__codec_probe(LEAT__CODEC_GIF, none, sizeof none - 1, &info, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "GIF: no image at byte"));
    leat__planes_reset(&out);
    leat__decoder_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_known),
        cmocka_unit_test(palette_indices),
        cmocka_unit_test(frames_have_a_place_on_the_canvas),
        cmocka_unit_test(damage_is_known),
        cmocka_unit_test(later_frames_are_complete),
        cmocka_unit_test(a_file_may_end_only_after_a_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
