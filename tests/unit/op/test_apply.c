/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include "op/apply.h"

/* Only geometry changes a mask, and it creates no new values. */
static void masks_are_only_moved(void **state)
{
    leat__workspace b = {0};
    assert_ok(leat__planes_resize(&b.image, 16, 16, 1, NULL));
    for (uint32_t y = 0; y < 16; y++)
        for (uint32_t x = 0; x < 16; x++) leat__planes_row(&b.image, 0, y)[x] = x < 8 ? 10 : 200;
    for (int k = LEAT__STEP_BRIGHTNESS; k < LEAT__STEP_ERASE_OUT; k++) {
        const leat__step s = {.kind = (leat__step_kind)k, .amount = 3, .width = 3, .height = 3};
        assert_ok(leat__step_apply(&b, &s, true, NULL));
    }
    const leat__step turn = {.kind = LEAT__STEP_AFFINE,
                             .width = 16,
                             .height = 16,
                             .fill = {77, 77, 77},
                             .filter = LEAT__FILTER_BICUBIC,
                             .matrix = {0.7, 0.7, -3, -0.7, 0.7, 8}};
    assert_ok(leat__step_apply(&b, &turn, true, NULL));
    for (uint32_t y = 0; y < 16; y++)
        for (uint32_t x = 0; x < 16; x++) {
            const uint8_t v = leat__planes_row(&b.image, 0, y)[x];
            assert_true(v == 77 || v == 10 || v == 200);
        }
    leat__workspace_reset(&b);
    assert_no_leaks();
}

static void steps_of_others_are_refused(void **state)
{
    static const leat__step_kind kinds[] = {LEAT__STEP_CROP, LEAT__STEP_RESIZE, LEAT__STEP_FLIP_H,
                                            LEAT__STEP_ERASE_OUT};
    leat__workspace b = {0};
    fixture_picture(&b.image, 4, 4, 3);
    for (size_t i = 0; i < 4; i++) {
        leat_error err = {0};
        assert_code(LEAT_EINTERNAL, leat__step_apply(&b, &(leat__step){.kind = kinds[i]}, false, &err));
        assert_contains(err.message, leat__step_name(kinds[i]));
    }
    leat__workspace_reset(&b);
}

static void work_grows_and_is_kept(void **state)
{
    leat__workspace b = {0};
    void *p = leat__work_fit(&b.work, 1000, NULL);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 64, 0);
    assert_ptr_equal(leat__work_fit(&b.work, 10, NULL), p);
    assert_non_null(leat__work_fit(&b.work, 5000, NULL));
    leat__workspace_reset(&b);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_are_only_moved),
        cmocka_unit_test(steps_of_others_are_refused),
        cmocka_unit_test(work_grows_and_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
