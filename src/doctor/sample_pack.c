/* SPDX-License-Identifier: Apache-2.0
 *
 * A pack of a few samples. They are drawn repeatedly, with replacement, so that an epoch is as long as the
 * measurement. CPU time is measured, not wall time, because other processes may use the machine.
 */
#include "doctor/sample_pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <leat/machine.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "ingest/image_encode.h"
#include "io/file.h"

#define EPOCH_BATCHES 4096u
#define BATCH_MAX 64u /* larger batches cost the same per sample but take longer to warm up */
#define AHEAD_SAMPLES 64u
#define LEAST_BATCHES 6u
#define SETTLED_NS (2 * LEAT_NS_PER_S) /* maximum */
#define LOOK_NS 500000                 /* interval of the checks whether a task runs, */
#define STILL_LOOKS 3u                 /* until this many consecutive checks found none */
#define PATIENCE 5.0                   /* factor on the time when other processes use the CPUs */
#define IMAGES_MAX 64u
#define WAIT_MS 100 /* wait for a batch, between checks of the time limit */
#define NAME_BYTES 4096
#define CACHE_TIMES 3
#define CACHE_BYTES (32.0 * 1048576) /* assumed when the machine does not report it */
#define BYTES_MAX (128.0 * 1048576)
#define COPY_SHOWS (256.0 * 1024) /* size of a sample above which its cost is mostly copying */
#define COPY_TIMES 3              /* factor on the cache size: memory speed varies by location */
#define READ_BYTES 524288u
#define SAMPLES_MAX 8192.0

struct leat__sample_pack {
    char path[NAME_BYTES];
    bool there;
    uint32_t count;
    const leat__time_limit *limit; /* taken from the source set */
};

/* ---- The pack ---- */

static bool copy_shows(const leat__set *set)
{
    return leat__set_bytes(set) >= COPY_SHOWS;
}

static int put_sample(leat_packer *p, const leat__set_sample *s, uint32_t number, leat_error *err)
{
    char key[16];
    leat_pack_value value = {.data = s->data,
                             .size = s->len,
                             .entries = s->entries,
                             .entries_size = s->entries_len,
                             .image = {.width = s->info.width,
                                       .height = s->info.height,
                                       .codec = (uint8_t)s->info.codec,
                                       .channels = (uint8_t)s->info.channels,
                                       .orientation = (uint8_t)s->info.orientation}};
    int len = snprintf(key, sizeof key, "%u", number);
    leat_pack_sample sample = {.key = key, .key_size = (size_t)len, .values = &value};
    return leat_packer_append(p, &sample, err);
}

static int store(leat__sample_pack *m, const leat__set *set, leat_error *err)
{
    static const leat_field field = {.name = "image", .type = LEAT_FIELD_IMAGE};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_packer *p = NULL;
    int rc;

    o.fields = &field;
    o.field_count = 1;
    /* otherwise the pack must be on disk, so that it can be dropped from the page cache */
    o.no_sync = !copy_shows(set);
    LEAT_TRY(leat_packer_open(&p, m->path, &o, err));
    m->there = true;
    if (set->blob.len > 0)
        LEAT_GO(rc, out, leat_packer_blob(p, LEAT__TILE_TABLES_BLOB, set->blob.data, set->blob.len, err));
    for (uint32_t i = 0; i < m->count; i++) {
        LEAT_GO(rc, out, leat__time_check(m->limit, err));
        LEAT_GO(rc, out, put_sample(p, &set->sample[i % set->count], i, err));
    }
    rc = leat_packer_finish(p, NULL, err);
out:
    leat_packer_close(&p);
    return rc;
}

/* Drops the written pages from the page cache and reads them again, out of sequence. The page cache
 * keeps written data in large folios and randomly read data in single pages; copying from the latter
 * takes a third longer. */
static int read_again(const leat__sample_pack *m, leat_error *err)
{
    leat__file *f = NULL;
    uint8_t *buf = leat__alloc_aligned(LEAT__MEM_DOCTOR, READ_BYTES, LEAT__IO_ALIGN);
    int rc = buf == NULL ? leat__fail_nomem(err, READ_BYTES, "reads") : 0;

    if (rc == 0) rc = leat__file_open(&f, m->path, LEAT__FILE_READ, err);
    if (rc != 0) goto out;
    leat__file_advise(f, 0, 0, LEAT__ADVICE_DONTNEED);
    /* in reverse order */
    for (uint64_t i = leat__file_size_at_open(f) / READ_BYTES; i > 0 && rc == 0; i--) {
        rc = leat__time_check(m->limit, err);
        if (rc == 0) rc = leat__file_pread(f, buf, READ_BYTES, (i - 1) * READ_BYTES, err);
    }
out:
    leat__file_close(&f);
    leat__free(buf);
    return rc;
}

static uint32_t samples_beyond_caches(const leat__set *set, double most_bytes)
{
    leat_machine machine;
    double cache = CACHE_BYTES;
    if (leat_machine_read(&machine, sizeof machine, NULL) == 0 && machine.cache_l3_bytes > 0)
        cache = machine.cache_l3_bytes;
    double bytes = LEAT_MIN(CACHE_TIMES * cache, BYTES_MAX) * (copy_shows(set) ? COPY_TIMES : 1);
    double fill = LEAT_MIN(bytes, most_bytes) / LEAT_MAX(leat__set_bytes(set), 1.0);
    return LEAT_MAX(set->count, (uint32_t)LEAT_MIN(fill, SAMPLES_MAX));
}

int leat__sample_pack_open(leat__sample_pack **out, const leat__set *set, double most_bytes, leat_error *err)
{
    const char *folder = getenv("TMPDIR");
    *out = NULL;
    leat__sample_pack *m = LEAT_NEW(DOCTOR, leat__sample_pack);
    if (m == NULL) return leat__fail_nomem(err, sizeof *m, "a small pack");
    m->limit = set->limit;
    m->count = samples_beyond_caches(set, most_bytes);
    snprintf(m->path, sizeof m->path, "%s/leat-doctor-%d-%llx.leat",
             folder != NULL && folder[0] != '\0' ? folder : "/tmp", (int)getpid(),
             (unsigned long long)leat__clock_ns());
    int rc = store(m, set, err);
    if (rc == 0 && copy_shows(set)) rc = read_again(m, err);
    if (rc != 0) leat__sample_pack_close(&m);
    else *out = m;
    return rc;
}

void leat__sample_pack_close(leat__sample_pack **out)
{
    leat__sample_pack *m = *out;
    if (m == NULL) return;
    if (m->there) { /* finished or not */
        int gone = leat__path_unlink(m->path, NULL), partial = leat_packer_discard(m->path, NULL);
        (void)gone, (void)partial; /* if it cannot be removed, a small temporary file remains */
    }
    leat__free(m);
    *out = NULL;
}

/* ---- Loading it ---- */

struct leat__sample_load {
    leat_loader *loader;
    double *weights;
    uint64_t epoch;
    uint32_t threads;
    const leat__time_limit *limit;
};

/* True when any task ran since the last check. */
static bool stirred(leat_loader *l, uint64_t *items)
{
    leat_loader_stats s;
    uint64_t before = *items;
    uint32_t running = 0;
    if (leat_loader_read_all(l, &s, sizeof s) != 0) return false;
    *items = 0;
    for (uint32_t i = 0; i < LEAT_LOADER_STAGES; i++) {
        *items += s.stages[i].items;
        running += s.stages[i].running;
    }
    return running > 0 || *items != before;
}

/* Waits until the loader has prefetched all batches it may and its threads sleep. */
static int settle(const leat__sample_load *run, leat_error *err)
{
    uint64_t until = leat__clock_ns() + SETTLED_NS, items = 0;
    for (uint32_t still = 0; still < STILL_LOOKS && leat__clock_ns() < until;) {
        LEAT_TRY(leat__time_check(run->limit, err));
        still = stirred(run->loader, &items) ? 0 : still + 1;
        leat__sleep_ns(LOOK_NS);
    }
    return 0;
}

/* Takes the next batch; gives up at the time limit. */
static int next_batch(const leat__sample_load *run, leat_batch **b, leat_error *err)
{
    for (;;) {
        LEAT_TRY(leat__time_check(run->limit, err));
        int rc = leat_loader_next(run->loader, b, WAIT_MS, err);
        if (rc != LEAT_ETIMEDOUT) return rc;
    }
}

/* The same number of batches is prefetched before and after, so the CPU time spent is that of the samples
 * taken. Wall time is unreliable on a busy machine. */
int leat__sample_load_cost(leat__sample_load *run, double seconds, double *cpu_s, double *clock_s,
                           leat_error *err)
{
    uint64_t until = leat__clock_ns() + (uint64_t)(PATIENCE * seconds * 1e9), samples = 0, batches = 0;
    double want_ns = seconds * 1e9 * run->threads;

    LEAT_TRY(settle(run, err));
    uint64_t begin = leat__clock_process_ns(), began = leat__clock_ns();
    while (batches < LEAST_BATCHES ||
           ((double)(leat__clock_process_ns() - begin) < want_ns && leat__clock_ns() < until)) {
        leat_batch *b = NULL;
        LEAT_TRY(next_batch(run, &b, err));
        if (b == NULL) {
            if (samples == 0) return leat__fail(err, LEAT_EDATA, "no sample of these can be decoded");
            LEAT_TRY(leat_loader_begin(run->loader, ++run->epoch, err));
            continue;
        }
        samples += b->samples;
        batches++;
        leat_batch_release(&b);
    }
    LEAT_TRY(settle(run, err));
    *clock_s = (double)(leat__clock_ns() - began) / 1e9 / (double)LEAT_MAX(samples, 1u);
    *cpu_s = (double)(leat__clock_process_ns() - begin) / 1e9 / (double)LEAT_MAX(samples, 1u);
    return 0;
}

/* Adapts the user's options for a loader that draws repeatedly from the few samples. */
static void options(leat_loader_opts *o, leat_loader_image images[IMAGES_MAX], const char *const *ops)
{
    o->image_count = LEAT_MIN(o->image_count, IMAGES_MAX);
    for (uint32_t i = 0; i < o->image_count; i++) { /* all images use the only field */
        images[i] = o->images[i];
        if (images[i].name == NULL) images[i].name = images[i].field;
        images[i].field = NULL;
        if (ops != NULL) images[i].ops = ops[i];
    }
    o->images = images;
    if (ops != NULL && o->image_count == 0) o->ops = ops[0];
    o->batch_size = LEAT_MIN(LEAT_MAX(o->batch_size, 1u), BATCH_MAX);
    o->prefetch = LEAT_MAX(2u, AHEAD_SAMPLES / o->batch_size);
    o->order = LEAT_ORDER_RANDOM;
    o->on_error = LEAT_ON_ERROR_SKIP;
    o->max_bad = o->memory = o->index_count = 0;
    o->rank = o->world = o->field_count = 0;
    o->budget = NULL;
    o->log = (leat_log){0}; /* the messages of this loader would not be about the real pack */
    o->quarantine = o->balance = NULL;
    o->indices = NULL;
    o->fields = NULL;
    o->sample_fn = NULL; /* the function expects the fields of the real pack */
    o->draws = (uint64_t)o->batch_size * EPOCH_BATCHES;
}

int leat__sample_load_open(leat__sample_load **out, const leat__sample_pack *m, const leat_loader_opts *opts,
                           const char *const *ops, uint32_t threads, leat_error *err)
{
    leat_loader_image images[IMAGES_MAX];
    leat_loader_opts o = *opts;
    int rc;

    *out = NULL;
    leat__sample_load *run = LEAT_NEW(DOCTOR, leat__sample_load);
    if (run == NULL) return leat__fail_nomem(err, sizeof *run, "a small loader");
    run->threads = LEAT_MAX(threads, 1u);
    run->limit = m->limit;
    run->weights = LEAT_NEW_ARRAY(DOCTOR, double, m->count);
    if (run->weights == NULL)
        LEAT_GO(rc, out, leat__fail_nomem(err, m->count * sizeof *run->weights, "samples"));
    for (uint32_t i = 0; i < m->count; i++) run->weights[i] = 1;
    options(&o, images, ops);
    o.threads = threads;
    o.weights = run->weights;
    o.weight_count = m->count;
    LEAT_GO(rc, out, leat_loader_open(&run->loader, m->path, &o, err));
    rc = leat_loader_begin(run->loader, run->epoch, err);
out:
    if (rc != 0) leat__sample_load_close(&run);
    else *out = run;
    return rc;
}

void leat__sample_load_close(leat__sample_load **out)
{
    leat__sample_load *run = *out;
    if (run == NULL) return;
    leat_loader_close(&run->loader);
    leat__free(run->weights);
    leat__free(run);
    *out = NULL;
}
