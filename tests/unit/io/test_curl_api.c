/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "io/curl_api.h"

/* The library is chosen once per process, so a test with a wrong one is elsewhere
 * (tests/remote). */
static void loads_once(void **state)
{
    (void)state;
#ifdef LEAT_HAVE_CURL
    const leat__curl *a, *b;
    leat_error err;
    int rc = leat__curl_load(&a, &err);
    if (rc == LEAT_ENOTSUP) {
        assert_contains(err.message, "libcurl");
        skip();
    }
    assert_ok(rc);
    assert_ok(leat__curl_load(&b, NULL));
    assert_ptr_equal(a, b);
    CURL *easy = a->easy_init();
    assert_non_null(easy);
    a->easy_cleanup(easy);
    assert_non_null(a->easy_strerror(CURLE_COULDNT_CONNECT));
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(loads_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
