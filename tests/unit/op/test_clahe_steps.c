/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include <math.h>

#include "base/num.h"
#include "op/apply.h"

static void run(leat__workspace *b, uint32_t columns, uint32_t rows, double limit)
{
    const leat__step s = {.kind = LEAT__STEP_CLAHE, .width = columns, .height = rows, .amount = limit};
    assert_ok(leat__step_apply(b, &s, false, NULL));
}

/* One tile without a limit is plain equalisation, rounded. */
static void one_tile_is_plain_equalisation(void **state)
{
    leat__workspace b = {0};
    leat__planes im = {0};
    fixture_picture(&im, 40, 30, 3);
    fixture_picture(&b.image, 40, 30, 3);
    run(&b, 1, 1, 256);
    for (uint32_t c = 0; c < 3; c++) {
        uint32_t upto[256] = {0};
        for (uint32_t y = 0; y < 30; y++)
            for (uint32_t x = 0; x < 40; x++)
                for (int v = leat__planes_row(&im, c, y)[x]; v < 256; v++) upto[v]++;
        for (uint32_t y = 0; y < 30; y++)
            for (uint32_t x = 0; x < 40; x++)
                assert_int_equal(leat__planes_row(&b.image, c, y)[x],
                                 (int)rintf((float)upto[leat__planes_row(&im, c, y)[x]] * (255.0f / 1200)));
    }
    leat__planes_reset(&im);
    leat__workspace_reset(&b);
}

/* Eight neighbouring values: without a limit they are stretched to the whole range. */
static void limits_reduce_contrast(void **state)
{
    int spread[2];
    for (int i = 0; i < 2; i++) {
        leat__workspace b = {0};
        uint8_t low = 255, high = 0;
        assert_ok(leat__planes_resize(&b.image, 64, 64, 3, NULL));
        for (uint32_t c = 0; c < 3; c++)
            for (uint32_t y = 0; y < 64; y++)
                for (uint32_t x = 0; x < 64; x++)
                    leat__planes_row(&b.image, c, y)[x] = (uint8_t)(100 + (x + y) % 8);
        run(&b, 8, 8, i ? 256 : 0.01);
        for (uint32_t y = 0; y < 64; y++)
            for (uint32_t x = 0; x < 64; x++) {
                low = LEAT_MIN(low, leat__planes_row(&b.image, 0, y)[x]);
                high = LEAT_MAX(high, leat__planes_row(&b.image, 0, y)[x]);
            }
        spread[i] = high - low;
        leat__workspace_reset(&b);
    }
    assert_in_range(spread[0], 7, 64);
    assert_in_range(spread[1], 200, 255);
}

static void any_size_and_grid_works(void **state)
{
    static const uint32_t sizes[][4] = {
        {1, 1, 8, 8}, {3, 2, 8, 8}, {7, 50, 2, 9}, {64, 1, 1, 64}, {17, 16, 8, 8}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        leat__workspace b = {0};
        fixture_picture(&b.image, sizes[i][0], sizes[i][1], 3);
        run(&b, sizes[i][2], sizes[i][3], 2);
        assert_int_equal(b.image.width, sizes[i][0]);
        leat__workspace_reset(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_tile_is_plain_equalisation),
        cmocka_unit_test(limits_reduce_contrast),
        cmocka_unit_test(any_size_and_grid_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
