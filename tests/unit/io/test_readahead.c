/* SPDX-License-Identifier: Apache-2.0
 *
 * Readahead: the window is respected, and dropped pages are read again by themselves.
 */
#include "iotest.h"

#include "base/clock.h"
#include "io/readahead.h"
#include "io/resident.h"

static void wait_for_advised(leat__readahead *r, uint64_t n)
{
    leat__readahead_stats s;
    uint64_t end = leat__clock_ns() + 5 * LEAT_NS_PER_S;
    do {
        leat__sleep_ns(LEAT_NS_PER_MS);
        leat__readahead_read(r, &s);
    } while (s.advised < n && leat__clock_ns() < end);
    assert_int_equal(s.advised, n);
}

static void test_window(void **state)
{
    char *dir = it_dir();
    leat__file *f;
    leat__readahead *r;
    leat__readahead_stats s;
    leat_error err;
    it_make(it_path(dir, "a"), 1 << 20);
    assert_int_equal(leat__file_open(&f, it_path(dir, "a"), LEAT__FILE_READ, &err), 0);
    assert_int_equal(leat__readahead_open(&r, 100000, 8, &err), 0);
    for (int i = 0; i < 8; i++) assert_int_equal(leat__readahead_push(r, f, (uint64_t)i * 50000, 50000), 0);
    assert_int_equal(leat__readahead_push(r, f, 0, 1), LEAT_EAGAIN);
    wait_for_advised(r, 2);
    leat__sleep_ns(5 * LEAT_NS_PER_MS);
    leat__readahead_read(r, &s);
    assert_int_equal(s.advised, 2); /* not more than the window */
    assert_int_equal(s.ahead_bytes, 100000);
    leat__readahead_consume(r, 1);
    wait_for_advised(r, 3);
    leat__readahead_consume(r, 100); /* more than there are */
    leat__readahead_read(r, &s);
    assert_int_equal(s.consumed, 8);
    assert_int_equal(s.ahead_bytes, 0);
    leat__readahead_close(&r);
    leat__file_close(&f);
    it_rmdir(dir);
}

/* Only if the file system can drop pages (tmpfs cannot: there all pages stay resident). */
static void test_dropped_pages_are_read_again(void **state)
{
    char *dir = it_dir();
    leat__file *f;
    leat__readahead *r;
    leat_error err;
    uint64_t before, after = 0, size;
    it_make(it_path(dir, "a"), 1 << 20);
    assert_int_equal(leat__file_open(&f, it_path(dir, "a"), LEAT__FILE_WRITE, &err), 0);
    assert_int_equal(leat__file_sync(f, &err), 0);
    leat__file_advise(f, 0, 0, LEAT__ADVICE_DONTNEED);
    assert_int_equal(leat__file_resident(it_path(dir, "a"), &before, &size, &err), 0);
    assert_int_equal(leat__readahead_open(&r, 0, 0, &err), 0);
    assert_int_equal(leat__readahead_push(r, f, 0, 1 << 20), 0);
    uint64_t end = leat__clock_ns() + 5 * LEAT_NS_PER_S;
    while (after < 1 << 20 && leat__clock_ns() < end) {
        leat__sleep_ns(LEAT_NS_PER_MS);
        assert_int_equal(leat__file_resident(it_path(dir, "a"), &after, &size, &err), 0);
    }
    assert_int_equal(after, 1 << 20);
    assert_true(before <= after);
    leat__readahead_close(&r);
    leat__file_close(&f);
    it_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_dropped_pages_are_read_again),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
