/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include <math.h>
#include <stdlib.h>

#include "op/apply.h"

static int by_value(const void *a, const void *b)
{
    return *(const uint8_t *)a - *(const uint8_t *)b;
}

static uint8_t at(const leat__planes *im, uint32_t c, int64_t x, int64_t y)
{
    x = x < 0 ? 0 : x >= im->width ? im->width - 1 : x;
    y = y < 0 ? 0 : y >= im->height ? im->height - 1 : y;
    return leat__planes_row(im, c, (uint32_t)y)[x];
}

static void median_is_that_of_the_sorted_square(void **state)
{
    static const uint32_t sizes[][3] = {{31, 17, 3}, {9, 40, 5}, {2, 3, 7}, {1, 1, 3}, {50, 20, 15}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        leat__workspace b = {0};
        leat__planes im = {0};
        const uint32_t side = sizes[i][2];
        const int64_t half = side / 2;
        fixture_picture(&im, sizes[i][0], sizes[i][1], 3);
        fixture_picture(&b.image, sizes[i][0], sizes[i][1], 3);
        const leat__step s = {.kind = LEAT__STEP_MEDIAN, .width = side, .height = side};
        assert_ok(leat__step_apply(&b, &s, false, NULL));
        for (uint32_t c = 0; c < 3; c++)
            for (uint32_t y = 0; y < im.height; y++)
                for (uint32_t x = 0; x < im.width; x++) {
                    uint8_t all[15 * 15];
                    uint32_t n = 0;
                    for (int64_t dy = -half; dy <= half; dy++)
                        for (int64_t dx = -half; dx <= half; dx++) all[n++] = at(&im, c, x + dx, y + dy);
                    qsort(all, n, 1, by_value);
                    assert_int_equal(leat__planes_row(&b.image, c, y)[x], all[n / 2]);
                }
        leat__planes_reset(&im);
        leat__workspace_reset(&b);
    }
}

/* Shares of a normal distribution beyond 1, 2 and 3 standard deviations. */
static void noise_is_normal(void **state)
{
    leat__workspace b = {0};
    enum { SIDE = 300 };
    int beyond[4] = {0};
    double sum = 0;
    assert_ok(leat__planes_resize(&b.image, SIDE, SIDE, 3, NULL));
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t y = 0; y < SIDE; y++) memset(leat__planes_row(&b.image, c, y), 128, SIDE);
    const leat__step s = {.kind = LEAT__STEP_NOISE, .amount = 25, .noise_seed = 7};
    assert_ok(leat__step_apply(&b, &s, false, NULL));
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t y = 0; y < SIDE; y++)
            for (uint32_t x = 0; x < SIDE; x++) {
                const int d = leat__planes_row(&b.image, c, y)[x] - 128;
                sum += d;
                for (int k = 1; k < 4; k++) beyond[k] += abs(d) >= 25 * k;
            }
    const double n = 3.0 * SIDE * SIDE;
    assert_true(fabs(sum / n) < 0.2);
    assert_true(fabs(beyond[1] / n - 0.3173) < 0.005);
    assert_true(fabs(beyond[2] / n - 0.0455) < 0.002);
    assert_true(fabs(beyond[3] / n - 0.0027) < 0.0005);
    leat__workspace_reset(&b);
}

static void jpeg_keeps_the_size_and_loses_detail(void **state)
{
    leat__planes im = {0};
    double loss[2] = {0};
    fixture_picture(&im, 45, 33, 3);
    for (int i = 0; i < 2; i++) {
        leat__workspace b = {0};
        for (int again = 0; again < 2; again++) { /* the second use finds decoder and buffer */
            fixture_picture(&b.image, 45, 33, 3);
            const leat__step s = {.kind = LEAT__STEP_JPEG, .amount = i ? 95 : 10};
            assert_ok(leat__step_apply(&b, &s, false, NULL));
        }
        assert_int_equal(b.image.width, 45);
        assert_int_equal(b.image.height, 33);
        assert_int_equal(b.image.channels, 3);
        for (uint32_t y = 0; y < 33; y++)
            for (uint32_t x = 0; x < 45; x++) loss[i] += abs(at(&im, 1, x, y) - at(&b.image, 1, x, y));
        leat__workspace_reset(&b);
    }
    assert_true(loss[1] > 0 && loss[0] > 1.5 * loss[1]);
    leat__planes_reset(&im);
}

/* Masks keep their values. */
static void masks_are_left_alone(void **state)
{
    for (leat__step_kind kind = LEAT__STEP_NOISE; kind <= LEAT__STEP_GRID; kind++) {
        leat__workspace b = {0};
        leat__planes im = {0};
        fixture_picture(&b.image, 12, 9, 1);
        fixture_picture(&im, 12, 9, 1);
        const leat__step s = {.kind = kind, .width = 3, .height = 2, .amount = 9};
        assert_ok(leat__step_apply(&b, &s, true, NULL));
        for (uint32_t y = 0; y < 9; y++)
            assert_memory_equal(leat__planes_row(&b.image, 0, y), leat__planes_row(&im, 0, y), 12);
        leat__planes_reset(&im);
        leat__workspace_reset(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(median_is_that_of_the_sorted_square),
        cmocka_unit_test(noise_is_normal),
        cmocka_unit_test(jpeg_keeps_the_size_and_loses_detail),
        cmocka_unit_test(masks_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
