/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/probe/sysfile.c: files below the root, numbers in them, and sets of CPUs.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <leat/machine.h>

#include "base/fault.h"
#include "base/mem.h"
#include "tree.h"

static void test_read(void **state)
{
    char text[8];
    tree_file("/proc/a", "hello\n");
    assert_true(leat__sysfile_read(text, sizeof text, "/proc/%s", "a"));
    assert_string_equal(text, "hello\n");
    char small[4];
    assert_true(leat__sysfile_read(small, sizeof small, "/proc/a"));
    assert_string_equal(small, "hel");
    assert_false(leat__sysfile_read(text, sizeof text, "/proc/none"));
    assert_string_equal(text, "");
    assert_false(leat__sysfile_read(text, sizeof text, "/proc")); /* a folder */
}

static void test_load(void **state)
{
    static char big[20001];
    memset(big, 'x', sizeof big - 1);
    tree_file("/big", big);
    tree_file("/empty", "");
    char *text = leat__sysfile_load("/big");
    assert_string_equal(text, big);
    leat__free(text);
    text = leat__sysfile_load("/empty");
    assert_string_equal(text, "");
    leat__free(text);
    assert_null(leat__sysfile_load("/none"));
    assert_null(leat__sysfile_load("/.")); /* a folder opens, but does not read */
    assert_int_equal(leat__mem_blocks(), 0);
}

static void test_failures(void **state)
{
    char text[8];
    if (!leat__fault_available()) skip();
    tree_file("/a", "5\n");
    leat__fault_arm(LEAT__FAULT_READ, 1, true);
    assert_false(leat__sysfile_read(text, sizeof text, "/a"));
    assert_null(leat__sysfile_load("/a"));
    leat__fault_disarm();
    leat__fault_arm(LEAT__FAULT_ALLOC, 1, true);
    assert_null(leat__sysfile_load("/a"));
    leat__fault_disarm();
    assert_int_equal(leat__mem_blocks(), 0);
}

static void test_u64(void **state)
{
    static const struct {
        const char *text;
        bool ok;
        uint64_t value;
    } cases[] = {
        {"123\n", true, 123},
        {"0", true, 0},
        {"max\n", true, LEAT_UNLIMITED},
        {"max", true, LEAT_UNLIMITED},
        {"18446744073709551615\n", true, UINT64_MAX},
        {"18446744073709551616\n", false, 0},
        {"99999999999999999999999\n", false, 0},
        {"-1\n", false, 0},
        {"", false, 0},
        {"garbage\n", false, 0},
        {"12abc\n", false, 0},
        {"maximum\n", false, 0},
        {"150000 100000\n", true, 150000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t value = 77;
        tree_file("/n", cases[i].text);
        assert_int_equal(leat__sysfile_u64(&value, "/n"), cases[i].ok);
        assert_int_equal(value, cases[i].ok ? cases[i].value : 77);
    }
    uint64_t value;
    assert_false(leat__sysfile_u64(&value, "/none"));
}

static void test_keys(void **state)
{
    static const char text[] = "MemTotalExtra:  1 kB\nMemTotal:       25276518 kB\nnr 5\nbad x\n";
    uint64_t value;
    assert_true(leat__text_key_u64(text, "MemTotal", &value));
    assert_int_equal(value, 25276518);
    assert_true(leat__text_key_u64(text, "nr", &value));
    assert_int_equal(value, 5);
    assert_false(leat__text_key_u64(text, "Mem", &value));
    assert_false(leat__text_key_u64(text, "bad", &value));
    assert_false(leat__text_key_u64(text, "none", &value));
    assert_false(leat__text_key_u64("", "none", &value));
}

static void test_root(void **state)
{
    char path[PATH_MAX], huge[PATH_MAX + 8];
    assert_true(leat__sysfile_path(path, "/x"));
    assert_memory_equal(path, tree_root, strlen(tree_root));
    memset(huge, 'a', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    assert_false(leat__sysfile_path(path, "/%s", huge));
    assert_false(leat__sysfile_read(path, sizeof path, "/%s", huge));

    leat__sysroot_set(NULL);
    setenv("LEAT_SYSROOT", "/fake", 1);
    assert_true(leat__sysfile_path(path, "/x"));
    assert_string_equal(path, "/fake/x");
    setenv("LEAT_SYSROOT", huge, 1);
    assert_false(leat__sysfile_path(path, "/x"));
    unsetenv("LEAT_SYSROOT");
    assert_string_equal(leat__sysroot(), "");
    leat__sysroot_set(tree_root);
}

static void test_cpusets(void **state)
{
    static const struct {
        const char *text;
        uint32_t count; /* 0: refused */
    } cases[] = {
        {"0\n", 1}, {"0-3\n", 4},      {"0-3,8,10-12", 8}, {"0,0,0\n", 1}, {"5000-5001", 2},
        {"", 0},    {"\n", 0},         {"3-1\n", 0},       {"a", 0},       {"0-", 0},
        {"0,", 0},  {"0-99999999", 0}, {"8192", 0},        {"-1", 0},      {"0-3;5", 0},
    };
    leat__cpuset set, other;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(leat__cpuset_parse(&set, cases[i].text), cases[i].count != 0);
        assert_int_equal(leat__cpuset_count(&set), cases[i].count);
    }
    assert_true(leat__cpuset_parse(&set, "0-7"));
    assert_true(leat__cpuset_parse(&other, "6-9"));
    leat__cpuset_and(&set, &other);
    assert_int_equal(leat__cpuset_count(&set), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),    cmocka_unit_test(test_load), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_u64),     cmocka_unit_test(test_keys), cmocka_unit_test(test_root),
        cmocka_unit_test(test_cpusets),
    };
    return cmocka_run_group_tests(tests, tree_open, tree_close);
}
