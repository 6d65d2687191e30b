/* SPDX-License-Identifier: Apache-2.0
 *
 * The examination: runs the loader with a simulated trainer, in the current state of the machine, then
 * measures each part alone. The loader comes first, because any read of the pack warms it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <leat/doctor.h>
#include <leat/machine.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "doctor/doctor_flags.h"
#include "doctor/judge.h"
#include "doctor/kernel_counters.h"
#include "doctor/reads.h"
#include "doctor/time_limit.h"
#include "doctor/work.h"

#define SECONDS 8.0
#define IDS_MAX 8192u
#define TRIAL_PART 0.4
#define FREE_PART 0.12
#define READ_PART 0.2
#define WORK_PART 0.28
#define LEAST_STEPS 24u       /* a verdict needs 20 */
#define LEAST_STEPS_BUDGET 8u /* steps if the estimate below is too low; usually there are twice as many */
#define FREE_STEPS 4u         /* enough steps for a rate without a trainer */
#define TRIAL_STRETCH 5.0     /* factor by which a slow run may take longer to make its steps */
#define SLEEP_NS 300000       /* shorter steps spin: a sleep is too coarse */
#define SLICE_NS (LEAT_NS_PER_S / 10) /* longer steps check in between whether to stop */
#define STRETCH_PART 0.35             /* largest share of the remaining time for one stretched run */
#define ESTIMATE_PART 0.5  /* share of the trial that an estimate may fill: it may be wrong by that factor */
#define CEILING_TIMES 2.0  /* the examination ends after this many times the requested time, */
#define CEILING_MORE 3.0   /* plus this many seconds; closing takes up to two more */
#define READ_RESERVE 1.5   /* seconds kept for reads besides their share: without reads there is no verdict */
#define SERVER_RESERVE 4.0 /* seconds before the end, for a server that may answer late */
#define TRY_PART 0.12      /* share of the time to run the loader with the flags of one remedy */
#define TRY_PART_IO 0.25   /* the same when reads are the bottleneck: they come in bursts */
#define LARGER_RUNS 4u     /* runs that show the gain of larger batches: two without and two with them */
#define TRY_MOST 3u        /* number of remedies tried, the largest gains first; then all flags together */
#define TRY_SHARE 0.3      /* share of all available time kept free for them */
#define TRY_LEAST 0.8      /* seconds that must be left to start one */
#define COLD 0.1           /* packs with a smaller share in memory are dropped from it before each trial */
#define WARM 0.9
#define WARM_BATCHES 4096u
#define IDLE_CPUS 0.3
#define BUSY_CPUS 0.8 /* share of the CPUs in use, by all processes: others take time from this one */
#define ASK_NS (LEAT_NS_PER_S / 50) /* between checks whether to stop */
#define REPORT_S 0.02               /* between reports of progress */
#define LEAST_OVERHEAD 0.02         /* share of a sample's cost: less is noise */
#define WATCH_MS 100u
#define FRAMES_MAX 2048u /* of a trial */
#define READING_LEAST 3u /* frames that show a rate of reads */
#define HALF_LEAST 4u    /* batches that show a rate */
#define FROM_FILE 0.8    /* of a sample's bytes: all samples were read */
#define FROM_DISK 0.9    /* of the reads: the run does not wait for a server */
/* above this factor of the rate of reads, batches were already in memory: this is not a rate */
#define BURST 1.3

/* Arrival times of batches, without the starts of epochs. They show whether both halves of a run have the
 * same rate. */
typedef struct halves {
    double starts_s, middle_s, last_s;  /* sum of all starts; arrival times without them */
    uint64_t early, late, late_batches; /* samples after the first batch, and after the middle */
} halves;

typedef struct exam {
    const char *path;
    leat_loader_opts loader;
    leat_log log; /* log of the run with the trainer; other trials, with changed options, do not log */
    leat_doctor_examine_opts opts;
    double seconds;
    uint64_t *ids;
    uint64_t id_count;
    leat_doctor_facts *f;
    leat__time_limit limit;
    const char *now; /* name of the current measurement, and overall progress */
    double done;
    uint64_t ask_ns;      /* time of the next check whether to stop */
    uint64_t least_steps; /* minimum steps of a run with a trainer */
    double try_part;      /* share of the time for one trial */
    double asked_batch;   /* during the run with the trainer: the requested batch size */
    double step_cut;      /* ms by which the trainer's steps are shorter than requested */
    halves came;          /* of the last run */
} exam;

static int report(exam *e, const char *what, double done, leat_doctor_watch *watch, leat_error *err)
{
    e->now = what;
    e->done = done;
    if (e->opts.progress == NULL || e->opts.progress(e->opts.cookie, what, done, watch) == 0) return 0;
    return leat__fail(err, LEAT_ECANCELED, "stopped");
}

/* Called by the time limit while parts are measured without a watched loader. */
static int wants_stop(void *cookie)
{
    exam *e = cookie;
    uint64_t now = leat__clock_ns();
    if (e->opts.progress == NULL || now < e->ask_ns) return 0;
    e->ask_ns = now + ASK_NS;
    return e->opts.progress(e->opts.cookie, e->now, e->done, NULL);
}

static void skip(exam *e)
{
    e->f->skipped++;
}

/* ---- The loader with a simulated trainer ---- */

/* Simulates one training step; ends early when the caller wants to stop. */
static void pretend_training(exam *e, double step_ms)
{
    uint64_t now = leat__clock_ns(), until = now + (uint64_t)(step_ms * 1e6);
    bool spin = e->opts.spin != 0 || until - now < SLEEP_NS;

    for (; now < until; now = leat__clock_ns()) {
        if (!spin) leat__sleep_ns(LEAT_MIN(until - now, SLICE_NS));
        if (until - now > SLICE_NS && wants_stop(e)) return;
    }
}

/* Counts a batch that came `passed` seconds after the run began. For the first batch of an
 * epoch, start_s >= 0 is when the wait for it began: only that wait is recorded. */
static void count_batch(halves *h, double passed, double start_s, double seconds, uint32_t samples)
{
    if (start_s >= 0) {
        h->starts_s += passed - start_s;
        return;
    }
    double at = passed - h->starts_s;
    h->last_s = at;
    if (h->late_batches == 0 && at < (seconds - h->starts_s) / 2) {
        h->early += samples;
        h->middle_s = at;
        return;
    }
    h->late += samples;
    h->late_batches++;
}

/* Computes the rate of the second half, when the queues are full, and how much it differs from the first.
 * False when there are too few batches. */
static bool second_half(const halves *h, double *rate, double *spread)
{
    if (h->late_batches < HALF_LEAST || h->early == 0) return false;
    *rate = (double)h->late / (h->last_s - h->middle_s);
    *spread = leat__doctor_apart(*rate, (double)h->early / h->middle_s);
    return true;
}

/* Takes batches of consecutive epochs until the time is over; a slow trainer gets more time to make enough
 * steps. */
static int take_batches(exam *e, leat_loader *l, leat_doctor_watch *w, double step_ms, double seconds,
                        const char *what, double from, double to, leat_error *err)
{
    uint64_t least = step_ms > 0 ? e->least_steps : FREE_STEPS;
    double most = LEAT_MIN(TRIAL_STRETCH * seconds, STRETCH_PART * leat__time_left(&e->limit));
    uint64_t begin = leat__clock_ns(), steps = 0, epoch = 0, failures = 0;
    double passed = 0, start_s = 0, report_s = 0;

    e->came = (halves){0};
    LEAT_TRY(leat_loader_begin(l, epoch, err));
    /* the first step of each epoch does not count */
    while (passed < LEAT_MIN(seconds, most) || (steps < least + epoch && passed < most)) {
        leat_batch *b = NULL;
        if (passed >= report_s) { /* not for every batch, since it would add to the cost of small batches */
            LEAT_TRY(report(e, what, from + (to - from) * LEAT_MIN(1.0, passed / seconds), w, err));
            report_s = passed + REPORT_S;
        }
        int rc = leat_loader_next(l, &b, 200, err);
        passed = (double)(leat__clock_ns() - begin) / 1e9;
        if (rc == LEAT_ETIMEDOUT || rc == LEAT_EAGAIN) continue;
        if (rc != 0) return rc;
        if (b == NULL) {
            if (steps == 0 && ++failures > 1) return leat__fail(err, LEAT_EDATA, "%s: no samples", e->path);
            LEAT_TRY(leat_loader_begin(l, ++epoch, err));
            start_s = passed;
            continue;
        }
        count_batch(&e->came, passed, start_s, seconds, b->samples);
        start_s = -1;
        if (step_ms > 0) pretend_training(e, step_ms);
        leat_batch_release(&b);
        steps++;
    }
    return 0;
}

/* Sets the rate of delivery from the CPU seconds per sample of everything except decoding: order,
 * scheduling, reading and delivery. */
static void find_delivery(leat_doctor_facts *f, const leat_doctor_facts *run, double samples_per_s,
                          double cpu_s)
{
    if (cpu_s <= 0 || samples_per_s <= 0 || !known(run->cpu_used) || !known(f->cpus)) return;
    double whole = run->cpu_used / samples_per_s;
    double extra = LEAT_MAX(whole - cpu_s, LEAST_OVERHEAD * cpu_s);
    f->delivery = f->cpus / extra;
    if (known(run->order_busy) && run->order_busy > 0)
        f->delivery = LEAT_MIN(f->delivery, samples_per_s / run->order_busy);
}

typedef struct trial {
    leat_doctor_facts facts;
    double per_s; /* samples/s over the whole trial, as is CPU time */
} trial;

/* Adds facts of the run that the measurements did not provide. */
static void merge(leat_doctor_facts *f, const leat_doctor_facts *run)
{
    for (size_t i = 0; i < leat__fact_row_count; i++) {
        double *own = (double *)((char *)f + leat__fact_rows[i].offset);
        if (!known(*own)) *own = leat__fact_at(run, i);
    }
    f->decisions_made = run->decisions_made;
    f->decision_count = run->decision_count;
    memcpy(f->decisions, run->decisions, sizeof f->decisions);
}

/* Converts times of a trial with smaller batches to the requested batch size. */
static void scale_times(leat_doctor_facts *run, double times)
{
    double *const at[] = {&run->start_ms,    &run->prepare_ms, &run->data_ms,      &run->data_ms_p50,
                          &run->data_ms_p95, &run->batch_ms,   &run->batch_ms_p50, &run->batch_ms_p95};
    for (size_t i = 0; i < LEAT_COUNT(at); i++)
        if (known(*at[i])) *at[i] *= times;
}

/* Converts facts measured with shortened steps to full steps: a wait that ended within the missing part of
 * the step would not have happened. */
static void add_step_time(leat_doctor_facts *run, double cut)
{
    double *const work[] = {&run->batch_ms, &run->batch_ms_p50, &run->batch_ms_p95};
    double *const wait[] = {&run->data_ms, &run->data_ms_p50, &run->data_ms_p95, &run->start_ms};

    for (size_t i = 0; i < LEAT_COUNT(work); i++)
        if (known(*work[i])) *work[i] += cut;
    for (size_t i = 0; i < LEAT_COUNT(wait); i++)
        if (known(*wait[i])) *wait[i] = LEAT_MAX(*wait[i] - cut, 0.0);
}

/* Returns the mean batch size when `asked` is requested: the last batch of an epoch may be small. */
static double mean_batch(const exam *e, double asked)
{
    double samples = (double)e->id_count;
    if (e->loader.drop_last == LEAT_DROP_LAST || e->id_count == IDS_MAX) return asked;
    return LEAT_MIN(asked, samples / ceil(samples / asked));
}

/* Converts the facts of the run with the trainer to the requested batches and steps. */
static void convert(const exam *e, leat_doctor_facts *run)
{
    double times = e->asked_batch / e->loader.batch_size;
    run->batch = mean_batch(e, e->asked_batch);
    if (e->opts.step_ms <= 0) { /* without a trainer there is no step time */
        run->batch_ms = run->batch_ms_p50 = run->batch_ms_p95 = run->data_ms = run->data_ms_p50 =
            run->data_ms_p95 = run->start_ms = -1;
        return;
    }
    if (e->step_cut > 0) add_step_time(run, e->step_cut);
    scale_times(run, times);
    if (!known(run->batch_ms) || !known(run->data_ms)) return;
    double step = run->batch_ms + leat__doctor_wait_ms(run) + or_else(run->prepare_ms, 0);
    if (step > 0 && (times > 1 || e->step_cut > 0)) run->samples_per_s = run->batch * 1e3 / step;
}

/* Tells the caller that the watch ends. Closing the loader waits for reads in flight, so the facts of
 * this run are shown before that. */
static void show_facts(exam *e, const leat_doctor_facts *run, const char *what, double done)
{
    if (e->opts.progress == NULL) return;
    const leat_doctor_facts before = *e->f;
    merge(e->f, run);
    e->opts.progress(e->opts.cookie, what, done, NULL);
    *e->f = before;
}

/* Returns the bytes read per second since the first read; negative = unknown. */
static double bytes_per_s(leat_doctor_watch *w)
{
    leat_doctor_frame *frames = LEAT_NEW_ARRAY(DOCTOR, leat_doctor_frame, FRAMES_MAX);
    if (frames == NULL) return -1;
    size_t count = leat_doctor_watch_frames(w, frames, FRAMES_MAX), first = 0;
    while (first < count && frames[first].read_bytes_per_s <= 0) first++;
    double begin = first > 0 ? frames[first - 1].at_s : 0, at = begin, bytes = 0;
    for (size_t i = first; i < count; i++) {
        bytes += frames[i].read_bytes_per_s * (frames[i].at_s - at);
        at = frames[i].at_s;
    }
    leat__free(frames);
    return count - first >= READING_LEAST && at > begin ? bytes / (at - begin) : -1;
}

/* Limits the rate of a short run to that of its reads. Batches that were read before its first step arrive
 * faster than later ones can. Without steps there is no rate. */
static void bound_by_reads(const exam *e, leat_doctor_watch *w, double step_ms, leat_doctor_facts *run)
{
    double batch = e->loader.batch_size, bytes = bytes_per_s(w);
    if (step_ms > 0 && !known(run->batch_ms)) run->batch_ms = run->batch_ms_p50 = run->batch_ms_p95 = step_ms;
    if (run->steps >= LEAT__STEPS_ENOUGH || !known(bytes) || !(e->f->sample_bytes > 0)) return;
    /* fewer bytes: some samples came from a cache (the factor allows for the padding of raw pixels) */
    if (known(run->read_bytes) && run->read_bytes < FROM_FILE * e->f->sample_bytes) return;
    double rate = bytes / e->f->sample_bytes;
    if (known(run->samples_per_s) && run->samples_per_s <= BURST * rate) return;
    double wait_ms = rate > 0 ? batch * 1e3 / rate - or_else(run->batch_ms, 0) : 0;
    if (wait_ms <= 0) return;
    run->samples_per_s = rate;
    run->data_ms = run->data_ms_p50 = run->data_ms_p95 = wait_ms;
}

/* Leaves the disk cache out of all later runs, unless the run found nearly everything there. Later runs have
 * the same order, so they would read the stored pages. */
static void leave_disk_cache(exam *e, leat_loader *l)
{
    leat_loader_stats s;
    if (e->loader.disk_cache == NULL || leat_loader_read_all(l, &s, sizeof s) != 0) return;
    if ((double)s.disk_cache_hits < FROM_DISK * (double)s.reads) e->loader.disk_cache = NULL;
}

static int try_loader(exam *e, const leat_loader_opts *with, double step_ms, double seconds, const char *what,
                      double from, double to, trial *t, leat_error *err)
{
    leat_loader *l = NULL;
    leat_doctor_watch *w = NULL;
    leat_doctor_frame last;
    int rc;

    leat_doctor_facts_init(&t->facts);
    LEAT_GO(rc, out, leat_loader_open(&l, e->path, with, err));
    LEAT_GO(rc, out, leat_doctor_watch_open(&w, l, WATCH_MS, err));
    rc = take_batches(e, l, w, step_ms, seconds, what, from, to, err);
    if (rc != 0 && rc != LEAT_ECANCELED) goto out;
    int facts_rc = leat_doctor_watch_facts(w, &t->facts, rc == 0 ? err : NULL);
    if (facts_rc != 0) LEAT_GO(rc, out, facts_rc);
    bound_by_reads(e, w, step_ms, &t->facts);
    if (e->asked_batch > 0) {
        convert(e, &t->facts);
        leave_disk_cache(e, l);
    }
    t->per_s = leat_doctor_watch_frames(w, &last, 1) == 1 ? (double)last.samples / last.at_s
                                                          : t->facts.samples_per_s;
out:
    if (w != NULL) show_facts(e, &t->facts, what, to);
    leat_doctor_watch_close(&w);
    leat_loader_close(&l);
    return rc;
}

/* ---- Parts of the examination ---- */

/* Returns true when the pack can be opened and has no image field. */
static bool without_images(const char *path)
{
    leat_pack *pack = NULL;
    bool images = false;
    if (leat_pack_open(&pack, path, NULL, NULL) != 0) return false;
    for (uint32_t i = 0; i < leat_pack_field_count(pack); i++)
        images |= leat_pack_field(pack, i)->type == LEAT_FIELD_IMAGE;
    leat_pack_close(&pack);
    return !images;
}

/* Says what loads a pack without images. */
static int open_loader(const exam *e, leat_loader **l, leat_error *err)
{
    const int rc = leat_loader_open(l, e->path, &e->loader, err);
    if (rc != LEAT_EINVAL || !without_images(e->path)) return rc;
    return leat__fail(
        err, LEAT_EINVAL,
        "%s: there is no image field, and only packs of images are examined: leat load shows the "
        "rate of others, and leat.diagnose in Python examines any loader",
        e->path);
}

/* Lists ids in reading order, as many as a measurement can use, and finds the mean size of a sample. */
static int list_ids(exam *e, leat_error *err)
{
    leat_loader *l = NULL;
    leat_pack_info info;
    int rc;

    LEAT_GO(rc, out, open_loader(e, &l, err));
    LEAT_GO(rc, out, leat_pack_info_read(leat_loader_pack(l), &info, sizeof info));
    if (info.samples > 0) e->f->sample_bytes = (double)info.bytes / (double)info.samples;
    e->id_count = LEAT_MIN(leat_loader_samples(l), (uint64_t)IDS_MAX);
    if (e->id_count == 0) LEAT_GO(rc, out, leat__fail(err, LEAT_EINVAL, "%s: no samples", e->path));
    e->ids = LEAT_NEW_ARRAY(DOCTOR, uint64_t, e->id_count);
    if (e->ids == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, e->id_count * 8, "samples"));
    for (uint64_t i = 0; i < e->id_count; i++)
        LEAT_GO(rc, out, leat_loader_sample_at(l, 0, i, &e->ids[i], err));
out:
    leat_loader_close(&l);
    return rc;
}

/* Chooses the batch size of a trial, which needs some steps. If the batches are too large to make
 * that many in time, uses smaller ones and shortens the trainer's step in proportion. Smaller batches
 * leave more of a budget, so with a budget fewer steps are enough. */
static int choose_trial_batch(exam *e, leat_error *err)
{
    double cpu_s, asked = e->loader.batch_size;
    leat_machine machine;

    LEAT_TRY(leat__work_estimate(e->path, e->ids, e->id_count, &e->loader, &e->limit, &cpu_s, err));
    LEAT_TRY(leat_machine_read(&machine, sizeof machine, err));
    double cpus = LEAT_MAX(machine.cpus_usable, 1.0);
    if (e->loader.threads > 0) cpus = LEAT_MIN(cpus, (double)e->loader.threads);
    double in_time = ESTIMATE_PART * e->seconds * TRIAL_PART * cpus / LEAT_MAX(cpu_s, 1e-9);
    double steps = e->loader.memory > 0 ? LEAST_STEPS_BUDGET : LEAST_STEPS;
    if (cpu_s <= 0 || asked * steps <= in_time) return 0;
    e->loader.batch_size = (uint32_t)LEAT_MAX(1.0, in_time / LEAST_STEPS);
    if (e->loader.batch_size >= asked) return 0;
    e->f->trial_batch = e->loader.batch_size;
    e->opts.step_ms *= e->loader.batch_size / asked;
    return 0;
}

/* Shortens long steps, which would leave time for only a few. The facts of the run are converted
 * afterwards. */
static void choose_trial_step(exam *e)
{
    double most =
        LEAT_MIN(TRIAL_STRETCH * e->seconds * TRIAL_PART, STRETCH_PART * leat__time_left(&e->limit));
    double step_ms = ESTIMATE_PART * 1e3 * most / LEAST_STEPS;
    if (e->opts.step_ms <= step_ms) return;
    e->step_cut = e->opts.step_ms - step_ms;
    e->opts.step_ms = step_ms;
    e->f->trial_step_ms = step_ms;
}

static void describe_settings(const exam *e, leat_doctor_facts *f)
{
    leat_disk disk;
    f->batch = e->loader.batch_size;
    f->order_random = e->loader.order == LEAT_ORDER_RANDOM;
    f->cache_process = e->loader.cache == LEAT_CACHE_PROCESS;
    f->cache_disk = e->loader.disk_cache != NULL;
    if (leat_disk_read(&disk, e->path, NULL) == 0) {
        f->network = disk.network;
        f->rotational = disk.rotational;
    }
}

/* Runs the loader without waiting between batches, to find its maximum rate. If the run itself
 * was starved, its rate already is the maximum; a cold pack would be warm by now and give a wrong
 * rate. */
static int find_headroom(exam *e, trial *t, leat_error *err)
{
    leat_doctor_facts *f = e->f;
    trial all = *t;
    double lost = leat__doctor_lost(&t->facts);

    f->loader = -1;
    bool starved = known(lost) && (lost >= 2 * LEAT__LOST_CRITICAL ||
                                   (lost >= LEAT__LOST_WARNING && or_else(f->cached, 0) < 0.9));
    if (starved) {
        f->loader = t->facts.samples_per_s;
        return 0;
    }
    if (e->opts.step_ms > 0 && leat__time_left(&e->limit) < e->seconds) {
        skip(e);
        return 0;
    }
    if (e->opts.step_ms > 0) {
        LEAT_TRY(try_loader(e, &e->loader, 0, e->seconds * FREE_PART, "the loader without a trainer",
                            TRIAL_PART, TRIAL_PART + FREE_PART, &all, err));
        *t = all; /* the busier run measures the cost of a sample better */
    }
    f->loader = all.facts.samples_per_s;
    return 0;
}

/* True when neither memory nor the CPUs are the bottleneck: more of them would show no gain. */
static bool waits_for_reads(const leat_doctor_facts *f)
{
    return known(f->blocked) && f->blocked < 0.02 && known(f->cpu_used) && known(f->cpus) &&
           f->cpu_used < IDLE_CPUS * f->cpus && or_else(f->decode_ready, 1) < IDLE_CPUS;
}

/* Runs with ample memory and no waiting, to show the gain of a larger budget. If the run itself was starved,
 * this also gives the cost of a sample when workers are busy and not woken for each sample. */
static int try_spacious(exam *e, trial *t, leat_error *err)
{
    leat_loader_opts with = e->loader;
    trial all;

    if (known(leat__doctor_lost(&t->facts)) && leat__doctor_lost(&t->facts) < LEAT__LOST_WARNING) return 0;
    if (waits_for_reads(&t->facts)) return 0;
    if (leat__time_left(&e->limit) < e->seconds) {
        skip(e);
        return 0;
    }
    with.memory = 0;
    with.budget = NULL;
    LEAT_TRY(try_loader(e, &with, 0, e->seconds * FREE_PART, "the loader with memory to spare", TRIAL_PART,
                        TRIAL_PART + FREE_PART, &all, err));
    e->f->spacious = all.facts.samples_per_s;
    if (all.per_s > 0 && all.facts.cpu_used / all.per_s < t->facts.cpu_used / t->per_s) *t = all;
    return 0;
}

/* Runs the loader with the trainer: these facts have priority. They are kept even when the run was
 * stopped. */
static int run_trial(exam *e, double asked_batch, trial *t, leat_error *err)
{
    leat_loader_opts with = e->loader;
    with.log = e->log;
    e->asked_batch = asked_batch;
    int rc =
        try_loader(e, &with, e->opts.step_ms, e->seconds * TRIAL_PART,
                   e->opts.step_ms > 0 ? "the loader with a trainer" : "the loader", 0, TRIAL_PART, t, err);
    e->asked_batch = 0;
    return rc;
}

static int measure_reads(exam *e, const leat__time_limit *limit, leat_error *err)
{
    LEAT_TRY(report(e, "reads", TRIAL_PART + FREE_PART + WORK_PART, NULL, err));
    int rc = leat__reads_measure(e->path, e->ids, e->id_count, &e->loader, e->seconds * READ_PART, limit,
                                 e->f, err);
    if (rc != LEAT_ETIMEDOUT) return rc;
    skip(e);
    return 0;
}

/* Measures what each part can do alone, and what remedies would bring. */
static int measure_parts(exam *e, const trial *busy, leat_error *err)
{
    leat_doctor_facts *f = e->f;
    double cpu_s = -1, done = TRIAL_PART + FREE_PART, lost = leat__doctor_lost(f);
    bool fed = known(lost) && lost < LEAT__LOST_WARNING; /* no remedy will be tried */
    bool decoding = or_else(f->decode_ready, 0) >= 0.5;  /* other storage formats matter more
                                                          * than flags */
    double trials = fed || decoding ? 0 : TRY_SHARE * (CEILING_TIMES * e->seconds + CEILING_MORE);
    double reserve = e->seconds * READ_PART + READ_RESERVE + trials;
    leat__time_limit work = e->limit, read = e->limit;
    int rc;

    work.until_ns -= LEAT_MIN(work.until_ns, (uint64_t)(reserve * 1e9));
    read.until_ns -= LEAT_MIN(read.until_ns, (uint64_t)(trials * 1e9));
    /* a server delivers samples to decode slowly: measure it first, and longer */
    bool remote = strstr(e->path, "://") != NULL;
    if (remote) {
        read.until_ns = e->limit.until_ns - LEAT_NS_PER_S / 2;
        LEAT_TRY(measure_reads(e, &read, err));
        if (leat__time_left(&e->limit) < SERVER_RESERVE) { /* the steps below open the pack again, which takes
                                                              long when answers are late */
            skip(e);
            return 0;
        }
    }
    LEAT_TRY(report(e, "decode and augmentation", done, NULL, err));
    rc = leat__work_measure(e->path, e->ids, e->id_count, &e->loader, (uint32_t)or_else(f->threads, 1),
                            e->seconds * WORK_PART, &work, f, &cpu_s, err);
    if (rc == LEAT_ETIMEDOUT) skip(e);
    else if (rc != 0) return rc;
    find_delivery(f, &busy->facts, busy->per_s, cpu_s);
    if (or_else(f->device_share, 0) > 0) { /* the device shares this work: use the rate of the run */
        f->cpu_one = busy->facts.cpu_one;
        f->cpu_all = busy->facts.cpu_all;
    }
    return remote ? 0 : measure_reads(e, &read, err);
}

/* ---- Remedies, tried ---- */

/* True when a short trial is reliable for these flags. */
static bool can_try(const exam *e, const leat_doctor_diagnosis *d, const char *set)
{
    const leat_doctor_facts *f = e->f;
    double cached = or_else(f->cached, 0);
    if (!leat__doctor_may_apply(set)) return false;
    /* the trial uses smaller batches */
    if (known(f->trial_batch) && strstr(set, "memory=") != NULL) return false;
    /* a pack that is partly in memory gets warmer with each trial */
    return d->limit != LEAT_LIMIT_IO || cached >= WARM || cached < COLD;
}

static bool time_to_try(exam *e)
{
    if (leat__time_left(&e->limit) > LEAT_MAX(e->seconds * TRY_PART, TRY_LEAST)) return true;
    skip(e);
    return false;
}

/* A run of the loader with some options: samples/s, the same with the starts of epochs, and by how much its
 * halves disagree. Negative = not known; the spread is not known of fewer than 20 batches. */
typedef struct tried {
    double rate, with_starts, spread;
} tried;

static int try_options(exam *e, const leat_loader_opts *with, double step_ms, tried *out, leat_error *err)
{
    trial t;

    if (or_else(e->f->cached, 1) < COLD) LEAT_TRY(leat__reads_forget(e->path, err));
    LEAT_TRY(try_loader(e, with, step_ms, e->seconds * e->try_part, "remedies", 1 - TRY_PART, 1, &t, err));
    double rate;
    *out = (tried){or_else(t.facts.steps, 0) >= FREE_STEPS - 1 ? t.facts.samples_per_s : -1, t.per_s, -1};
    /* with few steps, a burst was corrected */
    if (t.facts.steps >= LEAT__STEPS_ENOUGH && second_half(&e->came, &rate, &out->spread)) out->rate = rate;
    return 0;
}

static int try_flags(exam *e, const char *set, tried *out, leat_error *err)
{
    leat_loader_opts with = leat__doctor_apply(&e->loader, set);
    return try_options(e, &with, e->opts.step_ms, out, err);
}

/* Returns the larger spread; unknown when one of them is. */
static double wider(double a, double b)
{
    return known(a) && known(b) ? LEAT_MAX(a, b) : -1;
}

/* Runs the loader with small batches and with larger ones, alternating. Starts of epochs count, because
 * epochs of tiny samples are short. Replaces the gain that was computed from CPU time, which does not include
 * waits. */
static int try_larger(exam *e, leat_error *err)
{
    leat_doctor_facts *f = e->f;
    leat_loader_opts with[2] = {e->loader, e->loader};
    double sum[2] = {0}, spread = 0;
    tried run[2][2];

    with[1].batch_size = (uint32_t)leat__larger_batch(e->loader.batch_size);
    for (uint32_t i = 0; i < LARGER_RUNS; i++) {
        tried *t = &run[i % 2][i / 2];
        if (!time_to_try(e)) return 0;
        LEAT_TRY(try_options(e, &with[i % 2], 0, t, err));
        if (t->with_starts <= 0 || !known(t->spread)) return 0;
        sum[i % 2] += t->with_starts;
        spread = LEAT_MAX(spread, t->spread);
    }
    for (uint32_t i = 0; i < 2; i++)
        spread = LEAT_MAX(spread, leat__doctor_apart(run[i][0].with_starts, run[i][1].with_starts));
    f->larger = f->loader * sum[1] / sum[0];
    f->larger_spread = spread;
    return 0;
}

/* Runs the loader with the flags of one remedy. Flags with which the loader cannot run (too little memory)
 * get no result. */
static int try_one(exam *e, const char *set, const tried *now, leat_error *err)
{
    leat_doctor_facts *f = e->f;
    tried then = {.spread = -1};
    if (f->trial_count == LEAT_DOCTOR_TRIALS || !time_to_try(e)) return 0;
    int rc = try_flags(e, set, &then, err);
    if (rc == LEAT_ECANCELED) return rc;
    if (rc == 0 && then.rate < 0) { /* too slow for a short measurement */
        skip(e);
        return 0;
    }
    leat_doctor_trial *t = &f->trials[f->trial_count++];
    snprintf(t->set, sizeof t->set, "%s", set);
    t->rate = rc == 0 && then.rate > 0 ? then.rate : 0;
    t->gain = t->rate / now->rate;
    t->spread = wider(then.spread, now->spread);
    return 0;
}

/* Runs once more without flags: gains are relative to the mean of both runs, and their difference is part of
 * the spread. */
static int try_again(exam *e, tried *now, leat_error *err)
{
    leat_doctor_facts *f = e->f;
    tried after;

    if (f->trial_count == 0 || leat__time_left(&e->limit) < LEAT_MAX(e->seconds * e->try_part, TRY_LEAST))
        return 0;
    LEAT_TRY(try_flags(e, "", &after, err));
    if (after.rate <= 0) return 0;
    now->spread = wider(wider(now->spread, after.spread), leat__doctor_apart(now->rate, after.rate));
    now->rate = (now->rate + after.rate) / 2;
    for (uint32_t i = 0; i < f->trial_count; i++) {
        f->trials[i].gain = f->trials[i].rate / now->rate;
        f->trials[i].spread = wider(f->trials[i].spread, now->spread);
    }
    return 0;
}

/* Loads the same few samples repeatedly, from the page cache: the gain if the whole pack were
 * there. */
static int try_warm(exam *e, leat_error *err)
{
    leat_loader_opts with = e->loader;
    uint64_t few = LEAT_MIN(e->id_count, LEAT_MAX(2u * (uint64_t)with.batch_size,
                                                  (uint64_t)(or_else(e->f->samples_per_s, 0) / 2)));
    double *weights = LEAT_NEW_ARRAY(DOCTOR, double, LEAT_MAX(few, 1u));
    trial t;

    if (weights == NULL) return leat__fail_nomem(err, few * sizeof *weights, "samples");
    for (uint64_t i = 0; i < few; i++) weights[i] = 1;
    with.order = LEAT_ORDER_RANDOM; /* repeated samples are in memory, so their order does not
                                     * matter */
    with.weights = weights;
    with.draws = (uint64_t)with.batch_size * WARM_BATCHES;
    with.balance = NULL;
    with.rank = with.world = 0;
    int rc = leat__reads_samples(e->path, e->ids, &few, e->seconds * TRY_PART, &e->limit, err);
    with.indices = e->ids;
    with.index_count = with.weight_count = few;
    if (rc == 0 && few > 0)
        rc = try_loader(e, &with, e->opts.step_ms, e->seconds * TRY_PART, "the loader from memory",
                        1 - TRY_PART, 1, &t, err);
    if (rc == 0 && few > 0) e->f->loader_warm = t.facts.samples_per_s;
    leat__free(weights);
    return rc == LEAT_ETIMEDOUT ? 0 : rc;
}

/* Runs the loader with each promising set of flags, alternating with runs without them. */
static int try_remedies(exam *e, leat_error *err)
{
    leat_doctor_facts *f = e->f;
    leat_doctor_diagnosis d;
    tried now = {.spread = -1};

    LEAT_TRY(leat_doctor_judge(f, &d, sizeof d, err));
    if (d.limit == LEAT_LIMIT_TRAINER || d.limit == LEAT_LIMIT_PYTHON || d.limit == LEAT_LIMIT_NONE) return 0;
    e->least_steps = FREE_STEPS;
    e->try_part = d.limit == LEAT_LIMIT_IO ? TRY_PART_IO : TRY_PART;
    if (d.limit == LEAT_LIMIT_IO && or_else(f->cached, 1) < WARM && time_to_try(e))
        LEAT_TRY(try_warm(e, err));
    if (d.cause == LEAT_CAUSE_SMALL_BATCHES && known(f->larger)) LEAT_TRY(try_larger(e, err));
    for (uint32_t i = 0, count = 0; i < d.remedy_count && count < TRY_MOST; i++) {
        if (!can_try(e, &d, d.remedies[i].set)) continue;
        if (count++ == 0 && (!time_to_try(e) || try_flags(e, "", &now, err) != 0 || now.rate <= 0)) break;
        LEAT_TRY(try_one(e, d.remedies[i].set, &now, err));
    }
    if (now.rate <= 0) return 0;
    LEAT_TRY(try_again(e, &now, err));
    LEAT_TRY(leat_doctor_judge(f, &d, sizeof d, err));
    return strchr(d.apply, ',') != NULL && can_try(e, &d, d.apply) ? try_one(e, d.apply, &now, err) : 0;
}

/* Finds how much of the CPUs other processes took since `from`. With idle CPUs they do not count. */
static void find_contention(exam *e, const leat__kernel_counters *from)
{
    leat__kernel_counters to;
    leat_doctor_facts since;
    leat_machine machine;

    leat_doctor_facts_init(&since);
    leat__kernel_counters_read(&to);
    leat__kernel_counters_facts(from, &to, &since);
    if (!known(since.others) || leat_machine_read(&machine, sizeof machine, NULL) != 0) return;
    double cpus = LEAT_MAX(machine.cpus_affinity, 1u);
    bool idle = since.cpu_used + since.others < BUSY_CPUS * cpus;
    e->f->remedy_others = idle ? 0 : LEAT_MIN(since.others / cpus, 1.0);
}

static int examine(exam *e, leat_error *err)
{
    leat_doctor_facts *f = e->f;
    trial first = {.per_s = 0}, busy;
    leat__kernel_counters begin;

    f->skipped = 0;
    LEAT_TRY(leat__reads_resident(e->path, &f->cached, err));
    LEAT_TRY(list_ids(e, err));
    if (e->id_count < e->loader.batch_size && e->loader.drop_last != LEAT_DROP_LAST)
        e->loader.batch_size = (uint32_t)e->id_count; /* no batch is larger than the dataset */
    double asked = e->loader.batch_size;
    LEAT_TRY(choose_trial_batch(e, err));
    choose_trial_step(e);
    describe_settings(e, f);
    f->batch = mean_batch(e, asked); /* the trainer's rate follows from the actual batches */
    int rc = run_trial(e, asked, &first, err);
    busy = first;
    if (rc == 0) rc = find_headroom(e, &busy, err);
    if (rc == 0) rc = try_spacious(e, &busy, err);
    merge(f, &first.facts);
    leat__kernel_counters_read(&begin);
    if (rc == 0) rc = measure_parts(e, &busy, err);
    /* from the run, like in_flight, not from cold reads */
    f->read_ms = or_else(first.facts.read_ms, f->read_ms);
    if (rc == 0) rc = try_remedies(e, err);
    find_contention(e, &begin);
    return rc != 0 ? rc : report(e, "done", 1, NULL, err);
}

int leat_doctor_examine(const char *path, const leat_loader_opts *loader,
                        const leat_doctor_examine_opts *opts, leat_doctor_facts *facts, leat_error *err)
{
    LEAT_REQUIRE(path != NULL && facts != NULL, err);
    exam e = {.path = path, .f = facts};

    leat_doctor_facts_init(facts);
    leat_loader_opts_init(&e.loader);
    memcpy(&e.loader, loader, LEAT_MIN(loader->struct_size, sizeof e.loader));
    if (opts != NULL) memcpy(&e.opts, opts, LEAT_MIN(opts->struct_size, sizeof e.opts));
    if (e.loader.batch_size == 0) e.loader.batch_size = 256;
    e.log = e.loader.log;
    e.loader.log = (leat_log){0};
    e.seconds = e.opts.seconds > 0 ? e.opts.seconds : SECONDS;
    e.limit = (leat__time_limit){.until_ns = leat__clock_ns() +
                                             (uint64_t)((CEILING_TIMES * e.seconds + CEILING_MORE) * 1e9),
                                 .stop = wants_stop,
                                 .cookie = &e};
    e.now = "the pack";
    e.least_steps = LEAST_STEPS;
    int rc = examine(&e, err);
    leat__free(e.ids);
    return rc;
}
