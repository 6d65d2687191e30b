/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/probe/mount.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "probe/mount.h"

static void test_parse(void **state)
{
    leat__mount m;
    assert_true(leat__mount_parse(
        "36 35 98:3 /mnt1 /mnt\\0402 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=x\n"
        "next line",
        &m));
    assert_int_equal(m.major, 98);
    assert_int_equal(m.minor, 3);
    assert_string_equal(m.root, "/mnt1");
    assert_string_equal(m.point, "/mnt 2");
    assert_string_equal(m.type, "ext3");
    assert_string_equal(m.source, "/dev/root");
    assert_string_equal(m.options, "rw,errors=x");
    assert_true(leat__mount_parse("1 0 0:1 / / rw - tmpfs none rw", &m));
    assert_string_equal(m.point, "");
    assert_true(leat__mount_parse("1 0 0:1 / / rw - tmpfs none", &m));
    assert_string_equal(m.options, "");
}

static void test_malformed(void **state)
{
    static const char *const bad[] = {
        "",
        "\n",
        "36",
        "36 35",
        "36 35 x /a /b rw - ext4 s o",
        "36 35 98:0",
        "36 35 98:0 /a",
        "36 35 98:0 /a /b",
        "36 35 98:0 /a /b rw shared:1",
        "36 35 98:0 /a /b rw -",
        "36 35 98:0 /a /b rw - ext4",
        "36 35 98:0 /a /b rw  - ext4 s o",
    };
    leat__mount m;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(leat__mount_parse(bad[i], &m));
    }
    static char long_point[2 * PATH_MAX];
    int n = snprintf(long_point, sizeof long_point, "1 0 0:1 / /");
    memset(long_point + n, 'x', PATH_MAX);
    strcpy(long_point + n + PATH_MAX, " rw - tmpfs none rw");
    assert_false(leat__mount_parse(long_point, &m));
}

static void test_options(void **state)
{
    assert_true(leat__mount_option("cpu,cpuacct", 11, "cpu"));
    assert_true(leat__mount_option("cpu,cpuacct", 11, "cpuacct"));
    assert_false(leat__mount_option("cpuacct,cpuset", 14, "cpu"));
    assert_false(leat__mount_option("", 0, "cpu"));
    assert_false(leat__mount_option("cpu,memory", 3, "memory")); /* beyond the length */
}

static const char mounts[] = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                             "not a mount line\n"
                             "21 20 0:5 / /data rw - nfs4 server:/x rw\n"
                             "22 21 8:17 / /data/fast rw - xfs /dev/sdb1 rw\n"
                             "23 20 0:9 / /c rw - cgroup cgroup rw,cpu,cpuacct\n"
                             "24 20 0:8 / /first rw - cgroup2 cgroup2 rw\n"
                             "25 20 0:8 / /second rw - cgroup2 cgroup2 rw";

static void test_find(void **state)
{
    leat__mount m;
    assert_true(leat__mount_find(mounts, "cgroup", "cpuacct", &m));
    assert_string_equal(m.point, "/c");
    assert_false(leat__mount_find(mounts, "cgroup", "memory", &m));
    assert_true(leat__mount_find(mounts, "cgroup2", NULL, &m));
    assert_string_equal(m.point, "/second");
    assert_false(leat__mount_find("", "cgroup2", NULL, &m));
}

static void test_of(void **state)
{
    static const struct {
        const char *path, *type;
    } cases[] = {
        {"/", "ext4"},       {"/home/x", "ext4"},   {"/database", "ext4"},   {"/data", "nfs4"},
        {"/data/y", "nfs4"}, {"/data/fast", "xfs"}, {"/data/fast/z", "xfs"}, {"/data/faster", "nfs4"},
    };
    leat__mount m;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(leat__mount_of(mounts, cases[i].path, &m));
        assert_string_equal(m.type, cases[i].type);
    }
    assert_true(leat__mount_of("1 0 0:1 / /a rw - one x rw\n2 0 0:2 / /a rw - two y rw\n", "/a/b", &m));
    assert_string_equal(m.type, "two"); /* mounted over the first */
    assert_false(leat__mount_of("1 0 0:1 / /a rw - one x rw\n", "/b", &m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse), cmocka_unit_test(test_malformed), cmocka_unit_test(test_options),
        cmocka_unit_test(test_find),  cmocka_unit_test(test_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
