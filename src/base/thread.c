/* SPDX-License-Identifier: Apache-2.0
 *
 * The shim over pthreads. Errors of lock calls mean a bug in leat: they assert.
 */
#include "base/thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/mem.h"

#define NAME_BYTES 16 /* the kernel's limit, NUL included */
/* Many threads with the default of 8 MiB would exceed a limit of the address space. Sanitizers need more
 * stack than our 1 MiB. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_BYTES (8u << 20)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define STACK_BYTES (8u << 20)
#endif
#endif
#ifndef STACK_BYTES
#define STACK_BYTES (1u << 20)
#endif

typedef struct start {
    leat__thread_main main;
    void *arg;
    char name[NAME_BYTES];
} start;

static void *run(void *arg)
{
    start s = *(start *)arg;
    leat__free(arg);
    pthread_setname_np(pthread_self(), s.name);
    s.main(s.arg);
    return NULL;
}

/* Fault signals stay unblocked: they belong to the thread that caused them. */
static void block_signals(sigset_t *old)
{
    sigset_t mask;
    sigfillset(&mask);
    sigdelset(&mask, SIGSEGV);
    sigdelset(&mask, SIGBUS);
    sigdelset(&mask, SIGFPE);
    sigdelset(&mask, SIGILL);
    sigdelset(&mask, SIGABRT);
    sigdelset(&mask, SIGTRAP);
    sigdelset(&mask, SIGPROF);
    pthread_sigmask(SIG_SETMASK, &mask, old);
}

static int create(pthread_t *handle, start *s)
{
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);
    if (rc != 0) return rc;
    pthread_attr_setstacksize(&attr, STACK_BYTES); /* when refused, the default size is used */
    rc = pthread_create(handle, &attr, run, s);
    pthread_attr_destroy(&attr);
    return rc;
}

int leat__thread_start(leat__thread *t, const char *name, leat__thread_main main, void *arg, leat_error *err)
{
    sigset_t old;
    int rc;

    t->running = false;
    start *s = leat__alloc(LEAT__MEM_MISC, sizeof *s);
    if (s == NULL) return leat__fail_nomem(err, sizeof *s, "a thread start");
    s->main = main;
    s->arg = arg;
    snprintf(s->name, sizeof s->name, "%s", name);
    if (LEAT_FAULT(LEAT__FAULT_THREAD)) {
        rc = EAGAIN;
    } else {
        block_signals(&old); /* the new thread inherits the mask */
        rc = create(&t->handle, s);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    if (rc != 0) {
        leat__free(s);
        leat__fail_errno(err, rc, "cannot start thread %s", name);
        if (err != NULL) err->code = LEAT_ETHREAD;
        return LEAT_ETHREAD;
    }
    t->running = true;
    return 0;
}

void leat__thread_join(leat__thread *t)
{
    if (!t->running) return;
    pthread_join(t->handle, NULL);
    t->running = false;
}

uint32_t leat__thread_id(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

void leat__thread_yield(void)
{
    sched_yield();
}

bool leat__thread_set_cpus(const uint64_t *mask, size_t bytes)
{
    return syscall(SYS_sched_setaffinity, 0, bytes, mask) == 0;
}

/* LEAT_ASSERT() is compiled out in release builds, but the call must still be made. */
#define MUST(call)                                                                                           \
    do {                                                                                                     \
        int must_rc_ = (call);                                                                               \
        LEAT_ASSERT(must_rc_ == 0);                                                                          \
        (void)must_rc_;                                                                                      \
    } while (0)

void leat__mutex_init(leat__mutex *m)
{
    MUST(pthread_mutex_init(&m->m, NULL));
}

void leat__mutex_destroy(leat__mutex *m)
{
    MUST(pthread_mutex_destroy(&m->m));
}

void leat__mutex_lock(leat__mutex *m)
{
    MUST(pthread_mutex_lock(&m->m));
}

void leat__mutex_unlock(leat__mutex *m)
{
    MUST(pthread_mutex_unlock(&m->m));
}

void leat__cond_init(leat__cond *c)
{
    pthread_condattr_t attr;
    MUST(pthread_condattr_init(&attr));
    MUST(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
    MUST(pthread_cond_init(&c->c, &attr));
    pthread_condattr_destroy(&attr);
}

void leat__cond_destroy(leat__cond *c)
{
    MUST(pthread_cond_destroy(&c->c));
}

void leat__cond_signal(leat__cond *c)
{
    MUST(pthread_cond_signal(&c->c));
}

void leat__cond_broadcast(leat__cond *c)
{
    MUST(pthread_cond_broadcast(&c->c));
}

void leat__cond_wait(leat__cond *c, leat__mutex *m)
{
    MUST(pthread_cond_wait(&c->c, &m->m));
}

bool leat__cond_wait_until(leat__cond *c, leat__mutex *m, uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX) {
        leat__cond_wait(c, m);
        return true;
    }
    struct timespec t = {.tv_sec = (time_t)(deadline_ns / LEAT_NS_PER_S),
                         .tv_nsec = (long)(deadline_ns % LEAT_NS_PER_S)};
    int rc = pthread_cond_timedwait(&c->c, &m->m, &t);
    LEAT_ASSERT(rc == 0 || rc == ETIMEDOUT);
    return rc == 0;
}

void leat__gate_init(leat__gate *g)
{
    pthread_rwlockattr_t attr;
    MUST(pthread_rwlockattr_init(&attr));
    MUST(pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP));
    MUST(pthread_rwlock_init(&g->lock, &attr));
    pthread_rwlockattr_destroy(&attr);
}

void leat__gate_destroy(leat__gate *g)
{
    MUST(pthread_rwlock_destroy(&g->lock));
}

void leat__gate_share(leat__gate *g)
{
    MUST(pthread_rwlock_rdlock(&g->lock));
}

void leat__gate_alone(leat__gate *g)
{
    MUST(pthread_rwlock_wrlock(&g->lock));
}

void leat__gate_leave(leat__gate *g)
{
    MUST(pthread_rwlock_unlock(&g->lock));
}

/* Only atomics and one system call. Restores errno, as a signal handler must. */
void leat__bell_ring(leat__bell *b)
{
    int saved = errno;
    atomic_fetch_add(&b->rings, 1);
    if (atomic_load(&b->waiters) > 0)
        syscall(SYS_futex, &b->rings, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
    errno = saved;
}

uint32_t leat__bell_rings(const leat__bell *b)
{
    return atomic_load(&b->rings);
}

bool leat__bell_wait_until(leat__bell *b, uint32_t seen, leat__mutex *m, uint64_t deadline_ns)
{
    struct timespec t = {.tv_sec = (time_t)(deadline_ns / LEAT_NS_PER_S),
                         .tv_nsec = (long)(deadline_ns % LEAT_NS_PER_S)};
    bool ends = deadline_ns != UINT64_MAX;

    atomic_fetch_add(&b->waiters, 1);
    leat__mutex_unlock(m);
    /* an absolute time of CLOCK_MONOTONIC */
    long rc = syscall(SYS_futex, &b->rings, FUTEX_WAIT_BITSET_PRIVATE, seen, ends ? &t : NULL, NULL,
                      FUTEX_BITSET_MATCH_ANY);
    bool late = rc < 0 && errno == ETIMEDOUT;
    leat__mutex_lock(m);
    atomic_fetch_sub(&b->waiters, 1);
    return !late;
}

void leat__once_run(leat__once *once, void (*fn)(void))
{
    MUST(pthread_once(once, fn));
}

static _Atomic uint32_t generation = 1;
static leat__once fork_once = LEAT__ONCE_INIT;

static leat__mutex *renewed[16];
static _Atomic uint32_t renewed_count;

static void after_fork_in_child(void)
{
    atomic_fetch_add(&generation, 1);
    for (uint32_t i = 0; i < atomic_load(&renewed_count); i++) leat__mutex_init(renewed[i]);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

static atomic_bool stop;

void leat__stop_ask(void)
{
    atomic_store(&stop, true);
}

bool leat__stop_asked(void)
{
    return atomic_load_explicit(&stop, memory_order_relaxed);
}

static bool (*_Atomic interrupt)(void);

void leat__interrupt_hook(bool (*asked)(void))
{
    atomic_store(&interrupt, asked);
}

bool leat__interrupt_hooked(void)
{
    return atomic_load_explicit(&interrupt, memory_order_relaxed) != NULL;
}

bool leat__interrupted(void)
{
    bool (*asked)(void) = atomic_load(&interrupt);
    return asked != NULL && asked();
}

uint32_t leat__fork_generation(void)
{
    leat__once_run(&fork_once, watch_forks);
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

void leat__fork_renew(leat__mutex *m)
{
    static leat__mutex lock = {PTHREAD_MUTEX_INITIALIZER};

    leat__fork_generation(); /* starts detecting forks */
    leat__mutex_lock(&lock);
    uint32_t n = atomic_load(&renewed_count), i = 0;
    while (i < n && renewed[i] != m) i++;
    LEAT_ASSERT(i < sizeof renewed / sizeof renewed[0]);
    if (i == n) {
        renewed[n] = m;
        atomic_store(&renewed_count, n + 1);
    }
    leat__mutex_unlock(&lock);
}
