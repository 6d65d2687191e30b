/* SPDX-License-Identifier: Apache-2.0
 *
 * The flow of a pass. A chunk's bytes are released to the budget when the caller has taken it.
 *
 * A flow never runs out of budget if the bounds of its stages hold (docs/internals/engine.md). They
 * hold for lines up to a length that follows from the budget. At a larger chunk the source ends the
 * flow. After all chunks before it are taken, that chunk is processed alone on the caller's thread,
 * with the whole budget. Then another flow continues.
 */
#include "curate/text_flow.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/str.h"
#include "base/thread.h"

#define SHELF 16
#define SHELF_BYTES (4u << 20)  /* larger chunks are not reused */
#define SMALL_LINE (256u << 10) /* the flow always accepts lines up to this length */
#define LINE_FACTS 256          /* bytes of an entry in the list of bad lines, without paths */

/* Upper bounds for the memory of the tasks of a flow. */
typedef struct bounds {
    uint64_t line;     /* bytes of the longest line */
    uint64_t chunk;    /* bytes of a chunk of lines */
    uint64_t need;     /* extra bytes while it is processed */
    uint64_t out;      /* bytes of a chunk with its results */
    uint64_t per_line; /* bytes of the results of a line */
    uint64_t least;    /* bytes of the whole flow, with one task at a time */
} bounds;

/* Chunks are reused: allocating a block for each would cost a page fault per 4 KiB, a third of a
 * pass's CPU time. */
typedef struct pass_run {
    leat__text_files *files;
    const leat__text_pass *pass;
    bounds b;
    leat_budget *budget;
    uint64_t room;           /* budget for a chunk that is processed alone */
    leat__text_chunk *first; /* read before the flow started */
    leat__text_chunk *alone; /* a chunk too large for the flow, which ended because of it */
    uint64_t done;           /* bytes of files taken so far */
    leat__mutex lock;        /* guards the list of free chunks */
    leat__text_chunk *shelf[SHELF];
    uint32_t shelved, shelf_max;
} pass_run;

/* ---- bounds ---- */

static uint64_t longest_path(const leat__text_files *files)
{
    size_t n = 0;
    for (uint32_t i = 0; i < files->count; i++) n = LEAT_MAX(n, strlen(files->path[i]));
    return n;
}

/* Returns the bytes of a chunk that has a line of this length. */
static uint64_t chunk_bytes(uint64_t line)
{
    uint64_t room = LEAT__CHUNK_BYTES;
    while (room <= line) room *= 2; /* including its newline */
    return sizeof(leat__text_chunk) + room + LEAT__TEXT_PAD;
}

/* Returns the bytes of the results of some lines. `slack`: for buffers that double when they grow. */
static uint64_t result_bytes(const leat__text_pass *p, const bounds *b, uint64_t len, uint64_t lines,
                             bool slack)
{
    uint64_t made = p->per_byte * len + lines * b->per_line;
    return len + (slack ? len / 2 : len / 4) + made * (slack ? 2 : 1) + (64u << 10);
}

static uint64_t worker_bytes(const leat__text_pass *p)
{
    return p->ram + SHELF_BYTES; /* one free chunk per worker */
}

/* Returns the bytes of a chunk that is processed alone; the reader holds as much again. */
static uint64_t alone_bytes(const leat__text_pass *p, const bounds *b, const leat__text_chunk *c)
{
    return 2 * (sizeof *c + c->capacity) + p->ram + p->need(p->cookie, c->longest) +
           result_bytes(p, b, c->len, c->lines, true);
}

/* Returns the same for any chunk whose longest line has this many bytes. */
static uint64_t line_bytes(const leat__text_pass *p, const bounds *b, uint64_t line)
{
    leat__text_chunk c = {.capacity = chunk_bytes(line), .longest = line, .lines = LEAT__CHUNK_LINES};
    c.len = c.capacity;
    return alone_bytes(p, b, &c);
}

static bounds bounds_of(const leat__text_files *files, const leat__text_pass *p, uint64_t line)
{
    bounds b = {.line = line, .chunk = chunk_bytes(line)};
    b.per_line = p->per_line + 2 * longest_path(files) + LINE_FACTS;
    b.need = p->need(p->cookie, line) + result_bytes(p, &b, b.chunk, LEAT__CHUNK_LINES, true);
    b.out = b.chunk + result_bytes(p, &b, b.chunk, LEAT__CHUNK_LINES, false);
    /* a task being processed, a result held by the caller, a worker: as in leat__sched_floor */
    b.need = LEAT_MAX(b.need, b.out);
    b.least = b.chunk + b.need + b.out + worker_bytes(p);
    return b;
}

uint64_t leat__text_flow_need(const leat__text_files *files, const leat__text_pass *p, uint64_t line)
{
    bounds b = bounds_of(files, p, SMALL_LINE);
    return LEAT_MAX(b.least, line_bytes(p, &b, line));
}

/* Chooses bounds that take at most half of the budget beyond the minimum; the rest is for running in
 * parallel. */
static bounds choose_bounds(const leat__text_files *files, const leat__text_pass *p, uint64_t room)
{
    bounds b = bounds_of(files, p, SMALL_LINE);
    uint64_t most = room > b.least ? b.least + (room - b.least) / 2 : b.least;
    for (uint64_t line = files->max_line; line > SMALL_LINE; line -= line / 8) {
        bounds other = bounds_of(files, p, line);
        if (other.least <= most) return other;
    }
    return b;
}

/* Returns the longest line that can be processed alone. */
static uint64_t room_line(const leat__text_pass *p, const bounds *b, uint64_t room, uint64_t most)
{
    uint64_t low = b->line, high = LEAT_MAX(most, low) + 1;
    while (high - low > 1) {
        uint64_t mid = low + (high - low) / 2;
        if (line_bytes(p, b, mid) <= room) low = mid;
        else high = mid;
    }
    return low;
}

/* True for a chunk within the bounds of the flow. */
static bool fits_flow(const pass_run *r, const leat__text_chunk *c)
{
    return !c->partial && !c->no_room && c->longest <= r->b.line && sizeof *c + c->capacity <= r->b.chunk;
}

/* Returns the memory limit of the run that leaves `bytes` for the pass. Other shares do not grow
 * faster than the limit. */
static uint64_t limit_for(const pass_run *r, uint64_t bytes, uint64_t *limit)
{
    leat_budget_stats bs;
    leat_budget_read(r->budget, &bs);
    *limit = r->pass->memory ? r->pass->memory : bs.limit;
    double scale = (double)*limit / (double)LEAT_MAX(r->room, 1u);
    return (uint64_t)((double)bytes * LEAT_MAX(scale, 1.0)) + (1u << 20);
}

static int refuse_pass(const pass_run *r, leat_error *err)
{
    uint64_t limit, need = limit_for(r, r->b.least, &limit);
    char had[24];
    return leat__fail(err, LEAT_EBUDGET, "%s: the memory limit of %s is too low (raise `memory` to %lluM)",
                      r->pass->name, leat__format_bytes(limit, had, sizeof had),
                      (unsigned long long)leat__ceil_div(need, 1u << 20));
}

int leat__text_refuse_line(const leat__text_files *f, uint32_t file, uint64_t number, uint64_t bytes,
                           uint64_t limit, uint64_t need, leat_error *err)
{
    char size[24], had[24];
    return leat__fail(err, LEAT_EBUDGET,
                      "%s: line %llu of %llu bytes (%s) does not fit the memory limit of %s (raise `memory` "
                      "to %lluM, or lower `max_document` to list such lines as bad)",
                      f->path[file], (unsigned long long)number, (unsigned long long)bytes,
                      leat__format_bytes(bytes, size, sizeof size),
                      leat__format_bytes(limit, had, sizeof had),
                      (unsigned long long)leat__ceil_div(need, 1u << 20));
}

static int refuse_chunk(const pass_run *r, const leat__text_chunk *c, leat_error *err)
{
    uint64_t bytes = c->too_long ? c->skipped_bytes : c->longest, number = c->line, limit;
    leat__line line;
    for (size_t at = 0; !c->too_long && leat__text_chunk_next(c, &at, &line);)
        if (line.len == c->longest) number = line.number;
    uint64_t need = LEAT_MAX(alone_bytes(r->pass, &r->b, c), line_bytes(r->pass, &r->b, bytes));
    need = limit_for(r, need, &limit);
    leat__line_numbers_want(&r->files->numbers, c->file);
    return leat__text_refuse_line(r->files, c->file, number, bytes, limit, need, err);
}

/* ---- chunks ---- */

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

/* Reads a chunk into *out; NULL at the end of the files. */
static int next_chunk(pass_run *r, leat__text_chunk **out, leat_error *err)
{
    bool end;
    *out = r->first;
    r->first = NULL;
    if (*out) return 0;
    leat__text_chunk *c = take_chunk(r);
    if (!c) return leat__fail_nomem(err, sizeof *c, "a chunk of lines");
    int rc = leat__text_files_read(r->files, c, &end, err);
    if (rc != 0 || end) leat__text_chunk_free(c);
    else *out = c;
    return rc;
}

static int stage_read(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    pass_run *r = cookie;
    leat__text_chunk *c;
    LEAT_TRY(next_chunk(r, &c, err));
    if (!c) return LEAT_FLOW_END;
    if (!fits_flow(r, c)) {
        r->alone = c;
        return LEAT_FLOW_END;
    }
    task->data = c;
    task->release = release_chunk;
    task->release_cookie = r;
    task->bytes = sizeof *c + c->capacity; /* memory of a reused chunk for results counts as `ram` */
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
    return r->pass->need(r->pass->cookie, c->longest) + result_bytes(r->pass, &r->b, c->len, c->lines, true);
}

/* Shrinks the result buffers to their content. */
static void trim_results(leat__text_chunk *c)
{
    for (int i = 0; i < LEAT__CHUNK_OUTS; i++) {
        leat__buf *b = &c->out[i];
        char *data = b->len > 0 ? leat__realloc(b->cat, b->data, b->len + 1) : NULL;
        if (b->len == 0) leat__buf_reset(b);
        if (!data) continue;
        b->data = data;
        b->cap = b->len + 1;
    }
}

static int stage_work(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    pass_run *r = cookie;
    leat__text_chunk *c = task->data;
    uint64_t may = LEAT_MIN(task->bytes + result_bytes(r->pass, &r->b, c->len, c->lines, true), r->b.out);
    leat__text_chunk_sum(r->files, c);
    LEAT_TRY(r->pass->work(r->pass->cookie, ctx, c, err));
    if (c->capacity > SHELF_BYTES) { /* the lines are no longer needed */
        leat__free(c->data);
        c->data = NULL;
        c->capacity = 0;
    }
    if (leat__text_chunk_held(c) > may) trim_results(c);
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
    read.bytes_out = r->b.chunk;
    read.cookie = r;
    read.process = stage_read;
    LEAT_TRY(leat_flow_add(flow, &read, err));
    leat_stage_init(&work);
    work.kind = LEAT_STAGE_MAP;
    work.name = r->pass->name;
    work.ram = worker_bytes(r->pass);
    work.bytes_out = r->b.out;
    work.scratch = r->b.need - r->b.out;
    work.cookie = r;
    work.setup = stage_setup;
    work.teardown = stage_teardown;
    work.process = stage_work;
    work.need = stage_need;
    return leat_flow_add(flow, &work, err);
}

static int take_chunk_of(pass_run *r, leat__text_chunk *c, leat_error *err)
{
    const leat__text_pass *p = r->pass;
    r->done += c->len + c->too_long;
    LEAT_TRY(leat__line_numbers_check(&r->files->numbers, err));
    LEAT_TRY(leat__text_files_take(r->files, c, err));
    LEAT_TRY(p->take(p->cookie, c, err));
    if (p->tell && p->tell(p->cookie, LEAT_MIN(r->done, r->files->total), r->files->total) != 0)
        return leat__fail(err, LEAT_ECANCELED, "the run was stopped");
    return 0;
}

static int take_all(leat_flow *flow, pass_run *r, leat_error *err)
{
    for (;;) {
        leat_task *task = NULL;
        LEAT_TRY(leat_flow_next(flow, &task, -1, err));
        if (!task) return 0;
        int rc = take_chunk_of(r, task->data, err);
        leat_task_release(task);
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

/* Returns the number of free chunks to keep: one per worker and one more; with much memory also those
 * that may be prefetched. */
static uint32_t shelf_size(leat_budget *budget, uint32_t threads, uint32_t prefetch)
{
    leat_budget_stats bs;
    leat_budget_read(budget, &bs);
    uint64_t spare = bs.limit / 64 / SHELF_BYTES;
    return (uint32_t)LEAT_MIN(threads + 1 + LEAT_MIN(spare, prefetch), SHELF);
}

/* Runs a flow until the files end or a chunk must be processed alone. */
static int run_flow(pass_run *r, leat_pool *pool, uint32_t threads, const leat_log *log, leat_error *err)
{
    leat_flow *flow = NULL;
    leat_flow_opts fo;
    int rc;
    leat_flow_opts_init(&fo);
    fo.name = r->pass->name;
    fo.pool = pool;
    fo.budget = r->budget;
    fo.threads = threads;
    fo.io_depth = 1;
    fo.loans = 1;
    fo.prefetch = 2 + leat_pool_threads(pool);
    r->shelf_max = shelf_size(r->budget, leat_pool_threads(pool), fo.prefetch);
    if (log) fo.log = *log;
    LEAT_GO(rc, out, leat_flow_open(&flow, &fo, err));
    LEAT_GO(rc, out, add_stages(flow, r, err));
    LEAT_GO(rc, out, leat_flow_start(flow, err));
    LEAT_GO(rc, out, take_all(flow, r, err));
    if (r->pass->meter) add_meters(flow, r->pass->meter);
out:
    leat_flow_close(&flow);
    return rc;
}

static void empty_shelf(pass_run *r)
{
    while (r->shelved > 0) leat__text_chunk_free(r->shelf[--r->shelved]);
}

/* Processes and takes a chunk on this thread. */
static int process_alone(pass_run *r, leat__text_chunk *c, leat_error *err)
{
    const leat__text_pass *p = r->pass;
    void *worker = NULL;
    uint64_t begin = leat__clock_ns();
    int rc = p->setup(p->cookie, &worker, err);
    leat__text_chunk_sum(r->files, c);
    if (rc == 0) rc = p->work(p->cookie, worker, c, err);
    p->teardown(p->cookie, worker);
    uint64_t worked = leat__clock_ns();
    if (rc == 0) rc = take_chunk_of(r, c, err);
    if (!p->meter) return rc;
    p->meter->elapsed_ns += leat__clock_ns() - begin;
    p->meter->work_ns += worked - begin;
    p->meter->take_ns += leat__clock_ns() - worked;
    return rc;
}

/* Processes r->alone, then reads the next chunk. That becomes the first of the next flow, or is
 * processed alone, too. */
static int run_alone(pass_run *r, leat_error *err)
{
    leat__text_chunk *c = r->alone;
    uint64_t bytes = 0;
    bool end;
    int rc = 0;
    r->alone = NULL;
    empty_shelf(r);
    r->files->pause = 0;
    if (c->partial) rc = leat__text_files_read(r->files, c, &end, err);
    r->files->pause = r->b.chunk - sizeof *c - LEAT__TEXT_PAD;
    if (rc == 0) bytes = alone_bytes(r->pass, &r->b, c);
    if (rc == 0 && (c->no_room || leat_budget_try(r->budget, LEAT_BUDGET_SCRATCH, bytes) != 0)) {
        bytes = 0;
        rc = refuse_chunk(r, c, err);
    }
    if (rc == 0) rc = process_alone(r, c, err);
    leat_budget_release(r->budget, LEAT_BUDGET_SCRATCH, bytes);
    leat__text_chunk_free(c);
    if (rc != 0) return rc;
    LEAT_TRY(next_chunk(r, &c, err));
    if (c && !fits_flow(r, c)) r->alone = c;
    else r->first = c;
    return 0;
}

static int run_all(pass_run *r, leat_pool *pool, uint32_t threads, const leat_log *log, leat_error *err)
{
    for (;;) {
        LEAT_TRY(run_flow(r, pool, threads, log, err));
        if (!r->alone) return 0;
        while (r->alone) LEAT_TRY(run_alone(r, err));
    }
}

int leat__text_flow_run(leat__text_files *files, const leat__text_pass *pass, leat_budget *budget,
                        uint32_t threads, const leat_log *log, leat_error *err)
{
    pass_run r = {.files = files, .pass = pass, .budget = budget};
    leat_pool *pool = NULL;
    leat_pool_opts po;
    leat_budget_stats bs;
    int rc;
    leat_budget_read(budget, &bs);
    r.room = bs.limit - LEAT_MIN(bs.limit, bs.used);
    r.b = choose_bounds(files, pass, r.room);
    if (r.b.least > r.room) return refuse_pass(&r, err);
    files->room_line = room_line(pass, &r.b, r.room, files->max_line);
    files->pause = r.b.chunk - sizeof(leat__text_chunk) - LEAT__TEXT_PAD;
    leat__mutex_init(&r.lock);
    leat_pool_opts_init(&po);
    po.threads = threads;
    po.io_threads = 1;
    rc = leat_pool_open(&pool, &po, err);
    if (rc == 0) rc = run_all(&r, pool, threads, log, err);
    leat_pool_close(&pool);
    leat__text_chunk_free(r.first);
    leat__text_chunk_free(r.alone);
    empty_shelf(&r);
    leat__mutex_destroy(&r.lock);
    files->room_line = files->pause = 0;
    return rc;
}
