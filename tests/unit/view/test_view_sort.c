/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <math.h>

#include "base/rng.h"
#include "view/view_query.h"

#define MANY 5000u

static void keys_order_as_numbers_do(void **state)
{
    static const double up[] = {-INFINITY, -1e300, -2, -1, -1e-300, 0, 1e-300, 1, 2, 1e300, INFINITY};
    for (size_t i = 0; i + 1 < sizeof up / sizeof up[0]; i++) {
        assert_true(leat__view_key(up[i], false) < leat__view_key(up[i + 1], false));
        assert_true(leat__view_key(up[i], true) > leat__view_key(up[i + 1], true));
    }
    assert_true(leat__view_key(0.0, false) == leat__view_key(-0.0, false));
    assert_true(leat__view_key(NAN, false) > leat__view_key(INFINITY, false));
    assert_true(leat__view_key(NAN, true) > leat__view_key(-INFINITY, true));
}

static void sorting_is_complete_and_stable(void **state)
{
    static leat__view_pair a[MANY], b[MANY];
    leat__rng rng;
    bool seen[MANY] = {false};
    leat__rng_init(&rng, 5, 0, 0, 0);
    for (uint32_t i = 0; i < MANY; i++)
        a[i] = (leat__view_pair){leat__view_key((double)leat__rng_below(&rng, 300) - 150, i % 2 == 7), i};
    const leat__view_pair *sorted = leat__view_sort(a, b, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        if (i > 0) {
            assert_true(sorted[i - 1].key <= sorted[i].key);
            if (sorted[i - 1].key == sorted[i].key) assert_true(sorted[i - 1].row < sorted[i].row);
        }
        assert_false(seen[sorted[i].row]);
        seen[sorted[i].row] = true;
    }
    assert_ptr_equal(leat__view_sort(a, b, 0), a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys_order_as_numbers_do),
                                       cmocka_unit_test(sorting_is_complete_and_stable)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
