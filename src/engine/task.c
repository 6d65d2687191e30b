/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks: creating, failing, emitting, lending and freeing them. Owns the nodes (each flow keeps used ones for
 * reuse). Only this file calls the release function of a task.
 *
 * Workers call it through the scheduler, any thread through leat_task_release and _done.
 */
#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "engine/sched.h"

void leat__list_push(leat__list *l, leat__node *n)
{
    LEAT_ASSERT((l->head == NULL) == (l->tail == NULL));
    LEAT_ASSERT(n != l->tail);
    n->next = NULL;
    n->prev = l->tail;
    if (l->tail) l->tail->next = n;
    else l->head = n;
    l->tail = n;
    l->count++;
}

void leat__list_remove(leat__list *l, leat__node *n)
{
    LEAT_ASSERT(l->count > 0);
    LEAT_ASSERT(n->prev ? n->prev->next == n : l->head == n);
    LEAT_ASSERT(n->next ? n->next->prev == n : l->tail == n);
    if (n->prev) n->prev->next = n->next;
    else l->head = n->next;
    if (n->next) n->next->prev = n->prev;
    else l->tail = n->prev;
    n->next = n->prev = NULL;
    l->count--;
}

leat__node *leat__list_pop(leat__list *l)
{
    leat__node *n = l->head;
    if (n) leat__list_remove(l, n);
    return n;
}

leat__node *leat__node_new(leat_flow *f)
{
    leat__node *n = leat__list_pop(&f->spare);
    if (!n) n = LEAT_NEW(ENGINE, leat__node);
    if (n) *n = (leat__node){.flow = f};
    return n;
}

void leat__node_spare(leat_flow *f, leat__node *n)
{
    LEAT_ASSERT(n->why == NULL && n->held == 0);
    if (f->spare.count < LEAT__SPARE_MAX) leat__list_push(&f->spare, n);
    else leat__free(n);
}

static void free_spare_nodes(leat_flow *f)
{
    for (leat__node *n; (n = leat__list_pop(&f->spare));) leat__free(n);
}

void leat__node_fail(leat_flow *f, leat__node *n, int rc, const leat_error *err)
{
    LEAT_ASSERT(rc < 0);
    n->pub.status = rc;
    if (!n->why) n->why = LEAT_NEW(ENGINE, leat_error);
    if (n->why) {
        if (err && err->code == rc) *n->why = *err;
        else
            leat__fail(n->why, rc, "%s: stage %s: task %llu: %s", f->name, f->stages[n->stage].name,
                       (unsigned long long)n->pub.seq, leat_code_text(rc));
    }
    n->pub.error = n->why;
}

/* Frees a finished node. Most have nothing to release, so they are reused without leaving the lock. */
void leat__node_bury(leat_flow *f, leat__node *n)
{
    LEAT_ASSERT(n->flow == f);
    LEAT_ASSERT(n->state != LEAT__NODE_LOAN);
    LEAT_ASSERT(n->grant == 0);
    if (!n->pub.release && !n->why && !n->members && !n->kids.head && n->held == 0) {
        leat__node_spare(f, n);
        return;
    }
    f->reaping++;
    leat__list_push(&f->pool->dead, n);
}

/* Calls release() of n and of all nodes below it, and sums up their bytes. */
static void release_all(leat__node *n, int64_t delta[LEAT_BUDGET_CATS])
{
    LEAT_ASSERT(n->grant == 0);
    if (n->pub.release) n->pub.release(n->pub.release_cookie, n->pub.data);
    n->pub.release = NULL;
    n->pub.data = NULL;
    delta[n->cat] -= (int64_t)n->held;
    n->held = 0;
    for (uint32_t i = 0; i < n->pub.member_count; i++) release_all(n->members[i], delta);
    for (leat__node *kid = n->kids.head; kid; kid = kid->next) release_all(kid, delta);
    leat__free(n->why);
    n->why = NULL;
}

/* Returns the nodes to their flow, under the lock. */
static void spare_all(leat_flow *f, leat__node *n)
{
    for (uint32_t i = 0; i < n->pub.member_count; i++) spare_all(f, n->members[i]);
    for (leat__node *kid; (kid = leat__list_pop(&n->kids));) spare_all(f, kid);
    leat__free(n->members);
    leat__node_spare(f, n);
}

static int64_t sum_of(const int64_t delta[LEAT_BUDGET_CATS])
{
    int64_t sum = 0;
    for (int c = 0; c < LEAT_BUDGET_CATS; c++) sum += delta[c];
    return sum;
}

static void give_back(leat_flow *f, const int64_t delta[LEAT_BUDGET_CATS])
{
    int64_t sum = sum_of(delta);
    if (sum == 0) return;
    atomic_fetch_sub(&f->charged, (uint64_t)-sum);
    if (leat__budget_apply(f->budget, delta)) leat__budget_notify(f->budget);
}

void leat__nodes_release(leat__list *dead)
{
    for (leat__node *n = dead->head; n; n = n->next) {
        int64_t delta[LEAT_BUDGET_CATS] = {0};
        release_all(n, delta);
        give_back(n->flow, delta);
    }
}

void leat__nodes_recycle(leat_pool *p, leat__list *dead)
{
    p->epoch++;
    for (leat__node *n; (n = leat__list_pop(dead));) {
        leat_flow *f = n->flow;
        LEAT_ASSERT(f->reaping > 0);
        spare_all(f, n);
        if (--f->reaping == 0 && f->closing) leat__bell_ring(f->changed);
    }
}

/* Charges the bytes a task holds beyond its request, after freeing cached bytes if needed. */
static bool grant_excess(leat_flow *f, uint64_t excess)
{
    bool again;
    do { /* another task may take the released bytes */
        if (leat__budget_grant(f->budget, LEAT_BUDGET_SCRATCH, excess, false)) return true;
        again = leat__budget_reclaim(f->budget, leat__budget_lacking(f->budget, excess)) > 0;
    } while (again);
    return leat__budget_grant(f->budget, LEAT_BUDGET_SCRATCH, excess, false);
}

int leat_task_charge(leat_task *task, uint64_t bytes)
{
    LEAT_REQUIRE(task != NULL, NULL);
    leat__node *n = (leat__node *)task;
    if (!grant_excess(n->flow, bytes)) return LEAT_EBUDGET;
    n->grant += bytes;
    atomic_fetch_add(&n->flow->charged, bytes);
    return 0;
}

void leat__node_audit(leat__stage *s, leat__node *n, leat_error *err)
{
    leat_flow *f = n->flow;
    uint64_t may = n->held + n->grant, holds = n->pub.bytes + n->fresh_bytes;
    for (uint32_t i = 0; i < n->pub.member_count; i++) {
        may += n->members[i]->held;
        holds += n->members[i]->pub.bytes;
    }
    if (holds <= may) return;
    uint64_t excess = holds - may;
    if (leat_task_charge(&n->pub, excess) == 0) return;
    /* The memory was allocated but is over budget: release it at once, whatever the policy. */
    n->rc = leat__fail(err, LEAT_EBUDGET,
                       "%s: stage %s: task %llu holds %s, %s more than it asked for, "
                       "and the budget of %s has no room for them",
                       f->name, s->name, (unsigned long long)n->pub.seq, leat__as_size(holds).text,
                       leat__as_size(excess).text, leat__as_size(leat__budget_limit(f->budget)).text);
    if (n->pub.release) n->pub.release(n->pub.release_cookie, n->pub.data);
    n->pub.release = NULL;
    n->pub.data = NULL;
    n->pub.bytes = 0;
    for (leat__node *kid; (kid = leat__list_pop(&n->fresh));) {
        if (kid->pub.release) kid->pub.release(kid->pub.release_cookie, kid->pub.data);
        leat__free(kid);
    }
    n->fresh_bytes = 0;
}

int leat_task_emit(leat_task *parent, void *data, uint64_t bytes,
                   void (*release)(void *release_cookie, void *data), void *release_cookie)
{
    LEAT_REQUIRE(parent != NULL, NULL);
    leat__node *n = (leat__node *)parent;
    const leat__stage *s = &n->flow->stages[n->stage];
    if (s->decl.kind != LEAT_STAGE_EXPAND) return LEAT_ESTATE;
    if (n->fresh.count >= s->decl.count) return LEAT_ELIMIT;
    leat__node *kid = LEAT_NEW(ENGINE, leat__node);
    if (!kid) return LEAT_ENOMEM;
    kid->flow = n->flow;
    kid->pub.data = data;
    kid->pub.bytes = bytes;
    kid->pub.release = release;
    kid->pub.release_cookie = release_cookie;
    leat__list_push(&n->fresh, kid);
    n->fresh_bytes += bytes;
    return 0;
}

int leat_task_canceled(const leat_task *task)
{
    LEAT_REQUIRE(task != NULL, NULL);
    return atomic_load(&((const leat__node *)task)->flow->stop);
}

void leat_task_done(leat_task *task, int rc, const leat_error *err)
{
    if (task == NULL) return;
    leat__node *n = (leat__node *)task;
    leat_flow *f = n->flow;
    leat_pool *p = f->pool;
    leat_error mine;
    leat__error_reset(&mine);
    if (err) mine = *err;
    n->rc = rc;
    leat__node_audit(&f->stages[n->stage], n, &mine);
    leat__pool_lock(p);
    LEAT_ASSERT(n->state == LEAT__NODE_RUNNING && !n->early);
    if (n->rc < 0) leat__node_fail(f, n, n->rc, &mine);
    if (n->pending) leat__sched_settle_pending(n, leat__pool_now(p));
    else n->early = true; /* process() has not returned yet: its worker settles the task */
    leat__pool_unlock(p);
}

void leat__flow_unref(leat_flow *f)
{
    if (atomic_fetch_sub(&f->refs, 1) != 1) return;
    LEAT_ASSERT(f->loans == 0 && f->loan_bytes == 0);
    LEAT_ASSERT(atomic_load(&f->charged) == 0);
    free_spare_nodes(f);
    leat__mutex_destroy(&f->lending);
    leat_budget_close(&f->budget);
    leat__free(f);
}

void leat_task_release(leat_task *task)
{
    leat__node *n = (leat__node *)task;
    if (!n) return;
    leat_flow *f = n->flow;
    /* In a forked child, threads that no longer exist may hold the locks. */
    if (f->fork_generation != leat__fork_generation()) return;
    int64_t delta[LEAT_BUDGET_CATS] = {0};
    uint64_t bytes = n->held;
    release_all(n, delta);
    give_back(f, delta);
    leat__mutex_lock(&f->lending);
    leat_pool *p = f->attached ? f->pool : NULL;
    /* Closing takes `lending`, then the pool's lock; so the pool exists while we hold its
     * lock. */
    if (p) {
        leat__pool_lock(p);
        leat__mutex_unlock(&f->lending);
        p->epoch++;
        f->reclaimed = false;
        if (f->waiters) leat__bell_ring(f->changed);
    }
    LEAT_ASSERT(n->state == LEAT__NODE_LOAN);
    LEAT_ASSERT(f->loans > 0 && f->loan_bytes >= bytes);
    f->loans--;
    f->loan_bytes -= bytes;
    spare_all(f, n);
    if (p) leat__pool_unlock(p);
    else leat__mutex_unlock(&f->lending);
    leat__flow_unref(f);
}
