/* SPDX-License-Identifier: Apache-2.0
 *
 * Asynchronous reads by io_uring. One thread owns the ring: it moves pending requests into
 * it, waits for completions, sends short reads on their way again, and calls `done`. Other
 * threads only touch the pending list and wake it through an eventfd whose read is always
 * in the ring, so a completion and a new request wake the same wait.
 */
#include "io/aio_impl.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#ifdef LEAT_HAVE_URING

#include <liburing.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/num.h"
#include "io/inject.h"

#define TRANSFER_MAX (1u << 30)

struct leat__aio_uring {
    struct io_uring ring;
    leat__thread thread;
    int wake_fd;
    uint64_t wake_value;
    bool wake_armed;
    leat__aio_list held; /* injected delays: wait for their moment */
};

static void arm_wake(leat__aio_uring *u)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    if (sqe == NULL) return; /* tried again on the next turn */
    io_uring_prep_read(sqe, u->wake_fd, &u->wake_value, sizeof u->wake_value, 0);
    io_uring_sqe_set_data(sqe, NULL);
    u->wake_armed = true;
}

/* A ring larger than the depth always has room; the loop stays correct if it has not. */
static bool queue_read(leat__aio_uring *u, leat__aio_req *r)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    if (sqe == NULL) return false;
    io_uring_prep_read(sqe, leat__file_fd(r->file), (char *)r->buf + r->got,
                       (unsigned)LEAT_MIN(r->len - r->got, (size_t)TRANSFER_MAX),
                       r->offset + r->got);
    io_uring_sqe_set_data(sqe, r);
    return true;
}

static void start_read(leat__aio *a, leat__aio_req *r)
{
    uint64_t delay_ns = 0;
    int bad = 0;
    if (r->hold_ns == 0) {
        bad = leat__inject_ask(leat__file_path(r->file), r->offset, r->len, &delay_ns);
        if (bad == 0 && LEAT_FAULT(LEAT__FAULT_READ)) bad = EIO;
    }
    if (delay_ns != 0 && bad == 0) {
        r->hold_ns = leat__clock_ns() + delay_ns;
        leat__aio_list_push(&a->uring->held, r);
    } else if (bad != 0) {
        leat__aio_complete(a, r, leat__code_of_errno(bad), bad);
    } else if (r->len == 0) {
        leat__aio_complete(a, r, 0, 0);
    } else if (!queue_read(a->uring, r)) {
        leat__aio_complete(a, r, LEAT_EIO, EBUSY);
    }
}

/* The ragged end of a direct file cannot be read on directly: plain reads do the rest. */
static void finish_plainly(leat__aio *a, leat__aio_req *r)
{
    leat_error err;
    size_t more;
    int rc = leat__file_pread_some(r->file, (char *)r->buf + r->got, r->len - r->got,
                                   r->offset + r->got, &more, &err);
    r->got += more;
    if (rc == 0 && r->got < r->len) rc = LEAT_EDATA;
    leat__aio_complete(a, r, rc, rc != 0 && rc != LEAT_EDATA ? err.sys_errno : 0);
}

static void on_completion(leat__aio *a, leat__aio_req *r, int res)
{
    if (res == -EINTR || res == -EAGAIN) {
        if (!queue_read(a->uring, r)) leat__aio_complete(a, r, LEAT_EIO, EBUSY);
    } else if (res < 0) {
        leat__aio_complete(a, r, leat__code_of_errno(-res), -res);
    } else if (res == 0) {
        leat__aio_complete(a, r, LEAT_EDATA, 0);
    } else {
        r->got += (size_t)res;
        if (r->got >= r->len) leat__aio_complete(a, r, 0, 0);
        else if (leat__file_direct(r->file) && r->got % LEAT__IO_ALIGN != 0) finish_plainly(a, r);
        else if (!queue_read(a->uring, r)) leat__aio_complete(a, r, LEAT_EIO, EBUSY);
    }
}

static void reap(leat__aio *a)
{
    struct io_uring_cqe *cqe;
    while (io_uring_peek_cqe(&a->uring->ring, &cqe) == 0) {
        leat__aio_req *r = io_uring_cqe_get_data(cqe);
        int res = cqe->res;
        io_uring_cqe_seen(&a->uring->ring, cqe);
        if (r == NULL) a->uring->wake_armed = false;
        else on_completion(a, r, res);
    }
}

/* Starts what was held long enough; when the next one is due, UINT64_MAX for none. */
static uint64_t release_held(leat__aio *a)
{
    leat__aio_list all = a->uring->held;
    a->uring->held = (leat__aio_list){NULL, NULL};
    uint64_t now = leat__clock_ns(), next = UINT64_MAX;
    for (leat__aio_req *r; (r = leat__aio_list_pop(&all)) != NULL;) {
        if (r->hold_ns <= now) {
            start_read(a, r);
            continue;
        }
        next = LEAT_MIN(next, r->hold_ns);
        leat__aio_list_push(&a->uring->held, r);
    }
    return next;
}

static void wait_for_something(leat__aio *a, uint64_t until_ns)
{
    struct io_uring_cqe *cqe;
    struct io_uring *ring = &a->uring->ring;
    if (until_ns == UINT64_MAX) {
        (void)io_uring_submit_and_wait(ring, 1);
        return;
    }
    uint64_t now = leat__clock_ns();
    uint64_t ns = until_ns > now ? until_ns - now : 0;
    struct __kernel_timespec ts = {(int64_t)(ns / LEAT_NS_PER_S), (long long)(ns % LEAT_NS_PER_S)};
    (void)io_uring_submit_and_wait_timeout(ring, &cqe, 1, &ts, NULL);
}

static void service(void *arg)
{
    leat__aio *a = arg;
    for (;;) {
        if (!a->uring->wake_armed) arm_wake(a->uring);
        leat__mutex_lock(&a->lock);
        bool over = a->closing && a->queued + a->in_flight == 0;
        leat__mutex_unlock(&a->lock);
        if (over) break;
        for (;;) {
            leat__mutex_lock(&a->lock);
            leat__aio_req *r = leat__aio_take_locked(a);
            leat__mutex_unlock(&a->lock);
            if (r == NULL) break;
            start_read(a, r);
        }
        wait_for_something(a, release_held(a));
        reap(a);
    }
}

int leat__aio_uring_open(leat__aio *a, leat_error *err)
{
    leat__aio_uring *u = LEAT_NEW(IO, leat__aio_uring);
    if (u == NULL) return leat__fail_nomem(err, sizeof *u, "a ring");
    u->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (u->wake_fd < 0) {
        leat__free(u);
        return leat__fail_errno(err, errno, "cannot make an eventfd");
    }
    /* Twice the depth: a resubmission never meets a full queue. */
    int rc = LEAT_FAULT(LEAT__FAULT_MAP) ? -ENOMEM
                                         : io_uring_queue_init(2 * a->max_depth + 2, &u->ring, 0);
    if (rc < 0) { /* old kernel, seccomp, or a low memlock limit: threads will do */
        close(u->wake_fd);
        leat__free(u);
        return leat__fail(err, LEAT_ENOTSUP, "io_uring is not available here: %s", strerror(-rc));
    }
    a->uring = u;
    rc = leat__thread_start(&u->thread, "leat-uring", service, a, err);
    if (rc != 0) {
        io_uring_queue_exit(&u->ring);
        close(u->wake_fd);
        leat__free(u);
        a->uring = NULL;
    }
    return rc;
}

void leat__aio_uring_kick(leat__aio *a)
{
    uint64_t one = 1;
    while (write(a->uring->wake_fd, &one, sizeof one) < 0 && errno == EINTR) continue;
}

void leat__aio_uring_close(leat__aio *a)
{
    leat__aio_uring *u = a->uring;
    if (u == NULL) return;
    leat__aio_uring_kick(a);
    leat__thread_join(&u->thread);
    io_uring_queue_exit(&u->ring);
    close(u->wake_fd);
    leat__free(u);
    a->uring = NULL;
}

#else

int leat__aio_uring_open(leat__aio *a, leat_error *err)
{
    (void)a;
    return leat__fail(err, LEAT_ENOTSUP, "this build has no io_uring");
}

void leat__aio_uring_kick(leat__aio *a)
{
    (void)a;
}

void leat__aio_uring_close(leat__aio *a)
{
    (void)a;
}

#endif
