/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/clock.h"
#include "doctor/time_limit.h"

static int say(void *cookie)
{
    return *(int *)cookie;
}

static void no_limit_never_ends(void **state)
{
    leat_error err = {0};
    (void)state;
    assert_ok(leat__time_check(NULL, &err));
    assert_true(leat__time_left(NULL) > 1e6);
}

static void a_deadline_ends_it(void **state)
{
    uint64_t now = leat__clock_ns();
    leat__time_limit past = {.until_ns = now}, later = {.until_ns = now + 3600 * LEAT_NS_PER_S};
    leat_error err = {0};
    (void)state;
    assert_int_equal(leat__time_check(&past, &err), LEAT_ETIMEDOUT);
    assert_true(leat__time_left(&past) == 0);
    assert_ok(leat__time_check(&later, &err));
    assert_true(leat__time_left(&later) > 3000);
}

static void a_request_to_stop_comes_before_the_deadline(void **state)
{
    int stop = 0;
    leat__time_limit limit = {.until_ns = UINT64_MAX, .stop = say, .cookie = &stop};
    leat_error err = {0};
    (void)state;
    assert_ok(leat__time_check(&limit, &err));
    stop = 1;
    assert_int_equal(leat__time_check(&limit, &err), LEAT_ECANCELED);
    limit.until_ns = 0;
    assert_int_equal(leat__time_check(&limit, &err), LEAT_ECANCELED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_limit_never_ends),
        cmocka_unit_test(a_deadline_ends_it),
        cmocka_unit_test(a_request_to_stop_comes_before_the_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
