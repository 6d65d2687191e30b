/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

static void nth_call_fails_once(void **state)
{
    (void)state;
    if (!leat__fault_available()) skip();
    leat__fault_arm(LEAT__FAULT_ALLOC, 3, false);
    for (int call = 1; call <= 6; call++) {
        void *p = leat__alloc(LEAT__MEM_MISC, 8);
        if (call == 3) assert_null(p);
        else assert_non_null(p);
        leat__free(p);
    }
    assert_int_equal(leat__fault_count(LEAT__FAULT_ALLOC), 6);
    leat__fault_disarm();
    assert_int_equal(leat__fault_count(LEAT__FAULT_ALLOC), 0);
}

static void sticky_fault_fails_every_later_call(void **state)
{
    (void)state;
    if (!leat__fault_available()) skip();
    leat__fault_arm(LEAT__FAULT_ALLOC, 2, true);
    void *p = leat__alloc(LEAT__MEM_MISC, 8);
    assert_non_null(p);
    for (int i = 0; i < 5; i++) assert_null(leat__alloc(LEAT__MEM_MISC, 8));
    leat__fault_disarm();
    leat__free(p);
}

static void plan_of_zero_only_counts(void **state)
{
    (void)state;
    if (!leat__fault_available()) skip();
    leat__fault_arm(LEAT__FAULT_ALLOC, 0, false);
    void *p = leat__alloc(LEAT__MEM_MISC, 8);
    assert_non_null(p);
    assert_int_equal(leat__fault_count(LEAT__FAULT_ALLOC), 1);
    leat__free(p);
    leat__fault_disarm();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nth_call_fails_once),
        cmocka_unit_test(sticky_fault_fails_every_later_call),
        cmocka_unit_test(plan_of_zero_only_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
