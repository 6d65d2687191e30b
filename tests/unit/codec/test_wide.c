/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/make_image.h"

#include "base/buf.h"
#include "base/mem.h"
#include "codec/raw.h"
#include "codec/wide.h"

static const struct kind {
    leat__sample_type type;
    uint32_t channels;
} kinds[] = {{LEAT__SAMPLE_U16, 1},  {LEAT__SAMPLE_U16, 4}, {LEAT__SAMPLE_F32, 3},
             {LEAT__SAMPLE_F32, 16}, {LEAT__SAMPLE_U8, 2},  {LEAT__SAMPLE_U8, 9}};

static leat__buf make_raw(const struct kind *k, uint32_t w, uint32_t h, uint8_t **pixels, uint32_t turn)
{
    leat__buf buf;
    *pixels = make_pixels(w, h, k->channels * leat__sample_bytes(k->type), 3);
    leat__buf_init(&buf, LEAT__MEM_CODEC, 1 << 22);
    assert_int_equal(leat__raw_encode_wide(*pixels, w, h, k->channels, k->type, turn, &buf, NULL), 0);
    return buf;
}

static void regions_are_copies(void **state)
{
    leat__decoder *d = NULL;
    uint32_t s = 9;
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const uint32_t w = 41, h = 23;
        uint8_t *pixels;
        leat__buf buf = make_raw(&kinds[i], w, h, &pixels, 1);
        const uint8_t *const data = (const uint8_t *)buf.data;
        leat__image_info info;
        leat__wide out = {0};
        assert_int_equal(leat__codec_probe(LEAT__CODEC_RAW, data, buf.len, &info, NULL), 0);
        assert_true(leat__image_wide(&info));
        assert_int_equal(info.type, kinds[i].type);
        assert_int_equal(info.channels, kinds[i].channels);
        for (int n = 0; n < 20; n++) {
            leat__decode_request rq = {.width = 1 + dice_below(&s, w), .height = 1 + dice_below(&s, h)};
            rq.x = dice_below(&s, w - rq.width + 1);
            rq.y = dice_below(&s, h - rq.height + 1);
            assert_int_equal(leat__codec_decode_wide(d, &info, data, buf.len, &rq, &out, NULL), 0);
            const size_t pixel = leat__wide_pixel(&out);
            for (uint32_t y = 0; y < rq.height; y++)
                assert_memory_equal(leat__wide_row(&out, y), pixels + ((rq.y + y) * w + rq.x) * pixel,
                                    rq.width * pixel);
        }
        leat__wide_reset(&out);
        leat__buf_reset(&buf);
        free(pixels);
    }
    leat__decoder_close(&d);
    assert_int_equal(leat__mem_blocks(), 0);
}

/* Samples are not reduced to 8 bits for callers that only support 8 bits. */
static void planes_are_refused(void **state)
{
    leat__decoder *d = NULL;
    uint8_t *pixels;
    leat__planes planes = {0};
    leat__image_info info;
    leat_error err = {0};
    leat__buf buf = make_raw(&kinds[1], 5, 4, &pixels, 1);
    const uint8_t *const data = (const uint8_t *)buf.data;
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    assert_int_equal(leat__codec_probe(LEAT__CODEC_RAW, data, buf.len, &info, NULL), 0);
    assert_int_equal(leat__codec_decode_planes(d, &info, data, buf.len, NULL, &planes, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "uint16 samples with 4 channels"));
    leat__planes_reset(&planes);
    leat__decoder_close(&d);
    leat__buf_reset(&buf);
    free(pixels);
}

static void limits_hold(void **state)
{
    leat__decoder *d = NULL;
    uint8_t *pixels;
    leat__wide out = {0};
    leat__image_info info;
    leat__buf buf = make_raw(&kinds[3], 20, 20, &pixels, 1);
    const uint8_t *const data = (const uint8_t *)buf.data;
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    assert_int_equal(leat__codec_probe(LEAT__CODEC_RAW, data, buf.len, &info, NULL), 0);
    leat__decode_request rq = {.limits = {.max_out_bytes = 20 * 20 * 16 * 4 - 1}};
    assert_int_equal(leat__codec_decode_wide(d, &info, data, buf.len, &rq, &out, NULL), LEAT_ELIMIT);
    rq.limits.max_out_bytes++;
    assert_int_equal(leat__codec_decode_wide(d, &info, data, buf.len, &rq, &out, NULL), 0);
    rq.limits.max_pixels = 399;
    assert_int_equal(leat__codec_decode_wide(d, &info, data, buf.len, &rq, &out, NULL), LEAT_ELIMIT);
    assert_int_equal(leat__wide_resize(&out, LEAT__SAMPLE_F32, 16, UINT32_MAX, UINT32_MAX, NULL),
                     LEAT_EOVERFLOW);
    assert_int_equal(leat__wide_resize(&out, LEAT__SAMPLE_U8, 17, 1, 1, NULL), LEAT_EOVERFLOW);
    leat__wide_reset(&out);
    leat__decoder_close(&d);
    leat__buf_reset(&buf);
    free(pixels);
}

/* Rotating by o and then by the opposite of o restores the image; 6 is a quarter turn clockwise. */
static void turns(void **state)
{
    static const uint32_t back[9] = {0, 1, 2, 3, 4, 5, 8, 7, 6};
    leat__wide in = {0}, out = {0}, again = {0};
    assert_int_equal(leat__wide_resize(&in, LEAT__SAMPLE_U16, 3, 7, 5, NULL), 0);
    for (uint32_t y = 0; y < 5; y++)
        for (uint32_t x = 0; x < 7; x++)
            for (uint32_t c = 0; c < 3; c++)
                ((uint16_t *)leat__wide_row(&in, y))[x * 3 + c] = (uint16_t)(x * 1000 + y * 10 + c);
    for (uint32_t o = 1; o <= 8; o++) {
        assert_int_equal(leat__wide_turn(&in, o, &out, NULL), 0);
        assert_int_equal(out.width, o >= 5 ? 5 : 7);
        if (o == 6) assert_int_equal(((uint16_t *)leat__wide_row(&out, 0))[0], 40); /* bottom left */
        assert_int_equal(leat__wide_turn(&out, back[o], &again, NULL), 0);
        for (uint32_t y = 0; y < 5; y++)
            assert_memory_equal(leat__wide_row(&again, y), leat__wide_row(&in, y), 7 * 6);
    }
    leat__wide_reset(&in);
    leat__wide_reset(&out);
    leat__wide_reset(&again);
    assert_int_equal(leat__mem_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_are_copies),
        cmocka_unit_test(planes_are_refused),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
