/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller on three pipelines with a moving bottleneck, in virtual time: how fast it
 * settles, and how close it comes to the best fixed setting. Only the clock is simulated.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include <stdlib.h>

#include "stages.h"

#include "engine/controller.h"
#include "engine/replay.h"

enum { PHASES = 3 };
static const uint64_t phase_ns = 8 * LEAT_NS_PER_S;

typedef struct world {
    const char *name;
    /* ns of one call, by phase */
    uint64_t (*cost)(const struct world *w, const char *stage, uint64_t seq, int phase);
    uint64_t step_ns[PHASES]; /* the consumer's work per result */
    double seconds;           /* to simulate; 0 = all phases */
    uint64_t budget;          /* 0 = 1 GiB */
    rig r;
    uint64_t begin, decisions_at[PHASES];
    uint32_t logged;
    uint64_t last_ns, taken_back_ns; /* longest time from a change to its revert */
} world;

static int phase_at(const world *w, uint64_t now)
{
    uint64_t t = (now - w->begin) / phase_ns;
    return (int)LEAT_MIN(t, PHASES - 1u);
}

static uint64_t cost_of(void *cookie, const char *stage, const leat_task *task, uint64_t now)
{
    const world *w = cookie;
    return w->cost(w, stage, task->seq, phase_at(w, now));
}

/* Storage answers in 16, 4, 40 ms; it serves 24 requests at once, beyond that all of them
 * wait. */
static uint64_t slow_storage(const world *w, const char *stage, uint64_t seq, int phase)
{
    static const uint64_t latency[PHASES] = {16000000, 4000000, 40000000};
    if (stage[0] == 'd') return 4000000;
    if (stage[0] != 'r') return 1000;
    uint64_t at_once = w->r.flow->stages[1].running;
    return latency[phase] * LEAT_MAX(at_once, 24) / 24;
}

/* Decoding costs 2, 12, 2 ms: from half a CPU to three and back. */
static uint64_t costly_decode(const world *w, const char *stage, uint64_t seq, int phase)
{
    static const uint64_t decode[PHASES] = {2000000, 12000000, 2000000};
    if (stage[0] == 'd') return decode[phase];
    return stage[0] == 'r' ? 1000000 : 1000;
}

/* Every 40th task is a large image, in the decoder first and then on storage. */
static uint64_t uneven(const world *w, const char *stage, uint64_t seq, int phase)
{
    bool large = seq % 40 == 7;
    if (stage[0] == 'd') return large && phase != 1 ? 150000000 : 3000000;
    if (stage[0] == 'r') return large && phase == 1 ? 200000000 : 2000000;
    return 1000;
}

static int pass(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    return 0;
}

static void record(void *cookie, leat_log_level level, const char *line)
{
    world *w = cookie;
    uint64_t now = leat__replay_now(w->r.pool->replay);
    w->decisions_at[phase_at(w, now)] = (now - w->begin) % phase_ns;
    w->logged++;
    if (strstr(line, "only add latency")) w->taken_back_ns = LEAT_MAX(w->taken_back_ns, now - w->last_ns);
    w->last_ns = now;
    if (getenv("LEAT_TEST_VERBOSE")) print_message("    %6.2f s  %s\n", (double)(now - w->begin) / 1e9, line);
}

typedef struct outcome {
    uint64_t results[PHASES]; /* in the second half of each phase */
    uint64_t all;
    leat_flow_stats at_end;
} outcome;

static outcome simulate(world *w, const leat_flow_opts *given)
{
    outcome o = {{0}};
    numbers n = {.end = UINT64_MAX, .bytes = 1000};
    leat_pool_opts po;
    leat_pool_opts_init(&po);
    po.threads = 8;
    po.io_threads = 32;
    w->r = (rig){0};
    w->logged = 0;
    memset(w->decisions_at, 0, sizeof w->decisions_at);
    assert_int_equal(leat__replay_open(&w->r.pool, &po, 1, cost_of, w, NULL), 0);
    assert_int_equal(leat_budget_open(&w->r.budget, w->budget > 0 ? w->budget : 1 << 30, NULL), 0);
    w->begin = leat__replay_now(w->r.pool->replay);
    leat_flow_opts fo = *given;
    fo.pool = w->r.pool;
    fo.budget = w->r.budget;
    if (fo.log.write == NULL) fo.log = (leat_log){.write = record, .cookie = w};
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "read", pass, NULL),
                      plain_stage(LEAT_STAGE_MAP, "decode", pass, NULL)};
    s[1].lane = LEAT_LANE_IO;
    rig_start(&w->r, &fo, s, 3);
    for (;;) {
        leat_task *t;
        assert_int_equal(leat_flow_next(w->r.flow, &t, -1, NULL), 0);
        uint64_t at = leat__replay_now(w->r.pool->replay) - w->begin;
        leat_task_release(t);
        if (at >= PHASES * phase_ns || (w->seconds > 0 && at >= (uint64_t)(w->seconds * 1e9))) break;
        int phase = (int)(at / phase_ns);
        if (at % phase_ns >= phase_ns / 2) o.results[phase]++;
        o.all++;
        leat__replay_advance(w->r.pool, w->step_ns[phase]);
    }
    assert_int_equal(leat_flow_read(w->r.flow, &o.at_end, sizeof o.at_end), 0);
    rig_close(&w->r);
    return o;
}

/* Possible fixed settings; the best of them, per phase and overall. */
static outcome best_fixed(world *w)
{
    static const uint32_t depths[] = {4, 12, 24, 32}, ahead[] = {8, 64, 512};
    outcome best = {{0}};
    for (size_t d = 0; d < LEAT_COUNT(depths); d++)
        for (size_t a = 0; a < LEAT_COUNT(ahead); a++) {
            leat_flow_opts fo;
            leat_flow_opts_init(&fo);
            fo.fixed = 1;
            fo.threads = 8;
            fo.io_depth = depths[d];
            fo.prefetch = ahead[a];
            outcome o = simulate(w, &fo);
            for (int p = 0; p < PHASES; p++) best.results[p] = LEAT_MAX(best.results[p], o.results[p]);
            best.all = LEAT_MAX(best.all, o.all);
        }
    return best;
}

static outcome check_world(world *w)
{
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    outcome got = simulate(w, &fo);
    double settle[PHASES];
    for (int p = 0; p < PHASES; p++) settle[p] = (double)w->decisions_at[p] / 1e9;
    uint32_t logged = w->logged;
    outcome best = best_fixed(w);
    print_message("%s: of the best fixed setting %.1f %% in all; settled: ", w->name,
                  100.0 * (double)got.all / (double)best.all);
    for (int p = 0; p < PHASES; p++)
        print_message("%.1f %% (last change after %.2f s)%s",
                      100.0 * (double)got.results[p] / (double)best.results[p], settle[p],
                      p + 1 < PHASES ? ", " : "; ");
    print_message("%u decisions, at the end threads %u, io_depth %u, prefetch %u\n", logged,
                  got.at_end.threads, got.at_end.io_depth, got.at_end.prefetch);
    for (int p = 0; p < PHASES; p++) assert_true((double)got.results[p] >= 0.95 * (double)best.results[p]);
    assert_true((double)got.all >= 0.90 * (double)best.all);
    assert_int_equal(logged, got.at_end.decisions); /* each with its reason */
    return got;
}

static void slow_storage_gets_more_io_depth(void **state)
{
    world w = {.name = "slow storage", .cost = slow_storage, .step_ns = {800000, 800000, 800000}};
    outcome o = check_world(&w);
    assert_in_range(o.at_end.io_depth, 16, 32);
}

static void costly_decode_gets_cpus_and_releases_them(void **state)
{
    world w = {.name = "costly decode", .cost = costly_decode, .step_ns = {4000000, 4000000, 4000000}};
    outcome o = check_world(&w);
    assert_in_range(o.at_end.threads, 1, 2); /* half a CPU is needed */
}

static void uneven_tasks_get_more_prefetch(void **state)
{
    world w = {.name = "uneven tasks", .cost = uneven, .step_ns = {2000000, 2000000, 2000000}};
    outcome o = check_world(&w);
    assert_true(o.at_end.prefetch > 20);
}

/* A disk that 4 reads in flight saturate; more only add latency, and take memory and caches. */
static uint64_t full_disk(const world *w, const char *stage, uint64_t seq, int phase)
{
    if (stage[0] != 'r') return 1000;
    uint64_t at_once = w->r.flow->stages[1].running;
    return at_once <= 4 ? 2000000 : 2000000 * at_once / 4 * 11 / 10;
}

/* Must be nearly as good as a depth of 4 from the start; only the phases from `first` on
 * count. */
static outcome check_against_four(world *w, int first)
{
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    outcome got = simulate(w, &fo);
    uint64_t taken_back = w->taken_back_ns;
    fo.fixed = 1;
    fo.io_depth = 4;
    outcome four = simulate(w, &fo);
    for (int p = first; p < PHASES; p++)
        assert_true((double)got.results[p] >= 0.98 * (double)four.results[p]);
    w->taken_back_ns = taken_back;
    return got;
}

static void saturated_disk_keeps_its_depth(void **state)
{
    world w = {.name = "full disk", .cost = full_disk};
    outcome o = check_against_four(&w, 0);
    assert_int_equal(o.at_end.io_depth, 4);
    assert_true(w.taken_back_ns > 0 && w.taken_back_ns <= 2 * LEAT__CONTROLLER_NS);
    assert_in_range(o.at_end.decisions, 2, 8); /* in 24 s: rarely tried, always reverted */
}

/* Storage that answers 40 at once in 40 ms, then a disk that 4 at once saturate. */
static uint64_t faster_disk(const world *w, const char *stage, uint64_t seq, int phase)
{
    return phase == 0 && stage[0] == 'r' ? 40000000 : full_disk(w, stage, seq, phase);
}

static void useless_depth_is_reduced(void **state)
{
    world w = {.name = "a faster disk", .cost = faster_disk};
    outcome o = check_against_four(&w, 1);
    assert_int_equal(o.at_end.io_depth, 4);
}

static void depth_stays_within_its_bound(void **state)
{
    world w = {.name = "bounded", .cost = slow_storage, .step_ns = {800000, 800000, 800000}};
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    fo.io_depth_max = 12;
    outcome o = simulate(&w, &fo);
    assert_int_equal(o.at_end.io_depth, 12);
}

/* A bucket 100 ms away, over a link that is full with 24 requests, or with 6. */
static uint64_t far_away(const world *w, const char *stage, uint64_t seq, int phase)
{
    if (stage[0] != 'r') return 1000;
    uint64_t at_once = w->r.flow->stages[1].running;
    return 100000000 * LEAT_MAX(at_once, 24) / 24;
}

static uint64_t narrow_link(const world *w, const char *stage, uint64_t seq, int phase)
{
    if (stage[0] != 'r') return 1000;
    uint64_t at_once = w->r.flow->stages[1].running;
    return 100000000 * LEAT_MAX(at_once, 6) / 6;
}

static uint32_t most_depth; /* by the slow start */

static void note_depth(void *cookie, leat_log_level level, const char *line)
{
    unsigned from, to;
    const char *at = strstr(line, "and the rate grew") != NULL ? strstr(line, "io_depth ") : NULL;
    if (at != NULL && sscanf(at, "io_depth %u -> %u", &from, &to) == 2) most_depth = LEAT_MAX(most_depth, to);
    record(cookie, level, line);
}

/* Results of the first seconds, with a slow start from 2 to at most `ramp`. */
static uint64_t start_slowly(world *w, uint32_t ramp, double seconds)
{
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    fo.io_depth_first = 2;
    fo.io_depth_ramp = ramp;
    fo.log = (leat_log){.write = note_depth, .cookie = w};
    most_depth = 0;
    w->seconds = seconds;
    return simulate(w, &fo).all;
}

/* A budget with room for a few reads: their number is the budget's, also when it has more room later. */
static void depth_is_not_lowered_over_a_long_link(void **state)
{
    world w = {.name = "far away", .cost = far_away, .seconds = 2, .budget = 20000};
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    fo.io_depth_first = 64;
    assert_true(simulate(&w, &fo).at_end.io_depth < 64);
    fo.io_depth_ramp = 64;
    assert_int_equal(simulate(&w, &fo).at_end.io_depth, 64);
}

static void depth_doubles_every_tick_over_a_long_link(void **state)
{
    world w = {.name = "far away", .cost = far_away};
    uint64_t judged = start_slowly(&w, 0, 2), ramped = start_slowly(&w, 32, 2);
    print_message("far away: %llu results in 2 s, %llu without a ramp\n", (unsigned long long)ramped,
                  (unsigned long long)judged);
    assert_true(ramped > 2 * judged);
    assert_true(ramped > 200); /* 480 with 24 in flight from the beginning */
    assert_int_equal(most_depth, 32);
    start_slowly(&w, 16, 2);
    assert_int_equal(most_depth, 16);
}

static void depth_stops_doubling_when_the_link_is_full(void **state)
{
    world w = {.name = "narrow link", .cost = narrow_link};
    start_slowly(&w, 32, 3);
    assert_in_range(most_depth, 8, 16);
}

/* The consumer takes every result at once: they never queue, so more prefetch does not help. */
static uint64_t slow_decode(const world *w, const char *stage, uint64_t seq, int phase)
{
    return stage[0] == 'd' ? 30000000 : 1000;
}

static void prefetch_does_not_grow_without_need(void **state)
{
    world w = {.name = "nothing to keep", .cost = slow_decode};
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    outcome o = simulate(&w, &fo);
    assert_int_equal(o.at_end.decisions, 0);
}

static void pinned_settings_do_not_change(void **state)
{
    world w = {.name = "pinned", .cost = slow_storage, .step_ns = {800000, 800000, 800000}};
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    fo.io_depth = 3;
    fo.threads = 5;
    fo.prefetch = 40;
    outcome o = simulate(&w, &fo);
    assert_int_equal(o.at_end.io_depth, 3);
    assert_int_equal(o.at_end.threads, 5);
    assert_int_equal(o.at_end.prefetch, 40);
    assert_int_equal(o.at_end.decisions, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_storage_gets_more_io_depth),
        cmocka_unit_test(costly_decode_gets_cpus_and_releases_them),
        cmocka_unit_test(uneven_tasks_get_more_prefetch),
        cmocka_unit_test(saturated_disk_keeps_its_depth),
        cmocka_unit_test(useless_depth_is_reduced),
        cmocka_unit_test(depth_stays_within_its_bound),
        cmocka_unit_test(depth_doubles_every_tick_over_a_long_link),
        cmocka_unit_test(depth_is_not_lowered_over_a_long_link),
        cmocka_unit_test(depth_stops_doubling_when_the_link_is_full),
        cmocka_unit_test(prefetch_does_not_grow_without_need),
        cmocka_unit_test(pinned_settings_do_not_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
