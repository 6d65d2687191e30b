/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/queue.h"
#include "base/thread.h"

static void first_in_first_out_and_bounded(void **state)
{
    leat__queue *q;
    void *item;
    int a, b, c;
    (void)state;
    assert_ok(leat__queue_open(&q, 2, NULL));
    assert_ok(leat__queue_push(q, &a, 0));
    assert_ok(leat__queue_push(q, &b, 0));
    assert_code(LEAT_ETIMEDOUT, leat__queue_push(q, &c, 0));
    assert_code(LEAT_ETIMEDOUT,
                leat__queue_push(q, &c, leat__clock_ns() + 2 * LEAT_NS_PER_MS));
    assert_int_equal(leat__queue_len(q), 2);
    assert_ok(leat__queue_pop(q, &item, 0));
    assert_ptr_equal(item, &a);
    leat__queue_close(q);
    assert_code(LEAT_ECLOSED, leat__queue_push(q, &c, UINT64_MAX));
    assert_ok(leat__queue_pop(q, &item, 0));
    assert_ptr_equal(item, &b);
    assert_code(LEAT_ECLOSED, leat__queue_pop(q, &item, UINT64_MAX));
    leat__queue_destroy(&q);
    leat__queue_destroy(&q);
    assert_no_leaks();
}

static void empty_queue_times_out_and_bad_capacity_fails(void **state)
{
    leat__queue *q;
    leat_error err;
    void *item;
    (void)state;
    assert_code(LEAT_EINVAL, leat__queue_open(&q, 0, &err));
    assert_code(LEAT_EINVAL, leat__queue_open(&q, SIZE_MAX, &err));
    if (leat__fault_available()) {
        leat__fault_arm(LEAT__FAULT_ALLOC, 1, false);
        assert_code(LEAT_ENOMEM, leat__queue_open(&q, 4, &err));
        leat__fault_disarm();
    }
    assert_ok(leat__queue_open(&q, 1, NULL));
    uint64_t t = leat__clock_ns();
    assert_code(LEAT_ETIMEDOUT, leat__queue_pop(q, &item, t + 3 * LEAT_NS_PER_MS));
    assert_true(leat__clock_ns() - t >= 3 * LEAT_NS_PER_MS);
    leat__queue_destroy(&q);
}

enum { THREADS = 4, EACH = 20000 };

typedef struct shared {
    leat__queue *q;
    _Atomic uint64_t sum, popped;
    _Atomic int producers;
} shared;

static void produce(void *arg)
{
    shared *s = arg;
    for (uintptr_t i = 1; i <= EACH; i++)
        assert_ok(leat__queue_push(s->q, (void *)i, UINT64_MAX));
    if (atomic_fetch_sub(&s->producers, 1) == 1) leat__queue_close(s->q);
}

static void consume(void *arg)
{
    shared *s = arg;
    void *item;
    while (leat__queue_pop(s->q, &item, UINT64_MAX) == 0) {
        atomic_fetch_add(&s->sum, (uintptr_t)item);
        atomic_fetch_add(&s->popped, 1);
    }
}

static void nothing_is_lost_between_threads(void **state)
{
    shared s = {.producers = THREADS};
    leat__thread threads[2 * THREADS];
    (void)state;
    assert_ok(leat__queue_open(&s.q, 16, NULL));
    for (int i = 0; i < 2 * THREADS; i++)
        assert_ok(leat__thread_start(&threads[i], "queue", i % 2 ? produce : consume, &s,
                                     NULL));
    for (int i = 0; i < 2 * THREADS; i++)
        leat__thread_join(&threads[i]);
    assert_int_equal(s.popped, THREADS * EACH);
    assert_true(s.sum == (uint64_t)THREADS * EACH * (EACH + 1) / 2);
    leat__queue_destroy(&s.q);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_in_first_out_and_bounded),
        cmocka_unit_test(empty_queue_times_out_and_bad_capacity_fails),
        cmocka_unit_test(nothing_is_lost_between_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
