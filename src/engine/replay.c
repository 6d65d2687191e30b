/* SPDX-License-Identifier: Apache-2.0
 *
 * Deterministic mode: see replay.h. Owns the clock of the virtual workers and the random choices;
 * one thread only.
 */
#include "engine/replay.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "engine/controller.h"

struct leat__replay {
    leat__rng rng;
    leat__replay_cost cost;
    void *cookie;
    leat__replay_outside outside;
    void *outside_cookie;
    uint64_t now, next_tick;
    uint64_t moves;
};

int leat__replay_open(leat_pool **pool, const leat_pool_opts *opts, uint64_t seed, leat__replay_cost cost,
                      void *cookie, leat_error *err)
{
    LEAT_TRY(leat__pool_make(pool, opts, false, err));
    leat__replay *r = LEAT_NEW(ENGINE, leat__replay);
    if (!r) {
        leat_pool_close(pool);
        return leat__fail_nomem(err, sizeof *r, "a replay");
    }
    leat__rng_init(&r->rng, seed, 0, 0, 0);
    r->cost = cost;
    r->cookie = cookie;
    r->now = LEAT_NS_PER_S;
    r->next_tick = r->now + LEAT__CONTROLLER_NS;
    (*pool)->replay = r;
    return 0;
}

void leat__replay_free(leat__replay **r)
{
    leat__free(*r);
    *r = NULL;
}

void leat__replay_outside_set(leat_pool *p, leat__replay_outside outside, void *cookie)
{
    LEAT_ASSERT(p->replay != NULL);
    p->replay->outside = outside;
    p->replay->outside_cookie = cookie;
}

static bool step_outside(leat__replay *r)
{
    return r->outside && r->outside(r->outside_cookie, leat__rng_u32(&r->rng));
}

uint64_t leat__replay_now(const leat__replay *r)
{
    return r->now;
}

uint64_t leat__replay_moves(const leat_pool *p)
{
    return p->replay->moves;
}

static uint32_t worker_count(const leat_pool *p)
{
    uint32_t count = 0;
    for (int i = 0; i < LEAT_LANES; i++) count += p->lanes[i].max;
    return count;
}

static leat__worker *worker_at(leat_pool *p, uint32_t index)
{
    for (int i = 0;; i++) {
        if (index < p->lanes[i].max) return &p->lanes[i].workers[index];
        index -= p->lanes[i].max;
    }
}

static bool take(leat_pool *p, leat__worker *w)
{
    leat__replay *r = p->replay;
    leat__pool_lock(p);
    uint32_t count = leat__sched_take(p, w, r->now);
    uint64_t cost = 0;
    for (uint32_t i = 0; i < count && r->cost; i++)
        cost += r->cost(r->cookie, w->stage->name, &w->tasks[i]->pub, r->now);
    w->ended_ns = r->now + cost;
    bool moved = count > 0 || p->stirred;
    p->stirred = false;
    leat__pool_unlock(p);
    return moved;
}

static void finish(leat_pool *p, leat__worker *w)
{
    leat__sched_run(w);
    leat__pool_lock(p);
    leat__sched_settle(p, w, p->replay->now, p->replay->now);
    leat__pool_unlock(p);
}

/* Without time: a random worker makes its next possible move. */
static bool step_random(leat_pool *p)
{
    leat__replay *r = p->replay;
    uint32_t count = worker_count(p);
    if (r->outside && (leat__rng_u32(&r->rng) & 3) == 0 && step_outside(r)) return true;
    uint32_t first = (uint32_t)leat__rng_below(&r->rng, count);
    /* Scan up or down from a random start: simpler than a random stride coprime to the count. */
    bool down = leat__rng_u32(&r->rng) & 1;
    for (uint32_t i = 0; i < count; i++) {
        leat__worker *w = worker_at(p, (down ? first + count - i : first + i) % count);
        if (w->count == 0 && !take(p, w)) continue;
        /* Taking and finishing are separate moves, so that other workers can move in between. */
        if (w->count > 0 && (leat__rng_u32(&r->rng) & 1)) finish(p, w);
        return true;
    }
    return step_outside(r);
}

static leat__worker *earliest(leat_pool *p)
{
    leat__worker *best = NULL;
    for (uint32_t i = 0; i < worker_count(p); i++) {
        leat__worker *w = worker_at(p, i);
        if (w->count > 0 && (!best || w->ended_ns < best->ended_ns)) best = w;
    }
    return best;
}

static void tick(leat_pool *p)
{
    leat__replay *r = p->replay;
    r->now = r->next_tick;
    r->next_tick += LEAT__CONTROLLER_NS;
    leat__pool_lock(p);
    for (leat_flow *f = p->flows; f; f = f->next) leat__controller_step(f, r->now);
    leat__pool_unlock(p);
}

/* Virtual time: every idle worker takes a task if it can, then the task that ends first is finished. Stops at
 * `until`. */
static bool step_timed(leat_pool *p, uint64_t until)
{
    leat__replay *r = p->replay;
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < worker_count(p); i++) {
            leat__worker *w = worker_at(p, i);
            if (w->count == 0 && take(p, w)) again = true;
        }
    }
    leat__worker *w = earliest(p);
    uint64_t at = w ? w->ended_ns : UINT64_MAX;
    if (r->next_tick <= LEAT_MIN(at, until) && (w || until != UINT64_MAX)) {
        tick(p);
        return true;
    }
    if (!w || at > until) return false;
    r->now = at;
    finish(p, w);
    return true;
}

/* Advances the clock if everything waits for a source that returned LEAT_FLOW_LATER. */
static bool pass_time(leat_pool *p)
{
    uint64_t at = UINT64_MAX;
    leat__pool_lock(p);
    for (int i = 0; i < LEAT_LANES; i++) at = LEAT_MIN(at, leat__sched_next_timer(p, (leat_lane)i));
    leat__pool_unlock(p);
    if (at == UINT64_MAX || at <= p->replay->now) return false;
    p->replay->now = at;
    return true;
}

bool leat__replay_step(leat_pool *p)
{
    leat__replay *r = p->replay;
    r->moves++;
    if (!r->cost) r->now += 1000;
    bool moved = r->cost ? step_timed(p, UINT64_MAX) : step_random(p);
    return moved || pass_time(p);
}

void leat__replay_advance(leat_pool *p, uint64_t ns)
{
    uint64_t until = p->replay->now + ns;
    while (step_timed(p, until)) p->replay->moves++;
    p->replay->now = until;
}
