/* SPDX-License-Identifier: Apache-2.0
 *
 * Which task a free worker takes: driven call by call, without threads.
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

static int keep(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    task->bytes = *(uint64_t *)cookie;
    return 0;
}

static void still_flow(rig *r, const leat_stage *s, uint32_t count, leat_flow_opts *fo, uint64_t limit)
{
    leat_pool_opts po;
    leat_pool_opts_init(&po);
    po.threads = 4;
    assert_int_equal(leat__replay_open(&r->pool, &po, 1, NULL, NULL, NULL), 0);
    assert_int_equal(leat_budget_open(&r->budget, limit, NULL), 0);
    fo->pool = r->pool;
    fo->budget = r->budget;
    rig_start(r, fo, s, count);
}

static leat__worker *worker(rig *r, uint32_t i)
{
    return &r->pool->lanes[LEAT_LANE_CPU].workers[i];
}

static uint64_t clock_now = 1;

static const char *take(rig *r, uint32_t i)
{
    leat__worker *w = worker(r, i);
    return leat__sched_take(r->pool, w, clock_now) ? w->stage->name : "";
}

static void finish(rig *r, uint32_t i)
{
    leat__sched_run(worker(r, i));
    leat__pool_lock(r->pool);
    clock_now++;
    leat__sched_settle(r->pool, worker(r, i), clock_now, clock_now);
    leat__pool_unlock(r->pool);
}

static void the_most_downstream_goes_first(void **state)
{
    numbers n = {.end = 100};
    rig r = {0};
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "a", pass, NULL),
                      plain_stage(LEAT_STAGE_SINK, "b", pass, NULL)};
    still_flow(&r, s, 3, &fo, 1000);
    assert_string_equal(take(&r, 0), "numbers");
    assert_string_equal(take(&r, 1), ""); /* the source is one at a time */
    finish(&r, 0);
    assert_string_equal(take(&r, 0), "a");
    assert_string_equal(take(&r, 1), "numbers");
    finish(&r, 1);
    finish(&r, 0);
    assert_string_equal(take(&r, 0), "b"); /* before "a" and the source */
    assert_string_equal(take(&r, 1), "a");
    assert_string_equal(take(&r, 2), "numbers");
    for (uint32_t i = 0; i < 3; i++) finish(&r, i);
    rig_close(&r);
}

static void threads_of_a_flow_are_bounded(void **state)
{
    numbers n = {.end = 100};
    rig r = {0};
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    fo.threads = 1;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_SINK, "b", pass, NULL)};
    still_flow(&r, s, 2, &fo, 1000);
    assert_string_equal(take(&r, 0), "numbers");
    finish(&r, 0);
    assert_string_equal(take(&r, 1), "b");
    assert_string_equal(take(&r, 2), "");
    finish(&r, 1);
    assert_string_equal(take(&r, 2), "numbers");
    finish(&r, 2);
    rig_close(&r);
}

/* The floor of this flow is 100 + 100 + 40: the largest step and two borrowed results of 20. */
static void only_the_senior_uses_the_floor(void **state)
{
    numbers n = {.end = 100, .bytes = 100};
    uint64_t twenty = 20;
    rig r = {0};
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "a", keep, &twenty)};
    s[1].scratch = 80;
    s[1].bytes_out = 20;
    still_flow(&r, s, 2, &fo, 340);
    assert_int_equal(r.flow->floor, 240);
    assert_string_equal(take(&r, 0), "numbers"); /* 100 of the 100 bytes outside the floor */
    finish(&r, 0);
    assert_string_equal(take(&r, 0), "a"); /* 100 more: the senior may */
    assert_string_equal(take(&r, 1), "");  /* the source may not */
    assert_true(r.flow->stages[0].starved);
    finish(&r, 0);                        /* 20 left, waiting for the consumer */
    assert_string_equal(take(&r, 0), ""); /* 120 would be too much, and is not needed: */
    leat_task *t;
    /* the consumer must take a result */
    assert_int_equal(leat_flow_next(r.flow, &t, 0, NULL), 0);
    assert_string_equal(take(&r, 0), "numbers"); /* now nothing else can move */
    finish(&r, 0);
    leat_task_release(t);
    leat_budget_stats b;
    leat_budget_read(r.budget, &b);
    assert_int_equal(b.used, 100);
    assert_true(b.peak <= 340);
    rig_close(&r);
}

/* Once every thread has its share of memory for a stage, one of them is woken for a task, not all. */
static void contexts_are_scarce_until_all_have_one(void **state)
{
    numbers n = {.end = 100};
    rig r = {0};
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_SINK, "b", pass, NULL)};
    s[1].ram = 10;
    still_flow(&r, s, 2, &fo, 1000);
    leat__lane *cpu = &r.pool->lanes[LEAT_LANE_CPU];
    cpu->started = 3; /* this pool has none */
    assert_false(leat__sched_scarce(r.pool, LEAT_LANE_IO));
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(leat__sched_scarce(r.pool, LEAT_LANE_CPU));
        assert_string_equal(take(&r, 3), "numbers");
        finish(&r, 3);
        assert_string_equal(take(&r, i), "b");
        finish(&r, i);
    }
    assert_false(leat__sched_scarce(r.pool, LEAT_LANE_CPU));
    cpu->started = 0;
    rig_close(&r);
}

static void short_tasks_are_taken_together(void **state)
{
    numbers n = {.end = 1000};
    rig r = {0};
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_SINK, "b", pass, NULL)};
    still_flow(&r, s, 2, &fo, 1000);
    uint32_t most = 0;
    for (int i = 0; i < 200; i++) {
        if (!take(&r, 0)[0]) break;
        most = LEAT_MAX(most, worker(&r, 0)->count);
        finish(&r, 0);
    }
    assert_true(most > 4);
    assert_true(most <= LEAT__TAKE_MAX);
    rig_close(&r);
}

static void the_floor_adds_up(void **state)
{
    numbers n = {.end = 1, .bytes = 10};
    rig r = {0};
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    fo.loans = 3;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_EXPAND, "x", pass, NULL),
                      plain_stage(LEAT_STAGE_GATHER, "g", pass, NULL)};
    s[1].count = 2;
    s[1].bytes_out = 30;
    s[1].ram = 1;
    s[2].count = 5;
    s[2].bytes_out = 1000;
    s[2].scratch = 7;
    still_flow(&r, s, 3, &fo, 100000);
    /* step: 150 in the group + 7 + 1000; waits: ram 1, parent 10 + 2 * 30, group 5 * 30, borrowed
     * 3 * 1000 */
    assert_int_equal(r.flow->floor, 1157 + 1 + 70 + 150 + 3000);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_downstream_goes_first),
        cmocka_unit_test(threads_of_a_flow_are_bounded),
        cmocka_unit_test(only_the_senior_uses_the_floor),
        cmocka_unit_test(contexts_are_scarce_until_all_have_one),
        cmocka_unit_test(short_tasks_are_taken_together),
        cmocka_unit_test(the_floor_adds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
