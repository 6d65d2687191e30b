/* SPDX-License-Identifier: Apache-2.0
 *
 * Small stages for tests with exact expectations: numbers 0 … n-1 come from a source, one
 * function checks each.
 */
#ifndef LEAT_TEST_ENGINE_STAGES_H
#define LEAT_TEST_ENGINE_STAGES_H

#include <leat/flow.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/num.h"
#include "base/thread.h"

typedef struct numbers {
    uint64_t next, end;
    uint64_t bytes;  /* each */
    atomic_int live; /* emitted and not yet released */
} numbers;

static inline void number_release(void *cookie, void *data)
{
    (void)data;
    atomic_fetch_sub(&((numbers *)cookie)->live, 1);
}

static inline int number_source(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    numbers *n = cookie;
    (void)ctx;
    (void)err;
    if (n->next == n->end) return LEAT_FLOW_END;
    task->data = (void *)(uintptr_t)n->next++;
    task->bytes = n->bytes;
    task->release = number_release;
    task->release_cookie = n;
    atomic_fetch_add(&n->live, 1);
    return 0;
}

static inline uint64_t number_of(const leat_task *task)
{
    return (uint64_t)(uintptr_t)task->data;
}

static inline leat_stage number_stage(numbers *n)
{
    leat_stage s;
    leat_stage_init(&s);
    s.kind = LEAT_STAGE_SOURCE;
    s.name = "numbers";
    s.process = number_source;
    s.cookie = n;
    s.bytes_out = n->bytes;
    return s;
}

static inline leat_stage plain_stage(leat_stage_kind kind, const char *name,
                                     int (*process)(void *, void *, leat_task *, leat_error *), void *cookie)
{
    leat_stage s;
    leat_stage_init(&s);
    s.kind = kind;
    s.name = name;
    s.process = process;
    s.cookie = cookie;
    return s;
}

/* Waits up to 30 s, enough for a busy machine, until *at is `want`: tests say what must happen,
 * not when. */
static inline void await_int(atomic_int *at, int want)
{
    for (int i = 0; i < 30000 && atomic_load(at) != want; i++) leat__sleep_ns(LEAT_NS_PER_MS);
    assert_int_equal(atomic_load(at), want);
}

/* A started flow of these stages on its own pool of `threads`; asserts on failure. */
typedef struct rig {
    leat_pool *pool;
    leat_budget *budget;
    leat_flow *flow;
} rig;

static inline leat_flow_opts rig_opts(rig *r, uint32_t threads, uint64_t limit)
{
    leat_pool_opts po;
    leat_pool_opts_init(&po);
    po.threads = threads;
    po.io_threads = 8;
    assert_int_equal(leat_pool_open(&r->pool, &po, NULL), 0);
    assert_int_equal(leat_budget_open(&r->budget, limit, NULL), 0);
    leat_flow_opts fo;
    leat_flow_opts_init(&fo);
    fo.pool = r->pool;
    fo.budget = r->budget;
    fo.fixed = 1;
    return fo;
}

static inline void rig_start(rig *r, const leat_flow_opts *fo, const leat_stage *stages, uint32_t count)
{
    leat_error err;
    leat__error_reset(&err);
    assert_int_equal(leat_flow_open(&r->flow, fo, &err), 0);
    for (uint32_t i = 0; i < count; i++)
        if (leat_flow_add(r->flow, &stages[i], &err) != 0) fail_msg("%s", err.message);
    if (leat_flow_start(r->flow, &err) != 0) fail_msg("%s", err.message);
}

static inline void rig_close(rig *r)
{
    leat_flow_close(&r->flow);
    leat_pool_close(&r->pool);
    if (r->budget) {
        leat_budget_stats s;
        leat_budget_read(r->budget, &s);
        assert_int_equal(s.used, 0);
        assert_int_equal(s.floors, 0);
    }
    leat_budget_close(&r->budget);
}

#endif
