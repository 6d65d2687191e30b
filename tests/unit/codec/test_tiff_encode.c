/* SPDX-License-Identifier: Apache-2.0
 *
 * TIFF files of wide pixels, read back by the decoder (libtiff) if there is one.
 */
#include "codec/make_image.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "codec/tiff_encode.h"

static void make(leat__wide *im, leat__sample_type type, uint32_t channels)
{
    uint32_t s = channels;
    assert_int_equal(leat__wide_resize(im, type, channels, 19, 11, NULL), 0);
    for (uint32_t y = 0; y < im->height; y++)
        for (size_t i = 0; i < im->width * leat__wide_pixel(im); i++)
            leat__wide_row(im, y)[i] = (uint8_t)dice(&s);
}

static void read_back(const leat__wide *im, const leat__buf *file)
{
    leat__image_info info;
    leat__decoder *d = NULL;
    leat__wide out = {0};
    leat_error err = {0};
    const uint8_t *const data = (const uint8_t *)file->data;
    int rc = leat__codec_probe(LEAT__CODEC_TIFF, data, file->len, &info, &err);
    if (rc == LEAT_ENOTSUP) return;
    if (rc != 0) fail_msg("%s", err.message);
    assert_int_equal(info.type, im->type);
    assert_int_equal(info.channels, im->channels);
    assert_int_equal(info.orientation, 6);
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    assert_int_equal(leat__codec_decode_wide(d, &info, data, file->len, NULL, &out, &err), 0);
    for (uint32_t y = 0; y < im->height; y++)
        assert_memory_equal(leat__wide_row(&out, y), leat__wide_row(im, y), im->width * leat__wide_pixel(im));
    leat__wide_reset(&out);
    leat__decoder_close(&d);
}

static void files_hold_the_pixels(void **state)
{
    for (int type = 0; type < LEAT__SAMPLE_COUNT; type++)
        for (uint32_t channels = 1; channels <= 16; channels++) {
            const leat__image_info info = {.type = (leat__sample_type)type, .channels = channels};
            leat__wide im = {0};
            leat__buf file;
            if (!leat__image_wide(&info)) continue;
            if (type == LEAT__SAMPLE_U8 && channels == 2) continue; /* is read as grey with alpha */
            make(&im, (leat__sample_type)type, channels);
            leat__buf_init(&file, LEAT__MEM_CODEC, 1 << 20);
            assert_int_equal(leat__tiff_encode(&im, 6, &file, NULL), 0);
            assert_memory_equal(file.data, "II*\0", 4);
            /* the pixels are the end of the file */
            const size_t line = im.width * leat__wide_pixel(&im);
            for (uint32_t y = 0; y < im.height; y++)
                assert_memory_equal(file.data + file.len - (im.height - y) * line, leat__wide_row(&im, y),
                                    line);
            read_back(&im, &file);
            leat__buf_reset(&file);
            leat__wide_reset(&im);
        }
    assert_int_equal(leat__mem_blocks(), 0);
}

static void tags_ascend(void **state)
{
    leat__wide im = {0};
    leat__buf file;
    make(&im, LEAT__SAMPLE_F32, 16);
    leat__buf_init(&file, LEAT__MEM_CODEC, 1 << 20);
    assert_int_equal(leat__tiff_encode(&im, 1, &file, NULL), 0);
    const uint8_t *const dir = (const uint8_t *)file.data + 8;
    for (uint32_t i = 1; i < leat__load_u16(dir); i++)
        assert_true(leat__load_u16(dir + 2 + 12 * i) > leat__load_u16(dir + 2 + 12 * (i - 1)));
    leat__buf_reset(&file);
    im.height = UINT32_MAX; /* not read */
    assert_int_equal(leat__tiff_encode(&im, 1, &file, NULL), LEAT_EOVERFLOW);
    leat__wide_reset(&im);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_hold_the_pixels),
        cmocka_unit_test(tags_ascend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
