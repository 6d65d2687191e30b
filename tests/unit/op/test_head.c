/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "op/head.h"

static leat__recipe r;

static void add(leat__step s)
{
    assert_ok(leat__recipe_add(&r, &s, NULL));
}

static void one_run_becomes_one_request(void **state)
{
    leat__head h;
    leat__recipe_start(&r, 100, 50);
    add((leat__step){.kind = LEAT__STEP_CROP, .x = 10, .y = 5, .width = 60, .height = 40});
    add((leat__step){.kind = LEAT__STEP_FLIP_H});
    add((leat__step){.kind = LEAT__STEP_CROP, .x = 1, .y = 2, .width = 50, .height = 30});
    add((leat__step){.kind = LEAT__STEP_RESIZE, .width = 25, .height = 15, .filter = LEAT__FILTER_BICUBIC});
    add((leat__step){.kind = LEAT__STEP_FLIP_V});
    add((leat__step){.kind = LEAT__STEP_CROP, .x = 3, .y = 4, .width = 20, .height = 10});
    add((leat__step){.kind = LEAT__STEP_HUE});
    leat__head_fuse(&h, &r, 0, 100, 50);
    assert_int_equal(h.steps, 6);
    /* the second crop is counted from the mirrored side */
    assert_int_equal(h.x, 10 + 60 - 1 - 50);
    assert_int_equal(h.y, 5 + 2);
    assert_int_equal(h.width, 50);
    assert_int_equal(h.height, 30);
    assert_true(h.ax.mirror_in && !h.ax.mirror_out && !h.ay.mirror_in && h.ay.mirror_out);
    assert_int_equal(h.ax.from, 3);
    assert_int_equal(h.ax.count, 20);
    assert_int_equal(h.ay.from, 15 - 4 - 10);
    assert_int_equal(h.ay.count, 10);
    assert_int_equal(h.ax.filter, LEAT__FILTER_BICUBIC);
}

static void a_second_resize_starts_a_new_run(void **state)
{
    leat__head h;
    leat__recipe_start(&r, 100, 50);
    add((leat__step){.kind = LEAT__STEP_RESIZE, .width = 20, .height = 20});
    add((leat__step){.kind = LEAT__STEP_RESIZE, .width = 10, .height = 10});
    leat__head_fuse(&h, &r, 0, 100, 50);
    assert_int_equal(h.steps, 1);
    leat__head_fuse(&h, &r, 1, 20, 20);
    assert_int_equal(h.steps, 1);
    assert_int_equal(h.ax.in, 20);
    leat__head_fuse(&h, &r, 2, 10, 10);
    assert_int_equal(h.steps, 0);
    assert_int_equal(h.ax.out, 10);
}

static void orientation_mirrors_the_crop(void **state)
{
    leat__head h;
    leat__recipe_start(&r, 100, 50);
    add((leat__step){.kind = LEAT__STEP_CROP, .x = 10, .y = 5, .width = 60, .height = 40});
    static const bool mirror_x[9] = {0, 0, 1, 1, 0, 0, 1, 1, 0};
    static const bool mirror_y[9] = {0, 0, 0, 1, 1, 0, 0, 1, 1};
    for (uint32_t o = 1; o <= 8; o++) {
        leat__head_fuse(&h, &r, 0, 100, 50);
        leat__head_orient(&h, 100, 50, o);
        assert_int_equal(h.x, mirror_x[o] ? 30 : 10);
        assert_int_equal(h.y, 5);
        assert_int_equal(h.ax.mirror_in, mirror_x[o]);
        assert_int_equal(h.ay.mirror_in, mirror_y[o]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_run_becomes_one_request),
        cmocka_unit_test(a_second_resize_starts_a_new_run),
        cmocka_unit_test(orientation_mirrors_the_crop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
