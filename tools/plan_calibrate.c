/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat plan --calibrate`: a few seconds on the real pack. What a sample costs comes from a
 * loader that runs with the page cache warm, as CPU time of the process, so that other work on
 * the machine does not count; what storage gives, from direct reads of pages by a few threads.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include <leat/loader.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/thread.h"
#include "load_flags.h"
#include "plan_modes.h"

#define WARM_NS (LEAT_NS_PER_S / 2)
#define SLICE_NS (LEAT_NS_PER_S / 4)
#define SLICES 8
#define READERS 8
#define READ_NS (LEAT_NS_PER_S / 2)

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- CPU ---- */

/* Batches, epoch after epoch, until `span_ns` of wall time passed: samples and CPU time. */
static int run_for(leat_loader *l, uint64_t span_ns, uint64_t *epoch, uint64_t *samples,
                   uint64_t *cpu_ns, leat_error *err)
{
    uint64_t begin = leat__clock_ns(), cpu = leat__clock_process_ns();
    *samples = 0;
    while (leat__clock_ns() - begin < span_ns) {
        leat_batch *batch = NULL;
        LEAT_TRY(leat_loader_next(l, &batch, -1, err));
        if (batch == NULL) {
            LEAT_TRY(leat_loader_begin(l, ++*epoch, err));
            continue;
        }
        *samples += batch->samples;
        leat_batch_release(&batch);
    }
    *cpu_ns = leat__clock_process_ns() - cpu;
    return 0;
}

static int measure_cpu(leat_loader *l, leat_plan_calibration *k, leat_error *err)
{
    double us[SLICES];
    uint64_t epoch = 0, samples, cpu_ns;
    leat_loader_stats stats;
    leat_budget_stats budget;
    LEAT_TRY(leat_loader_begin(l, epoch, err));
    LEAT_TRY(run_for(l, WARM_NS, &epoch, &samples, &cpu_ns, err));
    for (int i = 0; i < SLICES; i++) {
        do LEAT_TRY(run_for(l, SLICE_NS, &epoch, &samples, &cpu_ns, err));
        while (samples == 0);
        us[i] = (double)cpu_ns / 1e3 / (double)samples;
    }
    qsort(us, SLICES, sizeof us[0], by_value);
    k->cpu_us = (leat_plan_range){us[1], (us[SLICES / 2 - 1] + us[SLICES / 2]) / 2, us[SLICES - 2]};
    LEAT_TRY(leat_loader_read(l, &stats, sizeof stats));
    leat_budget_read(leat_loader_budget(l), &budget);
    k->scratch_bytes = budget.cat_peak[LEAT_BUDGET_SCRATCH] / LEAT_MAX(stats.threads, 1u);
    return 0;
}

/* ---- Storage ---- */

typedef struct readers {
    leat_pack *pack;
    uint64_t pages, largest, until_ns;
    _Atomic uint64_t next, bytes;
    _Atomic int failed;
} readers;

static void read_pages(void *arg)
{
    readers *r = arg;
    size_t capacity = (size_t)r->largest + LEAT_PACK_PADDING;
    char *buf = leat__alloc_aligned(LEAT__MEM_MISC, capacity, 4096);
    if (buf == NULL) atomic_store(&r->failed, LEAT_ENOMEM);
    while (buf != NULL && leat__clock_ns() < r->until_ns) {
        leat_pack_page info;
        uint64_t page = atomic_fetch_add(&r->next, 1);
        if (page >= r->pages) break;
        int rc = leat_pack_page_info(r->pack, page, &info, NULL);
        if (rc == 0) rc = leat_pack_page_read(r->pack, page, buf, capacity, NULL);
        if (rc != 0) {
            atomic_store(&r->failed, rc);
            break;
        }
        atomic_fetch_add(&r->bytes, info.bytes);
    }
    leat__free(buf);
}

static int measure_storage(const char *path, leat_plan_calibration *k, leat_error *err)
{
    leat_pack_opts opts = LEAT_PACK_OPTS_INIT;
    leat__thread threads[READERS] = {{0}};
    leat_pack_info info;
    readers r = {0};
    int rc = 0;
    opts.direct = opts.no_verify = 1;
    LEAT_GO(rc, out, leat_pack_open(&r.pack, path, &opts, err));
    LEAT_GO(rc, out, leat_pack_info_read(r.pack, &info, sizeof info));
    r.pages = info.pages;
    r.largest = info.max_page_bytes;
    uint64_t begin = leat__clock_ns();
    r.until_ns = begin + READ_NS;
    for (int i = 0; i < READERS && rc == 0; i++)
        rc = leat__thread_start(&threads[i], "leat-plan", read_pages, &r, err);
    for (int i = 0; i < READERS; i++) leat__thread_join(&threads[i]);
    double seconds = (double)(leat__clock_ns() - begin) / 1e9;
    int failed = atomic_load(&r.failed);
    if (rc == 0 && failed != 0)
        rc = leat__fail(err, failed, "%s: reading pages: %s", path, leat_code_text(failed));
    double rate = (double)atomic_load(&r.bytes) / seconds;
    if (rc == 0 && rate > 0) k->io_bytes_per_s = (leat_plan_range){rate / 1.1, rate, rate * 1.1};
out:
    leat_pack_close(&r.pack);
    return rc;
}

int plan_calibrate(cli *c, const char *path, const char *ops, uint32_t batch, uint32_t threads,
                   leat_plan_calibration *k, leat_error *err)
{
    leat_loader_opts opts;
    leat_loader *loader = NULL;
    int rc;
    cli_say(c, "calibrating on %s ...", path);
    leat_loader_opts_init(&opts);
    opts.ops = ops;
    opts.batch_size = batch;
    opts.threads = threads;
    opts.order = LEAT_ORDER_RANDOM;
    LEAT_GO(rc, out, measure_storage(path, k, err));
    LEAT_GO(rc, out, leat_loader_open(&loader, path, &opts, err));
    rc = measure_cpu(loader, k, err);
out:
    leat_loader_close(&loader);
    return rc;
}
