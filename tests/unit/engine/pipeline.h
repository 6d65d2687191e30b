/* SPDX-License-Identifier: Apache-2.0
 *
 * Random pipelines for the engine's tests: a seed gives stages of all kinds with sizes, failures,
 * drops, lanes and policies; a plain serial model computes the expected output. Used with virtual
 * workers (schedule search) and with real threads.
 */
#ifndef LEAT_TEST_ENGINE_PIPELINE_H
#define LEAT_TEST_ENGINE_PIPELINE_H

#include <leat/flow.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/rng.h"
#include "engine/sched.h"

enum { PIPE_STAGES = 8, PIPE_MAX = 4096 };

typedef struct pipe_item {
    uint64_t id;
    uint64_t canary;
    uint32_t made; /* expand: children so far */
} pipe_item;

typedef struct pipe_stage {
    struct pipeline *pipe;
    leat_stage decl;
    uint32_t index;
    bool exact_need;
    uint64_t last_seq; /* ordered: the last number that ran */
    atomic_int inside;
} pipe_stage;

typedef struct pipeline {
    uint64_t seed;
    uint32_t stages;
    uint32_t roots, given;
    uint32_t fail_per_1000, drop_per_1000, later_per_1000, async_per_1000;
    bool sink, slow;
    leat_flow_opts opts;
    pipe_stage stage[PIPE_STAGES];
    atomic_int live;   /* items that exist */
    atomic_int broken; /* invariant violations */
    atomic_uint_fast64_t sunk_sum;
    atomic_uint sunk;
    uint64_t sunk_order;  /* hash in order, of an ordered sink */
    leat_task *later[64]; /* async tasks to be done by pipe_poll */
    uint32_t later_count;
} pipeline;

static inline uint64_t pipe_mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * UINT64_C(0x9E3779B97F4A7C15) + b + 1;
    x ^= x >> 31;
    x *= UINT64_C(0xBF58476D1CE4E5B9);
    x ^= x >> 29;
    return x * UINT64_C(0x94D049BB133111EB) ^ (x >> 32);
}

static inline bool pipe_chance(const pipeline *p, uint64_t id, uint32_t stage, uint32_t salt,
                               uint32_t per_1000)
{
    return pipe_mix(pipe_mix(id, stage * 16 + salt), p->seed) % 1000 < per_1000;
}

static inline bool pipe_fails(const pipeline *p, uint64_t id, uint32_t stage)
{
    /* A failing source ends the flow: rarer, and only when the timing does not matter. */
    if (stage == 0) return !p->opts.unordered && pipe_chance(p, id, stage, 1, p->fail_per_1000 / 10);
    return pipe_chance(p, id, stage, 1, p->fail_per_1000);
}

static inline bool pipe_drops(const pipeline *p, uint64_t id, uint32_t stage)
{
    return pipe_chance(p, id, stage, 2, p->drop_per_1000);
}

static inline uint32_t pipe_kids(const pipeline *p, uint64_t id, uint32_t stage)
{
    return (uint32_t)(pipe_mix(pipe_mix(id, stage + 77), p->seed) % 6);
}

static inline bool pipe_closes(const pipeline *p, uint64_t id, uint32_t stage)
{
    return pipe_chance(p, id, stage, 3, 150);
}

static inline uint64_t pipe_bytes(const pipe_stage *s, uint64_t id)
{
    return s->decl.bytes_out ? pipe_mix(id, s->index + 5) % (s->decl.bytes_out + 1) : 0;
}

/* ---- Payloads ---- */

static inline void pipe_release(void *cookie, void *data)
{
    pipeline *p = cookie;
    pipe_item *item = data;
    if (!item || item->canary != ~item->id) {
        atomic_fetch_add(&p->broken, 1);
        return;
    }
    item->canary = 0;
    leat__free(item);
    atomic_fetch_sub(&p->live, 1);
}

static inline pipe_item *pipe_item_new(pipeline *p, uint64_t id)
{
    pipe_item *item = LEAT_NEW(MISC, pipe_item);
    if (!item) return NULL;
    item->id = id;
    item->canary = ~id;
    item->made = 0;
    atomic_fetch_add(&p->live, 1);
    return item;
}

static inline uint64_t pipe_id(const leat_task *task)
{
    /* A group that failed when out of memory has no data. */
    return task->data ? ((const pipe_item *)task->data)->id : 0;
}

static inline void pipe_set_id(leat_task *task, uint64_t id)
{
    pipe_item *item = task->data;
    item->id = id;
    item->canary = ~id;
}

/* ---- Stages ---- */

static inline int pipe_source(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    pipe_stage *s = cookie;
    pipeline *p = s->pipe;
    (void)ctx;
    if (atomic_fetch_add(&s->inside, 1) != 0) atomic_fetch_add(&p->broken, 1);
    int rc = 0;
    if (p->given == p->roots) {
        rc = LEAT_FLOW_END;
    } else if (pipe_chance(p, s->last_seq++, 0, 9, p->later_per_1000)) {
        rc = LEAT_FLOW_LATER;
    } else {
        uint64_t id = pipe_mix(p->seed, p->given);
        pipe_item *item = pipe_item_new(p, id);
        if (!item) {
            rc = leat__fail_nomem(err, sizeof *item, "an item");
        } else {
            p->given++;
            task->data = item;
            task->bytes = pipe_bytes(s, id);
            task->release = pipe_release;
            task->release_cookie = p;
            if (pipe_fails(p, id, 0)) rc = leat__fail(err, LEAT_EDATA, "made to fail");
        }
    }
    atomic_fetch_sub(&s->inside, 1);
    return rc;
}

static inline void pipe_check_order(pipe_stage *s, const leat_task *task)
{
    if (!(s->decl.flags & LEAT_STAGE_ORDERED)) return;
    if (task->seq + 1 <= s->last_seq && s->decl.kind != LEAT_STAGE_EXPAND)
        atomic_fetch_add(&s->pipe->broken, 1);
    s->last_seq = task->seq + 1;
}

static inline int pipe_map(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    pipe_stage *s = cookie;
    pipeline *p = s->pipe;
    (void)ctx;
    int now = atomic_fetch_add(&s->inside, 1) + 1;
    bool one = s->decl.flags & LEAT_STAGE_ORDERED;
    if ((one && now > 1) || (s->decl.parallel && now > (int)s->decl.parallel))
        atomic_fetch_add(&p->broken, 1);
    pipe_check_order(s, task);
    uint64_t id = pipe_id(task);
    int rc = 0;
    if (pipe_fails(p, id, s->index)) {
        rc = leat__fail(err, LEAT_EDATA, "made to fail");
    } else if (pipe_drops(p, id, s->index)) {
        rc = LEAT_FLOW_DROP;
    } else {
        if (s->decl.bytes_out) task->bytes = pipe_bytes(s, id);
        pipe_set_id(task, pipe_mix(id, s->index));
    }
    atomic_fetch_sub(&s->inside, 1);
    if (rc == 0 && pipe_chance(p, id, s->index, 4, p->async_per_1000)) {
        leat_task_done(task, 0, NULL); /* allowed before process() has returned */
        return LEAT_FLOW_PENDING;
    }
    return rc;
}

static inline int pipe_expand(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    pipe_stage *s = cookie;
    pipeline *p = s->pipe;
    (void)ctx;
    pipe_check_order(s, task);
    pipe_item *item = task->data;
    uint64_t id = item->id;
    bool fails = pipe_fails(p, id, s->index);
    uint32_t total = pipe_kids(p, id, s->index), most = fails ? total / 2 : total;
    if (fails && item->made == most) return leat__fail(err, LEAT_EDATA, "made to fail");
    for (uint32_t i = 0; i < s->decl.count && item->made < most; i++, item->made++) {
        uint64_t kid = pipe_mix(pipe_mix(id, item->made), s->index);
        pipe_item *k = pipe_item_new(p, kid);
        if (!k) return leat__fail_nomem(err, sizeof *k, "a child");
        int rc = leat_task_emit(task, k, pipe_bytes(s, kid), pipe_release, p);
        if (rc != 0) {
            pipe_release(p, k);
            return leat__fail(err, rc, "a child was refused");
        }
    }
    return item->made < most || fails ? LEAT_FLOW_MORE : 0;
}

static inline int pipe_gather(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    pipe_stage *s = cookie;
    pipeline *p = s->pipe;
    (void)ctx;
    uint64_t id = s->index, bytes = 0;
    for (uint32_t i = 0; i < task->member_count; i++) {
        leat_task *m = task->members[i];
        id = pipe_mix(id, pipe_id(m) + (uint64_t)(int64_t)m->status);
        bytes += m->bytes;
        if (!s->decl.bytes_out) m->bytes = 0; /* the group takes them over */
    }
    pipe_item *item = pipe_item_new(p, id);
    if (!item) return leat__fail_nomem(err, sizeof *item, "a group");
    task->data = item;
    task->release = pipe_release;
    task->release_cookie = p;
    task->bytes = s->decl.bytes_out ? pipe_bytes(s, id) : bytes;
    if (pipe_fails(p, id, s->index)) return leat__fail(err, LEAT_EDATA, "made to fail");
    return 0;
}

static inline int pipe_sink(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    pipe_stage *s = cookie;
    pipeline *p = s->pipe;
    (void)ctx;
    (void)err;
    pipe_check_order(s, task);
    uint64_t id = pipe_mix(pipe_id(task), (uint64_t)(int64_t)task->status);
    atomic_fetch_add(&p->sunk_sum, id);
    atomic_fetch_add(&p->sunk, 1);
    if (s->decl.flags & LEAT_STAGE_ORDERED) p->sunk_order = pipe_mix(p->sunk_order, id);
    return 0;
}

static inline uint64_t pipe_need(void *cookie, const leat_task *task)
{
    const pipe_stage *s = cookie;
    uint64_t children = s->decl.kind == LEAT_STAGE_EXPAND ? s->decl.count : 1;
    if (!task || s->decl.kind == LEAT_STAGE_GATHER || s->decl.kind == LEAT_STAGE_EXPAND)
        return s->decl.scratch + s->decl.bytes_out * children;
    return s->decl.scratch + (s->decl.bytes_out ? pipe_bytes(s, pipe_id(task)) : 0);
}

static inline int pipe_closing(void *cookie, const leat_task *task)
{
    const pipe_stage *s = cookie;
    return pipe_closes(s->pipe, pipe_id(task), s->index);
}

/* ---- Making one from a seed ---- */

static inline void pipe_stage_random(pipeline *p, uint32_t i, uint32_t kinds, leat__rng *r)
{
    pipe_stage *s = &p->stage[i];
    leat_stage *d = &s->decl;
    static const char *const names[PIPE_STAGES] = {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"};
    s->pipe = p;
    s->index = i;
    leat_stage_init(d);
    d->name = names[i];
    d->cookie = s;
    d->lane = (leat_lane)(leat__rng_below(r, 3) == 0 ? leat__rng_below(r, LEAT_LANES) : 0);
    d->category = (leat_budget_cat)leat__rng_below(r, LEAT_BUDGET_CATS);
    d->bytes_out = leat__rng_below(r, 3) ? leat__rng_below(r, 1000) : 0;
    d->scratch = leat__rng_below(r, 3) == 0 ? leat__rng_below(r, 2000) : 0;
    d->ram = leat__rng_below(r, 8) == 0 ? leat__rng_below(r, 500) : 0;
    d->parallel = leat__rng_below(r, 4) == 0 ? 1 + (uint32_t)leat__rng_below(r, 3) : 0;
    if (i > 0 && leat__rng_below(r, 4) == 0) d->flags |= LEAT_STAGE_ORDERED;
    if (leat__rng_below(r, 4) == 0) d->need = pipe_need;
    uint32_t kind = (uint32_t)leat__rng_below(r, kinds);
    if (i == 0) {
        d->kind = LEAT_STAGE_SOURCE;
        d->process = pipe_source;
    } else if (p->sink && i + 1 == p->stages) {
        d->kind = LEAT_STAGE_SINK;
        d->process = pipe_sink;
        d->bytes_out = 0;
        d->need = NULL;
    } else if (kind == 3) {
        d->kind = LEAT_STAGE_GATHER;
        d->process = pipe_gather;
        d->count = 1 + (uint32_t)leat__rng_below(r, 5);
        if (leat__rng_below(r, 3) == 0) d->closes = pipe_closing;
    } else if (kind == 4) {
        d->kind = LEAT_STAGE_EXPAND;
        d->process = pipe_expand;
        d->count = 1 + (uint32_t)leat__rng_below(r, 3);
    } else {
        d->kind = LEAT_STAGE_MAP;
        d->process = pipe_map;
    }
}

static inline void pipe_random(pipeline *p, uint64_t seed)
{
    leat__rng r;
    leat__rng_init(&r, seed, 1, 0, 0);
    memset(p, 0, sizeof *p);
    p->seed = seed;
    p->stages = 1 + (uint32_t)leat__rng_below(&r, PIPE_STAGES - 1);
    p->sink = p->stages > 1 && leat__rng_below(&r, 3) == 0;
    p->roots = (uint32_t)leat__rng_below(&r, 40);
    uint32_t odds[] = {0, 0, 20, 200};
    p->fail_per_1000 = odds[leat__rng_below(&r, 4)];
    p->drop_per_1000 = odds[leat__rng_below(&r, 4)];
    p->later_per_1000 = odds[leat__rng_below(&r, 4)];
    p->async_per_1000 = odds[leat__rng_below(&r, 4)];
    for (uint32_t i = 0; i < p->stages; i++) pipe_stage_random(p, i, 5, &r);
    leat_flow_opts_init(&p->opts);
    p->opts.fixed = 1; /* no thread scans again by itself: a lost wake-up is a hang */
    p->opts.on_error = (leat_flow_policy)leat__rng_below(&r, 3);
    p->opts.mode = leat__rng_below(&r, 4) == 0 ? LEAT_FLOW_BATCH : LEAT_FLOW_STREAMING;
    p->opts.unordered = leat__rng_below(&r, 4) == 0;
    p->opts.loans = 1 + (uint32_t)leat__rng_below(&r, 3);
    p->opts.prefetch = leat__rng_below(&r, 2) ? 1 + (uint32_t)leat__rng_below(&r, 8) : 0;
    p->opts.io_depth = leat__rng_below(&r, 2) ? 1 + (uint32_t)leat__rng_below(&r, 4) : 0;
    p->opts.threads = leat__rng_below(&r, 2) ? 1 + (uint32_t)leat__rng_below(&r, 3) : 0;
    /* Unordered and fail: the number of results before the failure is not specified. */
    if (p->opts.on_error == LEAT_FLOW_FAIL) p->opts.unordered = 0;
}

/* Opens and starts p's flow with a budget of its floor times 1 to 4 (`slack` decides). */
static inline int pipe_start(pipeline *p, leat_pool *pool, leat_budget *budget, uint64_t slack,
                             leat_flow **flow, leat_error *err)
{
    int rc = 0;
    leat_flow *f = NULL;
    p->opts.pool = pool;
    p->opts.budget = budget;
    LEAT_GO(rc, out, leat_flow_open(&f, &p->opts, err));
    for (uint32_t i = 0; i < p->stages; i++) LEAT_GO(rc, out, leat_flow_add(f, &p->stage[i].decl, err));
    leat__sched_bounds(f);
    uint64_t floor = leat__sched_floor(f);
    if (slack != UINT64_MAX) {
        uint64_t limit = floor + (floor * 3 * (slack % 1000)) / 1000;
        LEAT_GO(rc, out, leat_budget_set_limit(budget, LEAT_MAX(limit, 1), err));
    }
    LEAT_GO(rc, out, leat_flow_start(f, err));
    *flow = f;
    f = NULL;
out:
    leat_flow_close(&f);
    return rc;
}

/* ---- Expected output ---- */

typedef struct pipe_el {
    uint64_t id;
    int status;
    bool gone, fatal;
} pipe_el;

static inline bool pipe_kills(const pipeline *p, const pipe_el *e)
{
    return e->status && (e->fatal || p->opts.on_error == LEAT_FLOW_FAIL);
}

static inline bool pipe_vanishes(const pipeline *p, const pipe_el *e)
{
    return e->gone || (e->status && !e->fatal && p->opts.on_error == LEAT_FLOW_SKIP);
}

typedef struct pipe_expect {
    uint64_t result[PIPE_MAX];
    uint32_t count;
    bool fails;
    uint64_t order; /* for sinks */
    uint64_t sum;
} pipe_expect;

static inline uint32_t pipe_model_gather(const pipeline *p, uint32_t i, const pipe_el *in, uint32_t n,
                                         pipe_el *out)
{
    const leat_stage *d = &p->stage[i].decl;
    uint32_t made = 0, members = 0;
    uint64_t id = i;
    int bad = 0;
    bool fatal = false;
    for (uint32_t k = 0; k < n; k++) {
        const pipe_el *e = &in[k];
        bool closes = d->closes && pipe_closes(p, e->id, i);
        if (!pipe_vanishes(p, e)) {
            id = pipe_mix(id, e->id + (uint64_t)(int64_t)e->status);
            members++;
            if (pipe_kills(p, e)) bad = e->status, fatal = e->fatal;
        }
        if (!closes && members < d->count && !bad && k + 1 < n) continue;
        if (members > 0) {
            if (!bad && pipe_fails(p, id, i)) bad = LEAT_EDATA;
            out[made++] = (pipe_el){.id = id, .status = bad, .fatal = fatal};
        }
        members = 0;
        id = i;
        bad = 0;
    }
    return made;
}

static inline uint32_t pipe_model_expand(const pipeline *p, uint32_t i, const pipe_el *in, uint32_t n,
                                         pipe_el *out)
{
    uint32_t made = 0;
    for (uint32_t k = 0; k < n && made + 8 < PIPE_MAX; k++) {
        if (in[k].gone || in[k].status) {
            if (!pipe_vanishes(p, &in[k])) out[made++] = in[k];
            continue;
        }
        bool fails = pipe_fails(p, in[k].id, i);
        uint32_t total = pipe_kids(p, in[k].id, i), most = fails ? total / 2 : total;
        for (uint32_t c = 0; c < most; c++) out[made++] = (pipe_el){.id = pipe_mix(pipe_mix(in[k].id, c), i)};
        if (fails && p->opts.on_error != LEAT_FLOW_SKIP)
            out[made++] = (pipe_el){.id = in[k].id, .status = LEAT_EDATA};
    }
    return made;
}

static inline bool pipe_model(const pipeline *p, pipe_expect *x)
{
    static _Thread_local pipe_el buffers[2][PIPE_MAX];
    pipe_el *in = buffers[0], *out = buffers[1];
    uint32_t n = 0;
    for (bool dead = false; n < p->roots && !dead; n++) {
        uint64_t id = pipe_mix(p->seed, n);
        dead = pipe_fails(p, id, 0);
        in[n] = (pipe_el){.id = id, .status = dead ? LEAT_EDATA : 0, .fatal = dead};
    }
    for (uint32_t i = 1; i < p->stages; i++) {
        const leat_stage *d = &p->stage[i].decl;
        if (d->kind == LEAT_STAGE_GATHER || d->kind == LEAT_STAGE_EXPAND) {
            n = d->kind == LEAT_STAGE_GATHER ? pipe_model_gather(p, i, in, n, out)
                                             : pipe_model_expand(p, i, in, n, out);
            pipe_el *swap = in;
            in = out;
            out = swap;
        } else if (d->kind == LEAT_STAGE_MAP) {
            for (uint32_t k = 0; k < n; k++) {
                pipe_el *e = &in[k];
                if (e->gone || e->status) continue;
                if (pipe_fails(p, e->id, i)) e->status = LEAT_EDATA;
                else if (pipe_drops(p, e->id, i)) e->gone = true;
                else e->id = pipe_mix(e->id, i);
            }
        }
        if (n + 64 > PIPE_MAX) return false;
    }
    memset(x, 0, offsetof(pipe_expect, count));
    x->count = 0;
    x->fails = false;
    x->order = x->sum = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (pipe_vanishes(p, &in[k])) continue;
        if (pipe_kills(p, &in[k])) {
            x->fails = true;
            break;
        }
        uint64_t id = pipe_mix(in[k].id, (uint64_t)(int64_t)in[k].status);
        x->result[x->count++] = id;
        x->order = pipe_mix(x->order, id);
        x->sum += id;
    }
    return true;
}

/* Pulls everything, keeping up to `loans` results; returns NULL or an error text. */
static inline const char *pipe_drive(pipeline *p, leat_flow *f, const pipe_expect *x, leat_error *err)
{
    if (p->sink) {
        int rc = leat_flow_wait(f, -1, err);
        if (x->fails) return rc == LEAT_EDATA ? NULL : "a failure did not fail the flow";
        if (rc != 0) return "the flow failed";
        if (atomic_load(&p->sunk) != x->count) return "tasks lost or doubled in the sink";
        if (atomic_load(&p->sunk_sum) != x->sum) return "other tasks came to the sink";
        bool ordered = p->stage[p->stages - 1].decl.flags & LEAT_STAGE_ORDERED;
        if (ordered && p->sunk_order != x->order) return "order at the sink";
        return NULL;
    }
    leat_task *held[8] = {NULL};
    uint32_t got = 0, at = 0;
    uint64_t sum = 0;
    const char *wrong = NULL;
    for (;;) {
        leat_task *task = NULL;
        int rc = leat_flow_next(f, &task, -1, err);
        if (rc != 0) {
            if (!(x->fails && rc == LEAT_EDATA)) wrong = "the flow failed";
            break;
        }
        if (!task) {
            if (x->fails) wrong = "a failure did not fail the flow";
            break;
        }
        uint64_t id = pipe_mix(pipe_id(task), (uint64_t)(int64_t)task->status);
        sum += id;
        if (got >= x->count) wrong = "too many results";
        else if (!p->opts.unordered && x->result[got] != id) wrong = "a result is not the one expected here";
        got++;
        leat_task_release(held[at]);
        held[at] = task;
        at = (at + 1) % (p->opts.loans);
        /* held[at] is released before the next is requested: never more than `loans` */
        leat_task_release(held[at]);
        held[at] = NULL;
        if (wrong) break;
    }
    for (uint32_t i = 0; i < 8; i++) leat_task_release(held[i]);
    if (!wrong && got != x->count) wrong = "results lost";
    if (!wrong && sum != x->sum) wrong = "other results";
    return wrong;
}

/* Prints the pipeline and where its tasks are, for a failing seed. */
static inline void pipe_print(const pipeline *p, const leat_flow *f)
{
    static const char *const kinds[] = {"", "source", "map", "expand", "gather", "sink"};
    fprintf(stderr, "roots %u fail %u drop %u policy %d mode %d unordered %u borrowed %u\n", p->roots,
            p->fail_per_1000, p->drop_per_1000, p->opts.on_error, p->opts.mode, p->opts.unordered,
            p->opts.loans);
    for (uint32_t i = 0; i < p->stages; i++) {
        const leat_stage *d = &p->stage[i].decl;
        fprintf(stderr, "  %s %s lane %d%s%s count %u out %llu scratch %llu ram %llu parallel %u", d->name,
                kinds[d->kind], d->lane, d->flags ? " ordered" : "", d->closes ? " closes" : "", d->count,
                (unsigned long long)d->bytes_out, (unsigned long long)d->scratch, (unsigned long long)d->ram,
                d->parallel);
        if (f && i < f->stage_count)
            fprintf(stderr, " | ready %u running %u turn %llu%s", f->stages[i].ready.count,
                    f->stages[i].running, (unsigned long long)f->stages[i].turn,
                    f->stages[i].starved ? " starved" : "");
        fprintf(stderr, "\n");
    }
    for (uint32_t i = 0; f && i < f->segment_count; i++) {
        const leat__segment *g = &f->segments[i];
        fprintf(stderr, "  segment %u: stages %u-%u base %llu low %llu next %llu inside %u of %u%s\n", i,
                g->first, g->last, (unsigned long long)g->base, (unsigned long long)g->low,
                (unsigned long long)g->next, g->inside, g->window, g->closed ? " closed" : "");
        for (uint64_t q = g->base; q < g->next; q++) {
            const leat__node *n = leat__segment_at(g, q);
            if (n)
                fprintf(stderr, "    %llu: state %d stage %u status %d held %llu kids %u\n",
                        (unsigned long long)q, n->state, n->stage, n->pub.status, (unsigned long long)n->held,
                        n->kids.count);
        }
    }
    leat_budget_stats b;
    if (!f) return;
    leat_budget_read(f->budget, &b);
    fprintf(stderr, "  budget: limit %llu used %llu floors %llu; out %u borrowed %u\n",
            (unsigned long long)b.limit, (unsigned long long)b.used, (unsigned long long)b.floors,
            f->out.count, f->loans);
}

/* After everything is closed. */
static inline const char *pipe_after(pipeline *p, leat_budget *budget)
{
    leat_budget_stats stats;
    leat_budget_read(budget, &stats);
    if (stats.used != 0) return "bytes are still charged";
    if (stats.floors != 0) return "a floor is left";
    if (stats.peak > stats.limit) return "the peak passed the budget";
    if (atomic_load(&p->live) != 0) return "items leaked or freed twice";
    if (atomic_load(&p->broken) != 0) return "order, limit or ownership was broken";
    return NULL;
}

#endif
