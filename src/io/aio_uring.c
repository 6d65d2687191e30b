/* SPDX-License-Identifier: Apache-2.0
 *
 * Asynchronous reads by io_uring. One thread owns the ring: it submits pending requests, waits
 * for completions, resubmits short reads, and calls `done`. Other threads only add to the pending
 * list and wake the owner through an eventfd. A read of the eventfd is always in the ring, so a
 * completion and a new request end the same wait.
 *
 * A kernel that allowed creating the ring may still refuse to run it (seccomp, at any time). Then
 * the lane falls back to threads: requests that the kernel has not accepted return to the pending
 * list; accepted ones are waited for.
 */
#include "io/aio_impl.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef LEAT_HAVE_URING

#include <liburing.h>
#include <sys/eventfd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/num.h"
#include "io/inject.h"

#define TRANSFER_MAX (1u << 30)
#define BUSY_TRIES 1000 /* retries when the kernel is short of memory: about one second */
#define NAP_NS 1000000

struct leat__aio_uring {
    struct io_uring ring;
    leat__thread thread;
    int wake_fd;
    uint64_t wake_value;
    bool wake_armed;
    bool refused;         /* the kernel refuses to run the ring */
    leat__aio_list fresh; /* queued, not yet accepted by the kernel; oldest first */
    uint32_t fresh_count;
    leat__aio_req wake;  /* represents the eventfd's read */
    uint32_t taken;      /* requests in flight in the kernel */
    leat__aio_list held; /* requests with an injected delay that has not ended */
};

static void arm_wake(leat__aio_uring *u)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    if (sqe == NULL) return; /* the next turn tries again */
    io_uring_prep_read(sqe, u->wake_fd, &u->wake_value, sizeof u->wake_value, 0);
    io_uring_sqe_set_data(sqe, NULL);
    leat__aio_list_push(&u->fresh, &u->wake);
    u->fresh_count++;
    u->wake_armed = true;
}

/* Queues a read; false when the ring is full. The ring is larger than the depth, so that should not happen,
 * but the loop handles it. */
static bool queue_read(leat__aio_uring *u, leat__aio_req *r)
{
    LEAT_ASSERT(r->got < r->len && r->seated);
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    if (sqe == NULL) return false;
    io_uring_prep_read(sqe, leat__file_fd(r->file), (char *)r->buf + r->got,
                       (unsigned)LEAT_MIN(r->len - r->got, (size_t)TRANSFER_MAX), r->offset + r->got);
    io_uring_sqe_set_data(sqe, r);
    leat__aio_list_push(&u->fresh, r);
    u->fresh_count++;
    return true;
}

static void unseat(leat__aio_req *r)
{
    if (r->seated) leat__file_release(r->file);
    r->seated = false;
}

static void end_read(leat__aio *a, leat__aio_req *r, int rc, int sys_errno)
{
    unseat(r);
    leat__aio_complete(a, r, rc, sys_errno);
}

/* Queues a read; when the file's descriptor is only available after others finish, retries
 * soon. */
static void queue_seated(leat__aio *a, leat__aio_req *r)
{
    LEAT_ASSERT(!r->seated);
    int bad = leat__file_hold(r->file);
    if (bad == EAGAIN) {
        r->hold_ns = leat__clock_ns() + NAP_NS;
        leat__aio_list_push(&a->uring->held, r);
    } else if (bad != 0) {
        end_read(a, r, leat__code_of_errno(bad), bad);
    } else {
        r->seated = true;
        if (!queue_read(a->uring, r)) end_read(a, r, LEAT_EIO, EBUSY);
    }
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
        end_read(a, r, leat__code_of_errno(bad), bad);
    } else if (r->len == 0) {
        end_read(a, r, 0, 0);
    } else {
        queue_seated(a, r);
    }
}

/* Reads the unaligned end of a direct file with plain reads, because O_DIRECT cannot. */
static void finish_plainly(leat__aio *a, leat__aio_req *r)
{
    leat_error err;
    size_t more;
    unseat(r);
    int rc = leat__file_pread_some(r->file, (char *)r->buf + r->got, r->len - r->got, r->offset + r->got,
                                   &more, &err);
    r->got += more;
    if (rc == 0 && r->got < r->len) rc = LEAT_EDATA;
    end_read(a, r, rc, rc != 0 && rc != LEAT_EDATA ? err.sys_errno : 0);
}

static void on_completion(leat__aio *a, leat__aio_req *r, int res)
{
    LEAT_ASSERT(a->uring->taken > 0);
    bool again = res == -EINTR || res == -EAGAIN;
    a->uring->taken--;
    if (a->uring->refused && (again || res > 0)) {
        r->got += again ? 0 : (size_t)res;
        finish_plainly(a, r);
    } else if (again) {
        if (!queue_read(a->uring, r)) end_read(a, r, LEAT_EIO, EBUSY);
    } else if (res < 0) {
        end_read(a, r, leat__code_of_errno(-res), -res);
    } else if (res == 0) {
        end_read(a, r, LEAT_EDATA, 0);
    } else {
        r->got += (size_t)res;
        if (r->got >= r->len) end_read(a, r, 0, 0);
        else if (leat__file_direct(r->file) && r->got % LEAT__IO_ALIGN != 0) finish_plainly(a, r);
        else if (!queue_read(a->uring, r)) end_read(a, r, LEAT_EIO, EBUSY);
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

/* Starts requests whose delay has passed; returns when the next is due, UINT64_MAX for none. */
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

/* Submits queued requests and waits for a completion; returns 0, or an errno when the kernel refuses. */
static int wait_for_something(leat__aio *a, uint64_t until_ns)
{
    struct io_uring_cqe *cqe;
    leat__aio_uring *u = a->uring;
    struct __kernel_timespec ts = {0};
    int rc;

    if (LEAT_FAULT(LEAT__FAULT_RING)) return EPERM;
    if (until_ns == UINT64_MAX) {
        rc = io_uring_submit_and_wait(&u->ring, 1);
    } else {
        uint64_t now = leat__clock_ns(), ns = until_ns > now ? until_ns - now : 0;
        ts = (struct __kernel_timespec){(int64_t)(ns / LEAT_NS_PER_S), (long long)(ns % LEAT_NS_PER_S)};
        rc = io_uring_submit_and_wait_timeout(&u->ring, &cqe, 1, &ts, NULL);
    }
    /* requests that left the queue (the oldest) are now in the kernel, even if the call failed */
    for (uint32_t left = io_uring_sq_ready(&u->ring); u->fresh_count > left; u->fresh_count--) {
        leat__aio_req *r = leat__aio_list_pop(&u->fresh);
        if (r != &u->wake) u->taken++;
    }
    return rc < 0 && rc != -EINTR && rc != -ETIME ? -rc : 0;
}

static void nap(void)
{
    struct timespec t = {.tv_nsec = NAP_NS};
    nanosleep(&t, NULL);
}

/* Moves all requests that the kernel has not accepted to threads. If no thread can be started,
 * this one serves them all. */
static void fall_back(leat__aio *a)
{
    leat__aio_uring *u = a->uring;
    leat__aio_list lists[2] = {u->fresh, u->held};

    u->refused = true;
    u->fresh = u->held = (leat__aio_list){NULL, NULL};
    bool threads = leat__aio_threads_open(a, NULL) == 0;
    leat__mutex_lock(&a->lock);
    for (int i = 0; i < 2; i++) {
        for (leat__aio_req *r; (r = leat__aio_list_pop(&lists[i])) != NULL;) {
            if (r == &u->wake) continue;
            unseat(r);
            leat__aio_list_push(&a->pending, r);
            a->in_flight--;
            a->queued++;
        }
    }
    if (threads) {
        a->kind = LEAT__AIO_THREADS;
        leat__aio_threads_kick_locked(a);
    }
    leat__mutex_unlock(&a->lock);
    while (u->taken > 0) {
        reap(a);
        if (u->taken > 0) nap();
    }
}

/* Reads requests one at a time when there is neither a ring nor threads. The kernel may still
 * have a read of the eventfd, which consumes its value, so this polls every millisecond. */
static void serve_plainly(leat__aio *a)
{
    for (;;) {
        leat__mutex_lock(&a->lock);
        bool over = a->closing && a->queued + a->in_flight == 0;
        leat__aio_req *r = over ? NULL : leat__aio_take_locked(a);
        leat__mutex_unlock(&a->lock);
        if (over) return;
        if (r != NULL) leat__aio_serve(a, r);
        else nap();
    }
}

/* Runs one iteration; returns 0, or an errno when the kernel refuses. */
static int turn(leat__aio *a)
{
    if (!a->uring->wake_armed) arm_wake(a->uring);
    for (;;) {
        leat__mutex_lock(&a->lock);
        leat__aio_req *r = leat__aio_take_locked(a);
        leat__mutex_unlock(&a->lock);
        if (r == NULL) break;
        start_read(a, r);
    }
    int refusal = wait_for_something(a, release_held(a));
    reap(a);
    return refusal;
}

static void service(void *arg)
{
    leat__aio *a = arg;
    for (uint32_t busy = 0;;) {
        leat__mutex_lock(&a->lock);
        bool over = a->closing && a->queued + a->in_flight == 0;
        leat__mutex_unlock(&a->lock);
        if (over) return;
        int refusal = turn(a);
        bool passes = refusal == EAGAIN || refusal == EBUSY || refusal == ENOMEM;
        busy = passes ? busy + 1 : 0;
        if (refusal == 0) continue;
        if (!passes || busy > BUSY_TRIES) break;
        nap();
    }
    fall_back(a);
    if (a->threads == NULL) serve_plainly(a);
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
    /* Twice the depth, so that a resubmission never finds the queue full. */
    int rc = LEAT_FAULT(LEAT__FAULT_MAP) ? -ENOMEM : io_uring_queue_init(2 * a->max_depth + 2, &u->ring, 0);
    if (rc < 0) { /* old kernel, seccomp, or a low memlock limit: use threads */
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
