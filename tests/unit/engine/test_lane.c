/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes: each kind of stage runs on its own named threads, as many as it needs.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "stages.h"

#include "base/fault.h"

#include "engine/sched.h"

typedef struct seen {
    const char *prefix;
    atomic_int wrong, now, most, calls;
    int meet; /* a call waits until this many run at the same time */
} seen;

static int look_at_thread(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    seen *s = cookie;
    char name[16];
    pthread_getname_np(pthread_self(), name, sizeof name);
    if (strncmp(name, s->prefix, strlen(s->prefix)) != 0) atomic_fetch_add(&s->wrong, 1);
    int now = atomic_fetch_add(&s->now, 1) + 1, most = atomic_load(&s->most);
    while (now > most && !atomic_compare_exchange_weak(&s->most, &most, now)) continue;
    leat__sleep_ns(300000);
    while (atomic_load(&s->most) < s->meet) leat__sleep_ns(100000);
    atomic_fetch_sub(&s->now, 1);
    atomic_fetch_add(&s->calls, 1);
    return 0;
}

static void await_calls(seen *s, int more)
{
    int until = atomic_load(&s->calls) + more;
    while (atomic_load(&s->calls) < until) leat__sleep_ns(LEAT_NS_PER_MS);
}

static void stages_run_on_their_lane(void **state)
{
    numbers n = {.end = 200};
    /* I/O waits, so it must be deeper than the number of CPUs; otherwise these calls never end */
    seen cpu = {.prefix = "leat-cpu"}, io = {.prefix = "leat-io", .meet = 6}, gpu = {.prefix = "leat-gpu"},
         python = {.prefix = "leat-python"};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 2, 1000);
    fo.io_depth = 6;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "read", look_at_thread, &io),
                      plain_stage(LEAT_STAGE_MAP, "decode", look_at_thread, &cpu),
                      plain_stage(LEAT_STAGE_MAP, "model", look_at_thread, &gpu),
                      plain_stage(LEAT_STAGE_SINK, "user", look_at_thread, &python)};
    s[1].lane = LEAT_LANE_IO;
    s[3].lane = LEAT_LANE_GPU;
    s[4].lane = LEAT_LANE_PYTHON;
    assert_int_equal(r.pool->lanes[LEAT_LANE_IO].started, 0); /* not before they are needed */
    rig_start(&r, &fo, s, 5);
    assert_int_equal(r.pool->lanes[LEAT_LANE_IO].started, 6);
    assert_int_equal(leat_flow_wait(r.flow, -1, NULL), 0);
    assert_int_equal(cpu.wrong + io.wrong + gpu.wrong + python.wrong, 0);
    assert_int_equal(io.most, 6);
    assert_in_range(cpu.most, 1, 2);
    assert_int_equal(gpu.most, 1);
    assert_int_equal(python.most, 1);
    rig_close(&r);
}

static void depth_can_grow_while_running(void **state)
{
    numbers n = {.end = 1000000};
    seen io = {.prefix = "leat-io"};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 1, 1000);
    fo.io_depth = 1;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_SINK, "read", look_at_thread, &io)};
    s[1].lane = LEAT_LANE_IO;
    rig_start(&r, &fo, s, 2);
    await_calls(&io, 50);
    assert_int_equal(io.most, 1);
    assert_int_equal(leat_flow_pin(r.flow, LEAT_KNOB_IO_DEPTH, 5, NULL), 0);
    await_int(&io.most, 5);
    await_calls(&io, 100);
    assert_int_equal(io.most, 5);
    rig_close(&r);
}

static void inactive_workers_do_nothing(void **state)
{
    numbers n = {.end = 1000000};
    seen cpu = {.prefix = "leat-cpu-0"};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 4, 1000);
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_SINK, "x", look_at_thread, &cpu)};
    assert_int_equal(leat_pool_set_active(r.pool, 1, NULL), 0);
    rig_start(&r, &fo, s, 2);
    await_calls(&cpu, 50);
    assert_int_equal(cpu.wrong, 0);
    assert_int_equal(cpu.most, 1);
    assert_int_equal(leat_pool_set_active(r.pool, 4, NULL), 0);
    await_int(&cpu.most, 4);
    rig_close(&r);
}

/* A system that allows no more threads after the first: slower, not an error. */
static void fewer_threads_still_work(void **state)
{
    numbers n = {.end = 50};
    seen cpu = {.prefix = "leat-cpu"};
    rig r = {0};
    if (!leat__fault_available()) skip();
    leat__fault_arm(LEAT__FAULT_THREAD, 2, true);
    leat_flow_opts fo = rig_opts(&r, 4, 1000);
    fo.fixed = 0; /* nor one for the controller */
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_SINK, "work", look_at_thread, &cpu)};
    rig_start(&r, &fo, s, 2);
    assert_int_equal(leat_flow_wait(r.flow, -1, NULL), 0);
    leat__fault_disarm();
    assert_int_equal(r.pool->lanes[LEAT_LANE_CPU].started, 1);
    assert_int_equal(cpu.calls, 50);
    rig_close(&r);
    leat__fault_arm(LEAT__FAULT_THREAD, 1, true); /* no thread at all is an error */
    leat_pool *none;
    assert_int_equal(leat_pool_open(&none, NULL, NULL), LEAT_ETHREAD);
    leat__fault_disarm();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_run_on_their_lane),
        cmocka_unit_test(depth_can_grow_while_running),
        cmocka_unit_test(inactive_workers_do_nothing),
        cmocka_unit_test(fewer_threads_still_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
