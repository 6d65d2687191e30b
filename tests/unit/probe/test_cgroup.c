/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/probe/cgroup.c on fake trees: version 2 nested, version 1, both at once,
 * namespaces, missing files and garbage. And one real group, if the machine permits.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/wait.h>

#include <leat/machine.h>

#include "base/fault.h"
#include "base/mem.h"
#include "probe/cgroup.h"
#include "tree.h"

#define GIB (UINT64_C(1) << 30)
#define V2_MOUNT "30 1 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"

static leat__cgroup read_group(void)
{
    static leat__cgroup cg;
    leat__cgroup_read(&cg);
    assert_int_equal(leat__mem_blocks(), 0);
    return cg;
}

static void v2_tree(const char *path)
{
    char line[256];
    snprintf(line, sizeof line, "0::%s\n", path);
    tree_file("/proc/self/cgroup", line);
    tree_file("/proc/self/mountinfo", "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n" V2_MOUNT);
}

static void test_none(void **state)
{
    leat__cgroup cg = read_group();
    assert_int_equal(cg.version, 0);
    assert_true(cg.cpu_quota == 0);
    assert_true(cg.memory_limit == LEAT_UNLIMITED && cg.memory_left == LEAT_UNLIMITED);
    assert_true(cg.swap_left == LEAT_UNLIMITED);
    assert_false(cg.has_cpuset);

    tree_file("/proc/self/cgroup", "0::/a\n");
    tree_file("/proc/self/mountinfo", "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
    assert_int_equal(read_group().version, 0); /* a group, but nothing mounted */
}

/* The quota is in a slice above us, the memory limit in another. */
static void test_v2_nested(void **state)
{
    v2_tree("/pod.slice/box.slice/me");
    tree_file("/sys/fs/cgroup/pod.slice/memory.max", "1073741824\n");
    tree_file("/sys/fs/cgroup/pod.slice/memory.current", "700000000\n");
    tree_file("/sys/fs/cgroup/pod.slice/memory.stat",
              "anon 1\nfile 300000000\ninactive_file 200000000\nactive_file 100000000\n");
    tree_file("/sys/fs/cgroup/pod.slice/cpu.max", "800000 100000\n");
    tree_file("/sys/fs/cgroup/pod.slice/box.slice/cpu.max", "150000 100000\n");
    tree_file("/sys/fs/cgroup/pod.slice/box.slice/cpu.stat",
              "usage_usec 9\nnr_periods 40\nnr_throttled 10\nthrottled_usec 123456\n");
    tree_file("/sys/fs/cgroup/pod.slice/box.slice/memory.max", "4294967296\n");
    tree_file("/sys/fs/cgroup/pod.slice/box.slice/memory.current", "4200000000\n");
    tree_file("/sys/fs/cgroup/pod.slice/box.slice/me/cpu.max", "max 100000\n");
    tree_file("/sys/fs/cgroup/pod.slice/box.slice/me/memory.max", "max\n");
    tree_file("/sys/fs/cgroup/pod.slice/box.slice/me/memory.high", "max\n");
    tree_file("/sys/fs/cgroup/pod.slice/box.slice/me/memory.current", "5000\n");

    leat__cgroup cg = read_group();
    assert_int_equal(cg.version, 2);
    assert_true(cg.cpu_quota == 1.5);
    assert_int_equal(cg.periods, 40);
    assert_int_equal(cg.throttled_periods, 10);
    assert_int_equal(cg.throttled_us, 123456);
    assert_int_equal(cg.memory_limit, GIB);
    assert_int_equal(cg.memory_used, 400000000); /* 700 - 200 - 100: cache does not count as
                                                  * used */
    /* the group with the larger limit is the fuller one */
    assert_int_equal(cg.memory_left, 4 * GIB - UINT64_C(4200000000));
    assert_string_equal(cg.unified, "/sys/fs/cgroup/pod.slice/box.slice/me");
}

static void test_v2_high_and_swap(void **state)
{
    v2_tree("/a");
    tree_file("/sys/fs/cgroup/a/memory.max", "2147483648\n");
    tree_file("/sys/fs/cgroup/a/memory.high", "1073741824\n");
    tree_file("/sys/fs/cgroup/a/memory.current", "2000000000\n"); /* above high */
    tree_file("/sys/fs/cgroup/a/memory.swap.max", "1000000\n");
    tree_file("/sys/fs/cgroup/a/memory.swap.current", "400000\n");
    leat__cgroup cg = read_group();
    assert_int_equal(cg.memory_limit, GIB);
    assert_int_equal(cg.memory_left, 0);
    assert_int_equal(cg.swap_left, 600000);
}

/* In a namespace our path is "/" and the limits are those of the mount point. */
static void test_v2_namespace(void **state)
{
    v2_tree("/");
    tree_file("/sys/fs/cgroup/cpu.max", "50000 100000\n");
    tree_file("/sys/fs/cgroup/memory.max", "536870912\n");
    tree_file("/sys/fs/cgroup/cpuset.cpus.effective", "2-3\n");
    leat__cgroup cg = read_group();
    assert_true(cg.cpu_quota == 0.5);
    assert_int_equal(cg.memory_limit, GIB / 2);
    assert_true(cg.has_cpuset);
    assert_int_equal(leat__cpuset_count(&cg.cpuset), 2);
    assert_string_equal(cg.unified, "/sys/fs/cgroup");
}

/* Paths outside what we can see: the mount point is the best guess. */
static void test_v2_path_not_visible(void **state)
{
    tree_file("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    static const char *const paths[] = {"/../other", "/kubepods/pod1/box", "/a/../../b", "//"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        v2_tree(paths[i]);
        assert_true(read_group().cpu_quota == 2.0);
    }
}

/* A container without a namespace: the mount shows our group as its top. */
static void test_mount_root(void **state)
{
    tree_file("/proc/self/cgroup", "4:memory:/docker/abc/sub\n3:cpu,cpuacct:/docker/abc\n");
    tree_file("/proc/self/mountinfo",
              "31 1 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
              "32 1 0:28 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup "
              "rw,cpu,cpuacct\n");
    tree_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
    tree_file("/sys/fs/cgroup/memory/sub/memory.limit_in_bytes", "9223372036854771712\n");
    tree_file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n");
    tree_file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    leat__cgroup cg = read_group();
    assert_int_equal(cg.version, 1);
    assert_int_equal(cg.memory_limit, GIB);
    assert_true(cg.cpu_quota == 2.5);
    assert_string_equal(cg.unified, "");
}

#define V1_MOUNTS                                                                                            \
    "31 1 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"                                       \
    "32 1 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"                                             \
    "33 1 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"

static void v1_files(void)
{
    tree_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    tree_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    tree_file("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "30000\n");
    tree_file("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "20000\n");
    tree_file("/sys/fs/cgroup/cpu/job/cpu.stat", "nr_periods 7\nnr_throttled 3\nthrottled_time 5000000\n");
    tree_file("/sys/fs/cgroup/cpu/job/x/cpu.cfs_quota_us", "-1\n");
    tree_file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2147483648\n");
    tree_file("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1500000000\n");
    tree_file("/sys/fs/cgroup/memory/job/memory.stat",
              "cache 9\ninactive_file 1\ntotal_inactive_file 400000000\n"
              "total_active_file 100000000\nhierarchical_memory_limit 1073741824\n");
    tree_file("/sys/fs/cgroup/cpuset/job/cpuset.effective_cpus", "0,2-4\n");
}

static void test_v1(void **state)
{
    tree_file("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/job\n3:cpuset:/job\n1:cpu:/job/x\n");
    tree_file("/proc/self/mountinfo", V1_MOUNTS);
    v1_files();
    leat__cgroup cg = read_group();
    assert_int_equal(cg.version, 1);
    assert_true(cg.cpu_quota == 1.5);
    assert_int_equal(cg.periods, 7);
    assert_int_equal(cg.throttled_periods, 3);
    assert_int_equal(cg.throttled_us, 5000);
    assert_int_equal(cg.memory_limit, GIB); /* of a group above the mount */
    assert_int_equal(cg.memory_used, 1000000000);
    assert_int_equal(leat__cpuset_count(&cg.cpuset), 4);
}

/* Version 1 controllers beside a version 2 tree: the smallest of both counts. */
static void test_hybrid(void **state)
{
    tree_file("/proc/self/cgroup", "4:memory:/job\n3:cpuset:/job\n1:cpu:/job/x\n0::/unit\n");
    tree_file("/proc/self/mountinfo",
              V1_MOUNTS "41 1 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    v1_files();
    tree_file("/sys/fs/cgroup/unified/unit/cpuset.cpus.effective", "4-7\n");
    leat__cgroup cg = read_group();
    assert_int_equal(cg.version, 3);
    assert_true(cg.cpu_quota == 1.5);
    assert_int_equal(cg.memory_limit, GIB);
    assert_int_equal(leat__cpuset_count(&cg.cpuset), 1); /* CPU 4 */
    assert_string_equal(cg.unified, "/sys/fs/cgroup/unified/unit");

    tree_file("/sys/fs/cgroup/unified/unit/cpu.max", "100000 100000\n");
    tree_file("/sys/fs/cgroup/unified/unit/memory.max", "1000\n");
    cg = read_group();
    assert_true(cg.cpu_quota == 1.0);
    assert_int_equal(cg.memory_limit, 1000);
    assert_int_equal(cg.memory_used, 0);
}

static void test_garbage(void **state)
{
    static const char *const cpu_max[] = {"",           "garbage\n",  "-5 100000\n",
                                          "100000 0\n", "1e9\n",      "100000 x\n",
                                          "0 100000\n", "\xff\xfe\n", "99999999999999999999999 100000\n"};
    v2_tree("/a");
    tree_file("/sys/fs/cgroup/a/memory.max", "lots\n");
    tree_file("/sys/fs/cgroup/a/memory.high", "-1\n");
    tree_file("/sys/fs/cgroup/a/memory.current", "?\n");
    tree_file("/sys/fs/cgroup/a/memory.stat", "inactive_file many\n\n\nactive_file\n");
    tree_file("/sys/fs/cgroup/a/cpuset.cpus.effective", "one-two\n");
    for (size_t i = 0; i < sizeof cpu_max / sizeof cpu_max[0]; i++) {
        tree_file("/sys/fs/cgroup/a/cpu.max", cpu_max[i]);
        leat__cgroup cg = read_group();
        assert_true(cg.cpu_quota == 0);
        assert_true(cg.memory_limit == LEAT_UNLIMITED);
        assert_false(cg.has_cpuset);
    }
    static const char *const lines[] = {"", "\n\n", "0:", "0::", "0::relative\n", "x\ny", ":::", "0:/a"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        tree_file("/proc/self/cgroup", lines[i]);
        read_group();
    }
    /* a cache larger than the use: counted as none, not as 2^64 */
    v2_tree("/b");
    tree_file("/sys/fs/cgroup/b/memory.max", "1000\n");
    tree_file("/sys/fs/cgroup/b/memory.current", "100\n");
    tree_file("/sys/fs/cgroup/b/memory.stat", "inactive_file 500\n");
    leat__cgroup cg = read_group();
    assert_int_equal(cg.memory_used, 0);
    assert_int_equal(cg.memory_left, 1000);
    /* "100000" alone: the default period */
    tree_file("/sys/fs/cgroup/b/cpu.max", "100000\n");
    assert_true(read_group().cpu_quota == 1.0);
}

static void test_unreadable(void **state)
{
    if (!leat__fault_available()) skip();
    v2_tree("/a");
    tree_file("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
    tree_file("/sys/fs/cgroup/a/memory.max", "1000\n");
    leat__fault_arm(LEAT__FAULT_READ, 0, false);
    read_group();
    uint64_t reads = leat__fault_count(LEAT__FAULT_READ);
    assert_true(reads > 4);
    for (uint64_t n = 1; n <= reads; n++) { /* each read fails in turn: never a wrong number */
        leat__fault_arm(LEAT__FAULT_READ, n, false);
        leat__cgroup cg = read_group();
        assert_true(cg.cpu_quota == 0 || cg.cpu_quota == 1.5);
        assert_true(cg.memory_limit == LEAT_UNLIMITED || cg.memory_limit == 1000);
    }
    leat__fault_disarm();
}

/* ---- a real group of version 1 --------------------------------------------------------- */

static bool put(const char *dir, const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    FILE *f = fopen(path, "w");
    if (!f) return false;
    bool ok = fputs(text, f) >= 0;
    return fclose(f) == 0 && ok;
}

/* Runs in a child: joins the group and reports whether it sees the quota. */
static int seen_from_inside(const char *dir)
{
    char pid[32];
    leat__cgroup cg;
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    if (!put(dir, "cgroup.procs", pid)) return 2;
    leat__sysroot_set("");
    leat__cgroup_read(&cg);
    return cg.cpu_quota == 1.5 ? 0 : 1;
}

static void test_real_v1(void **state)
{
    char dir[128];
    snprintf(dir, sizeof dir, "/sys/fs/cgroup/cpu/leat-test-%d", (int)getpid());
    if (mkdir(dir, 0755) != 0) skip(); /* no version 1, or not allowed */
    int result = 2;
    if (put(dir, "cpu.cfs_period_us", "100000") && put(dir, "cpu.cfs_quota_us", "150000")) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) _exit(seen_from_inside(dir));
        int status;
        if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status)) {
            result = WEXITSTATUS(status);
        }
    }
    assert_int_equal(rmdir(dir), 0);
    if (result == 2) skip();
    assert_int_equal(result, 0);
}

int main(void)
{
#define ON_TREE(test) cmocka_unit_test_setup_teardown(test, tree_open, tree_close)
    const struct CMUnitTest tests[] = {
        ON_TREE(test_none),
        ON_TREE(test_v2_nested),
        ON_TREE(test_v2_high_and_swap),
        ON_TREE(test_v2_namespace),
        ON_TREE(test_v2_path_not_visible),
        ON_TREE(test_mount_root),
        ON_TREE(test_v1),
        ON_TREE(test_hybrid),
        ON_TREE(test_garbage),
        ON_TREE(test_unreadable),
        ON_TREE(test_real_v1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
