/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/num.h"
#include "op/wide_ops.h"

static void fill(leat__wide *im, uint32_t seed)
{
    for (uint32_t y = 0; y < im->height; y++)
        for (uint32_t x = 0; x < im->width * im->channels; x++) {
            seed = seed * 1664525u + 1013904223u;
            const float v = (float)(seed >> 16);
            leat__wide_from_float(im->type, &v, leat__wide_row(im, y) + x * leat__sample_bytes(im->type), 1);
        }
}

static float at(const leat__wide *im, int64_t x, int64_t y, uint32_t c)
{
    float v;
    x = x < 0 ? 0 : x >= im->width ? im->width - 1 : x;
    y = y < 0 ? 0 : y >= im->height ? im->height - 1 : y;
    leat__wide_to_float(im->type,
                        leat__wide_row(im, (uint32_t)y) + x * (ptrdiff_t)leat__wide_pixel(im) +
                            c * leat__sample_bytes(im->type),
                        &v, 1);
    return v;
}

/* The box filter at half the size gives means of two by two. */
static void box_halves_are_means(void **state)
{
    static const leat__sample_type types[] = {LEAT__SAMPLE_U8, LEAT__SAMPLE_U16, LEAT__SAMPLE_F32};
    for (int t = 0; t < 3; t++) {
        leat__wide_workspace b = {0};
        leat__wide in = {0};
        assert_int_equal(leat__wide_resize(&b.image, types[t], 5, 12, 8, NULL), 0);
        assert_int_equal(leat__wide_resize(&in, types[t], 5, 12, 8, NULL), 0);
        fill(&b.image, 7);
        fill(&in, 7);
        const leat__step s = {.kind = LEAT__STEP_RESIZE, .width = 6, .height = 4, .filter = LEAT__FILTER_BOX};
        assert_int_equal(leat__wide_resample(&b, &s, NULL), 0);
        for (uint32_t y = 0; y < 4; y++)
            for (uint32_t x = 0; x < 6; x++)
                for (uint32_t c = 0; c < 5; c++) {
                    const float mean = (at(&in, 2 * x, 2 * y, c) + at(&in, 2 * x + 1, 2 * y, c) +
                                        at(&in, 2 * x, 2 * y + 1, c) + at(&in, 2 * x + 1, 2 * y + 1, c)) /
                                       4;
                    const float want = types[t] == LEAT__SAMPLE_F32 ? mean : rintf(mean);
                    assert_true(at(&b.image, x, y, c) == want);
                }
        leat__wide_workspace_reset(&b);
        leat__wide_reset(&in);
    }
    assert_int_equal(leat__mem_blocks(), 0);
}

/* Every filter reproduces a plane a + b x + c y inside, in both orders of the passes. */
static void planes_stay_planes(void **state)
{
    for (int f = LEAT__FILTER_BILINEAR; f < LEAT__FILTER_COUNT; f++)
        for (int order = LEAT__PASS_PILLOW13; order <= LEAT__PASS_PILLOW12; order++) {
            leat__wide_workspace b = {0};
            assert_int_equal(leat__wide_resize(&b.image, LEAT__SAMPLE_F32, 2, 40, 90, NULL), 0);
            for (uint32_t y = 0; y < 90; y++)
                for (uint32_t x = 0; x < 40; x++)
                    for (uint32_t c = 0; c < 2; c++)
                        ((float *)leat__wide_row(&b.image, y))[2 * x + c] =
                            (float)(x + 0.5) + 3 * (float)(y + 0.5);
            const leat__step s = {.kind = LEAT__STEP_RESIZE,
                                  .width = 20,
                                  .height = 30,
                                  .filter = (leat__filter)f,
                                  .order = (leat__pass_order)order};
            assert_int_equal(leat__wide_resample(&b, &s, NULL), 0);
            for (uint32_t y = 5; y < 25; y++)
                for (uint32_t x = 5; x < 15; x++) {
                    const double want = (x + 0.5) * 2 + 3 * (y + 0.5) * 3;
                    assert_true(fabs((double)at(&b.image, x, y, 1) - want) < 0.06);
                }
            leat__wide_workspace_reset(&b);
        }
}

static void values_are_clipped_and_rounded_to_even(void **state)
{
    const float v[] = {-3, 0.5f, 1.5f, 2.5f, 254.7f, 300, 65534.5f, 70000};
    uint8_t b[8];
    uint16_t u[8];
    leat__wide_from_float(LEAT__SAMPLE_U8, v, b, 8);
    leat__wide_from_float(LEAT__SAMPLE_U16, v, (uint8_t *)u, 8);
    const uint8_t want8[] = {0, 0, 2, 2, 255, 255, 255, 255};
    const uint16_t want16[] = {0, 0, 2, 2, 255, 300, 65534, 65535};
    assert_memory_equal(b, want8, sizeof b);
    assert_memory_equal(u, want16, sizeof u);
}

static void missing_memory_is_an_error(void **state)
{
    leat__wide_workspace b = {0};
    leat_error err = {0};
    assert_null(leat__work_fit(&b.work, SIZE_MAX / 2, &err));
    assert_int_equal(err.code, LEAT_ENOMEM);
    leat__wide_workspace_reset(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(box_halves_are_means),
        cmocka_unit_test(planes_stay_planes),
        cmocka_unit_test(values_are_clipped_and_rounded_to_even),
        cmocka_unit_test(missing_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
