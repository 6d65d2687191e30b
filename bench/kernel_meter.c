/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost of meters: ns of CPU time per counter increment, per timer pair (two clock reads and a
 * record) and per trace event, with 1, 2 and 8 threads on the same meter. For comparison one
 * shared atomic counter, which meters avoid. CPU time, not wall time: with more threads than
 * CPUs, the time a thread waits for a CPU is not the meter's cost. One JSON line per case: the
 * median of five rounds, and their range.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "probe/cpu.h"
#include "probe/meter.h"
#include "probe/trace.h"

enum { ROUNDS = 5, THREADS_MAX = 8 };

static leat__counter *counter;
static leat__timer *timer;
static _Atomic uint64_t naive;

static void add_counter(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) leat__counter_add(counter, 1);
}

static void add_naive(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) atomic_fetch_add_explicit(&naive, 1, memory_order_relaxed);
}

static void record(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) leat__timer_record(timer, i & 0xfffff);
}

static void timer_pair(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t begin = leat__clock_ns();
        leat__timer_record(timer, leat__clock_ns() - begin);
    }
}

static void clock_pair(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t begin = leat__clock_ns();
        sum += leat__clock_ns() - begin;
    }
    atomic_fetch_add_explicit(&naive, sum & 1, memory_order_relaxed); /* keeps the loop */
}

static void trace_off(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) leat__trace_end("x", leat__trace_begin(), 0);
}

static void trace_on(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) leat__trace_span("x", i, i + 1, 0);
}

static const struct bench {
    const char *name;
    void (*run)(uint64_t n);
    uint64_t n; /* per thread and round */
} benches[] = {
    {"counter_add", add_counter, 4000000}, {"shared_atomic_add", add_naive, 4000000},
    {"timer_record", record, 2000000},     {"timer_pair", timer_pair, 400000},
    {"clock_pair", clock_pair, 400000},    {"trace_span_off", trace_off, 4000000},
    {"trace_span_on", trace_on, 1000000},
};

typedef struct job {
    const struct bench *bench;
    _Atomic uint32_t *ready;
    uint32_t threads;
    uint64_t cpu_ns;
} job;

static void job_main(void *arg)
{
    job *j = arg;
    j->bench->run(1000); /* first touch is not the steady state */
    atomic_fetch_add(j->ready, 1);
    while (atomic_load(j->ready) < j->threads) leat__thread_yield();
    uint64_t begin = leat__clock_thread_ns();
    j->bench->run(j->bench->n);
    j->cpu_ns = leat__clock_thread_ns() - begin;
}

static double one_round(const struct bench *b, uint32_t threads)
{
    leat__thread handles[THREADS_MAX] = {{0}};
    job jobs[THREADS_MAX];
    _Atomic uint32_t ready = 0;
    uint64_t total = 0;
    leat_error err;
    for (uint32_t i = 0; i < threads; i++) {
        jobs[i] = (job){.bench = b, .ready = &ready, .threads = threads};
        if (leat__thread_start(&handles[i], "bench", job_main, &jobs[i], &err) != 0) {
            fprintf(stderr, "%s\n", err.message);
            exit(1);
        }
    }
    for (uint32_t i = 0; i < threads; i++) {
        leat__thread_join(&handles[i]);
        total += jobs[i].cpu_ns;
    }
    return (double)total / ((double)threads * (double)b->n);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run_bench(const struct bench *b, uint32_t threads)
{
    double ns[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) ns[i] = one_round(b, threads);
    qsort(ns, ROUNDS, sizeof ns[0], by_value);
    printf("{\"bench\":\"kernel_meter\",\"case\":\"%s\",\"threads\":%u,\"ns\":%.2f,"
           "\"ns_min\":%.2f,\"ns_max\":%.2f,\"cpu\":\"%s\",\"isa\":\"%s\"}\n",
           b->name, threads, ns[ROUNDS / 2], ns[0], ns[ROUNDS - 1], leat__cpu_model(),
           leat__cpu_level(leat__cpu_flags()));
    fflush(stdout);
}

/* The sums must be right before their speed is meaningful. */
static int check(void)
{
    uint64_t before = leat__counter_value(counter);
    struct bench b = {"check", add_counter, 100000};
    one_round(&b, THREADS_MAX);
    return leat__counter_value(counter) - before == THREADS_MAX * (b.n + 1000) ? 0 : 1;
}

int main(void)
{
    static const uint32_t threads[] = {1, 2, THREADS_MAX};
    leat__meters *set = NULL;
    leat_error err;
    if (leat__meters_open(&set, "bench", &err) != 0) return 1;
    counter = leat__counter_make(set, "items", NULL, NULL);
    timer = leat__timer_make(set, "work_ns", NULL, NULL);
    if (!counter || !timer || check() != 0) {
        fprintf(stderr, "kernel_meter: sums are wrong\n");
        return 1;
    }
    for (size_t b = 0; b < sizeof benches / sizeof benches[0]; b++) {
        if (benches[b].run == trace_on && leat__trace_start(0, &err) != 0) return 1;
        for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
            run_bench(&benches[b], threads[t]);
        }
    }
    leat__trace_reset();
    leat__meters_close(&set);
    return 0;
}
