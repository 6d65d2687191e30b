/* SPDX-License-Identifier: Apache-2.0
 *
 * Tuners: the controller's memory outlives a flow, and flows shorter than a tick are tuned too.
 * In virtual time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "stages.h"

#include "engine/controller.h"
#include "engine/replay.h"
#include "engine/tuner.h"

static int pass(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    return 0;
}

static uint64_t slow_reads(void *cookie, const char *stage, const leat_task *task, uint64_t now)
{
    return stage[0] == 'r' ? 20 * LEAT_NS_PER_MS : 10000;
}

typedef struct bed {
    leat_pool *pool;
    leat_budget *budget;
    leat_tuner *tuner;
} bed;

static bed bed_open(void)
{
    bed b = {0};
    leat_pool_opts po;
    leat_pool_opts_init(&po);
    po.threads = 2;
    po.io_threads = 32;
    assert_int_equal(leat__replay_open(&b.pool, &po, 1, slow_reads, NULL, NULL), 0);
    assert_int_equal(leat_budget_open(&b.budget, 1 << 20, NULL), 0);
    assert_int_equal(leat_tuner_open(&b.tuner, NULL), 0);
    return b;
}

static void bed_close(bed *b)
{
    leat_pool_close(&b->pool);
    leat_budget_close(&b->budget);
    leat_tuner_close(&b->tuner);
    assert_null(b->tuner);
}

/* One flow of `tasks` from start to end; returns its time in ns and its final settings. */
static uint64_t run_one(bed *b, uint64_t tasks, const leat_flow_opts *given, leat_flow_stats *end)
{
    rig r = {.pool = b->pool};
    numbers n = {.end = tasks};
    leat_flow_opts fo = *given;
    fo.pool = b->pool;
    fo.budget = b->budget;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "read", pass, NULL),
                      plain_stage(LEAT_STAGE_MAP, "decode", pass, NULL)};
    s[1].lane = LEAT_LANE_IO;
    uint64_t begin = leat__replay_now(b->pool->replay);
    rig_start(&r, &fo, s, 3);
    leat_task *t = NULL;
    while (leat_flow_next(r.flow, &t, -1, NULL) == 0 && t) leat_task_release(t);
    uint64_t took = leat__replay_now(b->pool->replay) - begin;
    assert_int_equal(leat_flow_read(r.flow, end, sizeof *end), 0);
    leat_flow_close(&r.flow);
    return took;
}

static void short_flows_are_tuned(void **state)
{
    bed b = bed_open();
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    leat_flow_stats end;
    uint64_t alone = 0, first = 0, last = 0;
    for (int i = 0; i < 60; i++) alone = run_one(&b, 20, &fo, &end);
    assert_int_equal(end.io_depth, 4); /* each starts from the defaults */
    fo.tuner = b.tuner;
    for (int i = 0; i < 60; i++) {
        last = run_one(&b, 20, &fo, &end);
        if (i == 0) first = last;
    }
    assert_int_equal(first, alone);
    assert_true(first < LEAT__CONTROLLER_NS); /* otherwise the test shows nothing */
    assert_true(last * 2 < first);
    assert_in_range(end.io_depth, 16, 32);
    /* a pinned setting is neither restored nor remembered */
    fo.io_depth = 3;
    run_one(&b, 20, &fo, &end);
    assert_int_equal(end.io_depth, 3);
    bed_close(&b);
}

static void decisions_have_reasons(void **state)
{
    bed b = bed_open();
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    fo.tuner = b.tuner;
    leat_flow_stats end;
    uint64_t decided = 0;
    for (int i = 0; i < 60; i++) {
        run_one(&b, 20, &fo, &end);
        decided += end.decisions;
    }
    leat_decision d[64];
    uint32_t count = leat_tuner_read(b.tuner, 0, d, 64);
    assert_int_equal(count, decided);
    assert_true(count >= 2);
    assert_int_equal(d[0].knob, LEAT_KNOB_IO_DEPTH);
    assert_int_equal(d[0].from, 4);
    assert_int_equal(d[0].to, 8);
    assert_non_null(strstr(d[0].reason, "read had tasks waiting"));
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(d[i].number, i);
        assert_true(i == 0 || d[i].at_ns >= d[i - 1].at_ns);
        assert_int_not_equal(d[i].from, d[i].to);
    }
    assert_int_equal(leat_tuner_read(b.tuner, count - 1, d, 64), 1);
    assert_int_equal(leat_tuner_read(b.tuner, count, d, 64), 0);
    /* only the last 64 are kept, their numbers continue */
    leat_decision more = {.from = 1, .to = 2};
    for (int i = 0; i < 100; i++) leat__tuner_decided(b.tuner, &more);
    assert_int_equal(leat_tuner_read(b.tuner, 0, d, 64), 64);
    assert_int_equal(d[63].number, count + 99);
    assert_int_equal(d[0].number, count + 36);
    assert_int_equal(leat_tuner_read(b.tuner, 0, d, 10), 10);
    bed_close(&b);
}

static void names_of_knobs(void **state)
{
    assert_string_equal(leat_knob_name(LEAT_KNOB_THREADS), "threads");
    assert_string_equal(leat_knob_name(LEAT_KNOB_IO_DEPTH), "io_depth");
    assert_string_equal(leat_knob_name(LEAT_KNOB_PREFETCH), "prefetch");
    assert_string_equal(leat_knob_name((leat_flow_knob)9), "?");
    leat_tuner *none = NULL;
    leat_tuner_close(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_flows_are_tuned),
        cmocka_unit_test(decisions_have_reasons),
        cmocka_unit_test(names_of_knobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
