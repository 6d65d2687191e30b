/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost of meters for a loader, measured in one process: epochs with meters, without them, and
 * with meters and the doctor's watch, in turns. Measures CPU time of the process per sample, so
 * that other load on the machine matters little; ways are compared within each round.
 *
 *     meters_cost PACK [ROUNDS] [BATCH] [THREADS]
 *
 * One JSON line: the median of the rounds for each way, in us of CPU time per sample, and the
 * overhead against none in percent with the bounds of its 95 % interval. The busy times used by
 * the scheduler itself are included and never off.
 */
#include <leat/doctor.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "probe/meter.h"

enum { OFF, ON, WATCHED, WAYS };
static const char *const names[WAYS] = {"off", "on", "watched"};

typedef struct way {
    leat_loader *loader;
    leat_doctor_watch *watch;
    double *us;   /* CPU time per sample, by round */
    double *more; /* the same relative to `off` of the round, in percent */
} way;

static void must(int rc, const leat_error *err)
{
    if (rc == 0) return;
    fprintf(stderr, "meters_cost: %s\n", err->message);
    exit(1);
}

static double run_epoch(way *w, int what, uint64_t epoch)
{
    leat_error err = {0};
    leat_batch *b = NULL;
    uint64_t samples = 0;

    leat__meters_enable(what != OFF);
    if (what == WATCHED) must(leat_doctor_watch_open(&w->watch, w->loader, 0, &err), &err);
    uint64_t begin = leat__clock_process_ns();
    must(leat_loader_begin(w->loader, epoch, &err), &err);
    for (;;) {
        must(leat_loader_next(w->loader, &b, -1, &err), &err);
        if (b == NULL) break;
        samples += b->samples;
        leat_batch_release(&b);
    }
    leat_loader_stop(w->loader);
    double used = (double)(leat__clock_process_ns() - begin) / 1e3;
    leat_doctor_watch_close(&w->watch);
    leat__meters_enable(true);
    return used / (double)LEAT_MAX(samples, 1);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: meters_cost PACK [ROUNDS] [BATCH] [THREADS]\n");
        return 2;
    }
    uint32_t rounds = argc > 2 ? (uint32_t)LEAT_MAX(atoi(argv[2]), 5) : 30;
    leat_error err = {0};
    leat_loader_opts o;
    leat_loader_opts_init(&o);
    o.order = LEAT_ORDER_RANDOM;
    o.batch_size = argc > 3 ? (uint32_t)atoi(argv[3]) : 64;
    o.threads = argc > 4 ? (uint32_t)atoi(argv[4]) : 0;
    way ways[WAYS] = {{0}};
    for (int i = 0; i < WAYS; i++) {
        leat__meters_enable(i != OFF);
        must(leat_loader_open(&ways[i].loader, argv[1], &o, &err), &err);
        ways[i].us = LEAT_NEW_ARRAY(MISC, double, rounds);
        ways[i].more = LEAT_NEW_ARRAY(MISC, double, rounds);
        if (!ways[i].us || !ways[i].more) return 1;
    }
    for (uint32_t r = 0; r < rounds + 1; r++) { /* the first one fills the caches */
        double us[WAYS];
        for (uint32_t i = 0; i < WAYS; i++) { /* each comes first, second and last equally often */
            uint32_t at = (i + r) % WAYS;
            us[at] = run_epoch(&ways[at], (int)at, r);
        }
        for (int i = 0; i < WAYS && r > 0; i++) {
            ways[i].us[r - 1] = us[i];
            ways[i].more[r - 1] = 100 * (us[i] / us[OFF] - 1);
        }
    }
    /* the sorted rounds that bound the median with 95 % confidence */
    uint32_t half = (uint32_t)(0.98 * __builtin_sqrt(rounds)) + 1, middle = rounds / 2;
    uint32_t low = middle > half ? middle - half : 0, high = LEAT_MIN(middle + half, rounds - 1);
    printf("{\"bench\":\"meters_cost\",\"rounds\":%u", rounds);
    for (int i = 0; i < WAYS; i++) {
        qsort(ways[i].us, rounds, sizeof(double), by_value);
        qsort(ways[i].more, rounds, sizeof(double), by_value);
        printf(",\"%s_us\":%.2f", names[i], ways[i].us[middle]);
        if (i == OFF) continue;
        printf(",\"%s_percent\":%.2f,\"%s_low\":%.2f,\"%s_high\":%.2f", names[i], ways[i].more[middle],
               names[i], ways[i].more[low], names[i], ways[i].more[high]);
    }
    printf("}\n");
    for (int i = 0; i < WAYS; i++) {
        leat_loader_close(&ways[i].loader);
        leat__free(ways[i].us);
        leat__free(ways[i].more);
    }
    return 0;
}
