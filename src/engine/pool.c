/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool: the lock around the scheduler, the lanes, and the one pool that all flows of a process share.
 * This is the only file that unlocks the pool. Unlocking also wakes workers that have work, notifies other
 * pools of released bytes, and frees dead tasks.
 *
 * Lock order: the shared pool's, a budget's listeners, a flow's lending, a pool's, a budget's.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sized.h"
#include "engine/controller.h"
#include "engine/replay.h"
#include "engine/sched.h"
#include "probe/machine.h"

static struct {
    leat__once once;
    leat__mutex lock;
    leat_pool *pool;
} shared = {.once = LEAT__ONCE_INIT};

static void shared_init(void)
{
    leat__mutex_init(&shared.lock);
    leat__fork_renew(&shared.lock);
}

void leat_pool_opts_init_sized(leat_pool_opts *opts, uint32_t struct_size)
{
    leat__sized_init(opts, struct_size);
}

uint64_t leat__pool_now(leat_pool *p)
{
    return p->replay ? leat__replay_now(p->replay) : leat__clock_ns();
}

void leat__pool_lock(leat_pool *p)
{
    leat__mutex_lock(&p->lock);
}

static void check_lanes_locked(const leat_pool *p)
{
    if (!LEAT_CHECKED) return;
    for (int i = 0; i < LEAT_LANES; i++) {
        const leat__lane *l = &p->lanes[i];
        LEAT_ASSERT(l->started <= l->max && l->idle <= l->started);
        LEAT_ASSERT(l->waking <= l->idle);
    }
    LEAT_ASSERT(p->note_count <= LEAT_COUNT(p->notes));
}

static void wake_locked(leat_pool *p)
{
    for (int i = 0; i < LEAT_LANES; i++) {
        leat__lane *l = &p->lanes[i];
        if (l->idle <= l->waking) continue;
        /* Waking one worker is enough if it can run every stage: when it takes a task, it calls this
         * function and wakes the next. */
        if (!leat__sched_has_work(p, (leat_lane)i, leat__pool_now(p))) continue;
        const bool all = leat__sched_scarce(p, (leat_lane)i);
        l->waking = all ? l->idle : l->waking + 1;
        if (all) leat__cond_broadcast(&l->wake);
        else leat__cond_signal(&l->wake);
    }
}

/* Collects the budgets on which other pools may wait for bytes that this one released; takes a reference to
 * each. */
static uint32_t take_news_locked(leat_pool *p, leat_budget **news, uint32_t max)
{
    uint32_t count = 0;
    for (leat_flow *f = p->flows; f && count < max; f = f->next) {
        if (!f->tell_others) continue;
        f->tell_others = false;
        leat__budget_ref(f->budget);
        news[count++] = f->budget;
    }
    return count;
}

void leat__pool_note(leat_flow *f, leat_log_level level, const char *fmt, ...)
{
    leat_pool *p = f->pool;
    if (!f->opts.log.write || p->note_count == LEAT_COUNT(p->notes)) return;
    struct leat__note *note = &p->notes[p->note_count++];
    note->flow = f;
    note->level = level;
    f->reaping++; /* keeps the flow alive until the line is written */
    va_list args;
    va_start(args, fmt);
    vsnprintf(note->text, sizeof note->text, fmt, args);
    va_end(args);
}

static void write_notes(leat_pool *p, uint32_t count)
{
    struct leat__note notes[LEAT_COUNT(p->notes)];
    memcpy(notes, p->notes, sizeof notes);
    p->note_count = 0;
    leat__mutex_unlock(&p->lock);
    for (uint32_t i = 0; i < count; i++)
        leat__log(&notes[i].flow->opts.log, notes[i].level, "%s", notes[i].text);
    leat__mutex_lock(&p->lock);
    for (uint32_t i = 0; i < count; i++) {
        leat_flow *f = notes[i].flow;
        if (--f->reaping == 0 && f->closing) leat__bell_ring(f->changed);
    }
}

/* A senior was refused bytes: asks the keepers of caches to release some, without the lock. Then
 * every refused request is retried, even when nothing was released: that scan may fail the flow. */
static void reclaim(leat_pool *p)
{
    for (leat_flow *f = p->flows; f; f = f->next) {
        if (f->reclaim == 0) continue;
        uint64_t bytes = f->reclaim;
        f->reclaim = 0;
        if (f->state != LEAT__FLOW_RUNNING) continue;
        f->reaping++; /* keeps the flow alive */
        leat__mutex_unlock(&p->lock);
        leat__budget_reclaim(f->budget, leat__budget_lacking(f->budget, bytes));
        leat__mutex_lock(&p->lock);
        if (--f->reaping == 0 && f->closing) leat__bell_ring(f->changed);
        f->reclaimed = true;
        p->epoch++;
        return; /* the list may have changed */
    }
    p->reclaims = false;
}

void leat__pool_unlock(leat_pool *p)
{
    for (;;) {
        if (p->note_count > 0) write_notes(p, p->note_count);
        while (p->reclaims) reclaim(p);
        wake_locked(p);
        check_lanes_locked(p);
        leat__list dead = p->dead;
        p->dead = (leat__list){0};
        leat_budget *news[8];
        uint32_t count = take_news_locked(p, news, LEAT_COUNT(news));
        leat__mutex_unlock(&p->lock);
        for (uint32_t i = 0; i < count; i++) {
            leat__budget_notify(news[i]);
            leat_budget_close(&news[i]);
        }
        if (!dead.head) return;
        leat__nodes_release(&dead);
        leat__mutex_lock(&p->lock);
        leat__nodes_recycle(p, &dead);
    }
}

void leat__pool_freed(void *pool)
{
    leat_pool *p = pool;
    leat__mutex_lock(&p->lock);
    p->epoch++;
    for (leat_flow *f = p->flows; f; f = f->next) f->reclaimed = false;
    wake_locked(p);
    leat__mutex_unlock(&p->lock);
}

/* ---- Opening and closing ------------------------------------------------------------------ */

static uint32_t usable_cpus(void)
{
    leat_machine machine;
    leat__machine_host(&machine);
    return machine.cpus_usable;
}

static uint32_t lane_size(const leat_pool_opts *o, leat_lane lane)
{
    LEAT_ASSERT((unsigned)lane < LEAT_LANES);
    uint32_t size = 1;
    switch (lane) {
    case LEAT_LANE_CPU: size = o->threads ? o->threads : usable_cpus(); break;
    case LEAT_LANE_IO: size = o->io_threads ? o->io_threads : 32; break;
    case LEAT_LANE_GPU: size = o->gpu_threads ? o->gpu_threads : LEAT_MAX(1, 2 * o->gpus); break;
    case LEAT_LANE_PYTHON: size = o->python_threads ? o->python_threads : 1; break;
    case LEAT_LANES: break;
    }
    return LEAT_MIN(size, (uint32_t)LEAT__LANE_MAX);
}

static void destroy(leat_pool *p)
{
    leat__mutex_lock(&p->lock);
    LEAT_ASSERT(p->flows == NULL && p->dead.head == NULL);
    p->stopping = true;
    for (int i = 0; i < LEAT_LANES; i++)
        if (p->lanes[i].workers) {
            leat__cond_broadcast(&p->lanes[i].wake);
            leat__cond_broadcast(&p->lanes[i].parked);
        }
    leat__cond_broadcast(&p->controller_wake);
    leat__mutex_unlock(&p->lock);
    leat__thread_join(&p->controller);
    for (int i = 0; i < LEAT_LANES; i++) leat__lane_join(&p->lanes[i]);
    for (int i = 0; i < LEAT_LANES; i++) leat__lane_close(&p->lanes[i]);
    leat__replay_free(&p->replay);
    leat__placement_close(&p->placement);
    leat__cond_destroy(&p->controller_wake);
    leat__mutex_destroy(&p->lock);
    leat__free(p);
}

/* Assigns CPU workers to NUMA nodes. Threads of other lanes mostly wait, so the kernel places them. */
static int place_workers(leat_pool *p, leat_error *err)
{
    const leat__lane *cpu = &p->lanes[LEAT_LANE_CPU];
    uint32_t node_of[LEAT__LANE_MAX];
    LEAT_TRY(leat__placement_open(&p->placement, err));
    if (!p->placement) return 0;
    leat__placement_spread(p->placement->nodes, p->placement->count, cpu->max, node_of);
    for (uint32_t i = 0; i < cpu->max; i++) cpu->workers[i].place = node_of[i];
    return 0;
}

int leat__pool_make(leat_pool **pool, const leat_pool_opts *opts, bool threads, leat_error *err)
{
    LEAT_ASSERT(opts == NULL || opts->struct_size >= sizeof(uint32_t));
    leat_pool_opts o;
    leat_pool_opts_init(&o);
    if (opts) memcpy(&o, opts, LEAT_MIN(opts->struct_size, sizeof o));
    *pool = NULL;
    if (o.gpus > LEAT__GPUS_MAX)
        return leat__fail(err, LEAT_EINVAL, "%u GPUs are more than %d", o.gpus, LEAT__GPUS_MAX);
    leat_pool *p = LEAT_NEW(ENGINE, leat_pool);
    if (!p) return leat__fail_nomem(err, sizeof *p, "a pool");
    leat__mutex_init(&p->lock);
    leat__cond_init(&p->controller_wake);
    p->refs = 1;
    p->fork_generation = leat__fork_generation();
    p->gpus = o.gpus;
    p->gpu_memory = o.gpu_memory;
    for (uint32_t g = 0; g < o.gpus; g++) {
        p->gpu_milli_free[g] = 1000;
        p->gpu_memory_free[g] = o.gpu_memory;
    }
    int rc = 0;
    for (int i = 0; i < LEAT_LANES; i++)
        LEAT_GO(rc, out, leat__lane_open(&p->lanes[i], p, (leat_lane)i, lane_size(&o, (leat_lane)i), err));
    p->active = p->lanes[LEAT_LANE_CPU].max;
    if (threads) {
        LEAT_GO(rc, out, place_workers(p, err));
        LEAT_GO(rc, out, leat__lane_start(&p->lanes[LEAT_LANE_CPU], p->active, err));
        leat__pool_lock(p);                          /* workers already read `active` */
        p->active = p->lanes[LEAT_LANE_CPU].started; /* may be fewer than requested */
        leat__pool_unlock(p);
    }
    *pool = p;
    p = NULL;
out:
    if (p) destroy(p);
    return rc;
}

int leat_pool_open(leat_pool **pool, const leat_pool_opts *opts, leat_error *err)
{
    LEAT_REQUIRE(pool != NULL, err);
    return leat__pool_make(pool, opts, true, err);
}

int leat_pool_shared(leat_pool **pool, leat_error *err)
{
    LEAT_REQUIRE(pool != NULL, err);
    leat__once_run(&shared.once, shared_init);
    leat__mutex_lock(&shared.lock);
    int rc = 0;
    /* After a fork the parent's threads do not exist: the child opens a new pool. */
    bool stale = shared.pool && shared.pool->fork_generation != leat__fork_generation();
    if (!shared.pool || stale) {
        leat_pool *fresh = NULL;
        rc = leat__pool_make(&fresh, NULL, true, err);
        if (rc == 0) {
            fresh->shared = true;
            shared.pool = fresh;
        }
    } else {
        shared.pool->refs++;
    }
    *pool = rc == 0 ? shared.pool : NULL;
    leat__mutex_unlock(&shared.lock);
    return rc;
}

void leat__pool_ref(leat_pool *p)
{
    leat__once_run(&shared.once, shared_init);
    leat__mutex_lock(&shared.lock);
    LEAT_ASSERT(p->refs > 0);
    p->refs++;
    leat__mutex_unlock(&shared.lock);
}

void leat_pool_close(leat_pool **pool)
{
    if (pool == NULL) return;
    leat_pool *p = *pool;
    *pool = NULL;
    if (!p || p->fork_generation != leat__fork_generation()) return;
    leat__once_run(&shared.once, shared_init);
    leat__mutex_lock(&shared.lock);
    LEAT_ASSERT(p->refs > 0);
    bool last = --p->refs == 0;
    if (last && p == shared.pool) shared.pool = NULL;
    leat__mutex_unlock(&shared.lock);
    if (last) destroy(p);
}

uint32_t leat_pool_threads(const leat_pool *pool)
{
    if (pool == NULL) return 0;
    return pool->lanes[LEAT_LANE_CPU].max;
}

int leat_pool_set_active(leat_pool *p, uint32_t threads, leat_error *err)
{
    LEAT_REQUIRE(p != NULL, err);
    if (threads == 0 || threads > p->lanes[LEAT_LANE_CPU].max)
        return leat__fail(err, LEAT_EINVAL, "%u active threads: the pool has %u", threads,
                          p->lanes[LEAT_LANE_CPU].max);
    leat__pool_lock(p);
    p->active = threads;
    leat__cond_broadcast(&p->lanes[LEAT_LANE_CPU].wake);
    leat__cond_broadcast(&p->lanes[LEAT_LANE_CPU].parked);
    leat__pool_unlock(p);
    return 0;
}

/* ---- Flows ---------------------------------------------------------------------------------- */

/* Starts the threads that the flow's lanes need; the I/O lane has as many as its depth. */
static int start_lanes_locked(leat_pool *p, const leat_flow *f, leat_error *err)
{
    if (p->replay) return 0;
    for (uint32_t i = 0; i < f->stage_count; i++) {
        const leat__stage *s = &f->stages[i];
        leat__lane *l = &p->lanes[s->decl.lane];
        uint32_t want = s->decl.lane == LEAT_LANE_IO ? leat__io_threads(s) : l->max;
        LEAT_TRY(leat__lane_start(l, want, err));
    }
    return 0;
}

int leat__pool_attach(leat_pool *p, leat_flow *f, leat_error *err)
{
    leat__pool_lock(p);
    LEAT_ASSERT(f->state == LEAT__FLOW_OPEN && !f->attached);
    LEAT_ASSERT(f->segment_count > 0);
    int rc = start_lanes_locked(p, f, err);
    /* without a controller thread nothing is tuned, but the flow works */
    if (rc == 0 && !f->opts.fixed && leat__controller_start(p, NULL) != 0) f->opts.fixed = 1;
    if (rc == 0) {
        f->next = p->flows;
        p->flows = f;
        f->attached = true;
        f->vtime = p->vclock;
        f->state = LEAT__FLOW_RUNNING;
        f->started_ns = leat__pool_now(p);
        /* Observations of the previous flow count as made just now. */
        f->control.at_ns = f->started_ns - f->control.at_ns;
        if (f->started_ns - f->control.at_ns >= LEAT__CONTROLLER_NS) leat__controller_step(f, f->started_ns);
    }
    leat__pool_unlock(p);
    return rc;
}

void leat__pool_detach(leat_pool *p, leat_flow *f)
{
    for (leat_flow **at = &p->flows; *at; at = &(*at)->next) {
        if (*at != f) continue;
        *at = f->next;
        return;
    }
}
