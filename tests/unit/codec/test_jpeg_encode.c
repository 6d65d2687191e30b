/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/make_image.h"

#include "base/buf.h"
#include "base/mem.h"
#include "codec/jpeg_encode.h"
#include "codec/planes.h"

static void fill(leat__planes *p, uint32_t w, uint32_t h, uint32_t channels)
{
    assert_int_equal(leat__planes_resize(p, w, h, channels, NULL), 0);
    for (uint32_t c = 0; c < channels; c++)
        for (uint32_t y = 0; y < h; y++)
            for (uint32_t x = 0; x < w; x++)
                p->plane[c][y * p->stride + x] = (uint8_t)(x * (c + 1) + y * 2 + 10 * c);
}

static double error_of(const leat__planes *a, const uint8_t *ref, uint32_t channels)
{
    double sum = 0;
    for (uint32_t c = 0; c < channels; c++)
        for (uint32_t y = 0; y < a->height; y++)
            for (uint32_t x = 0; x < a->width; x++) {
                double d =
                    (double)a->plane[c][y * a->stride + x] - ref[((size_t)y * a->width + x) * channels + c];
                sum += d * d;
            }
    return sum / ((double)a->width * a->height * channels);
}

static bytes encode(const leat__planes *p, leat__encode_opts opts)
{
    leat__buf buf;
    leat__buf_init(&buf, LEAT__MEM_CODEC, 1 << 24);
    assert_int_equal(leat__codec_encode(LEAT__CODEC_JPEG, p, &opts, &buf, NULL), 0);
    bytes b = {malloc(buf.len + LEAT__CODEC_PADDING), buf.len};
    memcpy(b.data, buf.data, buf.len);
    leat__buf_reset(&buf);
    return b;
}

static void pixels_come_back_nearly(void **state)
{
    static const uint32_t channels[] = {1, 3, 4};
    for (int i = 0; i < 3; i++) {
        leat__planes p = {0};
        uint32_t w, h, n;
        fill(&p, 93, 61, channels[i]);
        bytes b = encode(&p, (leat__encode_opts){.quality = 100, .subsampling = 444});
        uint8_t *back = plain_jpeg(b, 1, &w, &h, &n);
        assert_int_equal(w, 93);
        assert_int_equal(h, 61);
        assert_int_equal(n, channels[i] == 1 ? 1 : 3);
        assert_true(error_of(&p, back, n) < 2.5); /* sawtooth edges included */
        free(back);
        free(b.data);
        leat__planes_reset(&p);
    }
}

static void settings_are_what_they_say(void **state)
{
    leat__planes p = {0};
    fill(&p, 200, 150, 3);
    static const struct {
        leat__encode_opts opts;
        const char *format;
        uint32_t orientation;
    } cases[] = {{{0}, "jpeg 4:2:0", 1},
                 {{.subsampling = 422, .orientation = 6}, "jpeg 4:2:2", 6},
                 {{.subsampling = 444, .orientation = 3}, "jpeg 4:4:4", 3}};
    for (int i = 0; i < 3; i++) {
        bytes b = encode(&p, cases[i].opts);
        leat__image_info info;
        assert_int_equal(leat__codec_probe(LEAT__CODEC_JPEG, b.data, b.len, &info, NULL), 0);
        assert_string_equal(info.format, cases[i].format);
        assert_int_equal(info.orientation, cases[i].orientation);
        free(b.data);
    }
    bytes low = encode(&p, (leat__encode_opts){.quality = 30});
    bytes high = encode(&p, (leat__encode_opts){.quality = 95});
    bytes again = encode(&p, (leat__encode_opts){.quality = 95});
    assert_true(low.len < high.len);
    assert_int_equal(high.len, again.len);
    assert_memory_equal(high.data, again.data, high.len);
    free(low.data);
    free(high.data);
    free(again.data);
    leat__planes_reset(&p);
}

static void failures_are_errors(void **state)
{
    leat__planes p = {0};
    leat__buf buf;
    leat_error err = {0};
    fill(&p, 200, 150, 3);
    leat__encode_opts opts = {.quality = 101};
    leat__buf_init(&buf, LEAT__MEM_CODEC, 300); /* too small for any image */
    assert_int_equal(leat__codec_encode(LEAT__CODEC_JPEG, &p, &opts, &buf, &err), LEAT_EINVAL);
    opts = (leat__encode_opts){.subsampling = 411};
    assert_int_equal(leat__codec_encode(LEAT__CODEC_JPEG, &p, &opts, &buf, &err), LEAT_EINVAL);
    opts = (leat__encode_opts){.quality = 95};
    assert_int_equal(leat__codec_encode(LEAT__CODEC_JPEG, &p, &opts, &buf, &err), LEAT_ELIMIT);
    assert_int_equal(leat__codec_encode(LEAT__CODEC_WEBP, &p, &opts, &buf, &err), LEAT_ENOTSUP);
    leat__planes empty = {0};
    assert_int_equal(leat__codec_encode(LEAT__CODEC_JPEG, &empty, &opts, &buf, &err), LEAT_EINVAL);
    leat__buf_reset(&buf);
    leat__planes_reset(&p);
    assert_int_equal(leat__mem_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_come_back_nearly),
        cmocka_unit_test(settings_are_what_they_say),
        cmocka_unit_test(failures_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
