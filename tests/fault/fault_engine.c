/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine under faults: every allocation and thread start (and every read of a stage that
 * reads) fails in turn, once and from then on. The caller gets an error or everything; nothing is
 * leaked, lost or freed twice; nothing hangs.
 */
#include <unistd.h>

#include "fault.h"

#include "../unit/engine/pipeline.h"
#include "engine/replay.h"

typedef struct world {
    pipeline p;
    uint64_t seed;
    bool threads;
} world;

static void fresh(void *ctx)
{
    world *w = ctx;
    pipe_random(&w->p, w->seed);
    w->p.later_per_1000 = 0;
    w->p.opts.fixed = w->seed % 2; /* the controller's thread can fail to start, too */
}

static int drive(world *w, leat_flow *flow, leat_error *err)
{
    if (w->p.sink) return leat_flow_wait(flow, -1, err);
    for (;;) {
        leat_task *task = NULL;
        int rc = leat_flow_next(flow, &task, -1, err);
        if (rc != 0 || !task) return rc;
        leat_task_release(task);
    }
}

static int run(void *ctx, leat_error *err)
{
    world *w = ctx;
    int rc = 0;
    leat_pool *pool = NULL;
    leat_budget *budget = NULL;
    leat_flow *flow = NULL;
    leat_pool_opts po;
    leat_pool_opts_init(&po);
    po.threads = 2;
    po.io_threads = 2;
    LEAT_GO(rc, out,
            w->threads ? leat_pool_open(&pool, &po, err)
                       : leat__replay_open(&pool, &po, w->seed, NULL, NULL, err));
    LEAT_GO(rc, out, leat_budget_open(&budget, 1, err));
    LEAT_GO(rc, out, pipe_start(&w->p, pool, budget, w->seed * 37, &flow, err));
    rc = drive(w, flow, err);
    if (rc == LEAT_EDATA) rc = 0; /* a failure of the pipeline itself, not an injected one */
out:
    leat_flow_close(&flow);
    leat_pool_close(&pool);
    leat_budget_close(&budget);
    return rc;
}

static bool clean(void *ctx, int rc)
{
    world *w = ctx;
    return atomic_load(&w->p.live) == 0 && atomic_load(&w->p.broken) == 0;
}

/* A flow with all defaults: the shared pool, its own budget, a stage that reads a file. */
typedef struct reader {
    int left;
    atomic_int live;
} reader;

static int list(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    reader *r = cookie;
    return r->left-- > 0 ? 0 : LEAT_FLOW_END;
}

static void unread(void *cookie, void *data)
{
    leat__free(data);
    atomic_fetch_sub(&((reader *)cookie)->live, 1);
}

static int read_block(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    reader *r = cookie;
    void *block = leat__alloc(LEAT__MEM_PAGE, 512);
    if (!block) return leat__fail_nomem(err, 512, "a block");
    if (LEAT_FAULT(LEAT__FAULT_READ)) {
        leat__free(block);
        return leat__fail(err, LEAT_EIO, "the read failed");
    }
    memset(block, 7, 512);
    atomic_fetch_add(&r->live, 1);
    task->data = block;
    task->bytes = 512;
    task->release = unread;
    task->release_cookie = r;
    return 0;
}

static int run_reader(void *ctx, leat_error *err)
{
    reader *r = ctx;
    r->left = 20;
    leat_flow *flow = NULL;
    leat_stage s[2];
    leat_stage_init(&s[0]);
    leat_stage_init(&s[1]);
    s[0].kind = LEAT_STAGE_SOURCE;
    s[0].name = "list";
    s[0].process = list;
    s[0].cookie = r;
    s[1].kind = LEAT_STAGE_MAP;
    s[1].name = "read";
    s[1].process = read_block;
    s[1].cookie = r;
    s[1].lane = LEAT_LANE_IO;
    s[1].bytes_out = 512;
    int rc = 0;
    LEAT_GO(rc, out, leat_flow_open(&flow, NULL, err));
    LEAT_GO(rc, out, leat_flow_add(flow, &s[0], err));
    LEAT_GO(rc, out, leat_flow_add(flow, &s[1], err));
    LEAT_GO(rc, out, leat_flow_start(flow, err));
    for (;;) {
        leat_task *task = NULL;
        LEAT_GO(rc, out, leat_flow_next(flow, &task, -1, err));
        if (!task) break;
        leat_task_release(task);
    }
out:
    leat_flow_close(&flow);
    return rc;
}

static bool reader_clean(void *ctx, int rc)
{
    return atomic_load(&((reader *)ctx)->live) == 0;
}

int main(void)
{
    if (!leat__fault_available()) return 77;
    static world w;
    int bad = 0;
    const char *text = getenv("LEAT_FAULT_SEEDS");
    uint64_t seeds = text ? strtoull(text, NULL, 0) : 12;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        w = (world){.seed = seed};
        fault_scenario replayed = {
            .name = "replayed", .before = fresh, .run = run, .after = clean, .ctx = &w};
        bad += fault_run(&replayed);
        w = (world){.seed = seed, .threads = true};
        fault_scenario threaded = {
            .name = "threaded", .before = fresh, .run = run, .after = clean, .ctx = &w};
        bad += fault_run(&threaded);
    }
    reader r = {0};
    fault_scenario reading = {.name = "reading", .run = run_reader, .after = reader_clean, .ctx = &r};
    bad += fault_run(&reading);
    return bad == 0 ? 0 : 1;
}
