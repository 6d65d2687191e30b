/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat plan --calibrate`: measures for a few seconds on the real pack and the real machine.
 *
 *   storage  direct reads of pages by a few threads
 *   cold     the loader with the pack dropped from the page cache; alternates with the reads until the
 *            median of the turns is known well
 *   warm     the loader from memory, with one thread and with all: the rates, and the CPU time per
 *            sample. Measured before, between and after the cold turns, because the speed of a shared
 *            machine changes within seconds
 *   copy     page-locked memory to the GPU, if there is one
 *
 * Rates of the loader are wall time without a trainer, so they include the effect of other processes.
 * Their interval is that of the turns, or of slices of a quarter of a second.
 */
#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <leat/loader.h>
#include <leat/machine.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "base/thread.h"
#include "doctor/reads.h"
#include "doctor/work.h"
#include "engine/flow_window.h"
#include "gpu/device.h"
#include "io/file.h"
#include "io/url.h"
#include "load_flags.h"
#include "loader/footprint.h"
#include "op/pipeline.h"
#include "pack/reader.h"
#include "plan/parts.h"
#include "plan_modes.h"

#define SLICE_NS (LEAT_NS_PER_S / 4)
#define SLICES 4
#define SLICES_ONE 2 /* slices with one thread, only to measure how threads scale */
#define LOOKS 3      /* warm measurements of a calibration */
/* exponent for the range of these measurements: half of later runs are outside of the range itself, few twice
 * as far */
#define LOOKS_RANGE 2
#define SLICE_BATCHES 12u /* batches per slice needed for a meaningful rate */
#define OTHER_BATCHES 3u  /* batches besides the prefetched ones: held by the trainer, or in progress */
#define FEW_SPREAD 1.1    /* factor of the interval when slices have too few batches */
/* from this many batches on, the time before the first and after the last is left out */
#define EVEN_BATCHES 5u
/* Short measurement: fewer and shorter slices over fewer bytes, with a wider interval. */
#define QUICK_SLICE_NS (LEAT_NS_PER_S / 12)
/* half a second in total, because the clock of a shared CPU changes faster than that */
#define QUICK_SLICES 6
#define QUICK_SLICES_COLD 4                   /* when reads are also measured */
#define QUICK_BYTES (UINT64_C(256) << 20)     /* more than CPU caches hold, which would speed up raw pixels */
#define QUICK_BYTES_COLD (UINT64_C(32) << 20) /* less, because these bytes must be read first */
#define BUCKET_BYTES (UINT64_C(8) << 20)      /* limited, because reads from a bucket cost money */
#define BUCKET_PARTS 16u                      /* parts of 1 MiB, for the rate of the link */
#define QUICK_BYTES_OWN (UINT64_C(64) << 20)  /* less, because the loader must first cache these bytes */
#define FILL 3 /* samples delivered to fill the cache, as a multiple of the samples in QUICK_BYTES_OWN */
#define BUCKET_BATCH 64u
#define QUICK_SPREAD 0.20 /* 90 % of the runs differed from a short measurement by at most this share */
#define CALM_SPREAD 0.10  /* the same for a calibration */
#define QUICK_COLD_SPREAD 0.30
#define MANY_READS 16u /* concurrent reads, as a loader uses on slow storage */
#define QUICK_READ_NS (LEAT_NS_PER_S / 10)
#define STORAGE_TURNS 3
#define STORAGE_NS (LEAT_NS_PER_S / 3)
#define QUICK_BATCH_BYTES 48e6
#define QUICK_BATCH 16u /* samples of a first batch, which shows how many fit in a slice */
#define OPS_NS (LEAT_NS_PER_S / 20)
#define READERS 8
#define READ_NS (LEAT_NS_PER_S / 4)
/* Equal cold runs on a virtual disk differ by some 5 %, and occasionally by 30 %. So the median of
 * TURNS_MIN to TURNS_MAX turns is used, until enough was read and half of them are within NARROW. */
#define TURNS_MIN 3
#define TURNS_MAX 9
#define TURNS_BETWEEN 2 /* turns between the first and the second warm measurement */
#define COLD_NS (2 * LEAT_NS_PER_S)
#define NARROW 0.05
/* Warm rates: samples of this many bytes are repeated, so that they stay in memory. */
#define WARM_BYTES (UINT64_C(512) << 20)
#define EPOCH_MAX (UINT64_C(1) << 20)
/* time to read these samples into memory; on slow storage there are fewer */
#define BRING_NS (4 * LEAT_NS_PER_S)

#define VALUES 12 /* turns, or slices of all warm measurements */
static_assert(VALUES >= TURNS_MAX && VALUES >= LOOKS * SLICES && VALUES >= QUICK_SLICES, "too few values");

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
    size_t capacity = (size_t)leat__span_around(LEAT__IO_ALIGN - 1, r->largest).len;
    char *buf = leat__alloc_aligned(LEAT__MEM_MISC, capacity, LEAT__IO_ALIGN);
    if (buf == NULL) atomic_store(&r->failed, LEAT_ENOMEM);
    while (buf != NULL && leat__clock_ns() < r->until_ns && plan_trial_check(NULL) == 0) {
        leat_pack_page info;
        uint64_t page = atomic_fetch_add(&r->next, 1);
        if (page >= r->pages) break;
        leat__span span = {0};
        int rc = leat_pack_page_info(r->pack, page, &info, NULL);
        if (rc == 0) {
            span = leat__span_around(info.offset, info.bytes);
            rc = leat__file_pread(leat__pack_file(r->pack, info.shard), buf, (size_t)span.len, span.offset,
                                  NULL);
        }
        if (rc != 0) {
            atomic_store(&r->failed, rc);
            break;
        }
        atomic_fetch_add(&r->bytes, span.len);
    }
    leat__free(buf);
}

/* Reads pages from `first` up to `*end`, for at most span_ns, and sets *end to the end of the pages
 * read. Returns the bytes per second in *rate. */
static int read_for(const char *path, bool direct, uint64_t first, uint64_t *end, uint64_t span_ns,
                    double *rate, leat_error *err)
{
    leat_pack_opts opts = LEAT_PACK_OPTS_INIT;
    leat__thread threads[READERS] = {{0}};
    leat_pack_info info;
    readers r = {0};
    int rc = 0;
    opts.direct = direct;
    opts.no_verify = 1;
    LEAT_GO(rc, out, leat_pack_open(&r.pack, path, &opts, err));
    LEAT_GO(rc, out, leat_pack_info_read(r.pack, &info, sizeof info));
    r.pages = LEAT_MIN(*end, info.pages);
    r.next = first;
    r.largest = info.max_page_bytes;
    uint64_t begin = leat__clock_ns();
    r.until_ns = begin + span_ns;
    for (int i = 0; i < READERS && rc == 0; i++)
        rc = leat__thread_start(&threads[i], "leat-plan", read_pages, &r, err);
    for (int i = 0; i < READERS; i++) leat__thread_join(&threads[i]);
    *end = LEAT_MIN(atomic_load(&r.next), r.pages);
    *rate = (double)atomic_load(&r.bytes) * 1e9 / (double)(leat__clock_ns() - begin);
    int failed = atomic_load(&r.failed);
    if (rc == 0 && failed != 0)
        rc = leat__fail(err, failed, "%s: reading pages: %s", path, leat_code_text(failed));
out:
    leat_pack_close(&r.pack);
    return rc;
}

/* Drops the pack from the page cache. */
static int forget(const char *path, leat_error *err)
{
    leat_pack *pack = NULL;
    leat_pack_info info;
    int rc;
    LEAT_GO(rc, out, leat_pack_open(&pack, path, NULL, err));
    LEAT_GO(rc, out, leat_pack_info_read(pack, &info, sizeof info));
    for (uint32_t i = 0; i < info.shards; i++)
        leat__file_advise(leat__pack_file(pack, i), 0, 0, LEAT__ADVICE_DONTNEED);
out:
    leat_pack_close(&pack);
    return rc;
}

/* ---- The loader ---- */

/* The size of a measurement. */
typedef struct effort {
    int slices;
    uint64_t slice_ns, bytes;
    uint64_t fill; /* samples delivered before the measurement, to fill the loader's cache */
    /* Batches delivered before the measurement, for at most the same time, so that each buffer was used
     * once. */
    uint64_t settled;
} effort;
static const effort calm = {.slices = SLICES, .slice_ns = SLICE_NS, .bytes = WARM_BYTES};
static const effort quick = {.slices = QUICK_SLICES, .slice_ns = QUICK_SLICE_NS, .bytes = QUICK_BYTES};
static const effort quick_own = {
    .slices = QUICK_SLICES, .slice_ns = QUICK_SLICE_NS, .bytes = QUICK_BYTES_OWN};
static const effort quick_cold = {
    .slices = QUICK_SLICES_COLD, .slice_ns = QUICK_SLICE_NS, .bytes = QUICK_BYTES_COLD};
static const effort bucket = {.slices = QUICK_SLICES_COLD, .slice_ns = QUICK_SLICE_NS, .bytes = BUCKET_BYTES};
static const effort bucket_calm = {.slices = SLICES, .slice_ns = SLICE_NS, .bytes = 4 * BUCKET_BYTES};

/* Values in ascending order. */
typedef struct turns {
    double value[VALUES];
    int count;
} turns;

static void add_turn(turns *t, double value)
{
    int i = t->count++;
    for (; i > 0 && t->value[i - 1] > value; i--) t->value[i] = t->value[i - 1];
    t->value[i] = value;
}

static double median(const turns *t)
{
    return (t->value[(t->count - 1) / 2] + t->value[t->count / 2]) / 2;
}

typedef struct look {
    uint64_t samples, wall_ns, cpu_ns, batches;
    turns rates;                      /* rates of the slices */
    uint64_t first_samples, first_ns; /* of the first slice, in which nothing was prefetched yet */
    /* Samples and time from the first batch to the last: the amount of work in progress is the same at both
     * ends. */
    uint64_t even_samples, even_ns, even_cpu_ns;
    turns means;        /* means of the added measurements */
    uint64_t row_bytes; /* bytes of a sample in a batch */
} look;

static double mean_of(const look *l)
{
    if (l->batches >= EVEN_BATCHES) return (double)l->even_samples * 1e9 / (double)l->even_ns;
    return (double)l->samples * 1e9 / (double)l->wall_ns;
}

/* Returns the bytes of a sample in fields whose samples have equal size; at least 1. */
static uint64_t row_bytes(const leat_batch *batch)
{
    uint64_t sum = 1;
    for (uint32_t i = 0; i < batch->field_count; i++) {
        const leat_tensor *t = &batch->fields[i];
        if (t->offsets == NULL && t->ndim > 0) sum += (uint64_t)t->strides[0] * leat_dtype_size(t->dtype);
    }
    return sum;
}

/* Runs the loader for some slices of time, over several epochs or, with `once`, until the first one
 * ends. The start of an epoch counts, as in any run. Memory is slow when first used: a virtual
 * machine may have to get it from its host. So the first e->settled batches do not count. */
static int run_loader(leat_loader *l, const effort *e, uint64_t epoch, bool once, look *out, leat_error *err)
{
    uint64_t opened = leat__clock_ns(), begin = opened, cpu = leat__clock_process_ns();
    uint64_t slice_begin = begin, slice_samples = 0, even_begin = 0, even_cpu = 0, settled = 0;
    *out = (look){0};
    LEAT_TRY(leat_loader_begin(l, epoch, err));
    for (int slices = 0; slices < e->slices;) {
        leat_batch *batch = NULL;
        LEAT_TRY(plan_trial_check(err));
        LEAT_TRY(leat_loader_next(l, &batch, -1, err));
        if (batch == NULL) {
            if (once) break;
            LEAT_TRY(leat_loader_begin(l, ++epoch, err));
            continue;
        }
        uint64_t samples = batch->samples, now = leat__clock_ns();
        out->row_bytes = row_bytes(batch);
        leat_batch_release(&batch);
        if (settled < e->settled && now - opened < e->slice_ns * (uint64_t)e->slices) {
            settled++;
            begin = slice_begin = now;
            cpu = leat__clock_process_ns();
            continue;
        }
        out->samples += samples;
        slice_samples += samples;
        if (out->batches++ == 0) {
            even_begin = now;
            even_cpu = leat__clock_process_ns();
        } else {
            out->even_samples += samples;
            out->even_ns = now - even_begin;
            out->even_cpu_ns = leat__clock_process_ns() - even_cpu;
        }
        if (now - slice_begin < e->slice_ns) continue;
        add_turn(&out->rates, (double)slice_samples * 1e9 / (double)(now - slice_begin));
        if (slices == 0) {
            out->first_samples = slice_samples;
            out->first_ns = now - begin;
        }
        slice_begin = now;
        slice_samples = 0;
        slices++;
    }
    out->wall_ns = leat__clock_ns() - begin;
    out->cpu_ns = leat__clock_process_ns() - cpu;
    leat_loader_stop(l);
    return 0;
}

/* Adds another measurement of the same setting. */
static void add_look(look *sum, const look *l)
{
    if (l->samples == 0) return;
    for (int i = 0; i < l->rates.count; i++) add_turn(&sum->rates, l->rates.value[i]);
    add_turn(&sum->means, mean_of(l));
    sum->samples += l->samples;
    sum->wall_ns += l->wall_ns;
    sum->cpu_ns += l->cpu_ns;
    sum->batches += l->batches;
    sum->even_samples += l->even_samples;
    sum->even_ns += l->even_ns;
    sum->even_cpu_ns += l->even_cpu_ns;
}

/* Returns the median of the slices if they have many batches, since other work on the machine slows
 * down single slices. With few batches per slice, which come in bursts, it uses the mean. */
static leat_plan_range range_of(const look *l)
{
    if (l->samples == 0) return (leat_plan_range){0};
    bool many = l->rates.count >= 3 && l->batches >= (uint64_t)l->rates.count * SLICE_BATCHES;
    double mid = many ? median(&l->rates) : mean_of(l);
    leat_plan_range r = {mid / FEW_SPREAD, mid, mid * FEW_SPREAD};
    if (many) r = (leat_plan_range){l->rates.value[0], mid, l->rates.value[l->rates.count - 1]};
    if (l->means.count < 2) return r;
    double least = l->means.value[0], most = l->means.value[l->means.count - 1];
    r.low = LEAT_MIN(r.low, mid / pow(LEAT_MAX(mid / least, 1.0), LOOKS_RANGE));
    r.high = LEAT_MAX(r.high, mid * pow(LEAT_MAX(most / mid, 1.0), LOOKS_RANGE));
    return r;
}

/* Fills the loader's cache with the pages of a remote pack, or of any pack with cache=process, so
 * that the measurement reads none. A random order has then read nearly all of them. */
static int fill_memory(leat_loader *l, uint64_t samples, leat_error *err)
{
    uint64_t seen = 0;
    LEAT_TRY(leat_loader_begin(l, 0, err));
    while (seen < samples) {
        leat_batch *batch = NULL;
        LEAT_TRY(plan_trial_check(err));
        LEAT_TRY(leat_loader_next(l, &batch, -1, err));
        if (batch == NULL) break;
        seen += batch->samples;
        leat_batch_release(&batch);
    }
    leat_loader_stop(l);
    return 0;
}

static int measure_loader(const char *path, const leat_loader_opts *base, const effort *e, uint32_t threads,
                          uint64_t epoch, bool once, look *out, leat_error *err)
{
    leat_loader_opts opts = *base;
    leat_loader *l = NULL;
    int rc;
    opts.threads = threads;
    plan_trial_reading(once || e->fill > 0);
    LEAT_GO(rc, out, leat_loader_open(&l, path, &opts, err));
    if (e->fill > 0) LEAT_GO(rc, out, fill_memory(l, e->fill, err));
    plan_trial_reading(once);
    rc = run_loader(l, e, epoch, once, out, err);
out:
    leat_loader_close(&l);
    return rc;
}

/* ---- Cold ---- */

/* True when the middle half of the values is close to the median. */
static bool narrow(const turns *t)
{
    double half = t->value[t->count - 1 - t->count / 4] - t->value[t->count / 4];
    return half <= 2 * NARROW * median(t);
}

static leat_plan_range range_of_turns(const turns *t)
{
    return (leat_plan_range){t->value[0], median(t), t->value[t->count - 1]};
}

typedef struct cold_turns {
    turns read, cold, cpu;
    uint64_t wall_ns;
} cold_turns;

/* Measures turns until there are `most`, or fewer that agree. Each starts with other pages, because
 * storage may have its own cache. */
static int measure_cold(const char *path, const leat_loader_opts *opts, uint32_t threads,
                        const leat_pack_info *info, int most, cold_turns *t, leat_error *err)
{
    while (t->cold.count < most) {
        uint64_t turn = (uint64_t)t->cold.count;
        uint64_t first = info->bytes > WARM_BYTES ? info->pages / TURNS_MAX * turn : 0;
        look l;
        double rate;
        if (turn >= TURNS_MIN && t->wall_ns >= COLD_NS && narrow(&t->cold)) break;
        uint64_t end = UINT64_MAX;
        LEAT_TRY(read_for(path, true, first, &end, READ_NS, &rate, err));
        LEAT_TRY(forget(path, err));
        LEAT_TRY(measure_loader(path, opts, &calm, threads, turn, true, &l, err));
        add_turn(&t->read, rate);
        add_turn(&t->cold, (double)l.samples * 1e9 / (double)l.wall_ns);
        add_turn(&t->cpu, (double)l.cpu_ns / 1e3 / (double)l.samples);
        t->wall_ns += l.wall_ns;
    }
    return 0;
}

static void set_cold(leat_plan_calibration *k, const cold_turns *t)
{
    k->io_bytes_per_s = range_of_turns(&t->read);
    k->rate_cold = range_of_turns(&t->cold);
    k->cold_cpu_us = median(&t->cpu);
}

/* ---- Warm ---- */

typedef struct warm_looks {
    look one, all; /* with one thread; with all threads */
} warm_looks;

/* Reads the first samples into the page cache, as many as time allows. */
static int bring(const char *path, const leat_pack_info *info, uint64_t *samples, leat_error *err)
{
    uint64_t end = leat__ceil_div(info->pages * *samples, info->samples) + 1;
    double ignored;
    plan_trial_reading(true);
    LEAT_TRY(read_for(path, false, 0, &end, BRING_NS, &ignored, err));
    if (end < info->pages) *samples = LEAT_MAX(LEAT_MIN(*samples, info->samples * end / info->pages), 1u);
    return plan_trial_check(err);
}

/* Makes one warm measurement and adds it to `sum`. The epoch is as long as the pack's, but repeats only the
 * samples that fit in e->bytes. These are read first. */
static int look_warm(const char *path, const leat_loader_opts *base, const effort *e, uint32_t threads,
                     const leat_pack_info *info, warm_looks *sum, leat_error *err)
{
    uint64_t some = info->bytes > e->bytes
                        ? (uint64_t)((double)info->samples * ((double)e->bytes / (double)info->bytes))
                        : info->samples;
    uint64_t count = LEAT_MIN(info->samples, EPOCH_MAX);
    leat_loader_opts opts = *base;
    bool remote = leat__path_remote(path);
    look l;
    int rc = 0;
    some = LEAT_MAX(some, 1u);
    if (!remote) LEAT_TRY(bring(path, info, &some, err));
    uint64_t *indices = LEAT_NEW_ARRAY(MISC, uint64_t, count);
    if (indices == NULL) return leat__fail_nomem(err, count * 8, "the samples of a calibration");
    for (uint64_t i = 0; i < count; i++) indices[i] = i % some;
    opts.indices = indices;
    opts.index_count = count;
    effort full = *e;
    uint32_t usual = leat__prefetch_first(opts.batch_size, 1, LEAT__PREFETCH_FIRST); /* at most */
    if (base->cache == LEAT_CACHE_PROCESS) {
        full.fill = FILL * some;
        opts.memory = 0; /* the loader's default: the samples must stay in memory */
    }
    if (remote) full.fill = FILL * some;
    effort less = full;
    less.slices = SLICES_ONE;
    full.settled = (opts.prefetch > 0 ? opts.prefetch : usual) + OTHER_BATCHES;
    LEAT_GO(rc, out, measure_loader(path, &opts, &full, threads, 0, false, &l, err));
    add_look(&sum->all, &l);
    if (threads > 1) LEAT_GO(rc, out, measure_loader(path, &opts, &less, 1, 0, false, &l, err));
    add_look(&sum->one, &l);
out:
    leat__free(indices);
    return rc;
}

static void set_warm(leat_plan_calibration *k, const warm_looks *w)
{
    const look *l = &w->all;
    k->rate_one = range_of(&w->one);
    k->rate_all = range_of(l);
    double us = l->batches >= EVEN_BATCHES ? (double)l->even_cpu_ns / 1e3 / (double)l->even_samples
                                           : (double)l->cpu_ns / 1e3 / (double)l->samples;
    double spread = k->rate_all.high / k->rate_all.mid, fall = k->rate_all.mid / k->rate_all.low;
    k->cpu_us = (leat_plan_range){us / spread, us, us * fall};
}

static int measure_warm(const char *path, const leat_loader_opts *base, const effort *e, uint32_t threads,
                        const leat_pack_info *info, leat_plan_calibration *k, leat_error *err)
{
    warm_looks w = {0};
    LEAT_TRY(look_warm(path, base, e, threads, info, &w, err));
    set_warm(k, &w);
    return 0;
}

/* ---- Short form ---- */

static int info_of(const char *path, leat_pack_info *info, leat_error *err)
{
    leat_pack *pack = NULL;
    LEAT_TRY(leat_pack_open(&pack, path, NULL, err));
    int rc = leat_pack_info_read(pack, info, sizeof *info);
    leat_pack_close(&pack);
    if (rc == 0 && info->samples == 0)
        return leat__fail(err, LEAT_EINVAL, "%s: the pack has no samples", path);
    return rc;
}

static leat_plan_range widened(leat_plan_range r, double share)
{
    return (leat_plan_range){LEAT_MIN(r.low, r.mid / (1 + share)), r.mid,
                             LEAT_MAX(r.high, r.mid * (1 + share))};
}

/* Chooses a batch size so that a slice has several batches, however costly a sample is, and a batch
 * is made quickly. Times the first few batches. */
static int fit_batch(const char *path, leat_loader_opts *opts, uint32_t threads, leat_error *err)
{
    static const effort first = {.slices = 1, .slice_ns = 1, .bytes = QUICK_BYTES_COLD};
    leat_loader_opts small = *opts;
    look l;
    small.batch_size = LEAT_MIN(opts->batch_size, QUICK_BATCH);
    LEAT_TRY(measure_loader(path, &small, &first, threads, 0, true, &l, err));
    double per_slice = l.samples > 0 ? (double)l.samples * QUICK_SLICE_NS / (double)l.wall_ns : 1;
    double batch = LEAT_MAX(1.0, LEAT_MIN(per_slice / 2, QUICK_BATCH_BYTES / (double)l.row_bytes));
    if (batch < opts->batch_size) opts->batch_size = (uint32_t)batch;
    return 0;
}

/* Limits a cold rate by that of plain reads if the run had fewer samples than were in flight when it
 * began: some of these were read before. */
static leat_plan_range cold_range(const look *l, uint32_t threads, double reads_per_s)
{
    leat_plan_range r = range_of(l);
    if (l->samples >= leat__flow_window(threads, MANY_READS) || r.mid <= reads_per_s) return r;
    double less = reads_per_s / r.mid;
    return (leat_plan_range){r.low * less, reads_per_s, r.high * less};
}

/* Measures the loader on samples not yet read, and plain reads that bypass the page cache. */
static int measure_quick_cold(const char *path, const leat_loader_opts *opts, uint32_t threads,
                              const leat_pack_info *info, leat_plan_calibration *k, leat_error *err)
{
    double rate = 0;
    uint64_t end = UINT64_MAX;
    look l;
    LEAT_TRY(measure_loader(path, opts, &quick_cold, threads, 1, true, &l, err));
    LEAT_TRY(read_for(path, true, 0, &end, QUICK_READ_NS, &rate, err));
    if (l.samples == 0 || rate <= 0) return 0;
    k->cold_cpu_us = (double)l.cpu_ns / 1e3 / (double)l.samples;
    if (l.samples > l.first_samples) {
        l.samples -= l.first_samples;
        l.wall_ns -= l.first_ns;
        l.batches = 0;
    }
    double reads = rate * (double)info->samples / (double)info->bytes;
    k->rate_cold = widened(cold_range(&l, threads, reads), QUICK_COLD_SPREAD);
    k->io_bytes_per_s = widened((leat_plan_range){rate, rate, rate}, QUICK_COLD_SPREAD);
    k->calibrated |= 1u << LEAT_PLAN_IO;
    return 0;
}

int plan_measure_storage(const char *path, leat_plan_calibration *k, leat_error *err)
{
    leat_plan_range all = {0};
    leat_pack_info info;
    uint64_t first = 0;

    LEAT_TRY(info_of(path, &info, err));
    for (int i = 0; i < STORAGE_TURNS; i++) {
        double rate = 0;
        uint64_t end = UINT64_MAX;
        LEAT_TRY(plan_trial_check(err));
        LEAT_TRY(read_for(path, true, first, &end, STORAGE_NS, &rate, err));
        all.low = i == 0 ? rate : LEAT_MIN(all.low, rate);
        all.high = LEAT_MAX(all.high, rate);
        all.mid += rate / STORAGE_TURNS;
        first = end < info.pages ? end : 0;
    }
    if (all.low <= 0) return 0;
    k->io_bytes_per_s = widened(all, CALM_SPREAD);
    k->calibrated |= 1u << LEAT_PLAN_IO;
    return 0;
}

int plan_measure(const char *path, const leat_loader_opts *base, uint32_t threads, bool cold,
                 leat_plan_calibration *k, leat_error *err)
{
    leat_loader_opts opts = *base;
    leat_pack_info info;
    leat_machine m;

    LEAT_TRY(leat_machine_read(&m, sizeof m, err));
    LEAT_TRY(info_of(path, &info, err));
    LEAT_TRY(fit_batch(path, &opts, threads, err));
    if (cold) LEAT_TRY(measure_quick_cold(path, &opts, threads, &info, k, err));
    const effort *e = opts.cache == LEAT_CACHE_PROCESS ? &quick_own : cold ? &quick_cold : &quick;
    LEAT_TRY(measure_warm(path, &opts, e, threads, &info, k, err));
    k->rate_one = widened(k->rate_one, QUICK_SPREAD);
    k->rate_all = widened(k->rate_all, QUICK_SPREAD);
    k->cpu_us = widened(k->cpu_us, QUICK_SPREAD);
    k->threads = threads;
    k->cpus = m.cpus_usable;
    k->quick = 1;
    k->calibrated |= 1u << LEAT_PLAN_CPU;
    return 0;
}

int plan_measure_bucket(const char *path, const leat_loader_opts *base, uint32_t threads, bool link,
                        bool longer, leat_plan_calibration *k, double *latency_s, leat_error *err)
{
    leat_pack_info info;
    leat_machine m;
    double all = 0, half = 0; /* rates of the link */

    LEAT_TRY(leat_machine_read(&m, sizeof m, err));
    LEAT_TRY(info_of(path, &info, err));
    if (link) {
        uint32_t parts = longer ? 8 * BUCKET_PARTS : BUCKET_PARTS;
        LEAT_TRY(leat__reads_link(path, parts, latency_s, &all, &half, err));
        k->io_bytes_per_s = widened((leat_plan_range){all, sqrt(all * half), half}, QUICK_COLD_SPREAD);
        k->calibrated |= 1u << LEAT_PLAN_IO;
        plan_trial_link(k->io_bytes_per_s, *latency_s);
    }
    if (base == NULL) return 0;
    leat_loader_opts opts = *base;
    opts.memory = 0; /* the loader's default: the few pages must stay in memory */
    opts.batch_size = LEAT_MIN(opts.batch_size, BUCKET_BATCH);
    LEAT_TRY(measure_warm(path, &opts, longer ? &bucket_calm : &bucket, threads, &info, k, err));
    double spread = longer ? CALM_SPREAD : QUICK_SPREAD;
    k->rate_one = widened(k->rate_one, spread);
    k->rate_all = widened(k->rate_all, spread);
    k->cpu_us = widened(k->cpu_us, spread);
    k->threads = threads;
    k->cpus = m.cpus_usable;
    k->quick = !longer;
    k->calibrated |= 1u << LEAT_PLAN_CPU;
    return 0;
}

/* ---- Ops without a pack ---- */

static void fill_noise(leat__planes *image)
{
    uint64_t state = 1;
    for (uint32_t p = 0; p < 3; p++)
        for (uint32_t y = 0; y < image->height; y++)
            for (uint32_t x = 0; x < image->width; x++) {
                state = leat__mix64(state + x);
                image->plane[p][(size_t)y * image->stride + x] = (uint8_t)state;
            }
}

static int time_pipeline(const char *ops, const leat__planes *image, double *us, leat_error *err)
{
    leat__pipeline *p = NULL;
    leat__pipeline_worker *w = NULL;
    void *out = NULL;
    int rc;

    LEAT_GO(rc, out, leat__pipeline_open(&p, &(leat__pipeline_opts){.ops = ops}, err));
    LEAT_GO(rc, out, leat__pipeline_worker_open(&w, err));
    uint64_t bytes = leat__pipeline_output(p)->bytes, runs = 0;
    out = leat__alloc_aligned(LEAT__MEM_MISC, bytes + 64, 64);
    if (out == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, bytes, "an image"));
    uint64_t begin = leat__clock_thread_ns(), now = begin;
    for (; now - begin < OPS_NS || runs < 3; runs++, now = leat__clock_thread_ns()) {
        leat__draw_key key = {.sample = runs};
        LEAT_GO(rc, out, leat__pipeline_run_pixels(p, w, image, &key, out, err));
    }
    *us = (double)(now - begin) / 1e3 / (double)runs;
out:
    leat__free(out);
    leat__pipeline_worker_close(&w);
    leat__pipeline_close(&p);
    return rc;
}

int plan_measure_ops(const leat_plan_facts *f, uint32_t width, uint32_t height, double *us, leat_error *err)
{
    leat__planes image = {0};
    leat__buf bare;
    double all, less, kept;
    bool sure;
    int rc;

    leat__buf_init(&bare, LEAT__MEM_MISC, 65536);
    LEAT_GO(rc, out, leat__planes_resize(&image, width, height, 3, err));
    fill_noise(&image);
    if (leat__ops_strip(f->ops, LEAT__OPS_CROP_ONLY, &bare) != 0)
        LEAT_GO(rc, out, leat__fail_nomem(err, strlen(f->ops), "a pipeline"));
    LEAT_GO(rc, out, time_pipeline(f->ops, &image, &all, err));
    LEAT_GO(rc, out, time_pipeline(leat__buf_str(&bare), &image, &less, err));
    /* crops and output of more than one image are in both, and only the table of ops has them */
    (void)leat__plan_ops_us(leat__buf_str(&bare), f->isa, width, height, &kept, &sure);
    *us = LEAT_MAX(all - less, 0.0) + kept * leat__plan_cpu_times(f);
out:
    leat__planes_reset(&image);
    leat__buf_reset(&bare);
    return rc;
}

/* ---- The GPU ---- */

int plan_measure_copy(cli *c, leat_plan_calibration *k, leat_error *err)
{
    leat__gpu *gpu = NULL;
    leat__gpu_rate rate;
    int rc = leat__gpu_open(&gpu, 0, NULL, err);
    if (rc == LEAT_ENOTSUP) {
        cli_say(c, "not measured: copies to a GPU: %s", err->message);
        leat__error_reset(err);
        return 0;
    }
    if (rc == 0) rc = leat__gpu_copy_rate(gpu, true, &rate, err);
    if (rc == 0) {
        k->h2d_bytes_per_s = (leat_plan_range){rate.low, rate.mid, rate.high};
        k->calibrated |= 1u << LEAT_PLAN_H2D;
    }
    leat__gpu_close(&gpu);
    return rc;
}

int plan_calibrate(const char *path, const leat_loader_opts *opts, uint32_t threads, leat_plan_calibration *k,
                   leat_error *err)
{
    leat_pack_info info;
    leat_machine m;
    LEAT_TRY(leat_machine_read(&m, sizeof m, err));
    LEAT_TRY(info_of(path, &info, err));
    cold_turns cold = {0};
    warm_looks warm = {0};
    for (int i = 1; i <= LOOKS; i++) {
        LEAT_TRY(look_warm(path, opts, &calm, threads, &info, &warm, err));
        int most = i == LOOKS ? 0 : i + 1 == LOOKS ? TURNS_MAX : i * TURNS_BETWEEN;
        LEAT_TRY(measure_cold(path, opts, threads, &info, most, &cold, err));
    }
    set_cold(k, &cold);
    set_warm(k, &warm);
    k->rate_one = widened(k->rate_one, CALM_SPREAD);
    k->rate_all = widened(k->rate_all, CALM_SPREAD);
    k->rate_cold = widened(k->rate_cold, CALM_SPREAD);
    k->cpu_us = widened(k->cpu_us, CALM_SPREAD);
    k->threads = threads;
    k->cpus = m.cpus_usable;
    k->calibrated |= 1u << LEAT_PLAN_IO | 1u << LEAT_PLAN_CPU;
    return 0;
}
