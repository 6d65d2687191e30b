/* SPDX-License-Identifier: Apache-2.0
 *
 * Interleaved pixels to a sink; refused sides and headers.
 */
#include "codec/make_image.h"

#include "base/mem.h"
#include "codec/whole.h"

typedef struct seen {
    uint32_t rows, width, x, y, stride;
    const uint8_t *pixels;
} seen;

static int take(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride)
{
    seen *s = ctx;
    assert_int_equal(y, s->rows);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t x = 0; x < s->width; x++)
            for (uint32_t c = 0; c < 3; c++)
                assert_int_equal(plane[c][i * stride + x],
                                 s->pixels[(size_t)(s->y + y + i) * s->stride + (s->x + x) * 3 + c]);
    s->rows += count;
    return s->rows > 30 ? 7 : 0;
}

static void regions_reach_the_sink(void **state)
{
    uint8_t *pixels = make_pixels(50, 60, 3, 1);
    leat__image_info info = {.width = 50, .height = 60, .channels = 3};
    seen s = {.x = 3, .y = 5, .width = 20, .stride = 150, .pixels = pixels};
    leat__row_sink sink = {take, &s};
    leat__decode_job job = {.info = &info, .x = 3, .y = 5, .width = 20, .height = 20, .sink = &sink};
    void *w = NULL;
    assert_int_equal(leat__whole_open(&w, NULL), 0);
    assert_int_equal(leat__whole_emit(w, &job, pixels, 150, NULL), 0);
    assert_int_equal(s.rows, 20);
    s.rows = 0;
    job.height = 50;
    assert_int_equal(leat__whole_emit(w, &job, pixels, 150, NULL), 7); /* what the sink returned */
    leat__whole_close(&w);
    free(pixels);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void others_are_refused(void **state)
{
    leat__image_info info = {.width = LEAT__WHOLE_SIDE_MAX, .height = 2, .channels = 3}, now = info;
    leat__decode_job job = {.info = &info};
    leat_error err = {0};
    assert_int_equal(leat__whole_sides(&info, "X", &err), 0);
    assert_int_equal(leat__whole_same(&job, &now, "X", &err), 0);
    now.channels = 4;
    assert_int_equal(leat__whole_same(&job, &now, "X", &err), LEAT_EDATA);
    info.height = LEAT__WHOLE_SIDE_MAX + 1;
    assert_int_equal(leat__whole_sides(&info, "X", &err), LEAT_ELIMIT);
    assert_int_equal(leat__whole_bad(&err, LEAT_EDATA, "GIF", 5, "no signature"), LEAT_EDATA);
    assert_string_equal(err.message, "GIF: no signature at byte 5");
    assert_int_equal(err.offset, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_reach_the_sink),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
