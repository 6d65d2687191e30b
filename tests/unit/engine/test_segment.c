/* SPDX-License-Identifier: Apache-2.0
 *
 * How stages are split into segments, and that windows bound the tasks inside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "stages.h"

#include "engine/replay.h"
#include "engine/sched.h"

static int pass(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    return 0;
}

/* A flow on a pool without threads: it moves only when the test drives it. */
static void still_flow(rig *r, const leat_stage *s, uint32_t count, leat_flow_opts *fo)
{
    leat_pool_opts po;
    leat_pool_opts_init(&po);
    po.threads = 2;
    assert_int_equal(leat__replay_open(&r->pool, &po, 1, NULL, NULL, NULL), 0);
    assert_int_equal(leat_budget_open(&r->budget, 100000, NULL), 0);
    fo->pool = r->pool;
    fo->budget = r->budget;
    rig_start(r, fo, s, count);
}

static void stages_are_split_at_gathers_and_expands(void **state)
{
    numbers n = {.end = 10};
    rig r = {0};
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    leat_stage s[] = {number_stage(&n),
                      plain_stage(LEAT_STAGE_MAP, "a", pass, NULL),
                      plain_stage(LEAT_STAGE_EXPAND, "b", pass, NULL),
                      plain_stage(LEAT_STAGE_GATHER, "c", pass, NULL),
                      plain_stage(LEAT_STAGE_MAP, "d", pass, NULL),
                      plain_stage(LEAT_STAGE_SINK, "e", pass, NULL)};
    s[3].count = 100;
    still_flow(&r, s, 6, &fo);
    const leat__segment *g = r.flow->segments;
    assert_int_equal(r.flow->segment_count, 3);
    assert_int_equal(g[0].end, LEAT__END_EXPAND);
    assert_int_equal(g[0].last, 3);
    assert_int_equal(g[1].first, 3); /* no stages: children wait for their group here */
    assert_int_equal(g[1].last, 3);
    assert_int_equal(g[1].end, LEAT__END_GATHER);
    assert_true(g[1].window >= 200); /* one group being made while the next one fills */
    assert_int_equal(g[2].first, 3);
    assert_int_equal(g[2].last, 6);
    assert_int_equal(g[2].end, LEAT__END_SINK);
    rig_close(&r);
}

static void window_bounds_tasks_inside(void **state)
{
    numbers n = {.end = 1000};
    rig r = {0};
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    fo.prefetch = 6;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "a", pass, NULL)};
    still_flow(&r, s, 2, &fo);
    while (leat__replay_step(r.pool)) assert_true(r.flow->segments[0].inside <= 6);
    assert_int_equal(r.flow->segments[0].inside, 6);
    assert_false(leat__segment_room(&r.flow->segments[0]));
    assert_int_equal(r.flow->out.count, 6);
    leat_task *t;
    assert_int_equal(leat_flow_next(r.flow, &t, 0, NULL), 0);
    assert_true(leat__segment_room(&r.flow->segments[0]));
    assert_int_equal(r.flow->segments[0].base, 1);
    assert_null(leat__segment_at(&r.flow->segments[0], 0)); /* its slot is free */
    assert_non_null(leat__segment_at(&r.flow->segments[0], 1));
    leat_task_release(t);
    rig_close(&r);
    assert_int_equal(n.live, 0);
}

/* However large the groups, a lean flow has a bounded number of tasks in flight. */
static void lean_window_bounds_tasks_in_flight(void **state)
{
    numbers n = {.end = 1000};
    rig r = {0};
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    fo.lean = 1;
    fo.io_depth = 3;
    fo.prefetch = 2;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "a", pass, NULL),
                      plain_stage(LEAT_STAGE_GATHER, "c", pass, NULL)};
    s[1].lane = LEAT_LANE_IO;
    s[2].count = 100;
    still_flow(&r, s, 3, &fo);
    const leat__segment *g = r.flow->segments;
    assert_int_equal(g[0].window, 2 + 2 * (2 + 3));
    uint32_t groups = 0;
    leat_task *t;
    while (leat_flow_next(r.flow, &t, 0, NULL) == 0 && t != NULL) {
        leat_task_release(t);
        groups++;
        while (leat__replay_step(r.pool)) assert_true(g[0].inside - g[0].group_count <= g[0].window);
    }
    assert_int_equal(groups, 10);
    rig_close(&r);
    assert_int_equal(n.live, 0);
}

static int fail_two(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    return number_of(task) == 2 ? leat__fail(err, LEAT_EDATA, "two") : 0;
}

static void a_tombstone_keeps_its_place(void **state)
{
    numbers n = {.end = 6};
    rig r = {0};
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    fo.on_error = LEAT_FLOW_GIVE_BACK;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "a", fail_two, NULL),
                      plain_stage(LEAT_STAGE_MAP, "b", pass, NULL)};
    still_flow(&r, s, 3, &fo);
    leat_task *t;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(leat_flow_next(r.flow, &t, 0, NULL), 0);
        assert_int_equal(number_of(t), i);
        assert_int_equal(t->status, i == 2 ? LEAT_EDATA : 0);
        leat_task_release(t);
    }
    assert_int_equal(r.flow->stages[2].items, 5); /* it was not run again */
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_are_split_at_gathers_and_expands),
        cmocka_unit_test(window_bounds_tasks_inside),
        cmocka_unit_test(lean_window_bounds_tasks_in_flight),
        cmocka_unit_test(a_tombstone_keeps_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
