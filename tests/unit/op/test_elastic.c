/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include <math.h>

#include "op/apply.h"
#include "op/elastic.h"
#include "op/targets.h"

enum { W = 61, H = 47 };

static leat__step elastic(double alpha, double sigma, leat__filter filter)
{
    return (leat__step){.kind = LEAT__STEP_ELASTIC,
                        .matrix = {alpha, alpha * 2, sigma, sigma + 1},
                        .filter = filter,
                        .fill = {200, 201, 202},
                        .noise_seed = 99};
}

/* Fills planes with the position of each pixel. */
static void places(leat__planes *im)
{
    assert_ok(leat__planes_resize(im, W, H, 3, NULL));
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++) {
            leat__planes_row(im, 0, y)[x] = (uint8_t)x;
            leat__planes_row(im, 1, y)[x] = (uint8_t)y;
            leat__planes_row(im, 2, y)[x] = 7;
        }
}

static void the_field_is_what_single_places_say(void **state)
{
    leat__workspace b = {0};
    leat__elastic e[2];
    uint32_t moved = 0, outside = 0;
    const leat__step s = elastic(60, 3, LEAT__FILTER_NEAREST);
    places(&b.image);
    for (int axis = 0; axis < 2; axis++) leat__elastic_init(&e[axis], &s, W, H, axis);
    assert_ok(leat__step_apply(&b, &s, false, NULL));
    for (uint32_t y = 0; y < H; y += 3)
        for (uint32_t x = 0; x < W; x += 2) {
            const double u = rint(x + (double)leat__elastic_at(&e[0], x, y));
            const double v = rint(y + (double)leat__elastic_at(&e[1], x, y));
            const bool in = u >= 0 && v >= 0 && u < W && v < H;
            assert_int_equal(leat__planes_row(&b.image, 0, y)[x], in ? (int)u : 200);
            assert_int_equal(leat__planes_row(&b.image, 1, y)[x], in ? (int)v : 201);
            moved += u != x || v != y;
            outside += !in;
        }
    assert_true(moved > 100 && outside > 0 && outside < 100);
    leat__workspace_reset(&b);
}

static void no_strength_changes_nothing(void **state)
{
    for (int i = 0; i < 2; i++) {
        leat__workspace b = {0};
        leat__planes im = {0};
        const leat__step s = elastic(0, 5, i ? LEAT__FILTER_NEAREST : LEAT__FILTER_BILINEAR);
        fixture_picture(&im, 40, 30, 3);
        fixture_picture(&b.image, 40, 30, 3);
        assert_ok(leat__step_apply(&b, &s, false, NULL));
        for (uint32_t c = 0; c < 3; c++)
            for (uint32_t y = 0; y < 30; y++)
                assert_memory_equal(leat__planes_row(&b.image, c, y), leat__planes_row(&im, c, y), 40);
        leat__planes_reset(&im);
        leat__workspace_reset(&b);
    }
}

/* Between the pixels of a ramp, the value is the position, rounded to the nearest integer. */
static void bilinear_mixes_neighbours(void **state)
{
    leat__workspace b = {0};
    leat__elastic e[2];
    const leat__step s = elastic(30, 4, LEAT__FILTER_BILINEAR);
    places(&b.image);
    for (int axis = 0; axis < 2; axis++) leat__elastic_init(&e[axis], &s, W, H, axis);
    assert_ok(leat__step_apply(&b, &s, false, NULL));
    for (uint32_t y = 10; y < H - 10; y += 5)
        for (uint32_t x = 10; x < W - 10; x += 3) {
            const double u = x + (double)leat__elastic_at(&e[0], x, y);
            assert_true(fabs(leat__planes_row(&b.image, 0, y)[x] - u) <= 0.5001);
            assert_int_equal(leat__planes_row(&b.image, 2, y)[x], 7);
        }
    leat__workspace_reset(&b);
}

/* As in torchvision: corners are looked up at whole pixels, with an approximate inverse. */
static void boxes_and_points_follow(void **state)
{
    const leat__step s = elastic(20, 4, LEAT__FILTER_BILINEAR);
    const leat__box_rule rule = {.format = LEAT__BOX_XYXY};
    const leat__point_rule points = {.stride = 2};
    float box[4] = {10.2f, 8, 40, 30.5f}, point[2] = {12.7f, 9.3f}, x1 = -1000;
    leat__elastic e[2];
    leat__recipe r;
    bool keep;
    leat__recipe_start(&r, W, H);
    assert_ok(leat__recipe_add(&r, &s, NULL));
    for (int axis = 0; axis < 2; axis++) leat__elastic_init(&e[axis], &s, W, H, axis);
    leat__recipe_boxes(&r, &rule, box, &keep, 1);
    assert_true(keep);
    x1 = 40 - fminf(leat__elastic_at(&e[0], 40, 8), leat__elastic_at(&e[0], 40, 31));
    assert_true(fabsf(box[2] - x1) < 1e-4f);
    leat__recipe_points(&r, &points, point, 1);
    assert_true(fabsf(point[0] - (12 - leat__elastic_at(&e[0], 12, 9))) < 1e-4f);
    assert_true(fabsf(point[1] - (9 - leat__elastic_at(&e[1], 12, 9))) < 1e-4f);
}

/* The blur reflects at the ends, even if the image is shorter than the kernel. */
static void any_size_works(void **state)
{
    static const uint32_t sizes[][2] = {{1, 1}, {2, 1}, {1, 70}, {3, 200}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        leat__workspace b = {0};
        const leat__step s = elastic(500, 60, LEAT__FILTER_BILINEAR);
        fixture_picture(&b.image, sizes[i][0], sizes[i][1], 3);
        assert_ok(leat__step_apply(&b, &s, false, NULL));
        assert_int_equal(b.image.height, sizes[i][1]);
        leat__workspace_reset(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_field_is_what_single_places_say),
        cmocka_unit_test(no_strength_changes_nothing),
        cmocka_unit_test(bilinear_mixes_neighbours),
        cmocka_unit_test(boxes_and_points_follow),
        cmocka_unit_test(any_size_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
