/* SPDX-License-Identifier: Apache-2.0
 *
 * The front of asynchronous reads: choosing a backend, depths, failing to open.
 */
#include "iotest.h"

#include "io/aio.h"

static void test_choice(void **state)
{
    leat__aio *a;
    leat_error err;
    unsetenv("LEAT_IO");
    assert_int_equal(leat__aio_open(&a, NULL, &err), 0);
    assert_int_not_equal(leat__aio_backend(a), LEAT__AIO_AUTO);
    assert_int_equal(leat__aio_depth(a), 16);
    leat__aio_close(&a);
    setenv("LEAT_IO", "threads", 1);
    assert_int_equal(leat__aio_open(&a, NULL, &err), 0);
    assert_int_equal(leat__aio_backend(a), LEAT__AIO_THREADS);
    leat__aio_close(&a);
    setenv("LEAT_IO", "pigeons", 1);
    assert_int_equal(leat__aio_open(&a, NULL, &err), LEAT_EINVAL);
    assert_null(a);
    unsetenv("LEAT_IO");
}

static void test_depth(void **state)
{
    leat__aio *a;
    leat_error err;
    leat__aio_opts o = {.kind = LEAT__AIO_THREADS, .depth = 5, .max_depth = 10};
    assert_int_equal(leat__aio_open(&a, &o, &err), 0);
    leat__aio_depth_set(a, 100);
    assert_int_equal(leat__aio_depth(a), 10);
    leat__aio_depth_set(a, 0);
    assert_int_equal(leat__aio_depth(a), 1);
    leat__aio_close(&a);
}

static void test_open_fails_cleanly(void **state)
{
    if (!leat__fault_available()) skip();
    leat__aio *a;
    leat_error err;
    leat__aio_opts o = {0};
    for (int kind = LEAT__AIO_AUTO; kind <= LEAT__AIO_THREADS; kind++) {
        for (int fault = 0; fault < LEAT__FAULT_KINDS; fault++) {
            for (uint64_t n = 1; n < 6; n++) {
                o.kind = (leat__aio_kind)kind;
                leat__fault_arm((leat__fault_kind)fault, n, true);
                int rc = leat__aio_open(&a, &o, &err);
                leat__fault_disarm();
                if (rc == 0) leat__aio_close(&a);
                else assert_null(a);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_open_fails_cleanly),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
