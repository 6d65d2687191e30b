/* SPDX-License-Identifier: Apache-2.0 */
#include "io/traffic.h"

#include <math.h>

#include "leat_test.h"

static void bytes_and_requests_have_prices(void **state)
{
    leat__traffic_price p;
    (void)state;
    unsetenv("AWS_ENDPOINT_URL");
    unsetenv("GS_ENDPOINT_URL");
    assert_true(leat__traffic_price_of("s3://b/x", UINT64_C(100000000000), 1000000, &p));
    assert_true(fabs(p.same_region - 0.4) < 1e-9); /* requests only */
    assert_true(fabs(p.other_region - 2.4) < 1e-9);
    assert_true(fabs(p.internet - 9.4) < 1e-9);
    assert_true(leat__traffic_price_of("gs://b/x", 0, 0, &p));
    assert_true(p.internet == 0);
}

static void unknown_owners_have_no_prices(void **state)
{
    leat__traffic_price p;
    (void)state;
    assert_false(leat__traffic_price_of("https://h/x", 1, 1, &p));
    assert_false(leat__traffic_price_of("x.leat", 1, 1, &p));
    setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1", 1);
    assert_false(leat__traffic_price_of("s3://b/x", 1, 1, &p));
    unsetenv("AWS_ENDPOINT_URL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_and_requests_have_prices),
        cmocka_unit_test(unknown_owners_have_no_prices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
