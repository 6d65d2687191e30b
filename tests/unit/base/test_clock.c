/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/clock.h"

static void time_advances(void **state)
{
    (void)state;
    uint64_t a = leat__clock_ns(), cpu = leat__clock_process_ns();
    leat__sleep_ns(2 * LEAT_NS_PER_MS);
    assert_true(leat__clock_ns() - a >= 2 * LEAT_NS_PER_MS);
    volatile uint64_t work = 0;
    uint64_t thread = leat__clock_thread_ns();
    for (int i = 0; i < 1000000; i++) work += (uint64_t)i;
    assert_true(work == UINT64_C(499999500000));
    assert_true(leat__clock_thread_ns() > thread);
    assert_true(leat__clock_process_ns() > cpu);
    assert_true(leat__clock_wall_ns() > UINT64_C(1700000000) * LEAT_NS_PER_S);
}

static void deadlines_do_not_wrap(void **state)
{
    (void)state;
    assert_true(leat__clock_deadline(5, 2) == 5 + 2 * LEAT_NS_PER_MS);
    assert_true(leat__clock_deadline(5, 0) == 5);
    assert_true(leat__clock_deadline(5, -1) == UINT64_MAX);
    assert_true(leat__clock_deadline(5, INT64_MAX) == UINT64_MAX);
    assert_true(leat__clock_deadline(leat__clock_ns(), INT64_C(18446744073709)) == UINT64_MAX);
    assert_true(leat__clock_deadline(leat__clock_ns(), INT64_C(18446744073710)) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(time_advances),
                                       cmocka_unit_test(deadlines_do_not_wrap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
