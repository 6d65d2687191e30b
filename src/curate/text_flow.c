/* SPDX-License-Identifier: Apache-2.0
 *
 * The flow of a pass. A chunk's bytes are released to the budget when the caller has taken it.
 */
#include "curate/text_flow.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/thread.h"

#define SHELF 16
#define SHELF_BYTES (4u << 20) /* larger chunks are not kept */

/* Chunks are reused: a new block for each would cost a page fault every 4 KiB, a third of the CPU
 * time of a pass. */
typedef struct pass_run {
    leat__text_files *files;
    const leat__text_pass *pass;
    leat__mutex lock; /* guards the list of free chunks */
    leat__text_chunk *shelf[SHELF];
    uint32_t shelved, shelf_max;
} pass_run;

static leat__text_chunk *take_chunk(pass_run *r)
{
    leat__text_chunk *c = NULL;
    leat__mutex_lock(&r->lock);
    if (r->shelved > 0) c = r->shelf[--r->shelved];
    leat__mutex_unlock(&r->lock);
    return c ? c : leat__text_chunk_new();
}

static void release_chunk(void *cookie, void *data)
{
    pass_run *r = cookie;
    leat__text_chunk *c = data;
    if (c->capacity <= LEAT__CHUNK_BYTES + LEAT__TEXT_PAD && leat__text_chunk_held(c) <= SHELF_BYTES) {
        leat__text_chunk_clear(c);
        leat__mutex_lock(&r->lock);
        if (r->shelved < r->shelf_max) {
            r->shelf[r->shelved++] = c;
            c = NULL;
        }
        leat__mutex_unlock(&r->lock);
    }
    leat__text_chunk_free(c);
}

static int stage_read(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    pass_run *r = cookie;
    bool end;
    leat__text_chunk *c = take_chunk(r);
    if (!c) return leat__fail_nomem(err, sizeof *c, "a chunk of lines");
    int rc = leat__text_files_read(r->files, c, &end, err);
    if (rc != 0 || end) {
        leat__text_chunk_free(c);
        return rc != 0 ? rc : LEAT_FLOW_END;
    }
    task->data = c;
    task->release = release_chunk;
    task->release_cookie = r;
    task->bytes = sizeof *c + c->capacity; /* memory that a reused chunk keeps for results is
                                            * part of `ram` */
    return 0;
}

static int stage_setup(void *cookie, const leat_worker *worker, void **ctx, leat_error *err)
{
    pass_run *r = cookie;
    return r->pass->setup(r->pass->cookie, ctx, err);
}

static void stage_teardown(void *cookie, void *ctx)
{
    pass_run *r = cookie;
    r->pass->teardown(r->pass->cookie, ctx);
}

static uint64_t stage_need(void *cookie, const leat_task *task)
{
    pass_run *r = cookie;
    const leat__text_chunk *c = task->data;
    /* twice per_line: a buffer doubles when it grows */
    return r->pass->need(r->pass->cookie, c->longest) + c->len + c->len / 2 +
           c->lines * 2 * r->pass->per_line + (64u << 10);
}

static int stage_work(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    pass_run *r = cookie;
    leat__text_chunk *c = task->data;
    LEAT_TRY(r->pass->work(r->pass->cookie, ctx, c, err));
    if (c->capacity > SHELF_BYTES) { /* the lines are no longer needed */
        leat__free(c->data);
        c->data = NULL;
        c->capacity = 0;
    }
    task->bytes = leat__text_chunk_held(c);
    return 0;
}

static int add_stages(leat_flow *flow, pass_run *r, leat_error *err)
{
    leat_stage read, work;
    leat_stage_init(&read);
    read.kind = LEAT_STAGE_SOURCE;
    read.name = "read";
    read.lane = LEAT_LANE_IO;
    read.bytes_out = LEAT__CHUNK_BYTES + (24u << 10);
    read.cookie = r;
    read.process = stage_read;
    LEAT_TRY(leat_flow_add(flow, &read, err));
    leat_stage_init(&work);
    work.kind = LEAT_STAGE_MAP;
    work.name = r->pass->name;
    work.ram = r->pass->ram + SHELF_BYTES; /* one free chunk per worker */
    work.bytes_out = LEAT_MAX(r->pass->bytes_out, 2 * LEAT__CHUNK_BYTES);
    work.cookie = r;
    work.setup = stage_setup;
    work.teardown = stage_teardown;
    work.process = stage_work;
    work.need = stage_need;
    return leat_flow_add(flow, &work, err);
}

static int take_all(leat_flow *flow, pass_run *r, leat_error *err)
{
    const leat__text_pass *p = r->pass;
    uint64_t done = 0;
    for (;;) {
        leat_task *task = NULL;
        LEAT_TRY(leat_flow_next(flow, &task, -1, err));
        if (!task) return 0;
        leat__text_chunk *c = task->data;
        done += c->len + c->too_long;
        int rc = p->take(p->cookie, c, err);
        leat_task_release(task);
        if (rc == 0 && p->tell && p->tell(p->cookie, LEAT_MIN(done, r->files->total), r->files->total) != 0)
            rc = leat__fail(err, LEAT_ECANCELED, "the run was stopped");
        if (rc != 0) return rc;
    }
}

static void add_meters(leat_flow *flow, leat__text_meter *m)
{
    leat_flow_stats fs = {0};
    leat_stage_stats read, work;
    if (leat_flow_read(flow, &fs, sizeof fs) != 0 || leat_flow_read_stage(flow, 0, &read) != 0 ||
        leat_flow_read_stage(flow, 1, &work) != 0)
        return;
    m->elapsed_ns += fs.elapsed_ns;
    m->take_ns += fs.elapsed_ns - LEAT_MIN(fs.consumer_wait_ns, fs.elapsed_ns);
    m->blocked_ns += fs.blocked_ns;
    m->read_ns += read.busy_ns;
    m->work_ns += work.busy_ns / LEAT_MAX(fs.threads, 1u);
}

void leat__text_meter_load(const leat__text_meter *m, leat_text_load *out)
{
    double all = (double)m->elapsed_ns;
    *out = (leat_text_load){0};
    if (m->elapsed_ns == 0) return;
    out->read = (double)m->read_ns / all;
    out->work = (double)m->work_ns / all;
    out->write = (double)m->take_ns / all;
    out->memory = (double)m->blocked_ns / all;
    const double share[] = {out->read, out->work, out->write, out->memory};
    out->limit = LEAT_TEXT_LIMIT_READING;
    for (uint32_t i = 1; i < LEAT_COUNT(share); i++)
        if (share[i] > share[out->limit - 1]) out->limit = i + 1;
}

const char *leat__text_limit_name(uint32_t limit)
{
    static const char *const names[] = {"none", "reading", "cpus", "writing", "memory"};
    return limit < LEAT_COUNT(names) ? names[limit] : "none";
}

const char *leat__text_load_words(const leat_text_load *load, char out[160])
{
    static const char *const names[] = {"nothing", "reading", "the CPUs", "writing", "memory"};
    snprintf(out, 160,
             "limited by %s: reading %.2f, CPUs %.2f, writing %.2f, waiting for memory %.2f of the time",
             names[LEAT_MIN(load->limit, 4u)], load->read, load->work, load->write, load->memory);
    return out;
}

void leat__text_load_json(const leat_text_load *load, leat__json *j)
{
    leat__json_kstr(j, "limit", leat__text_limit_name(load->limit));
    leat__json_kdouble(j, "read_share", load->read);
    leat__json_kdouble(j, "work_share", load->work);
    leat__json_kdouble(j, "write_share", load->write);
    leat__json_kdouble(j, "memory_share", load->memory);
}

/* One free chunk per worker and one more; with much memory also those that may be prefetched. */
static uint32_t shelf_size(leat_budget *budget, uint32_t threads, uint32_t prefetch)
{
    leat_budget_stats bs;
    leat_budget_read(budget, &bs);
    uint64_t spare = bs.limit / 64 / SHELF_BYTES;
    return (uint32_t)LEAT_MIN(threads + 1 + LEAT_MIN(spare, prefetch), SHELF);
}

int leat__text_flow_run(leat__text_files *files, const leat__text_pass *pass, leat_budget *budget,
                        uint32_t threads, const leat_log *log, leat_error *err)
{
    pass_run r = {.files = files, .pass = pass};
    leat_pool *pool = NULL;
    leat_flow *flow = NULL;
    leat_pool_opts po;
    leat_flow_opts fo;
    int rc;
    leat__mutex_init(&r.lock);
    leat_pool_opts_init(&po);
    po.threads = threads;
    po.io_threads = 1;
    LEAT_GO(rc, out, leat_pool_open(&pool, &po, err));
    leat_flow_opts_init(&fo);
    fo.name = pass->name;
    fo.pool = pool;
    fo.budget = budget;
    fo.threads = threads;
    fo.io_depth = 1;
    fo.prefetch = 2 + leat_pool_threads(pool);
    r.shelf_max = shelf_size(budget, leat_pool_threads(pool), fo.prefetch);
    if (log) fo.log = *log;
    LEAT_GO(rc, out, leat_flow_open(&flow, &fo, err));
    LEAT_GO(rc, out, add_stages(flow, &r, err));
    LEAT_GO(rc, out, leat_flow_start(flow, err));
    LEAT_GO(rc, out, take_all(flow, &r, err));
    if (pass->meter) add_meters(flow, pass->meter);
out:
    leat_flow_close(&flow);
    leat_pool_close(&pool);
    while (r.shelved > 0) leat__text_chunk_free(r.shelf[--r.shelved]);
    leat__mutex_destroy(&r.lock);
    return rc;
}

uint64_t leat__text_flow_max_line(const leat__text_pass *pass, uint64_t budget, uint64_t wanted)
{
    /* the chunk itself, its results and the needs of the stage, with half of the budget left */
    while (wanted > LEAT__CHUNK_BYTES && 4 * wanted + pass->need(pass->cookie, wanted) > budget / 2)
        wanted -= wanted / 8;
    return wanted;
}

uint64_t leat__text_flow_line_memory(const leat__text_pass *pass, uint64_t bytes)
{
    bytes += bytes / 4; /* leat__text_flow_max_line goes down in steps of an eighth */
    return 2 * (4 * bytes + pass->need(pass->cookie, bytes));
}
