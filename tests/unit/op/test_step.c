/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "op/step.h"

static leat__recipe r;

static void sizes_are_followed(void **state)
{
    leat__recipe_start(&r, 100, 50);
    assert_ok(leat__recipe_add(
        &r, &(leat__step){.kind = LEAT__STEP_CROP, .x = 10, .y = 5, .width = 80, .height = 40}, NULL));
    assert_int_equal(r.width, 80);
    assert_ok(leat__recipe_add(
        &r, &(leat__step){.kind = LEAT__STEP_PAD, .x = 1, .y = 2, .width = 90, .height = 50}, NULL));
    assert_int_equal(r.height, 50);
    assert_ok(leat__recipe_add(&r, &(leat__step){.kind = LEAT__STEP_RESIZE, .width = 7, .height = 9}, NULL));
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
    assert_code(LEAT_ELIMIT, leat__recipe_add(&r, &(leat__step){.kind = LEAT__STEP_FLIP_H}, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_followed),
        cmocka_unit_test(steps_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
