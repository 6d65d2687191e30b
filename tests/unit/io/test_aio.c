/* SPDX-License-Identifier: Apache-2.0
 *
 * The front end of asynchronous reads: choosing a backend, depths, failing to open.
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

static uint32_t turns;

static void count_turn(leat__aio_req *req)
{
    turns += req->rc == 0;
}

/* Nothing happens by itself; close cancels unread requests. */
static void test_manual(void **state)
{
    char *dir = it_dir();
    leat__aio *a;
    leat__file *f;
    leat__aio_req req[4] = {0};
    uint8_t buf[4][100];
    leat__aio_opts o = {.kind = LEAT__AIO_MANUAL};
    it_make(it_path(dir, "a"), 1000);
    assert_int_equal(leat__file_open(&f, it_path(dir, "a"), LEAT__FILE_READ, NULL), 0);
    assert_int_equal(leat__aio_open(&a, &o, NULL), 0);
    assert_false(leat__aio_turn(a, 7));
    for (uint32_t i = 0; i < 4; i++) {
        req[i] = (leat__aio_req){.file = f, .offset = i * 100, .buf = buf[i], .len = 100};
        req[i].done = i < 3 ? count_turn : NULL;
        leat__aio_submit(a, &req[i]);
    }
    turns = 0;
    assert_true(leat__aio_turn(a, 1)); /* the second of the four */
    assert_true(req[1].done_ns != 0 && req[0].done_ns == 0);
    it_check(buf[1], 100, 100);
    assert_true(leat__aio_turn(a, 4)); /* the order is now 2 3 0 */
    assert_true(leat__aio_turn(a, 1));
    assert_int_equal(turns, 2);
    leat__aio_close(&a);
    assert_int_equal(req[0].rc, LEAT_ECANCELED);
    leat__file_close(&f);
    it_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_manual),
        cmocka_unit_test(test_open_fails_cleanly),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
