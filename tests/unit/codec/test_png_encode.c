/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/make_image.h"

#include "base/buf.h"
#include "base/mem.h"
#include "codec/planes.h"
#include "codec/png_encode.h"

static void pixels_come_back_exactly(void **state)
{
    static const uint32_t channels[] = {1, 3, 4};
    leat__decoder *d = NULL;
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    for (int i = 0; i < 3; i++) {
        uint32_t n = channels[i], w = 61, h = 37;
        leat__planes p = {0}, out = {0};
        leat__buf buf;
        leat__image_info info;
        assert_int_equal(leat__planes_resize(&p, w, h, n, NULL), 0);
        for (uint32_t c = 0; c < n; c++)
            for (uint32_t y = 0; y < h; y++)
                for (uint32_t x = 0; x < w; x++)
                    p.plane[c][y * p.stride + x] = (uint8_t)(x * 7 + y * 13 + c * 50);
        leat__buf_init(&buf, LEAT__MEM_CODEC, 1 << 20);
        leat__encode_opts opts = {.orientation = (uint32_t)i + 4};
        assert_int_equal(leat__codec_encode(LEAT__CODEC_PNG, &p, &opts, &buf, NULL), 0);
        const uint8_t *data = (const uint8_t *)buf.data;
        assert_int_equal(leat__codec_probe(LEAT__CODEC_PNG, data, buf.len, &info, NULL), 0);
        assert_int_equal(info.orientation, i + 4);
        assert_int_equal(info.channels, n);
        assert_int_equal(leat__codec_decode_planes(d, &info, data, buf.len, NULL, &out, NULL), 0);
        for (uint32_t c = 0; c < n; c++)
            for (uint32_t y = 0; y < h; y++)
                assert_memory_equal(out.plane[c] + y * out.stride, p.plane[c] + y * p.stride, w);
        leat__buf_reset(&buf);
        leat__planes_reset(&p);
        leat__planes_reset(&out);
    }
    leat__decoder_close(&d);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void no_room_is_an_error(void **state)
{
    leat__planes p = {0};
    leat__buf buf;
    leat__encode_opts opts = {0};
    assert_int_equal(leat__planes_resize(&p, 100, 100, 3, NULL), 0);
    leat__buf_init(&buf, LEAT__MEM_CODEC, 60);
    assert_int_equal(leat__png_encode(&p, &opts, &buf, NULL), LEAT_ELIMIT);
    p.channels = 2;
    assert_int_equal(leat__png_encode(&p, &opts, &buf, NULL), LEAT_EINVAL);
    leat__buf_reset(&buf);
    leat__planes_reset(&p);
    assert_int_equal(leat__mem_blocks(), 0);
}

static int count_rows(void *cookie, uint32_t rows)
{
    uint32_t *seen = cookie;
    assert_int_equal(rows, seen[0] + 1);
    seen[0] = rows;
    return rows == seen[1];
}

static void every_row_is_reported_and_may_stop(void **state)
{
    leat__planes p = {0};
    leat__buf buf;
    uint32_t seen[2] = {0, 0}; /* rows so far, where to stop */
    leat__encode_opts opts = {.progress = count_rows, .cookie = seen};
    assert_int_equal(leat__planes_resize(&p, 10, 50, 3, NULL), 0);
    leat__buf_init(&buf, LEAT__MEM_CODEC, 1 << 20);
    assert_int_equal(leat__png_encode(&p, &opts, &buf, NULL), 0);
    assert_int_equal(seen[0], 50);
    seen[0] = 0, seen[1] = 20;
    assert_int_equal(leat__png_encode(&p, &opts, &buf, NULL), LEAT_ECANCELED);
    assert_int_equal(seen[0], 20);
    leat__buf_reset(&buf);
    leat__planes_reset(&p);
    assert_int_equal(leat__mem_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_come_back_exactly),
        cmocka_unit_test(no_room_is_an_error),
        cmocka_unit_test(every_row_is_reported_and_may_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
