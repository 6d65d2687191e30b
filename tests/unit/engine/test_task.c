/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks that finish elsewhere (leat_task_done), children, groups, lists.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "stages.h"

#include "base/mem.h"
#include "base/thread.h"
#include "engine/sched.h"

static void lists_keep_order(void **state)
{
    leat__node n[4] = {0};
    leat__list l = {0};
    for (int i = 0; i < 4; i++) leat__list_push(&l, &n[i]);
    leat__list_remove(&l, &n[2]);
    leat__list_remove(&l, &n[0]);
    assert_int_equal(l.count, 2);
    assert_ptr_equal(leat__list_pop(&l), &n[1]);
    assert_ptr_equal(leat__list_pop(&l), &n[3]);
    assert_null(leat__list_pop(&l));
    assert_null(l.tail);
}

/* A device that completes requests on its own thread, like io_uring. */
typedef struct device {
    leat__mutex lock;
    leat__cond filled;
    leat_task *queue[64]; /* a ring: more are never in flight */
    uint32_t head, tail;
    bool closed;
    leat__thread thread;
    atomic_int at_once, most;
} device;

/* The oldest task, or NULL when the device is closed. */
static leat_task *pop(device *d)
{
    leat__mutex_lock(&d->lock);
    while (d->head == d->tail && !d->closed) leat__cond_wait(&d->filled, &d->lock);
    leat_task *t = d->head == d->tail ? NULL : d->queue[d->head++ % 64];
    leat__mutex_unlock(&d->lock);
    return t;
}

static void complete(void *arg)
{
    device *d = arg;
    for (leat_task *t; (t = pop(d)) != NULL;) {
        leat__sleep_ns(20000);
        atomic_fetch_sub(&d->at_once, 1);
        leat_error err;
        int rc = number_of(t) % 9 == 4 ? leat__fail(&err, LEAT_EIO, "the device failed") : 0;
        leat_task_done(t, rc, rc ? &err : NULL);
    }
}

static int submit(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    device *d = cookie;
    int now = atomic_fetch_add(&d->at_once, 1) + 1;
    if (now > atomic_load(&d->most)) atomic_store(&d->most, now);
    leat__mutex_lock(&d->lock);
    d->queue[d->tail++ % 64] = task;
    leat__cond_signal(&d->filled);
    leat__mutex_unlock(&d->lock);
    return LEAT_FLOW_PENDING;
}

static void tasks_may_end_elsewhere(void **state)
{
    numbers n = {.end = 300, .bytes = 5};
    device d = {0};
    rig r = {0};
    leat__mutex_init(&d.lock);
    leat__cond_init(&d.filled);
    assert_int_equal(leat__thread_start(&d.thread, "device", complete, &d, NULL), 0);
    leat_flow_opts fo = rig_opts(&r, 2, 10000);
    fo.on_error = LEAT_FLOW_GIVE_BACK;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "device", submit, &d)};
    s[1].lane = LEAT_LANE_IO;
    s[1].parallel = 6; /* more at once than the lane's one busy thread */
    rig_start(&r, &fo, s, 2);
    leat_task *t;
    for (int i = 0; i < 300; i++) {
        assert_int_equal(leat_flow_next(r.flow, &t, -1, NULL), 0);
        assert_int_equal(number_of(t), i);
        assert_int_equal(t->status, i % 9 == 4 ? LEAT_EIO : 0);
        if (t->status) assert_string_equal(t->error->message, "the device failed");
        leat_task_release(t);
    }
    assert_in_range(atomic_load(&d.most), 2, 6);
    rig_close(&r); /* with nothing pending */

    n = (numbers){.end = 100000};
    fo = rig_opts(&r, 2, 10000);
    rig_start(&r, &fo, s, 2);
    leat__sleep_ns(3 * LEAT_NS_PER_MS);
    rig_close(&r); /* waits for pending tasks */
    assert_int_equal(n.live, 0);
    leat__mutex_lock(&d.lock);
    d.closed = true;
    leat__cond_broadcast(&d.filled);
    leat__mutex_unlock(&d.lock);
    leat__thread_join(&d.thread);
    leat__cond_destroy(&d.filled);
    leat__mutex_destroy(&d.lock);
}

static int three_children(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    numbers *kids = cookie;
    if (number_of(task) == 4) return leat_task_emit(task, NULL, 0, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        LEAT_TRY(leat_task_emit(task, (void *)(uintptr_t)(number_of(task) * 10 + (unsigned)i), 7,
                                number_release, kids));
        atomic_fetch_add(&kids->live, 1);
    }
    return leat_task_emit(task, NULL, 0, NULL, NULL) == LEAT_ELIMIT
               ? 0
               : leat__fail(err, LEAT_EINTERNAL, "a fourth child was taken");
}

static void children_come_in_their_parents_order(void **state)
{
    numbers n = {.end = 4, .bytes = 5}, kids = {0};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 3, 10000);
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_EXPAND, "x", three_children, &kids)};
    s[1].count = 3;
    s[1].bytes_out = 7;
    rig_start(&r, &fo, s, 2);
    leat_task *t;
    for (unsigned i = 0; i < 12; i++) {
        assert_int_equal(leat_flow_next(r.flow, &t, -1, NULL), 0);
        assert_int_equal(number_of(t), i / 3 * 10 + i % 3);
        assert_int_equal(t->seq, i);
        assert_int_equal(t->bytes, 7);
        leat_task_release(t);
    }
    assert_int_equal(leat_flow_next(r.flow, &t, -1, NULL), 0);
    assert_null(t);
    rig_close(&r);
    assert_int_equal(n.live + kids.live, 0);
}

static int sum_members(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < task->member_count; i++) {
        sum += number_of(task->members[i]);
        task->bytes += task->members[i]->bytes; /* the group keeps their bytes */
        task->members[i]->bytes = 0;
    }
    task->data = (void *)(uintptr_t)(sum * 100 + task->member_count);
    return 0;
}

static int closes_at_ten(void *cookie, const leat_task *task)
{
    return number_of(task) == 10;
}

static void groups_are_formed_in_order(void **state)
{
    numbers n = {.end = 14, .bytes = 5};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 3, 10000);
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_GATHER, "sum", sum_members, NULL)};
    s[1].count = 4;
    s[1].closes = closes_at_ten;
    rig_start(&r, &fo, s, 2);
    /* 0-3, 4-7, 8-10 (closed early), 11-13 (the rest) */
    const uint64_t sums[] = {6, 22, 27, 36}, counts[] = {4, 4, 3, 3};
    leat_task *t;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(leat_flow_next(r.flow, &t, -1, NULL), 0);
        assert_int_equal(number_of(t), sums[i] * 100 + counts[i]);
        assert_int_equal(t->bytes, counts[i] * 5);
        assert_null(t->members);
        leat_task_release(t);
    }
    assert_int_equal(leat_flow_next(r.flow, &t, -1, NULL), 0);
    assert_null(t);
    rig_close(&r);
    assert_int_equal(n.live, 0);
}

static int emit_in_a_map(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    return leat_task_emit(task, NULL, 0, NULL, NULL) == LEAT_ESTATE ? 99 : 0;
}

static void misuse_is_an_error(void **state)
{
    numbers n = {.end = 1};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 1, 1000);
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "m", emit_in_a_map, NULL)};
    rig_start(&r, &fo, s, 2);
    leat_task *t;
    leat_error err;
    assert_int_equal(leat_flow_next(r.flow, &t, -1, &err), LEAT_EINTERNAL);
    assert_non_null(strstr(err.message, "returned 99"));
    leat_task_release(NULL);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_keep_order),
        cmocka_unit_test(tasks_may_end_elsewhere),
        cmocka_unit_test(children_come_in_their_parents_order),
        cmocka_unit_test(groups_are_formed_in_order),
        cmocka_unit_test(misuse_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
