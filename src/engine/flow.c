/* SPDX-License-Identifier: Apache-2.0
 *
 * The public functions of a flow: building, starting, taking results, cancelling, closing, statistics. Owns
 * the flow; while it runs, the scheduler does the work.
 *
 * Any thread may call them, except open, add, start and close, which are only for the owner.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sized.h"
#include "base/str.h"
#include "engine/flow_window.h"
#include "engine/controller.h"
#include "engine/flow_meter.h"
#include "engine/replay.h"
#include "engine/sched.h"
#include "engine/tuner.h"

/* How long a consumer that holds all memory waits before it gets an error. */
static const uint64_t loan_patience_ns = 10 * LEAT_NS_PER_S;
/* On a busy machine, workers need up to this long to notice free bytes. */
static const uint64_t scan_ns = LEAT_NS_PER_S / 2;
static const uint32_t drain_at_once = 1024;

void leat_flow_opts_init_sized(leat_flow_opts *opts, uint32_t struct_size)
{
    leat__sized_init(opts, struct_size);
}

void leat_stage_init_sized(leat_stage *stage, uint32_t struct_size)
{
    leat__sized_init(stage, struct_size);
}

static bool forked(const leat_flow *f)
{
    return f->fork_generation != leat__fork_generation();
}

static int check_fork(const leat_flow *f, leat_error *err)
{
    if (!forked(f)) return 0;
    return leat__fail(err, LEAT_EFORK, "%s: opened before the process forked; open it again in the child",
                      f->name);
}

/* ---- Building ------------------------------------------------------------------------------ */

int leat_flow_open(leat_flow **flow, const leat_flow_opts *opts, leat_error *err)
{
    int rc = 0;
    LEAT_REQUIRE(flow != NULL, err);
    *flow = NULL;
    leat_flow *f = LEAT_NEW(ENGINE, leat_flow);
    if (!f) return leat__fail_nomem(err, sizeof *f, "a flow");
    leat_flow_opts_init(&f->opts);
    if (opts) memcpy(&f->opts, opts, LEAT_MIN(opts->struct_size, sizeof f->opts));
    leat__mutex_init(&f->lending);
    f->changed = &f->own_bell;
    f->interrupted = &f->own_interrupted;
    atomic_init(&f->refs, 1);
    f->fork_generation = leat__fork_generation();
    f->tuner = f->opts.tuner;
    snprintf(f->name, sizeof f->name, "%s", f->opts.name ? f->opts.name : "flow");
    f->opts.name = f->name;
    if (f->opts.loans == 0) f->opts.loans = 2;
    f->stages = LEAT_NEW_ARRAY(ENGINE, leat__stage, LEAT__STAGES_MAX);
    if (!f->stages) {
        rc = leat__fail_nomem(err, LEAT__STAGES_MAX * sizeof *f->stages, "a flow's stages");
        goto out;
    }
    if (f->opts.budget) {
        f->budget = f->opts.budget;
        leat__budget_ref(f->budget);
    } else {
        LEAT_GO(rc, out, leat_budget_open(&f->budget, 0, err));
    }
    if (f->opts.pool) {
        f->pool = f->opts.pool;
        leat__pool_ref(f->pool);
    } else {
        LEAT_GO(rc, out, leat_pool_shared(&f->pool, err));
    }
    if (f->opts.contain_crashes) LEAT_GO(rc, out, leat__contain_install(err));
    *flow = f;
    f = NULL;
out:
    leat_flow_close(&f);
    return rc;
}

static int check_stage(const leat_flow *f, const leat_stage *s, leat_error *err)
{
    const char *name = s->name ? s->name : "?";
    uint32_t n = f->stage_count;
    const char *wrong = NULL;
    if (f->state != LEAT__FLOW_OPEN)
        return leat__fail(err, LEAT_ESTATE, "%s: stage %s: the flow has started", f->name, name);
    if (n == LEAT__STAGES_MAX)
        return leat__fail(err, LEAT_ELIMIT, "%s: more than %d stages", f->name, LEAT__STAGES_MAX);
    if (!s->name || !s->name[0]) wrong = "has no name";
    else if (!s->process) wrong = "has no process()";
    else if (s->kind < LEAT_STAGE_SOURCE || s->kind > LEAT_STAGE_SINK) wrong = "has an unknown kind";
    else if ((n == 0) != (s->kind == LEAT_STAGE_SOURCE))
        wrong = n == 0 ? "is first and must be a source" : "is a source but not first";
    else if (n > 0 && f->stages[n - 1].decl.kind == LEAT_STAGE_SINK) wrong = "comes after a sink";
    else if (s->gpus > 0 && s->gpu_memory > 0)
        wrong = "asks for gpus (whole devices or parts) and gpu_memory (bytes of a shared "
                "device): give one of them";
    else if (s->cpus < 0 || s->gpus < 0 || s->cpus > 1e6 || s->gpus > 1)
        wrong = "asks for a number of CPUs or GPUs out of range (gpus: up to 1 per worker)";
    else if (s->kind == LEAT_STAGE_GATHER && s->count == 0) wrong = "gathers groups of 0";
    else if ((s->kind == LEAT_STAGE_GATHER || s->kind == LEAT_STAGE_EXPAND) && s->count > (1u << 20))
        wrong = "has a count above 1048576";
    else if ((unsigned)s->lane >= LEAT_LANES || (unsigned)s->category >= LEAT_BUDGET_CATS)
        wrong = "names an unknown lane or category";
    if (wrong) return leat__fail(err, LEAT_EINVAL, "%s: stage %s %s", f->name, name, wrong);
    return 0;
}

int leat_flow_add(leat_flow *f, const leat_stage *stage, leat_error *err)
{
    leat_stage decl;
    LEAT_REQUIRE(f != NULL && stage != NULL, err);
    leat_stage_init(&decl);
    memcpy(&decl, stage, LEAT_MIN(stage->struct_size, sizeof decl));
    LEAT_TRY(check_stage(f, &decl, err));
    leat__stage *s = &f->stages[f->stage_count];
    snprintf(s->name, sizeof s->name, "%s", decl.name);
    decl.name = s->name;
    if (decl.kind == LEAT_STAGE_SOURCE) decl.flags &= ~(uint32_t)LEAT_STAGE_ORDERED;
    if (decl.kind == LEAT_STAGE_EXPAND && decl.count == 0) decl.count = 1;
    s->decl = decl;
    s->scratch = decl.scratch;
    s->out = decl.bytes_out;
    double cpus = decl.cpus > 0 ? decl.cpus : decl.lane == LEAT_LANE_CPU ? 1 : 0;
    s->cpu_milli = (uint32_t)(cpus * 1000 + 0.5);
    uint32_t workers = f->pool->lanes[decl.lane].max;
    s->ctx = LEAT_NEW_ARRAY(ENGINE, leat__ctx, workers);
    if (!s->ctx) return leat__fail_nomem(err, workers * sizeof *s->ctx, "a stage's workers");
    for (uint32_t i = 0; i < workers; i++) s->ctx[i].gpu = -1;
    LEAT_ASSERT(f->stage_count < LEAT__STAGES_MAX);
    f->stage_count++;
    return 0;
}

/* ---- Starting ------------------------------------------------------------------------------- */

static int check_gpus(const leat_flow *f, leat_error *err)
{
    for (uint32_t i = 0; i < f->stage_count; i++) {
        const leat_stage *d = &f->stages[i].decl;
        if (d->gpus > 0 && f->pool->gpus == 0)
            return leat__fail(err, LEAT_EINVAL, "%s: stage %s needs %g GPUs, the pool has none", f->name,
                              d->name, d->gpus);
        if (d->gpu_memory > 0 && (f->pool->gpus == 0 || d->gpu_memory > f->pool->gpu_memory))
            return leat__fail(err, LEAT_EINVAL, "%s: stage %s needs %s on a GPU, the pool offers %s", f->name,
                              d->name, leat__as_size(d->gpu_memory).text,
                              leat__as_size(f->pool->gpus ? f->pool->gpu_memory : 0).text);
    }
    return 0;
}

static bool uses_lane(const leat_flow *f, leat_lane lane)
{
    for (uint32_t i = 0; i < f->stage_count; i++)
        if (f->stages[i].decl.lane == lane) return true;
    return false;
}

static void first_knobs(leat_flow *f)
{
    leat__knob *knobs = f->knobs;
    const leat_flow_opts *o = &f->opts;
    uint32_t cpus = f->pool->lanes[LEAT_LANE_CPU].max, io = f->pool->lanes[LEAT_LANE_IO].max;
    knobs[LEAT_KNOB_THREADS] = (leat__knob){o->threads ? LEAT_MIN(o->threads, cpus) : cpus, o->threads > 0};
    /* may exceed the lane's threads, for stages that complete asynchronously */
    uint32_t depth = o->io_depth_first ? o->io_depth_first : LEAT_MIN(LEAT__DEPTH_FIRST, io);
    if (o->io_depth_max) depth = LEAT_MIN(depth, o->io_depth_max);
    knobs[LEAT_KNOB_IO_DEPTH] = (leat__knob){o->io_depth ? o->io_depth : depth, o->io_depth > 0};
    knobs[LEAT_KNOB_PREFETCH] = (leat__knob){o->prefetch, o->prefetch > 0};
    if (f->tuner) leat__tuner_recall(f);
}

static uint32_t parallel_of(const leat_flow *f)
{
    uint32_t most = 0;
    for (int i = 0; i < LEAT_LANES; i++)
        if (uses_lane(f, (leat_lane)i)) most += f->pool->lanes[i].max;
    return most;
}

int leat_flow_start(leat_flow *f, leat_error *err)
{
    LEAT_REQUIRE(f != NULL, err);
    LEAT_TRY(check_fork(f, err));
    if (f->state != LEAT__FLOW_OPEN) return leat__fail(err, LEAT_ESTATE, "%s: already started", f->name);
    if (f->stage_count == 0)
        return leat__fail(err, LEAT_EINVAL, "%s: a flow needs at least a source", f->name);
    LEAT_TRY(check_gpus(f, err));
    first_knobs(f);
    if (!f->segments) LEAT_TRY(leat__segments_build(f, parallel_of(f), err));
    uint32_t ahead = f->opts.prefetch_first ? f->opts.prefetch_first : LEAT__PREFETCH_FIRST;
    if (f->knobs[LEAT_KNOB_PREFETCH].value == 0)
        f->knobs[LEAT_KNOB_PREFETCH].value = f->segment_count == 1 ? f->segments[0].window : ahead;
    leat__knobs_apply(f);
    leat__sched_bounds(f);
    uint64_t floor = leat__sched_floor(f);
    LEAT_TRY(leat__budget_take_floor(f->budget, f->floor, floor, f->name, err));
    f->floor = floor;
    if (!f->listener.freed) {
        f->listener = (leat__budget_listener){.freed = leat__pool_freed, .arg = f->pool};
        leat__budget_listen(f->budget, &f->listener);
    }
    LEAT_TRY(leat__flow_meters_open(f, err));
    return leat__pool_attach(f->pool, f, err);
}

/* ---- Taking results --------------------------------------------------------------------------------- */

/* True when nothing runs and a task waits for bytes that the consumer or another user of the
 * budget holds. */
static bool starved_of_bytes(const leat_flow *f)
{
    if (f->running > 0) return false;
    for (uint32_t i = 0; i < f->stage_count; i++)
        if (f->stages[i].starved) return true;
    return false;
}

static int fail_starved(const leat_flow *f, leat_error *err)
{
    if (f->loans == 0)
        return leat__fail(err, LEAT_EBUDGET,
                          "%s: cannot continue: %s of the budget's %s are held by "
                          "others that share it",
                          f->name,
                          leat__as_size(leat__budget_used(f->budget) - atomic_load(&f->charged)).text,
                          leat__as_size(leat__budget_limit(f->budget)).text);
    const uint64_t used = leat__budget_used(f->budget), charged = atomic_load(&f->charged);
    const leat__size_text others = leat__as_size(used > charged ? used - charged : 0);
    return leat__fail(
        err, LEAT_EBUDGET,
        "%s: your program keeps %llu%s %s (%s of the budget of %s%s%s): release some, or raise `memory`",
        f->name, (unsigned long long)f->loans, f->loans == 1 ? " of the" : "",
        f->results_name != NULL ? f->results_name : "results", leat__as_size(f->loan_bytes).text,
        leat__as_size(leat__budget_limit(f->budget)).text,
        used > charged ? "; earlier ones and others that share it hold " : "",
        used > charged ? others.text : "");
}

static leat__node *lend_locked(leat_flow *f)
{
    leat__node *n = leat__list_pop(&f->out);
    if (!n) return NULL;
    LEAT_ASSERT(n->state == LEAT__NODE_OUT);
    leat__segment_leave(f, n);
    n->state = LEAT__NODE_LOAN;
    f->loans++;
    f->loan_bytes += n->held;
    f->results++;
    atomic_fetch_add(&f->refs, 1);
    return n;
}

/* Decides whether to stop waiting: 0 = continue, else the return code. */
static int verdict_locked(leat_flow *f, bool *over, leat_error *err)
{
    *over = true;
    if (atomic_exchange(f->interrupted, false)) {
        return leat__fail(err, LEAT_EAGAIN, "%s: interrupted", f->name);
    }
    switch (f->state) {
    case LEAT__FLOW_OPEN: return leat__fail(err, LEAT_ESTATE, "%s: not started", f->name);
    case LEAT__FLOW_CANCELED: return leat__fail(err, LEAT_ECANCELED, "%s: canceled", f->name);
    case LEAT__FLOW_FAILED:
        if (f->out.count > 0) break;
        if (err) *err = f->error;
        return f->error.code;
    case LEAT__FLOW_ENDED: return 0;
    case LEAT__FLOW_RUNNING: break;
    }
    *over = false;
    return 0;
}

/* True when tasks wait for bytes, none runs, and none has moved for `ns`. */
static bool is_stuck(const leat_flow *f, uint64_t ns)
{
    const uint64_t now = leat__clock_ns();
    return starved_of_bytes(f) && now - LEAT_MIN(f->moved_ns, now) >= ns;
}

/* Tries refused requests again: a cache may now release bytes that were in use at the last attempt. */
static void retry_locked(leat_flow *f)
{
    f->reclaimed = false;
    f->pool->epoch++;
    leat__pool_unlock(f->pool); /* wakes workers */
    leat__pool_lock(f->pool);
}

/* Waits until `until` for a change since `seen`; returns 0, or the reason why waiting is useless. */
static int await_locked(leat_flow *f, uint32_t seen, uint64_t begin, uint64_t until, leat_error *err)
{
    leat_pool *p = f->pool;
    if (p->replay) {
        leat__pool_unlock(p);
        bool moved = leat__replay_step(p);
        leat__pool_lock(p);
        /* a scan that found no work may have failed the flow */
        if (moved || f->state != LEAT__FLOW_RUNNING) return 0;
        if (f->loans > 0 && starved_of_bytes(f)) return fail_starved(f, err);
        return leat__fail(err, LEAT_EINTERNAL, "%s: deadlock: no worker can make progress", f->name);
    }
    const uint64_t patience = LEAT_MIN(until, begin + loan_patience_ns);
    if (f->waiters++ == 0) f->wait_since_ns = begin;
    bool changed =
        leat__bell_wait_until(f->changed, seen, &p->lock, LEAT_MIN(until, leat__clock_ns() + scan_ns));
    const uint64_t now = leat__clock_ns();
    bool stuck = !changed && is_stuck(f, scan_ns);
    if (stuck) {
        retry_locked(f);
        changed = leat__bell_wait_until(f->changed, seen, &p->lock, leat__clock_ns() + scan_ns);
        stuck = !changed && now >= patience && is_stuck(f, f->loans > 0 ? scan_ns : loan_patience_ns);
    }
    f->waiters--;
    if (stuck) return fail_starved(f, err);
    return changed || now < until ? 0 : LEAT_ETIMEDOUT;
}

int leat_flow_next(leat_flow *f, leat_task **task, int64_t timeout_ms, leat_error *err)
{
    LEAT_REQUIRE(task != NULL, err);
    *task = NULL;
    LEAT_REQUIRE(f != NULL, err);
    LEAT_TRY(check_fork(f, err));
    leat_pool *p = f->pool;
    uint64_t begin = leat__pool_now(p), until = leat__clock_deadline(begin, timeout_ms);
    leat__pool_lock(p);
    int rc = 0;
    for (bool over = false;;) {
        uint32_t seen = leat__bell_rings(f->changed);
        rc = verdict_locked(f, &over, err);
        leat__node *n = over ? NULL : lend_locked(f);
        if (n) {
            *task = &n->pub;
            leat__flow_advance(f, leat__pool_now(p));
            p->epoch++; /* with an empty output queue the senior may use the floor: retry refused requests */
        }
        if (over || n) break;
        rc = await_locked(f, seen, begin, until, err);
        if (rc == 0) continue;
        /* A result may have arrived just when the time ended. */
        if (rc == LEAT_ETIMEDOUT && (f->out.count > 0 || f->state != LEAT__FLOW_RUNNING)) continue;
        if (rc == LEAT_ETIMEDOUT)
            leat__fail(err, rc, "%s: no result within %lld ms", f->name, (long long)timeout_ms);
        break;
    }
    f->consumer_wait_ns += leat__pool_now(p) - begin;
    leat__pool_unlock(p);
    return rc;
}

int leat_flow_wait(leat_flow *f, int64_t timeout_ms, leat_error *err)
{
    LEAT_REQUIRE(f != NULL, err);
    LEAT_TRY(check_fork(f, err));
    if (f->stage_count == 0 || f->stages[f->stage_count - 1].decl.kind != LEAT_STAGE_SINK)
        return leat__fail(err, LEAT_ESTATE, "%s: has no sink: pull with leat_flow_next", f->name);
    leat_pool *p = f->pool;
    uint64_t begin = leat__pool_now(p), until = leat__clock_deadline(begin, timeout_ms);
    leat__pool_lock(p);
    int rc = 0;
    for (bool over = false;;) {
        uint32_t seen = leat__bell_rings(f->changed);
        rc = verdict_locked(f, &over, err);
        if (over) break;
        rc = await_locked(f, seen, begin, until, err);
        if (rc == 0 || (rc == LEAT_ETIMEDOUT && f->state != LEAT__FLOW_RUNNING)) continue;
        if (rc == LEAT_ETIMEDOUT)
            leat__fail(err, rc, "%s: not done within %lld ms", f->name, (long long)timeout_ms);
        break;
    }
    leat__pool_unlock(p);
    return rc;
}

void leat_flow_interrupt(leat_flow *f)
{
    if (f == NULL) return;
    atomic_store(f->interrupted, true);
    leat__bell_ring(f->changed);
}

static void cancel_locked(leat_flow *f)
{
    atomic_store(&f->stop, true);
    if (f->state == LEAT__FLOW_RUNNING) f->state = LEAT__FLOW_CANCELED;
    leat__bell_ring(f->changed);
}

void leat_flow_cancel(leat_flow *f)
{
    if (f == NULL || forked(f)) return;
    leat__pool_lock(f->pool);
    cancel_locked(f);
    leat__pool_unlock(f->pool);
}

void leat_flow_kick(leat_flow *f)
{
    if (f == NULL || forked(f)) return;
    leat__pool_lock(f->pool);
    f->source_later_ns = 0;
    leat__pool_unlock(f->pool);
}

/* ---- Closing --------------------------------------------------------------------------------- */

static void await_quiet_locked(leat_flow *f)
{
    f->closing = true;
    while (f->running > 0 || f->reaping > 0) {
        uint32_t seen = leat__bell_rings(f->changed);
        if (f->pool->replay) {
            leat__pool_unlock(f->pool);
            leat__replay_step(f->pool);
            leat__pool_lock(f->pool);
            continue;
        }
        leat__bell_wait_until(f->changed, seen, &f->pool->lock, UINT64_MAX);
    }
}

static void tear_down(leat_flow *f)
{
    LEAT_ASSERT(f->running == 0);
    for (uint32_t i = 0; i < f->stage_count; i++) {
        leat__stage *s = &f->stages[i];
        for (uint32_t w = 0; w < f->pool->lanes[s->decl.lane].max; w++) {
            leat__ctx *ctx = &s->ctx[w];
            if (ctx->state == LEAT__CTX_READY && s->decl.teardown) s->decl.teardown(s->decl.cookie, ctx->ptr);
            leat__pool_lock(f->pool);
            leat__sched_ctx_drop(f, s, ctx);
            leat__pool_unlock(f->pool);
        }
        leat__free(s->ctx);
    }
}

void leat_flow_close(leat_flow **flow)
{
    leat_flow *f = flow ? *flow : NULL;
    if (!f) return;
    *flow = NULL;
    /* In a forked child, the threads that hold the flow's tasks do not exist, so nothing can be freed. */
    if (forked(f)) return;
    leat_pool *p = f->pool;
    if (p) {
        leat__pool_lock(p);
        cancel_locked(f);
        await_quiet_locked(f);
        /* A batch flow may hold 65,536 tasks per segment, at about 0.1 us each to free. Free them
         * in parts, so that the pool's other flows can take the lock in between. */
        for (bool more = f->segments != NULL; more;) {
            more = leat__segments_drain(f, drain_at_once);
            leat__pool_unlock(p);
            leat__pool_lock(p);
        }
        await_quiet_locked(f);
        leat__pool_unlock(p);
        tear_down(f);
        leat__mutex_lock(&f->lending);
        LEAT_ASSERT(f->running == 0 && f->reaping == 0);
        leat__pool_lock(p);
        if (f->attached && f->tuner) leat__tuner_remember(f, leat__pool_now(p));
        leat__pool_detach(p, f);
        f->attached = false;
        leat__pool_unlock(p);
        leat__mutex_unlock(&f->lending);
    }
    if (f->listener.freed) leat__budget_unlisten(f->budget, &f->listener);
    if (f->floor > 0) {
        int rc = leat__budget_floor(f->budget, f->floor, 0, f->name, NULL);
        (void)rc; /* lowering a floor cannot fail */
        leat__budget_notify(f->budget);
    }
    leat__flow_meters_close(f);
    leat__segments_free(f);
    leat__free(f->stages);
    f->stages = NULL;
    f->stage_count = 0;
    if (p) leat_pool_close(&p);
    leat__flow_unref(f);
}

/* ---- Knobs and numbers ------------------------------------------------------------------------ */

int leat_flow_pin(leat_flow *f, leat_flow_knob knob, uint32_t value, leat_error *err)
{
    LEAT_REQUIRE(f != NULL, err);
    LEAT_TRY(check_fork(f, err));
    if ((unsigned)knob > LEAT_KNOB_PREFETCH) return leat__fail(err, LEAT_EINVAL, "%s: no such knob", f->name);
    if (f->state == LEAT__FLOW_OPEN)
        return leat__fail(err, LEAT_ESTATE, "%s: not started: use the options", f->name);
    leat__pool_lock(f->pool);
    f->knobs[knob].pinned = value > 0;
    if (value > 0) f->knobs[knob].value = value;
    leat__knobs_apply(f);
    leat__flow_advance(f, leat__pool_now(f->pool));
    f->pool->epoch++;
    leat__pool_unlock(f->pool);
    return 0;
}

void leat__flow_at_least(leat_flow *f, leat_flow_knob knob, uint32_t value)
{
    leat__pool_lock(f->pool);
    leat__knob *k = &f->knobs[knob];
    if (!k->pinned && k->value < value) {
        k->value = value;
        leat__knobs_apply(f);
        leat__flow_advance(f, leat__pool_now(f->pool));
        f->pool->epoch++;
    }
    leat__pool_unlock(f->pool);
}

int leat_flow_read(leat_flow *f, leat_flow_stats *stats, uint32_t struct_size)
{
    LEAT_REQUIRE(f != NULL && stats != NULL, NULL);
    LEAT_TRY(check_fork(f, NULL));
    leat_flow_stats all = {.struct_size = sizeof all};
    leat__pool_lock(f->pool);
    uint64_t now = leat__pool_now(f->pool);
    all.stages = f->stage_count;
    all.results = f->results;
    all.failed = f->failed;
    all.dropped = f->dropped;
    all.overruns = f->overruns;
    if (f->started_ns) all.elapsed_ns = (f->ended_ns ? f->ended_ns : now) - f->started_ns;
    all.consumer_wait_ns = f->consumer_wait_ns;
    all.blocked_ns = f->blocked_ns + (f->blocked_since_ns ? now - f->blocked_since_ns : 0);
    all.loans = f->loans;
    all.loan_bytes = f->loan_bytes;
    all.floor_bytes = f->floor;
    all.threads = f->knobs[LEAT_KNOB_THREADS].value;
    all.io_depth = f->knobs[LEAT_KNOB_IO_DEPTH].value;
    all.prefetch = f->knobs[LEAT_KNOB_PREFETCH].value;
    all.decisions = f->decisions;
    leat__pool_unlock(f->pool);
    memcpy(stats, &all, LEAT_MIN(struct_size, sizeof all));
    return 0;
}

int leat_flow_read_stage(leat_flow *f, uint32_t index, leat_stage_stats *stats)
{
    LEAT_REQUIRE(f != NULL && stats != NULL && index < f->stage_count, NULL);
    LEAT_TRY(check_fork(f, NULL));
    leat__pool_lock(f->pool);
    const leat__stage *s = &f->stages[index];
    uint64_t now = f->ended_ns ? f->ended_ns : leat__pool_now(f->pool);
    uint64_t elapsed = f->started_ns ? now - f->started_ns : 0;
    uint64_t ready = s->ready_ns + (s->ready.count && now > s->ready_since_ns ? now - s->ready_since_ns : 0);
    *stats = (leat_stage_stats){.lane = s->decl.lane,
                                .items = s->items,
                                .failed = s->failed,
                                .dropped = s->dropped,
                                .bytes = s->bytes,
                                .bytes_max = s->bytes_max,
                                .busy_ns = s->busy_ns,
                                .wait_ns = s->wait_ns,
                                .readiness = elapsed ? (double)ready / (double)elapsed : 0,
                                .running = s->running,
                                .ready = s->ready.count,
                                .limit = s->limit == UINT32_MAX ? 0 : s->limit};
    memcpy(stats->name, s->name, sizeof stats->name);
    leat__pool_unlock(f->pool);
    return 0;
}
