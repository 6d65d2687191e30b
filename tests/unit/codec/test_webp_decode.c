/* SPDX-License-Identifier: Apache-2.0
 *
 * WebP, compared with libwebp's simple interface: whole images, random regions, damage.
 */
#include "codec/foreign.h"

#include <webp/decode.h>
#include <webp/encode.h>

#include "base/bytes.h"
#include "base/mem.h"

static bytes make_webp(uint32_t w, uint32_t h, uint32_t channels, bool lossless)
{
    uint8_t *pixels = make_pixels(w, h, channels, w), *out = NULL;
    int stride = (int)(w * channels);
    size_t n;
    if (channels == 4)
        n = lossless ? WebPEncodeLosslessRGBA(pixels, (int)w, (int)h, stride, &out)
                     : WebPEncodeRGBA(pixels, (int)w, (int)h, stride, 80, &out);
    else
        n = lossless ? WebPEncodeLosslessRGB(pixels, (int)w, (int)h, stride, &out)
                     : WebPEncodeRGB(pixels, (int)w, (int)h, stride, 80, &out);
    assert_true(n > 0);
    bytes b = {malloc(n + LEAT__CODEC_PADDING), n};
    memcpy(b.data, out, n);
    memset(b.data + n, 0, LEAT__CODEC_PADDING);
    WebPFree(out);
    free(pixels);
    return b;
}

static void regions_equal_full_decode(void **state)
{
    static const uint32_t sizes[][2] = {{1, 1}, {5, 3}, {16, 16}, {67, 45}, {130, 97}};
    leat__decoder *d = NULL;
    leat__planes out = {0};
    uint32_t s = 11;
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 5; i++) {
            uint32_t channels = k & 1 ? 4 : 3, w = sizes[i][0], h = sizes[i][1];
            bytes b = make_webp(w, h, channels, k >= 2);
            leat__image_info info;
            assert_int_equal(leat__codec_sniff(b.data, b.len), LEAT__CODEC_WEBP);
            assert_int_equal(leat__codec_probe(LEAT__CODEC_WEBP, b.data, b.len, &info, NULL), 0);
            assert_int_equal(info.width, w);
            assert_int_equal(info.height, h);
            channels = info.channels; /* an opaque image has no alpha */
            int rw, rh;
            uint8_t *ref = channels == 4 ? WebPDecodeRGBA(b.data, b.len, &rw, &rh)
                                         : WebPDecodeRGB(b.data, b.len, &rw, &rh);
            for (int r = 0; r < 60; r++) {
                leat__decode_request rq = {0};
                if (r > 0) {
                    rq.width = 1 + dice_below(&s, w);
                    rq.height = 1 + dice_below(&s, h);
                    rq.x = dice_below(&s, w - rq.width + 1);
                    rq.y = dice_below(&s, h - rq.height + 1);
                }
                assert_int_equal(leat__codec_decode_planes(d, &info, b.data, b.len, &rq, &out, NULL), 0);
                for (uint32_t y = 0; y < out.height; y++)
                    for (uint32_t x = 0; x < out.width; x++)
                        for (uint32_t c = 0; c < channels; c++)
                            assert_int_equal(out.plane[c][y * out.stride + x],
                                             ref[((size_t)(rq.y + y) * w + rq.x + x) * channels + c]);
            }
            WebPFree(ref);
            free(b.data);
        }
    leat__planes_reset(&out);
    leat__decoder_close(&d);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void truncation_is_known(void **state)
{
    leat__decoder *d = NULL;
    leat__planes out = {0};
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    for (int k = 0; k < 4; k++) {
        bytes b = make_webp(80, 60, k & 1 ? 4 : 3, k >= 2);
        leat__image_info info;
        assert_int_equal(leat__codec_probe(LEAT__CODEC_WEBP, b.data, b.len, &info, NULL), 0);
        for (int i = 0; i < 50; i++) {
            leat_error err = {0};
            size_t len = b.len * (size_t)i / 50;
            uint8_t *cut = malloc(len ? len : 1);
            memcpy(cut, b.data, len);
            assert_int_equal(leat__codec_decode_planes(d, &info, cut, len, NULL, &out, &err), LEAT_EDATA);
            assert_true(err.message[0] != 0);
            free(cut);
        }
        free(b.data);
    }
    leat__planes_reset(&out);
    leat__decoder_close(&d);
}

/* Wraps a simple file into the extended format, followed by an EXIF chunk. */
static void orientation_is_read(void **state)
{
    bytes b = make_webp(20, 10, 3, true);
    size_t body = b.len - 12, n = 12 + 18 + body + 8 + 26;
    uint8_t *x = calloc(1, n + LEAT__CODEC_PADDING);
    memcpy(x, "RIFF....WEBPVP8X\x0a\0\0\0\x08\0\0\0\x13\0\0\x09\0\0", 30);
    leat__store_u32(x + 4, (uint32_t)n - 8);
    memcpy(x + 30, b.data + 12, body);
    memcpy(x + 30 + body, "EXIF\x1a\0\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\7\0\0\0", 30);
    leat__image_info info;
    assert_int_equal(leat__codec_probe(LEAT__CODEC_WEBP, x, n, &info, NULL), 0);
    assert_int_equal(info.orientation, 7);
    leat__decoder *d = NULL;
    leat__planes out = {0};
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    assert_int_equal(leat__codec_decode_planes(d, &info, x, n, NULL, &out, NULL), 0);
    assert_int_equal(leat__codec_decode_planes(d, &info, x, n - 1, NULL, &out, NULL), LEAT_EDATA);
    leat__planes_reset(&out);
    leat__decoder_close(&d);
    free(x);
    free(b.data);
}

/* An animation is decoded to its first frame; truncated or changed, it gives an error with a message or
 * pixels. */
static void animations_give_their_first_frame(void **state)
{
    bytes b = foreign_file("webp/anim.webp");
    leat__image_info info;
    leat__decoder *d = NULL;
    leat__planes out = {0};
    assert_int_equal(leat__codec_probe(LEAT__CODEC_WEBP, b.data, b.len, &info, NULL), 0);
    assert_true(info.animated);
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    assert_int_equal(leat__codec_decode_planes(d, &info, b.data, b.len, NULL, &out, NULL), 0);
    assert_int_equal(out.width, info.width);
    leat__planes_reset(&out);
    leat__decoder_close(&d);
    free(b.data);
    foreign_damage(LEAT__CODEC_WEBP, "webp/anim.webp");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_equal_full_decode),
        cmocka_unit_test(truncation_is_known),
        cmocka_unit_test(orientation_is_read),
        cmocka_unit_test(animations_give_their_first_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
