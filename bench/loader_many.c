/* SPDX-License-Identifier: Apache-2.0
 *
 * loader_many: many loaders of one process over one pack, each pulled by its own thread, on the
 * shared pool and one budget. They share the pages they read: memory and bytes read should be
 * about those of one loader, and all should be equally fast.
 *
 *   loader_many PACK [LOADERS] [SECONDS] [BATCH] [BUDGET_MIB]
 *
 * Runs one loader, then all, each for SECONDS after an epoch of one of them filled the cache; one
 * JSON line each on stdout. Figures: total samples per second, the slowest and the fastest loader
 * relative to their mean, bytes read, peak resident memory so far.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <leat/loader.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/num.h"
#include "base/thread.h"

enum { LOADERS_MAX = 256 };

static const char *path;
static uint32_t batch_size;
static leat_budget *budget;
static uint64_t until_ns;

typedef struct guest {
    leat__thread thread;
    leat_loader *loader;
    uint64_t samples, read_bytes;
} guest;

static guest guests[LOADERS_MAX];

static void check(int rc, const leat_error *err)
{
    if (rc == 0) return;
    fprintf(stderr, "loader_many: %s\n", err->message);
    exit(1);
}

static void open_one(guest *g, uint64_t seed)
{
    leat_loader_opts o;
    leat_error err;
    leat_loader_opts_init(&o);
    o.order = LEAT_ORDER_RANDOM;
    o.cache = LEAT_CACHE_PROCESS;
    o.seed = seed;
    o.batch_size = batch_size;
    o.prefetch = 2;
    o.budget = budget;
    check(leat_loader_open(&g->loader, path, &o, &err), &err);
}

static void pull(void *arg)
{
    guest *g = arg;
    leat_error err;
    leat_loader_stats s;
    for (uint64_t epoch = 0; leat__clock_ns() < until_ns; epoch++) {
        leat_batch *b = NULL;
        check(leat_loader_begin(g->loader, epoch, &err), &err);
        while (leat__clock_ns() < until_ns) {
            check(leat_loader_next(g->loader, &b, -1, &err), &err);
            if (b == NULL) break;
            if (leat__clock_ns() < until_ns) g->samples += b->samples;
            leat_batch_release(&b);
        }
        check(leat_loader_read(g->loader, &s, sizeof s), &err);
        g->read_bytes += s.read_bytes;
    }
}

static void measure(uint32_t loaders, double seconds)
{
    uint64_t sum = 0, low = UINT64_MAX, high = 0, read = 0;
    struct rusage u;

    for (uint32_t i = 0; i < loaders; i++) {
        guests[i].samples = guests[i].read_bytes = 0;
        open_one(&guests[i], i + 1);
    }
    until_ns = leat__clock_ns() + (uint64_t)(seconds * 1e9);
    for (uint32_t i = 0; i < loaders; i++)
        check(leat__thread_start(&guests[i].thread, "puller", pull, &guests[i], NULL), &(leat_error){0});
    for (uint32_t i = 0; i < loaders; i++) {
        const guest *g = &guests[i];
        leat__thread_join(&guests[i].thread);
        sum += g->samples;
        low = LEAT_MIN(low, g->samples);
        high = LEAT_MAX(high, g->samples);
        read += g->read_bytes;
    }
    for (uint32_t i = 0; i < loaders; i++) leat_loader_close(&guests[i].loader);
    getrusage(RUSAGE_SELF, &u);
    double mean = (double)sum / loaders;
    printf("{\"bench\":\"loader_many\",\"loaders\":%u,\"samples_per_s\":%.0f,"
           "\"slowest\":%.3f,\"fastest\":%.3f,\"read_bytes\":%llu,\"peak_rss_bytes\":%llu}\n",
           loaders, (double)sum / seconds, (double)low / mean, (double)high / mean, (unsigned long long)read,
           (unsigned long long)u.ru_maxrss * 1024);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    leat_error err;
    if (argc < 2) {
        fprintf(stderr, "usage: loader_many PACK [LOADERS] [SECONDS] [BATCH] [BUDGET_MIB]\n");
        return 2;
    }
    path = argv[1];
    uint32_t loaders = argc > 2 ? LEAT_MIN((uint32_t)atoi(argv[2]), LOADERS_MAX) : 32;
    double seconds = argc > 3 ? atof(argv[3]) : 5;
    batch_size = argc > 4 ? (uint32_t)atoi(argv[4]) : 16;
    check(leat_budget_open(&budget, (argc > 5 ? (uint64_t)atoll(argv[5]) : 2048) << 20, &err), &err);
    measure(1, seconds);
    measure(loaders, seconds);
    leat_budget_close(&budget);
    return 0;
}
