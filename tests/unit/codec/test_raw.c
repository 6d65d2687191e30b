/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/make_image.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "codec/planes.h"
#include "codec/raw.h"

static void make_planes(leat__planes *p, const uint8_t *pixels, uint32_t w, uint32_t h, uint32_t n)
{
    assert_int_equal(leat__planes_resize(p, w, h, n, NULL), 0);
    for (uint32_t y = 0; y < h; y++) {
        uint8_t *row[4];
        for (uint32_t c = 0; c < n; c++) row[c] = p->plane[c] + y * p->stride;
        leat__planar_split(pixels + (size_t)y * w * n, w, n, row);
    }
}

static void regions_are_copies(void **state)
{
    leat__decoder *d = NULL;
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    static const uint32_t channels[] = {1, 3, 4};
    for (int k = 0; k < 3; k++) {
        uint32_t n = channels[k], w = 77, h = 41, s = 9;
        uint8_t *pixels = make_pixels(w, h, n, 5);
        leat__planes p = {0}, out = {0};
        make_planes(&p, pixels, w, h, n);
        leat__buf buf;
        leat__buf_init(&buf, LEAT__MEM_CODEC, 1 << 20);
        leat__encode_opts opts = {.orientation = 8};
        assert_int_equal(leat__codec_encode(LEAT__CODEC_RAW, &p, &opts, &buf, NULL), 0);
        assert_int_equal(buf.len, LEAT__RAW_HEADER + (size_t)w * h * n);
        assert_memory_equal(buf.data + LEAT__RAW_HEADER, pixels, (size_t)w * h * n);
        const uint8_t *data = (const uint8_t *)buf.data;
        leat__image_info info;
        assert_int_equal(leat__codec_sniff(data, buf.len), LEAT__CODEC_RAW);
        assert_int_equal(leat__codec_probe(LEAT__CODEC_RAW, data, buf.len, &info, NULL), 0);
        assert_int_equal(info.orientation, 8);
        assert_int_equal(info.channels, n);
        for (int i = 0; i < 50; i++) {
            leat__decode_request rq = {0};
            rq.width = 1 + dice_below(&s, w);
            rq.height = 1 + dice_below(&s, h);
            rq.x = dice_below(&s, w - rq.width + 1);
            rq.y = dice_below(&s, h - rq.height + 1);
            assert_int_equal(leat__codec_decode_planes(d, &info, data, buf.len, &rq, &out, NULL), 0);
            for (uint32_t c = 0; c < n; c++)
                for (uint32_t y = 0; y < rq.height; y++)
                    assert_memory_equal(out.plane[c] + y * out.stride,
                                        p.plane[c] + (rq.y + y) * p.stride + rq.x, rq.width);
        }
        leat__buf_reset(&buf);
        leat__planes_reset(&p);
        leat__planes_reset(&out);
        free(pixels);
    }
    leat__decoder_close(&d);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void headers_that_lie_are_refused(void **state)
{
    uint8_t img[LEAT__RAW_HEADER + 12] = {'L', 'R', 'A', 'W', 1, 3, 1, 0, 2, 0, 0, 0, 2};
    leat__image_info info;
    assert_int_equal(leat__codec_probe(LEAT__CODEC_RAW, img, sizeof img, &info, NULL), 0);
    for (size_t len = 0; len < sizeof img; len++)
        assert_int_equal(leat__codec_probe(LEAT__CODEC_RAW, img, len, &info, NULL), LEAT_EDATA);
    leat__store_u32(img + 8, UINT32_MAX);
    leat__store_u32(img + 12, UINT32_MAX);
    assert_int_equal(leat__codec_probe(LEAT__CODEC_RAW, img, sizeof img, &info, NULL), LEAT_EDATA);
    leat__store_u32(img + 8, 2);
    leat__store_u32(img + 12, 2);
    img[5] = 2;
    assert_int_equal(leat__codec_probe(LEAT__CODEC_RAW, img, sizeof img, &info, NULL), LEAT_EDATA);
    img[5] = 3;
    img[6] = 9;
    assert_int_equal(leat__codec_probe(LEAT__CODEC_RAW, img, sizeof img, &info, NULL), LEAT_EDATA);
    img[6] = 1;
    img[4] = 2; /* three bytes are version 1 */
    assert_int_equal(leat__codec_probe(LEAT__CODEC_RAW, img, sizeof img, &info, NULL), LEAT_EDATA);
    img[4] = 3;
    assert_int_equal(leat__codec_probe(LEAT__CODEC_RAW, img, sizeof img, &info, NULL), LEAT_EFORMAT);
}

static void wide_headers_that_lie_are_refused(void **state)
{
    uint8_t img[LEAT__RAW_HEADER + 2 * 2 * 5 * 2] = {'L', 'R', 'A', 'W', 2, 5, 1, 1, 2, 0, 0, 0, 2};
    static const struct {
        int at;
        uint8_t value;
    } lies[] = {{5, 0}, {5, 4}, {5, 17},  {5, 255}, {6, 0},  {7, 0},
                {7, 2}, {7, 3}, {7, 255}, {8, 3},   {12, 1}, {4, 1}};
    leat__image_info info;
    assert_int_equal(leat__codec_probe(LEAT__CODEC_RAW, img, sizeof img, &info, NULL), 0);
    assert_string_equal(info.format, "raw uint16 x 5");
    for (size_t len = 0; len < sizeof img; len++)
        assert_int_equal(leat__codec_probe(LEAT__CODEC_RAW, img, len, &info, NULL), LEAT_EDATA);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        uint8_t lie[sizeof img];
        memcpy(lie, img, sizeof img);
        lie[lies[i].at] = lies[i].value;
        assert_int_equal(leat__codec_probe(LEAT__CODEC_RAW, lie, sizeof lie, &info, NULL), LEAT_EDATA);
    }
    leat__buf buf;
    leat__buf_init(&buf, LEAT__MEM_CODEC, 1 << 20);
    assert_int_equal(leat__raw_encode_wide(img, 1, 1, 17, LEAT__SAMPLE_U8, 1, &buf, NULL), LEAT_EINVAL);
    leat__buf_reset(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_are_copies),
        cmocka_unit_test(headers_that_lie_are_refused),
        cmocka_unit_test(wide_headers_that_lie_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
