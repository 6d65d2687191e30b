/* SPDX-License-Identifier: Apache-2.0 */
#include "io/hedge.h"

#include "base/clock.h"
#include "leat_test.h"

#define MS LEAT_NS_PER_MS

static void late_is_twice_the_95th_percentile(void **state)
{
    leat__hedge h = {0};
    (void)state;
    for (int i = 0; i < 19; i++) leat__hedge_note(&h, 1 << 20, 100 * MS);
    assert_true(leat__hedge_after(&h, 1 << 20) == UINT64_MAX); /* too few observations */
    for (int i = 0; i < 2000; i++) leat__hedge_note(&h, 1 << 20, i % 10 == 0 ? 300 * MS : 100 * MS);
    uint64_t after = leat__hedge_after(&h, 1 << 20);
    assert_in_range(after, 200 * MS, 640 * MS);
    assert_true(leat__hedge_after(&h, 1 << 16) == UINT64_MAX); /* other sizes are independent */
    for (int i = 0; i < 2000; i++) leat__hedge_note(&h, 1 << 20, 1 * MS);
    assert_int_equal(leat__hedge_after(&h, 1 << 20), 20 * MS);              /* never sooner */
    for (int i = 0; i < 100; i++) leat__hedge_note(&h, 1 << 20, 1000 * MS); /* the network is slower now */
    assert_in_range(leat__hedge_after(&h, 1 << 20), 1000 * MS, 2000 * MS);
}

static void second_requests_stay_within_two_percent(void **state)
{
    leat__hedge h = {0};
    uint64_t spent = 0;
    (void)state;
    assert_false(leat__hedge_spend(&h, 1000, 49999));
    assert_true(leat__hedge_spend(&h, 1000, 50000));
    assert_false(leat__hedge_spend(&h, 1000, 50000));
    for (uint64_t total = 0; total < 1000000; total += 1000)
        if (leat__hedge_spend(&h, 700, total)) spent += 700;
    assert_true(spent + 1000 <= 1000000 / 50);
    assert_true(spent > 15000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_is_twice_the_95th_percentile),
        cmocka_unit_test(second_requests_stay_within_two_percent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
