/* SPDX-License-Identifier: Apache-2.0
 *
 * Recognises formats by their first bytes, also those that a build cannot decode.
 */
#include "codec/make_image.h"

#include "codec/magic.h"

static void formats_are_known(void **state)
{
    static const struct {
        const char *data;
        size_t len;
        leat__codec_id want;
    } cases[] = {
        {"II*\0....", 8, LEAT__CODEC_TIFF},
        {"MM\0*....", 8, LEAT__CODEC_TIFF},
        {"II+\0....", 8, LEAT__CODEC_TIFF},
        {"II*", 3, LEAT__CODEC_NONE},
        {"\xff\x0a..", 4, LEAT__CODEC_JXL},
        {"\0\0\0\x0cJXL \r\n\x87\n", 12, LEAT__CODEC_JXL},
        {"\0\0\0\x20"
         "ftypavif\0\0\0\0mif1....",
         24, LEAT__CODEC_AVIF},
        {"\0\0\0\x20"
         "ftypmif1\0\0\0\0mif1avif",
         24, LEAT__CODEC_AVIF},
        {"\0\0\0\x18"
         "ftypheic\0\0\0\0mif1heic",
         24, LEAT__CODEC_HEIF},
        {"\0\0\0\x18"
         "ftypisom\0\0\0\0mp41mp42",
         24, LEAT__CODEC_NONE}, /* a video */
        {"\x89PNG\r\n\x1a\n", 8, LEAT__CODEC_PNG},
        {"", 0, LEAT__CODEC_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(leat__magic((const uint8_t *)cases[i].data, cases[i].len), cases[i].want);
}

static void missing_decoders_are_named(void **state)
{
    leat__image_info info;
    leat_error err = {0};
    int seen = 0;
    for (int id = 1; id < LEAT__CODEC_COUNT; id++) {
        if (leat__codec_built((leat__codec_id)id)) continue;
        uint8_t none[64] = {0};
        assert_int_equal(leat__codec_probe((leat__codec_id)id, none, 64, &info, &err), LEAT_ENOTSUP);
        assert_non_null(strstr(err.message, "not part of this build"));
        seen++;
    }
    assert_true(seen < LEAT__CODEC_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_are_known),
        cmocka_unit_test(missing_decoders_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
