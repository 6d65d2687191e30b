/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/probe/numa.c on fake machines: nodes, masks, groups and missing files.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "probe/machine.h"
#include "probe/numa.h"
#include "tree.h"

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

static leat__numa *read_numa(void)
{
    leat__cgroup cg;
    leat__cgroup_read(&cg);
    leat__numa *numa = leat__numa_read(&cg);
    assert_non_null(numa);
    return numa;
}

/* Two nodes of eight CPUs and one with memory only. */
static void two_nodes(const char *allowed, const char *memory)
{
    char status[256];
    snprintf(status, sizeof status, "Name:\tx\nCpus_allowed_list:\t%s\nMems_allowed_list:\t%s\n", allowed,
             memory);
    tree_file("/proc/self/status", status);
    tree_file("/sys/devices/system/cpu/online", "0-15\n");
    tree_file("/sys/devices/system/node/online", "0-2\n");
    tree_file("/sys/devices/system/node/node0/cpulist", "0-3,8-11\n");
    tree_file("/sys/devices/system/node/node1/cpulist", "4-7,12-15\n");
    tree_file("/sys/devices/system/node/node2/cpulist", "\n");
    tree_file("/sys/devices/system/node/node0/meminfo",
              "\nNode 0 MemTotal:       16384 kB\nNode 0 MemFree:         1 kB\n");
    tree_file("/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:       32768 kB\n");
}

static void nodes_and_their_cpus(void **state)
{
    two_nodes("0-15", "0-2");
    leat__numa *numa = read_numa();
    assert_int_equal(numa->online, 3);
    assert_int_equal(numa->count, 2);
    assert_int_equal(numa->nodes[0].id, 0);
    assert_int_equal(numa->nodes[1].id, 1);
    assert_int_equal(leat__cpuset_count(&numa->nodes[0].cpus), 8);
    assert_true(leat__cpuset_has(&numa->nodes[0].cpus, 11));
    assert_false(leat__cpuset_has(&numa->nodes[0].cpus, 4));
    assert_int_equal(numa->nodes[0].memory_bytes, 16384 * 1024);
    assert_int_equal(numa->nodes[1].memory_bytes, 32768 * 1024);
    assert_true(numa->nodes[1].memory_allowed);
    leat__free(numa);
}

static void masks_and_groups_remove_cpus(void **state)
{
    two_nodes("2-5", "0");
    leat__numa *numa = read_numa();
    assert_int_equal(numa->count, 2);
    assert_int_equal(leat__cpuset_count(&numa->nodes[0].cpus), 2);
    assert_int_equal(leat__cpuset_count(&numa->nodes[1].cpus), 2);
    assert_true(numa->nodes[0].memory_allowed);
    assert_false(numa->nodes[1].memory_allowed);
    leat__free(numa);
    /* a group that leaves CPUs of the second node only */
    tree_file("/proc/self/cgroup", "0::/box\n");
    tree_file("/proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    tree_file("/sys/fs/cgroup/box/cpuset.cpus.effective", "4-7\n");
    numa = read_numa();
    assert_int_equal(numa->online, 3);
    assert_int_equal(numa->count, 1);
    assert_int_equal(numa->nodes[0].id, 1);
    assert_int_equal(leat__cpuset_count(&numa->nodes[0].cpus), 2);
    leat__free(numa);
}

static void missing_files_mean_one_node(void **state)
{
    leat__numa *numa = read_numa();
    assert_int_equal(numa->online, 1);
    assert_int_equal(numa->count, 0);
    leat__free(numa);
    tree_file("/sys/devices/system/node/online", "0-\n"); /* malformed */
    numa = read_numa();
    assert_int_equal(numa->online, 1);
    leat__free(numa);
}

static void machine_facts_include_nodes(void **state)
{
    static leat_machine m;
    two_nodes("0-15", "0-1");
    assert_int_equal(leat_machine_read(&m, sizeof m, NULL), 0);
    assert_int_equal(m.numa_nodes, 3);
    assert_int_equal(m.node_count, 2);
    assert_int_equal(m.nodes[1].id, 1);
    assert_int_equal(m.nodes[1].cpus, 8);
    assert_int_equal(m.nodes[1].memory_allowed, 1);
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
    assert_int_equal(machine_json(&m, &out), 0);
    assert_non_null(strstr(leat__buf_str(&out), "\"nodes\""));
    assert_non_null(strstr(leat__buf_str(&out), "\"memory_bytes\": 33554432"));
    leat__buf_reset(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nodes_and_their_cpus, tree_open, tree_close),
        cmocka_unit_test_setup_teardown(masks_and_groups_remove_cpus, tree_open, tree_close),
        cmocka_unit_test_setup_teardown(missing_files_mean_one_node, tree_open, tree_close),
        cmocka_unit_test_setup_teardown(machine_facts_include_nodes, tree_open, tree_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
