/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the two backends of aio. Requests move
 *
 *   submit -> pending (list) -> in flight (backend) -> done callback, or the done list
 *
 * One lock guards the lists and counters; callbacks run without it.
 */
#ifndef LEAT_IO_AIO_IMPL_H
#define LEAT_IO_AIO_IMPL_H

#include "base/thread.h"
#include "io/aio.h"

typedef struct leat__aio_list {
    leat__aio_req *head, *tail;
} leat__aio_list;

typedef struct leat__aio_threads leat__aio_threads;
typedef struct leat__aio_uring leat__aio_uring;

struct leat__aio {
    leat__aio_kind kind; /* guarded by the lock: a ring may be replaced by threads */
    leat__mutex lock;
    leat__cond work;     /* a request is pending, or closing, or the depth grew */
    leat__cond finished; /* a request was added to the done list, or none is left */
    leat__aio_list pending, done;
    uint32_t depth, max_depth;
    uint32_t queued, in_flight;
    bool closing;
    bool stopped;         /* remote reads are canceled */
    leat__remote *remote; /* one of the remote files that were read, or NULL */
    leat__aio_threads *threads;
    leat__aio_uring *uring;
};

void leat__aio_list_push(leat__aio_list *l, leat__aio_req *r);
leat__aio_req *leat__aio_list_pop(leat__aio_list *l); /* NULL when empty */

/* Takes the next pending request if the depth allows; it then counts as in flight. */
leat__aio_req *leat__aio_take_locked(leat__aio *a);
/* Reads the request synchronously and completes it. */
void leat__aio_serve(leat__aio *a, leat__aio_req *r);
/* Completes a request that is in flight (without the lock). */
void leat__aio_complete(leat__aio *a, leat__aio_req *r, int rc, int sys_errno);

int leat__aio_threads_open(leat__aio *a, leat_error *err) LEAT_MUST_CHECK;
void leat__aio_threads_close(leat__aio *a);
void leat__aio_threads_kick_locked(leat__aio *a); /* something became pending */

/* LEAT_ENOTSUP when the build or the kernel has no io_uring. */
int leat__aio_uring_open(leat__aio *a, leat_error *err) LEAT_MUST_CHECK;
void leat__aio_uring_close(leat__aio *a);
void leat__aio_uring_kick(leat__aio *a); /* without the lock */

#endif
