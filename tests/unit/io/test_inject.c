/* SPDX-License-Identifier: Apache-2.0
 *
 * Injected faults: only in the range, only in the file, only the given number of times.
 */
#include "iotest.h"

#include <errno.h>

#include "base/clock.h"
#include "io/inject.h"

static void test_range_and_times(void **state)
{
    char *dir = it_dir();
    leat__file *f, *g;
    leat_error err;
    uint8_t b[100];
    it_make(it_path(dir, "bad"), 10000);
    it_make(it_path(dir, "good"), 10000);
    assert_int_equal(leat__file_open(&f, it_path(dir, "bad"), LEAT__FILE_READ, &err), 0);
    assert_int_equal(leat__file_open(&g, it_path(dir, "good"), LEAT__FILE_READ, &err), 0);
    leat__inject_rule r = {.path = "/bad", .offset = 4096, .length = 100, .sys_errno = EIO, .times = 2};
    assert_int_equal(leat__io_inject(&r, &err), 0);
    assert_int_equal(leat__file_pread(f, b, 100, 3996, &err), 0); /* ends where it begins */
    assert_int_equal(leat__file_pread(f, b, 100, 4196, &err), 0); /* begins where it ends */
    assert_int_equal(leat__file_pread(g, b, 100, 4096, &err), 0);
    assert_int_equal(leat__file_pread(f, b, 100, 3997, &err), LEAT_EIO);
    assert_int_equal(err.sys_errno, EIO);
    assert_int_equal(leat__file_pread(f, b, 100, 4195, &err), LEAT_EIO);
    assert_int_equal(leat__file_pread(f, b, 100, 4100, &err), 0); /* twice only */
    assert_int_equal(leat__io_inject_hits(), 2);
    leat__io_inject_clear();
    assert_int_equal(leat__io_inject_hits(), 0);
    leat__file_close(&f);
    leat__file_close(&g);
    it_rmdir(dir);
}

static void test_text(void **state)
{
    char *dir = it_dir();
    leat__file *f;
    leat_error err;
    uint8_t b[10];
    it_make(it_path(dir, "a"), 100);
    assert_int_equal(leat__file_open(&f, it_path(dir, "a"), LEAT__FILE_READ, &err), 0);
    assert_int_equal(leat__io_inject_parse("delay=20ms,times=1;path=nothing,errno=5", &err), 0);
    uint64_t t = leat__clock_ns();
    assert_int_equal(leat__file_pread(f, b, 10, 0, &err), 0);
    assert_true(leat__clock_ns() - t >= 20 * LEAT_NS_PER_MS);
    uint64_t delay_ns = 1;
    assert_int_equal(leat__inject_ask(it_path(dir, "a"), 0, 10, &delay_ns), 0);
    assert_int_equal(delay_ns, 0); /* only once */
    leat__io_inject_clear();
    assert_int_equal(leat__io_inject_parse("delay", &err), LEAT_EINVAL);
    assert_int_equal(leat__io_inject_parse("speed=3", &err), LEAT_EINVAL);
    assert_int_equal(leat__io_inject_parse("errno=-1", &err), LEAT_EINVAL);
    leat__io_inject_clear();
    leat__file_close(&f);
    it_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_range_and_times),
        cmocka_unit_test(test_text),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
