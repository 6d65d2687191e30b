/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

typedef struct seen {
    char name[32];
    uint32_t id;
    bool int_blocked, segv_blocked;
} seen;

static void look_around(void *arg)
{
    seen *s = arg;
    sigset_t mask;
    pthread_getname_np(pthread_self(), s->name, sizeof s->name);
    s->id = leat__thread_id();
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    s->int_blocked = sigismember(&mask, SIGINT);
    s->segv_blocked = sigismember(&mask, SIGSEGV);
    leat__thread_yield();
}

static void threads_are_named_and_block_signals(void **state)
{
    leat__thread t = {0};
    seen s = {0};
    sigset_t mask;
    (void)state;
    assert_ok(leat__thread_start(&t, "leat-worker-with-a-long-name", look_around, &s, NULL));
    leat__thread_join(&t);
    leat__thread_join(&t); /* a second join does nothing */
    assert_string_equal(s.name, "leat-worker-wit");
    assert_int_not_equal(s.id, leat__thread_id());
    assert_true(s.int_blocked);
    assert_false(s.segv_blocked);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_false(sigismember(&mask, SIGINT)); /* ours has not changed */
    assert_no_leaks();
}

static void failed_start_is_an_error(void **state)
{
    leat__thread t;
    leat_error err;
    seen s;
    (void)state;
    if (!leat__fault_available()) skip();
    leat__fault_arm(LEAT__FAULT_THREAD, 1, false);
    assert_code(LEAT_ETHREAD, leat__thread_start(&t, "w", look_around, &s, &err));
    leat__fault_disarm();
    assert_contains(err.message, "cannot start thread w");
    assert_int_equal(err.code, LEAT_ETHREAD);
    leat__thread_join(&t);
    leat__fault_arm(LEAT__FAULT_ALLOC, 1, false);
    assert_code(LEAT_ENOMEM, leat__thread_start(&t, "w", look_around, &s, &err));
    leat__fault_disarm();
    assert_no_leaks();
}

typedef struct pair {
    leat__mutex lock;
    leat__cond changed;
    int turn;
} pair;

static void pong(void *arg)
{
    pair *p = arg;
    for (int i = 0; i < 1000; i++) {
        leat__mutex_lock(&p->lock);
        while (p->turn != 1) leat__cond_wait(&p->changed, &p->lock);
        p->turn = 0;
        leat__cond_broadcast(&p->changed);
        leat__mutex_unlock(&p->lock);
    }
}

static void conditions_wake(void **state)
{
    pair p = {.turn = 0};
    leat__thread t;
    (void)state;
    leat__mutex_init(&p.lock);
    leat__cond_init(&p.changed);
    assert_ok(leat__thread_start(&t, "pong", pong, &p, NULL));
    for (int i = 0; i < 1000; i++) {
        leat__mutex_lock(&p.lock);
        while (p.turn != 0) leat__cond_wait_until(&p.changed, &p.lock, UINT64_MAX);
        p.turn = 1;
        leat__cond_signal(&p.changed);
        leat__mutex_unlock(&p.lock);
    }
    leat__thread_join(&t);
    leat__mutex_lock(&p.lock);
    assert_false(pthread_mutex_trylock(&p.lock.m) == 0);
    uint64_t t0 = leat__clock_ns();
    while (leat__cond_wait_until(&p.changed, &p.lock, t0 + 3 * LEAT_NS_PER_MS)) {
    }
    assert_true(leat__clock_ns() - t0 >= 3 * LEAT_NS_PER_MS);
    leat__mutex_unlock(&p.lock);
    assert_true(pthread_mutex_trylock(&p.lock.m) == 0);
    leat__mutex_unlock(&p.lock);
    leat__cond_destroy(&p.changed);
    leat__mutex_destroy(&p.lock);
}

static atomic_int runs;
static void once_body(void)
{
    atomic_fetch_add(&runs, 1);
}

static leat__once once = LEAT__ONCE_INIT;
static void run_once(void *arg)
{
    (void)arg;
    leat__once_run(&once, once_body);
}

static void once_is_once(void **state)
{
    leat__thread t[8];
    (void)state;
    for (int i = 0; i < 8; i++) assert_ok(leat__thread_start(&t[i], "once", run_once, NULL, NULL));
    for (int i = 0; i < 8; i++) leat__thread_join(&t[i]);
    assert_int_equal(runs, 1);
}

static void fork_is_detected(void **state)
{
    (void)state;
    uint32_t here = leat__fork_generation();
    assert_int_equal(leat__fork_generation(), here);
    pid_t child = fork();
    if (child == 0) _exit(leat__fork_generation() != here ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(leat__fork_generation(), here);
}

typedef struct rung {
    leat__mutex lock;
    leat__bell bell;
    _Atomic int said;
} rung;

static void ring_later(void *arg)
{
    rung *r = arg;
    for (int i = 1; i <= 1000; i++) {
        atomic_store(&r->said, i); /* without the lock, as a signal handler would */
        leat__bell_ring(&r->bell);
        if (i % 16 == 0) leat__thread_yield();
    }
}

static void no_ring_is_lost(void **state)
{
    rung r = {0};
    leat__thread t;
    (void)state;
    leat__mutex_init(&r.lock);
    leat__mutex_lock(&r.lock);
    assert_false(leat__bell_wait_until(&r.bell, leat__bell_rings(&r.bell), &r.lock, leat__clock_ns()));
    assert_ok(leat__thread_start(&t, "ringer", ring_later, &r, NULL));
    for (;;) {
        uint32_t rings = leat__bell_rings(&r.bell);
        if (atomic_load(&r.said) == 1000) break;
        assert_true(leat__bell_wait_until(&r.bell, rings, &r.lock, UINT64_MAX));
    }
    leat__mutex_unlock(&r.lock);
    leat__thread_join(&t);
    leat__mutex_destroy(&r.lock);
}

static void a_lock_held_while_forking_is_free_in_the_child(void **state)
{
    static leat__mutex lock = {PTHREAD_MUTEX_INITIALIZER};
    int status;
    (void)state;
    leat__fork_renew(&lock);
    leat__fork_renew(&lock);
    leat__mutex_lock(&lock);
    pid_t child = fork();
    if (child == 0) _exit(pthread_mutex_trylock(&lock.m) == 0 ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(pthread_mutex_trylock(&lock.m) == 0); /* the parent still holds it */
    leat__mutex_unlock(&lock);
}

static void a_stop_stays_asked(void **state)
{
    int status;
    (void)state;
    assert_false(leat__stop_asked());
    pid_t child = fork();
    if (child == 0) {
        leat__stop_ask();
        leat__stop_ask();
        _exit(leat__stop_asked() ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(leat__stop_asked());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_are_named_and_block_signals),
        cmocka_unit_test(failed_start_is_an_error),
        cmocka_unit_test(conditions_wake),
        cmocka_unit_test(once_is_once),
        cmocka_unit_test(fork_is_detected),
        cmocka_unit_test(no_ring_is_lost),
        cmocka_unit_test(a_lock_held_while_forking_is_free_in_the_child),
        cmocka_unit_test(a_stop_stays_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
