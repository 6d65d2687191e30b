/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "loader/defaults.h"
#include "loader/remote_pages.h"

#define MIB (UINT64_C(1) << 20)

/* pages_free is the inverse of pages_cap: not a byte less is enough. */
static void the_least_budget_gives_the_cap(void **state)
{
    (void)state;
    for (uint64_t flow = 0; flow < 2000; flow += 37)
        for (uint64_t cap = 1; cap < 5000; cap += 41) {
            uint64_t least = leat__pages_free(cap, flow);
            assert_true(leat__pages_cap(least, flow) >= cap);
            assert_true(leat__pages_cap(least - 1, flow) < cap);
        }
    assert_int_equal(leat__pages_cap(0, 5), 0);
}

static void each_order_has_its_open_pages(void **state)
{
    (void)state;
    assert_int_equal(leat__pages_open(LEAT_ORDER_SEQUENTIAL, 1000, 10, 4), 100);
    assert_int_equal(leat__pages_open(LEAT_ORDER_RANDOM, 1000, 10, 4), 1000);
    assert_int_equal(leat__pages_open(LEAT_ORDER_QUASI, 1000, 10, 4), 400);
    assert_int_equal(leat__pages_open(LEAT_ORDER_QUASI, 1003, 10, 10), 1003); /* is the random order */
}

static void pages_are_requested_ahead_if_the_open_ones_fit(void **state)
{
    (void)state;
    assert_int_equal(leat__pages_ahead(LEAT_ORDER_RANDOM, 100 * MIB, 100 * MIB, 100 * MIB), 0);
    assert_int_equal(leat__pages_ahead(LEAT_ORDER_RANDOM, 100 * MIB, 100 * MIB, 110 * MIB), 0);
    assert_true(leat__pages_ahead(LEAT_ORDER_RANDOM, 100 * MIB, 100 * MIB, 130 * MIB) == UINT64_MAX);
    assert_int_equal(leat__pages_ahead(LEAT_ORDER_SEQUENTIAL, 900 * MIB, MIB, 41 * MIB), 30 * MIB);
    assert_int_equal(leat__pages_ahead(LEAT_ORDER_QUASI, 9000 * MIB, MIB, 8000 * MIB), LEAT__REMOTE_BYTES);
}

/* The caches that the planner asks for do what they are for. */
static void whole_and_enough_are_large_enough(void **state)
{
    (void)state;
    for (uint64_t bytes = 1; bytes < UINT64_C(1) << 45; bytes = 3 * bytes + 1) {
        uint64_t whole = leat__pages_whole(bytes);
        assert_true(whole > bytes);
        assert_true(leat__pages_ahead(LEAT_ORDER_RANDOM, bytes, bytes, whole) == UINT64_MAX);
        for (uint64_t open = bytes / 2; open > 0; open /= 2) {
            uint64_t enough = leat__pages_enough(bytes, open);
            assert_true(enough <= whole);
            if (enough < whole)
                assert_int_equal(leat__pages_ahead(LEAT_ORDER_QUASI, bytes, open, enough),
                                 LEAT__REMOTE_BYTES);
        }
    }
}

/* Samples of 132 KiB with their rows, 16 in a run. The rates of a server that answers after 150 ms: 165 and
 * 375 samples per second, so 25 and 56 in flight. */
static void memory_limits_single_samples(void **state)
{
    (void)state;
    const uint64_t sample = 132 << 10;
    uint64_t small = leat__singles_at_once(24 * MIB, 5 * MIB, sample, 16);
    uint64_t larger = leat__singles_at_once(40 * MIB, 13 * MIB, sample, 16);
    assert_true(small >= 20 && small <= 32);
    assert_true(larger >= 45 && larger <= 68);
    assert_int_equal(leat__singles_at_once(7 * MIB, 0, sample, 16), 16); /* one run in the floor */
    /* large ones: a quarter of the budget, or the runs that every budget allows */
    assert_int_equal(leat__singles_at_once(1024 * MIB, 1000 * MIB, 8 * MIB, 1), 32);
    assert_int_equal(leat__singles_depth(1024 * MIB, 8 * MIB, LEAT__SINGLES_SHARE_FIRST), LEAT__REMOTE_DEPTH);
    assert_int_equal(leat__singles_depth(UINT64_MAX, 1, LEAT__SINGLES_SHARE_MOST), LEAT__REMOTE_DEPTH_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_budget_gives_the_cap),
        cmocka_unit_test(each_order_has_its_open_pages),
        cmocka_unit_test(pages_are_requested_ahead_if_the_open_ones_fit),
        cmocka_unit_test(whole_and_enough_are_large_enough),
        cmocka_unit_test(memory_limits_single_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
