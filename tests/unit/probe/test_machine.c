/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/probe/machine.c: the facts of fake machines, the same facts as JSON, and this
 * machine against system calls.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "probe/machine.h"
#include "tree.h"

#define GIB (UINT64_C(1) << 30)

/* A host with 16 CPUs and 64 GiB, half of it available, no groups. */
/* leat machine --json, without what the command adds. */
static int machine_json(const leat_machine *m, leat__buf *out)
{
    leat__json j;
    leat__json_init(&j, out, 2);
    leat__json_object(&j);
    leat__machine_json_fields(m, &j);
    leat__json_end(&j);
    return leat__buf_status(out);
}

static void host_tree(void)
{
    tree_file("/sys/devices/system/cpu/online", "0-15\n");
    tree_file("/sys/devices/system/node/online", "0-1\n");
    tree_file("/proc/self/status", "Name:\tx\nCpus_allowed:\tffffffff\n"
                                   "Cpus_allowed_list:\t0-31\nMems_allowed:\t1\n");
    tree_file("/proc/meminfo", "MemTotal:       67108864 kB\nMemFree:  1000 kB\n"
                               "MemAvailable:   33554432 kB\nSwapFree:  2048 kB\n");
    tree_file("/proc/pressure/cpu", "some avg10=12.50 avg60=1.00 avg300=0.10 total=5\n");
    tree_file("/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
}

static void group_tree(void)
{
    tree_file("/proc/self/cgroup", "0::/pod/box\n");
    tree_file("/proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    tree_file("/sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
    tree_file("/sys/fs/cgroup/pod/cpu.stat", "nr_periods 100\nnr_throttled 25\nthrottled_usec 7\n");
    tree_file("/sys/fs/cgroup/pod/box/memory.max", "1073741824\n");
    tree_file("/sys/fs/cgroup/pod/box/memory.current", "500000000\n");
    tree_file("/sys/fs/cgroup/pod/box/memory.stat", "inactive_file 100000000\n");
}

static leat_machine *read_machine(void)
{
    static leat_machine m;
    leat_error err = {0};
    assert_int_equal(leat_machine_read(&m, sizeof m, &err), 0);
    assert_int_equal(m.struct_size, sizeof m);
    assert_int_equal(leat__mem_blocks(), 0);
    return &m;
}

static void test_host_only(void **state)
{
    host_tree();
    leat_machine *m = read_machine();
    assert_int_equal(m->cpus_host, 16);
    assert_int_equal(m->cpus_affinity, 16); /* 32 allowed, 16 online */
    assert_int_equal(m->cpus_usable, 16);
    assert_true(m->cpu_quota == 0);
    assert_int_equal(m->cgroup_version, 0);
    assert_int_equal(m->memory_host_bytes, 64 * GIB);
    assert_true(m->memory_cgroup_bytes == LEAT_UNLIMITED);
    assert_int_equal(m->memory_limit_bytes, 64 * GIB);
    assert_int_equal(m->memory_used_bytes, 32 * GIB);
    assert_int_equal(m->memory_available_bytes, 32 * GIB);
    assert_int_equal(m->swap_free_bytes, 2 << 20);
    assert_int_equal(m->shm_total_bytes, 0);
    assert_int_equal(m->numa_nodes, 2);
    assert_true(m->pressure_cpu == 12.5);
    assert_true(m->pressure_memory == 0);
    assert_true(m->pressure_io == -1);
    assert_int_equal(m->cache_line_bytes, 64);
}

static void test_container(void **state)
{
    host_tree();
    group_tree();
    leat_machine *m = read_machine();
    assert_int_equal(m->cpus_usable, 2);
    assert_true(m->cpu_quota == 1.5);
    assert_int_equal(m->periods, 100);
    assert_int_equal(m->throttled_periods, 25);
    assert_int_equal(m->throttled_us, 7);
    assert_int_equal(m->memory_limit_bytes, GIB);
    assert_int_equal(m->memory_cgroup_bytes, GIB);
    assert_int_equal(m->memory_used_bytes, 400000000);
    assert_int_equal(m->memory_available_bytes, GIB - 400000000);

    /* the group has more left than the host */
    tree_file("/proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 1024 kB\n");
    assert_int_equal(read_machine()->memory_available_bytes, 1 << 20);
    /* pressure of our group, not of the host */
    tree_file("/sys/fs/cgroup/pod/box/cpu.pressure", "some avg10=33.25 avg60=0 total=1\n");
    assert_true(read_machine()->pressure_cpu == 33.25);
    /* a quota above the affinity limits nothing, a tiny one leaves one CPU */
    tree_file("/sys/fs/cgroup/pod/cpu.max", "9900000 100000\n");
    assert_int_equal(read_machine()->cpus_usable, 16);
    tree_file("/sys/fs/cgroup/pod/cpu.max", "1000 100000\n");
    assert_int_equal(read_machine()->cpus_usable, 1);
    tree_file("/sys/fs/cgroup/pod/cpu.max", "200000 100000\n");
    assert_int_equal(read_machine()->cpus_usable, 2);
    /* a set of CPUs */
    tree_file("/sys/fs/cgroup/pod/cpu.max", "max 100000\n");
    tree_file("/sys/fs/cgroup/pod/box/cpuset.cpus.effective", "3-5,20\n");
    assert_int_equal(read_machine()->cpus_affinity, 3);
    assert_int_equal(read_machine()->cpus_usable, 3);
}

static void test_json(void **state)
{
    host_tree();
    group_tree();
    leat_machine *m = read_machine();
    m->gpu_count = 2;
    strcpy(m->gpus[0].name, "GPU \"A\"");
    m->gpus[0].compute_major = 9;
    m->gpus[1].memory_bytes = 80 * GIB;
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
    assert_int_equal(machine_json(m, &out), 0);
    json_t *root = json_loads(leat__buf_str(&out), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    assert_int_equal(json_integer_value(json_object_get(root, "cpus_usable")), 2);
    assert_true(json_real_value(json_object_get(root, "cpu_quota")) == 1.5);
    assert_int_equal(json_integer_value(json_object_get(root, "memory_limit_bytes")), GIB);
    assert_true(json_is_null(json_object_get(root, "pressure_io")));
    assert_true(json_is_number(json_object_get(root, "pressure_cpu")));
    assert_true(json_is_string(json_object_get(root, "isa")));
    assert_true(json_is_boolean(json_object_get(root, "io_uring")));
    json_t *gpus = json_object_get(root, "gpus");
    assert_int_equal(json_array_size(gpus), 2);
    json_t *a = json_array_get(gpus, 0), *b = json_array_get(gpus, 1);
    assert_string_equal(json_string_value(json_object_get(a, "name")), "GPU \"A\"");
    assert_string_equal(json_string_value(json_object_get(a, "compute_capability")), "9.0");
    assert_true(json_is_null(json_object_get(b, "compute_capability")));
    assert_int_equal(json_integer_value(json_object_get(b, "memory_bytes")), 80 * GIB);
    json_decref(root);

    m->memory_cgroup_bytes = LEAT_UNLIMITED;
    m->cpu_quota = 0;
    leat__buf_clear(&out);
    assert_int_equal(machine_json(m, &out), 0);
    root = json_loads(leat__buf_str(&out), 0, NULL);
    assert_true(json_is_null(json_object_get(root, "memory_cgroup_bytes")));
    assert_true(json_is_null(json_object_get(root, "cpu_quota")));
    json_decref(root);
    leat__buf_reset(&out);
}

static void test_caches(void **state)
{
    static const char *const files[][4] = {
        {"1", "Data", "48K", "64"},      {"1", "Instruction", "32K", "64"}, {"2", "Unified", "2048K", "64"},
        {"3", "Unified", "105M", "128"}, {"4", "Unified", "junk", "64"},
    };
    static const char *const names[] = {"level", "type", "size", "coherency_line_size"};
    for (int i = 0; i < 5; i++) {
        for (int f = 0; f < 4; f++) {
            char path[128], text[32];
            snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, names[f]);
            snprintf(text, sizeof text, "%s\n", files[i][f]);
            tree_file(path, text);
        }
    }
    tree_file("/sys/devices/system/cpu/cpu0/cache/index5/level", "5\n"); /* nothing else */
    tree_file("/sys/devices/system/cpu/cpu0/cache/index6/level", "6\n");
    tree_file("/sys/devices/system/cpu/cpu0/cache/index6/type", "Unified\n");
    leat_machine *m = read_machine();
    assert_int_equal(m->cache_l1d_bytes, 48 * 1024);
    assert_int_equal(m->cache_l2_bytes, 2 << 20);
    assert_int_equal(m->cache_l3_bytes, 105 << 20);
    assert_int_equal(m->cache_line_bytes, 128);
}

/* An empty tree: everything falls back to system calls, and nothing is zero that must not be. */
static void test_nothing_to_read(void **state)
{
    leat_machine *m = read_machine();
    assert_true(m->cpus_host >= 1 && m->cpus_affinity >= 1 && m->cpus_usable >= 1);
    assert_true(m->memory_host_bytes > 0);
    assert_int_equal(m->numa_nodes, 1);
    assert_true(m->pressure_cpu == -1 && m->pressure_memory == -1 && m->pressure_io == -1);
    tree_file("/proc/pressure/cpu", "some avg10=lots\n");
    tree_file("/proc/pressure/memory", "full avg10=1.00\n");
    tree_file("/proc/pressure/io", "some avg10=1e9 \n");
    tree_file("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 9999 kB\n");
    m = read_machine();
    assert_true(m->pressure_cpu == -1 && m->pressure_memory == -1 && m->pressure_io == -1);
    assert_int_equal(m->memory_used_bytes, 0);
    assert_int_equal(m->memory_available_bytes, 1000 * 1024);
}

static void test_struct_size(void **state)
{
    struct {
        leat_machine m;
        char newer[64];
    } big;
    leat_error err = {0};
    memset(&big, 0xee, sizeof big);
    assert_int_equal(leat_machine_read(&big.m, sizeof big, &err), 0); /* a newer caller */
    assert_int_equal(big.m.struct_size, sizeof big.m);
    for (size_t i = 0; i < sizeof big.newer; i++) assert_int_equal(big.newer[i], 0);

    memset(&big, 0xee, sizeof big);
    uint32_t older = offsetof(leat_machine, memory_host_bytes);
    assert_int_equal(leat_machine_read(&big.m, older, &err), 0);
    assert_int_equal(big.m.struct_size, older);
    assert_true(big.m.cpus_usable >= 1);
    assert_int_equal(big.m.memory_host_bytes, UINT64_C(0xeeeeeeeeeeeeeeee)); /* not touched */

    assert_int_equal(leat_machine_read(&big.m, 0, &err), LEAT_EINVAL);
    assert_int_equal(leat_machine_read(NULL, sizeof big.m, &err), LEAT_EINVAL);
}

static void test_free_memory_reported_to_the_host(void **state)
{
    static const char file[] = "/sys/module/page_reporting/parameters/page_reporting_order";
    assert_false(leat__machine_reports_free());
    tree_file(file, "-1\n");
    assert_false(leat__machine_reports_free());
    tree_file(file, "9\n");
    assert_true(leat__machine_reports_free());
}

/* RLIMIT_AS: in a child, since it cannot be undone. Sanitizers map all of the address space, so
 * the limit is larger, on a host that is larger still. */
static int limited_child(void)
{
    leat_machine *m = read_machine();
    uint64_t before = m->memory_available_bytes;
    struct rlimit limit = {.rlim_cur = UINT64_C(1) << 60, .rlim_max = UINT64_C(1) << 60};
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
    tree_file("/proc/meminfo", "MemTotal: 2251799813685248 kB\n"
                               "MemAvailable: 2251799813685248 kB\n");
    tree_file("/proc/self/statm", "1000 5 5 5 5 5\n");
    m = read_machine();
    bool ok = before > 0 && m->memory_rlimit_bytes == limit.rlim_cur &&
              m->memory_limit_bytes == limit.rlim_cur && m->memory_used_bytes == 1000u * m->page_bytes &&
              m->memory_available_bytes == limit.rlim_cur - m->memory_used_bytes;
    tree_file("/proc/self/statm", "999999999999999 5\n"); /* more than allowed: nothing left */
    return ok && read_machine()->memory_available_bytes == 0 ? 0 : 1;
}

static void test_rlimit(void **state)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) _exit(limited_child());
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2) skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_this_machine(void **state)
{
    cpu_set_t set;
    leat__sysroot_set(NULL);
    leat_machine *m = read_machine();
    assert_int_equal(m->cpus_host, sysconf(_SC_NPROCESSORS_ONLN));
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        assert_int_equal(m->cpus_affinity, CPU_COUNT(&set));
    }
    assert_true(m->cpus_usable <= m->cpus_affinity);
    assert_true(m->memory_limit_bytes <= m->memory_host_bytes);
    assert_true(m->memory_available_bytes <= m->memory_limit_bytes);
    assert_int_equal(m->page_bytes, sysconf(_SC_PAGESIZE));
    assert_true(m->kernel[0] != '\0' && m->isa[0] != '\0' && m->nvml_status[0] != '\0');
}

static void test_code_in_memory(void **state)
{
    (void)state;
    tree_file("/proc/self/status", "VmHWM:\t 900 kB\nRssAnon:\t 150 kB\nRssFile:\t 700 kB\n");
    assert_int_equal(leat__process_data_rss(), 150 * 1024);
    assert_int_equal(leat__process_code_rss(), 700 * 1024);
    tree_file("/proc/self/smaps",
              "55d0c000-55d0e000 r-xp 00000000 fe:00 12   /usr/bin/leat\n"
              "Size: 64 kB\nRss:        40 kB\nPss: 9 kB\n"
              "7f00-7f10 r-xp 00000000 fe:00 13     /usr/lib/libnvidia-ml.so.580\nRss: 5000 kB\n"
              "7f10-7f20 r-xp 00000000 fe:00 14     /usr/lib/libcuda.so.580\nRss: 600 kB\n"
              "7f20-7f30 rw-p 00000000 00:00 0      [heap]\nRss: 300 kB\n"
              "7f30-7f40 rw-p 00000000 00:00 0\nRss: 200 kB\n"
              "a000-b000 r--p 00000000 fe:00 15     /usr/lib/libc.so.6\nRss: 2 kB\n");
    assert_int_equal(leat__process_code_rss(), 42 * 1024);
}

int main(void)
{
#define ON_TREE(test) cmocka_unit_test_setup_teardown(test, tree_open, tree_close)
    const struct CMUnitTest tests[] = {
        ON_TREE(test_host_only),
        ON_TREE(test_container),
        ON_TREE(test_json),
        ON_TREE(test_caches),
        ON_TREE(test_nothing_to_read),
        ON_TREE(test_struct_size),
        ON_TREE(test_rlimit),
        ON_TREE(test_this_machine),
        ON_TREE(test_free_memory_reported_to_the_host),
        ON_TREE(test_code_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
