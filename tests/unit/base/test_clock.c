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
    for (int i = 0; i < 1000000; i++)
        work += (uint64_t)i;
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

static void dates_are_iso(void **state)
{
    char text[24], tiny[4];
    (void)state;
    assert_string_equal(leat__clock_iso8601(0, text, sizeof text),
                        "1970-01-01T00:00:00Z");
    assert_string_equal(
        leat__clock_iso8601(UINT64_C(1700000000) * LEAT_NS_PER_S, text, sizeof text),
        "2023-11-14T22:13:20Z");
    assert_string_equal(leat__clock_iso8601(0, tiny, sizeof tiny), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(time_advances),
                                       cmocka_unit_test(deadlines_do_not_wrap),
                                       cmocka_unit_test(dates_are_iso)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
