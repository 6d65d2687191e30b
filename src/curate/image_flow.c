/* SPDX-License-Identifier: Apache-2.0
 *
 * See image_flow.h. Images too large for the budget of the flow are handled alone, by the
 * caller's thread, as in packing.
 */
#include "curate/image_flow.h"

#include <leat/flow.h>

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "ingest/pack_memory.h"
#include "ingest/fetch.h"
#include "ingest/image_encode.h"

#define IO_DEPTH 4
#define SHELF 64
#define PORTION_BYTES (2u << 20) /* upper bound for a task, before and after its images are processed */
#define SCRATCH_BYTES (2u << 20)

typedef struct flow_run {
    leat__image_pass *pass;
    leat__source *source;
    uint32_t field; /* field of the images */
    leat__decode_limits limits;
    leat__encode_plan plan; /* only to estimate the memory of an image */
    leat__tile_tables **tables;
    uint32_t table_count;
    leat__records_pool spare;
    leat__pack_memory allowance;
    leat_pool *pool;
    leat_flow *flow;
    leat__chain chain;
    bool stop;
} flow_run;

/* A task: records and the facts about them. */
typedef struct portion {
    leat__records *run;
    leat__records_pool *spare;
    leat__image_facts facts[LEAT__RECORDS_MOST];
} portion;

static void release_portion(void *cookie, void *data)
{
    portion *p = data;
    (void)cookie;
    leat__records_pool_give(p->spare, p->run);
    leat__free(p);
}

static uint64_t held(const portion *p)
{
    return sizeof *p + leat__records_held(p->run);
}

static int stage_list(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    flow_run *f = cookie;
    if (f->stop) return LEAT_FLOW_END;
    portion *p = LEAT_NEW(CURATE, portion);
    if (!p) return leat__fail_nomem(err, sizeof *p, "samples");
    p->spare = &f->spare;
    p->run = leat__records_pool_take(&f->spare);
    if (!p->run) {
        leat__free(p);
        return leat__fail_nomem(err, sizeof *p->run, "samples");
    }
    task->data = p;
    task->release = release_portion;
    leat__records *run = p->run;
    LEAT_TRY(leat__source_fill(f->source, run, &f->stop, err));
    run->large = run->pending > f->allowance.large / 2;
    if (run->count == 0) {
        task->data = NULL;
        task->release = NULL;
        release_portion(NULL, p);
        return LEAT_FLOW_END;
    }
    task->bytes = held(p);
    return 0;
}

/* Failures other than out of memory and a source that changed concern only the record. */
static int settle(leat__record *r, int rc, const leat_error *why, leat_error *err)
{
    const bool ends = rc == LEAT_ENOMEM || rc == LEAT_ECHANGED;
    if (ends && err) *err = *why;
    if (rc == 0 || ends) return rc;
    leat__records_fail(r, why);
    return 0;
}

static int load_record(flow_run *f, leat__records *run, leat__record *r, leat_error *err)
{
    leat_error why = {0};
    if (!f->source->ops->load || r->failed || r->loaded) return 0;
    LEAT_TRY(settle(r, f->source->ops->load(f->source, run, r, &why), &why, err));
    r->loaded = true;
    return 0;
}

static uint64_t need_read(void *cookie, const leat_task *task)
{
    const leat__records *run = ((const portion *)task->data)->run;
    return run->large ? 0 : leat__records_growth(&run->in, run->pending);
}

static int stage_read(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    flow_run *f = cookie;
    portion *p = task->data;
    leat__records *run = p->run;
    if (run->large) return 0;
    LEAT_TRY(leat__fetch_run(f->source, run, err));
    for (uint32_t i = 0; i < run->count; i++) {
        LEAT_TRY(load_record(f, run, &run->record[i], err));
        leat__pack_memory_measure(&f->plan, f->source, run, &run->record[i]);
    }
    run->pending = 0;
    if (run->decode > f->allowance.large) run->large = true;
    task->bytes = held(p);
    return leat__pack_memory_fits(&f->allowance, run->decode, err);
}

static uint64_t need_look(void *cookie, const leat_task *task)
{
    const leat__records *run = ((const portion *)task->data)->run;
    return run->large ? 0 : run->decode;
}

static int setup_look(void *cookie, const leat_worker *worker, void **ctx, leat_error *err)
{
    flow_run *f = cookie;
    leat__image_looker **l = LEAT_NEW(CURATE, leat__image_looker *);
    if (!l) return leat__fail_nomem(err, sizeof *l, "a check");
    int rc = leat__image_looker_open(l, &f->limits, err);
    if (rc == 0) *ctx = l;
    else leat__free(l);
    return rc;
}

static void teardown_look(void *cookie, void *ctx)
{
    leat__image_looker **l = ctx;
    if (l) leat__image_looker_close(l);
    leat__free(l);
}

static int look_at(flow_run *f, leat__image_looker *l, leat__records *run, leat__record *r,
                   leat__image_facts *facts, leat_error *err)
{
    const leat__item *item = &r->items[f->field];
    memset(facts, 0, sizeof *facts);
    if (r->failed) {
        leat__image_facts_fail(facts, LEAT__VERDICT_UNREADABLE,
                               r->error ? r->error->message : "out of memory");
        return 0;
    }
    if (item->absent) {
        leat__image_facts_fail(facts, LEAT__VERDICT_ABSENT, "no image");
        return 0;
    }
    const leat__tile_tables *tables = r->origin < f->table_count ? f->tables[r->origin] : NULL;
    return leat__image_facts_make(l, leat__records_str(run, r->key), leat__records_data(run, item),
                                  item->size, tables, facts, err);
}

static int stage_look(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    flow_run *f = cookie;
    leat__image_looker **l = ctx;
    portion *p = task->data;
    if (p->run->large) return 0;
    if (!*l) LEAT_TRY(leat__image_looker_open(l, &f->limits, err));
    for (uint32_t i = 0; i < p->run->count; i++)
        LEAT_TRY(look_at(f, *l, p->run, &p->run->record[i], &p->facts[i], err));
    /* the memory of a large image is not charged to the next run */
    if (p->run->decode > SCRATCH_BYTES) leat__image_looker_close(l);
    return 0;
}

/* Processes a record with a large image alone. `charged`: the bytes of its task in the budget. */
static int look_alone(flow_run *f, portion *p, uint32_t at, uint64_t charged, leat_error *err)
{
    leat__image_looker *l = NULL;
    leat__records *run = p->run;
    leat__record *r = &run->record[at];
    leat_error why = {0};
    LEAT_TRY(load_record(f, run, r, err));
    run->decode = 0;
    leat__pack_memory_measure(&f->plan, f->source, run, r);
    const uint64_t more = held(p) - LEAT_MIN(held(p), charged) + run->decode;
    LEAT_TRY(settle(r, leat__pack_memory_ask(&f->allowance, more, &why), &why, err));
    LEAT_TRY(leat__image_looker_open(&l, &f->limits, err));
    int rc = look_at(f, l, run, r, &p->facts[at], err);
    leat__image_looker_close(&l);
    return rc;
}

static int take_all(flow_run *f, leat_error *err)
{
    leat__image_pass *pass = f->pass;
    uint64_t done = pass->skip.records;
    for (;;) {
        leat_task *task = NULL;
        LEAT_TRY(leat_flow_next(f->flow, &task, -1, err));
        if (!task) return 0;
        portion *p = task->data;
        int rc = 0;
        for (uint32_t i = 0; i < p->run->count && rc == 0; i++, done++) {
            leat__record *r = &p->run->record[i];
            if (p->run->large) rc = look_alone(f, p, i, task->bytes, err);
            leat__chain_add(&f->chain, p->run, r);
            if (rc == 0)
                rc = pass->take(pass->cookie, leat__records_str(p->run, r->key), r->key_size, &p->facts[i],
                                f->chain.value, err);
        }
        leat_task_release(task);
        if (rc == 0 && pass->tell && pass->tell(pass->cookie, done, LEAT_MAX(f->source->total, done)) != 0)
            rc = leat__fail(err, LEAT_ECANCELED, "the run was stopped");
        if (rc != 0) return rc;
    }
}

static int add_stages(flow_run *f, leat_error *err)
{
    leat_stage list, read, look;
    leat_stage_init(&list);
    list.kind = LEAT_STAGE_SOURCE;
    list.name = "list";
    list.lane = LEAT_LANE_IO;
    list.bytes_out = sizeof(portion) + leat__source_list_need(f->source);
    list.cookie = f;
    list.process = stage_list;
    LEAT_TRY(leat_flow_add(f->flow, &list, err));
    leat_stage_init(&read);
    read.kind = LEAT_STAGE_MAP;
    read.name = "read";
    read.lane = LEAT_LANE_IO;
    read.bytes_out = PORTION_BYTES;
    read.cookie = f;
    read.process = stage_read;
    read.need = need_read;
    LEAT_TRY(leat_flow_add(f->flow, &read, err));
    leat_stage_init(&look);
    look.kind = LEAT_STAGE_MAP;
    look.name = "look";
    look.scratch = leat__pack_memory_scratch(&f->allowance, SCRATCH_BYTES, PORTION_BYTES, PORTION_BYTES);
    look.bytes_out = PORTION_BYTES;
    look.cookie = f;
    look.setup = setup_look;
    look.teardown = teardown_look;
    look.process = stage_look;
    look.need = need_look;
    return leat_flow_add(f->flow, &look, err);
}

/* Returns a plan for images that are only decoded. */
static leat__encode_plan plan_of(const leat_ingest_opts *opts)
{
    return (leat__encode_plan){.images = LEAT_IMAGES_KEEP,
                               .inspect = leat__image_look_bytes,
                               .limits = {.max_pixels = opts->max_pixels}};
}

static leat__pack_flow flow_of(const leat__encode_plan *plan)
{
    return (leat__pack_flow){.task = sizeof(portion),
                             .in = PORTION_BYTES,
                             .out = PORTION_BYTES,
                             .scratch = SCRATCH_BYTES,
                             .plan = plan};
}

static int start(flow_run *f, leat_error *err)
{
    const leat_ingest_opts *o = f->pass->opts;
    leat_pool_opts pool;
    leat_flow_opts flow;
    leat_pool_opts_init(&pool);
    pool.threads = o->threads;
    pool.io_threads = IO_DEPTH;
    LEAT_TRY(leat_pool_open(&f->pool, &pool, err));
    LEAT_TRY(leat__pack_memory_open(&f->allowance, o, leat_pool_threads(f->pool), err));
    leat_flow_opts_init(&flow);
    flow.name = "check";
    flow.pool = f->pool;
    flow.budget = f->allowance.budget;
    flow.threads = o->threads;
    flow.io_depth = IO_DEPTH;
    flow.prefetch = LEAT__PACK_WINDOW(leat_pool_threads(f->pool));
    flow.log = o->log;
    LEAT_TRY(leat_flow_open(&f->flow, &flow, err));
    LEAT_TRY(add_stages(f, err));
    return leat_flow_start(f->flow, err);
}

/* Opens the tables of packs that contain tiles. */
static int open_tables(flow_run *f, leat_error *err)
{
    uint32_t n = 0;
    while (leat__source_pack_of(f->source, n)) n++;
    if (n == 0) return 0;
    f->tables = LEAT_NEW_ARRAY(CURATE, leat__tile_tables *, n);
    if (!f->tables) return leat__fail_nomem(err, n * sizeof *f->tables, "tables");
    f->table_count = n;
    for (uint32_t i = 0; i < n; i++) {
        const void *blob;
        size_t len;
        int rc = leat_pack_blob(leat__source_pack_of(f->source, i), LEAT__TILE_TABLES_BLOB, &blob, &len, err);
        if (rc == LEAT_ENOENT) continue;
        if (rc != 0) return rc;
        LEAT_TRY(leat__tile_tables_open(&f->tables[i], blob, len, err));
    }
    return 0;
}

static void tear_down(flow_run *f)
{
    leat_flow_close(&f->flow);
    f->pass->budget_peak = leat__pack_memory_peak(&f->allowance);
    leat__pack_memory_close(&f->allowance);
    leat_pool_close(&f->pool);
    leat__records_pool_reset(&f->spare);
    for (uint32_t i = 0; i < f->table_count; i++) leat__tile_tables_close(&f->tables[i]);
    leat__free(f->tables);
}

/* Skips the records that an interrupted run has processed. */
static int skip(flow_run *f, leat_error *err)
{
    leat__image_pass *pass = f->pass;
    f->chain = leat__chain_begin(pass->opts);
    if (pass->skip.records == 0) return 0;
    LEAT_TRY(leat__chain_skip(&f->chain, f->source, &f->spare, pass->skip.records, NULL, err));
    pass->changed = f->chain.records != pass->skip.records || f->chain.value != pass->skip.value;
    return 0;
}

uint64_t leat__image_flow_enough(const leat_ingest_opts *opts)
{
    const leat__encode_plan plan = plan_of(opts);
    const leat__pack_flow flow = flow_of(&plan);
    return leat__pack_memory_enough(opts, &flow);
}

int leat__image_flow_run(leat__image_pass *pass, leat_error *err)
{
    flow_run f = {.pass = pass, .source = pass->source};
    if (pass->source->image_field < 0)
        return leat__fail(err, LEAT_EINVAL, "%s: has no images", pass->opts->sources[0]);
    f.field = (uint32_t)pass->source->image_field;
    f.plan = plan_of(pass->opts);
    f.limits = f.plan.limits;
    leat__records_pool_init(&f.spare, pass->source->field_count, SHELF);
    int rc = open_tables(&f, err);
    pass->changed = false;
    if (rc == 0) rc = skip(&f, err);
    if (rc == 0 && !pass->changed) rc = start(&f, err);
    if (rc == 0 && !pass->changed) rc = take_all(&f, err);
    tear_down(&f);
    const leat__pack_flow flow = flow_of(&f.plan);
    return leat__pack_memory_explain(rc, pass->opts, &flow, err);
}
