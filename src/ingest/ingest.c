/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing as a flow of the engine:
 *
 *   list (I/O, one at a time) -> read (I/O) -> encode (CPU) -> the caller's thread: place, write
 *
 * A run with an image too large for the flow's memory passes through it unprocessed; the caller's
 * thread reads and encodes its records one at a time when it places them.
 *
 * A task is a run of records (record.h). Runs leave the flow in the order they entered it, and
 * every record is a pure function of its source, so the pack is the same for any number of
 * threads. With each sample the packer stores how many records were consumed so far. A resumed
 * run skips that many records and compares a hash of their keys and of the sizes and times of
 * their files, to detect a changed source.
 */
#include <leat/flow.h>
#include <leat/ingest.h>
#include <leat/pack.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sized.h"
#include "base/str.h"
#include "ingest/pack_memory.h"
#include "ingest/append_to.h"
#include "ingest/fetch.h"
#include "ingest/image_encode.h"
#include "ingest/inspect.h"
#include "ingest/skipped_list.h"
#include "ingest/merge.h"
#include "ingest/outage.h"
#include "ingest/pack_origin.h"
#include "ingest/pack_tables.h"
#include "ingest/settings.h"
#include "ingest/source.h"
#include "ingest/source_chain.h"
#include "ingest/bucket_pack.h"
#include "ingest/where.h"
#include "io/url.h"
#include "pack/kind.h"
#include "pack/page.h"

#define IO_DEPTH 4
#define SHELF 64
#define MIX_RAW_DEFAULT 0.5

/* The numbers stored with a sample. The bits of the first one from FRAMES_SHIFT on count the stored
 * frames of the record after the consumed ones. */
enum { MARK_CONSUMED, MARK_SKIPPED, MARK_CHAIN, MARK_BYTES };
#define FRAMES_SHIFT 40

typedef struct ingest {
    const leat_ingest_opts *opts;
    leat_ingest_stats *stats;
    leat__source *source;
    const leat__inspector *inspector; /* NULL without inspection */
    uint32_t inspected;               /* the field it inspects */
    leat__encode_plan plan;
    leat__pack_tables tables;
    leat__records_pool spare;
    bool shelf_ready;
    leat__pack_memory allowance;
    leat_pool *pool;
    leat_flow *flow;
    leat_packer *packer;
    leat__skipped_list report;
    leat_pack_value *values;
    leat__where *where;         /* NULL without a condition */
    leat__base_classes classes; /* append: labels renumbered for the pack */
    uint64_t identity;          /* hash of settings and sources */
    const char *origin;         /* file that records what the pack was made from, or NULL */
    leat__chain chain;          /* hash of the consumed records */
    uint64_t frames_done;       /* resume: number of frames of the next record already in the pack */
    bool stop;                  /* the source has ended */
    leat__outage outage;
} ingest;

void leat_ingest_opts_init_sized(leat_ingest_opts *opts, uint32_t struct_size)
{
    if (leat__sized_init(opts, struct_size) && LEAT__SIZED_HAS(leat_ingest_opts, mix_raw, struct_size))
        opts->mix_raw = MIX_RAW_DEFAULT;
}

/* ---- stages ---- */

static void release_run(void *cookie, void *data)
{
    leat__records_pool_give(cookie, data);
}

static int stage_list(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    ingest *in = cookie;
    if (in->stop) return LEAT_FLOW_END;
    leat__records *run = leat__records_pool_take(&in->spare);
    if (!run) return leat__fail_nomem(err, sizeof *run, "a run of samples");
    task->data = run;
    task->release = release_run;
    task->release_cookie = &in->spare;
    LEAT_TRY(leat__source_fill(in->source, run, &in->stop, err));
    run->large = run->pending > in->allowance.large / 2;
    if (run->count == 0) {
        task->data = NULL;
        task->release = NULL;
        leat__records_pool_give(&in->spare, run);
        return LEAT_FLOW_END;
    }
    task->bytes = leat__records_held(run);
    return 0;
}

/* Failures other than out of memory concern only the record. */
static int settle(leat__records *run, leat__record *r, int rc, leat_error *why, leat_error *err)
{
    if (rc == 0) return 0;
    if (rc == LEAT_ENOMEM) {
        if (err) *err = *why;
        return rc;
    }
    leat__records_fail(r, why);
    return 0;
}

static uint64_t need_read(void *cookie, const leat_task *task)
{
    const leat__records *run = task->data;
    return run->large ? 0 : leat__records_growth(&run->in, run->pending);
}

static int load_record(ingest *in, leat__records *run, leat__record *r, leat_error *err)
{
    leat_error why = {0};
    if (!in->source->ops->load) return 0;
    return settle(run, r, in->source->ops->load(in->source, run, r, &why), &why, err);
}

/* Excludes a record whose values are known and do not match the condition. */
static void filter_record(const ingest *in, const leat__records *run, leat__record *r)
{
    if (in->where && !r->failed)
        r->excluded = !leat__where_match(in->where, leat__records_str(run, r->key), r->key_size, r->items);
}

/* Returns the bytes that encoding takes besides those that the run holds. */
static uint64_t encode_bytes(const leat__records *run)
{
    return run->decode + leat__records_growth(&run->out, run->result);
}

static int stage_read(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    ingest *in = cookie;
    leat__records *run = task->data;
    if (run->large) return 0;
    LEAT_TRY(leat__fetch_run(in->source, run, err));
    for (uint32_t i = 0; i < run->count; i++) {
        leat__record *r = &run->record[i];
        if (r->failed) continue;
        if (!r->loaded) LEAT_TRY(load_record(in, run, r, err));
        filter_record(in, run, r);
        if (!r->excluded) leat__pack_memory_measure(&in->plan, in->source, run, r);
        r->loaded = true;
    }
    run->pending = 0;
    if (run->decode + run->result > in->allowance.large) run->large = true;
    task->bytes = leat__records_held(run);
    return leat__pack_memory_fits(&in->allowance, encode_bytes(run), err);
}

static uint64_t need_encode(void *cookie, const leat_task *task)
{
    const leat__records *run = task->data;
    return run->large ? 0 : encode_bytes(run);
}

/* The objects that an encoding thread needs. */
typedef struct encoding {
    leat__encoder *encoder;
    void *looker; /* the inspector's object for this thread */
} encoding;

static void close_encoding(ingest *in, encoding *e)
{
    leat__encoder_close(&e->encoder);
    if (e->looker) in->inspector->close(in->inspector->cookie, e->looker);
    e->looker = NULL;
}

static void teardown_encode(void *cookie, void *ctx)
{
    if (ctx) close_encoding(cookie, ctx);
    leat__free(ctx);
}

static int open_encoding(ingest *in, encoding *e, leat_error *err)
{
    const leat__inspector *x = in->inspector;
    int rc = leat__encoder_open(&e->encoder, &in->plan, err);
    if (rc == 0 && x) rc = x->open(x->cookie, &e->looker, err);
    if (rc != 0) close_encoding(in, e);
    return rc;
}

static int setup_encode(void *cookie, const leat_worker *worker, void **ctx, leat_error *err)
{
    encoding *e = LEAT_NEW(INGEST, encoding);
    if (!e) return leat__fail_nomem(err, sizeof *e, "an encoder");
    int rc = open_encoding(cookie, e, err);
    if (rc == 0) *ctx = e;
    else teardown_encode(cookie, e);
    return rc;
}

static int encode_record(ingest *in, encoding *e, leat__records *run, leat__record *r, leat_error *err)
{
    const leat__tile_tables *from = leat__pack_tables_of(&in->tables, r->origin);
    const leat__inspector *x = in->inspector;
    const bool large = run->decode > LEAT__ENCODE_SCRATCH(&in->plan);
    if (!e->encoder) LEAT_TRY(open_encoding(in, e, err));
    if (x && x->coefs) LEAT_TRY(x->coefs(x->cookie, e->looker, NULL, err));
    for (uint32_t f = 0; f < run->fields && !r->failed && !r->excluded; f++) {
        leat_error why = {0};
        if (in->source->fields[f].type != LEAT_FIELD_IMAGE || r->items[f].absent) continue;
        leat__encoder_watch(e->encoder, f == in->inspected ? x : NULL, e->looker);
        int rc = leat__encoder_image(e->encoder, run, r, &r->items[f], from, &why);
        LEAT_TRY(settle(run, r, rc, &why, err));
    }
    if (large) /* free the encoder's memory first: the inspector may decode the image again */
        leat__encoder_close(&e->encoder);
    leat_error why = {0};
    int rc = x ? leat__inspect_record(x, e->looker, run, r, in->inspected, in->plan.tables, &why) : 0;
    if (large) /* its memory must not count for the next record, which is not charged for it */
        close_encoding(in, e);
    return settle(run, r, rc, &why, err);
}

static int stage_encode(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    ingest *in = cookie;
    leat__records *run = task->data;
    encoding *e = ctx;
    if (run->large) return 0;
    for (uint32_t i = 0; i < run->count; i++) LEAT_TRY(encode_record(in, e, run, &run->record[i], err));
    task->bytes = leat__records_held(run);
    return 0;
}

/* ---- settings ---- */

static int make_plan(ingest *in, leat_error *err)
{
    const leat_ingest_opts *o = in->opts;
    leat__encode_plan *p = &in->plan;
    if (o->images > LEAT_IMAGES_MIX)
        return leat__fail(err, LEAT_EINVAL, "%u is not a way to store images", o->images);
    p->images = o->images ? (leat_image_mode)o->images : LEAT_IMAGES_TILED;
    p->mix_raw = o->mix_raw;
    p->max_side = o->max_side;
    p->quality = o->quality;
    p->trust = o->trust;
    p->frames = o->frames;
    p->inspect = in->inspector ? in->inspector->bytes : NULL;
    p->density = o->fast_tiles ? LEAT__TILE_FAST : LEAT__TILE_SMALL;
    p->limits = (leat__decode_limits){.max_pixels = o->max_pixels,
                                      .max_out_bytes = o->max_out_bytes,
                                      .max_scans = o->max_scans,
                                      .max_work = o->max_work};
    if (o->quality > 100 || !(o->mix_raw >= 0 && o->mix_raw <= 1))
        return leat__fail(err, LEAT_EINVAL, "quality or share of raw images out of range");
    if (in->source->image_field < 0) p->images = LEAT_IMAGES_KEEP;
    return 0;
}

/* ---- packer ---- */

/* Returns the page size of the first merged pack, which the result gets too; 0 = the default. */
static uint64_t merged_page_bytes(const ingest *in)
{
    leat_pack_info info = {0};
    if (in->opts->merge) (void)leat_pack_info_read(leat__source_pack_of(in->source, 0), &info, sizeof info);
    return info.page_bytes;
}

/* Adds the class names of int fields other than the label. */
static int put_other_classes(ingest *in, leat_error *err)
{
    leat__source *s = in->source;
    for (uint32_t f = 0; s->ops->class_names && f < s->field_count; f++) {
        const char *const *names = NULL;
        uint64_t count;
        if (s->fields[f].type != LEAT_FIELD_INT || (int)f == s->label_field) continue;
        LEAT_TRY(s->ops->class_names(s, f, &names, &count, err));
        if (count > 0) LEAT_TRY(leat_packer_classes(in->packer, f, names, count, err));
    }
    return 0;
}

/* Writes the provenance of the pack and computes the identity that a resumed run compares. */
static int describe(ingest *in, leat__buf *provenance, leat_error *err)
{
    const leat_ingest_opts *o = in->opts;
    LEAT_TRY(o->merge ? leat__merge_provenance(in->source, o->where, provenance, err)
                      : leat__ingest_provenance(o, &in->plan, in->source, provenance, err));
    in->identity = leat__ingest_identity(o, provenance);
    return 0;
}

static int open_packer(ingest *in, leat_error *err)
{
    const leat_ingest_opts *o = in->opts;
    leat__buf provenance;
    int rc;
    leat__buf_init(&provenance, LEAT__MEM_INGEST, 1u << 20);
    LEAT_GO(rc, out, describe(in, &provenance, err));
    leat_packer_opts p = LEAT_PACKER_OPTS_INIT;
    p.fields = in->source->fields;
    p.field_count = in->source->field_count;
    p.page_bytes = o->page_bytes ? o->page_bytes : merged_page_bytes(in);
    p.shard_bytes = o->shard_bytes;
    p.provenance = leat__buf_str(&provenance);
    p.identity = in->identity;
    p.resume = o->resume;
    p.replace = o->replace;
    p.no_sync = o->no_sync;
    p.append = o->append != LEAT_APPEND_NONE;
    LEAT_GO(rc, out, leat_packer_open(&in->packer, o->output, &p, err));
    if (leat__packer_damage(in->packer)[0])
        leat__log(&o->log, LEAT_LOG_WARN, "%s", leat__packer_damage(in->packer));
    if (p.append) {
        LEAT_GO(rc, out, leat__append_classes(&in->classes, in->packer, in->source, err));
        LEAT_GO(rc, out, leat__append_images(leat__packer_base(in->packer), o, &in->plan, err));
    } else if (in->source->label_field >= 0 && in->source->class_count > 0)
        LEAT_GO(rc, out,
                leat_packer_classes(in->packer, (uint32_t)in->source->label_field,
                                    (const char *const *)in->source->classes, in->source->class_count, err));
    if (!p.append) LEAT_GO(rc, out, put_other_classes(in, err));
    if (o->merge) LEAT_GO(rc, out, leat__merge_blobs(in->packer, in->source, err));
out:
    leat__buf_reset(&provenance);
    return rc;
}

static int go_on(ingest *in, leat_error *err)
{
    uint64_t marks[LEAT_PACKER_MARKS] = {0};
    leat_ingest_stats *st = in->stats;
    st->resumed = leat_packer_resumed(in->packer, marks);
    st->samples = st->resumed;
    st->skipped = marks[MARK_SKIPPED];
    st->bytes_in = marks[MARK_BYTES];
    LEAT_TRY(leat__skipped_list_open(&in->report, in->opts->report, st->skipped, err));
    in->chain = leat__chain_begin(in->opts);
    if (marks[MARK_CONSUMED] == 0) return 0;
    const uint64_t consumed = marks[MARK_CONSUMED] & ((UINT64_C(1) << FRAMES_SHIFT) - 1);
    if (in->opts->where && !in->opts->merge && !in->opts->frames) /* a record is one sample */
        st->filtered = consumed - LEAT_MIN(consumed, st->samples + st->skipped);
    in->frames_done = marks[MARK_CONSUMED] >> FRAMES_SHIFT;
    leat__buf newest;
    leat__buf_init(&newest, LEAT__MEM_INGEST, 1u << 20);
    int rc = leat__chain_skip(&in->chain, in->source, &in->spare, consumed, &newest, err);
    if (rc == 0 && (in->chain.records != consumed || in->chain.value != marks[MARK_CHAIN]))
        rc = leat__fail(err, LEAT_ESTATE,
                        "%s: the source has changed since the interrupted run%s%s; start "
                        "again with `force`, without `resume`",
                        in->opts->output, newest.len > 0 ? "; its newest file is " : "",
                        newest.len > 0 ? leat__buf_str(&newest) : "");
    leat__buf_reset(&newest);
    return rc;
}

/* ---- flow ---- */

static int start_flow(ingest *in, leat_error *err)
{
    const leat_ingest_opts *o = in->opts;
    leat_pool_opts pool;
    leat_pool_opts_init(&pool);
    pool.threads = o->threads;
    pool.io_threads = 4;
    LEAT_TRY(leat_pool_open(&in->pool, &pool, err));
    LEAT_TRY(leat__pack_memory_open(&in->allowance, o, leat_pool_threads(in->pool), err));
    leat_flow_opts f;
    leat_flow_opts_init(&f);
    f.name = "pack";
    f.pool = in->pool;
    f.budget = in->allowance.budget;
    f.threads = o->threads;
    f.io_depth = IO_DEPTH;
    f.prefetch = LEAT__PACK_WINDOW(leat_pool_threads(in->pool));
    f.log = o->log;
    LEAT_TRY(leat_flow_open(&in->flow, &f, err));

    leat_stage list, read, encode;
    leat_stage_init(&list);
    list.kind = LEAT_STAGE_SOURCE;
    list.name = "list";
    list.lane = LEAT_LANE_IO;
    list.bytes_out = leat__source_list_need(in->source);
    list.cookie = in;
    list.process = stage_list;
    leat_stage_init(&read);
    read.kind = LEAT_STAGE_MAP;
    read.name = "read";
    read.lane = LEAT_LANE_IO;
    read.bytes_out = LEAT__ENCODE_IN;
    read.cookie = in;
    read.process = stage_read;
    read.need = need_read;
    leat_stage_init(&encode);
    encode.kind = LEAT_STAGE_MAP;
    encode.name = "encode";
    encode.scratch = leat__pack_memory_scratch(&in->allowance, LEAT__ENCODE_SCRATCH(&in->plan),
                                               LEAT__ENCODE_IN, LEAT__ENCODE_OUT);
    encode.bytes_out = LEAT__ENCODE_OUT;
    encode.cookie = in;
    encode.setup = setup_encode;
    encode.teardown = teardown_encode;
    encode.process = stage_encode;
    encode.need = need_encode;
    LEAT_TRY(leat_flow_add(in->flow, &list, err));
    LEAT_TRY(leat_flow_add(in->flow, &read, err));
    LEAT_TRY(leat_flow_add(in->flow, &encode, err));
    return leat_flow_start(in->flow, err);
}

/* ---- placing, on the caller's thread ---- */

/* Counts a record that cannot be packed. If remote storage fails, the run ends: the record is not bad. No
 * sample follows it in the pack, so a resumed run reads it again. */
static int leave_out(ingest *in, leat__records *run, const leat__record *r, leat_error *err)
{
    const char *key = leat__records_str(run, r->key), *outage = NULL;
    char shown[512];
    LEAT_TRY(leat__skipped_list_add(&in->report, key, r->key_size, r->error, err));
    if (in->opts->skip_errors && r->failed) {
        const char *path = leat__source_remote_path(in->source, run, r);
        leat__source_record again = {in->source, run, r};
        if (leat__source_pack_of(in->source, r->origin)) /* the index of the pack was read */
            LEAT_TRY(leat__outage_delivered(&in->outage, path, err));
        outage = leat__outage_failed(&in->outage, path, r->error, leat__source_again, &again);
    }
    if (in->opts->skip_errors && !outage) {
        in->stats->skipped++;
        return 0;
    }
    if (!r->error) return leat__fail_nomem(err, 0, "a sample");
    if (err) *err = *r->error;
    int rc = r->error->code;
    (void)leat__str_shown(key, shown, sizeof shown);
    if (!strstr(r->error->message, shown)) leat__error_context(err, "%s", shown);
    leat__error_at(err, key, (int64_t)(in->chain.records - 1), r->error->offset);
    if (outage) leat__error_context(err, "%s", outage);
    return rc;
}

static void fill_values(ingest *in, const leat__records *run, const leat__record *r)
{
    for (uint32_t f = 0; f < run->fields; f++) {
        const leat__item *item = &r->items[f];
        leat_pack_value *v = &in->values[f];
        memset(v, 0, sizeof *v);
        v->absent = item->absent;
        v->i = item->i;
        v->f = item->f;
        if (item->absent) continue;
        v->data = leat__records_data(run, item);
        v->size = item->size;
        v->image = item->image;
        memcpy(v->shape, item->shape, sizeof v->shape);
        v->entries_size = item->entries_size;
        if (item->entries_size > 0) v->entries = run->out.data + item->entries_at;
    }
}

static void count_images(ingest *in, const leat__records *run, const leat__record *r)
{
    for (uint32_t f = 0; f < run->fields; f++) {
        const leat__item *item = &r->items[f];
        if (item->absent || item->image.codec >= 16) continue;
        if (in->source->fields[f].type != LEAT_FIELD_IMAGE) continue;
        if (item->image.codec < 8) in->stats->images[item->image.codec]++;
        else in->stats->images_more[item->image.codec - 8]++;
        in->stats->animated += item->animated;
        in->stats->changed += !leat_pack_image_exact(&item->image);
        in->stats->recoded += in->plan.stored && item->coded;
    }
}

static void count_unlabelled(ingest *in, const leat_pack_sample *sample, const leat__record *r)
{
    if (!in->source->class_folders || r->items[in->source->label_field].i >= 0) return;
    if (in->stats->unlabelled++ == 0)
        snprintf(in->stats->unlabelled_first, sizeof in->stats->unlabelled_first, "%s",
                 (const char *)sample->key);
}

/* Appends one sample of a record, with the number of records consumed so far. */
static int place_sample(ingest *in, leat__records *run, const leat__record *r, uint64_t consumed,
                        uint64_t chain, leat_error *err)
{
    fill_values(in, run, r);
    leat_pack_sample sample = {
        .key = leat__records_str(run, r->key), .key_size = r->key_size, .values = in->values};
    leat_error why;
    leat__error_reset(&why);
    if (leat__packer_check_kinds(in->packer, &sample, &why) != 0) {
        leat__record other = *r;
        other.error = &why;
        return leave_out(in, run, &other, err);
    }
    count_images(in, run, r);
    in->stats->bytes_in += r->bytes_in;
    if (in->classes.relabel) leat__append_relabel(&in->classes, in->source, in->values);
    sample.marks[MARK_CONSUMED] = consumed;
    sample.marks[MARK_SKIPPED] = in->stats->skipped;
    sample.marks[MARK_CHAIN] = chain;
    sample.marks[MARK_BYTES] = in->stats->bytes_in;
    bool wanted = true;
    if (in->opts->append)
        LEAT_TRY(
            leat__append_admit(in->packer, in->opts->append, &sample, &wanted, &in->stats->existing, err));
    if (!wanted) return 0;
    LEAT_TRY(leat_packer_append(in->packer, &sample, err));
    in->stats->samples++;
    count_unlabelled(in, &sample, r);
    if (!in->inspector) return 0;
    return in->inspector->take(in->inspector->cookie, sample.key, sample.key_size,
                               run->found.data + r->items[in->inspected].found, err);
}

/* Places the frames of an animation, each under the record's key and its number. The record counts as
 * consumed with the last frame; `chain` is the hash before it. */
static int place_frames(ingest *in, leat__records *run, const leat__record *r, uint64_t chain,
                        leat_error *err)
{
    leat__record one = *r;
    char number[LEAT__FRAME_SUFFIX];
    const uint64_t done = in->frames_done;
    in->frames_done = 0;
    for (uint32_t i = 0; i < r->frame_count; i++) {
        const bool last = i + 1 == r->frame_count;
        if (i < done) continue;
        memcpy(&r->items[r->frame_field], run->frames.data + r->frames_at + i * sizeof(leat__item),
               sizeof(leat__item));
        one.key = run->text.len;
        leat__frame_suffix(number, i);
        one.key_size = r->key_size + strlen(number);
        leat__buf_append(&run->text, leat__records_str(run, r->key), r->key_size);
        if (leat__records_text(run, number, strlen(number)) == LEAT__RECORDS_NOWHERE)
            return leat__fail_nomem(err, one.key_size, "a key");
        one.bytes_in = last ? r->bytes_in : 0;
        LEAT_TRY(place_sample(in, run, &one,
                              last ? in->chain.records
                                   : (in->chain.records - 1) | (uint64_t)(i + 1) << FRAMES_SHIFT,
                              last ? in->chain.value : chain, err));
        in->stats->frames++;
    }
    return 0;
}

static int place(ingest *in, leat__records *run, const leat__record *r, leat_error *err)
{
    const uint64_t chain = in->chain.value;
    leat__chain_add(&in->chain, run, r);
    if (r->failed) return leave_out(in, run, r, err);
    if (in->opts->skip_errors)
        LEAT_TRY(leat__outage_delivered(&in->outage, leat__source_remote_path(in->source, run, r), err));
    if (r->excluded) {
        in->stats->filtered++;
        return 0;
    }
    if (r->frame_count > 0) return place_frames(in, run, r, chain, err);
    return place_sample(in, run, r, in->chain.records, in->chain.value, err);
}

static int tell(const ingest *in, leat_error *err)
{
    const leat_ingest_opts *o = in->opts;
    if (!o->progress) return 0;
    uint64_t total = LEAT_MAX(in->source->total, in->source->total ? in->chain.records : 0);
    if (o->progress(o->cookie, in->chain.records, total, in->stats->bytes_in, in->stats->skipped) == 0)
        return 0;
    return leat__fail(err, LEAT_ECANCELED, "packing was stopped");
}

/* Processes one record of a run with a large image: reads it, encodes it with a separate encoder,
 * places it, and frees all memory before the next. `charged`: the bytes of the run in the budget. */
static int place_large(ingest *in, leat__records *run, leat__record *r, uint64_t charged, leat_error *err)
{
    void *e = NULL;
    leat_error why = {0};
    int rc = 0;
    if (!r->failed && !r->loaded) LEAT_TRY(load_record(in, run, r, err));
    filter_record(in, run, r);
    run->decode = run->result = 0;
    if (!r->excluded) leat__pack_memory_measure(&in->plan, in->source, run, r);
    const uint64_t held = leat__records_held(run);
    const uint64_t more = held - LEAT_MIN(held, charged) + run->decode + run->result;
    LEAT_TRY(settle(run, r, leat__pack_memory_ask(&in->allowance, more, &why), &why, err));
    if (!r->failed) rc = setup_encode(in, NULL, &e, err);
    if (rc == 0 && e) rc = encode_record(in, e, run, r, err);
    teardown_encode(in, e);
    if (rc == 0) rc = place(in, run, r, err);
    leat__buf_reset(&run->out);
    return rc;
}

static int place_all(ingest *in, leat_error *err)
{
    for (;;) {
        leat_task *task = NULL;
        LEAT_TRY(leat_flow_next(in->flow, &task, -1, err));
        if (!task) return 0;
        leat__records *run = task->data;
        int rc = 0;
        for (uint32_t i = 0; i < run->count && rc == 0; i++)
            rc = run->large ? place_large(in, run, &run->record[i], task->bytes, err)
                            : place(in, run, &run->record[i], err);
        leat_task_release(task);
        if (rc == 0) rc = tell(in, err);
        if (rc != 0) return rc;
    }
}

/* Fails when the pack would be empty. */
static int refuse_empty(const ingest *in, leat_error *err)
{
    const leat_ingest_stats *st = in->stats;
    if (st->samples > 0 || (in->opts->append && st->existing > 0)) return 0;
    if (st->filtered > 0)
        return leat__fail(err, LEAT_EDATA, "%s: nothing to pack: none of %llu sample%s meets the condition",
                          in->opts->sources[0], (unsigned long long)(st->filtered + st->skipped),
                          leat__plural(st->filtered + st->skipped));
    if (st->skipped == 1)
        return leat__fail(err, LEAT_EDATA, "%s: nothing to pack: the only sample was left out",
                          in->opts->sources[0]);
    if (st->skipped > 0)
        return leat__fail(err, LEAT_EDATA, "%s: nothing to pack: all %llu samples were left out",
                          in->opts->sources[0], (unsigned long long)st->skipped);
    if (st->ignored > 0 && strcmp(st->source_kind, "folder") == 0)
        return leat__fail(err, LEAT_EDATA,
                          "%s: nothing to pack: none of %llu file%s (%s%s) has the name of an image",
                          in->opts->sources[0], (unsigned long long)st->ignored, leat__plural(st->ignored),
                          st->ignored_first, st->ignored == 1 ? "" : " …");
    return leat__fail(err, LEAT_EDATA, "%s: nothing to pack: no samples were found", in->opts->sources[0]);
}

static int finish(ingest *in, leat_error *err)
{
    leat_packer_stats ps = {0};
    in->stats->ignored = in->source->ignored;
    memcpy(in->stats->ignored_first, in->source->ignored_first, sizeof in->stats->ignored_first);
    in->stats->missing = in->source->missing;
    in->stats->in_folders = in->source->in_folders;
    in->stats->blank_labels = in->source->blank_labels;
    in->stats->blank_label_line = in->source->blank_label_line;
    in->stats->flat = in->source->flat;
    int rc = refuse_empty(in, err);
    if (rc != 0) { /* keep the list: it contains the reason */
        (void)!leat__skipped_list_publish(&in->report, NULL);
        return rc;
    }
    const leat__origin origin = {in->identity, in->chain.records, in->chain.value};
    if (in->origin) LEAT_TRY(leat__origin_write(in->origin, &origin, err));
    LEAT_TRY(leat_packer_finish(in->packer, &ps, err));
    in->stats->bytes_out = ps.file_bytes;
    in->stats->pages = ps.pages;
    in->stats->shards = ps.shards;
    in->stats->duplicate_keys = ps.duplicate_keys;
    return leat__skipped_list_publish(&in->report, err);
}

/* Closes everything. `discard`: there is nothing to resume. */
static void tear_down(ingest *in, bool discard)
{
    leat_flow_close(&in->flow);
    in->stats->budget_peak_bytes = leat__pack_memory_peak(&in->allowance);
    leat__pack_memory_close(&in->allowance);
    leat_pool_close(&in->pool);
    leat_packer_close(&in->packer);
    leat__skipped_list_close(&in->report, discard);
    if (in->shelf_ready) leat__records_pool_reset(&in->spare);
    leat__pack_tables_close(&in->tables);
    leat__append_classes_reset(&in->classes);
    leat__where_close(&in->where);
    leat__outage_reset(&in->outage);
    leat__free(in->values);
    leat__source_close(&in->source);
}

/* Returns the class names of a field for a condition. */
static int class_names(const void *cookie, uint32_t field, const char *const **names, uint64_t *count,
                       leat_error *err)
{
    leat__source *s = ((const ingest *)cookie)->source;
    *names = (const char *const *)s->classes;
    *count = (int)field == s->label_field ? s->class_count : 0;
    if ((int)field == s->label_field || !s->ops->class_names) return 0;
    return s->ops->class_names(s, field, names, count, err);
}

static int open_where(ingest *in, leat_error *err)
{
    const leat__source *s = in->source;
    if (!in->opts->where) return 0;
    leat__where_names names = {
        .fields = s->fields, .field_count = s->field_count, .classes = class_names, .cookie = in};
    return leat__where_open(&in->where, in->opts->where, &names, err);
}

/* For merging: checks that all sources are packs, and decides about equal keys before anything is written. */
static int open_merge(ingest *in, leat_error *err)
{
    const leat_ingest_opts *o = in->opts;
    if (!o->merge) return 0;
    if (!leat__source_pack_of(in->source, 0))
        return leat__fail(err, LEAT_EINVAL, "%s: only packs can be merged; pack it first", o->sources[0]);
    in->plan.stored = true;
    leat__merge *merge = leat__source_pack_merge(in->source);
    LEAT_TRY(leat__merge_open(merge, in->source, o->merge, in->where, err));
    in->stats->existing = merge->count;
    return 0;
}

/* Finds the first image field, which is the one that leat check uses. */
static int find_inspected(ingest *in, leat_error *err)
{
    const leat__source *s = in->source;
    while (in->inspected < s->field_count && s->fields[in->inspected].type != LEAT_FIELD_IMAGE)
        in->inspected++;
    if (in->inspected < s->field_count) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s: has no images", in->opts->sources[0]);
}

static int open_source(ingest *in, leat_error *err)
{
    LEAT_TRY(leat__source_open(&in->source, in->opts, err));
    /* "*=-1", a default for all numbers, is accepted for any source */
    const char *defaults = in->opts->defaults;
    if (defaults && strcmp(defaults, "*=-1") == 0) defaults = NULL;
    if (in->opts->members && !in->source->takes_members)
        return leat__fail(err, LEAT_EINVAL,
                          "%s: not a tar shard or a table read by Python, so `members` has no effect",
                          in->opts->sources[0]);
    if ((defaults || in->opts->infer) && strcmp(in->source->ops->kind, "tar") != 0)
        return leat__fail(err, LEAT_EINVAL, "%s: not a tar shard, so `%s` has no effect",
                          in->opts->sources[0], defaults ? "default" : "infer");
    if (in->opts->strict && strcmp(in->source->ops->kind, "folder") != 0)
        return leat__fail(err, LEAT_EINVAL, "%s: not a folder of images, so `strict` has no effect",
                          in->opts->sources[0]);
    if (in->opts->append && in->source->total == 0 && strcmp(in->source->ops->kind, "folder") == 0)
        return leat__fail(
            err, LEAT_EDATA, "%s: nothing to append: no samples were found",
            in->opts->sources[0]); /* checked before the fields: those of an empty folder would differ */
    strncpy(in->stats->source_kind, in->source->ops->kind, sizeof in->stats->source_kind - 1);
    in->stats->fields = in->source->field_count;
    leat__records_pool_init(&in->spare, in->source->field_count, SHELF);
    in->shelf_ready = true;
    in->values = LEAT_NEW_ARRAY(INGEST, leat_pack_value, in->source->field_count);
    if (!in->values) return leat__fail_nomem(err, 0, "values");
    LEAT_TRY(make_plan(in, err));
    if (in->inspector) LEAT_TRY(find_inspected(in, err));
    LEAT_TRY(open_where(in, err));
    return open_merge(in, err);
}

static int run(ingest *in, leat_error *err)
{
    LEAT_TRY(open_source(in, err));
    LEAT_TRY(leat__pack_tables_open(&in->tables, in->source, err));
    LEAT_TRY(open_packer(in, err));
    LEAT_TRY(leat__pack_tables_prepare(&in->tables, in->opts, in->source, in->packer, &in->plan, err));
    LEAT_TRY(go_on(in, err));
    LEAT_TRY(start_flow(in, err));
    LEAT_TRY(place_all(in, err));
    return finish(in, err);
}

static void give_stats(leat_ingest_stats *to, const leat_ingest_stats *own)
{
    uint32_t size = to->struct_size ? to->struct_size : offsetof(leat_ingest_stats, changed);
    memcpy(to, own, LEAT_MIN(size, sizeof *own));
    to->struct_size = size;
}

static int pack_here(const leat_ingest_opts *o, const leat__inspector *inspector, const char *origin,
                     leat_ingest_stats *own, leat_error *err)
{
    ingest in = {.opts = o, .stats = own, .inspector = inspector, .origin = origin};
    int rc = run(&in, err);
    const leat__pack_flow flow = {.in = LEAT__ENCODE_IN,
                                  .out = LEAT__ENCODE_OUT,
                                  .scratch = LEAT__ENCODE_SCRATCH(&in.plan),
                                  .plan = &in.plan,
                                  .encodes = true};
    rc = leat__pack_memory_explain(rc, o, &flow, err);
    bool empty = rc != 0 && in.packer &&
                 (o->append || (own->samples == 0 && leat_packer_resumed(in.packer, NULL) == 0));
    tear_down(&in, empty);
    if (empty) (void)!leat_packer_discard(o->output, NULL); /* nothing to resume */
    return rc;
}

typedef struct sending {
    const leat_ingest_opts *opts;
    const leat_ingest_stats *stats;
} sending;

/* Progress of the upload; the sample counts stay the same. */
static int on_sent(void *cookie, uint64_t done, uint64_t total)
{
    const sending *s = cookie;
    (void)done, (void)total;
    if (!s->opts->progress) return 0;
    return s->opts->progress(s->opts->cookie, s->stats->samples, s->stats->samples, s->stats->bytes_in,
                             s->stats->skipped);
}

/* Checks that a finished pack, which waits for its upload, was made from this source with these settings.
 * `o` has the local output; `remote` is its name in the bucket. */
static int check_origin(const leat_ingest_opts *o, const char *remote, const leat__origin *was,
                        leat_error *err)
{
    leat_ingest_stats unused = {0};
    ingest in = {.opts = o, .stats = &unused};
    leat__buf provenance, newest;
    int rc;
    leat__buf_init(&provenance, LEAT__MEM_INGEST, 1u << 20);
    leat__buf_init(&newest, LEAT__MEM_INGEST, 1u << 20);
    LEAT_GO(rc, out, open_source(&in, err));
    LEAT_GO(rc, out, describe(&in, &provenance, err));
    in.chain = leat__chain_begin(o);
    if (in.identity == was->identity)
        LEAT_GO(rc, out, leat__chain_skip(&in.chain, in.source, &in.spare, was->records + 1, &newest, err));
    if (in.identity != was->identity)
        rc = leat__fail(err, LEAT_ESTATE,
                        "%s: the unfinished upload has other settings or another source; start "
                        "again without `resume`",
                        remote);
    else if (in.chain.records != was->records || in.chain.value != was->chain)
        rc = leat__fail(err, LEAT_ESTATE,
                        "%s: the source has changed since the interrupted run; start again without `resume`",
                        remote);
out:
    leat__buf_reset(&newest);
    leat__buf_reset(&provenance);
    tear_down(&in, false);
    return rc;
}

/* Packs into a local folder, then uploads the files. A pack without a recorded origin is made again. */
static int pack_into_bucket(const leat_ingest_opts *o, const leat__inspector *inspector,
                            leat_ingest_stats *own, leat_error *err)
{
    leat__bucket_pack stage;
    leat_ingest_opts here = *o;
    sending s = {o, own};
    LEAT_TRY(leat__url_named(o->output, err));
    LEAT_TRY(leat__bucket_pack_open(&stage, o->output, o->replace != 0, o->resume != 0, err));
    stage.log = &o->log;
    leat__origin was;
    const bool ready = o->resume && leat__bucket_pack_ready(&stage);
    const bool known = ready && leat__origin_read(stage.origin, &was);
    here.output = stage.path;
    here.resume = o->resume && (known || !ready);
    here.replace = !here.resume; /* left-over local files belong only to this bucket path */
    if (!here.resume) leat__bucket_pack_forget(&stage);
    int rc = known ? check_origin(&here, o->output, &was, err)
                   : pack_here(&here, inspector, stage.origin, own, err);
    if (rc == 0 && known) rc = leat__bucket_pack_count(&stage, own, err);
    if (rc == 0) rc = leat__bucket_pack_publish(&stage, on_sent, &s, err);
    leat__bucket_pack_close(&stage);
    return rc;
}

int leat_ingest(const leat_ingest_opts *opts, leat_ingest_stats *stats, leat_error *err)
{
    return leat__ingest_inspected(opts, NULL, stats, err);
}

int leat__ingest_inspected(const leat_ingest_opts *opts, const leat__inspector *inspector,
                           leat_ingest_stats *stats, leat_error *err)
{
    leat_ingest_opts o;
    leat_ingest_stats own = {0};
    if (!opts || opts->struct_size < sizeof o.struct_size)
        return leat__fail(err, LEAT_EINVAL, "options were not initialised");
    memset(&o, 0, sizeof o);
    memcpy(&o, opts, LEAT_MIN(opts->struct_size, sizeof o));
    if (!o.output || !o.output[0]) return leat__fail(err, LEAT_EINVAL, "no output was named");
    own.struct_size = sizeof own;
    if (o.append > LEAT_APPEND_UPDATE || (o.append && (o.replace || o.resume)))
        return leat__fail(err, LEAT_EINVAL, "append: not a valid mode, or combined with replace or resume");
    if (o.append && leat__path_remote(o.output))
        return leat__fail(err, LEAT_ENOTSUP, "%s: only packs on this machine can be appended to", o.output);
    if (o.frames > 1) return leat__fail(err, LEAT_EINVAL, "frames: %u is not 0 or 1", o.frames);
    if (o.max_side > LEAT_MAX_SIDE)
        return leat__fail(err, LEAT_EINVAL, "`max_side`: %u is above %d", o.max_side, LEAT_MAX_SIDE);
    if (o.merge > LEAT_MERGE_RENAME || (o.merge && (o.append || o.images || o.max_side || o.quality ||
                                                    o.shuffle || o.keys || o.select || o.frames)))
        return leat__fail(
            err, LEAT_EINVAL,
            "merge: not a valid rule for keys, or combined with `images`, `max_side`, `quality`, "
            "`shuffle`, `keys`, `select`, `frames` or append");
    if (o.keys && o.select) return leat__fail(err, LEAT_EINVAL, "give either `keys` or `select`, not both");
    LEAT_TRY(leat__ingest_spare(&o, err));
    uint64_t begin = leat__clock_ns();
    int rc = leat__path_remote(o.output) ? pack_into_bucket(&o, inspector, &own, err)
                                         : pack_here(&o, inspector, NULL, &own, err);
    own.seconds = (double)(leat__clock_ns() - begin) / (double)LEAT_NS_PER_S;
    if (stats) give_stats(stats, &own);
    return rc;
}
