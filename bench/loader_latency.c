/* SPDX-License-Identifier: Apache-2.0
 *
 * loader_latency: waits of a training loop other than for batches: opening a loader, starting an
 * epoch (the first, after a complete one, and after an aborted one), the first batch of each, and
 * leaving an epoch in the middle.
 *
 *   loader_latency PACK [THREADS] [BATCH] [EPOCHS]
 *
 * One JSON line per epoch on stdout, all times in milliseconds.
 */
#include <stdio.h>
#include <stdlib.h>

#include <leat/loader.h>

#include "base/clock.h"
#include "base/error.h"

static double since_ms(uint64_t begin)
{
    return (double)(leat__clock_ns() - begin) / 1e6;
}

static void check(int rc, const leat_error *err)
{
    if (rc == 0) return;
    fprintf(stderr, "loader_latency: %s\n", err->message);
    exit(1);
}

/* Pulls up to `most` batches; *first gets the time until the first one. */
static uint64_t pull(leat_loader *l, uint64_t most, double *first)
{
    uint64_t begin = leat__clock_ns(), got = 0;
    leat_batch *b = NULL;
    leat_error err;

    while (got < most) {
        check(leat_loader_next(l, &b, -1, &err), &err);
        if (b == NULL) break;
        if (got++ == 0) *first = since_ms(begin);
        leat_batch_release(&b);
    }
    return got;
}

int main(int argc, char **argv)
{
    leat_loader_opts o;
    leat_loader *l = NULL;
    leat_error err;

    if (argc < 2) {
        fprintf(stderr, "usage: loader_latency PACK [THREADS] [BATCH] [EPOCHS]\n");
        return 2;
    }
    leat_loader_opts_init(&o);
    o.threads = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
    o.batch_size = argc > 3 ? (uint32_t)atoi(argv[3]) : 0;
    o.order = LEAT_ORDER_RANDOM;
    uint64_t epochs = argc > 4 ? (uint64_t)atoll(argv[4]) : 6;
    uint64_t begin = leat__clock_ns();
    check(leat_loader_open(&l, argv[1], &o, &err), &err);
    double open_ms = since_ms(begin);
    for (uint64_t e = 0; e < epochs; e++) {
        double first = 0;
        uint64_t whole = e % 2 == 0 ? UINT64_MAX : 3; /* every second epoch is left early */
        begin = leat__clock_ns();
        check(leat_loader_begin(l, e, &err), &err);
        double begin_ms = since_ms(begin);
        uint64_t batches = pull(l, whole, &first);
        double all_ms = since_ms(begin);
        begin = leat__clock_ns();
        leat_loader_stop(l);
        printf("{\"bench\":\"loader_latency\",\"epoch\":%llu,\"open_ms\":%.3f,\"begin_ms\":%.3f,"
               "\"first_batch_ms\":%.3f,\"batches\":%llu,\"all_ms\":%.3f,\"stop_ms\":%.3f}\n",
               (unsigned long long)e, e == 0 ? open_ms : 0, begin_ms, first, (unsigned long long)batches,
               all_ms, since_ms(begin));
    }
    leat_loader_close(&l);
    return 0;
}
