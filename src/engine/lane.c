/* SPDX-License-Identifier: Apache-2.0
 *
 * A lane: the threads for one kind of stage. They are started when a flow first needs them and
 * sleep while there is no work. Owns its threads from start to join.
 */
#include <stdio.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "engine/sched.h"

static const char *lane_name(leat_lane lane)
{
    LEAT_ASSERT((unsigned)lane < LEAT_LANES);
    static const char *const names[LEAT_LANES] = {"cpu", "io", "gpu", "python"};
    return names[lane];
}

int leat__lane_open(leat__lane *l, leat_pool *p, leat_lane kind, uint32_t max, leat_error *err)
{
    LEAT_ASSERT(max > 0 && max <= LEAT__LANE_MAX);
    LEAT_ASSERT(l->workers == NULL);
    l->workers = LEAT_NEW_ARRAY(ENGINE, leat__worker, max);
    if (!l->workers) return leat__fail_nomem(err, max * sizeof *l->workers, "a lane's workers");
    l->max = max;
    leat__cond_init(&l->wake);
    leat__cond_init(&l->parked);
    for (uint32_t i = 0; i < max; i++) {
        l->workers[i].pool = p;
        l->workers[i].lane = kind;
        l->workers[i].index = i;
    }
    return 0;
}

static void sleep_locked(leat__lane *l, leat_pool *p, const leat__worker *w)
{
    if (w->lane == LEAT_LANE_CPU && w->index >= p->active) {
        leat__cond_wait(&l->parked, &p->lock);
        return;
    }
    uint64_t timer = leat__sched_next_timer(p, w->lane);
    l->idle++;
    if (timer == UINT64_MAX) leat__cond_wait(&l->wake, &p->lock);
    else leat__cond_wait_until(&l->wake, &p->lock, timer);
    LEAT_ASSERT(l->idle > 0);
    l->idle--;
    if (l->waking > 0) l->waking--;
}

/* Main loop of a worker: takes, runs and settles tasks. Settling and the next take share one lock hold. */
static void work(void *arg)
{
    leat__worker *w = arg;
    leat_pool *p = w->pool;
    leat__lane *l = &p->lanes[w->lane];
    if (p->placement && w->lane == LEAT_LANE_CPU) leat__placement_enter(p->placement, w->place);
    leat__pool_lock(p);
    uint64_t now = leat__clock_ns();
    bool news = false; /* something changed, but the threads that wait for it are not woken yet */
    while (!p->stopping) {
        if (leat__sched_take(p, w, now) == 0) {
            if (news || p->dead.head || p->stirred) {
                news = p->stirred = false;
                leat__pool_unlock(p);
                leat__pool_lock(p);
            } else {
                sleep_locked(l, p, w);
            }
            now = leat__clock_ns();
            continue;
        }
        leat__pool_unlock(p);
        leat__sched_run(w);
        uint64_t ended = leat__clock_ns();
        leat__pool_lock(p);
        now = leat__clock_ns(); /* read under the lock, so that it is never before another worker's time */
        leat__sched_settle(p, w, ended, now);
        news = true;
    }
    leat__pool_unlock(p);
}

/* Starts threads. Fewer than requested only make the lane slower; none at all is an error. */
int leat__lane_start(leat__lane *l, uint32_t count, leat_error *err)
{
    LEAT_ASSERT(l->started <= l->max);
    count = LEAT_MIN(count, l->max);
    while (l->started < count) {
        leat__worker *w = &l->workers[l->started];
        char name[16];
        snprintf(name, sizeof name, "leat-%s-%u", lane_name(w->lane), w->index);
        int rc = leat__thread_start(&w->thread, name, work, w, l->started == 0 ? err : NULL);
        if (rc != 0 && l->started == 0) return rc;
        if (rc != 0) break;
        l->started++;
    }
    return 0;
}

void leat__lane_join(leat__lane *l)
{
    for (uint32_t i = 0; i < l->started; i++) leat__thread_join(&l->workers[i].thread);
}

void leat__lane_close(leat__lane *l)
{
    if (!l->workers) return;
    leat__cond_destroy(&l->wake);
    leat__cond_destroy(&l->parked);
    leat__free(l->workers);
    *l = (leat__lane){0};
}
