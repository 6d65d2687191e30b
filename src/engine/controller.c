/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller. Each tick compares a flow's counters with those of the previous tick:
 *
 *   the consumer did not wait     for a second: idle CPU workers that are not needed
 *   it waited                     the most downstream stage with a queue of ready tasks is
 *                                 the bottleneck: give it more workers, or more I/O in
 *                                 flight; measure the gain at that stage, revert a change
 *                                 without gain and do not retry it for a while, longer
 *                                 each time
 *   no stage had a queue          prefetch more results, to even out stragglers, if the
 *                                 prefetch limit was reached
 *   bytes were missing            lower the settings to what the budget can fill
 *
 * Queues choose the stage; speed only judges the change. Speed cannot choose, because a starved
 * stage also looks slow. More I/O in flight is also judged by latency. By Little's law, requests
 * in flight = rate x latency. So if latency grows in proportion to the requests in flight, the
 * storage is saturated. Latency shows this at once, while a change of rate must first be told
 * from noise. A change found useless is retried as soon as conditions change: when the time of a
 * stage's tasks or of the consumer's steps differs by 30 % from the time then. Threads: the
 * pool's controller thread, or the replay; with the pool's lock held.
 */
#include "engine/controller.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/num.h"
#include "engine/flow_window.h"
#include "engine/tuner.h"

static const double fed = 0.02, starving = 0.05; /* share of the time the consumer waits */
static const double busy_enough = 0.85, waiting_enough = 0.5;
static const double worth_it = 0.03; /* minimum gain to keep a change */
static const double clear = 0.1;     /* a gain above noise */
static const double ramp_gain = 1.2; /* minimum factor of the rate when reads in flight double */
static const double another = 1.3;   /* ratio of times that counts as changed conditions */
static const double another_io = 2;  /* the same for storage, whose times vary more */
static const uint32_t calm_ticks = 4, judge_items = 16, judge_ticks = 8, doubt_ticks = 4, regret_ticks = 12,
                      known_ticks = 2, rate_ticks = 8;

static const char *const knob_names[] = {"threads", "io_depth", "prefetch"};

const char *leat_knob_name(leat_flow_knob knob)
{
    return (unsigned)knob < LEAT_COUNT(knob_names) ? knob_names[knob] : "?";
}

typedef struct look {
    double seconds;
    double consumer; /* share of the time the consumer waited */
    double step_ns;  /* the consumer's own work per result; 0 = unknown */
    double blocked;  /* share of the time work was blocked by the memory budget */
    bool full;       /* the prefetch limit was reached at least once */
    double cpus;     /* mean CPU workers busy */
    double rate[LEAT__STAGES_MAX], ready[LEAT__STAGES_MAX], busy[LEAT__STAGES_MAX];
    double cost_ns[LEAT__STAGES_MAX]; /* per task; 0 = no task finished */
    uint64_t items[LEAT__STAGES_MAX];
    bool changing; /* conditions changed since the previous tick */
} look;

static uint32_t limit_of(const leat_flow *f, const leat__stage *s)
{
    if (s->decl.kind == LEAT_STAGE_SOURCE || (s->decl.flags & LEAT_STAGE_ORDERED)) return 1;
    if (s->decl.parallel > 0) return s->decl.parallel;
    return s->decl.lane == LEAT_LANE_IO ? f->knobs[LEAT_KNOB_IO_DEPTH].value : UINT32_MAX;
}

/* Returns how many threads of the I/O lane stage s needs. A stage that completes asynchronously occupies no
 * thread while it waits, so two threads can start all its tasks. */
uint32_t leat__io_threads(const leat__stage *s)
{
    return s->answers_later ? LEAT_MIN(s->limit, 2) : s->limit;
}

static uint32_t depth_max(const leat_flow *f, const leat__stage *s)
{
    uint32_t most = s->answers_later ? LEAT__LANE_MAX : f->pool->lanes[LEAT_LANE_IO].max;
    return f->opts.io_depth_max ? LEAT_MIN(most, f->opts.io_depth_max) : most;
}

void leat__knobs_apply(leat_flow *f)
{
    leat_pool *p = f->pool;
    leat__knob *k = f->knobs;
    k[LEAT_KNOB_THREADS].value = LEAT_MIN(k[LEAT_KNOB_THREADS].value, p->lanes[LEAT_LANE_CPU].max);
    k[LEAT_KNOB_IO_DEPTH].value = LEAT_MIN(k[LEAT_KNOB_IO_DEPTH].value, (uint32_t)LEAT__LANE_MAX);
    for (uint32_t i = 0; i < f->stage_count; i++) {
        leat__stage *s = &f->stages[i];
        s->limit = limit_of(f, s);
        LEAT_ASSERT(s->limit > 0);
        if (s->decl.lane != LEAT_LANE_IO || f->state != LEAT__FLOW_RUNNING || p->replay) continue;
        /* with fewer threads than the depth needs, the flow is slower but correct */
        int rc = leat__lane_start(&p->lanes[LEAT_LANE_IO], leat__io_threads(s), NULL);
        if (rc != 0)
            leat__pool_note(f, LEAT_LOG_WARN, "%s: only %u threads for I/O: %s", f->name,
                            p->lanes[LEAT_LANE_IO].started, leat_code_text(rc));
    }
    leat__segments_window(f);
}

/* ---- Observing
 * ------------------------------------------------------------------------------ */

/* Returns the increase since *seen, which becomes `now`. Never negative. */
static double since(uint64_t *seen, uint64_t now)
{
    int64_t more = (int64_t)(now - *seen);
    *seen = now;
    return more > 0 ? (double)more : 0;
}

static bool differs(double a, double b, double times)
{
    return a > 0 && b > 0 && (a > b * times || b > a * times);
}

static bool costs_differ(const leat_flow *f, uint32_t stage, double a, double b)
{
    return differs(a, b, f->stages[stage].decl.lane == LEAT_LANE_IO ? another_io : another);
}

static void rate_add(leat__rate_mean *p, double rate)
{
    LEAT_ASSERT(rate >= 0);
    p->ticks = LEAT_MIN(p->ticks + 1, rate_ticks);
    double off = rate - p->mean;
    p->mean += off / p->ticks;
    p->var = (p->var + off * off / p->ticks) * (p->ticks - 1) / p->ticks;
}

static void observe_stage(leat_flow *f, uint32_t i, uint64_t now, double ns, look *l)
{
    leat__control_state *s = &f->control;
    const leat__stage *st = &f->stages[i];
    uint64_t ready = st->ready_ns + (st->ready.count ? now - st->ready_since_ns : 0);
    double busy = since(&s->busy_ns[i], st->busy_ns);
    l->items[i] = (uint64_t)since(&s->items[i], st->items);
    l->rate[i] = (double)l->items[i] / l->seconds;
    l->ready[i] = since(&s->ready_ns[i], ready) / ns;
    l->busy[i] = busy / ns;
    l->cost_ns[i] = l->items[i] ? busy / (double)l->items[i] : 0;
    if (st->decl.lane == LEAT_LANE_CPU) l->cpus += l->busy[i];
    bool other = costs_differ(f, i, l->cost_ns[i], s->cost_ns[i]);
    if (other) s->rate[i] = (leat__rate_mean){0};
    rate_add(&s->rate[i], l->rate[i]);
    if (st->decl.lane == LEAT_LANE_IO && other) s->narrow = l->cost_ns[i] < s->cost_ns[i];
    if (l->cost_ns[i] > 0) s->cost_ns[i] = l->cost_ns[i];
    l->changing |= other && l->busy[i] >= 0.1; /* only stages that matter */
}

static void observe(leat_flow *f, uint64_t now, look *l)
{
    LEAT_ASSERT(now > f->control.at_ns);
    leat__control_state *s = &f->control;
    double ns = (double)(now - s->at_ns);
    uint64_t blocked = f->blocked_ns + (f->blocked_since_ns ? now - f->blocked_since_ns : 0);
    bool pulled = f->stages[f->stage_count - 1].decl.kind != LEAT_STAGE_SINK;
    double waited =
        since(&s->consumer_wait_ns, f->consumer_wait_ns + (f->waiters ? now - f->wait_since_ns : 0));
    double results = since(&s->results, f->results);
    *l = (look){.seconds = ns / 1e9};
    l->consumer = pulled ? LEAT_MIN(waited / ns, 1.0) : 1;
    l->step_ns = pulled && results > 0 ? LEAT_MAX(ns - waited, 0.0) / results : 0;
    l->blocked = since(&s->blocked_ns, blocked) / ns;
    l->full = since(&s->filled, f->segments[f->segment_count - 1].filled) > 0;
    for (uint32_t i = 0; i < f->stage_count; i++) observe_stage(f, i, now, ns, l);
    s->at_ns = now;
}

/* Ends waits before retries: after their number of ticks, or once conditions have differed for two
 * consecutive ticks from those in which the change was useless. Very short steps are ignored as noise. */
static void forget(leat_flow *f, const look *l)
{
    static const double least_step_ns = 1e6;
    leat__control_state *s = &f->control;
    for (int i = 0; i < LEAT__ACTIONS; i++) {
        leat__retry_wait *h = &s->wait[i];
        if (h->ticks > 0) h->ticks--;
        if (h->futile == 0) continue;
        bool steps =
            LEAT_MAX(l->step_ns, h->step_ns) >= least_step_ns && differs(l->step_ns, h->step_ns, another);
        bool costs = costs_differ(f, h->stage, l->cost_ns[h->stage], h->cost_ns);
        h->changed = steps || costs ? h->changed + 1 : 0;
        if (h->changed >= 2) *h = (leat__retry_wait){0};
    }
}

/* ---- Changing ------------------------------------------------------------------------------- */

static void set(leat_flow *f, leat_flow_knob knob, uint32_t value, uint64_t now, const char *stage,
                const char *reason, double share)
{
    LEAT_ASSERT((unsigned)knob < LEAT_COUNT(knob_names));
    uint32_t from = f->knobs[knob].value;
    f->knobs[knob].value = value;
    leat__knobs_apply(f);
    LEAT_ASSERT(f->knobs[knob].value > 0);
    if (f->knobs[knob].value == from) return;
    f->decisions++;
    memset(f->control.rate, 0, sizeof f->control.rate); /* measured with the old settings */
    leat_decision d = {.at_ns = now, .knob = knob, .from = from, .to = f->knobs[knob].value};
    snprintf(d.reason, sizeof d.reason, "%s%s (%.0f %%)", stage, reason, 100 * share);
    if (f->tuner) leat__tuner_decided(f->tuner, &d);
    leat__pool_note(f, LEAT_LOG_INFO, "%s: %s %u -> %u: %s", f->name, knob_names[knob], from, d.to, d.reason);
}

static void wait_before_retry(leat__control_state *s, int what, uint32_t stage, double cost_ns,
                              double step_ns)
{
    LEAT_ASSERT(what >= 0 && what < LEAT__ACTIONS);
    LEAT_ASSERT(stage < LEAT__STAGES_MAX);
    leat__retry_wait *h = &s->wait[what];
    h->futile = LEAT_MIN(h->futile + 1, 5u);
    h->ticks = 4u << h->futile;
    h->stage = stage;
    h->cost_ns = cost_ns;
    h->step_ns = step_ns;
    h->changed = 0;
}

/* Changes a knob on trial; later ticks judge the gain. */
static void try_out(leat_flow *f, leat_flow_knob knob, uint32_t value, uint32_t stage, const look *l,
                    const char *reason, double share)
{
    LEAT_ASSERT(stage < f->stage_count);
    LEAT_ASSERT(f->control.tried == 0);
    leat__control_state *s = &f->control;
    uint32_t from = f->knobs[knob].value;
    leat__rate_mean rate = s->rate[stage];
    if (rate.ticks < known_ticks) return; /* nothing to compare with yet */
    set(f, knob, value, s->at_ns, f->stages[stage].name, reason, share);
    if (f->knobs[knob].value == from) {
        s->wait[knob].ticks = calm_ticks;
        return;
    }
    s->tried = (int32_t)knob + 1;
    s->tried_from = from;
    s->tried_stage = stage;
    s->tried_rate = rate;
    s->tried_cost_ns = l->cost_ns[stage];
    s->tried_step_ns = l->step_ns;
    s->judging = 0;
    s->judged_items = 0;
}

/* The result of a change, compared with the rate before it. */
typedef struct outcome {
    double gain;   /* gain of the rate */
    double noise;  /* standard error of the gain */
    double little; /* the gain that latency predicts: in flight = rate x latency */
} outcome;

static outcome compare(const leat_flow *f, const look *l, leat_flow_knob knob)
{
    LEAT_ASSERT(f->control.tried > 0 && f->control.tried_from > 0);
    const leat__control_state *s = &f->control;
    const leat__rate_mean *before = &s->tried_rate, *now = &s->rate[s->tried_stage];
    double cost_ns = l->cost_ns[s->tried_stage];
    outcome o = {.gain = 1};
    if (before->mean > 0) {
        double var = LEAT_MAX(before->var, now->var);
        o.gain = now->mean / before->mean - 1;
        o.noise = sqrt(var * (1.0 / before->ticks + 1.0 / now->ticks)) / before->mean;
    }
    o.little = o.gain;
    if (knob == LEAT_KNOB_IO_DEPTH && cost_ns > 0 && s->tried_cost_ns > 0)
        o.little = (double)f->knobs[knob].value / s->tried_from * s->tried_cost_ns / cost_ns - 1;
    return o;
}

static void take_back(leat_flow *f, leat_flow_knob knob, const char *reason, double gain)
{
    leat__control_state *s = &f->control;
    if (f->knobs[knob].pinned) return;
    set(f, knob, s->tried_from, s->at_ns, f->stages[s->tried_stage].name, reason, gain);
    s->rate[s->tried_stage] = s->tried_rate;
    s->cost_ns[s->tried_stage] = s->tried_cost_ns; /* otherwise the drop in latency would look
                                                    * like a faster disk */
}

/* Judges a lower I/O depth: kept if the rate did not drop. True while undecided. */
static bool judge_narrow(leat_flow *f, const look *l, const outcome *o)
{
    leat__control_state *s = &f->control;
    bool lost = o->gain <= -clear && o->gain <= -2 * o->noise && o->little < -worth_it;
    if (!lost && l->consumer >= fed && s->judging < doubt_ticks) return true;
    s->tried = 0;
    s->elastic = false;
    if (lost || (o->gain < -worth_it && l->consumer >= fed)) {
        s->narrow = false;
        take_back(f, LEAT_KNOB_IO_DEPTH, " lost with fewer in flight", o->gain);
    }
    wait_before_retry(s, LEAT_KNOB_IO_DEPTH, s->tried_stage, l->cost_ns[s->tried_stage], l->step_ns);
    return false;
}

/* Judges an increase: kept if the rate rose. True while undecided. */
static bool judge_more(leat_flow *f, const look *l, const outcome *o, leat_flow_knob knob)
{
    leat__control_state *s = &f->control;
    bool io = knob == LEAT_KNOB_IO_DEPTH, needless = l->consumer < fed;
    bool yes = o->gain >= clear && o->gain >= 2 * o->noise && o->little >= worth_it;
    bool saturated = io && o->little < worth_it && o->gain < clear;
    /* The end of an epoch can hide a gain, and noise can look like a gain: measure longer. */
    bool open = o->gain >= 0 && o->gain < o->noise && s->judging < judge_ticks;
    if (!yes && !saturated && !needless && (s->judging < doubt_ticks || open)) return true;
    s->tried = 0;
    s->elastic = io && yes && o->little > 0.6 * (f->knobs[knob].value / s->tried_from - 1);
    bool large = o->gain >= clear, told = o->gain >= worth_it && o->gain >= o->noise;
    if (yes || needless || (!saturated && (large || (told && o->little >= worth_it)))) {
        s->wait[knob] = (leat__retry_wait){0};
        return false;
    }
    wait_before_retry(s, (int)knob, s->tried_stage, s->tried_cost_ns, s->tried_step_ns);
    if (saturated) { /* certain: wait long before retrying */
        s->wait[knob].ticks = LEAT_MAX(s->wait[knob].ticks, 32u);
        s->narrow = true;
    }
    take_back(f, knob,
              saturated ? ": more in flight only add latency; gained"
                        : " gained too little from the last change",
              o->gain);
    return false;
}

/* True while the last change is still being judged. */
static bool judge(leat_flow *f, const look *l)
{
    LEAT_ASSERT(f->control.tried >= 0 && f->control.tried <= (int32_t)LEAT_COUNT(knob_names));
    leat__control_state *s = &f->control;
    if (s->tried == 0) return false;
    leat_flow_knob knob = (leat_flow_knob)(s->tried - 1);
    uint32_t stage = s->tried_stage;
    bool few = knob == LEAT_KNOB_PREFETCH || l->items[stage] < 4u * f->knobs[knob].value;
    if (++s->judging == 1 && few) { /* most of these tasks started before the change */
        s->rate[stage] = (leat__rate_mean){0};
        return true;
    }
    /* More threads do not make a task cheaper, so conditions have changed and the baseline is
     * invalid. (More I/O in flight may make each request slower.) */
    if (knob == LEAT_KNOB_THREADS && costs_differ(f, stage, l->cost_ns[stage], s->tried_cost_ns)) {
        s->tried = 0;
        return false;
    }
    s->judged_items += l->items[stage];
    if (s->judged_items < judge_items && s->judging < judge_ticks) return true;
    outcome o = compare(f, l, knob);
    return f->knobs[knob].value < s->tried_from ? judge_narrow(f, l, &o) : judge_more(f, l, &o, knob);
}

static bool free_to_move(const leat_flow *f, leat_flow_knob knob)
{
    return !f->knobs[knob].pinned && f->control.wait[knob].ticks == 0;
}

/* Finds the most expensive CPU stage. Its cost shows whether workers should still be idle. */
static uint32_t costly_stage(const leat_flow *f, const look *l)
{
    uint32_t most = 0;
    for (uint32_t i = 1; i < f->stage_count; i++)
        if (f->stages[i].decl.lane == LEAT_LANE_CPU && l->busy[i] > l->busy[most]) most = i;
    return most;
}

static void relax(leat_flow *f, const look *l)
{
    leat__control_state *s = &f->control;
    uint32_t threads = f->knobs[LEAT_KNOB_THREADS].value;
    if (++s->calm < calm_ticks || threads < 2 || f->knobs[LEAT_KNOB_THREADS].pinned) return;
    if (s->wait[LEAT__ACTION_FEWER_THREADS].ticks > 0 || l->cpus >= (threads - 1) * busy_enough) return;
    uint32_t enough = (uint32_t)(l->cpus / busy_enough) + 1;
    s->calm = 0;
    s->rested = regret_ticks;
    set(f, LEAT_KNOB_THREADS, LEAT_MAX(enough, threads / 2), s->at_ns, "",
        "the consumer does not wait; CPU workers busy", l->cpus / threads);
}

/* Adds CPU workers. If some were idled recently, that was a mistake, so none are idled for a while, longer
 * each time. */
static void add_workers(leat_flow *f, uint32_t stage, const look *l)
{
    leat__control_state *s = &f->control;
    uint32_t threads = f->knobs[LEAT_KNOB_THREADS].value;
    if (s->rested > 0) {
        uint32_t costly = costly_stage(f, l);
        wait_before_retry(s, LEAT__ACTION_FEWER_THREADS, costly, l->cost_ns[costly], l->step_ns);
        s->rested = 0;
    }
    try_out(f, LEAT_KNOB_THREADS, LEAT_MIN(2 * threads, f->pool->active), stage, l, " had tasks waiting",
            l->ready[stage]);
}

/* Raises the I/O depth, or lowers it if a raise was found useless. */
static void size_depth(leat_flow *f, uint32_t stage, const look *l)
{
    leat__control_state *s = &f->control;
    uint32_t depth = f->knobs[LEAT_KNOB_IO_DEPTH].value, most = depth_max(f, &f->stages[stage]);
    if (f->knobs[LEAT_KNOB_IO_DEPTH].pinned) return;
    if (s->narrow && depth >= 2 * LEAT__DEPTH_FIRST) {
        try_out(f, LEAT_KNOB_IO_DEPTH, depth / 2, stage, l, ": fewer in flight may be enough; tasks waiting",
                l->ready[stage]);
        return;
    }
    s->narrow = false;
    if (depth < most && free_to_move(f, LEAT_KNOB_IO_DEPTH))
        try_out(f, LEAT_KNOB_IO_DEPTH, LEAT_MIN((s->elastic ? 4 : 2) * depth, most), stage, l,
                " had tasks waiting", l->ready[stage]);
}

/* Finds the most downstream stage that had a queue while all its slots were busy. A stage with a
 * queue and free slots waits for the machine, not for a setting: look further upstream. */
static bool widen(leat_flow *f, const look *l)
{
    leat__knob *k = f->knobs;
    uint32_t threads = k[LEAT_KNOB_THREADS].value, depth = k[LEAT_KNOB_IO_DEPTH].value;
    for (uint32_t i = f->stage_count; i-- > 1;) {
        const leat__stage *s = &f->stages[i];
        bool cpu = s->decl.lane == LEAT_LANE_CPU, io = s->decl.lane == LEAT_LANE_IO;
        if (l->ready[i] < waiting_enough) continue;
        if (s->decl.parallel > 0 || (!cpu && !io)) return true; /* the stage has its own limit */
        if (cpu ? l->cpus < threads * busy_enough : l->busy[i] < depth * busy_enough) continue;
        if (cpu && threads < f->pool->active && free_to_move(f, LEAT_KNOB_THREADS)) add_workers(f, i, l);
        if (io) size_depth(f, i, l);
        return true;
    }
    return false;
}

/* Lowers settings to what the budget can hold, when the budget is the bottleneck. This costs no speed, and
 * the reported settings are then the ones in effect. */
static void fit_budget(leat_flow *f, const look *l)
{
    uint32_t depth = f->knobs[LEAT_KNOB_IO_DEPTH].value;
    uint32_t prefetch = f->knobs[LEAT_KNOB_PREFETCH].value;
    uint64_t now = f->control.at_ns;
    for (uint32_t i = 1; i < f->stage_count; i++) {
        const leat__stage *s = &f->stages[i];
        if (s->decl.lane != LEAT_LANE_IO || s->decl.parallel > 0) continue;
        /* over a network, few were in flight because the first answers take most of a tick */
        if (f->opts.io_depth_ramp > 0) break;
        if (f->knobs[LEAT_KNOB_IO_DEPTH].pinned || depth <= 2 || l->busy[i] * 2 >= depth) break;
        set(f, LEAT_KNOB_IO_DEPTH, LEAT_MAX((uint32_t)(l->busy[i] * 1.25) + 1, 2), now, s->name,
            ": the budget allows no more in flight; it was short", l->blocked);
        return;
    }
    const leat__segment *last = &f->segments[f->segment_count - 1];
    if (last->end != LEAT__END_EXIT || f->knobs[LEAT_KNOB_PREFETCH].pinned) return;
    uint32_t held = LEAT_MAX(2, last->inside + 1);
    if (held * 2 > prefetch) return;
    set(f, LEAT_KNOB_PREFETCH, held, now, "", "the budget allows no more results ahead; it was short",
        l->blocked);
}

/* Slow start: over a network a round trip may take most of a tick, and judging each doubling takes several.
 * Doubles the I/O depth at once while that raises the rate; then the usual control takes over. */
static bool ramp(leat_flow *f, const look *l)
{
    leat__control_state *s = &f->control;
    uint32_t i = 1, depth = f->knobs[LEAT_KNOB_IO_DEPTH].value;
    if (s->ramped || f->opts.io_depth_ramp == 0) return false;
    while (i < f->stage_count && (f->stages[i].decl.lane != LEAT_LANE_IO || f->stages[i].decl.parallel > 0))
        i++;
    s->ramped = i == f->stage_count || f->knobs[LEAT_KNOB_IO_DEPTH].pinned || depth >= f->opts.io_depth_ramp;
    if (s->ramped) return false;
    if (l->items[i] == 0) return true; /* the first answers are still in flight */
    bool waits = l->consumer >= starving && l->ready[i] >= waiting_enough && l->blocked <= waiting_enough;
    s->ramped = !waits || l->rate[i] < ramp_gain * s->ramp_rate;
    if (s->ramped) return false;
    s->ramp_rate = l->rate[i];
    set(f, LEAT_KNOB_IO_DEPTH, LEAT_MIN(2 * depth, f->opts.io_depth_ramp), s->at_ns, f->stages[i].name,
        " had tasks waiting, and the rate grew", l->ready[i]);
    return true;
}

void leat__controller_step(leat_flow *f, uint64_t now)
{
    leat__control_state *s = &f->control;
    if (f->state != LEAT__FLOW_RUNNING || f->opts.fixed) return;
    /* the interval is too short to judge: wait for the next tick */
    if (now < s->at_ns + LEAT__CONTROLLER_NS / 2) return;
    look l;
    observe(f, now, &l);
    forget(f, &l);
    if (s->rested > 0) s->rested--;
    if (ramp(f, &l) || judge(f, &l)) return;
    /* A tick that mixes old and new conditions is not a baseline for the next ones. */
    s->changing = l.changing && !s->changing;
    if (s->changing) return;
    if (l.consumer < fed) {
        relax(f, &l);
        return;
    }
    s->calm = 0;
    if (l.consumer < starving) return;
    if (l.blocked > waiting_enough) {
        fit_budget(f, &l);
        return;
    }
    if (widen(f, &l)) return;
    uint32_t prefetch = f->knobs[LEAT_KNOB_PREFETCH].value;
    const leat__segment *last = &f->segments[f->segment_count - 1];
    bool can = l.full && last->end == LEAT__END_EXIT && prefetch <= last->mask / 2;
    if (can && free_to_move(f, LEAT_KNOB_PREFETCH))
        try_out(f, LEAT_KNOB_PREFETCH, prefetch * 2, f->stage_count - 1, &l,
                ": no stage had tasks waiting, the consumer waited", l.consumer);
}

static void run(void *arg)
{
    leat_pool *p = arg;
    leat__pool_lock(p);
    while (!p->stopping) {
        uint64_t next = leat__clock_ns() + LEAT__CONTROLLER_NS;
        while (!p->stopping && leat__clock_ns() < next)
            leat__cond_wait_until(&p->controller_wake, &p->lock, next);
        uint64_t now = leat__clock_ns();
        for (leat_flow *f = p->flows; f && !p->stopping; f = f->next) {
            leat__controller_step(f, now);
            leat__flow_advance(f, now);
        }
        p->epoch++;
        leat__pool_unlock(p);
        leat__pool_lock(p);
    }
    leat__pool_unlock(p);
}

int leat__controller_start(leat_pool *p, leat_error *err)
{
    if (p->replay || p->controller.running) return 0;
    return leat__thread_start(&p->controller, "leat-control", run, p, err);
}
