/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "op/step.h"

static leat__recipe r;

static void sizes_are_followed(void **state)
{
    leat__recipe_start(&r, 100, 50);
    assert_ok(leat__recipe_add(
        &r,
        &(leat__step){
            .kind = LEAT__STEP_CROP, .x = 10, .y = 5, .width = 80, .height = 40},
        NULL));
    assert_int_equal(r.width, 80);
    assert_ok(leat__recipe_add(
        &r,
        &(leat__step){.kind = LEAT__STEP_PAD, .x = 1, .y = 2, .width = 90, .height = 50},
        NULL));
    assert_int_equal(r.height, 50);
    assert_ok(leat__recipe_add(
        &r, &(leat__step){.kind = LEAT__STEP_RESIZE, .width = 7, .height = 9}, NULL));
    assert_ok(leat__recipe_add(&r, &(leat__step){.kind = LEAT__STEP_HUE}, NULL));
    assert_int_equal(r.width, 7);
    assert_int_equal(r.height, 9);
    assert_int_equal(r.in_width, 100);
}

static void steps_that_do_not_fit_are_refused(void **state)
{
    static const leat__step bad[] = {
        {.kind = LEAT__STEP_CROP, .x = 1, .width = 10, .height = 10},
        {.kind = LEAT__STEP_CROP, .x = -1, .width = 5, .height = 5},
        {.kind = LEAT__STEP_CROP, .width = 0, .height = 5},
        {.kind = LEAT__STEP_RESIZE, .width = 0, .height = 5},
        {.kind = LEAT__STEP_RESIZE, .width = LEAT__RESIZE_MAX + 1, .height = 5},
        {.kind = LEAT__STEP_PAD, .x = 3, .width = 12, .height = 10},
        {.kind = LEAT__STEP_BLUR, .width = 4, .height = 3, .amount = 1},
        {.kind = LEAT__STEP_ERASE, .x = 5, .y = 5, .width = 6, .height = 1},
    };
    leat__recipe_start(&r, 10, 10);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        leat_error err = {0};
        assert_code(LEAT_EINVAL, leat__recipe_add(&r, &bad[i], &err));
        assert_contains(err.message, leat__step_name(bad[i].kind));
    }
    assert_int_equal(r.count, 0);
    for (int i = 0; i < LEAT__RECIPE_MAX; i++)
        assert_ok(leat__recipe_add(&r, &(leat__step){.kind = LEAT__STEP_FLIP_H}, NULL));
    assert_code(LEAT_ELIMIT,
                leat__recipe_add(&r, &(leat__step){.kind = LEAT__STEP_FLIP_H}, NULL));
}

static void check_box(const float *box, float x0, float y0, float x1, float y1)
{
    const float want[4] = {x0, y0, x1, y1};
    for (int i = 0; i < 4; i++)
        if (box[i] < want[i] - 1e-3f || box[i] > want[i] + 1e-3f)
            fail_msg("side %d is %g, not %g", i, (double)box[i], (double)want[i]);
}

static void boxes_move(void **state)
{
    float b[8] = {20, 10, 40, 30, 0, 0, 5, 5};
    bool keep[2];
    leat__recipe_start(&r, 100, 50);
    assert_ok(leat__recipe_add(
        &r,
        &(leat__step){
            .kind = LEAT__STEP_CROP, .x = 10, .y = 5, .width = 80, .height = 40},
        NULL));
    assert_ok(leat__recipe_add(
        &r, &(leat__step){.kind = LEAT__STEP_RESIZE, .width = 160, .height = 20}, NULL));
    assert_ok(leat__recipe_add(&r, &(leat__step){.kind = LEAT__STEP_FLIP_H}, NULL));
    leat__recipe_boxes(&r, b, keep, 2);
    assert_true(keep[0]);
    check_box(b, 100, 2.5f, 140, 12.5f);
    assert_false(keep[1]); /* left outside by the crop */
}

static void boxes_turn(void **state)
{
    /* output (x, y) shows input (y, 49 - x): a quarter turn of a square */
    float b[4] = {10, 20, 15, 40};
    bool keep;
    leat__recipe_start(&r, 50, 50);
    assert_ok(leat__recipe_add(&r,
                               &(leat__step){.kind = LEAT__STEP_AFFINE,
                                             .width = 50,
                                             .height = 50,
                                             .matrix = {0, 1, 0, -1, 0, 50}},
                               NULL));
    assert_ok(leat__recipe_add(&r, &(leat__step){.kind = LEAT__STEP_FLIP_V}, NULL));
    leat__recipe_boxes(&r, b, &keep, 1);
    assert_true(keep);
    check_box(b, 10, 35, 30, 40);
    /* a perspective without perspective is a shift */
    float c[4] = {10, 20, 15, 40};
    leat__recipe_start(&r, 50, 50);
    assert_ok(leat__recipe_add(&r,
                               &(leat__step){.kind = LEAT__STEP_PERSPECTIVE,
                                             .matrix = {1, 0, 3, 0, 1, -4, 0, 0}},
                               NULL));
    leat__recipe_boxes(&r, c, &keep, 1);
    check_box(c, 7, 24, 12, 44);
    /* no inverse: the box is lost, not wrong */
    leat__recipe_start(&r, 50, 50);
    assert_ok(leat__recipe_add(
        &r, &(leat__step){.kind = LEAT__STEP_AFFINE, .width = 50, .height = 50}, NULL));
    leat__recipe_boxes(&r, c, &keep, 1);
    assert_false(keep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_followed),
        cmocka_unit_test(steps_that_do_not_fit_are_refused),
        cmocka_unit_test(boxes_move),
        cmocka_unit_test(boxes_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
