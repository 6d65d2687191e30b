/* SPDX-License-Identifier: Apache-2.0
 *
 * A pack of a few samples. They are drawn with replacement, again and again, so that an epoch is
 * as long as the measurement; CPU time and not the clock is what counts, because others may use
 * the machine too.
 */
#include "doctor/mini.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "ingest/image_encode.h"
#include "io/file.h"

#define EPOCH_BATCHES 4096u
#define BATCH_MAX 32u   /* larger ones cost the same per sample, and take long to be warm */
#define PREFETCH 2u
#define LEAST_BATCHES 6u /* all memory for batches was touched, before anything counts; and then as many */
#define WARM_PART 0.25
#define PATIENCE 5.0 /* times the time, where others use the CPUs */
#define IMAGES_MAX 64u
#define NAME_BYTES 4096

struct leat__mini {
    char path[NAME_BYTES];
    bool there;
    uint32_t count;
};

/* ---- The pack ---- */

static int put_sample(leat_packer *p, const leat__set_sample *s, uint32_t number, leat_error *err)
{
    char key[16];
    leat_pack_value value = {.data = s->data, .size = s->len,
                             .entries = s->entries, .entries_size = s->entries_len,
                             .image = {.width = s->info.width, .height = s->info.height,
                                       .codec = (uint8_t)s->info.codec, .channels = (uint8_t)s->info.channels,
                                       .orientation = (uint8_t)s->info.orientation}};
    int len = snprintf(key, sizeof key, "%u", number);
    leat_pack_sample sample = {.key = key, .key_size = (size_t)len, .values = &value};
    return leat_packer_append(p, &sample, err);
}

static int store(leat__mini *m, const leat__set *set, leat_error *err)
{
    static const leat_field field = {.name = "image", .type = LEAT_FIELD_IMAGE};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_packer *p = NULL;
    int rc;

    o.fields = &field;
    o.field_count = 1;
    o.no_sync = 1;
    LEAT_TRY(leat_packer_open(&p, m->path, &o, err));
    m->there = true;
    if (set->blob.len > 0)
        LEAT_GO(rc, out, leat_packer_blob(p, LEAT__TILE_TABLES_BLOB, set->blob.data, set->blob.len, err));
    for (uint32_t i = 0; i < set->count; i++) LEAT_GO(rc, out, put_sample(p, &set->sample[i], i, err));
    rc = leat_packer_finish(p, NULL, err);
out:
    leat_packer_close(&p);
    return rc;
}

int leat__mini_open(leat__mini **out, const leat__set *set, leat_error *err)
{
    const char *folder = getenv("TMPDIR");
    *out = NULL;
    leat__mini *m = LEAT_NEW(DOCTOR, leat__mini);
    if (m == NULL) return leat__fail_nomem(err, sizeof *m, "a small pack");
    m->count = set->count;
    snprintf(m->path, sizeof m->path, "%s/leat-doctor-%d-%llx.leat",
             folder != NULL && folder[0] != '\0' ? folder : "/tmp", (int)getpid(),
             (unsigned long long)leat__clock_ns());
    int rc = store(m, set, err);
    if (rc != 0)
        leat__mini_close(&m);
    else
        *out = m;
    return rc;
}

void leat__mini_close(leat__mini **out)
{
    leat__mini *m = *out;
    if (m == NULL) return;
    if (m->there) { /* finished or not */
        int gone = leat__path_unlink(m->path, NULL), partial = leat_packer_discard(m->path, NULL);
        (void)gone, (void)partial; /* what cannot be removed is a small file in a folder for such */
    }
    leat__free(m);
    *out = NULL;
}

/* ---- Loading it ---- */

typedef struct tally {
    uint64_t cpu_ns, samples, batches;
} tally;

/* Whether `part` of the CPU time was spent since `from`: the clock says little on a busy machine. */
static bool enough(const tally *from, const tally *now, double cpu_ns)
{
    return now->batches - from->batches >= LEAST_BATCHES && (double)(now->cpu_ns - from->cpu_ns) >= cpu_ns;
}

static int take_batches(leat_loader *l, uint32_t threads, double seconds, double *cpu_s, leat_error *err)
{
    uint64_t until = leat__clock_ns() + (uint64_t)(PATIENCE * seconds * 1e9), epoch = 0;
    double cpu_ns = seconds * 1e9 * threads;
    tally begin = {.cpu_ns = leat__clock_process_ns()}, from = {0}, now = begin;

    LEAT_TRY(leat_loader_begin(l, epoch, err));
    while (from.samples == 0 || now.samples == from.samples ||
           (!enough(&from, &now, (1 - WARM_PART) * cpu_ns) && leat__clock_ns() < until)) {
        leat_batch *b = NULL;
        LEAT_TRY(leat_loader_next(l, &b, -1, err));
        if (b == NULL) {
            if (now.samples == 0) return leat__fail(err, LEAT_EDATA, "no sample of these can be decoded");
            LEAT_TRY(leat_loader_begin(l, ++epoch, err));
            continue;
        }
        now = (tally){leat__clock_process_ns(), now.samples + b->samples, now.batches + 1};
        leat_batch_release(&b);
        if (from.samples == 0 && enough(&begin, &now, WARM_PART * cpu_ns)) from = now;
    }
    *cpu_s = (double)(now.cpu_ns - from.cpu_ns) / 1e9 / (double)(now.samples - from.samples);
    return 0;
}

int leat__mini_cost(const leat__mini *m, const leat_loader_opts *opts, const char *ops, uint32_t threads,
                    double seconds, double *cpu_s, leat_error *err)
{
    leat_loader_image images[IMAGES_MAX];
    leat_loader_opts o = *opts;
    leat_loader *l = NULL;
    int rc;

    double *weights = LEAT_NEW_ARRAY(DOCTOR, double, m->count);
    if (weights == NULL) return leat__fail_nomem(err, m->count * sizeof *weights, "samples");
    for (uint32_t i = 0; i < m->count; i++) weights[i] = 1;
    o.image_count = LEAT_MIN(opts->image_count, IMAGES_MAX);
    for (uint32_t i = 0; i < o.image_count; i++) { /* all of the one field that is there */
        images[i] = opts->images[i];
        if (images[i].name == NULL) images[i].name = images[i].field;
        images[i].field = NULL;
        if (ops != NULL) images[i].ops = ops;
    }
    o.images = images;
    if (ops != NULL) o.ops = ops;
    o.threads = threads;
    o.batch_size = LEAT_MIN(LEAT_MAX(o.batch_size, 1u), BATCH_MAX);
    o.prefetch = PREFETCH;
    o.order = LEAT_ORDER_RANDOM;
    o.on_error = LEAT_ON_ERROR_SKIP;
    o.max_bad = o.memory = o.index_count = 0;
    o.rank = o.world = o.field_count = 0;
    o.budget = NULL;
    o.quarantine = o.balance = NULL;
    o.indices = NULL;
    o.fields = NULL;
    o.sample_fn = NULL; /* it knows the fields of the real pack */
    o.weights = weights;
    o.draws = (uint64_t)o.batch_size * EPOCH_BATCHES;
    LEAT_GO(rc, out, leat_loader_open(&l, m->path, &o, err));
    rc = take_batches(l, LEAT_MAX(threads, 1u), seconds, cpu_s, err);
out:
    leat_loader_close(&l);
    leat__free(weights);
    return rc;
}
