/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include "ingest/image_cost.h"

static leat__image_info info_of(leat__codec_id codec, uint32_t w, uint32_t h, const char *format)
{
    leat__image_info i = {.codec = codec, .width = w, .height = h, .channels = 3};
    snprintf(i.format, sizeof i.format, "%s", format);
    i.progressive = strstr(format, "progressive") != NULL;
    return i;
}

/* The mean ImageNet file took 1,244 microseconds on the machine where the rates were fitted. */
static void cost_is_near_the_measurement(void **state)
{
    leat__image_info jpeg = info_of(LEAT__CODEC_JPEG, 500, 375, "jpeg 4:4:4");
    uint32_t cost = leat__image_cost(&jpeg, 110000);
    assert_in_range(cost, 1000, 1400);
    leat__image_info tiled = info_of(LEAT__CODEC_TILE, 500, 375, "tiled");
    assert_true(leat__image_cost(&tiled, 110000) * 3 < cost);
    leat__image_info raw = info_of(LEAT__CODEC_RAW, 500, 375, "raw rgb");
    assert_true(leat__image_cost(&raw, 562516) * 10 < cost);
    leat__image_info slow = info_of(LEAT__CODEC_JPEG, 500, 375, "jpeg 4:2:0 progressive");
    assert_true(leat__image_cost(&slow, 110000) > cost);
}

static void grows_with_bytes_and_pixels(void **state)
{
    static const leat__codec_id codecs[] = {LEAT__CODEC_JPEG, LEAT__CODEC_PNG, LEAT__CODEC_WEBP,
                                            LEAT__CODEC_TILE};
    for (int i = 0; i < 4; i++) {
        leat__image_info small = info_of(codecs[i], 100, 100, ""), large = info_of(codecs[i], 1000, 1000, "");
        uint32_t a = leat__image_cost(&small, 10000), b = leat__image_cost(&large, 10000),
                 c = leat__image_cost(&large, 1000000);
        assert_true(a >= 1 && a < b && b < c);
    }
    leat__image_info dot = info_of(LEAT__CODEC_RAW, 1, 1, "");
    assert_int_equal(leat__image_cost(&dot, 19), 1);
    leat__image_info huge = info_of(LEAT__CODEC_PNG, 65535, 65535, "");
    assert_true(leat__image_cost(&huge, (size_t)1 << 40) == UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cost_is_near_the_measurement),
        cmocka_unit_test(grows_with_bytes_and_pixels),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
