/* SPDX-License-Identifier: Apache-2.0
 *
 * Trains tile tables on up to IMAGES images. They are evenly spread if the source knows how many it has (a
 * folder sorted by class would otherwise give only one class). A tar shard has no random access, so its
 * first images are used. Images to be re-encoded are re-encoded first. It is a flow like the packing:
 *
 *   list (I/O, one at a time) -> read (I/O) -> learn (CPU) -> the caller's thread: join
 *
 * A task is one image with its own counts. Counts are joined in the order of the images, so the tables
 * do not depend on the number of threads.
 */
#include "ingest/tile_training.h"

#include <leat/flow.h>

#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "ingest/pack_memory.h"
#include "ingest/source.h"

#define IMAGES 300
#define IO_DEPTH 4
#define REMOTE_DEPTH 32 /* images in flight at a time, since a read is a round trip */
#define FILE_MAX (UINT64_C(1) << 36)
#define COUNTS_BYTES (256u << 10) /* counts per image, including headers */

typedef struct training {
    leat__source *source;
    leat__records_pool spare;
    leat__tile_trainer *trainer;
    const leat__encode_plan *pack_plan;
    leat__encode_plan plan;         /* used when images are re-encoded first */
    leat__tile_tables *const *from; /* tables of the source packs, by origin */
    uint32_t from_count;
    uint64_t step, seen; /* every step-th record is used */
    bool end;
    _Atomic uint64_t too_large; /* largest need of an image that does not fit the budget */
    leat_pool *pool;
    leat__pack_memory allowance;
    leat_flow *flow;
} training;

/* One image in flight. */
typedef struct lesson {
    leat__records *run;
    leat__record *record;
    leat__tile_trainer *counts; /* NULL: not usable for training */
} lesson;

/* A worker of the learning stage. */
typedef struct pupil {
    leat__jpeg_coef_reader *reader;
    leat__encoder *encoder;
    leat__buf file; /* JPEG restored from tiles */
} pupil;

static void release_lesson(void *cookie, void *data)
{
    training *t = cookie;
    lesson *l = data;
    leat__records_pool_give(&t->spare, l->run);
    leat__tile_trainer_close(&l->counts);
    leat__free(l);
}

/* ---- list ---- */

/* Reads the next record of the source; *wanted: this record is used. Files too large for the flow are not
 * used, since packing reads them one at a time. */
static int next_record(training *t, lesson *l, bool *wanted, leat_error *err)
{
    leat__records_pool_give(&t->spare, l->run);
    l->run = leat__records_pool_take(&t->spare);
    if (!l->run) return leat__fail_nomem(err, sizeof *l->run, "training");
    l->record = leat__records_add(l->run);
    *wanted = t->seen++ % t->step == 0;
    t->source->skim = !*wanted;
    LEAT_TRY(t->source->ops->next(t->source, l->run, l->record, &t->end, err));
    *wanted = *wanted && !l->record->failed && l->record->size_hint <= t->allowance.large;
    return 0;
}

static int stage_list(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    training *t = cookie;
    bool wanted = false;
    if (t->end) return LEAT_FLOW_END;
    lesson *l = LEAT_NEW(INGEST, lesson);
    if (!l) return leat__fail_nomem(err, sizeof *l, "training");
    int rc = 0;
    while (rc == 0 && !t->end && !wanted) rc = next_record(t, l, &wanted, err);
    if (rc != 0 || t->end) {
        release_lesson(t, l);
        return rc != 0 ? rc : LEAT_FLOW_END;
    }
    task->data = l;
    task->release = release_lesson;
    task->release_cookie = t;
    task->bytes = leat__records_held(l->run);
    return 0;
}

/* ---- read ---- */

static uint64_t need_read(void *cookie, const leat_task *task)
{
    const lesson *l = task->data;
    return leat__records_growth(&l->run->in, l->record->size_hint);
}

/* Returns the bytes that learning takes besides those of the image. */
static uint64_t lesson_need(const lesson *l)
{
    return l->run->decode + leat__records_growth(&l->run->out, l->run->result) + COUNTS_BYTES;
}

/* Reads an image. Images that cannot be read are not counted: packing will report them. */
static int stage_read(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    training *t = cookie;
    lesson *l = task->data;
    const leat__item *item = &l->record->items[t->source->image_field];
    if (t->source->ops->load && t->source->ops->load(t->source, l->run, l->record, NULL) != 0)
        return LEAT_FLOW_DROP;
    if (item->absent || item->size == 0) return LEAT_FLOW_DROP;
    leat__pack_memory_measure(t->pack_plan, t->source, l->run, l->record);
    task->bytes = leat__records_held(l->run);
    const uint64_t need = lesson_need(l);
    if (need <= t->allowance.most) return 0;
    uint64_t most = atomic_load(&t->too_large); /* the error at the end names the largest */
    while (need > most && !atomic_compare_exchange_weak(&t->too_large, &most, need)) continue;
    return LEAT_FLOW_DROP;
}

/* ---- learn ---- */

static uint64_t need_learn(void *cookie, const leat_task *task)
{
    const training *t = cookie;
    return LEAT_MIN(lesson_need(task->data), t->allowance.large); /* a large image requests the maximum */
}

static void teardown_learn(void *cookie, void *ctx)
{
    pupil *p = ctx;
    leat__jpeg_coef_reader_close(&p->reader);
    leat__encoder_close(&p->encoder);
    leat__buf_reset(&p->file);
    leat__free(p);
}

static int setup_learn(void *cookie, const leat_worker *worker, void **ctx, leat_error *err)
{
    training *t = cookie;
    pupil *p = LEAT_NEW(INGEST, pupil);
    if (!p) return leat__fail_nomem(err, sizeof *p, "training");
    leat__buf_init(&p->file, LEAT__MEM_INGEST, FILE_MAX);
    int rc = leat__jpeg_coef_reader_open(&p->reader, err);
    if (rc == 0) rc = leat__encoder_open(&p->encoder, &t->plan, err);
    if (rc != 0) teardown_learn(t, p);
    else *ctx = p;
    return rc;
}

/* Counts the coefficients of one JPEG; skips it when it cannot be read. */
static int learn_from(const training *t, pupil *p, lesson *l, const uint8_t *data, size_t len,
                      leat_error *err)
{
    leat__jpeg_coefs coefs;
    if (leat__codec_sniff(data, len) != LEAT__CODEC_JPEG) return 0;
    int rc = leat__jpeg_coef_read(p->reader, data, len, &t->plan.limits, &coefs, NULL);
    if (rc == LEAT_ENOMEM) return leat__fail_nomem(err, 0, "training");
    if (rc != 0) return 0;
    LEAT_TRY(leat__tile_trainer_open(&l->counts, err));
    return leat__tile_trainer_add(l->counts, &coefs, data, len, err);
}

/* Restores the JPEG of a tiled image, to learn from it; skips the image when that fails. */
static int restore(pupil *p, const leat__tile_tables *from, const uint8_t **data, size_t *len,
                   leat_error *err)
{
    if (leat__codec_sniff(*data, *len) != LEAT__CODEC_TILE) return 0;
    leat__buf_clear(&p->file);
    int rc = leat__tile_restore(*data, *len, from, &p->file, NULL);
    size_t size = p->file.len; /* decoders may read a few bytes past the end */
    if (rc == LEAT_ENOMEM || (rc == 0 && leat__buf_zeros(&p->file, LEAT__CODEC_PADDING) != 0))
        return leat__fail_nomem(err, size, "training");
    if (rc != 0) return 0;
    *data = (const uint8_t *)p->file.data;
    *len = size;
    return 0;
}

static int stage_learn(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    training *t = cookie;
    pupil *p = ctx;
    lesson *l = task->data;
    leat__records *run = l->run;
    leat__item *item = &l->record->items[t->source->image_field];
    const leat__tile_tables *from = l->record->origin < t->from_count ? t->from[l->record->origin] : NULL;
    bool again = t->plan.quality > 0 || t->plan.max_side > 0;
    if (again && leat__encoder_image(p->encoder, run, l->record, item, from, NULL) != 0)
        return LEAT_FLOW_DROP;
    if (again && item->coded) { /* decoders may read a few bytes past the end */
        size_t len = run->out.len;
        if (leat__buf_zeros(&run->out, LEAT__CODEC_PADDING) != 0)
            return leat__fail_nomem(err, LEAT__CODEC_PADDING, "training");
        run->out.len = len;
    }
    const uint8_t *data = leat__records_data(run, item);
    size_t size = item->size;
    LEAT_TRY(restore(p, from, &data, &size, err));
    LEAT_TRY(learn_from(t, p, l, data, size, err));
    if (run->decode > t->allowance.large) { /* free the memory of a large image */
        leat__jpeg_coef_reader_close(&p->reader);
        LEAT_TRY(leat__jpeg_coef_reader_open(&p->reader, err));
    }
    task->bytes = leat__records_held(run) + (l->counts ? COUNTS_BYTES : 0);
    return 0;
}

/* ---- the flow ---- */

static int add_stages(training *t, leat_error *err)
{
    leat_stage list, read, learn;
    leat_stage_init(&list);
    list.kind = LEAT_STAGE_SOURCE;
    list.name = "list";
    list.lane = LEAT_LANE_IO;
    list.bytes_out = leat__source_list_need(t->source);
    list.cookie = t;
    list.process = stage_list;
    leat_stage_init(&read);
    read.kind = LEAT_STAGE_MAP;
    read.name = "read";
    read.lane = LEAT_LANE_IO;
    read.bytes_out = LEAT__ENCODE_IN;
    read.cookie = t;
    read.process = stage_read;
    read.need = need_read;
    leat_stage_init(&learn);
    learn.kind = LEAT_STAGE_MAP;
    learn.name = "learn";
    /* the same scratch memory as for packing, so that a budget too small for it is refused now */
    learn.scratch = leat__pack_memory_scratch(&t->allowance, LEAT__ENCODE_SCRATCH(t->pack_plan),
                                              LEAT__ENCODE_IN, LEAT__ENCODE_OUT);
    learn.bytes_out = LEAT__ENCODE_OUT;
    learn.cookie = t;
    learn.setup = setup_learn;
    learn.teardown = teardown_learn;
    learn.process = stage_learn;
    learn.need = need_learn;
    LEAT_TRY(leat_flow_add(t->flow, &list, err));
    LEAT_TRY(leat_flow_add(t->flow, &read, err));
    return leat_flow_add(t->flow, &learn, err);
}

static int start_flow(training *t, const leat_ingest_opts *o, leat_error *err)
{
    leat_pool_opts pool;
    leat_pool_opts_init(&pool);
    pool.threads = o->threads;
    pool.io_threads = t->source->remote ? REMOTE_DEPTH : IO_DEPTH;
    LEAT_TRY(leat_pool_open(&t->pool, &pool, err));
    LEAT_TRY(leat__pack_memory_open(&t->allowance, o, leat_pool_threads(t->pool), err));
    leat_flow_opts f;
    leat_flow_opts_init(&f);
    f.name = "learning tile tables";
    f.pool = t->pool;
    f.budget = t->allowance.budget;
    f.threads = o->threads;
    f.io_depth = t->source->remote ? REMOTE_DEPTH : IO_DEPTH;
    f.prefetch = LEAT__PACK_WINDOW(leat_pool_threads(t->pool));
    f.log = o->log;
    LEAT_TRY(leat_flow_open(&t->flow, &f, err));
    LEAT_TRY(add_stages(t, err));
    return leat_flow_start(t->flow, err);
}

static int learn_all(training *t, const leat_ingest_opts *o, leat_error *err)
{
    uint64_t total = t->source->total;
    t->step = total > IMAGES ? total / IMAGES : 1;
    LEAT_TRY(start_flow(t, o, err));
    while (leat__tile_trainer_images(t->trainer) < IMAGES) {
        leat_task *task = NULL;
        LEAT_TRY(leat_flow_next(t->flow, &task, -1, err));
        if (!task) break;
        const lesson *l = task->data;
        int rc = l->counts ? leat__tile_trainer_join(t->trainer, l->counts, err) : 0;
        leat_task_release(task);
        if (rc != 0) return rc;
    }
    return leat__pack_memory_fits(&t->allowance, atomic_load(&t->too_large), err);
}

int leat__train_tables(const leat_ingest_opts *opts, const leat__encode_plan *plan,
                       leat__tile_tables *const *from, uint32_t from_count, leat__buf *blob, leat_error *err)
{
    training t = {.pack_plan = plan, .plan = *plan, .from = from, .from_count = from_count};
    t.plan.images = LEAT_IMAGES_KEEP;
    t.plan.trust = true;
    int rc;
    bool spare = false;
    LEAT_GO(rc, out, leat__source_open(&t.source, opts, err));
    leat__records_pool_init(&t.spare, t.source->field_count, 2 * IO_DEPTH);
    spare = true;
    LEAT_GO(rc, out, leat__tile_trainer_open(&t.trainer, err));
    if (t.source->image_field >= 0) LEAT_GO(rc, out, learn_all(&t, opts, err));
    LEAT_GO(rc, out, leat__tile_trainer_finish(t.trainer, blob, err));
out:
    leat_flow_close(&t.flow); /* also drops prefetched images */
    leat__pack_memory_close(&t.allowance);
    leat_pool_close(&t.pool);
    if (spare) leat__records_pool_reset(&t.spare);
    leat__tile_trainer_close(&t.trainer);
    leat__source_close(&t.source);
    return rc;
}
