/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller. Each look compares a flow's meters with the look before:
 *
 *   the consumer did not wait     for a second: one CPU worker less, if the rest can carry it
 *   it waited                     the most downstream stage that had tasks waiting is the
 *                                 bottleneck (readiness chooses): more workers, or more I/O at
 *                                 once; the gain at that stage is judged (speed sizes) and a
 *                                 change that brought nothing is taken back and left alone for
 *                                 a while, longer each time
 *   no stage had tasks waiting    more results ahead, to even out slow tasks
 *
 * A starved stage looks slow by speed alone, which is why speed never chooses. Threads: the
 * pool's controller thread, or the replay; with the pool's lock held.
 */
#include "engine/controller.h"

#include "base/clock.h"
#include "base/num.h"

static const double fed = 0.02, starving = 0.05; /* share of the time the consumer waits */
static const double busy_enough = 0.85, waiting_enough = 0.5;
static const double worth_it = 0.03; /* least gain that keeps a change */
static const uint32_t calm_looks = 4, judge_items = 16, judge_looks = 8;

static const char *const knob_names[] = {"threads", "io_depth", "prefetch"};

typedef struct look {
    double seconds;
    double consumer; /* share of the time it waited */
    double blocked;  /* share of the time something waited for bytes */
    double cpus;     /* mean CPU workers busy */
    double rate[LEAT__STAGES_MAX], ready[LEAT__STAGES_MAX], busy[LEAT__STAGES_MAX];
    uint64_t items[LEAT__STAGES_MAX];
} look;

static uint32_t limit_of(const leat_flow *f, const leat__stage *s)
{
    if (s->decl.kind == LEAT_STAGE_SOURCE || (s->decl.flags & LEAT_STAGE_ORDERED)) return 1;
    if (s->decl.parallel > 0) return s->decl.parallel;
    return s->decl.lane == LEAT_LANE_IO ? f->knobs[LEAT_KNOB_IO_DEPTH].value : UINT32_MAX;
}

void leat__knobs_apply(leat_flow *f)
{
    leat_pool *p = f->pool;
    leat__knob *k = f->knobs;
    k[LEAT_KNOB_THREADS].value = LEAT_MIN(k[LEAT_KNOB_THREADS].value,
                                          p->lanes[LEAT_LANE_CPU].max);
    k[LEAT_KNOB_IO_DEPTH].value = LEAT_MIN(k[LEAT_KNOB_IO_DEPTH].value,
                                           p->lanes[LEAT_LANE_IO].max);
    for (uint32_t i = 0; i < f->stage_count; i++) {
        leat__stage *s = &f->stages[i];
        s->limit = limit_of(f, s);
        if (s->decl.lane != LEAT_LANE_IO || f->state != LEAT__FLOW_RUNNING || p->replay) continue;
        /* Fewer threads than the depth asks for is slower, not wrong. */
        int rc = leat__lane_start(&p->lanes[LEAT_LANE_IO], s->limit, NULL);
        if (rc != 0)
            leat__pool_note(f, LEAT_LOG_WARN, "%s: only %u threads for I/O: %s", f->name,
                      p->lanes[LEAT_LANE_IO].started, leat_code_text(rc));
    }
    leat__segments_window(f);
}

static void observe(leat_flow *f, uint64_t now, look *l)
{
    leat__sight *s = &f->sight;
    double ns = (double)(now - s->at_ns);
    uint64_t blocked = f->blocked_ns + (f->blocked_since_ns ? now - f->blocked_since_ns : 0);
    bool pulled = f->stages[f->stage_count - 1].decl.kind != LEAT_STAGE_SINK;
    uint64_t waited = f->consumer_wait_ns + (f->waiters ? now - f->wait_since_ns : 0);
    l->seconds = ns / 1e9;
    l->consumer = pulled ? (double)(waited - LEAT_MIN(waited, s->consumer_wait_ns)) / ns : 1;
    l->blocked = (double)(blocked - s->blocked_ns) / ns;
    l->cpus = 0;
    for (uint32_t i = 0; i < f->stage_count; i++) {
        const leat__stage *st = &f->stages[i];
        uint64_t ready = st->ready_ns + (st->ready.count ? now - st->ready_since_ns : 0);
        l->items[i] = st->items - s->items[i];
        l->rate[i] = (double)l->items[i] / l->seconds;
        l->ready[i] = (double)(ready - s->ready_ns[i]) / ns;
        l->busy[i] = (double)(st->busy_ns - s->busy_ns[i]) / ns;
        if (st->decl.lane == LEAT_LANE_CPU) l->cpus += l->busy[i];
        s->items[i] = st->items;
        s->ready_ns[i] = ready;
        s->busy_ns[i] = st->busy_ns;
    }
    s->at_ns = now;
    s->consumer_wait_ns = waited;
    s->blocked_ns = blocked;
}

static void set(leat_flow *f, leat_flow_knob knob, uint32_t value, const char *reason,
                const char *stage, double share)
{
    uint32_t from = f->knobs[knob].value;
    f->knobs[knob].value = value;
    leat__knobs_apply(f);
    if (f->knobs[knob].value == from) return;
    f->decisions++;
    leat__pool_note(f, LEAT_LOG_INFO, "%s: %s %u -> %u: %s%s (%.0f %%)", f->name,
              knob_names[knob], from, f->knobs[knob].value, stage, reason, 100 * share);
}

/* Changes a knob and remembers to look whether that helped. */
static void try_out(leat_flow *f, leat_flow_knob knob, uint32_t value, uint32_t stage,
                    const look *l, const char *reason, double share)
{
    leat__sight *s = &f->sight;
    uint32_t from = f->knobs[knob].value;
    set(f, knob, value, reason, f->stages[stage].name, share);
    if (f->knobs[knob].value == from) {
        s->hold[knob] = calm_looks;
        return;
    }
    s->tried = (int32_t)knob + 1;
    s->tried_from = from;
    s->tried_stage = stage;
    s->tried_rate = l->rate[stage];
    s->judging = 0;
}

/* True while the last change is still being judged. */
static bool judge(leat_flow *f, const look *l)
{
    leat__sight *s = &f->sight;
    if (s->tried == 0) return false;
    leat_flow_knob knob = (leat_flow_knob)(s->tried - 1);
    s->judging++;
    if (l->items[s->tried_stage] < judge_items && s->judging < judge_looks) return true;
    s->tried = 0;
    double gain = s->tried_rate > 0 ? l->rate[s->tried_stage] / s->tried_rate - 1 : 1;
    if (gain >= worth_it || l->consumer < fed) {
        s->futile[knob] = 0;
        return false;
    }
    s->futile[knob] = LEAT_MIN(s->futile[knob] + 1, 5u);
    s->hold[knob] = 4u << s->futile[knob];
    if (!f->knobs[knob].pinned)
        set(f, knob, s->tried_from, " gained too little from the last change",
            f->stages[s->tried_stage].name, gain);
    return false;
}

static bool free_to_move(const leat_flow *f, leat_flow_knob knob)
{
    return !f->knobs[knob].pinned && f->sight.hold[knob] == 0;
}

static void relax(leat_flow *f, const look *l)
{
    leat__sight *s = &f->sight;
    uint32_t threads = f->knobs[LEAT_KNOB_THREADS].value;
    if (++s->calm < calm_looks || threads < 2 || !free_to_move(f, LEAT_KNOB_THREADS)) return;
    if (l->cpus >= (threads - 1) * busy_enough) return;
    s->calm = 0;
    set(f, LEAT_KNOB_THREADS, threads - 1, "the consumer does not wait; CPU workers busy", "",
        l->cpus / threads);
}

/* The most downstream stage that had tasks waiting while it could not take more. */
static bool widen(leat_flow *f, const look *l)
{
    leat__knob *k = f->knobs;
    uint32_t threads = k[LEAT_KNOB_THREADS].value, depth = k[LEAT_KNOB_IO_DEPTH].value;
    for (uint32_t i = f->stage_count; i-- > 1;) {
        const leat__stage *s = &f->stages[i];
        if (l->ready[i] < waiting_enough) continue;
        if (s->decl.lane == LEAT_LANE_CPU && l->cpus >= threads * busy_enough) {
            if (threads < f->pool->active && free_to_move(f, LEAT_KNOB_THREADS))
                try_out(f, LEAT_KNOB_THREADS, threads + LEAT_MAX(1, threads / 4), i, l,
                        " had tasks waiting", l->ready[i]);
            return true;
        }
        if (s->decl.lane == LEAT_LANE_IO && s->decl.parallel == 0 &&
            l->busy[i] >= depth * busy_enough) {
            if (depth < f->pool->lanes[LEAT_LANE_IO].max && free_to_move(f, LEAT_KNOB_IO_DEPTH))
                try_out(f, LEAT_KNOB_IO_DEPTH, depth + depth / 2 + 1, i, l,
                        " had tasks waiting", l->ready[i]);
            return true;
        }
        return true; /* a limit of its own: nothing to move here */
    }
    return false;
}

void leat__controller_step(leat_flow *f, uint64_t now)
{
    leat__sight *s = &f->sight;
    if (f->state != LEAT__FLOW_RUNNING || f->opts.fixed || now <= s->at_ns) return;
    look l;
    observe(f, now, &l);
    for (int k = 0; k < 3; k++)
        if (s->hold[k] > 0) s->hold[k]--;
    if (judge(f, &l)) return;
    if (l.consumer < fed) {
        relax(f, &l);
        return;
    }
    s->calm = 0;
    if (l.consumer < starving) return;
    if (l.blocked > waiting_enough) return; /* the budget is the limit, and it is hard */
    if (widen(f, &l)) return;
    uint32_t prefetch = f->knobs[LEAT_KNOB_PREFETCH].value;
    const leat__segment *last = &f->segments[f->segment_count - 1];
    bool can = last->end == LEAT__END_EXIT && prefetch <= last->mask / 2;
    if (can && free_to_move(f, LEAT_KNOB_PREFETCH))
        try_out(f, LEAT_KNOB_PREFETCH, prefetch * 2, f->stage_count - 1, &l,
                ": no stage had tasks waiting, the consumer did", l.consumer);
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
