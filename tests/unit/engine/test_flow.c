/* SPDX-License-Identifier: Apache-2.0
 *
 * The public calls of a flow, one guarantee per test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "stages.h"

#include "base/mem.h"
#include "engine/budget.h"
#include "engine/replay.h"

static int pass(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    return 0;
}

static int nap(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    leat__sleep_ns(*(uint64_t *)cookie);
    return 0;
}

/* Odd numbers take longer: results would overtake each other. */
static int jitter(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    leat__sleep_ns(number_of(task) % 2 ? 300000 : 10000);
    return 0;
}

static int fail_on_seven(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    uint64_t n = number_of(task);
    if (n % 10 == 7) return leat__fail(err, LEAT_EDATA, "number %d is bad", (int)n);
    return 0;
}

/* Times of stages are sums of differences; workers that pass each other must not turn one negative. */
static void times_stay_within_the_run(void **state)
{
    enum { TASKS = 20000 };
    numbers n = {.end = TASKS, .bytes = 10};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 8, 100000);
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "a", pass, NULL),
                      plain_stage(LEAT_STAGE_MAP, "b", pass, NULL)};
    rig_start(&r, &fo, s, 3);
    for (leat_task *t;;) {
        assert_int_equal(leat_flow_next(r.flow, &t, -1, NULL), 0);
        if (!t) break;
        leat_task_release(t);
    }
    leat_flow_stats all;
    assert_int_equal(leat_flow_read(r.flow, &all, sizeof all), 0);
    for (uint32_t i = 0; i < 3; i++) {
        leat_stage_stats ss;
        assert_int_equal(leat_flow_read_stage(r.flow, i, &ss), 0);
        assert_true(ss.readiness >= 0 && ss.readiness <= 1);
        assert_true(ss.wait_ns / TASKS <= all.elapsed_ns);
        assert_true(ss.busy_ns / 8 <= all.elapsed_ns);
    }
    rig_close(&r);
}

static void results_come_in_order(void **state)
{
    numbers n = {.end = 200, .bytes = 10};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 4, 100000);
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "jitter", jitter, NULL)};
    rig_start(&r, &fo, s, 2);
    leat_task *t;
    for (uint64_t i = 0; i < 200; i++) {
        assert_int_equal(leat_flow_next(r.flow, &t, -1, NULL), 0);
        assert_non_null(t);
        assert_int_equal(number_of(t), i);
        assert_int_equal(t->seq, i);
        leat_task_release(t);
    }
    assert_int_equal(leat_flow_next(r.flow, &t, -1, NULL), 0);
    assert_null(t);
    assert_int_equal(leat_flow_next(r.flow, &t, -1, NULL), 0); /* and again */
    assert_null(t);
    leat_flow_stats st;
    assert_int_equal(leat_flow_read(r.flow, &st, sizeof st), 0);
    assert_int_equal(st.results, 200);
    leat_stage_stats ss;
    assert_int_equal(leat_flow_read_stage(r.flow, 1, &ss), 0);
    assert_string_equal(ss.name, "jitter");
    assert_int_equal(ss.items, 200);
    assert_true(ss.busy_ns >= 100 * 300000u);
    assert_int_equal(ss.bytes, 2000);
    assert_int_equal(leat_flow_read_stage(r.flow, 2, &ss), LEAT_EINVAL);
    rig_close(&r);
    assert_int_equal(n.live, 0);
}

/* Reaches `live` tasks and stops there. */
static void stops_at(numbers *n, int live)
{
    await_int(&n->live, live);
    leat__sleep_ns(20 * LEAT_NS_PER_MS);
    assert_int_equal(n->live, live);
}

static void source_stops_at_prefetch(void **state)
{
    numbers n = {.end = 1000};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 2, 1000);
    fo.prefetch = 5;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "x", pass, NULL)};
    rig_start(&r, &fo, s, 2);
    stops_at(&n, 5);
    leat_task *t;
    assert_int_equal(leat_flow_next(r.flow, &t, -1, NULL), 0);
    leat_task_release(t);
    stops_at(&n, 5);
    leat_error err;
    assert_int_equal(leat_flow_pin(r.flow, LEAT_KNOB_PREFETCH, 9, &err), 0);
    stops_at(&n, 9);
    rig_close(&r);
    assert_int_equal(n.live, 0);
}

static void settings_that_are_not_pinned_can_be_raised(void **state)
{
    numbers n = {.end = 1000};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 2, 1000);
    fo.prefetch = 3;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "x", pass, NULL)};
    rig_start(&r, &fo, s, 2);
    leat__flow_at_least(r.flow, LEAT_KNOB_PREFETCH, 8);
    stops_at(&n, 3); /* it is pinned */
    assert_int_equal(leat_flow_pin(r.flow, LEAT_KNOB_PREFETCH, 0, NULL), 0);
    leat__flow_at_least(r.flow, LEAT_KNOB_PREFETCH, 8);
    stops_at(&n, 8);
    leat__flow_at_least(r.flow, LEAT_KNOB_PREFETCH, 4); /* it is not lowered */
    leat_flow_stats now = {0};
    assert_int_equal(leat_flow_read(r.flow, &now, sizeof now), 0);
    assert_int_equal(now.prefetch, 8);
    rig_close(&r);
    assert_int_equal(n.live, 0);
}

static void borrowed_results_stay_charged_until_released(void **state)
{
    numbers n = {.end = 100, .bytes = 100};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 1, 1000);
    fo.loans = 4;
    leat_stage s[] = {number_stage(&n)};
    rig_start(&r, &fo, s, 1);
    leat_task *t[11] = {NULL};
    leat_error err;
    int rc = 0, got = 0;
    while (got < 10 && (rc = leat_flow_next(r.flow, &t[got], -1, &err)) == 0) got++;
    assert_int_equal(rc, 0);
    rc = leat_flow_next(r.flow, &t[10], 50, &err);
    while (rc == LEAT_ETIMEDOUT) rc = leat_flow_next(r.flow, &t[10], 50, &err); /* a busy machine */
    assert_int_equal(rc, LEAT_EBUDGET); /* neither a hang nor just "timed out" */
    assert_string_equal(err.message,
                        "flow: your program keeps 10 results (1000 B of the budget of 1000 B): release some, "
                        "or raise memory");
    assert_int_equal(got, 10);
    leat_budget_stats b;
    leat_budget_read(r.budget, &b);
    assert_int_equal(b.used, 1000);
    leat_flow_stats st;
    assert_int_equal(leat_flow_read(r.flow, &st, sizeof st), 0);
    assert_int_equal(st.loans, 10);
    assert_int_equal(st.loan_bytes, 1000);
    leat_task_release(t[3]);
    assert_int_equal(leat_flow_next(r.flow, &t[3], 1000, &err), 0);
    assert_int_equal(number_of(t[3]), 10);
    /* borrowed results outlive the flow, its pool and the caller's budget handle */
    leat_flow_close(&r.flow);
    leat_pool_close(&r.pool);
    assert_int_equal(n.live, 10);
    leat_budget_read(r.budget, &b);
    assert_int_equal(b.used, 1000);
    for (int i = 0; i < 10; i++) leat_task_release(t[i]);
    assert_int_equal(n.live, 0);
    rig_close(&r);
}

static void fail_policy_fails_in_order(void **state)
{
    for (int round = 0; round < 20; round++) {
        numbers n = {.end = 100};
        rig r = {0};
        leat_flow_opts fo = rig_opts(&r, 3, 1000);
        leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "j", jitter, NULL),
                          plain_stage(LEAT_STAGE_MAP, "f", fail_on_seven, NULL)};
        rig_start(&r, &fo, s, 3);
        leat_task *t;
        leat_error err;
        for (int i = 0; i < 7; i++) {
            assert_int_equal(leat_flow_next(r.flow, &t, -1, &err), 0);
            leat_task_release(t);
        }
        assert_int_equal(leat_flow_next(r.flow, &t, -1, &err), LEAT_EDATA);
        assert_string_equal(err.message, "number 7 is bad");
        assert_int_equal(leat_flow_next(r.flow, &t, -1, &err), LEAT_EDATA); /* and stays so */
        rig_close(&r);
        assert_int_equal(n.live, 0);
    }
}

static void skip_policy_counts(void **state)
{
    numbers n = {.end = 100};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 2, 1000);
    fo.on_error = LEAT_FLOW_SKIP;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "f", fail_on_seven, NULL)};
    rig_start(&r, &fo, s, 2);
    leat_task *t;
    int got = 0;
    while (leat_flow_next(r.flow, &t, -1, NULL) == 0 && t) {
        assert_int_not_equal(number_of(t) % 10, 7);
        leat_task_release(t);
        got++;
    }
    assert_int_equal(got, 90);
    leat_flow_stats st;
    assert_int_equal(leat_flow_read(r.flow, &st, sizeof st), 0);
    assert_int_equal(st.failed, 10);
    assert_int_equal(st.results, 90);
    rig_close(&r);
}

static void too_many_errors_fail_the_flow(void **state)
{
    numbers n = {.end = 1000};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 2, 1000);
    fo.on_error = LEAT_FLOW_SKIP;
    fo.max_errors = 3;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "f", fail_on_seven, NULL)};
    rig_start(&r, &fo, s, 2);
    leat_task *t;
    leat_error err;
    int rc;
    while ((rc = leat_flow_next(r.flow, &t, -1, &err)) == 0 && t) leat_task_release(t);
    assert_int_equal(rc, LEAT_EDATA);
    rig_close(&r);
}

static void returned_tasks_carry_their_error(void **state)
{
    numbers n = {.end = 20};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 2, 1000);
    fo.on_error = LEAT_FLOW_GIVE_BACK;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "f", fail_on_seven, NULL)};
    rig_start(&r, &fo, s, 2);
    leat_task *t;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(leat_flow_next(r.flow, &t, -1, NULL), 0);
        assert_int_equal(number_of(t), i);
        assert_int_equal(t->status, i % 10 == 7 ? LEAT_EDATA : 0);
        if (i == 17) assert_string_equal(t->error->message, "number 17 is bad");
        leat_task_release(t);
    }
    rig_close(&r);
}

static int at_gate(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    while (!atomic_load((atomic_int *)cookie)) leat__sleep_ns(100000);
    return 0;
}

static void timeout_and_interrupt(void **state)
{
    atomic_int open = 0;
    numbers n = {.end = 1};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 1, 1000);
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "gate", at_gate, &open)};
    rig_start(&r, &fo, s, 2);
    leat_task *t;
    leat_error err;
    assert_int_equal(leat_flow_next(r.flow, &t, 0, &err), LEAT_ETIMEDOUT);
    uint64_t begin = leat__clock_ns();
    assert_int_equal(leat_flow_next(r.flow, &t, 20, &err), LEAT_ETIMEDOUT);
    assert_true(leat__clock_ns() - begin >= 20 * LEAT_NS_PER_MS);
    leat_flow_interrupt(r.flow);
    assert_int_equal(leat_flow_next(r.flow, &t, -1, &err), LEAT_EAGAIN);
    atomic_store(&open, 1);
    assert_int_equal(leat_flow_next(r.flow, &t, -1, &err), 0);
    assert_non_null(t);
    leat_task_release(t);
    rig_close(&r);
}

typedef struct naps {
    atomic_int begun;
} naps;

static int nap_and_tell(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    naps *n = cookie;
    atomic_fetch_add(&n->begun, 1);
    leat__sleep_ns(5 * LEAT_NS_PER_MS);
    return 0;
}

/* Cancelled with two tasks running and 100,000 to come, in both modes: no further task starts. */
static void cancel_is_prompt(void **state)
{
    enum { ROUNDS = 9, THREADS = 2 };
    for (int i = 0; i < ROUNDS; i++) {
        naps at = {0};
        numbers n = {.end = 100000};
        rig r = {0};
        leat_flow_opts fo = rig_opts(&r, THREADS, 1000);
        fo.mode = i % 2 ? LEAT_FLOW_BATCH : LEAT_FLOW_STREAMING;
        leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "nap", nap_and_tell, &at),
                          plain_stage(LEAT_STAGE_SINK, "end", pass, NULL)};
        rig_start(&r, &fo, s, 3);
        while (atomic_load(&at.begun) < THREADS) leat__sleep_ns(LEAT_NS_PER_MS);
        leat_flow_cancel(r.flow);
        int begun = atomic_load(&at.begun);
        leat_error err;
        assert_int_equal(leat_flow_wait(r.flow, -1, &err), LEAT_ECANCELED);
        leat_flow_close(&r.flow);
        /* tasks taken before the cancel, at most one per thread */
        assert_in_range(atomic_load(&at.begun), begun, begun + THREADS);
        assert_int_equal(n.live, 0);
        rig_close(&r);
    }
}

static void wrong_stages_are_refused(void **state)
{
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 1, 1000);
    leat_error err;
    numbers n = {.end = 1};
    leat_stage good = number_stage(&n), s;
    assert_int_equal(leat_flow_open(&r.flow, &fo, &err), 0);
    assert_int_equal(leat_flow_start(r.flow, &err), LEAT_EINVAL);
    s = plain_stage(LEAT_STAGE_MAP, "m", pass, NULL);
    assert_int_equal(leat_flow_add(r.flow, &s, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "must be a source"));
    assert_int_equal(leat_flow_add(r.flow, &good, &err), 0);
    assert_int_equal(leat_flow_add(r.flow, &good, &err), LEAT_EINVAL);
    s.gpus = 1;
    s.gpu_memory = 1;
    assert_int_equal(leat_flow_add(r.flow, &s, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "gpu_memory (bytes of a shared device): give one"));
    s.gpu_memory = 0;
    assert_int_equal(leat_flow_add(r.flow, &s, &err), 0);
    assert_int_equal(leat_flow_start(r.flow, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "needs 1 GPUs, the pool has none"));
    s = plain_stage(LEAT_STAGE_GATHER, "g", pass, NULL);
    assert_int_equal(leat_flow_add(r.flow, &s, &err), LEAT_EINVAL);
    s = plain_stage(LEAT_STAGE_MAP, "p", NULL, NULL);
    assert_int_equal(leat_flow_add(r.flow, &s, &err), LEAT_EINVAL);
    leat_task *t;
    assert_int_equal(leat_flow_next(r.flow, &t, 0, &err), LEAT_ESTATE);
    rig_close(&r);
}

static void budget_below_one_task_is_a_clear_error(void **state)
{
    numbers n = {.end = 1, .bytes = 600};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 1, 1000);
    leat_error err;
    fo.loans = 1;
    leat_stage s = number_stage(&n);
    assert_int_equal(leat_flow_open(&r.flow, &fo, &err), 0);
    assert_int_equal(leat_flow_add(r.flow, &s, &err), 0);
    assert_int_equal(leat_flow_start(r.flow, &err), LEAT_EBUDGET);
    assert_non_null(strstr(err.message, "at least 1.18 KiB, 200 B more than the budget of 1000 B"));
    rig_close(&r);
}

static uint64_t need_of_number(void *cookie, const leat_task *task)
{
    return number_of(task) == 5 ? 5000 : 10;
}

static void one_task_above_the_budget_fails_alone(void **state)
{
    numbers n = {.end = 10, .bytes = 10};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 2, 1000);
    fo.on_error = LEAT_FLOW_GIVE_BACK;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "big", pass, NULL)};
    s[1].bytes_out = 10;
    s[1].need = need_of_number;
    rig_start(&r, &fo, s, 2);
    leat_task *t;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(leat_flow_next(r.flow, &t, -1, NULL), 0);
        assert_int_equal(t->status, i == 5 ? LEAT_EBUDGET : 0);
        if (i == 5)
            assert_non_null(
                strstr(t->error->message, "needs 4.90 KiB, 3.92 KiB more than the budget of 1000 B"));
        leat_task_release(t);
    }
    rig_close(&r);
}

typedef struct cache {
    leat_budget *budget;
    int asked;
} cache;

/* Everything is in use when the cache is first asked, and free later. */
static uint64_t give_later(void *arg, uint64_t bytes)
{
    cache *c = arg;
    (void)bytes;
    if (c->asked++ != 1) return 0;
    leat_budget_release(c->budget, LEAT_BUDGET_PAGE, 500);
    return 500;
}

static uint64_t need_most_for_five(void *cookie, const leat_task *task)
{
    return number_of(task) == 5 ? 800 : 10;
}

static void a_cache_is_asked_again(void **state)
{
    numbers n = {.end = 10, .bytes = 10};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 1, 1000);
    cache c = {.budget = r.budget};
    leat__budget_keeper keeper = {.trim = give_later, .arg = &c};
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "big", pass, NULL)};
    s[1].bytes_out = 10;
    s[1].need = need_most_for_five;
    assert_int_equal(leat_budget_try(r.budget, LEAT_BUDGET_PAGE, 500), 0);
    leat__budget_keep(r.budget, &keeper);
    rig_start(&r, &fo, s, 2);
    leat_task *t, *before = NULL;
    leat_error err = {0};
    for (int i = 0; i < 10; i++) {
        if (leat_flow_next(r.flow, &t, -1, &err) != 0) fail_msg("%d: %s", i, err.message);
        assert_int_equal(number_of(t), i);
        if (before) leat_task_release(before);
        before = t;
    }
    leat_task_release(before);
    assert_true(c.asked >= 2);
    leat__budget_unkeep(r.budget, &keeper);
    rig_close(&r);
}

static int hold_more(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    task->bytes = number_of(task) == 3 ? 100000 : 60;
    return 0;
}

static void holding_more_than_granted_is_detected(void **state)
{
    numbers n = {.end = 10, .bytes = 10};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 1, 1000);
    fo.on_error = LEAT_FLOW_GIVE_BACK;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "greedy", hold_more, NULL)};
    s[1].bytes_out = 20;
    rig_start(&r, &fo, s, 2);
    leat_task *t;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(leat_flow_next(r.flow, &t, -1, NULL), 0);
        assert_int_equal(t->status, i == 3 ? LEAT_EBUDGET : 0);
        if (i == 3) assert_null(t->data); /* freed at once */
        leat_task_release(t);
    }
    leat_budget_stats b;
    leat_budget_read(r.budget, &b);
    assert_true(b.peak <= 1000);
    leat_flow_stats st;
    assert_int_equal(leat_flow_read(r.flow, &st, sizeof st), 0);
    assert_int_equal(st.overruns, 1); /* from then on 60 are requested */
    rig_close(&r);
}

static void budget_halved_while_running(void **state)
{
    uint64_t ns = LEAT_NS_PER_MS;
    numbers n = {.end = 1000000, .bytes = 1000};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 2, 40000);
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "nap", nap, &ns)};
    fo.prefetch = 64;
    fo.loans = 1;
    rig_start(&r, &fo, s, 2);
    leat_error err;
    leat_budget_stats b = {0};
    leat_task *t;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(leat_flow_next(r.flow, &t, -1, NULL), 0);
        leat_task_release(t);
    }
    assert_int_equal(leat_budget_set_limit(r.budget, 20000, &err), 0);
    uint64_t lowered = leat__clock_ns(), obeyed = 0;
    int pulls = 0; /* until then at most the prefetched results are held */
    for (int i = 0; i < 300; i++) {
        assert_int_equal(leat_flow_next(r.flow, &t, -1, NULL), 0);
        leat_task_release(t);
        leat_budget_read(r.budget, &b);
        if (obeyed) assert_true(b.used <= 20000);
        if (obeyed || b.used > 20000) continue;
        obeyed = leat__clock_ns();
        pulls = i + 1;
    }
    assert_in_range(pulls, 1, 40);
    print_message("obeyed after %.1f ms\n", (double)(obeyed - lowered) / 1e6);
    assert_int_equal(leat_budget_set_limit(r.budget, 1000, &err), LEAT_EBUDGET);
    rig_close(&r);
}

static int count(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    atomic_fetch_add((atomic_int *)cookie, 1);
    return 0;
}

/* ns of one call, by the stage's name */
static uint64_t costs(void *cookie, const char *stage, const leat_task *task, uint64_t now)
{
    return stage[0] == 'a' ? 100000 : stage[0] == 'b' ? 300000 : 1000;
}

/* In virtual time, so that only the scheduler decides: each flow gets the same time. */
static void flows_share_the_pool_fairly(void **state)
{
    numbers n[2] = {{.end = 1000000}, {.end = 1000000}};
    atomic_int done[2] = {0, 0};
    rig r = {0};
    leat_flow *other = NULL;
    leat_pool_opts po;
    leat_pool_opts_init(&po);
    po.threads = 2;
    assert_int_equal(leat__replay_open(&r.pool, &po, 1, costs, NULL, NULL), 0);
    assert_int_equal(leat_budget_open(&r.budget, 1000, NULL), 0);
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    fo.pool = r.pool;
    fo.budget = r.budget;
    fo.fixed = 1;
    leat_stage a[] = {number_stage(&n[0]), plain_stage(LEAT_STAGE_SINK, "a", count, &done[0])};
    leat_stage b[] = {number_stage(&n[1]), plain_stage(LEAT_STAGE_SINK, "b", count, &done[1])};
    rig_start(&r, &fo, a, 2);
    /* the first flow has the pool alone for a while */
    while (atomic_load(&done[0]) < 1000) assert_true(leat__replay_step(r.pool));
    assert_int_equal(leat_flow_open(&other, &fo, NULL), 0);
    assert_int_equal(leat_flow_add(other, &b[0], NULL), 0);
    assert_int_equal(leat_flow_add(other, &b[1], NULL), 0);
    int first = atomic_load(&done[0]);
    assert_int_equal(leat_flow_start(other, NULL), 0);
    while (atomic_load(&done[1]) < 1000) assert_true(leat__replay_step(r.pool));
    double x = atomic_load(&done[0]) - first, y = atomic_load(&done[1]);
    leat_flow_close(&other);
    rig_close(&r);
    assert_true(x / y > 2.8 && x / y < 3.2);
}

static int order_log(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    uint64_t *last = cookie;
    if (task->seq != *last) return leat__fail(err, LEAT_EINTERNAL, "out of order");
    ++*last;
    return 0;
}

static void ordered_stage_sees_input_order(void **state)
{
    numbers n = {.end = 500};
    uint64_t at = 0;
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 4, 1000);
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "j", jitter, NULL),
                      plain_stage(LEAT_STAGE_SINK, "log", order_log, &at)};
    s[2].flags = LEAT_STAGE_ORDERED;
    rig_start(&r, &fo, s, 3);
    assert_int_equal(leat_flow_wait(r.flow, -1, NULL), 0);
    assert_int_equal(at, 500);
    rig_close(&r);
}

typedef struct phases {
    atomic_int first_done, second_begun_early;
} phases;

static int first_phase(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    leat__sleep_ns(20000);
    atomic_fetch_add(&((phases *)cookie)->first_done, 1);
    return 0;
}

static int second_phase(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    phases *p = cookie;
    if (atomic_load(&p->first_done) < 200) atomic_fetch_add(&p->second_begun_early, 1);
    return 0;
}

static void batch_mode_finishes_a_stage_first(void **state)
{
    numbers n = {.end = 200, .bytes = 10};
    phases p = {0};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 3, 1 << 20);
    fo.mode = LEAT_FLOW_BATCH;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "one", first_phase, &p),
                      plain_stage(LEAT_STAGE_SINK, "two", second_phase, &p)};
    rig_start(&r, &fo, s, 3);
    assert_int_equal(leat_flow_wait(r.flow, -1, NULL), 0);
    assert_int_equal(p.second_begun_early, 0);
    rig_close(&r);

    /* the same with a budget for ten tasks: it proceeds early rather than growing or hanging */
    n = (numbers){.end = 200, .bytes = 10};
    p = (phases){0};
    fo = rig_opts(&r, 3, 100);
    fo.mode = LEAT_FLOW_BATCH;
    rig_start(&r, &fo, s, 3);
    assert_int_equal(leat_flow_wait(r.flow, -1, NULL), 0);
    assert_true(p.second_begun_early > 0);
    leat_budget_stats b;
    leat_budget_read(r.budget, &b);
    assert_true(b.peak <= 100);
    rig_close(&r);
}

static int set_up_once(void *cookie, const leat_worker *worker, void **ctx, leat_error *err)
{
    atomic_fetch_add((atomic_int *)cookie, 1);
    *ctx = cookie;
    return 0;
}

static void tear_down_once(void *cookie, void *ctx)
{
    if (ctx == cookie) atomic_fetch_sub((atomic_int *)cookie, 1);
}

static int needs_ctx(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    leat__sleep_ns(50000);
    return ctx == cookie ? 0 : leat__fail(err, LEAT_EINTERNAL, "no context");
}

static int set_up_badly(void *cookie, const leat_worker *worker, void **ctx, leat_error *err)
{
    return leat__fail(err, LEAT_ENOENT, "the model is not there");
}

static void workers_have_contexts(void **state)
{
    numbers n = {.end = 200};
    atomic_int open = 0;
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 3, 1000);
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_SINK, "ctx", needs_ctx, &open)};
    s[1].setup = set_up_once;
    s[1].teardown = tear_down_once;
    s[1].ram = 400; /* two workers fit beside the floor of one, three do not */
    rig_start(&r, &fo, s, 2);
    assert_int_equal(leat_flow_wait(r.flow, -1, NULL), 0);
    assert_in_range(atomic_load(&open), 1, 2);
    leat_budget_stats b;
    leat_budget_read(r.budget, &b);
    assert_int_equal(b.used, 400 * (uint64_t)atomic_load(&open));
    rig_close(&r);
    assert_int_equal(atomic_load(&open), 0);

    n = (numbers){.end = 200};
    fo = rig_opts(&r, 3, 1000);
    s[1].setup = set_up_badly;
    s[1].teardown = NULL;
    rig_start(&r, &fo, s, 2);
    leat_error err;
    assert_int_equal(leat_flow_wait(r.flow, -1, &err), LEAT_ENOENT);
    assert_string_equal(err.message, "the model is not there");
    rig_close(&r);
}

static int on_gpu(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    atomic_int *inside = cookie;
    int now = atomic_fetch_add(inside, 1) + 1;
    leat__sleep_ns(100000);
    atomic_fetch_sub(inside, 1);
    return now <= 2 ? 0 : leat__fail(err, LEAT_EINTERNAL, "%d at once on one device", now);
}

static void gpu_memory_limits_workers(void **state)
{
    numbers n = {.end = 60};
    atomic_int inside = 0;
    rig r = {0};
    leat_pool_opts po;
    leat_pool_opts_init(&po);
    po.threads = 1;
    po.gpus = 1;
    po.gpu_memory = 1000;
    po.gpu_threads = 4;
    assert_int_equal(leat_pool_open(&r.pool, &po, NULL), 0);
    assert_int_equal(leat_budget_open(&r.budget, 1000, NULL), 0);
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    fo.pool = r.pool;
    fo.budget = r.budget;
    fo.fixed = 1;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_SINK, "gpu", on_gpu, &inside)};
    s[1].lane = LEAT_LANE_GPU;
    s[1].gpu_memory = 500;
    rig_start(&r, &fo, s, 2);
    leat_error err;
    assert_int_equal(leat_flow_wait(r.flow, -1, &err), 0);
    leat_flow_close(&r.flow);
    s[1].gpu_memory = 1001;
    assert_int_equal(leat_flow_open(&r.flow, &fo, NULL), 0);
    assert_int_equal(leat_flow_add(r.flow, &s[0], NULL), 0);
    assert_int_equal(leat_flow_add(r.flow, &s[1], NULL), 0);
    assert_int_equal(leat_flow_start(r.flow, &err), LEAT_EINVAL);
    rig_close(&r);
}

static atomic_int cpus_now, cpus_most;

static int counted(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    int weight = *(int *)cookie;
    int now = atomic_fetch_add(&cpus_now, weight) + weight, most = atomic_load(&cpus_most);
    while (now > most && !atomic_compare_exchange_weak(&cpus_most, &most, now)) continue;
    leat__sleep_ns(200000);
    atomic_fetch_sub(&cpus_now, weight);
    return 0;
}

static void cpus_of_a_stage_count(void **state)
{
    numbers n = {.end = 60};
    int one = 1, three = 3;
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 4, 1000);
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "one", counted, &one),
                      plain_stage(LEAT_STAGE_SINK, "three", counted, &three)};
    s[2].cpus = 3;
    rig_start(&r, &fo, s, 3);
    assert_int_equal(leat_flow_wait(r.flow, -1, NULL), 0);
    assert_true(atomic_load(&cpus_most) <= 4);
    rig_close(&r);
}

static int say_later(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    atomic_int *ready = cookie;
    if (!atomic_load(ready)) return LEAT_FLOW_LATER;
    return atomic_fetch_add(ready, 1) < 5 ? 0 : LEAT_FLOW_END;
}

static void a_source_may_say_later(void **state)
{
    atomic_int ready = 0;
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 2, 1000);
    leat_stage s[] = {plain_stage(LEAT_STAGE_SOURCE, "later", say_later, &ready)};
    rig_start(&r, &fo, s, 1);
    leat_task *t;
    assert_int_equal(leat_flow_next(r.flow, &t, 25, NULL), LEAT_ETIMEDOUT);
    atomic_store(&ready, 1);
    leat_flow_kick(r.flow);
    int got = 0;
    while (leat_flow_next(r.flow, &t, -1, NULL) == 0 && t) {
        leat_task_release(t);
        got++;
    }
    assert_int_equal(got, 4);
    rig_close(&r);
}

static void a_forked_child_is_refused(void **state)
{
    numbers n = {.end = 1000};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 2, 1000);
    leat_stage s[] = {number_stage(&n)};
    rig_start(&r, &fo, s, 1);
    pid_t child = fork();
    if (child == 0) {
        leat_task *t;
        leat_error err;
        int rc = leat_flow_next(r.flow, &t, -1, &err);
        bool said = strstr(err.message, "forked") != NULL;
        leat_flow_close(&r.flow); /* returns and frees only what it owns */
        leat_pool *fresh = NULL;
        int again = leat_pool_shared(&fresh, &err);
        _exit(rc == LEAT_EFORK && said && again == 0 ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    leat_task *t;
    assert_int_equal(leat_flow_next(r.flow, &t, -1, NULL), 0); /* the parent continues */
    leat_task_release(t);
    rig_close(&r);
}

static void close_from_any_state(void **state)
{
    uint64_t blocks = leat__mem_blocks();
    leat_flow *f = NULL;
    leat_flow_close(&f);
    assert_int_equal(leat_flow_open(&f, NULL, NULL), 0); /* shared pool, own budget */
    leat_flow_close(&f);
    assert_null(f);
    numbers n = {.end = 10};
    leat_stage s = number_stage(&n);
    assert_int_equal(leat_flow_open(&f, NULL, NULL), 0);
    assert_int_equal(leat_flow_add(f, &s, NULL), 0);
    leat_flow_close(&f);
    assert_int_equal(leat_flow_open(&f, NULL, NULL), 0);
    assert_int_equal(leat_flow_add(f, &s, NULL), 0);
    assert_int_equal(leat_flow_start(f, NULL), 0);
    leat_flow_cancel(f);
    leat_flow_close(&f);
    assert_int_equal(n.live, 0);
    assert_int_equal(leat__mem_blocks(), blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_come_in_order),
        cmocka_unit_test(times_stay_within_the_run),
        cmocka_unit_test(source_stops_at_prefetch),
        cmocka_unit_test(settings_that_are_not_pinned_can_be_raised),
        cmocka_unit_test(borrowed_results_stay_charged_until_released),
        cmocka_unit_test(fail_policy_fails_in_order),
        cmocka_unit_test(skip_policy_counts),
        cmocka_unit_test(too_many_errors_fail_the_flow),
        cmocka_unit_test(returned_tasks_carry_their_error),
        cmocka_unit_test(timeout_and_interrupt),
        cmocka_unit_test(cancel_is_prompt),
        cmocka_unit_test(wrong_stages_are_refused),
        cmocka_unit_test(budget_below_one_task_is_a_clear_error),
        cmocka_unit_test(one_task_above_the_budget_fails_alone),
        cmocka_unit_test(a_cache_is_asked_again),
        cmocka_unit_test(holding_more_than_granted_is_detected),
        cmocka_unit_test(budget_halved_while_running),
        cmocka_unit_test(flows_share_the_pool_fairly),
        cmocka_unit_test(ordered_stage_sees_input_order),
        cmocka_unit_test(batch_mode_finishes_a_stage_first),
        cmocka_unit_test(workers_have_contexts),
        cmocka_unit_test(gpu_memory_limits_workers),
        cmocka_unit_test(cpus_of_a_stage_count),
        cmocka_unit_test(a_source_may_say_later),
        cmocka_unit_test(a_forked_child_is_refused),
        cmocka_unit_test(close_from_any_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
