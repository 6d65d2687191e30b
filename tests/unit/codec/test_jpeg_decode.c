/* SPDX-License-Identifier: Apache-2.0
 *
 * JPEG decode, compared with plain libjpeg: whole images, random regions, scaled decodes, damage.
 */
#include "codec/make_image.h"

#include "base/mem.h"
#include "probe/cpu.h"

static leat__decoder *decoder;

static int open_decoder(void **state)
{
    return leat__decoder_open(&decoder, NULL);
}

static int close_decoder(void **state)
{
    leat__decoder_close(&decoder);
    assert_int_equal(leat__mem_blocks(), 0);
    return 0;
}

static leat__image_info probe_ok(bytes b)
{
    leat__image_info info;
    assert_int_equal(leat__codec_sniff(b.data, b.len), LEAT__CODEC_JPEG);
    assert_int_equal(leat__codec_probe(LEAT__CODEC_JPEG, b.data, b.len, &info, NULL), 0);
    return info;
}

static void check_region(const char *name, bytes b, const leat__image_info *info, const uint8_t *ref,
                         uint32_t ref_w, uint32_t ref_channels, leat__decode_request rq, leat__planes *out)
{
    leat_error err = {0};
    int rc = leat__codec_decode_planes(decoder, info, b.data, b.len, &rq, out, &err);
    if (rc != 0) fail_msg("%s: %s", name, err.message);
    for (uint32_t y = 0; y < out->height; y++)
        for (uint32_t x = 0; x < out->width; x++)
            for (uint32_t c = 0; c < out->channels; c++) {
                uint8_t want = plain_at(ref, ref_w, ref_channels, rq.x + x, rq.y + y, c);
                uint8_t got = out->plane[c][y * out->stride + x];
                if (got != want)
                    fail_msg("%s 1/%u: region %u,%u %ux%u differs at %u,%u,%u: %u, not %u", name,
                             rq.scale_denom, rq.x, rq.y, rq.width, rq.height, x, y, c, got, want);
            }
}

static void check_kind(const jpeg_kind *kind, uint32_t w, uint32_t h, uint32_t denom, int rounds)
{
    uint32_t dice_state = w * 7919 + h * 31 + denom, rw, rh, rc;
    bytes b = make_jpeg(kind, w, h, 85, w + h);
    leat__image_info info = probe_ok(b);
    assert_int_equal(info.width, w);
    assert_int_equal(info.height, h);
    assert_int_equal(info.channels, kind->channels == 1 ? 1 : 3);
    uint8_t *ref = plain_jpeg(b, denom, &rw, &rh, &rc);
    assert_int_equal(rw, leat__scaled_side(w, denom));
    leat__planes out = {0};
    leat__decode_request rq = {.scale_denom = denom};
    check_region(kind->name, b, &info, ref, rw, rc, rq, &out);
    for (int i = 0; i < rounds; i++) {
        rq.width = 1 + dice_below(&dice_state, rw);
        rq.height = 1 + dice_below(&dice_state, rh);
        if (i % 3 == 0) rq.width = 1 + dice_below(&dice_state, rw < 9 ? rw : 9);
        if (i % 5 == 0) rq.height = 1 + dice_below(&dice_state, rh < 9 ? rh : 9);
        rq.x = dice_below(&dice_state, rw - rq.width + 1);
        rq.y = dice_below(&dice_state, rh - rq.height + 1);
        check_region(kind->name, b, &info, ref, rw, rc, rq, &out);
    }
    leat__planes_reset(&out);
    free(ref);
    free(b.data);
}

static void regions_equal_full_decode(void **state)
{
    static const uint32_t sizes[][2] = {{1, 1},   {2, 3},   {7, 9},    {16, 16},  {17, 33},
                                        {40, 31}, {65, 64}, {131, 97}, {160, 203}};
    for (size_t k = 0; k < JPEG_KINDS; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            check_kind(&jpeg_kinds[k], sizes[s][0], sizes[s][1], 1, 60);
}

static void scaled_regions_equal_scaled_decode(void **state)
{
    for (size_t k = 0; k < JPEG_KINDS; k++)
        for (uint32_t denom = 2; denom <= 8; denom *= 2) {
            check_kind(&jpeg_kinds[k], 131, 97, denom, 60);
            check_kind(&jpeg_kinds[k], 64, 80, denom, 60);
        }
}

static int decode_whole(bytes b, const leat__image_info *info, leat__decode_limits limits, leat_error *err)
{
    leat__planes out = {0};
    leat__decode_request rq = {.limits = limits};
    int rc = leat__codec_decode_planes(decoder, info, b.data, b.len, &rq, &out, err);
    leat__planes_reset(&out);
    return rc;
}

/* Wherever the file is truncated, decoding the whole image reports it with the offset; the next image
 * decodes. */
static void truncation_is_known(void **state)
{
    for (size_t k = 0; k < JPEG_KINDS; k++) {
        bytes b = make_jpeg(&jpeg_kinds[k], 100, 75, 90, 3);
        leat__image_info info = probe_ok(b);
        for (int i = 0; i < 50; i++) {
            size_t len = b.len * (size_t)i / 50;
            bytes cut = {malloc(len + LEAT__CODEC_PADDING), len};
            memcpy(cut.data, b.data, len);
            memset(cut.data + len, 0xff, LEAT__CODEC_PADDING);
            leat_error err = {0};
            assert_int_equal(decode_whole(cut, &info, (leat__decode_limits){0}, &err), LEAT_EDATA);
            assert_true(err.offset >= 0 && (size_t)err.offset <= len);
            leat__image_info probed;
            int rc = leat__codec_probe(LEAT__CODEC_JPEG, cut.data, len, &probed, NULL);
            assert_true(rc == 0 || rc == LEAT_EDATA);
            free(cut.data);
        }
        bytes no_end = {b.data, b.len - 2};
        assert_int_equal(decode_whole(no_end, &info, (leat__decode_limits){0}, NULL), LEAT_EDATA);
        assert_int_equal(decode_whole(b, &info, (leat__decode_limits){0}, NULL), 0);
        free(b.data);
    }
}

static void limits_hold(void **state)
{
    bytes b = make_jpeg(&jpeg_kinds[12], 200, 100, 90, 3);
    leat__image_info info = probe_ok(b);
    leat_error err = {0};
    assert_true(info.progressive);
    assert_string_equal(info.format, "jpeg 4:2:0 progressive");
    assert_int_equal(decode_whole(b, &info, (leat__decode_limits){.max_pixels = 19999}, &err), LEAT_ELIMIT);
    assert_non_null(strstr(err.message, "200 x 100"));
    assert_int_equal(decode_whole(b, &info, (leat__decode_limits){.max_out_bytes = 59999}, &err),
                     LEAT_ELIMIT);
    assert_int_equal(decode_whole(b, &info, (leat__decode_limits){.max_scans = 3}, &err), LEAT_ELIMIT);
    assert_non_null(strstr(err.message, "scans"));
    assert_int_equal(decode_whole(b, &info, (leat__decode_limits){.max_work = 199999}, &err), LEAT_ELIMIT);
    assert_non_null(strstr(err.message, "too many scans"));
    leat__decode_limits exact = {
        .max_pixels = 20000, .max_out_bytes = 60000, .max_scans = 10, .max_work = 200000};
    assert_int_equal(decode_whole(b, &info, exact, &err), 0);
    free(b.data);
}

/* Returns code and pixels of a region decoded with one instruction set. */
static int decode_masked(uint32_t keep, bytes b, const leat__decode_request *rq, leat__planes *out)
{
    leat__decoder *d = NULL;
    leat__image_info info = probe_ok(b);
    leat__cpu_mask(keep);
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    int rc = leat__codec_decode_planes(d, &info, b.data, b.len, rq, out, NULL);
    leat__decoder_close(&d);
    leat__cpu_mask(~UINT32_C(0));
    return rc;
}

/* Files truncated at any byte: every CPU gives the same regions and the same pixels. */
static void verdicts_do_not_depend_on_the_cpu(void **state)
{
    leat__planes one = {0}, two = {0};
    uint32_t s = 3, good = 0, bad = 0;
    for (uint32_t i = 0; i < 600; i++) {
        const jpeg_kind *kind = &jpeg_kinds[i % JPEG_KINDS];
        bytes b = make_jpeg(kind, 90, 80, 85, i);
        uint32_t cut = i % 3 ? dice_below(&s, 40) : dice_below(&s, (uint32_t)b.len / 3);
        leat__decode_request rq = {.width = 1 + dice_below(&s, 90), .height = 1 + dice_below(&s, 80)};
        rq.x = dice_below(&s, 91 - rq.width);
        rq.y = dice_below(&s, 81 - rq.height);
        b.len -= cut;
        int rc = decode_masked(LEAT__CPU_SSE42, b, &rq, &one);
        assert_int_equal(rc, decode_masked(~UINT32_C(0), b, &rq, &two));
        for (uint32_t c = 0; rc == 0 && c < one.channels; c++)
            for (uint32_t y = 0; y < one.height; y++)
                assert_memory_equal(one.plane[c] + y * one.stride, two.plane[c] + y * two.stride, one.width);
        good += rc == 0;
        bad += rc != 0;
        free(b.data);
    }
    assert_true(good > 100 && bad > 100);
    leat__planes_reset(&one);
    leat__planes_reset(&two);
}

static void wrong_requests_are_refused(void **state)
{
    bytes b = make_jpeg(&jpeg_kinds[2], 50, 40, 90, 3);
    leat__image_info info = probe_ok(b);
    leat__planes out = {0};
    const leat__decode_request bad[] = {
        {.x = 0, .y = 0, .width = 51, .height = 40},
        {.x = 50, .y = 0, .width = 1, .height = 1},
        {.x = 1, .y = 1, .width = UINT32_MAX, .height = 3},
        {.x = 0, .y = 0, .width = 5, .height = 0},
        {.x = 0, .y = 0, .width = 26, .height = 20, .scale_denom = 2},
        {.scale_denom = 3},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(leat__codec_decode_planes(decoder, &info, b.data, b.len, &bad[i], &out, NULL),
                         LEAT_EINVAL);
    leat__image_info lie = info;
    lie.width = 49;
    assert_int_equal(leat__codec_decode_planes(decoder, &lie, b.data, b.len, NULL, &out, NULL), LEAT_EDATA);
    leat__planes_reset(&out);
    free(b.data);
}

/* Adobe's inverted CMYK, compared with values of Pillow's convert("RGB"). */
static void cmyk_is_inverted(void **state)
{
    static const uint8_t cmyk[][4] = {{255, 255, 255, 255}, {0, 0, 0, 0}, {255, 128, 0, 200}};
    static const uint8_t rgb[][3] = {{255, 255, 255}, {0, 0, 0}, {200, 100, 0}};
    for (int i = 0; i < 3; i++)
        for (uint32_t c = 0; c < 3; c++) assert_int_equal(plain_at(cmyk[i], 1, 4, 0, 0, c), rgb[i][c]);
}

static int stop_at_second_band(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4],
                               size_t stride)
{
    ++*(int *)ctx;
    return y > 0 ? -77 : 0;
}

static void sink_can_stop(void **state)
{
    bytes b = make_jpeg(&jpeg_kinds[2], 50, 100, 90, 3);
    leat__image_info info = probe_ok(b);
    int calls = 0;
    leat__row_sink sink = {stop_at_second_band, &calls};
    assert_int_equal(leat__codec_decode(decoder, &info, b.data, b.len, NULL, &sink, NULL), -77);
    assert_int_equal(calls, 2);
    assert_int_equal(decode_whole(b, &info, (leat__decode_limits){0}, NULL), 0);
    free(b.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_equal_full_decode),
        cmocka_unit_test(scaled_regions_equal_scaled_decode),
        cmocka_unit_test(truncation_is_known),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(verdicts_do_not_depend_on_the_cpu),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(cmyk_is_inverted),
        cmocka_unit_test(sink_can_stop),
    };
    return cmocka_run_group_tests(tests, open_decoder, close_decoder);
}
