/* SPDX-License-Identifier: Apache-2.0
 *
 * The examination: the loader with a pretended trainer, in the state the machine is in; then what
 * each part does alone. The loader goes first, because whatever reads the pack warms it.
 */
#include <string.h>

#include <leat/doctor.h>
#include <leat/machine.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "doctor/judge.h"
#include "doctor/reads.h"
#include "doctor/work.h"

#define SECONDS 8.0
#define IDS_MAX 8192u
#define TRIAL_PART 0.4
#define FREE_PART 0.12
#define READ_PART 0.2
#define WORK_PART 0.28
#define LEAST_STEPS 24u  /* a verdict wants 20 */
#define TRIAL_STRETCH 5.0 /* a slow run may take this much longer to make them */
#define SLEEP_NS 300000   /* shorter steps than this cannot be slept */
#define LEAST_OVERHEAD 0.02 /* of a sample's own cost: less cannot be told from noise */

typedef struct exam {
    const char *path;
    leat_loader_opts loader;
    leat_doctor_examine_opts opts;
    double seconds;
    uint64_t *ids;
    uint64_t id_count;
    leat_doctor_facts *f;
} exam;

static int report(const exam *e, const char *what, double done, leat_doctor_watch *watch,
                  leat_error *err)
{
    if (e->opts.progress == NULL || e->opts.progress(e->opts.cookie, what, done, watch) == 0) return 0;
    return leat__fail(err, LEAT_ECANCELED, "stopped");
}

/* ---- The loader with a pretended trainer ---- */

static void pretend_training(double step_ms, bool spin)
{
    uint64_t ns = (uint64_t)(step_ms * 1e6), until = leat__clock_ns() + ns;
    if (!spin && ns >= SLEEP_NS) {
        leat__sleep_ns(ns);
        return;
    }
    while (leat__clock_ns() < until) {
    }
}

/* Batches until the time is over, epoch after epoch; a slow trainer gets more time to make enough
 * steps. */
static int take_batches(const exam *e, leat_loader *l, leat_doctor_watch *w, double step_ms,
                        double seconds, const char *what, double from, double to, leat_error *err)
{
    uint64_t begin = leat__clock_ns(), steps = 0, epoch = 0, failures = 0;
    double passed = 0;

    LEAT_TRY(leat_loader_begin(l, epoch, err));
    /* the first step of each epoch does not count */
    while (passed < seconds || (steps < LEAST_STEPS + epoch && passed < TRIAL_STRETCH * seconds)) {
        leat_batch *b = NULL;
        LEAT_TRY(report(e, what, from + (to - from) * LEAT_MIN(1.0, passed / seconds), w, err));
        int rc = leat_loader_next(l, &b, 200, err);
        passed = (double)(leat__clock_ns() - begin) / 1e9;
        if (rc == LEAT_ETIMEDOUT || rc == LEAT_EAGAIN) continue;
        if (rc != 0) return rc;
        if (b == NULL) {
            if (steps == 0 && ++failures > 1) return leat__fail(err, LEAT_EDATA, "%s: no samples", e->path);
            LEAT_TRY(leat_loader_begin(l, ++epoch, err));
            continue;
        }
        if (step_ms > 0) pretend_training(step_ms, e->opts.spin != 0);
        leat_batch_release(&b);
        steps++;
    }
    return 0;
}

/* CPU seconds of everything but decoding: what order, scheduling, reading and hand-over cost one
 * sample. */
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
    double per_s; /* samples over the whole time, CPU time measured over the same */
} trial;

static int try_loader(const exam *e, const leat_loader_opts *with, double step_ms, double seconds,
                      const char *what, double from, double to, trial *t, leat_error *err)
{
    leat_loader *l = NULL;
    leat_doctor_watch *w = NULL;
    leat_doctor_frame last;
    int rc;

    LEAT_GO(rc, out, leat_loader_open(&l, e->path, with, err));
    LEAT_GO(rc, out, leat_doctor_watch_open(&w, l, 100, err));
    LEAT_GO(rc, out, take_batches(e, l, w, step_ms, seconds, what, from, to, err));
    LEAT_GO(rc, out, leat_doctor_watch_facts(w, &t->facts, err));
    t->per_s = leat_doctor_watch_frames(w, &last, 1) == 1 ? (double)last.samples / last.at_s
                                                           : t->facts.samples_per_s;
out:
    if (w != NULL && e->opts.progress != NULL) e->opts.progress(e->opts.cookie, what, to, NULL);
    leat_doctor_watch_close(&w);
    leat_loader_close(&l);
    return rc;
}

/* ---- Parts of the examination ---- */

/* Ids in the order they will be read: as many as a measurement can use. */
static int list_ids(exam *e, leat_error *err)
{
    leat_loader *l = NULL;
    int rc;

    LEAT_GO(rc, out, leat_loader_open(&l, e->path, &e->loader, err));
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

static void describe_settings(const exam *e, leat_doctor_facts *f)
{
    leat_disk disk;
    f->batch = e->loader.batch_size;
    f->order_random = e->loader.order == LEAT_ORDER_RANDOM;
    f->cache_process = e->loader.cache == LEAT_CACHE_PROCESS;
    if (leat_disk_read(&disk, e->path, NULL) == 0) {
        f->network = disk.network;
        f->rotational = disk.rotational;
    }
}

/* Nobody waits between batches: what the loader could do. Where the run itself was starved that
 * is the answer already; a cold pack would be warm by now and lie. */
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
    if (e->opts.step_ms > 0) {
        LEAT_TRY(try_loader(e, &e->loader, 0, e->seconds * FREE_PART,
                            "the loader without a trainer", TRIAL_PART, TRIAL_PART + FREE_PART, &all, err));
        *t = all; /* the busier run tells more about what a sample costs */
    }
    f->loader = all.facts.samples_per_s;
    return 0;
}

/* With memory to spare and nothing to wait for: what lifting a budget would bring, and, where the run
 * itself was starved, what a sample costs when workers are busy and not woken for each one. */
static int try_spacious(exam *e, trial *t, leat_error *err)
{
    leat_loader_opts with = e->loader;
    trial all;

    if (known(leat__doctor_lost(&t->facts)) && leat__doctor_lost(&t->facts) < LEAT__LOST_WARNING) return 0;
    with.memory = 0;
    with.budget = NULL;
    LEAT_TRY(try_loader(e, &with, 0, e->seconds * FREE_PART, "the loader with memory to spare", TRIAL_PART,
                        TRIAL_PART + FREE_PART, &all, err));
    e->f->spacious = all.facts.samples_per_s;
    if (all.per_s > 0 && all.facts.cpu_used / all.per_s < t->facts.cpu_used / t->per_s) *t = all;
    return 0;
}

/* Facts of the run that the measurements did not give. */
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

static int examine(exam *e, leat_error *err)
{
    leat_doctor_facts *f = e->f;
    trial first, busy;
    double cpu_s = -1, done = TRIAL_PART + FREE_PART;

    LEAT_TRY(leat__reads_resident(e->path, &f->cached, err));
    LEAT_TRY(list_ids(e, err));
    describe_settings(e, f);
    LEAT_TRY(try_loader(e, &e->loader, e->opts.step_ms, e->seconds * TRIAL_PART,
                        e->opts.step_ms > 0 ? "the loader with a trainer" : "the loader", 0, TRIAL_PART,
                        &first, err));
    if (e->opts.step_ms <= 0) /* nobody trained: there is no step to lose a share of */
        first.facts.batch_ms = first.facts.batch_ms_p50 = first.facts.batch_ms_p95 =
            first.facts.data_ms = first.facts.data_ms_p50 = first.facts.data_ms_p95 = -1;
    busy = first;
    LEAT_TRY(find_headroom(e, &busy, err));
    LEAT_TRY(try_spacious(e, &busy, err));
    merge(f, &first.facts);
    LEAT_TRY(report(e, "decode and augmentation", done, NULL, err));
    LEAT_TRY(leat__work_measure(e->path, e->ids, e->id_count, &e->loader, (uint32_t)or_else(f->threads, 1),
                                e->seconds * WORK_PART, f, &cpu_s, err));
    find_delivery(f, &busy.facts, busy.per_s, cpu_s);
    LEAT_TRY(report(e, "reads", done + WORK_PART, NULL, err));
    LEAT_TRY(leat__reads_measure(e->path, e->ids, e->id_count, &e->loader, e->seconds * READ_PART, f, err));
    return report(e, "done", 1, NULL, err);
}

int leat_doctor_examine(const char *path, const leat_loader_opts *loader,
                        const leat_doctor_examine_opts *opts, leat_doctor_facts *facts, leat_error *err)
{
    exam e = {.path = path, .f = facts};

    leat_doctor_facts_init(facts);
    leat_loader_opts_init(&e.loader);
    memcpy(&e.loader, loader, LEAT_MIN(loader->struct_size, sizeof e.loader));
    if (opts != NULL) memcpy(&e.opts, opts, LEAT_MIN(opts->struct_size, sizeof e.opts));
    if (e.loader.batch_size == 0) e.loader.batch_size = 256;
    e.seconds = e.opts.seconds > 0 ? e.opts.seconds : SECONDS;
    int rc = examine(&e, err);
    leat__free(e.ids);
    return rc;
}
