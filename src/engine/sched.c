/* SPDX-License-Identifier: Apache-2.0
 *
 * The scheduler: decides which task a free worker takes, and handles finished tasks.
 *
 * A worker takes tasks of the flow with the least work done so far, from the flow's most downstream stage
 * with a task that fits (batch mode: the most upstream). Once a task was refused bytes or CPUs, stages
 * further upstream get none, so that results leave before new work enters. A refused task that is the flow's
 * senior (the first in serial order) may use the flow's floor. docs/internals/engine.md shows why that is
 * always enough.
 *
 * Called with the pool's lock held, except leat__sched_run.
 */
#include "engine/sched.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "engine/flow_meter.h"

static const uint64_t take_target_ns = 20000; /* work to take per lock hold */
static const double idle_credit_ns = 50e6;

static uint64_t active_milli(const leat_pool *p)
{
    return (uint64_t)p->active * 1000;
}

static bool is_ordered(const leat__stage *s)
{
    return s->decl.flags & LEAT_STAGE_ORDERED;
}

static bool source_may_run(const leat_flow *f, uint64_t now)
{
    return !f->source_ended && f->stages[0].running == 0 && now >= f->source_later_ns &&
           leat__segment_room(&f->segments[0]) > 0;
}

/* True when an expand parent may make more children. The first parent in order may when its last children
 * were passed on; others may have up to LEAT__KIDS_AHEAD children. */
static bool may_make_kids(const leat_flow *f, const leat__stage *s, const leat__node *n)
{
    const leat__segment *seg = &f->segments[s->segment];
    if (seg->low == n->pub.seq) return n->kids.count == 0;
    return n->kids.count + s->decl.count <= LEAT__KIDS_AHEAD;
}

/* Returns the task that stage s would run next, or NULL; always NULL for the source. */
static leat__node *candidate(const leat_flow *f, const leat__stage *s)
{
    if (is_ordered(s)) {
        leat__node *n = leat__segment_at(&f->segments[s->segment], s->turn);
        bool here = n && n->state == LEAT__NODE_READY && &f->stages[n->stage] == s;
        if (!here || (s->decl.kind == LEAT_STAGE_EXPAND && !may_make_kids(f, s, n))) return NULL;
        return n;
    }
    leat__node *n = s->ready.head;
    if (s->decl.kind == LEAT_STAGE_EXPAND)
        while (n && !may_make_kids(f, s, n)) n = n->next;
    return n;
}

static bool stage_has_task(const leat_flow *f, const leat__stage *s, uint64_t now)
{
    return s->decl.kind == LEAT_STAGE_SOURCE ? source_may_run(f, now) : candidate(f, s) != NULL;
}

/* Returns the first task in serial order (most downstream segment, lowest number) if it is ready; sets
 * *source when that is the next task from the source. */
static leat__node *senior_of(const leat_flow *f, bool *source)
{
    *source = false;
    if (f->out.count > 0) return NULL; /* the consumer must take a result first */
    for (uint32_t i = f->segment_count; i-- > 0;) {
        const leat__segment *seg = &f->segments[i];
        uint64_t low = LEAT_MAX(seg->low, seg->base);
        if (low == seg->next) continue;
        leat__node *n = leat__segment_at(seg, low);
        return n && n->state == LEAT__NODE_READY ? n : NULL;
    }
    *source = true;
    return NULL;
}

static uint64_t need_of(const leat__stage *s, const leat__node *n)
{
    if (s->decl.need) return s->decl.need(s->decl.cookie, n ? &n->pub : NULL);
    uint64_t children = s->decl.kind == LEAT_STAGE_EXPAND ? s->decl.count : 1;
    return s->scratch + children * s->out;
}

static uint64_t brought_by(const leat__node *n)
{
    uint64_t sum = n ? n->held : 0;
    for (uint32_t i = 0; n && i < n->pub.member_count; i++) sum += n->members[i]->held;
    return sum;
}

/* ---- Contexts: the state of one worker in one stage ------------------------------------- */

static int find_gpu(leat_pool *p, const leat__stage *s)
{
    uint32_t milli = (uint32_t)(s->decl.gpus * 1000 + 0.5);
    int best = -1;
    for (uint32_t g = 0; g < p->gpus; g++) {
        bool fits =
            milli ? p->gpu_milli_free[g] >= milli && (milli < 1000 || p->gpu_memory_free[g] == p->gpu_memory)
                  : p->gpu_memory_free[g] >= s->decl.gpu_memory && p->gpu_milli_free[g] > 0;
        if (fits && (best < 0 || p->gpu_memory_free[g] > p->gpu_memory_free[best])) best = (int)g;
    }
    return best;
}

static bool ctx_grant(leat_pool *p, leat_flow *f, leat__stage *s, leat__ctx *ctx)
{
    if (ctx->state != LEAT__CTX_NONE) return true;
    bool wants_gpu = s->decl.gpus > 0 || s->decl.gpu_memory > 0;
    int gpu = wants_gpu ? find_gpu(p, s) : -1;
    if (wants_gpu && gpu < 0) return false;
    /* The floor includes one worker per stage. */
    if (s->decl.ram > 0 &&
        !leat__budget_grant(f->budget, LEAT_BUDGET_SCRATCH, s->decl.ram, s->ctx_count == 0))
        return false;
    atomic_fetch_add(&f->charged, s->decl.ram);
    if (s->decl.ram > 0) leat__budget_allocated(f->budget, (int64_t)s->decl.ram);
    if (gpu >= 0) {
        LEAT_ASSERT(p->gpu_memory_free[gpu] >= s->decl.gpu_memory);
        p->gpu_milli_free[gpu] -= (uint32_t)(s->decl.gpus * 1000 + 0.5);
        p->gpu_memory_free[gpu] -= s->decl.gpu_memory;
    }
    ctx->gpu = (int16_t)gpu;
    ctx->state = LEAT__CTX_GRANTED;
    s->ctx_count++;
    return true;
}

void leat__sched_ctx_drop(leat_flow *f, leat__stage *s, leat__ctx *ctx)
{
    if (ctx->state == LEAT__CTX_NONE) return;
    LEAT_ASSERT(s->ctx_count > 0);
    if (ctx->gpu >= 0) {
        f->pool->gpu_milli_free[ctx->gpu] += (uint32_t)(s->decl.gpus * 1000 + 0.5);
        f->pool->gpu_memory_free[ctx->gpu] += s->decl.gpu_memory;
    }
    int64_t delta[LEAT_BUDGET_CATS] = {0};
    delta[LEAT_BUDGET_SCRATCH] = -(int64_t)s->decl.ram;
    atomic_fetch_sub(&f->charged, s->decl.ram);
    if (s->decl.ram > 0) leat__budget_allocated(f->budget, -(int64_t)s->decl.ram);
    if (leat__budget_apply(f->budget, delta)) f->tell_others = true;
    s->ctx_count--;
    *ctx = (leat__ctx){.gpu = -1};
}

/* ---- Taking ------------------------------------------------------------------------------ */

static void starve(leat_flow *f, leat__stage *s, uint64_t now)
{
    if (!s->starved) f->pool->stirred = true; /* batch mode: downstream tasks may now run */
    s->starved = true;
    s->starved_epoch = f->pool->epoch;
    if (f->blocked_since_ns == 0) f->blocked_since_ns = now;
}

static void unstarve(leat_flow *f, leat__stage *s, uint64_t now)
{
    LEAT_ASSERT(!s->starved || now >= f->blocked_since_ns);
    if (!s->starved) return;
    s->starved = false;
    for (uint32_t i = 0; i < f->stage_count; i++)
        if (f->stages[i].starved) return;
    f->blocked_ns += now - f->blocked_since_ns;
    f->blocked_since_ns = 0;
}

/* Fails a task whose bytes could never be granted, even alone, instead of waiting
 * indefinitely. */
static void fail_too_large(leat_flow *f, leat__stage *s, leat__node *n, uint64_t need, uint64_t now)
{
    leat_error err;
    uint64_t limit = leat__budget_limit(f->budget), total = brought_by(n) + need;
    int rc = total > limit
                 ? leat__fail(&err, LEAT_EBUDGET,
                              "%s: stage %s: a task needs %s, %s more than the "
                              "budget of %s",
                              f->name, s->name, leat__as_size(total).text, leat__as_size(total - limit).text,
                              leat__as_size(limit).text)
                 : leat__fail(&err, LEAT_EBUDGET,
                              "%s: stage %s: a task needs %s more while %s of the "
                              "budget of %s are held by tasks that wait for it: the "
                              "stages' bounds are too low",
                              f->name, s->name, leat__as_size(need).text,
                              leat__as_size(leat__budget_used(f->budget)).text, leat__as_size(limit).text);
    f->pool->stirred = true;
    if (!n) { /* the source failed: there is no task yet */
        leat__flow_fail(f, NULL, rc, NULL);
        f->error = err;
        return;
    }
    f->failed++;
    s->failed++;
    if (!is_ordered(s)) leat__list_remove(&s->ready, n);
    leat__node_fail(f, n, rc, &err);
    if (s->decl.kind == LEAT_STAGE_SINK) n->dropped = f->opts.on_error != LEAT_FLOW_FAIL;
    leat__node_forward(f, n, n->stage, now);
    leat__flow_advance(f, now);
}

typedef enum leat__granted { REFUSED, GRANTED, GRANTED_SENIOR, TOO_LARGE } granted;

/* Requests the bytes of *n (NULL: the source's next task). When only the senior may get them and
 * it waits at this stage, *n becomes the senior. */
static granted grant(leat_flow *f, leat__stage *s, leat__node **n, uint64_t *need, bool held_back)
{
    *need = need_of(s, *n);
    if (*need == 0) return GRANTED;
    uint64_t limit = leat__budget_limit(f->budget);
    if (*need > limit || brought_by(*n) > limit - *need) return TOO_LARGE;
    if (!held_back && leat__budget_grant(f->budget, LEAT_BUDGET_SCRATCH, *need, false)) return GRANTED;
    bool source;
    leat__node *senior = senior_of(f, &source);
    bool mine = s->decl.kind == LEAT_STAGE_SOURCE ? source : senior && &f->stages[senior->stage] == s;
    if (!mine) return REFUSED;
    *n = senior;
    *need = need_of(s, senior);
    if (leat__budget_grant(f->budget, LEAT_BUDGET_SCRATCH, *need, true)) return GRANTED_SENIOR;
    if (!f->reclaimed) { /* first free cached bytes: the thread that unlocks calls the keepers */
        f->pool->reclaims = f->pool->stirred = true;
        f->reclaim = LEAT_MAX(*need, UINT64_C(1));
        return REFUSED;
    }
    /* Nothing of this flow runs, the consumer holds nothing, no other user holds bytes that could be
     * released, and all its tasks wait for this one. So no bytes will ever become free. */
    bool hopeless = f->running == 0 && f->reaping == 0 && f->loans == 0 &&
                    leat__budget_hopeless(f->budget, atomic_load(&f->charged), *need);
    return hopeless ? TOO_LARGE : REFUSED;
}

static void start(leat_flow *f, leat__stage *s, leat__node *n, uint64_t need, uint64_t now)
{
    LEAT_ASSERT(n->state == LEAT__NODE_READY);
    LEAT_ASSERT(n->grant == 0);
    if (s->decl.kind != LEAT_STAGE_SOURCE) {
        s->wait_ns += now - n->since_ns;
        if (!is_ordered(s)) {
            leat__list_remove(&s->ready, n);
            if (s->ready.count == 0) s->ready_ns += now - s->ready_since_ns;
        }
    }
    n->state = LEAT__NODE_RUNNING;
    n->grant = need;
    n->since_ns = now;
    n->rc = 0;
    n->async = n->pending = n->early = false;
    atomic_fetch_add(&f->charged, need);
    f->moved_ns = now;
    s->running++;
    f->running++;
}

/* Returns how many tasks to take per lock hold: several short ones, but some are left for other workers. */
static uint32_t worth_taking(const leat_pool *p, const leat__stage *s)
{
    if (s->decl.lane != LEAT_LANE_CPU || s->items < 8 || s->answers_later) return 1;
    double n = (double)take_target_ns / (s->cost_ns + 1);
    uint32_t most = n >= LEAT__TAKE_MAX ? LEAT__TAKE_MAX : n < 1 ? 1 : (uint32_t)n;
    bool shareable = s->decl.kind != LEAT_STAGE_SOURCE && !is_ordered(s);
    if (shareable) most = LEAT_MIN(most, (s->ready.count + p->active - 1) / p->active);
    return LEAT_MAX(1, most);
}

static bool at_limit(const leat__stage *s)
{
    return s->workers + s->pending >= s->limit;
}

static bool cpu_fits(const leat_pool *p, const leat__stage *s)
{
    return p->cpu_milli_used == 0 || p->cpu_milli_used + s->cpu_milli <= active_milli(p);
}

static uint32_t take_stage(leat_pool *p, leat_flow *f, leat__stage *s, leat__worker *w, bool *held_back,
                           uint64_t now)
{
    LEAT_ASSERT(w->count == 0);
    LEAT_ASSERT(s->decl.lane == w->lane);
    if (!stage_has_task(f, s, now)) {
        unstarve(f, s, now);
        return 0;
    }
    if (at_limit(s)) return 0;
    if (!cpu_fits(p, s)) {
        *held_back = true;
        return 0;
    }
    if (!ctx_grant(p, f, s, &s->ctx[w->index])) return 0;
    uint32_t most = worth_taking(p, s);
    bool is_source = s->decl.kind == LEAT_STAGE_SOURCE;
    if (is_source && s->decl.need) most = 1; /* need() describes only the next task */
    if (s->decl.kind == LEAT_STAGE_EXPAND) most = 1;
    if (is_source) most = LEAT_MIN(most, leat__segment_room(&f->segments[0]));
    while (w->count < most && f->state == LEAT__FLOW_RUNNING) {
        leat__node *n = is_source ? NULL : candidate(f, s);
        if (!is_source && !n) break;
        uint64_t need;
        granted g = grant(f, s, &n, &need, *held_back);
        if (g == REFUSED) {
            if (w->count == 0) starve(f, s, now);
            *held_back = true;
            break;
        }
        if (g == TOO_LARGE) {
            fail_too_large(f, s, n, need, now);
            if (is_source) break;
            continue;
        }
        if (is_source && !(n = leat__node_new(f))) {
            int64_t delta[LEAT_BUDGET_CATS] = {0};
            delta[LEAT_BUDGET_SCRATCH] = -(int64_t)need;
            if (leat__budget_apply(f->budget, delta)) f->tell_others = true;
            leat__flow_fail(f, NULL, LEAT_ENOMEM, "out of memory for a task");
            break;
        }
        start(f, s, n, need, now);
        w->tasks[w->count++] = n;
        if (is_ordered(s)) s->turn++;
        if (g == GRANTED_SENIOR) break;
    }
    LEAT_ASSERT(w->count <= most);
    return w->count;
}

static uint32_t take_from(leat_pool *p, leat_flow *f, leat__worker *w, uint64_t now)
{
    if (f->state != LEAT__FLOW_RUNNING) return 0;
    if (w->lane == LEAT_LANE_CPU && f->busy[w->lane] >= f->knobs[LEAT_KNOB_THREADS].value) return 0;
    bool batch = f->opts.mode == LEAT_FLOW_BATCH, held_back = false;
    for (uint32_t i = 0; i < f->stage_count; i++) {
        leat__stage *s = &f->stages[batch ? i : f->stage_count - 1 - i];
        bool busy = s->running > 0;
        if (s->decl.lane == w->lane) {
            if (take_stage(p, f, s, w, &held_back, now) > 0) {
                unstarve(f, s, now);
                w->flow = f;
                w->stage = s;
                return w->count;
            }
        } else if (stage_has_task(f, s, now)) {
            if (s->starved) held_back = true;
            else busy = true;
        }
        /* Batch mode: upstream stages go first, unless they lack bytes. */
        if (batch && busy) return 0;
        if (batch) held_back = false;
    }
    return 0;
}

/* Waiting and ready times are differences of these times, so a time in the past would make them negative. */
static void advance_clock(leat_pool *p, uint64_t now)
{
    LEAT_ASSERT(now >= p->now_ns);
    p->now_ns = now;
}

/* Checks the invariants between two transitions. */
static void check_flow(const leat_flow *f)
{
    if (!LEAT_CHECKED) return;
    uint32_t running = 0, busy[LEAT_LANES] = {0};
    for (uint32_t i = 0; i < f->stage_count; i++) {
        const leat__stage *s = &f->stages[i];
        running += s->running;
        busy[s->decl.lane] += s->workers;
        LEAT_ASSERT(s->pending <= s->running);
        LEAT_ASSERT(s->ctx_count <= f->pool->lanes[s->decl.lane].max);
        LEAT_ASSERT((s->ready.count == 0) == (s->ready.head == NULL));
        LEAT_ASSERT(!is_ordered(s) || s->turn <= f->segments[s->segment].next);
    }
    LEAT_ASSERT(running == f->running);
    for (int lane = 0; lane < LEAT_LANES; lane++) LEAT_ASSERT(busy[lane] == f->busy[lane]);
    LEAT_ASSERT((int64_t)atomic_load(&f->charged) >= 0);
    LEAT_ASSERT(f->dirty >> f->segment_count == 0);
    LEAT_ASSERT(!f->source_ended || f->segments[0].closed);
}

static void check_pool(const leat_pool *p)
{
    if (!LEAT_CHECKED) return;
    uint64_t milli = 0;
    for (const leat_flow *f = p->flows; f; f = f->next)
        for (uint32_t i = 0; i < f->stage_count; i++)
            milli += (uint64_t)f->stages[i].workers * f->stages[i].cpu_milli;
    LEAT_ASSERT(milli == p->cpu_milli_used);
    LEAT_ASSERT(p->active <= p->lanes[LEAT_LANE_CPU].max);
    for (uint32_t g = 0; g < p->gpus; g++) {
        LEAT_ASSERT(p->gpu_milli_free[g] <= 1000);
        LEAT_ASSERT(p->gpu_memory_free[g] <= p->gpu_memory);
    }
}

uint32_t leat__sched_take(leat_pool *p, leat__worker *w, uint64_t now)
{
    LEAT_ASSERT(w->pool == p);
    LEAT_ASSERT(w->index < p->lanes[w->lane].max);
    advance_clock(p, now);
    w->count = 0;
    w->flow = NULL;
    if (w->lane == LEAT_LANE_CPU && w->index >= p->active) return 0;
    /* least served flow first, without those that have no work; a linear scan, as there are few flows */
    p->scan++;
    for (;;) {
        leat_flow *best = NULL;
        for (leat_flow *f = p->flows; f; f = f->next)
            if (f->scan != p->scan && (!best || f->vtime < best->vtime)) best = f;
        if (!best) return 0;
        best->scan = p->scan;
        if (take_from(p, best, w, now) > 0) break;
    }
    leat_flow *f = w->flow;
    w->started_ns = now;
    w->setup_rc = 0;
    w->charged_vtime = (w->stage->cost_ns + 1) * w->count;
    /* An idle flow gets only a small credit for the time it was idle. */
    f->vtime = LEAT_MAX(f->vtime, p->vclock - idle_credit_ns) + w->charged_vtime;
    p->vclock = LEAT_MAX(p->vclock, f->vtime - w->charged_vtime);
    f->busy[w->lane]++;
    w->stage->workers++;
    p->cpu_milli_used += w->stage->cpu_milli;
    check_flow(f);
    check_pool(p);
    return w->count;
}

bool leat__sched_has_work(leat_pool *p, leat_lane lane, uint64_t now)
{
    for (const leat_flow *f = p->flows; f; f = f->next) {
        if (f->state != LEAT__FLOW_RUNNING) continue;
        if (lane == LEAT_LANE_CPU && f->busy[lane] >= f->knobs[LEAT_KNOB_THREADS].value) continue;
        for (uint32_t i = 0; i < f->stage_count; i++) {
            const leat__stage *s = &f->stages[i];
            if (s->decl.lane != lane || at_limit(s) || !cpu_fits(p, s)) continue;
            if (s->starved && s->starved_epoch == p->epoch) continue;
            if (stage_has_task(f, s, now)) return true;
        }
    }
    return false;
}

bool leat__sched_scarce(const leat_pool *p, leat_lane lane)
{
    for (const leat_flow *f = p->flows; f; f = f->next) {
        if (f->state != LEAT__FLOW_RUNNING) continue;
        for (uint32_t i = 0; i < f->stage_count; i++) {
            const leat__stage *s = &f->stages[i];
            bool needs = s->decl.ram > 0 || s->decl.gpus > 0 || s->decl.gpu_memory > 0;
            if (s->decl.lane == lane && needs && s->ctx_count < p->lanes[lane].started) return true;
        }
    }
    return false;
}

uint64_t leat__sched_next_timer(leat_pool *p, leat_lane lane)
{
    uint64_t at = UINT64_MAX;
    for (const leat_flow *f = p->flows; f; f = f->next)
        if (f->state == LEAT__FLOW_RUNNING && f->source_later_ns && !f->source_ended &&
            f->stages[0].decl.lane == lane)
            at = LEAT_MIN(at, f->source_later_ns);
    return at;
}

/* ---- Running: without the lock ----------------------------------------------------------- */

static int call(leat_flow *f, leat__stage *s, leat__ctx *ctx, leat__node *n, leat_error *err)
{
    if (!f->opts.contain_crashes) return s->decl.process(s->decl.cookie, ctx->ptr, &n->pub, err);
    bool crashed = false;
    int rc = leat__contain_call(s, ctx->ptr, &n->pub, &crashed, err);
    if (crashed) {
        /* After a fault in the op, neither its context nor the payload can be trusted. */
        ctx->state = LEAT__CTX_GRANTED;
        ctx->ptr = NULL;
        n->pub.release = NULL;
        n->pub.data = NULL;
    }
    return rc;
}

static bool set_up(leat__worker *w)
{
    leat__ctx *ctx = &w->stage->ctx[w->index];
    if (ctx->state == LEAT__CTX_READY) return true;
    if (w->stage->decl.setup) {
        const leat__placement *at = w->lane == LEAT_LANE_CPU ? w->pool->placement : NULL;
        leat_worker who = {.index = w->index,
                           .gpu = ctx->gpu,
                           .lane = w->lane,
                           .flow = w->flow,
                           .node = at ? (int32_t)at->nodes[w->place].id : -1};
        leat__error_reset(&w->setup_error);
        w->setup_rc = w->stage->decl.setup(w->stage->decl.cookie, &who, &ctx->ptr, &w->setup_error);
        if (w->setup_rc < 0) return false;
    }
    ctx->state = LEAT__CTX_READY;
    return true;
}

static bool is_answer(const leat__stage *s, int rc)
{
    switch (rc) {
    case LEAT_FLOW_END:
    case LEAT_FLOW_LATER: return s->decl.kind == LEAT_STAGE_SOURCE;
    case LEAT_FLOW_MORE: return s->decl.kind == LEAT_STAGE_EXPAND;
    case LEAT_FLOW_PENDING: return s->decl.kind == LEAT_STAGE_MAP || s->decl.kind == LEAT_STAGE_SINK;
    case LEAT_FLOW_DROP: return s->decl.kind == LEAT_STAGE_MAP;
    default: return rc <= 0;
    }
}

void leat__sched_run(leat__worker *w)
{
    LEAT_ASSERT(w->count > 0 && w->count <= LEAT__TAKE_MAX);
    LEAT_ASSERT(w->stage->ctx[w->index].state != LEAT__CTX_NONE);
    leat_flow *f = w->flow;
    leat__stage *s = w->stage;
    leat__ctx *ctx = &s->ctx[w->index];
    leat_error err;
    bool over = false; /* the source has no task for now */
    for (uint32_t i = 0; i < w->count; i++) {
        leat__node *n = w->tasks[i];
        if (over || atomic_load_explicit(&f->stop, memory_order_relaxed) ||
            (ctx->state != LEAT__CTX_READY && !set_up(w))) {
            n->rc = over ? LEAT_FLOW_LATER : LEAT_ECANCELED;
            continue;
        }
        err.code = 0;
        int rc = call(f, s, ctx, n, &err);
        if (!is_answer(s, rc))
            rc = leat__fail(&err, LEAT_EINTERNAL, "%s: stage %s returned %d, which is not a valid code",
                            f->name, s->name, rc);
        if (rc == LEAT_FLOW_PENDING) {
            n->async = true;
            continue;
        }
        n->rc = rc;
        leat__node_audit(s, n, &err);
        if (n->rc < 0) leat__node_fail(f, n, n->rc, &err);
        over = rc == LEAT_FLOW_END || rc == LEAT_FLOW_LATER;
    }
}

/* ---- Settling ----------------------------------------------------------------------------- */

static void learn(leat_flow *f, leat__stage *s, uint64_t holds, bool beyond)
{
    s->bytes += holds;
    s->bytes_max = LEAT_MAX(s->bytes_max, holds);
    if (!beyond) return;
    f->overruns++;
    if (holds <= s->out) return;
    s->out = holds;
    leat__sched_bounds(f);
    uint64_t floor = leat__sched_floor(f);
    if (floor > f->floor && leat__budget_floor(f->budget, f->floor, floor, f->name, NULL) == 0)
        f->floor = floor;
}

/* Converts the bytes granted to n into bytes held by n. */
static void settle_bytes(leat_flow *f, leat__stage *s, leat__node *n, int64_t delta[LEAT_BUDGET_CATS])
{
    uint64_t asked = s->scratch + s->out * LEAT_MAX(1, s->decl.count);
    bool beyond = !s->decl.need && n->grant > asked;
    delta[LEAT_BUDGET_SCRATCH] -= (int64_t)n->grant;
    delta[n->cat] -= (int64_t)n->held;
    n->grant = 0;
    for (uint32_t i = 0; i < n->pub.member_count; i++) {
        leat__node *m = n->members[i];
        delta[m->cat] += (int64_t)m->pub.bytes - (int64_t)m->held;
        m->held = m->pub.bytes;
    }
    for (leat__node *kid; (kid = leat__list_pop(&n->fresh));) {
        leat__list_push(&n->kids, kid);
        kid->held = kid->pub.bytes;
        kid->cat = (uint8_t)s->decl.category;
        delta[kid->cat] += (int64_t)kid->held;
        learn(f, s, kid->held, beyond);
        beyond = false;
    }
    n->fresh_bytes = 0;
    if (s->decl.kind != LEAT_STAGE_EXPAND) {
        if (n->pub.bytes != n->held || n->held == 0) n->cat = (uint8_t)s->decl.category;
        learn(f, s, n->pub.bytes, beyond);
    }
    n->held = n->pub.bytes;
    delta[n->cat] += (int64_t)n->held;
}

static void bury_members(leat_flow *f, leat__node *n)
{
    for (uint32_t i = 0; i < n->pub.member_count; i++) leat__node_bury(f, n->members[i]);
    leat__free(n->members);
    n->members = NULL;
    n->pub.members = NULL;
    n->pub.member_count = 0;
}

static void settle_source(leat_flow *f, leat__node *n, uint64_t now)
{
    LEAT_ASSERT(n->segment == 0 && n->stage == 0);
    leat__stage *s = &f->stages[0];
    if (n->rc == LEAT_FLOW_END) {
        f->source_ended = true;
        f->segments[0].closed = true;
        f->dirty |= 1;
    } else if (n->rc == LEAT_FLOW_LATER) {
        if (!f->source_ended) f->source_later_ns = now + LEAT__LATER_MS * LEAT_NS_PER_MS;
    }
    if (n->rc > 0 || (n->rc == LEAT_ECANCELED && atomic_load(&f->stop))) {
        leat__node_bury(f, n);
        return;
    }
    f->source_later_ns = 0;
    if (n->rc < 0) { /* a source that is called again after an error might never end */
        n->fatal = true;
        f->source_ended = true;
        f->segments[0].closed = true;
    }
    s->items++;
    leat__segment_enter(f, 0, n, now);
}

static void count_failure(leat_flow *f, leat__stage *s, const leat__node *n)
{
    s->failed++;
    f->failed++;
    bool counts = f->opts.on_error != LEAT_FLOW_FAIL && f->opts.max_errors > 0;
    if (counts && f->failed > f->opts.max_errors) leat__flow_fail(f, n, n->rc, NULL);
}

/* Handles one task that came back from process() or leat_task_done. */
static void settle_one(leat_flow *f, leat__stage *s, leat__node *n, int64_t delta[LEAT_BUDGET_CATS],
                       uint64_t now)
{
    LEAT_ASSERT(n->state == LEAT__NODE_RUNNING);
    LEAT_ASSERT(s->running > 0 && f->running > 0);
    s->running--;
    f->running--;
    settle_bytes(f, s, n, delta);
    LEAT_ASSERT(n->grant == 0 && n->held == n->pub.bytes);
    bool canceled = n->rc == LEAT_ECANCELED && atomic_load(&f->stop);
    if (n->rc < 0 && !canceled) count_failure(f, s, n);
    if (s->decl.kind == LEAT_STAGE_SOURCE) {
        settle_source(f, n, now);
        return;
    }
    if (canceled || f->state != LEAT__FLOW_RUNNING) {
        n->state = LEAT__NODE_ARRIVED; /* the task keeps its slot until the flow is closed */
        return;
    }
    if (s->decl.kind == LEAT_STAGE_GATHER) bury_members(f, n);
    if (n->rc == LEAT_FLOW_MORE) {
        if (is_ordered(s)) s->turn = n->pub.seq;
        leat__node_forward(f, n, n->stage, now);
        return;
    }
    s->items++;
    if (n->rc == LEAT_FLOW_DROP) {
        n->dropped = true;
        s->dropped++;
        f->dropped++;
    }
    bool gone_wrong_last =
        n->rc < 0 && s->decl.kind == LEAT_STAGE_SINK && f->opts.on_error == LEAT_FLOW_GIVE_BACK;
    if (gone_wrong_last) n->dropped = true; /* the sink has already processed it */
    leat__node_forward(f, n, n->stage + 1u, now);
}

static void finish(leat_flow *f, const int64_t delta[LEAT_BUDGET_CATS], uint64_t now)
{
    int64_t sum = 0;
    bool any = false;
    for (int c = 0; c < LEAT_BUDGET_CATS; c++) {
        sum += delta[c];
        any |= delta[c] != 0;
    }
    if (any) {
        atomic_fetch_sub(&f->charged, (uint64_t)-sum);
        /* This pool scans again anyway; other pools with the same budget must be notified. */
        if (leat__budget_apply(f->budget, delta)) f->tell_others = true;
    }
    f->reclaimed = false;
    f->pool->epoch++;
    leat__flow_advance(f, now);
    check_flow(f);
    LEAT_ASSERT(f->dirty == 0);
    if (f->running == 0 && f->closing) leat__bell_ring(f->changed);
}

void leat__sched_settle(leat_pool *p, leat__worker *w, uint64_t ended, uint64_t now)
{
    LEAT_ASSERT(w->count > 0);
    LEAT_ASSERT(w->stage->workers > 0 && w->flow->busy[w->lane] > 0);
    LEAT_ASSERT(p->cpu_milli_used >= w->stage->cpu_milli);
    LEAT_ASSERT(ended >= w->started_ns);
    leat_flow *f = w->flow;
    leat__stage *s = w->stage;
    int64_t delta[LEAT_BUDGET_CATS] = {0};
    uint64_t busy = ended - w->started_ns;
    advance_clock(p, now);
    double each = (double)busy / w->count;
    s->busy_ns += busy;
    s->cost_ns = s->items < 8 ? each : s->cost_ns + (each - s->cost_ns) / 8;
    f->vtime += (double)busy - w->charged_vtime;
    f->busy[w->lane]--;
    s->workers--;
    p->cpu_milli_used -= s->cpu_milli;
    if (w->setup_rc < 0) {
        leat__flow_fail(f, NULL, w->setup_rc, "setup failed");
        if (w->setup_error.code) f->error = w->setup_error;
        leat__sched_ctx_drop(f, s, &s->ctx[w->index]);
    }
    for (uint32_t i = 0; i < w->count; i++) {
        leat__node *n = w->tasks[i];
        if (n->async && !n->early) {
            n->pending = true;
            s->pending++;
            s->answers_later = true;
            continue;
        }
        settle_one(f, s, n, delta, now);
    }
    w->count = 0;
    w->flow = NULL;
    finish(f, delta, now);
    check_pool(p);
    leat__flow_meters_settled(f, s);
}

void leat__sched_settle_pending(leat__node *n, uint64_t now)
{
    LEAT_ASSERT(n->pending && n->state == LEAT__NODE_RUNNING);
    LEAT_ASSERT(n->flow->stages[n->stage].pending > 0);
    leat_flow *f = n->flow;
    leat__stage *s = &f->stages[n->stage];
    int64_t delta[LEAT_BUDGET_CATS] = {0};
    s->busy_ns += now - n->since_ns;
    s->pending--;
    settle_one(f, s, n, delta, now);
    finish(f, delta, now);
    leat__flow_meters_settled(f, s);
}

/* ---- The floor ----------------------------------------------------------------------------- */

static uint64_t sat_add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return leat__add_u64(a, b, &sum) ? sum : UINT64_MAX;
}

static uint64_t sat_mul(uint64_t a, uint64_t b)
{
    uint64_t product;
    return leat__mul_u64(a, b, &product) ? product : UINT64_MAX;
}

/* Computes the maximum bytes that a task may hold when it enters each stage, from the outputs of the earlier
 * stages. Failed tasks that are returned to the consumer still hold their bytes. */
void leat__sched_bounds(leat_flow *f)
{
    uint64_t held = 0, most = 0;
    bool keeps_failed = f->opts.on_error == LEAT_FLOW_GIVE_BACK;
    for (uint32_t i = 0; i < f->stage_count; i++) {
        leat__stage *s = &f->stages[i];
        if (s->decl.kind == LEAT_STAGE_GATHER) {
            uint64_t one = keeps_failed ? most : held;
            held = s->decl.bytes_in ? s->decl.bytes_in : sat_mul(one, s->decl.count);
        }
        most = LEAT_MAX(most, held);
        s->in_bound = keeps_failed && s->decl.kind == LEAT_STAGE_SINK ? most : held;
        if (s->out > 0) held = s->out;
        most = LEAT_MAX(most, held);
    }
    f->out_bound = keeps_failed ? most : held;
}

/* Computes the bytes the flow needs to run one task at a time: the largest step, plus the bytes held in
 * groups, in half-expanded parents and by the consumer, plus one worker per stage. */
uint64_t leat__sched_floor(const leat_flow *f)
{
    LEAT_ASSERT(f->stage_count > 0);
    uint64_t step = 0, waits = 0;
    for (uint32_t i = 0; i < f->stage_count; i++) {
        const leat__stage *s = &f->stages[i];
        bool expands = s->decl.kind == LEAT_STAGE_EXPAND;
        uint64_t out = sat_mul(s->out, expands ? s->decl.count : 1);
        step = LEAT_MAX(step, sat_add(s->in_bound, sat_add(s->scratch, out)));
        waits = sat_add(waits, s->decl.ram);
        if (s->decl.kind == LEAT_STAGE_GATHER) waits = sat_add(waits, s->in_bound);
        if (expands) waits = sat_add(waits, sat_add(s->in_bound, out));
    }
    bool pulled = f->stages[f->stage_count - 1].decl.kind != LEAT_STAGE_SINK;
    if (pulled) waits = sat_add(waits, sat_mul(f->out_bound, f->opts.loans));
    return sat_add(step, waits);
}
