/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include "op/apply.h"

static void start(leat__workspace *b)
{
    memset(b, 0, sizeof *b);
    fixture_picture(&b->image, 23, 17, 3);
}

/* Maps that move by whole pixels are exact, with any filter and any kind of map. */
static void whole_pixels_are_moved(void **state)
{
    static const leat__filter filters[] = {LEAT__FILTER_NEAREST, LEAT__FILTER_BILINEAR, LEAT__FILTER_BICUBIC};
    static const leat__step_kind kinds[] = {LEAT__STEP_AFFINE, LEAT__STEP_PERSPECTIVE};
    for (int k = 0; k < 6; k++) {
        leat__workspace b;
        leat__planes before = {0};
        start(&b);
        fixture_picture(&before, 23, 17, 3);
        const leat__step s = {.kind = kinds[k % 2],
                              .width = 23,
                              .height = 17,
                              .filter = filters[k / 2],
                              .fill = {1, 2, 3},
                              .matrix = {1, 0, 3, 0, 1, -2}};
        assert_ok(leat__step_apply(&b, &s, false, NULL));
        for (uint32_t c = 0; c < 3; c++)
            for (uint32_t y = 0; y < 17; y++)
                for (uint32_t x = 0; x < 23; x++) {
                    const bool in = x + 3 < 23 && y >= 2;
                    assert_int_equal(leat__planes_row(&b.image, c, y)[x],
                                     in ? leat__planes_row(&before, c, y - 2)[x + 3] : c + 1);
                }
        leat__workspace_reset(&b);
        leat__planes_reset(&before);
    }
    assert_no_leaks();
}

/* Halfway between two neighbours, the value is their mean, truncated. */
static void bilinear_interpolates(void **state)
{
    leat__workspace b;
    leat__planes before = {0};
    start(&b);
    fixture_picture(&before, 23, 17, 3);
    const leat__step s = {.kind = LEAT__STEP_AFFINE,
                          .width = 23,
                          .height = 17,
                          .filter = LEAT__FILTER_BILINEAR,
                          .matrix = {1, 0, 0.5, 0, 1, 0}};
    assert_ok(leat__step_apply(&b, &s, false, NULL));
    for (uint32_t x = 0; x < 22; x++) {
        const uint8_t *row = leat__planes_row(&before, 1, 5);
        assert_int_equal(leat__planes_row(&b.image, 1, 5)[x], (row[x] + row[x + 1]) / 2);
    }
    leat__workspace_reset(&b);
    leat__planes_reset(&before);
}

/* A rotated image agrees, except for rounding, between fixed point and the general map. */
static void fixed_point_and_spots_agree(void **state)
{
    leat__workspace a, b;
    start(&a);
    start(&b);
    leat__step s = {.kind = LEAT__STEP_AFFINE,
                    .width = 23,
                    .height = 17,
                    .fill = {255, 255, 255},
                    .matrix = {0.8, 0.6, -2, -0.6, 0.8, 9}};
    assert_ok(leat__step_apply(&a, &s, false, NULL));
    s.kind = LEAT__STEP_PERSPECTIVE; /* the same map, other arithmetic */
    assert_ok(leat__step_apply(&b, &s, false, NULL));
    int differ = 0;
    for (uint32_t y = 0; y < 17; y++)
        for (uint32_t x = 0; x < 23; x++)
            differ += leat__planes_row(&a.image, 0, y)[x] != leat__planes_row(&b.image, 0, y)[x];
    assert_in_range(differ, 0, 4);
    leat__workspace_reset(&a);
    leat__workspace_reset(&b);
}

/* Maps that leave the image, or values out of any range, give only the fill. */
static void far_away_is_fill(void **state)
{
    static const double maps[][8] = {{1, 0, 1e7, 0, 1, 0},
                                     {1, 0.1, -1e9, 0.1, 1, 1e9},
                                     {1e12, 1, 0.0001, 1, 1e12, -1e30},
                                     {1, 0, 0, 0, 1, 0, 1e20, -1e20},
                                     {1, 0, 500, 0, 1, 500, 0, 0}};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        for (int k = 0; k < 4; k++) {
            leat__workspace b;
            start(&b);
            leat__step s = {.kind = k % 2 ? LEAT__STEP_AFFINE : LEAT__STEP_PERSPECTIVE,
                            .width = 30,
                            .height = 10,
                            .fill = {9, 9, 9},
                            .filter = k / 2 ? LEAT__FILTER_BICUBIC : LEAT__FILTER_NEAREST};
            memcpy(s.matrix, maps[i], sizeof maps[i]);
            assert_ok(leat__step_apply(&b, &s, false, NULL));
            assert_int_equal(b.image.width, k % 2 ? 30 : 23);
            if (i < 2 || (i == 4)) assert_int_equal(leat__planes_row(&b.image, 2, 3)[20], 9);
            leat__workspace_reset(&b);
        }
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_pixels_are_moved),
        cmocka_unit_test(bilinear_interpolates),
        cmocka_unit_test(fixed_point_and_spots_agree),
        cmocka_unit_test(far_away_is_fill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
