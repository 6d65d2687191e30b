/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include "codec/raw.h"
#include "ingest/pixel_file.h"

static uint8_t pixels[2 * 3 * 5 * 2 + LEAT__CODEC_PADDING];

/* A raw image of two rows of three pixels, with the padding that codecs want. */
static leat__buf raw_of(uint32_t channels, leat__sample_type type)
{
    leat__buf b;
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(7 * i);
    leat__buf_init(&b, LEAT__MEM_INGEST, 1u << 20);
    assert_int_equal(leat__raw_encode_wide(pixels, 3, 2, channels, type, 1, &b, NULL), 0);
    const size_t len = b.len;
    assert_int_equal(leat__buf_append(&b, pixels, LEAT__CODEC_PADDING), 0);
    b.len = len;
    return b;
}

static void check(leat__pixel_file *f, uint32_t channels, leat__sample_type type, leat__codec_id want,
                  const char *ending)
{
    leat__buf raw = raw_of(channels, type), out;
    leat__image_info info;
    leat_error err = {0};
    const char *ext = "";
    leat__buf_init(&out, LEAT__MEM_INGEST, 1u << 20);
    assert_int_equal(leat__buf_puts(&out, "of before"), 0);
    if (leat__pixel_file_write(f, (const uint8_t *)raw.data, raw.len, &out, &ext, &err) != 0)
        fail_msg("%s", err.message);
    assert_string_equal(ext, ending);
    assert_int_equal(leat__codec_sniff((const uint8_t *)out.data, out.len), want);
    if (want == LEAT__CODEC_PNG) {
        assert_int_equal(leat__buf_append(&out, pixels, LEAT__CODEC_PADDING), 0);
        const size_t len = out.len - LEAT__CODEC_PADDING;
        assert_int_equal(leat__codec_probe(want, (const uint8_t *)out.data, len, &info, &err), 0);
        assert_int_equal(info.width, 3);
        assert_int_equal(info.height, 2);
        assert_int_equal(info.channels, channels);
    }
    leat__buf_reset(&raw);
    leat__buf_reset(&out);
}

static void png_of_bytes_and_tiff_of_the_rest(void **state)
{
    leat__pixel_file f = {0};
    check(&f, 3, LEAT__SAMPLE_U8, LEAT__CODEC_PNG, "png");
    check(&f, 1, LEAT__SAMPLE_U8, LEAT__CODEC_PNG, "png");
    check(&f, 5, LEAT__SAMPLE_U8, LEAT__CODEC_TIFF, "tif");
    check(&f, 5, LEAT__SAMPLE_U16, LEAT__CODEC_TIFF, "tif");
    check(&f, 4, LEAT__SAMPLE_U8, LEAT__CODEC_PNG, "png");
    leat__pixel_file_reset(&f);
}

static void damage_is_an_error(void **state)
{
    leat__pixel_file f = {0};
    leat__buf raw = raw_of(3, LEAT__SAMPLE_U8), out;
    leat_error err = {0};
    const char *ext;
    leat__buf_init(&out, LEAT__MEM_INGEST, 1u << 20);
    assert_int_equal(leat__pixel_file_write(&f, (const uint8_t *)raw.data, raw.len - 1, &out, &ext, &err),
                     LEAT_EDATA);
    assert_int_equal(out.len, 0);
    leat__pixel_file_reset(&f);
    leat__buf_reset(&raw);
    leat__buf_reset(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(png_of_bytes_and_tiff_of_the_rest),
        cmocka_unit_test(damage_is_an_error),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
