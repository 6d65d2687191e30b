/* SPDX-License-Identifier: Apache-2.0
 *
 * Front end of asynchronous reads: choice of backend, the lists, completion. See aio.h.
 */
#include "io/aio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "io/aio_impl.h"

#define DEPTH_DEFAULT 16u
#define DEPTH_MAX 1024u

void leat__aio_list_push(leat__aio_list *l, leat__aio_req *r)
{
    r->next = NULL;
    if (l->tail != NULL) l->tail->next = r;
    else l->head = r;
    l->tail = r;
}

leat__aio_req *leat__aio_list_pop(leat__aio_list *l)
{
    leat__aio_req *r = l->head;
    if (r == NULL) return NULL;
    l->head = r->next;
    if (l->head == NULL) l->tail = NULL;
    return r;
}

/* Checks the invariants of a lane; called before its lock is released. */
static void check_locked(const leat__aio *a)
{
    LEAT_ASSERT(a->depth >= 1 && a->depth <= a->max_depth && a->max_depth <= DEPTH_MAX);
    LEAT_ASSERT((a->pending.head == NULL) == (a->pending.tail == NULL));
    LEAT_ASSERT(a->pending.head == NULL || a->queued > 0);
    LEAT_ASSERT((a->done.head == NULL) == (a->done.tail == NULL));
}

leat__aio_req *leat__aio_take_locked(leat__aio *a)
{
    if (a->in_flight >= a->depth) return NULL;
    leat__aio_req *r = leat__aio_list_pop(&a->pending);
    if (r == NULL) return NULL;
    LEAT_ASSERT(a->queued > 0);
    a->queued--;
    a->in_flight++;
    check_locked(a);
    return r;
}

/* Completes a finished request. The callback runs after the counters are updated: it may free the
 * request, submit others, or wake the owner of the lane. */
static void hand_out(leat__aio *a, leat__aio_req *r, uint32_t *counter)
{
    void (*done)(leat__aio_req *) = r->done;
    leat__mutex_lock(&a->lock);
    LEAT_ASSERT(*counter > 0);
    if (done == NULL) {
        leat__aio_list_push(&a->done, r);
        (*counter)--;
        leat__cond_broadcast(&a->finished);
        leat__mutex_unlock(&a->lock);
        return;
    }
    leat__mutex_unlock(&a->lock);
    done(r);
    /* The request counts until the callback returns, so that close waits for it. */
    leat__mutex_lock(&a->lock);
    (*counter)--;
    if (a->queued + a->in_flight == 0) leat__cond_broadcast(&a->finished);
    leat__mutex_unlock(&a->lock);
}

void leat__aio_complete(leat__aio *a, leat__aio_req *r, int rc, int sys_errno)
{
    LEAT_ASSERT(rc <= 0);
    LEAT_ASSERT(r->got <= r->len);
    r->rc = rc;
    r->sys_errno = sys_errno;
    r->done_ns = leat__clock_ns();
    hand_out(a, r, &a->in_flight);
}

static int choose(const leat__aio_opts *o, leat__aio_kind *kind, bool *forced, leat_error *err)
{
    const char *env = getenv("LEAT_IO");
    *kind = o->kind;
    *forced = o->kind != LEAT__AIO_AUTO;
    if (*forced || env == NULL || *env == '\0') return 0;
    *forced = true;
    if (strcmp(env, "uring") == 0) *kind = LEAT__AIO_URING;
    else if (strcmp(env, "threads") == 0) *kind = LEAT__AIO_THREADS;
    else return leat__fail(err, LEAT_EINVAL, "LEAT_IO=%s: must be uring or threads", env);
    return 0;
}

static int open_backend(leat__aio *a, const leat__aio_opts *o, leat_error *err)
{
    bool forced;
    leat__aio_kind kind;
    LEAT_TRY(choose(o, &kind, &forced, err));
    a->kind = kind;
    if (kind == LEAT__AIO_MANUAL) return 0;
    if (kind != LEAT__AIO_THREADS) {
        a->kind = LEAT__AIO_URING; /* set before the ring's thread starts, which may change it */
        int rc = leat__aio_uring_open(a, err);
        if (rc == 0 || forced || rc != LEAT_ENOTSUP) return rc;
        leat__error_reset(err);
    }
    a->kind = LEAT__AIO_THREADS;
    return leat__aio_threads_open(a, err);
}

int leat__aio_open(leat__aio **out, const leat__aio_opts *opts, leat_error *err)
{
    leat__aio_opts o = {0};
    *out = NULL;
    if (opts != NULL) o = *opts;
    leat__aio *a = LEAT_NEW(IO, leat__aio);
    if (a == NULL) return leat__fail_nomem(err, sizeof *a, "a read lane");
    a->depth = LEAT_MIN(o.depth ? o.depth : DEPTH_DEFAULT, DEPTH_MAX);
    a->max_depth = LEAT_MIN(o.max_depth ? o.max_depth : LEAT_MAX(a->depth, 64u), DEPTH_MAX);
    a->depth = LEAT_MIN(a->depth, a->max_depth);
    leat__mutex_init(&a->lock);
    leat__cond_init(&a->work);
    leat__cond_init(&a->finished);
    int rc = open_backend(a, &o, err);
    if (rc == 0) *out = a;
    else leat__aio_close(&a);
    return rc;
}

void leat__aio_close(leat__aio **lane)
{
    leat__aio *a = *lane;
    if (a == NULL) return;
    leat__mutex_lock(&a->lock);
    a->closing = true;
    leat__aio_list canceled = a->pending;
    a->pending = (leat__aio_list){NULL, NULL};
    leat__remote *remote = a->in_flight > 0 ? a->remote : NULL;
    leat__cond_broadcast(&a->work);
    leat__mutex_unlock(&a->lock);
    if (remote != NULL) leat__remote_cancel(remote, a);
    for (leat__aio_req *r; (r = leat__aio_list_pop(&canceled)) != NULL;) {
        r->rc = LEAT_ECANCELED;
        r->done_ns = leat__clock_ns();
        hand_out(a, r, &a->queued);
    }
    leat__mutex_lock(&a->lock);
    while (a->queued + a->in_flight > 0) leat__cond_wait(&a->finished, &a->lock);
    leat__mutex_unlock(&a->lock);
    LEAT_ASSERT(a->pending.head == NULL);
    leat__aio_uring_close(a);
    leat__aio_threads_close(a);
    leat__cond_destroy(&a->finished);
    leat__cond_destroy(&a->work);
    leat__mutex_destroy(&a->lock);
    leat__free(a);
    *lane = NULL;
}

static void remote_done(leat__range *range, int rc, const leat_error *err)
{
    leat__aio_req *r = range->cookie;
    r->got = range->got;
    if (rc != 0 && err != NULL) snprintf(r->note, sizeof r->note, "%s", err->message);
    leat__aio_complete((leat__aio *)range->owner, r, rc, 0);
}

static void submit_remote(leat__aio *a, leat__aio_req *r)
{
    leat__remote *f = leat__file_remote(r->file);
    r->range = (leat__range){
        .offset = r->offset, .buf = r->buf, .len = r->len, .owner = a, .done = remote_done, .cookie = r};
    uint64_t size = leat__remote_size(f);
    leat__mutex_lock(&a->lock);
    a->in_flight++;
    a->remote = f;
    bool stopped = a->closing || a->stopped;
    leat__mutex_unlock(&a->lock);
    if (stopped) {
        leat__aio_complete(a, r, LEAT_ECANCELED, 0);
    } else if (r->len == 0) {
        leat__aio_complete(a, r, 0, 0);
    } else if (r->offset >= size || r->len > size - r->offset) {
        r->got = r->offset < size ? (size_t)(size - r->offset) : 0;
        leat__aio_complete(a, r, LEAT_EDATA, 0);
    } else {
        leat__remote_read(f, &r->range); /* the request may be done and freed when this returns */
        leat__mutex_lock(&a->lock);
        stopped = a->stopped;
        leat__mutex_unlock(&a->lock);
        if (stopped) leat__remote_cancel(f, a); /* reads were stopped between our check and the submission */
    }
}

void leat__aio_stop_remote(leat__aio *a, bool on)
{
    leat__mutex_lock(&a->lock);
    a->stopped = on;
    leat__remote *remote = a->in_flight > 0 ? a->remote : NULL;
    leat__mutex_unlock(&a->lock);
    if (on && remote != NULL) leat__remote_cancel(remote, a);
}

void leat__aio_submit(leat__aio *a, leat__aio_req *r)
{
    LEAT_ASSERT(r->file != NULL && (r->buf != NULL || r->len == 0));
    r->rc = 0;
    r->note[0] = '\0';
    r->sys_errno = 0;
    r->got = 0;
    r->hold_ns = 0;
    r->seated = false;
    r->done_ns = 0;
    r->submit_ns = leat__clock_ns();
    if (leat__file_remote(r->file) != NULL && a->kind != LEAT__AIO_MANUAL) {
        submit_remote(a, r);
        return;
    }
    leat__mutex_lock(&a->lock);
    a->queued++;
    if (a->closing) { /* a callback submits during close */
        leat__mutex_unlock(&a->lock);
        r->rc = LEAT_ECANCELED;
        r->done_ns = r->submit_ns;
        hand_out(a, r, &a->queued);
        return;
    }
    leat__aio_list_push(&a->pending, r);
    leat__aio_kind kind = a->kind;
    if (kind == LEAT__AIO_THREADS) leat__aio_threads_kick_locked(a);
    leat__mutex_unlock(&a->lock);
    if (kind == LEAT__AIO_URING) leat__aio_uring_kick(a);
}

bool leat__aio_turn(leat__aio *a, uint32_t draw)
{
    leat__mutex_lock(&a->lock);
    for (uint32_t skip = a->queued > 0 ? draw % a->queued : 0; skip > 0; skip--)
        leat__aio_list_push(&a->pending, leat__aio_list_pop(&a->pending));
    leat__aio_req *r = leat__aio_take_locked(a);
    leat__mutex_unlock(&a->lock);
    if (r == NULL) return false;
    leat__aio_serve(a, r);
    return true;
}

int leat__aio_wait(leat__aio *a, leat__aio_req **req, uint64_t deadline_ns)
{
    int rc = 0;
    leat__mutex_lock(&a->lock);
    while ((*req = leat__aio_list_pop(&a->done)) == NULL) {
        if (a->queued + a->in_flight == 0) rc = LEAT_ENOENT;
        else if (deadline_ns == UINT64_MAX) leat__cond_wait(&a->finished, &a->lock);
        else if (!leat__cond_wait_until(&a->finished, &a->lock, deadline_ns) && a->done.head == NULL)
            rc = LEAT_ETIMEDOUT;
        if (rc != 0) break;
    }
    leat__mutex_unlock(&a->lock);
    return rc;
}

void leat__aio_depth_set(leat__aio *a, uint32_t depth)
{
    leat__mutex_lock(&a->lock);
    a->depth = LEAT_MAX(LEAT_MIN(depth, a->max_depth), 1u);
    check_locked(a);
    if (a->kind == LEAT__AIO_THREADS && a->pending.head != NULL) leat__aio_threads_kick_locked(a);
    leat__cond_broadcast(&a->work);
    leat__aio_kind kind = a->kind;
    leat__mutex_unlock(&a->lock);
    if (kind == LEAT__AIO_URING) leat__aio_uring_kick(a);
}

static uint32_t locked_value(const leat__aio *a, const uint32_t *value)
{
    leat__mutex *lock = (leat__mutex *)&a->lock;
    leat__mutex_lock(lock);
    uint32_t v = *value;
    leat__mutex_unlock(lock);
    return v;
}

leat__aio_kind leat__aio_backend(const leat__aio *a)
{
    leat__mutex *lock = (leat__mutex *)&a->lock;
    leat__mutex_lock(lock);
    leat__aio_kind kind = a->kind;
    leat__mutex_unlock(lock);
    return kind;
}

uint32_t leat__aio_depth(const leat__aio *a)
{
    return locked_value(a, &a->depth);
}

uint32_t leat__aio_in_flight(const leat__aio *a)
{
    return locked_value(a, &a->in_flight);
}

int leat__aio_error(const leat__aio_req *r, leat_error *err)
{
    const char *path = leat__file_path(r->file);
    unsigned long long at = (unsigned long long)(r->offset + r->got);
    if (r->rc == 0) return 0;
    if (r->note[0] != '\0') leat__fail(err, r->rc, "%s", r->note);
    else if (r->rc == LEAT_EDATA)
        leat__fail(err, LEAT_EDATA, "%s: too short: there is no byte %llu, %zu are expected from there", path,
                   at, r->len - r->got);
    else if (r->sys_errno != 0) leat__fail_errno(err, r->sys_errno, "%s: cannot read at byte %llu", path, at);
    else leat__fail(err, r->rc, "%s: read at byte %llu was canceled", path, at);
    leat__error_at(err, NULL, -1, (int64_t)at);
    return r->rc;
}
