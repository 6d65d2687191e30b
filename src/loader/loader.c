/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader: one flow of the engine per epoch,
 *
 *     feed (source) -> read (I/O lane) -> decode (CPU) -> collate (gather) -> the caller
 *
 * The feed plans the next run in advance, so that its size is known when the engine checks
 * whether it fits the budget. Batches leave in order; the policy for bad samples is applied
 * there, on the caller's thread.
 */
#include <leat/loader.h>

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "engine/flow_window.h"
#include "io/file.h"
#include "loader/bounds.h"
#include "loader/change.h"
#include "loader/feed.h"
#include "loader/footprint.h"
#include "loader/page_ahead.h"
#include "loader/run_read.h"
#include "loader/setup.h"
#include "pack/reader.h"
#include "probe/trace.h"
#include "pack/schema.h"

#define QUARANTINE_LINE_MAX 8192
#define IDLE_BATCHES 8u    /* batches without work on the device before the user is told */
#define COPIES_MAX 65536   /* batches passed to the copying thread at once: all that are ready */
#define DEVICE_SLICE_MS 20 /* time between checks whether the consumer holds all device memory */

int leat_loader_open(leat_loader **out, const char *path, const leat_loader_opts *opts, leat_error *err)
{
    return leat__loader_open_on(out, path, opts, NULL, err);
}

int leat__loader_open_on(leat_loader **out, const char *path, const leat_loader_opts *opts, leat_pool *pool,
                         leat_error *err)
{
    leat_loader_opts full;
    int rc;

    LEAT_REQUIRE(out != NULL, err);
    *out = NULL;
    leat_loader_opts_init(&full);
    if (opts != NULL) {
        if (opts->struct_size == 0)
            return leat__fail(err, LEAT_EINVAL, "loader options were not initialised");
        memcpy(&full, opts, LEAT_MIN(opts->struct_size, sizeof full));
        if (opts->struct_size < offsetof(leat_loader_opts, weight_count) + sizeof full.weight_count)
            full.weight_count = LEAT__COUNT_NOT_TOLD;
        full.struct_size = sizeof full;
    }
    LEAT_REQUIRE(path != NULL || (full.sources != NULL && full.source_count > 0), err);
    leat_loader *l = LEAT_NEW(LOADER, leat_loader);
    if (l == NULL) return leat__fail_nomem(err, sizeof *l, "a loader");
    l->fork_generation = leat__fork_generation();
    l->pool = pool;
    if (pool != NULL) leat__pool_ref(pool);
    LEAT_GO(rc, out, leat__loader_setup(l, path, &full, err));
    *out = l;
    l = NULL;
out:
    leat_loader_close(&l);
    return rc;
}

/* ---- feed --------------------------------------------------------------------------------- */

static void release_run(void *cookie, void *data)
{
    (void)cookie;
    leat__run_close(data);
}

static int feed_process(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    leat_loader *l = cookie;
    leat__feed *feed = &l->feed;

    (void)ctx;
    if (feed->next == NULL) {
        if (feed->rc == 0) return LEAT_FLOW_END;
        if (err != NULL) *err = feed->error;
        return feed->rc;
    }
    leat__frame_pay(feed->next->frame, feed->next->share_bytes);
    task->data = feed->next;
    task->bytes = feed->next_bytes;
    task->release = release_run;
    feed->next = NULL;
    uint64_t begin = leat__trace_begin();
    leat__feed_plan(l);
    leat__trace_end("order", begin, (int64_t)feed->at);
    return 0;
}

static uint64_t feed_need(void *cookie, const leat_task *task)
{
    (void)task;
    return ((leat_loader *)cookie)->feed.next_bytes;
}

/* ---- read, decode, collate ---------------------------------------------------------------- */

static int read_process(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    leat__run *r = task->data;
    uint64_t begin = leat__trace_begin(), row = r->frame->batch.position + r->first;
    (void)cookie;
    (void)ctx;
    int rc = leat__run_read(r, task, err); /* the run may be freed when this returns */
    leat__trace_end("read", begin, (int64_t)row);
    return rc;
}

/* Takes idle scratch, preferably from this NUMA node. The scratch of workers outlives the epoch, and the next
 * one reuses it. */
static leat__run_worker *take_idle_locked(leat_loader *l, int32_t node)
{
    leat__run_worker **at = &l->idle;
    while (*at != NULL && (*at)->node != node) at = &(*at)->next;
    if (*at == NULL) at = &l->idle;
    leat__run_worker *w = *at;
    if (w != NULL) *at = w->next;
    return w;
}

static int decode_setup(void *cookie, const leat_worker *worker, void **ctx, leat_error *err)
{
    leat_loader *l = cookie;

    leat__mutex_lock(&l->lock);
    leat__run_worker *w = take_idle_locked(l, worker->node);
    leat__mutex_unlock(&l->lock);
    if (w == NULL) {
        LEAT_TRY(leat__run_worker_open(&w, err));
        w->node = worker->node;
    }
    *ctx = w;
    return 0;
}

static void decode_teardown(void *cookie, void *ctx)
{
    leat_loader *l = cookie;
    leat__run_worker *w = ctx;

    if (w == NULL) return;
    leat__mutex_lock(&l->lock);
    w->next = l->idle;
    l->idle = w;
    leat__mutex_unlock(&l->lock);
}

static int decode_process(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    leat__run *r = task->data;

    leat_budget *const budget = ((leat_loader *)cookie)->budget;
    uint64_t begin = leat__trace_begin();
    if (r->scratch_bytes > 0) leat__budget_allocated(budget, (int64_t)r->scratch_bytes);
    int rc = leat__run_decode(r, ctx, err);
    if (r->scratch_bytes > 0) leat__budget_allocated(budget, -(int64_t)r->scratch_bytes);
    LEAT_TRY(rc);
    leat__trace_end("decode", begin, (int64_t)(r->frame->batch.position + r->first));
    task->bytes = r->share_bytes + r->tile_bytes;
    return 0;
}

static void release_frame(void *cookie, void *data)
{
    (void)cookie;
    leat__frame_unref(data);
}

static int collate_process(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    leat__run *last = task->members[task->member_count - 1]->data;
    leat__frame *f = last->frame;

    uint64_t begin = leat__trace_begin();
    const leat_loader *l = cookie;
    (void)ctx;
    /* rows that the device decodes can still be bad, so such a batch is finished later (to_device.c) */
    if (f->tiles == NULL) leat__frame_finish(f);
    const uint64_t first = f->batch.position;
    const uint32_t skip = first < l->feed.begin ? (uint32_t)(l->feed.begin - first) : 0;
    if (l->env.mixed && f->tiles != NULL) {
        f->skip = skip;
    } else if (l->env.mixed) {
        LEAT_TRY(leat__mixing_apply(&l->mixing, f, err));
        leat__frame_skip(f, skip);
        for (uint32_t i = 0; f->hashes != NULL && i < f->batch.samples; i++)
            f->hashes[i] = leat__frame_hash(f, i);
    }
    leat__frame_ref(f);
    leat__trace_end("collate", begin, (int64_t)f->batch.index);
    /* the rows move from the runs to the batch, and their bytes with them. The runs may be closed after the
     * batch has been released, when its bytes are no longer charged, so they must not keep its memory. */
    for (uint32_t i = 0; i < task->member_count; i++) {
        leat__run *r = task->members[i]->data;
        task->members[i]->bytes = 0;
        leat__frame_unref(r->frame);
        r->frame = NULL;
    }
    task->data = f;
    task->bytes = f->bytes + leat__frame_tile_bytes(f);
    task->release = release_frame;
    return 0;
}

static int copy_process(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    leat_loader *l = cookie;
    (void)ctx;
    (void)err;
    leat__to_device_push(l->device, task->data, task);
    return LEAT_FLOW_PENDING;
}

static int run_closes_batch(void *cookie, const leat_task *task)
{
    (void)cookie;
    return ((const leat__run *)task->data)->last;
}

static int add_stages(leat_loader *l, leat_flow *flow, leat_error *err)
{
    leat_stage s;

    leat_stage_init(&s);
    s.kind = LEAT_STAGE_SOURCE;
    s.name = "order";
    s.cookie = l;
    s.bytes_out = l->max_run_bytes;
    s.process = feed_process;
    s.need = feed_need;
    LEAT_TRY(leat_flow_add(flow, &s, err));

    leat_stage_init(&s);
    s.kind = LEAT_STAGE_MAP;
    s.name = "read";
    s.lane = LEAT_LANE_IO;
    s.cookie = l;
    s.process = read_process;
    LEAT_TRY(leat_flow_add(flow, &s, err));

    leat_stage_init(&s);
    s.kind = LEAT_STAGE_MAP;
    s.name = "decode";
    s.cookie = l;
    s.ram = LEAT__WORKER_RAM;
    s.setup = decode_setup;
    s.teardown = decode_teardown;
    s.process = decode_process;
    LEAT_TRY(leat_flow_add(flow, &s, err));

    leat_stage_init(&s);
    s.kind = LEAT_STAGE_GATHER;
    s.name = "collate";
    s.cookie = l;
    s.count = l->opts.batch_size; /* at most one run per sample */
    s.closes = run_closes_batch;
    s.bytes_in = l->max_frame_bytes;
    s.category = LEAT_BUDGET_BATCH;
    s.process = collate_process;
    LEAT_TRY(leat_flow_add(flow, &s, err));
    if (l->device == NULL) return 0;

    leat_stage_init(&s);
    s.kind = LEAT_STAGE_MAP;
    s.name = "copy";
    s.lane = LEAT_LANE_GPU;
    s.parallel = COPIES_MAX;
    s.cookie = l;
    s.category = LEAT_BUDGET_BATCH;
    s.process = copy_process;
    return leat_flow_add(flow, &s, err);
}

/* ---- epochs ------------------------------------------------------------------------------- */

static void stop_epoch(leat_loader *l)
{
    leat_flow *flow;

    leat__mutex_lock(&l->lock);
    if (l->begun) leat__loader_remember_locked(l);
    flow = l->flow;
    l->flow = NULL; /* so that no thread reads a flow that is being closed */
    l->begun = false;
    leat__mutex_unlock(&l->lock);
    if (flow != NULL) leat_flow_cancel(flow);
    if (l->device != NULL) leat__to_device_cancel(l->device);
    atomic_store(&l->env.stop, true); /* close then waits for one sample per worker, not for a whole run */
    if (l->env.remote && l->env.aio != NULL) leat__aio_stop_remote(l->env.aio, true);
    if (l->env.disk != NULL) leat__disk_hurry(l->env.disk, true);
    leat_flow_close(&flow);
    if (l->page_ahead != NULL) leat__page_ahead_end(l->page_ahead);
    if (l->env.disk != NULL) leat__disk_hurry(l->env.disk, false);
    if (l->env.remote && l->env.aio != NULL) leat__aio_stop_remote(l->env.aio, false);
    atomic_store(&l->env.stop, false);
    leat__run_close(l->feed.next);
    leat__frame_unref(l->feed.frame);
    l->feed.next = NULL;
    l->feed.frame = NULL;
    if (l->env.cache != NULL) leat__cache_forget(l->env.cache);
}

int leat__loader_check(const leat_loader *l, leat_error *err)
{
    if (l == NULL) return leat__fail(err, LEAT_EINVAL, "no loader was given");
    if (l->fork_generation == leat__fork_generation()) return 0;
    return leat__fail(err, LEAT_EFORK,
                      "the loader was opened before the process forked; open it again in the child");
}

void leat_loader_stop(leat_loader *l)
{
    if (leat__loader_check(l, NULL) == 0) stop_epoch(l);
}

/* In a forked child nothing is freed, because it belongs to the parent's threads. */
void leat_loader_close(leat_loader **out)
{
    leat_loader *l = out != NULL ? *out : NULL;
    if (l == NULL) return;
    if (leat__loader_check(l, NULL) == 0) {
        stop_epoch(l);
        leat__loader_teardown(l);
        leat__free(l);
    }
    *out = NULL;
}

static void reset_counters(leat_loader *l)
{
    leat__run_env *e = &l->env;
    e->disk_hits = e->read_bytes = e->reads = e->cache_hits = e->cache_misses = e->read_ns = e->decode_ns = 0;
    l->delivered_rows = l->delivered_batches = l->bad = l->wait_ns = 0;
    l->begin_ns = leat__clock_ns();
    leat__http_read(&l->traffic);
    if (l->device != NULL) leat__to_device_read(l->device, &l->device_before);
    l->list_ns_before = atomic_load(&e->list_ns);
    leat__steps_epoch(&l->steps);
    if (l->spans != NULL) leat__step_spans_epoch(l->spans);
    l->ended = false;
    l->failed = 0;
    memset(l->page_seen, 0, l->info.pages / 8 + 1);
}

/* Returns the initial prefetch. A device decodes several batches at once. */
static uint32_t first_prefetch(const leat_loader *l)
{
    bool device = l->env.tile_blocks != NULL && atomic_load(&l->env.device_share) > 0;
    uint32_t least = device ? LEAT__DECODE_SLOTS : LEAT__PREFETCH_FIRST;
    return leat__prefetch_first(l->opts.batch_size, l->max_frame_bytes, least);
}

static void set_order_epoch(leat_loader *l, uint64_t epoch)
{
    if (l->order_epoch != epoch) leat__order_epoch(l->order, epoch);
    l->order_epoch = epoch; /* it is opened for epoch 0 */
}

/* Begins `epoch` at row `row` of this rank, which is in batch `first_batch`. */
static int begin_at(leat_loader *l, uint64_t epoch, uint64_t row, uint64_t first_batch, leat_error *err)
{
    leat_flow_opts o;
    leat_flow *flow = NULL;
    int rc;

    if (epoch > INT64_MAX) /* else its state could not be read back */
        return leat__fail(err, LEAT_EINVAL, "epoch %llu: it must be below 2^63", (unsigned long long)epoch);
    stop_epoch(l);
    leat__mutex_lock(&l->lock);
    l->epoch = l->env.epoch = epoch;
    reset_counters(l);
    l->begun = l->used_before = true;
    leat__mutex_unlock(&l->lock);
    l->started_at = row;
    l->first_batch = first_batch;
    set_order_epoch(l, epoch);
    /* rows of a mixed batch depend on each other: make all, deliver the rest */
    l->feed.at = l->env.mixed ? row - row % l->opts.batch_size : row;
    l->feed.begin = row;
    l->feed.end = l->run_rows;
    l->feed.rc = 0;
    l->ended = row >= l->run_rows;
    if (l->ended) return 0;

    if (l->page_ahead != NULL) leat__page_ahead_begin(l);
    leat__feed_plan(l);
    if (l->device != NULL) leat__to_device_begin(l->device, row / l->opts.batch_size);
    leat_flow_opts_init(&o);
    o.name = "loader";
    o.pool = l->pool;
    o.budget = l->budget;
    o.threads = l->opts.threads;
    /* the flow counts runs, the option counts reads */
    o.io_depth = (l->opts.io_depth + l->run_usual - 1) / l->run_usual;
    o.io_depth_max = LEAT_MAX(1, leat__aio_depth(l->env.aio) / l->run_usual);
    o.prefetch = l->opts.prefetch;
    o.prefetch_first = first_prefetch(l);
    if (l->env.remote) leat__page_ahead_depth(l, &o);
    o.tuner = l->tuner;
    o.loans = LEAT__LOANS;
    o.lean = 1;
    o.log = l->opts.log;
    LEAT_TRY(leat_flow_open(&flow, &o, err));
    flow->results_name = "batches";
    flow->changed = &l->bell;
    flow->interrupted = &l->interrupted;
    LEAT_GO(rc, out, add_stages(l, flow, err));
    LEAT_GO(rc, out, leat_flow_start(flow, err));
    leat__mutex_lock(&l->lock);
    l->flow = flow;
    leat__mutex_unlock(&l->lock);
    flow = NULL;
out:
    leat_flow_close(&flow);
    return rc;
}

int leat_loader_begin(leat_loader *l, uint64_t epoch, leat_error *err)
{
    LEAT_TRY(leat__loader_check(l, err));
    stop_epoch(l);
    leat__change_apply(l);
    leat__loader_extent(l, false);
    int rc = begin_at(l, epoch, 0, 0, err);
    if (rc != 0) stop_epoch(l);
    return rc;
}

int leat_loader_set(leat_loader *l, const leat_loader_change *given, leat_error *err)
{
    leat_loader_change c = {0};

    LEAT_TRY(leat__loader_check(l, err));
    LEAT_REQUIRE(given != NULL && given->struct_size > 0, err);
    memcpy(&c, given, LEAT_MIN((size_t)given->struct_size, sizeof c));
    LEAT_TRY(leat__change_make(l, &c, err));
    if (!l->used_before) leat__change_apply(l);
    if (!l->used_before) leat__loader_extent(l, false);
    if (c.when != LEAT_WHEN_BATCH || !l->begun || l->ended || l->failed != 0) return 0;
    /* delivered rows are done; the rest of the epoch is made again */
    uint64_t row = l->started_at + l->delivered_rows, epoch = l->epoch;
    stop_epoch(l);
    leat__change_apply(l);
    leat__loader_extent(l, false);
    row = LEAT_MIN(row, l->run_rows);
    int rc = begin_at(l, epoch, row, row / l->opts.batch_size, err);
    if (rc != 0) stop_epoch(l);
    return rc;
}

/* Writes the bad samples of a batch to the quarantine file, one JSON line each. */
static int quarantine(leat_loader *l, const leat__frame *f, leat_error *err)
{
    leat__buf text;
    int rc = 0;

    if (l->quarantine == NULL || f->bad == NULL) return 0;
    leat__buf_init(&text, LEAT__MEM_LOADER, (size_t)QUARANTINE_LINE_MAX * (f->batch.bad + 1));
    for (const leat__bad *b = f->bad; b != NULL; b = b->next) {
        leat__json j;
        leat__json_init(&j, &text, 0);
        leat__json_object(&j);
        uint64_t first;
        const leat_pack *part =
            leat_pack_part(l->pack, leat__pack_part_of_sample(l->pack, b->sample), &first);
        leat__json_kstr(&j, "pack", leat_pack_path(part));
        leat__json_ku64(&j, "sample", b->sample - first);
        leat__json_kstr(&j, "key", b->error.key);
        leat__json_kstr(&j, "code", leat_code_name(b->error.code));
        leat__json_ki64(&j, "offset", b->error.offset);
        leat__json_kstr(&j, "reason", b->error.message);
        leat__json_ku64(&j, "epoch", l->epoch);
        leat__json_end(&j);
        leat__buf_putc(&text, '\n');
    }
    if (leat__buf_status(&text) != 0) rc = leat__fail_nomem(err, text.len, "the quarantine list");
    else rc = leat__file_append(l->quarantine, text.data, text.len, err);
    leat__buf_reset(&text);
    return rc;
}

/* Applies the policy for bad samples, in the order of batches: fails, or counts them against the limit. */
static int judge_batch(leat_loader *l, const leat__frame *f, leat_error *err)
{
    if (f->bad == NULL) return 0;
    if (l->opts.on_error == LEAT_ON_ERROR_FAIL) {
        if (err != NULL) *err = f->bad->error;
        return f->bad->error.code;
    }
    leat__mutex_lock(&l->lock);
    l->bad += f->batch.bad;
    leat__mutex_unlock(&l->lock);
    LEAT_TRY(quarantine(l, f, err));
    if (l->opts.max_bad > 0 && l->bad > l->opts.max_bad)
        return leat__fail(err, LEAT_EDATA,
                          "%llu bad sample%s in epoch %llu, more than the %llu allowed; last: %s",
                          (unsigned long long)l->bad, leat__plural(l->bad), (unsigned long long)l->epoch,
                          (unsigned long long)l->opts.max_bad, f->bad->error.message);
    return 0;
}

static int fail_epoch(leat_loader *l, int rc, const leat_error *err)
{
    l->failed = rc;
    if (err != NULL) l->failure = *err;
    return rc;
}

/* At the end of this rank's rows: returns NULL, or a batch of 0 samples for a rank without samples in the
 * last global batch. All ranks get the same number of batches, so that their collective operations match. */
static int give_empty(leat_loader *l, leat_batch **out, leat_error *err)
{
    leat__frame *f;

    if (l->first_batch + l->delivered_batches >= l->run_batches) return 0;
    memset(l->feed.ragged, 0, l->env.shape->count * sizeof *l->feed.ragged);
    LEAT_TRY(leat__frame_open(&f, l->frames, 0, l->feed.ragged, l->env.hashes, err));
    LEAT_TRY(leat__feed_ragged(l, 0, f, err));
    leat__frame_finish(f);
    f->batch.epoch = l->epoch;
    f->batch.index = l->first_batch + l->delivered_batches;
    f->batch.position = l->run_rows;
    leat__mutex_lock(&l->lock);
    l->delivered_batches++;
    leat__mutex_unlock(&l->lock);
    f->batch.device = leat_loader_device(l);
    *out = &f->batch;
    return 0;
}

static int explain_shortage(leat__to_device *d, leat_error *err)
{
    char limit[24], needs[24];
    leat__to_device_stats stats = {0};
    leat__to_device_read(d, &stats);
    leat__format_bytes(stats.pool.limit, limit, sizeof limit);
    leat__format_bytes(leat__to_device_needs(d), needs, sizeof needs);
    switch (leat__to_device_starved(d)) {
    case LEAT__ENOUGH: break;
    case LEAT__ALL_BORROWED:
        return leat__fail(err, LEAT_EBUDGET,
                          "borrowed batches hold all of `device_memory` (%s), and the next one needs %s: "
                          "release some, or raise it",
                          limit, needs);
    case LEAT__DEVICE_FULL:
        return leat__fail(err, LEAT_EBUDGET,
                          "borrowed batches hold all memory that the device has left, and the next one needs "
                          "%s: release some",
                          needs);
    case LEAT__NO_WORKSPACE: break; /* the CPUs decode the batch */
    }
    return 0;
}

/* Waits for the next batch of the flow. With a device, checks from time to time whether only the consumer can
 * release device memory. Then no batch can come, or the CPUs have to decode it. */
static int wait_batch(leat_loader *l, leat_task **task, int64_t timeout_ms, leat_error *err)
{
    if (l->device == NULL) return leat_flow_next(l->flow, task, timeout_ms, err);
    uint64_t begin = leat__clock_ns();
    for (uint32_t starved = 0;;
         starved = leat__to_device_starved(l->device) != LEAT__ENOUGH ? starved + 1 : 0) {
        int64_t passed = (int64_t)((leat__clock_ns() - begin) / LEAT_NS_PER_MS), slice = DEVICE_SLICE_MS;
        if (timeout_ms >= 0) slice = LEAT_MAX(0, LEAT_MIN(slice, timeout_ms - passed));
        leat__to_device_settle(l->device, l->capturing);
        int rc = leat_flow_next(l->flow, task, slice, err);
        if (rc != LEAT_ETIMEDOUT) return rc;
        if (starved > 0) leat__to_device_hurry(l->device);
        if (starved > 2) LEAT_TRY(explain_shortage(l->device, err));
        if (timeout_ms >= 0 && passed >= timeout_ms) return rc;
    }
}

/* decode = gpu and cache = device: tells the user once when the device decodes nothing. */
static void watch_device(leat_loader *l, bool batch)
{
    leat__to_device_stats s = {0};
    if (l->device_works) return;
    if (batch) l->idle_batches++;
    if (batch ? l->idle_batches < IDLE_BATCHES : l->idle_batches == 0) return;
    leat__to_device_read(l->device, &s);
    l->device_works = true;
    if (s.decoded > 0) return;
    const leat__advice_idle facts = {.keeps = l->opts.cache == LEAT_CACHE_DEVICE,
                                     .batches = l->idle_batches,
                                     .tiled = atomic_load(&l->env.tiled),
                                     .listed = atomic_load(&l->env.device_images) > 0};
    leat__advice_device(&facts, l->advice[l->advice_count]);
    leat__log(&l->opts.log, LEAT_LOG_WARN, "%s", l->advice[l->advice_count++]);
}

/* After each wait: decides how much of the next batches the device decodes. */
static void divide_work(leat_loader *l, uint64_t waited, int rc, bool batch)
{
    if (l->env.tile_blocks == NULL) return;
    if (l->opts.decode == LEAT_DECODE_AUTO) {
        const uint32_t share = leat__split_step(&l->split, waited, leat__clock_ns(), rc == 0 && batch);
        const uint32_t before = l->env.device_share;
        l->env.device_share = leat__to_device_cramped(l->device) ? 0 : share;
        if (before == 0 && l->env.device_share > 0) /* the device works on several batches at once */
            leat__flow_at_least(l->flow, LEAT_KNOB_PREFETCH, LEAT__DECODE_SLOTS);
    } else if (rc == 0) {
        watch_device(l, batch);
    }
}

int leat_loader_next(leat_loader *l, leat_batch **out, int64_t timeout_ms, leat_error *err)
{
    leat_error local;
    leat_task *task = NULL;

    LEAT_REQUIRE(out != NULL, err);
    *out = NULL;
    if (err == NULL) err = &local;
    LEAT_TRY(leat__loader_check(l, err));
    if (!l->begun && l->used_before)
        return leat__fail(err, LEAT_ESTATE, "no epoch is running: begin one, or restore a state");
    if (!l->begun) LEAT_TRY(leat_loader_begin(l, 0, err));
    if (l->failed != 0) {
        *err = l->failure;
        return l->failed;
    }
    if (l->ended) return give_empty(l, out, err);
    leat__loader_obey_budget(l);
    leat__steps_enter(&l->steps);
    if (l->spans != NULL) leat__step_spans_end(l->spans, l->capturing);
    uint64_t begin = leat__trace_begin();
    int rc = wait_batch(l, &task, timeout_ms, err);
    leat__trace_end("next", begin, (int64_t)l->delivered_batches);
    uint64_t waited = leat__steps_leave(&l->steps, rc == 0 && task != NULL);
    leat__mutex_lock(&l->lock);
    l->wait_ns += waited;
    leat__mutex_unlock(&l->lock);
    divide_work(l, waited, rc, task != NULL);
    if (rc == LEAT_ETIMEDOUT || rc == LEAT_EAGAIN || rc == LEAT_EBUDGET) return rc;
    if (rc != 0) return fail_epoch(l, rc, err);
    if (task == NULL) {
        l->ended = true;
        return give_empty(l, out, err);
    }
    leat__frame *f = task->data;
    f->task = task;
    rc = judge_batch(l, f, err);
    if (rc != 0) {
        leat_task_release(task);
        return fail_epoch(l, rc, err);
    }
    leat__mutex_lock(&l->lock);
    l->delivered_rows += f->batch.rows;
    l->delivered_batches++;
    leat__mutex_unlock(&l->lock);
    if (l->env.ahead != NULL) leat__readahead_consume(l->env.ahead, 1);
    *out = &f->batch;
    if (l->spans != NULL && l->stream != LEAT_STREAM_UNKNOWN && !l->capturing)
        leat__step_spans_begin(l->spans, l->stream);
    return 0;
}

void leat_loader_stream(leat_loader *l, uintptr_t stream)
{
    if (l == NULL || l->device == NULL) return;
    l->stream = stream;
    if (stream == LEAT_STREAM_UNKNOWN || l->spans != NULL || l->spans_failed) return;
    leat__step_spans *spans = NULL;
    l->spans_failed = leat__step_spans_open(&spans, leat__to_device_gpu(l->device), NULL) != 0;
    leat__mutex_lock(&l->lock); /* the statistics read it */
    l->spans = spans;
    leat__mutex_unlock(&l->lock);
}

void leat_loader_capturing(leat_loader *l, uint32_t on)
{
    if (l != NULL) l->capturing = on != 0;
}

void leat_batch_release(leat_batch **batch)
{
    if (batch == NULL || *batch == NULL) return;
    leat__frame *f = (leat__frame *)*batch;
    if (f->task != NULL) leat_task_release(f->task);
    else leat__frame_unref(f); /* an empty batch, which no task made */
    *batch = NULL;
}

void leat_loader_interrupt(leat_loader *l)
{
    if (l == NULL) return;
    atomic_store(&l->interrupted, true);
    leat__bell_ring(&l->bell);
}

/* ---- order --------------------------------------------------------------------------------- */

int leat_loader_samples_at(leat_loader *l, uint64_t epoch, uint64_t position, uint64_t count,
                           uint64_t *samples, leat_error *err)
{
    uint64_t salts[256];

    LEAT_TRY(leat__loader_check(l, err));
    LEAT_REQUIRE(samples != NULL || count == 0, err);
    uint64_t rows = leat__change_seen(l)->rows;
    if (position > rows || count > rows - position)
        return leat__fail(err, LEAT_EINVAL, "position %llu: this rank has %llu samples per epoch",
                          (unsigned long long)(position + LEAT_MAX(count, 1u) - 1), (unsigned long long)rows);
    if (l->flow != NULL && epoch != l->epoch)
        return leat__fail(err, LEAT_ESTATE, "epoch %llu is running: only its own order can be read",
                          (unsigned long long)l->epoch);
    set_order_epoch(l, epoch);
    for (uint64_t at = 0; at < count; at += LEAT_COUNT(salts)) {
        uint32_t n = (uint32_t)LEAT_MIN(count - at, LEAT_COUNT(salts));
        leat__order_fill(l->order, (position + at) * l->opts.world + l->opts.rank, l->opts.world, n,
                         samples + at, salts);
    }
    return 0;
}

int leat_loader_sample_at(leat_loader *l, uint64_t epoch, uint64_t position, uint64_t *sample,
                          leat_error *err)
{
    return leat_loader_samples_at(l, epoch, position, 1, sample, err);
}

/* ---- state -------------------------------------------------------------------------------- */

static leat__state state_of(const leat_loader *l)
{
    uint32_t packs = leat_pack_part_count(l->pack);
    leat__state s = {
        .fingerprint = l->info.fingerprint,
        .subset = l->subset,
        .order = l->opts.order,
        .order_version = leat__order_version(l->opts.order),
        .seed = l->opts.seed,
        .epoch = l->epoch,
        .count = l->count,
        .global_batch = (uint64_t)l->opts.batch_size * l->opts.world,
        .streams = l->opts.order == LEAT_ORDER_QUASI ? l->opts.streams : 0,
        .window_pages = l->opts.order == LEAT_ORDER_QUASI ? l->opts.window_pages : 0,
        .drop_last = l->opts.drop_last == LEAT_DROP_LAST,
        .left_out =
            l->opts.drop_last == LEAT_DROP_EMPTY && l->run_used<l->count, .pack_count = packs> 1 ? packs : 0,
        .mix = l->mix,
    };
    memcpy(s.subset_text, l->subset_text, sizeof s.subset_text);
    memcpy(s.mix_text, l->mix_text, sizeof s.mix_text);
    memcpy(s.packs, l->digests, s.pack_count * sizeof *s.packs);
    return s;
}

int leat_loader_state(leat_loader *l, uint64_t delivered, char *text, size_t capacity, size_t *size,
                      leat_error *err)
{
    leat__buf out;

    LEAT_TRY(leat__loader_check(l, err));
    LEAT_REQUIRE(size != NULL && (text != NULL || capacity == 0), err);
    leat__state s = state_of(l);
    if (delivered > l->delivered_rows) delivered = l->delivered_rows;
    uint64_t rows = l->started_at + delivered;
    /* All ranks are at the same batch, but in a smaller last one their shares differ. */
    bool done = delivered == l->delivered_rows && l->first_batch + l->delivered_batches >= l->run_batches;
    s.position = done ? l->run_used : LEAT_MIN(rows * l->opts.world, s.count);
    leat__buf_init(&out, LEAT__MEM_LOADER, LEAT_LOADER_STATE_MAX);
    int rc = leat__state_write(&s, &out);
    if (rc == 0) {
        *size = out.len;
        if (out.len + 1 > capacity)
            rc = leat__fail(err, LEAT_ELIMIT, "loader state: %zu bytes are needed", out.len + 1);
        else memcpy(text, leat__buf_str(&out), out.len + 1);
    } else {
        leat__fail_nomem(err, LEAT_LOADER_STATE_MAX, "the state");
    }
    leat__buf_reset(&out);
    return rc;
}

int leat_loader_restore(leat_loader *l, const char *text, leat_error *err)
{
    leat__state s;

    LEAT_TRY(leat__loader_check(l, err));
    LEAT_REQUIRE(text != NULL, err);
    leat__state mine = state_of(l);
    if (l->next != NULL) mine.global_batch = (uint64_t)l->next->opts.batch_size * l->opts.world;
    LEAT_TRY(leat__state_parse(&s, text, err));
    LEAT_TRY(leat__state_check(&mine, &s, err));
    /* rows p = j * world + rank below the position are done */
    uint64_t rows = leat__share_count(s.position, l->opts.rank, l->opts.world);
    stop_epoch(l);
    leat__change_apply(l);
    /* An epoch that began without its last samples ends without them, in any world. */
    leat__loader_extent(l, s.left_out && s.position > 0 && l->opts.drop_last == LEAT_DROP_EMPTY);
    if (rows > l->run_rows) rows = l->run_rows;
    uint64_t batch = s.position >= l->run_used ? l->run_batches : s.position / s.global_batch;
    int rc = begin_at(l, s.epoch, rows, batch, err);
    if (rc != 0) stop_epoch(l);
    return rc;
}
