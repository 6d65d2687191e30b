/* SPDX-License-Identifier: Apache-2.0
 *
 * The overhead of the engine: empty stages, ns per task and stage in wall time and in CPU time,
 * for 1, 2 and 8 threads and 1, 3 and 6 stages after the source. Then how busy stages scale: the
 * same work on 1 and on 2 threads, alternating, against plain threads without an engine, in wall
 * time (valid only on an idle machine) and in CPU time. One JSON line per case: the median of the
 * rounds, and their range.
 *
 *     engine_overhead [overhead|scaling] [seconds per round]
 */
#include <leat/flow.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/thread.h"

enum { ROUNDS = 5 };

typedef struct job {
    uint64_t left;
    uint64_t spin_ns; /* per stage, 0 = empty */
    uint64_t bytes;
} job;

static int give(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    job *j = cookie;
    if (j->left == 0) return LEAT_FLOW_END;
    j->left--;
    task->bytes = j->bytes;
    return 0;
}

/* Work that does not depend on interruptions: iterations, not time. */
static uint64_t spin_per_us;

static uint64_t spin(uint64_t ns)
{
    volatile uint64_t x = ns;
    for (uint64_t i = 0; i < ns * spin_per_us / 1000; i++) x = x * 6364136223846793005u + 1;
    return x;
}

static int pass(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    const job *j = cookie;
    if (j->spin_ns) spin(j->spin_ns);
    return 0;
}

static void die(const char *what, const leat_error *err)
{
    fprintf(stderr, "engine_overhead: %s: %s\n", what, err->message);
    exit(1);
}

static double run(uint32_t threads, uint32_t stages, uint64_t tasks, uint64_t spin_ns, uint64_t bytes,
                  double *cpu_ns)
{
    leat_error err;
    leat_pool *pool = NULL;
    leat_flow *flow = NULL;
    leat_budget *budget = NULL;
    leat_pool_opts po;
    leat_flow_opts fo;
    leat_pool_opts_init(&po);
    leat_flow_opts_init(&fo);
    po.threads = threads;
    if (leat_pool_open(&pool, &po, &err) != 0) die("pool", &err);
    if (leat_budget_open(&budget, 1 << 30, &err) != 0) die("budget", &err);
    fo.pool = pool;
    fo.budget = budget;
    fo.fixed = 1;
    if (leat_flow_open(&flow, &fo, &err) != 0) die("flow", &err);
    job j = {.left = tasks, .spin_ns = spin_ns, .bytes = bytes};
    for (uint32_t i = 0; i <= stages; i++) {
        char name[8];
        snprintf(name, sizeof name, "s%u", i);
        leat_stage s;
        leat_stage_init(&s);
        s.kind = i == 0 ? LEAT_STAGE_SOURCE : i == stages ? LEAT_STAGE_SINK : LEAT_STAGE_MAP;
        s.name = name;
        s.cookie = &j;
        s.process = i == 0 ? give : pass;
        s.bytes_out = i == 0 ? bytes : 0;
        if (leat_flow_add(flow, &s, &err) != 0) die("stage", &err);
    }
    uint64_t cpu = leat__clock_process_ns(), begin = leat__clock_ns();
    if (leat_flow_start(flow, &err) != 0) die("start", &err);
    if (leat_flow_wait(flow, -1, &err) != 0) die("wait", &err);
    double wall = (double)(leat__clock_ns() - begin);
    *cpu_ns = (double)(leat__clock_process_ns() - cpu);
    leat_flow_stats stats;
    if (leat_flow_read(flow, &stats, sizeof stats) != 0 || stats.results != tasks) {
        fprintf(stderr, "engine_overhead: %llu of %llu tasks came through\n",
                (unsigned long long)stats.results, (unsigned long long)tasks);
        exit(1);
    }
    leat_flow_close(&flow);
    leat_pool_close(&pool);
    leat_budget_close(&budget);
    return wall;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void overhead(double seconds)
{
    static const uint32_t threads[] = {1, 2, 8}, stages[] = {1, 3, 6};
    for (size_t b = 0; b < 2; b++)
        for (size_t t = 0; t < 3; t++)
            for (size_t s = 0; s < 3; s++) {
                double wall[ROUNDS], cpu[ROUNDS], per = 0;
                uint64_t bytes = b ? 1000 : 0;
                /* A first run determines how many tasks fill a round. */
                uint64_t tasks = 20000;
                per = run(threads[t], stages[s], tasks, 0, bytes, &cpu[0]) / (double)tasks;
                tasks = (uint64_t)(seconds * 1e9 / per) + 1000;
                double calls = (double)tasks * (stages[s] + 1);
                for (int r = 0; r < ROUNDS; r++) {
                    wall[r] = run(threads[t], stages[s], tasks, 0, bytes, &cpu[r]) / calls;
                    cpu[r] /= calls;
                }
                qsort(wall, ROUNDS, sizeof *wall, by_value);
                qsort(cpu, ROUNDS, sizeof *cpu, by_value);
                printf("{\"bench\":\"engine_overhead\",\"threads\":%u,\"stages\":%u,"
                       "\"charged\":%s,\"wall_ns_per_task_stage\":%.0f,\"wall_min\":%.0f,"
                       "\"wall_max\":%.0f,\"cpu_ns_per_task_stage\":%.0f,\"tasks_per_s\":%.0f}\n",
                       threads[t], stages[s], b ? "true" : "false", wall[ROUNDS / 2], wall[0],
                       wall[ROUNDS - 1], cpu[ROUNDS / 2], 1e9 / (wall[ROUNDS / 2] * (stages[s] + 1)));
                fflush(stdout);
            }
}

static void spin_alone(void *arg)
{
    const job *j = arg;
    for (uint64_t i = 0; i < j->left; i++) spin(j->spin_ns);
}

/* The same work on plain threads: the current speed of two CPUs. */
static double bare(uint32_t threads, uint64_t calls, uint64_t spin_ns, double *cpu_ns)
{
    leat__thread t[2] = {{0}};
    job j = {.left = calls / threads, .spin_ns = spin_ns};
    uint64_t cpu = leat__clock_process_ns(), begin = leat__clock_ns();
    for (uint32_t i = 0; i < threads; i++) {
        leat_error err;
        if (leat__thread_start(&t[i], "bare", spin_alone, &j, &err) != 0) die("thread", &err);
    }
    for (uint32_t i = 0; i < threads; i++) leat__thread_join(&t[i]);
    *cpu_ns = (double)(leat__clock_process_ns() - cpu);
    return (double)(leat__clock_ns() - begin);
}

static void scaling(double seconds)
{
    static const uint64_t spins[] = {20000, 100000, 1000000};
    for (size_t k = 0; k < LEAT_COUNT(spins); k++) {
        double ratio[2][ROUNDS], work[2][ROUNDS], cpu[2];
        uint64_t tasks = (uint64_t)(seconds * 1e9 / (3 * (double)spins[k])) + 4;
        tasks += tasks % 2;
        for (int r = 0; r < ROUNDS; r++)
            for (uint32_t t = 1; t <= 2; t++) {
                double without = bare(t, 3 * tasks, spins[k], &cpu[0]);
                double with = run(t, 3, tasks, spins[k], 1000, &cpu[1]);
                ratio[t - 1][r] = without / with;
                work[t - 1][r] = cpu[0] / cpu[1];
            }
        for (uint32_t t = 1; t <= 2; t++) {
            double *x = ratio[t - 1], *w = work[t - 1];
            qsort(x, ROUNDS, sizeof *x, by_value);
            qsort(w, ROUNDS, sizeof *w, by_value);
            printf("{\"bench\":\"engine_scaling\",\"threads\":%u,\"stage_us\":%.0f,"
                   "\"wall_share_of_bare_threads\":%.3f,\"wall_min\":%.3f,\"wall_max\":%.3f,"
                   "\"cpu_share\":%.3f,\"cpu_min\":%.3f,\"cpu_max\":%.3f}\n",
                   t, (double)spins[k] / 1e3, x[ROUNDS / 2], x[0], x[ROUNDS - 1], w[ROUNDS / 2], w[0],
                   w[ROUNDS - 1]);
            fflush(stdout);
        }
    }
}

static void calibrate(void)
{
    spin_per_us = 1000;
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 20; i++) {
        uint64_t begin = leat__clock_ns();
        spin(1000000);
        best = LEAT_MIN(best, leat__clock_ns() - begin);
    }
    spin_per_us = (uint64_t)(1000.0 * 1e6 / (double)best);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    double seconds = argc > 2 ? atof(argv[2]) : 0.3;
    calibrate();
    if (strcmp(what, "scaling") != 0) overhead(seconds);
    if (strcmp(what, "overhead") != 0) scaling(seconds);
    return 0;
}
