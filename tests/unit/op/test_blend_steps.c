/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include "op/apply.h"

static void run(leat__workspace *b, leat__step_kind kind, double weight, int last)
{
    const leat__step s = {.kind = kind, .amount = weight, .x = last};
    assert_ok(leat__step_apply(b, &s, false, NULL));
}

/* Every copy starts from the image, not from the previous copy. */
static void copies_are_added_up(void **state)
{
    leat__workspace b = {0};
    leat__planes im = {0};
    fixture_picture(&im, 31, 20, 3);
    fixture_picture(&b.image, 31, 20, 3);
    run(&b, LEAT__STEP_BLEND_START, 0.25, 0);
    run(&b, LEAT__STEP_INVERT, 0, 0);
    run(&b, LEAT__STEP_BLEND_ADD, 0.5, 0);
    run(&b, LEAT__STEP_BLEND_ADD, 0.25, 1);
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t y = 0; y < 20; y++)
            for (uint32_t x = 0; x < 31; x++) {
                const float v = leat__planes_row(&im, c, y)[x];
                const float want = 0.25f * v + 0.5f * (255 - v) + 0.25f * v;
                assert_int_equal(leat__planes_row(&b.image, c, y)[x], (int)want);
            }
    leat__planes_reset(&im);
    leat__workspace_reset(&b);
}

/* Weights whose rounded sum exceeds 1 do not wrap around. */
static void white_stays_white(void **state)
{
    leat__workspace b = {0};
    assert_ok(leat__planes_resize(&b.image, 8, 8, 3, NULL));
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t y = 0; y < 8; y++) memset(leat__planes_row(&b.image, c, y), 255, 8);
    run(&b, LEAT__STEP_BLEND_START, 0.7, 0);
    run(&b, LEAT__STEP_BLEND_ADD, 0.31, 1);
    assert_int_equal(leat__planes_row(&b.image, 2, 7)[7], 255);
    leat__workspace_reset(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_added_up),
        cmocka_unit_test(white_stays_white),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
