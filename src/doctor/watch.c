/* SPDX-License-Identifier: Apache-2.0
 *
 * A watched loader: the increase of its counters at each tick is kept as frames for plots, and
 * written to a run file if requested. Owns one thread (`leat-watch`), which holds the lock
 * briefly at every tick and writes without it; the loader's own threads are never blocked. Lock
 * order: record.lock, lock.
 */
#include <stdio.h>
#include <string.h>

#include <leat/doctor.h>
#include <leat/machine.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/thread.h"
#include "doctor/frame.h"
#include "doctor/judge.h"
#include "doctor/kernel_counters.h"
#include "loader/loader_run.h"
#include "pack/reader.h"

#define INTERVAL_MS 250u
#define FRAMES 16384u
#define JUDGE_NS LEAT_NS_PER_S /* interval of verdicts in the run file */

/* Sums over all epochs since the loader was opened. */
typedef struct sums {
    double elapsed, wait, blocked, decode, read; /* ns */
    double samples, batches, bad, reads, bytes;
    double busy[LEAT_LOADER_STAGES], ready[LEAT_LOADER_STAGES]; /* ns */
} sums;

/* State of the run file. */
typedef struct record {
    leat__mutex lock;   /* guards the whole struct */
    leat__run_log *log; /* NULL: not requested, or it failed */
    uint64_t judge_ns;  /* when the next verdict is due */
    leat_doctor_diagnosis d;
    int rc; /* code of the first failure */
    leat_error err;
} record;

struct leat_doctor_watch {
    leat_loader *loader;
    record record;
    uint64_t interval_ns;
    leat__thread thread;
    leat__mutex lock; /* guards everything below */
    leat__cond wake;
    bool stop;
    leat_loader_stats last; /* as of the last tick; steps and settings */
    sums total, before;     /* totals now, and at the last frame */
    leat__kernel_counters begin, sense;
    uint64_t begin_ns, frame_ns, frame_cpu_ns;
    double cached;         /* 1 = the pack is in a file system in memory; negative = unknown */
    double begin_siblings; /* decode time of other loaders before the watch, ns */
    uint32_t threads;      /* maximum number of threads seen */
    leat_doctor_facts known;
    leat_doctor_frame *frames;
    uint64_t frame_count; /* in total; the ring holds the last FRAMES */
};

/* ---- Totals ---- */

static void take_sums(leat_doctor_watch *w, const leat_loader_stats *s)
{
    sums *t = &w->total;

    t->elapsed = (double)s->elapsed_ns;
    t->wait = (double)s->wait_ns;
    t->blocked = (double)s->blocked_ns;
    t->decode = (double)s->decode_ns;
    t->read = (double)s->read_ns;
    t->samples = (double)s->samples;
    t->batches = (double)s->batches;
    t->bad = (double)s->bad_samples;
    t->reads = (double)s->reads;
    t->bytes = (double)s->read_bytes;
    for (int i = 0; i < LEAT_LOADER_STAGES; i++) {
        t->busy[i] = (double)s->stages[i].busy_ns;
        t->ready[i] = s->stages[i].readiness * (double)s->elapsed_ns;
    }
    leat_loader_stats was = w->last;
    w->last = *s;
    if (s->threads == 0) { /* between two epochs: no new decisions */
        w->last.threads = was.threads;
        w->last.io_depth = was.io_depth;
        w->last.prefetch = was.prefetch;
    }
    w->threads = LEAT_MAX(w->threads, s->threads);
}

static double per(double now, double was, double span)
{
    return span > 0 ? LEAT_MAX(0.0, now - was) / span : 0;
}

/* Returns the share of the interval spent waiting for data. Time in which the device still computed
 * earlier steps is not lost, though the host waited. */
static double lost_share(const leat_doctor_watch *w, double span)
{
    double waited = LEAT_MIN(1.0, per(w->total.wait, w->before.wait, span));
    double device = per(w->total.batches, w->before.batches, span) * w->last.device_step_ms * 1e6;
    return LEAT_MIN(waited, LEAT_MAX(0.0, 1 - device));
}

static const leat_doctor_frame *add_frame(leat_doctor_watch *w, uint64_t now)
{
    const leat_loader_stats *s = &w->last;
    const sums *t = &w->total, *b = &w->before;
    double span = (double)(now - w->frame_ns), seconds = span / 1e9;
    uint64_t cpu = leat__clock_process_ns();
    leat_doctor_frame *f = &w->frames[w->frame_count++ % FRAMES];

    *f = (leat_doctor_frame){
        .at_s = (double)(now - w->begin_ns) / 1e9,
        .samples_per_s = per(t->samples, b->samples, seconds),
        .batches_per_s = per(t->batches, b->batches, seconds),
        .read_bytes_per_s = per(t->bytes, b->bytes, seconds),
        .lost = lost_share(w, span),
        .cpu_used = per((double)cpu, (double)w->frame_cpu_ns, span),
        .blocked = LEAT_MIN(1.0, per(t->blocked, b->blocked, span)),
        .budget_used = s->budget_used,
        .budget_limit = s->budget_limit,
        .cache_bytes = s->cache_bytes,
        .threads = s->threads,
        .io_depth = s->io_depth,
        .prefetch = s->prefetch,
        .epoch = s->epoch,
        .samples = (uint64_t)t->samples,
        .bad = (uint64_t)t->bad,
    };
    for (int i = 0; i < LEAT_LOADER_STAGES; i++) {
        f->busy[i] = per(t->busy[i], b->busy[i], span);
        f->ready[i] = LEAT_MIN(1.0, per(t->ready[i], b->ready[i], span));
        f->waiting[i] = s->stages[i].ready;
        f->running[i] = s->stages[i].running;
    }
    w->before = *t;
    w->frame_ns = now;
    w->frame_cpu_ns = cpu;
    return f;
}

/* Adds the last frame of a record, with the current totals. An interval that has just begun has no useful
 * rates, so the rates of the last frame are kept. */
static const leat_doctor_frame *add_last_frame(leat_doctor_watch *w, uint64_t now)
{
    if (w->frame_count == 0 || now - w->frame_ns >= w->interval_ns / 2) return add_frame(w, now);
    leat_doctor_frame *f = &w->frames[w->frame_count % FRAMES];
    *f = w->frames[(w->frame_count - 1) % FRAMES];
    f->at_s = (double)(now - w->begin_ns) / 1e9;
    f->epoch = w->last.epoch;
    f->samples = (uint64_t)w->total.samples;
    f->bad = (uint64_t)w->total.bad;
    w->frame_count++;
    return f;
}

static void look_locked(leat_doctor_watch *w)
{
    leat_loader_stats s;
    if (leat_loader_read_all(w->loader, &s, sizeof s) != 0) return;
    take_sums(w, &s);
}

/* ---- The run file ---- */

static void record_failed(record *r, int rc)
{
    if (rc == 0) return;
    r->rc = rc;
    leat__run_log_close(&r->log);
}

static void record_verdict_locked(leat_doctor_watch *w, bool ended)
{
    record *r = &w->record;
    leat_doctor_facts facts;
    int rc = leat_doctor_watch_facts(w, &facts, &r->err);
    if (rc == 0) rc = leat_doctor_judge(&facts, &r->d, sizeof r->d, &r->err);
    if (rc == 0) rc = leat__run_log_diagnosis(r->log, &r->d, ended, &r->err);
    record_failed(r, rc);
}

static void record_frame(leat_doctor_watch *w, const leat_doctor_frame *f)
{
    record *r = &w->record;
    leat__mutex_lock(&r->lock);
    if (r->log != NULL) record_failed(r, leat__run_log_frame(r->log, f, &r->err));
    if (r->log != NULL && leat__clock_ns() >= r->judge_ns) {
        r->judge_ns = leat__clock_ns() + JUDGE_NS;
        record_verdict_locked(w, false);
    }
    leat__mutex_unlock(&r->lock);
}

static void record_last_frame_locked(leat_doctor_watch *w)
{
    record *r = &w->record;
    leat__mutex_lock(&w->lock);
    look_locked(w);
    leat_doctor_frame frame = *add_last_frame(w, leat__clock_ns());
    leat__mutex_unlock(&w->lock);
    record_failed(r, leat__run_log_frame(r->log, &frame, &r->err));
}

static int record_end_locked(leat_doctor_watch *w, leat_error *err)
{
    record *r = &w->record;
    if (r->log != NULL) record_last_frame_locked(w);
    if (r->log != NULL) record_verdict_locked(w, true);
    leat__run_log_close(&r->log);
    int rc = r->rc;
    if (rc != 0 && err != NULL) *err = r->err;
    r->rc = 0;
    return rc;
}

int leat_doctor_watch_record(leat_doctor_watch *w, const char *path, leat_error *err)
{
    LEAT_REQUIRE(w != NULL, err);
    record *r = &w->record;
    leat__mutex_lock(&r->lock);
    int rc = record_end_locked(w, err);
    if (path != NULL) {
        rc = leat__run_log_open(&r->log, path, err);
        r->judge_ns = leat__clock_ns() + JUDGE_NS;
    }
    leat__mutex_unlock(&r->lock);
    return rc;
}

static void watch_main(void *arg)
{
    leat_doctor_watch *w = arg;
    leat__mutex_lock(&w->lock);
    while (!w->stop) {
        uint64_t next = w->frame_ns + w->interval_ns;
        if (leat__cond_wait_until(&w->wake, &w->lock, next) && leat__clock_ns() < next) continue;
        look_locked(w);
        /* CPU time before the first epoch, for example to build a model, does not belong to the loader */
        if (w->total.elapsed <= 0) leat__kernel_counters_read(&w->begin);
        leat_doctor_frame frame = *add_frame(w, leat__clock_ns());
        leat__mutex_unlock(&w->lock);
        record_frame(w, &frame);
        leat__mutex_lock(&w->lock);
    }
    leat__mutex_unlock(&w->lock);
}

/* ---- The handle ---- */

/* Returns the share of the pack in memory, if cheap to know: a file system in memory holds all of it.
 * Checking the page cache would take long. */
static double cached_of(leat_loader *l)
{
    const leat__file *file = leat__pack_file(leat_loader_pack(l), 0);
    leat_disk disk;
    if (leat__file_remote(file) != NULL || leat_disk_read(&disk, leat__file_path(file), NULL) != 0) return -1;
    return strcmp(disk.filesystem, "tmpfs") == 0 || strcmp(disk.filesystem, "ramfs") == 0 ? 1 : -1;
}

int leat_doctor_watch_open(leat_doctor_watch **out, leat_loader *loader, uint32_t interval_ms,
                           leat_error *err)
{
    LEAT_REQUIRE(out != NULL, err);
    *out = NULL;
    LEAT_REQUIRE(loader != NULL, err);
    int rc;

    leat_doctor_watch *w = LEAT_NEW(DOCTOR, leat_doctor_watch);
    if (w == NULL) return leat__fail_nomem(err, sizeof *w, "a watch");
    leat__mutex_init(&w->lock);
    leat__cond_init(&w->wake);
    leat__mutex_init(&w->record.lock);
    w->loader = loader;
    w->interval_ns = (uint64_t)(interval_ms > 0 ? interval_ms : INTERVAL_MS) * LEAT_NS_PER_MS;
    leat_doctor_facts_init(&w->known);
    w->frames = LEAT_NEW_ARRAY(DOCTOR, leat_doctor_frame, FRAMES);
    if (w->frames == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, FRAMES * sizeof *w->frames, "frames"));
    w->cached = cached_of(loader);
    look_locked(w);
    w->before = w->total;
    w->begin_siblings = (double)leat__run_decode_ns_all() - w->total.decode;
    w->begin_ns = w->frame_ns = leat__clock_ns();
    w->frame_cpu_ns = leat__clock_process_ns();
    leat__kernel_counters_read(&w->begin);
    w->sense = w->begin;
    LEAT_GO(rc, out, leat__thread_start(&w->thread, "leat-watch", watch_main, w, err));
    *out = w;
    w = NULL;
out:
    leat_doctor_watch_close(&w);
    return rc;
}

void leat_doctor_watch_close(leat_doctor_watch **out)
{
    if (out == NULL) return;
    leat_doctor_watch *w = *out;
    if (w == NULL) return;
    leat__mutex_lock(&w->lock);
    w->stop = true;
    leat__cond_broadcast(&w->wake);
    leat__mutex_unlock(&w->lock);
    leat__thread_join(&w->thread);
    leat__mutex_lock(&w->record.lock);
    record_end_locked(w, NULL);
    leat__mutex_unlock(&w->record.lock);
    leat__mutex_destroy(&w->record.lock);
    leat__cond_destroy(&w->wake);
    leat__mutex_destroy(&w->lock);
    leat__free(w->frames);
    leat__free(w);
    *out = NULL;
}

void leat_doctor_watch_known(leat_doctor_watch *w, const leat_doctor_facts *facts)
{
    if (w == NULL || facts == NULL) return;
    leat__mutex_lock(&w->lock);
    w->known = *facts;
    leat__mutex_unlock(&w->lock);
}

/* ---- Facts ---- */

static double share(double part, double whole)
{
    return whole > 0 ? LEAT_MIN(1.0, LEAT_MAX(0.0, part / whole)) : -1;
}

static void step_facts(const leat_loader_stats *s, double batch, leat_doctor_facts *f)
{
    f->steps = (double)s->steps;
    if (s->steps == 0) return;
    f->data_ms = s->data_ms;
    f->data_ms_p50 = s->data_ms_p50;
    f->data_ms_p95 = s->data_ms_p95;
    f->batch_ms = s->batch_ms;
    f->batch_ms_p50 = s->batch_ms_p50;
    f->batch_ms_p95 = s->batch_ms_p95;
    if (s->prepare_ms > 0) f->prepare_ms = s->prepare_ms;
    if (s->epoch_steps > 0) f->epoch_steps = s->epoch_steps;
    if (s->start_ms > 0) f->start_ms = s->start_ms;
    if (s->device_step_ms > 0) leat__doctor_hide_waits(f, s->device_step_ms);
    double step = leat__doctor_wait_ms(f) + or_else(f->prepare_ms, 0) + f->batch_ms;
    if (batch > 0 && step > 0) f->samples_per_s = batch * 1e3 / step;
}

/* Sets the device's work per step, and the CPUs that would do it otherwise. The CPU cost of an image
 * is known if some were decoded on CPUs: decode=auto starts that way. */
static void device_facts(const leat_doctor_watch *w, leat_doctor_facts *f)
{
    const leat_loader_stats *s = &w->last;
    double images = (double)s->device_images, steps = w->total.batches;
    double there = w->total.samples - images, cpu_ns = w->total.decode - (double)s->device_list_ns;
    if (s->copied_bytes == 0 || steps == 0) return;
    f->copy_ms = (double)s->copy_ns / steps / 1e6;
    f->device_decode_ms = (double)s->device_decode_ns / steps / 1e6;
    f->device_overlap_ms = (double)s->device_overlap_ns / steps / 1e6;
    f->device_share = share(images, w->total.samples);
    if (images <= 0 || there <= 0 || cpu_ns <= 0 || !known(f->samples_per_s)) return;
    double saved = cpu_ns / there - (double)s->device_list_ns / images;
    f->device_frees = LEAT_MAX(saved, 0.0) * f->device_share * f->samples_per_s / 1e9;
}

static void flow_facts(const leat_doctor_watch *w, leat_doctor_facts *f)
{
    const sums *t = &w->total;
    double threads = w->threads;

    f->blocked = share(t->blocked, t->elapsed);
    f->order_busy = share(t->busy[0], t->elapsed);
    f->decode_ready = share(t->ready[2], t->elapsed);
    f->decode_share = share(t->decode, t->elapsed * LEAT_MAX(threads, 1.0));
    f->threads = threads;
    f->io_depth = w->last.io_depth;
    f->prefetch = w->last.prefetch;
    f->budget = (double)w->last.budget_limit;
    f->budget_peak = (double)w->last.budget_peak;
    /* for a running loader: the rate of workers while they have work */
    if (t->decode > 0 && t->samples > 0) {
        f->cpu_one = t->samples / (t->decode / 1e9);
        f->cpu_all = f->cpu_one * LEAT_MAX(threads, 1.0);
    }
    if (t->reads > 0) f->read_ms = t->read / t->reads / 1e6;
    if (t->elapsed > 0) f->in_flight = t->read / t->elapsed;
    if (t->samples > 0) f->read_bytes = t->bytes / t->samples;
    f->bad = share(t->bad, t->samples);
}

/* Estimates the CPUs used by workers of other loaders from their time. Their share of waiting for a CPU is
 * assumed to equal this loader's, and is subtracted. */
static void sibling_facts(const leat_doctor_watch *w, leat_doctor_facts *f)
{
    double wall = (double)(leat__clock_ns() - w->begin_ns);
    double ns = (double)leat__run_decode_ns_all() - w->total.decode - w->begin_siblings;
    if (wall <= 0) return;
    double cpus = LEAT_MAX(ns, 0.0) / wall * (1 - or_else(f->run_delay, 0));
    f->siblings = LEAT_MIN(cpus, or_else(f->cpu_used, cpus));
}

/* Copies the controller's decisions; the loader keeps more of them than a diagnosis shows. */
static void decision_facts(const leat_doctor_watch *w, leat_doctor_facts *f)
{
    leat_decision d[64];
    uint32_t count = leat_loader_decisions(w->loader, 0, d, LEAT_COUNT(d));
    uint32_t skip = count > LEAT_DOCTOR_DECISIONS ? count - LEAT_DOCTOR_DECISIONS : 0;
    for (uint32_t i = skip; i < count; i++) {
        leat_doctor_decision *to = &f->decisions[f->decision_count++];
        to->at_s = d[i].at_ns > w->begin_ns ? (double)(d[i].at_ns - w->begin_ns) / 1e9 : 0;
        snprintf(to->knob, sizeof to->knob, "%s", leat_knob_name(d[i].knob));
        to->from = d[i].from;
        to->to = d[i].to;
        snprintf(to->reason, sizeof to->reason, "%s", d[i].reason);
    }
    if (count > 0) f->decisions_made = (uint32_t)d[count - 1].number + 1;
}

/* Replaces facts that the watch cannot see, or can only guess, by known values. */
static void take_over(leat_doctor_facts *f, const leat_doctor_facts *known_facts)
{
    if (known(known_facts->cpu_all)) f->cpu_all = f->cpu_one = -1;
    for (size_t i = 0; i < leat__fact_row_count; i++) {
        double value = leat__fact_at(known_facts, i);
        double *own = (double *)((char *)f + leat__fact_rows[i].offset);
        if (!known(*own) && known(value)) *own = value;
    }
    f->option_count = known_facts->option_count;
    memcpy(f->options, known_facts->options, sizeof f->options);
    f->trial_count = known_facts->trial_count;
    memcpy(f->trials, known_facts->trials, sizeof f->trials);
}

int leat_doctor_watch_facts(leat_doctor_watch *w, leat_doctor_facts *f, leat_error *err)
{
    LEAT_REQUIRE(w != NULL && f != NULL, err);
    (void)err;
    leat_doctor_facts_init(f);
    leat__mutex_lock(&w->lock);
    look_locked(w);
    leat__kernel_counters_read(&w->sense); /* reads a dozen small files: only on request */
    double batch = w->total.batches > 0 ? w->total.samples / w->total.batches : -1;
    f->batch = batch;
    f->cached = w->cached;
    step_facts(&w->last, batch, f);
    flow_facts(w, f);
    device_facts(w, f);
    decision_facts(w, f);
    leat__kernel_counters_facts(&w->begin, &w->sense, f);
    sibling_facts(w, f);
    take_over(f, &w->known);
    leat__mutex_unlock(&w->lock);
    return 0;
}

size_t leat_doctor_watch_frames(leat_doctor_watch *w, leat_doctor_frame *out, size_t count)
{
    if (w == NULL || (out == NULL && count > 0)) return 0;
    leat__mutex_lock(&w->lock);
    uint64_t there = LEAT_MIN(w->frame_count, (uint64_t)FRAMES);
    size_t n = (size_t)LEAT_MIN((uint64_t)count, there);
    for (size_t i = 0; i < n; i++) out[i] = w->frames[(w->frame_count - n + i) % FRAMES];
    leat__mutex_unlock(&w->lock);
    return n;
}
