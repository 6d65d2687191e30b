/* SPDX-License-Identifier: Apache-2.0
 *
 * Asynchronous reads by threads that block in pread, which works everywhere. Threads are started on demand,
 * at most as many as the depth. If a start fails, the lane has fewer threads.
 */
#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "io/aio_impl.h"

#define THREADS_MAX 64u

struct leat__aio_threads {
    leat__thread threads[THREADS_MAX];
    uint32_t started;
    uint32_t idle; /* available for a request: waiting, woken but not yet running, or just
                    * started */
};

void leat__aio_serve(leat__aio *a, leat__aio_req *r)
{
    LEAT_ASSERT(r->len == 0 || r->buf != NULL);
    leat_error err;
    size_t got;
    int rc = leat__file_pread_some(r->file, r->buf, r->len, r->offset, &got, &err);
    int sys_errno = rc != 0 ? err.sys_errno : 0;
    r->got = got;
    if (rc == 0 && got < r->len) rc = LEAT_EDATA;
    leat__aio_complete(a, r, rc, sys_errno);
}

static void worker(void *arg)
{
    leat__aio *a = arg;
    leat__mutex_lock(&a->lock);
    while (!a->closing) {
        leat__aio_req *r = leat__aio_take_locked(a);
        if (r == NULL) {
            leat__cond_wait(&a->work, &a->lock);
            continue;
        }
        LEAT_ASSERT(a->threads->idle > 0);
        a->threads->idle--;
        leat__mutex_unlock(&a->lock);
        leat__aio_serve(a, r);
        leat__mutex_lock(&a->lock);
        a->threads->idle++;
    }
    leat__mutex_unlock(&a->lock);
}

static int start_one_locked(leat__aio *a, leat_error *err)
{
    LEAT_ASSERT(a->threads->started < THREADS_MAX);
    leat__aio_threads *t = a->threads;
    LEAT_TRY(leat__thread_start(&t->threads[t->started], "leat-io", worker, a, err));
    t->started++;
    t->idle++;
    return 0;
}

int leat__aio_threads_open(leat__aio *a, leat_error *err)
{
    leat__aio_threads *t = LEAT_NEW(IO, leat__aio_threads);
    if (t == NULL) return leat__fail_nomem(err, sizeof *t, "a read lane");
    leat__mutex_lock(&a->lock);
    a->threads = t;
    int rc = start_one_locked(a, err); /* at least one thread must start */
    if (rc == 0) {
        a->max_depth = LEAT_MIN(a->max_depth, THREADS_MAX);
        a->depth = LEAT_MIN(a->depth, a->max_depth);
    } else {
        a->threads = NULL;
    }
    leat__mutex_unlock(&a->lock);
    if (rc != 0) leat__free(t);
    return rc;
}

void leat__aio_threads_kick_locked(leat__aio *a)
{
    LEAT_ASSERT(a->threads->idle <= a->threads->started);
    leat__aio_threads *t = a->threads;
    /* A woken thread counts as idle until it runs, so idle threads are compared with all queued requests. So
     * no request waits behind a slow one while the depth allows another thread. */
    while (t->idle < a->queued && t->started < a->depth)
        if (start_one_locked(a, NULL) != 0) break;
    leat__cond_signal(&a->work);
}

void leat__aio_threads_close(leat__aio *a)
{
    if (a->threads == NULL) return;
    leat__mutex_lock(&a->lock);
    leat__cond_broadcast(&a->work);
    leat__mutex_unlock(&a->lock);
    for (uint32_t i = 0; i < a->threads->started; i++) leat__thread_join(&a->threads->threads[i]);
    leat__free(a->threads);
    a->threads = NULL;
}
