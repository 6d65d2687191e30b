/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller in real time: three pipelines (read on the I/O lane, decode on CPU workers, a
 * consumer) whose bottleneck moves twice while they run. Compares the rate at the end of each
 * phase, and the time to reach it, with the best of a grid of fixed settings. Stages sleep
 * instead of computing, so that eight workers are eight on any machine; run it on a quiet one.
 *
 *     engine_controller [pipeline 0-2] [seconds per phase, default 6]
 *
 * One JSON line per phase; exit 1 when a phase stays below 95 % of its best fixed setting.
 */
#include <leat/flow.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/num.h"

enum { PHASES = 3, THREADS = 8, DEPTH = 32, BINS = 4096 };
static const uint64_t bin_ns = 100 * LEAT_NS_PER_MS;
static const uint64_t fixed_ns = 1200 * LEAT_NS_PER_MS; /* per phase, with fixed settings */

typedef struct phase {
    const char *limit;
    double read_ms, decode_ms, step_ms;
} phase;

typedef struct pipeline {
    const char *name;
    phase phases[PHASES];
} pipeline;

static const pipeline pipelines[] = {
    {"storage, CPU, trainer", {{"storage", 30, 1, 1}, {"CPU", 2, 7, 1}, {"trainer", 2, 1, 8}}},
    {"storage slows down", {{"CPU", 4, 10, 1}, {"storage", 40, 2, 1.3}, {"CPU", 10, 10, 1}}},
    {"the trainer gets faster", {{"trainer", 5, 6, 20}, {"trainer", 5, 6, 3}, {"CPU", 5, 6, 0.5}}},
};

typedef struct run {
    const pipeline *p;
    uint64_t begin_ns, phase_ns;
    uint64_t last_decision_ns[PHASES];
    uint32_t decisions[PHASES];
    uint32_t bins[BINS];
} run;

static const phase *phase_now(const run *r)
{
    uint64_t at = (leat__clock_ns() - r->begin_ns) / r->phase_ns;
    return &r->p->phases[LEAT_MIN(at, PHASES - 1u)];
}

static void nap(double ms)
{
    leat__sleep_ns((uint64_t)(ms * 1e6));
}

static int give(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    return 0;
}

static int read_one(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    nap(phase_now(cookie)->read_ms);
    return 0;
}

static int decode_one(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    nap(phase_now(cookie)->decode_ms);
    return 0;
}

static void decided(void *cookie, leat_log_level level, const char *line)
{
    run *r = cookie;
    uint64_t at = leat__clock_ns() - r->begin_ns, i = LEAT_MIN(at / r->phase_ns, PHASES - 1u);
    r->last_decision_ns[i] = at - i * r->phase_ns;
    r->decisions[i]++;
    fprintf(stderr, "  %6.2f s  %s\n", (double)at / 1e9, line);
}

static void must(int rc, const leat_error *err)
{
    if (rc == 0) return;
    fprintf(stderr, "engine_controller: %s\n", err->message);
    exit(2);
}

static void drive(run *r, const leat_flow_opts *given)
{
    leat_error err = {0};
    leat_pool *pool = NULL;
    leat_flow *flow = NULL;
    leat_pool_opts po;
    leat_flow_opts fo = *given;
    leat_pool_opts_init(&po);
    po.threads = THREADS;
    po.io_threads = DEPTH;
    must(leat_pool_open(&pool, &po, &err), &err);
    fo.pool = pool;
    fo.log = (leat_log){.write = decided, .cookie = r, .level = LEAT_LOG_INFO};
    must(leat_flow_open(&flow, &fo, &err), &err);
    leat_stage s[3];
    static const char *const names[] = {"source", "read", "decode"};
    for (int i = 0; i < 3; i++) {
        leat_stage_init(&s[i]);
        s[i].kind = i == 0 ? LEAT_STAGE_SOURCE : LEAT_STAGE_MAP;
        s[i].name = names[i];
        s[i].cookie = r;
    }
    s[0].process = give;
    s[1].process = read_one;
    s[1].lane = LEAT_LANE_IO;
    s[2].process = decode_one;
    for (int i = 0; i < 3; i++) must(leat_flow_add(flow, &s[i], &err), &err);
    r->begin_ns = leat__clock_ns();
    must(leat_flow_start(flow, &err), &err);
    for (;;) {
        leat_task *t = NULL;
        must(leat_flow_next(flow, &t, -1, &err), &err);
        uint64_t at = leat__clock_ns() - r->begin_ns;
        leat_task_release(t);
        if (at >= PHASES * r->phase_ns || at / bin_ns >= BINS) break;
        r->bins[at / bin_ns]++;
        nap(r->p->phases[at / r->phase_ns].step_ms);
    }
    leat_flow_close(&flow);
    leat_pool_close(&pool);
}

/* Results per second of bins [first, last). */
static double rate(const run *r, uint64_t first, uint64_t last)
{
    uint64_t sum = 0;
    for (uint64_t i = first; i < last; i++) sum += r->bins[i];
    return (double)sum / ((double)(last - first) * (double)bin_ns / 1e9);
}

static double end_rate(const run *r, int i)
{
    uint64_t bins = r->phase_ns / bin_ns, first = (uint64_t)i * bins;
    return rate(r, first + bins / 2, first + bins);
}

/* Seconds until half a second ran at 95 % of `best`; -1 = never. */
static double settled(const run *r, int i, double best)
{
    uint64_t bins = r->phase_ns / bin_ns, first = (uint64_t)i * bins, window = 5;
    for (uint64_t at = first; at + window <= first + bins; at++)
        if (rate(r, at, at + window) >= 0.95 * best) return (double)(at - first) * (double)bin_ns / 1e9;
    return -1;
}

typedef struct best {
    double rate;
    uint32_t threads, depth, ahead;
} best;

static void try_fixed(const pipeline *p, best found[PHASES])
{
    static const uint32_t threads[] = {2, THREADS}, depths[] = {4, DEPTH}, ahead[] = {8, 82};
    for (int i = 0; i < 8; i++) {
        leat_flow_opts fo;
        leat_flow_opts_init(&fo);
        fo.fixed = 1;
        fo.threads = threads[i & 1];
        fo.io_depth = depths[i >> 1 & 1];
        fo.prefetch = ahead[i >> 2 & 1];
        static run r;
        r = (run){.p = p, .phase_ns = fixed_ns};
        drive(&r, &fo);
        for (int k = 0; k < PHASES; k++)
            if (end_rate(&r, k) > found[k].rate)
                found[k] = (best){end_rate(&r, k), fo.threads, fo.io_depth, fo.prefetch};
    }
}

static bool measure(const pipeline *p, uint64_t phase_ns)
{
    static run r;
    best found[PHASES] = {{0}};
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    r = (run){.p = p, .phase_ns = phase_ns};
    drive(&r, &fo);
    try_fixed(p, found);
    bool good = true;
    for (int i = 0; i < PHASES; i++) {
        double share = end_rate(&r, i) / found[i].rate;
        good &= share >= 0.95;
        printf("{\"pipeline\": \"%s\", \"phase\": %d, \"limit\": \"%s\", \"per_s\": %.1f, "
               "\"best_fixed_per_s\": %.1f, \"best_fixed\": \"threads %u, io_depth %u, prefetch %u\", "
               "\"share\": %.3f, \"settled_s\": %.1f, \"last_decision_s\": %.2f, \"decisions\": %u}\n",
               p->name, i, p->phases[i].limit, end_rate(&r, i), found[i].rate, found[i].threads,
               found[i].depth, found[i].ahead, share, settled(&r, i, found[i].rate),
               (double)r.last_decision_ns[i] / 1e9, r.decisions[i]);
        fflush(stdout);
    }
    return good;
}

int main(int argc, char **argv)
{
    double seconds = argc > 2 ? atof(argv[2]) : 6;
    bool good = true;
    for (size_t i = 0; i < LEAT_COUNT(pipelines); i++)
        if (argc < 2 || (size_t)atoi(argv[1]) == i) good &= measure(&pipelines[i], (uint64_t)(seconds * 1e9));
    return good ? 0 : 1;
}
