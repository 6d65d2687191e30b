/* SPDX-License-Identifier: Apache-2.0
 *
 * Placement: the assignment as a pure function; and on this machine, simulated with two nodes,
 * that workers are bound and other threads are not.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "stages.h"

#include "../probe/tree.h"
#include "engine/sched.h"

static leat__numa_node node_of(const char *cpus)
{
    leat__numa_node n = {0};
    assert_true(leat__cpuset_parse(&n.cpus, cpus));
    return n;
}

static void workers_are_spread_by_cpus(void **state)
{
    leat__numa_node even[] = {node_of("0-3"), node_of("4-7")};
    uint32_t at[16];
    leat__placement_spread(even, 2, 8, at);
    for (uint32_t i = 0; i < 8; i++) assert_int_equal(at[i], i % 2);
    /* six CPUs and two: three to one, also for the first four */
    leat__numa_node uneven[] = {node_of("0-5"), node_of("6-7")};
    uint32_t given[2] = {0, 0};
    leat__placement_spread(uneven, 2, 8, at);
    for (uint32_t i = 0; i < 8; i++) {
        given[at[i]]++;
        if (i == 3) assert_int_equal(given[0], 3);
    }
    assert_int_equal(given[0], 6);
    assert_int_equal(given[1], 2);
    /* more workers than CPUs, and fewer than nodes */
    leat__numa_node three[] = {node_of("0"), node_of("1"), node_of("2-3")};
    uint32_t more[3] = {0, 0, 0};
    leat__placement_spread(three, 3, 16, at);
    for (uint32_t i = 0; i < 16; i++) more[at[i]]++;
    assert_int_equal(more[0], 4);
    assert_int_equal(more[1], 4);
    assert_int_equal(more[2], 8);
    leat__placement_spread(three, 3, 1, at);
    assert_int_equal(at[0], 2);
}

/* A machine of two nodes with one CPU each, out of the first two this process may use. */
static bool halve_this_machine(uint32_t cpu[2])
{
    char text[128];
    uint32_t found = 0;
    cpu_set_t mine;
    CPU_ZERO(&mine);
    assert_int_equal(sched_getaffinity(0, sizeof mine, &mine), 0);
    for (uint32_t i = 0; i < CPU_SETSIZE && found < 2; i++)
        if (CPU_ISSET(i, &mine)) cpu[found++] = i;
    if (found < 2) return false;
    snprintf(text, sizeof text, "%u,%u\n", cpu[0], cpu[1]);
    tree_file("/sys/devices/system/cpu/online", text);
    tree_file("/sys/devices/system/node/online", "0-1\n");
    for (int i = 0; i < 2; i++) {
        char path[64];
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", i);
        snprintf(text, sizeof text, "%u\n", cpu[i]);
        tree_file(path, text);
    }
    return true;
}

typedef struct places {
    const uint32_t *cpu;
    atomic_int ran[2], wrong, elsewhere;
} places;

static int who_am_i(void *cookie, const leat_worker *worker, void **ctx, leat_error *err)
{
    places *p = cookie;
    cpu_set_t mask;
    CPU_ZERO(&mask);
    sched_getaffinity(0, sizeof mask, &mask);
    bool lone = worker->node >= 0 && CPU_COUNT(&mask) == 1 && CPU_ISSET(p->cpu[worker->node], &mask);
    if (!lone) atomic_fetch_add(&p->wrong, 1);
    if (lone) atomic_fetch_add(&p->ran[worker->node], 1);
    return 0;
}

static int io_is_free(void *cookie, const leat_worker *worker, void **ctx, leat_error *err)
{
    cpu_set_t mask;
    CPU_ZERO(&mask);
    sched_getaffinity(0, sizeof mask, &mask);
    if (worker->node != -1 || CPU_COUNT(&mask) < 2) atomic_fetch_add(&((places *)cookie)->elsewhere, 1);
    return 0;
}

static int until_both(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    places *p = cookie;
    for (int i = 0; i < 30000 && !atomic_load(&p->wrong); i++) {
        if (atomic_load(&p->ran[0]) && atomic_load(&p->ran[1])) break;
        leat__sleep_ns(LEAT_NS_PER_MS);
    }
    return 0;
}

static int pass(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    return 0;
}

static void workers_are_bound_and_other_threads_are_not(void **state)
{
    uint32_t cpu[2];
    if (!halve_this_machine(cpu)) skip();
    cpu_set_t before, after;
    CPU_ZERO(&before);
    CPU_ZERO(&after);
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    numbers n = {.end = 20};
    places p = {.cpu = cpu};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 2, 1000);
    assert_non_null(r.pool->placement);
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "io", pass, &p),
                      plain_stage(LEAT_STAGE_SINK, "where", until_both, &p)};
    s[1].lane = LEAT_LANE_IO;
    s[1].setup = io_is_free;
    s[2].setup = who_am_i;
    rig_start(&r, &fo, s, 3);
    assert_int_equal(leat_flow_wait(r.flow, -1, NULL), 0);
    assert_int_equal(p.wrong, 0);
    assert_int_equal(p.elsewhere, 0);
    assert_int_equal(p.ran[0], 1);
    assert_int_equal(p.ran[1], 1);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
    rig_close(&r);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

static void one_node_or_off_binds_no_thread(void **state)
{
    uint32_t cpu[2];
    rig r = {0};
    if (!halve_this_machine(cpu)) skip();
    assert_int_equal(setenv("LEAT_NUMA", "off", 1), 0);
    rig_opts(&r, 2, 1000);
    assert_null(r.pool->placement);
    rig_close(&r);
    assert_int_equal(unsetenv("LEAT_NUMA"), 0);
    tree_file("/sys/devices/system/node/online", "0\n");
    rig_opts(&r, 2, 1000);
    assert_null(r.pool->placement);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_are_spread_by_cpus),
        cmocka_unit_test_setup_teardown(workers_are_bound_and_other_threads_are_not, tree_open, tree_close),
        cmocka_unit_test_setup_teardown(one_node_or_off_binds_no_thread, tree_open, tree_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
