/* SPDX-License-Identifier: Apache-2.0
 *
 * Forks and signals while a loader runs: a child that cleans up what it inherited, and opens its own,
 * does not hang, and an interrupt from a signal handler is safe at any time.
 */
#include "tiny_loader.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static char path[64];

static int make_pack(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/leat-forks-%d.leat", (int)getpid());
    tiny_pack(path, &(tiny_opts){.samples = 400, .classes = 4});
    return 0;
}

static int drop_pack(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

/* What a child does with a loader, a batch and a budget of its parent: 0, or the line that is wrong. */
static int clean_up(leat_loader *l, leat_batch *b, leat_budget *budget, const leat_loader_opts *o)
{
    leat_batch *none;
    leat_loader_stats stats;
    char text[512];
    size_t size;

    alarm(watchdog_s());
    if (leat_loader_next(l, &none, -1, NULL) != LEAT_EFORK) return __LINE__ & 127;
    if (leat_loader_begin(l, 1, NULL) != LEAT_EFORK) return __LINE__ & 127;
    if (leat_loader_read(l, &stats, sizeof stats) != LEAT_EFORK) return __LINE__ & 127;
    if (leat_loader_state(l, 0, text, sizeof text, &size, NULL) != LEAT_EFORK) return __LINE__ & 127;
    if (leat_loader_memory_set(l, 1 << 30, NULL) != LEAT_EFORK) return __LINE__ & 127;
    leat_loader_interrupt(l);
    leat_loader_stop(l);
    leat_batch_release(&b);
    leat_loader_close(&l);
    if (b != NULL || l != NULL) return __LINE__ & 127;
    if (leat_budget_try(budget, LEAT_BUDGET_BATCH, 1) != LEAT_EFORK) return __LINE__ & 127;
    leat_budget_close(&budget);
    leat_loader_opts mine = *o; /* its own, also of the cache that the parent's threads fill */
    mine.budget = NULL;
    mine.memory = 64 << 20;
    outcome got = run_with(path, &mine, 0);
    return got.rc == 0 && got.samples == 400 ? 0 : __LINE__ & 127;
}

/* AddressSanitizer's allocator takes no care of forks: its lock may be held by a thread that the child
 * does not have, and the child then hangs in its first calloc. An emulated process with threads cannot fork:
 * qemu's own assertions end the child. */
#if defined(__SANITIZE_ADDRESS__)
#define FORKS_ARE_SAFE 0
#elif defined(__has_feature)
#define FORKS_ARE_SAFE !__has_feature(address_sanitizer)
#else
#define FORKS_ARE_SAFE 1
#endif

static void a_child_may_close_what_it_inherited(void **state)
{
    (void)state;
    if (!FORKS_ARE_SAFE || getenv("LEAT_TEST_EMULATED") != NULL) skip();
    for (int i = 0; i < 24; i++) {
        leat_budget *budget;
        leat_loader *l;
        leat_batch *b;
        int status;
        leat_loader_opts o = base_opts();
        set_order(&o, (leat_order)(i % 3));
        o.cache = (leat_cache)(i / 3 % 2);
        o.threads = i % 4 == 3 ? 0 : 2; /* 0: the pool of the process */
        assert_ok(leat_budget_open(&budget, 64 << 20, NULL));
        o.budget = budget;
        assert_ok(leat_loader_open(&l, path, &o, NULL));
        assert_ok(leat_loader_begin(l, 0, NULL));
        assert_ok(leat_loader_next(l, &b, -1, NULL));
        pid_t child = fork();
        if (child == 0) _exit(clean_up(l, b, budget, &o));
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status != 0) fail_msg("round %d: the child ended with status %#x", i, status);
        leat_batch_release(&b);
        outcome rest = {0};
        drain(l, &rest); /* the parent continues */
        assert_int_equal(rest.rc, 0);
        assert_int_equal(rest.samples, 400 - 16);
        leat_loader_close(&l);
        leat_budget_close(&budget);
    }
    assert_no_leaks();
}

static leat_loader *interrupted;
static volatile sig_atomic_t signals;

static void on_signal(int signal)
{
    (void)signal;
    signals = signals + 1;
    leat_loader_interrupt(interrupted);
}

static void an_interrupt_is_safe_in_a_signal_handler(void **state)
{
    struct sigaction action = {.sa_handler = on_signal}, old;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec every = {.it_interval.tv_nsec = 100000, .it_value.tv_nsec = 100000}, never = {0};
    timer_t timer;
    uint64_t samples = 0, told = 0;
    leat_loader_opts o = base_opts();
    leat_batch *b;
    (void)state;
    alarm(watchdog_s());
    assert_ok(leat_loader_open(&interrupted, path, &o, NULL));
    assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    assert_int_equal(timer_settime(timer, 0, &every, NULL), 0);
    for (uint64_t epoch = 0; epoch < 4 || (told == 0 && epoch < 1000); epoch++) {
        int rc = leat_loader_begin(interrupted, epoch, NULL); /* the flow changes under the signals */
        assert_ok(rc);
        while ((rc = leat_loader_next(interrupted, &b, -1, NULL)) == LEAT_EAGAIN || (rc == 0 && b != NULL)) {
            told += rc == LEAT_EAGAIN;
            if (rc != 0) continue;
            samples += b->samples;
            leat_batch_release(&b);
        }
        assert_ok(rc);
    }
    assert_int_equal(timer_settime(timer, 0, &never, NULL), 0);
    timer_delete(timer);
    assert_true(signals > 0 && told > 0);
    assert_int_equal(samples % 400, 0);
    leat_loader_interrupt(interrupted); /* before next(): it answers at once */
    assert_ok(leat_loader_begin(interrupted, 0, NULL));
    assert_code(LEAT_EAGAIN, leat_loader_next(interrupted, &b, -1, NULL));
    leat_loader_close(&interrupted);
    sigaction(SIGUSR1, &old, NULL);
    alarm(0);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_may_close_what_it_inherited),
        cmocka_unit_test(an_interrupt_is_safe_in_a_signal_handler),
    };
    return cmocka_run_group_tests(tests, make_pack, drop_pack);
}
