/* SPDX-License-Identifier: Apache-2.0
 *
 * Guarded mappings: bytes, residency, and above all a file truncated while mapped.
 */
#include "iotest.h"

#include "io/map.h"

static void test_read(void **state)
{
    char *dir = it_dir();
    leat__map *m;
    leat_error err;
    uint8_t buf[9000];
    it_make(it_path(dir, "a"), 20000);
    assert_int_equal(leat__map_open(&m, it_path(dir, "a"), &err), 0);
    assert_int_equal(leat__map_size(m), 20000);
    leat__map_advise(m, 100, 5000, LEAT__ADVICE_WILLNEED);
    assert_int_equal(leat__map_read(m, buf, sizeof buf, 5000, &err), 0);
    it_check(buf, sizeof buf, 5000);
    assert_int_equal(leat__map_read(m, buf, 2, 19999, &err), LEAT_EINVAL);
    leat__map_close(&m);
    it_rmdir(dir);
}

static void test_cut_short(void **state)
{
    char *dir = it_dir();
    leat__map *m;
    leat_error err;
    uint8_t buf[16384];
    it_make(it_path(dir, "a"), 65536);
    assert_int_equal(leat__map_open(&m, it_path(dir, "a"), &err), 0);
    assert_int_equal(truncate(it_path(dir, "a"), 8192), 0);
    assert_int_equal(leat__map_read(m, buf, 4096, 0, &err), 0);
    it_check(buf, 4096, 0);
    /* A plain load here would raise SIGBUS. */
    assert_int_equal(leat__map_read(m, buf, 16384, 4096, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "cut"));
    assert_int_equal(leat__map_read(m, buf, 1, 60000, &err), LEAT_EDATA);
    leat__map_close(&m);
    it_rmdir(dir);
}

static void test_resident(void **state)
{
    char *dir = it_dir();
    leat__map *m;
    leat_error err;
    uint64_t bytes;
    it_make(it_path(dir, "a"), 1 << 20);
    it_make(it_path(dir, "empty"), 0);
    assert_int_equal(leat__map_open(&m, it_path(dir, "a"), &err), 0);
    assert_int_equal(leat__map_resident(m, 0, 0, &bytes, &err), 0);
    assert_int_equal(bytes, 1 << 20); /* just written: all of it is in memory */
    assert_int_equal(leat__map_resident(m, 1000, 5000, &bytes, &err), 0);
    assert_int_equal(bytes, 5000);
    leat__map_close(&m);
    assert_int_equal(leat__map_open(&m, it_path(dir, "empty"), &err), 0);
    assert_int_equal(leat__map_resident(m, 0, 0, &bytes, &err), 0);
    assert_int_equal(bytes, 0);
    leat__map_close(&m);
    if (leat__fault_available()) {
        leat__fault_arm(LEAT__FAULT_MAP, 1, true);
        assert_int_not_equal(leat__map_open(&m, it_path(dir, "a"), &err), 0);
        leat__fault_disarm();
    }
    it_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_resident),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
