/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/probe/meter.c: sums over threads, the histogram, names, and behaviour when out of
 * memory.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/thread.h"
#include "probe/meter.h"
#include "probe/meter_set.h"

static leat__meters *open_set(const char *name)
{
    leat__meters *set = NULL;
    leat_error err = {0};
    assert_int_equal(leat__meters_open(&set, name, &err), 0);
    return set;
}

static void test_counter_and_gauge(void **state)
{
    leat__meters *set = open_set("t");
    leat__counter *c = leat__counter_make(set, "read_bytes", "stage=read", "bytes read");
    leat__gauge *g = leat__gauge_make(set, "queue_len", NULL, NULL);
    assert_int_equal(leat__counter_value(c), 0);
    leat__counter_add(c, 5);
    leat__counter_add(c, UINT64_C(1) << 40);
    assert_int_equal(leat__counter_value(c), (UINT64_C(1) << 40) + 5);
    leat__gauge_set(g, -7);
    assert_int_equal(leat__gauge_value(g), -7);

    assert_ptr_equal(leat__counter_make(set, "read_bytes", "stage=read", NULL), c);
    assert_ptr_not_equal(leat__counter_make(set, "read_bytes", "stage=write", NULL), c);
    assert_ptr_not_equal(leat__counter_make(set, "read_bytes", NULL, NULL), c);

    leat__counter_add(NULL, 1);
    leat__gauge_set(NULL, 1);
    leat__timer_record(NULL, 1);
    leat__timer_stats stats;
    leat__timer_since(NULL, NULL, &stats);
    assert_int_equal(leat__counter_value(NULL), 0);
    assert_int_equal(leat__gauge_value(NULL), 0);
    assert_int_equal(stats.count, 0);
    leat__meters_close(&set);
    assert_null(set);
    leat__meters_close(&set); /* a second close is allowed */
    assert_int_equal(leat__mem_blocks(), 0);
}

static void test_set_names(void **state)
{
    leat__meters *a = open_set("loader"), *b = open_set("loader"), *c = open_set("loader");
    assert_string_equal(a->name, "loader");
    assert_string_equal(b->name, "loader-2");
    assert_string_equal(c->name, "loader-3");
    leat__meters_close(&b);
    b = open_set("loader");
    assert_string_equal(b->name, "loader-2");
    leat__meters_close(&a);
    leat__meters_close(&b);
    leat__meters_close(&c);

    char too_long[1024];
    memset(too_long, 'x', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    leat_error err = {0};
    assert_int_equal(leat__meters_open(&a, too_long, &err), LEAT_ELIMIT);
    assert_null(a);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void test_names(void **state)
{
    static const char *const bad[] = {"",      "9a",      "a-b",     "a b",    "a.b",
                                      "x_sum", "x_total", "x_count", "x_info", "x_bucket"};
    static const char *const bad_labels[] = {
        "", "a", "=x", "a=b,", "9=x", "a b=c", "set=x", "le=5", "a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9"};
    leat__meters *set = open_set("t"), *other = open_set("o");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(leat__meter_name_ok(bad[i]));
        assert_null(leat__counter_make(set, bad[i], NULL, NULL));
    }
    for (size_t i = 0; i < sizeof bad_labels / sizeof bad_labels[0]; i++) {
        assert_null(leat__gauge_make(set, "good", bad_labels[i], NULL));
    }
    assert_null(leat__counter_make(NULL, "good", NULL, NULL));
    assert_non_null(leat__gauge_make(set, "good", "settled=x,length=", NULL));

    /* a name has one kind in all sets; and names that would become one family */
    assert_null(leat__counter_make(set, "good", NULL, NULL));
    assert_null(leat__timer_make(other, "good", NULL, NULL));
    assert_non_null(leat__gauge_make(other, "good", NULL, NULL));
    assert_non_null(leat__timer_make(set, "decode_ns", NULL, NULL));
    assert_null(leat__timer_make(set, "decode", NULL, NULL));
    assert_null(leat__counter_make(other, "decode_seconds", NULL, NULL));
    assert_non_null(leat__counter_make(other, "decode", NULL, NULL));
    assert_non_null(leat__counter_make(other, "wait_ns", NULL, NULL));
    assert_null(leat__gauge_make(other, "wait_seconds", NULL, NULL));
    leat__meters_close(&set);
    leat__meters_close(&other);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void test_buckets(void **state)
{
    /* Every bucket's top is in it, and the next value is in the next one. */
    leat__meters *set = open_set("t");
    uint64_t buckets[LEAT__TIMER_BUCKETS];
    for (uint32_t i = 0; i < LEAT__TIMER_BUCKETS; i++) {
        uint64_t top = leat__timer_bucket_top(i);
        if (i > 0) {
            uint64_t below = leat__timer_bucket_top(i - 1);
            assert_true(top > below);
            assert_true(i < 4 || (double)top / (double)below <= 1.2501);
        }
        leat__meters *one = open_set("one");
        leat__timer *t = leat__timer_make(one, "x_ns", NULL, NULL);
        leat__timer_record(t, top);
        leat__timer_record(t, top + 1);
        assert_int_equal(leat__timer_buckets(t, buckets), 2 * top + 1);
        bool last = i == LEAT__TIMER_BUCKETS - 1;
        assert_int_equal(buckets[i], last ? 2 : 1);
        if (!last) assert_int_equal(buckets[i + 1], 1);
        leat__meters_close(&one);
    }
    assert_int_equal(leat__timer_bucket_top(LEAT__TIMER_BUCKETS - 1), UINT64_C(1) << 48);
    leat__meters_close(&set);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void assert_near(double got, double want, double part)
{
    if (fabs(got - want) > part * want) {
        fail_msg("%f is not within %g of %f", got, part, want);
    }
}

static void test_timer_statistics(void **state)
{
    enum { N = 20000 };
    uint64_t *values = leat__alloc_array(LEAT__MEM_MISC, N, sizeof *values);
    assert_non_null(values);
    leat__meters *set = open_set("t");
    leat__timer *t = leat__timer_make(set, "step_ns", NULL, "one step");
    leat__timer_stats stats;
    leat__timer_since(t, NULL, &stats);
    assert_int_equal(stats.count + stats.sum_ns + stats.min_ns + stats.max_ns, 0);

    uint64_t x = 88172645463325252u, sum = 0;
    for (int i = 0; i < N; i++) { /* log-uniform from 100 ns to 100 ms */
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        values[i] = (uint64_t)(100.0 * pow(10.0, 6.0 * (double)(x >> 11) / 9007199254740992.0));
        sum += values[i];
        leat__timer_record(t, values[i]);
    }
    qsort(values, N, sizeof *values, by_value);
    leat__timer_since(t, NULL, &stats);
    assert_int_equal(stats.count, N);
    assert_int_equal(stats.sum_ns, sum);
    assert_int_equal(stats.min_ns, values[0]);
    assert_int_equal(stats.max_ns, values[N - 1]);
    assert_near(stats.p50_ns, (double)values[N / 2], 0.125);
    assert_near(stats.p95_ns, (double)values[N * 95 / 100], 0.125);
    assert_near(stats.p99_ns, (double)values[N * 99 / 100], 0.125);
    leat__meters_close(&set);
    leat__free(values);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void test_timer_extremes(void **state)
{
    leat__meters *set = open_set("t");
    leat__timer_stats stats;
    leat__timer *t = leat__timer_make(set, "a_ns", NULL, NULL);
    leat__timer_record(t, 0);
    leat__timer_since(t, NULL, &stats);
    assert_int_equal(stats.count, 1);
    assert_int_equal(stats.min_ns, 0);
    assert_int_equal(stats.max_ns, 0);
    assert_true(stats.p99_ns == 0);

    t = leat__timer_make(set, "b_ns", NULL, NULL);
    leat__timer_record(t, UINT64_C(1) << 60); /* beyond the histogram */
    leat__timer_since(t, NULL, &stats);
    assert_true(stats.p50_ns == (double)(UINT64_C(1) << 60));
    t = leat__timer_make(set, "c_ns", NULL, NULL);
    for (int i = 0; i < 100; i++) leat__timer_record(t, 1000);
    leat__timer_since(t, NULL, &stats);
    assert_true(stats.p50_ns == 1000 && stats.p99_ns == 1000); /* min = max: exact */
    leat__meters_close(&set);
}

/* ---- threads --------------------------------------------------------------------------- */

enum { THREADS = 8, ROUNDS = 20000 };

typedef struct shared {
    leat__counter *c;
    leat__timer *t;
    leat__gauge *g;
    _Atomic bool stop;
} shared;

static void writer(void *arg)
{
    shared *s = arg;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        leat__counter_add(s->c, 3);
        leat__timer_record(s->t, i);
        leat__gauge_set(s->g, (int64_t)i);
    }
}

static void reader(void *arg)
{
    shared *s = arg;
    uint64_t last = 0, last_count = 0;
    while (!atomic_load(&s->stop)) {
        leat__timer_stats stats;
        uint64_t now = leat__counter_value(s->c);
        leat__timer_since(s->t, NULL, &stats);
        if (now < last || stats.count < last_count || stats.max_ns > ROUNDS ||
            (stats.count > 0 && (stats.min_ns < 1 || stats.min_ns > stats.max_ns))) {
            abort(); /* counters never decrease, and counted values are complete */
        }
        last = now;
        last_count = stats.count;
    }
}

static void write_in_threads(shared *s, unsigned n)
{
    leat__thread threads[LEAT__SLOTS + 8] = {{0}};
    leat_error err = {0};
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(leat__thread_start(&threads[i], "writer", writer, s, &err), 0);
    }
    for (unsigned i = 0; i < n; i++) leat__thread_join(&threads[i]);
}

static void test_threads(void **state)
{
    leat__meters *set = open_set("t");
    shared s = {.c = leat__counter_make(set, "items", NULL, NULL),
                .t = leat__timer_make(set, "work_ns", NULL, NULL),
                .g = leat__gauge_make(set, "level", NULL, NULL)};
    leat__thread watch = {0};
    leat_error err = {0};
    leat__timer_stats stats;
    assert_int_equal(leat__thread_start(&watch, "reader", reader, &s, &err), 0);
    write_in_threads(&s, THREADS);
    write_in_threads(&s, THREADS); /* new threads reuse the slots */
    atomic_store(&s.stop, true);
    leat__thread_join(&watch);
    leat__timer_since(s.t, NULL, &stats);
    assert_int_equal(leat__counter_value(s.c), UINT64_C(3) * 2 * THREADS * ROUNDS);
    assert_int_equal(stats.count, 2 * THREADS * ROUNDS);
    assert_int_equal(stats.sum_ns, UINT64_C(2) * THREADS * ROUNDS * (ROUNDS + 1) / 2);
    assert_int_equal(stats.min_ns, 1);
    assert_int_equal(stats.max_ns, ROUNDS);
    assert_int_equal(leat__gauge_value(s.g), ROUNDS);
    leat__meters_close(&set);
    assert_int_equal(leat__mem_blocks(), 0);
}

static struct {
    leat__mutex lock;
    leat__cond all_in;
    unsigned inside;
    leat__counter *c;
    leat__timer *t;
} crowd;

static void crowd_main(void *arg)
{
    unsigned wanted = *(unsigned *)arg;
    leat__counter_add(crowd.c, 1); /* takes a slot or, late, shares */
    leat__mutex_lock(&crowd.lock);
    crowd.inside++;
    leat__cond_broadcast(&crowd.all_in);
    while (crowd.inside < wanted) leat__cond_wait(&crowd.all_in, &crowd.lock);
    leat__mutex_unlock(&crowd.lock);
    for (uint64_t i = 1; i <= 500; i++) {
        leat__counter_add(crowd.c, 1);
        leat__timer_record(crowd.t, 1000 + i);
    }
}

static void test_more_threads_than_slots(void **state)
{
    unsigned n = LEAT__SLOTS + 8;
    leat__thread threads[LEAT__SLOTS + 8] = {{0}};
    leat_error err = {0};
    leat__meters *set = open_set("t");
    leat__mutex_init(&crowd.lock);
    leat__cond_init(&crowd.all_in);
    crowd.c = leat__counter_make(set, "items", NULL, NULL);
    crowd.t = leat__timer_make(set, "work_ns", NULL, NULL);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(leat__thread_start(&threads[i], "crowd", crowd_main, &n, &err), 0);
    }
    for (unsigned i = 0; i < n; i++) leat__thread_join(&threads[i]);
    leat__timer_stats stats;
    leat__timer_since(crowd.t, NULL, &stats);
    assert_int_equal(leat__counter_value(crowd.c), n * 501u);
    assert_int_equal(stats.count, n * 500u);
    assert_int_equal(stats.min_ns, 1001);
    assert_int_equal(stats.max_ns, 1500);
    leat__meters_close(&set);
    leat__cond_destroy(&crowd.all_in);
    leat__mutex_destroy(&crowd.lock);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void test_off(void **state)
{
    leat__meters *set = NULL;
    assert_int_equal(leat__meters_open(&set, "t", NULL), 0);
    assert_true(leat__meters_enabled());
    assert_true(leat__meters_now() > 0);
    leat__counter *before = leat__counter_make(set, "before", NULL, NULL);
    leat__meters_enable(false);
    assert_false(leat__meters_enabled());
    assert_int_equal(leat__meters_now(), 0);
    assert_null(leat__counter_make(set, "items", NULL, NULL));
    assert_null(leat__timer_make(set, "x_ns", NULL, NULL));
    leat__counter_add(before, 3); /* existing meters continue */
    leat__meters_enable(true);
    assert_int_equal(leat__counter_value(before), 3);
    assert_non_null(leat__counter_make(set, "items", NULL, NULL));
    leat__meters_close(&set);
    assert_int_equal(leat__mem_blocks(), 0);
}

/* ---- no memory ------------------------------------------------------------------------- */

static void test_making_without_memory(void **state)
{
    if (!leat__fault_available()) skip();
    for (uint64_t n = 1; n < 40; n++) {
        leat__meters *set = NULL;
        leat_error err = {0};
        leat__fault_arm(LEAT__FAULT_ALLOC, n, true);
        int rc = leat__meters_open(&set, "t", &err);
        if (rc != 0) {
            assert_int_equal(rc, LEAT_ENOMEM);
            assert_null(set);
        } else {
            leat__counter *c = leat__counter_make(set, "items", "a=b", "help");
            leat__timer *t = leat__timer_make(set, "x_ns", NULL, NULL);
            leat__counter_add(c, 2); /* no memory for a cell: still counted */
            leat__timer_record(t, 9);
            leat__timer_stats stats;
            leat__timer_since(t, NULL, &stats);
            assert_int_equal(leat__counter_value(c), c ? 2 : 0);
            assert_int_equal(stats.count, t ? 1 : 0);
        }
        leat__fault_disarm();
        leat__meters_close(&set);
        assert_int_equal(leat__mem_blocks(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counter_and_gauge),
        cmocka_unit_test(test_set_names),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_timer_statistics),
        cmocka_unit_test(test_timer_extremes),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_more_threads_than_slots),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_making_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
