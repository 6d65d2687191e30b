/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include <math.h>

#include "op/warp_recipe.h"

static leat__recipe r;
static const leat__warp_style plain = {.filter = LEAT__FILTER_NEAREST};

static void near(const double *got, const double *want, int n)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) < 1e-9)) fail_msg("number %d is %.17g, not %.17g", i, got[i], want[i]);
}

/* Matrices of Image.rotate and torchvision, computed with Python. */
static void known_matrices(void **state)
{
    leat__recipe_start(&r, 60, 40);
    assert_ok(leat__recipe_rotate(&r, 90, false, NULL, &plain, NULL));
    near(r.step[0].matrix, (double[]){0, -1, 50, 1, 0, -10}, 6);
    leat__recipe_start(&r, 60, 40);
    assert_ok(leat__recipe_rotate(&r, 30, false, (double[]){0, 0}, &plain, NULL));
    const double c = sqrt(3) / 2;
    near(r.step[0].matrix, (double[]){c, -0.5, 0, 0.5, c, 0}, 6);
    leat__recipe_start(&r, 60, 40);
    const leat__affine f = {.scale = 2, .translate = {3, -4}};
    assert_ok(leat__recipe_affine(&r, &f, &plain, NULL));
    near(r.step[0].matrix, (double[]){0.5, 0, 0.5 * -33 + 30, 0, 0.5, 0.5 * -16 + 20}, 6);
    leat__recipe_start(&r, 60, 40);
    const double corner[2] = {0, 0};
    const leat__affine s = {.scale = 1, .shear = {45, 0}, .center = corner};
    assert_ok(leat__recipe_affine(&r, &s, &plain, NULL));
    near(r.step[0].matrix, (double[]){1, 1, 0, 0, 1, 0}, 6);
}

static void whole_turns_need_no_map(void **state)
{
    leat__recipe_start(&r, 60, 40);
    assert_ok(leat__recipe_rotate(&r, -720, false, NULL, &plain, NULL));
    assert_int_equal(r.count, 0);
    assert_ok(leat__recipe_rotate(&r, -180, false, NULL, &plain, NULL));
    assert_int_equal(r.count, 2);
    assert_int_equal(r.step[0].kind, LEAT__STEP_FLIP_H);
    assert_int_equal(r.step[1].kind, LEAT__STEP_FLIP_V);
}

static void expanding_holds_the_corners(void **state)
{
    leat__recipe_start(&r, 60, 40);
    assert_ok(leat__recipe_rotate(&r, 90, true, NULL, &plain, NULL));
    assert_int_equal(r.width, 40);
    assert_int_equal(r.height, 60);
    leat__recipe_start(&r, 100, 100);
    assert_ok(leat__recipe_rotate(&r, 45, true, NULL, &plain, NULL));
    assert_in_range(r.width, 141, 143);
}

/* Every pixel is moved and none is added, even if one side is odd and the other even. */
static void quarter_turns_exchange_the_sides(void **state)
{
    for (uint32_t w = 1; w <= 12; w++)
        for (uint32_t h = 1; h <= 12; h++) {
            leat__recipe_start(&r, w, h);
            assert_ok(leat__recipe_rotate(&r, 90, true, NULL, &plain, NULL));
            near(r.step[0].matrix, (double[]){0, -1, w, 1, 0, 0}, 6);
            assert_int_equal(r.width, h);
            assert_int_equal(r.height, w);
            leat__recipe_start(&r, w, h);
            assert_ok(leat__recipe_rotate(&r, -90, true, NULL, &plain, NULL));
            near(r.step[0].matrix, (double[]){0, 1, 0, -1, 0, h}, 6);
            assert_int_equal(r.width, h);
            assert_int_equal(r.height, w);
        }
}

/* The drawn corners are mapped to the corners of the image. */
static void perspective_maps_corners(void **state)
{
    leat__pipeline *p = fixture_pipeline("CenterCrop(100); RandomPerspective(0.5, p=1)");
    for (uint64_t i = 0; i < 50; i++) {
        assert_ok(leat__pipeline_draw(p, &(leat__draw_key){0, 0, i}, 100, 100, &r, NULL));
        const double *m = r.step[0].matrix;
        int found = 0;
        /* some output pixel near each corner shows that corner of the input */
        for (int y = 0; y < 100; y++)
            for (int x = 0; x < 100; x++) {
                const double w = m[6] * x + m[7] * y + 1;
                const double u = (m[0] * x + m[1] * y + m[2]) / w, v = (m[3] * x + m[4] * y + m[5]) / w;
                const bool cx = fabs(u) < 1e-2 || fabs(u - 99) < 1e-2;
                const bool cy = fabs(v) < 1e-2 || fabs(v - 99) < 1e-2;
                if (cx && cy) found++;
            }
        assert_int_equal(found, 4);
    }
    leat__pipeline_close(&p);
}

static void ranges(void **state)
{
    leat__pipeline *p = fixture_pipeline("CenterCrop(64); RandomAffine((10, 20), scale=(2, 3))");
    for (uint64_t i = 0; i < 200; i++) {
        assert_ok(leat__pipeline_draw(p, &(leat__draw_key){0, 0, i}, 64, 64, &r, NULL));
        const double *m = r.step[0].matrix;
        const double scale = 1 / sqrt(m[0] * m[0] + m[1] * m[1]);
        const double angle = atan2(m[1], m[0]) * 180 / M_PI;
        assert_true(scale >= 2 && scale <= 3);
        assert_true(angle >= 10 && angle <= 20);
    }
    leat__pipeline_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_matrices),
        cmocka_unit_test(whole_turns_need_no_map),
        cmocka_unit_test(expanding_holds_the_corners),
        cmocka_unit_test(quarter_turns_exchange_the_sides),
        cmocka_unit_test(perspective_maps_corners),
        cmocka_unit_test(ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
