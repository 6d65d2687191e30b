/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/probe/slot.c: one owner at a time, reuse after a thread ends, and more threads
 * than slots.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "probe/slot.h"

enum { MANY = LEAT__SLOTS + 12 };

static struct {
    leat__mutex lock;
    leat__cond all_in;
    unsigned inside, wanted;
    uint32_t slots[MANY];
} gate;

/* Takes a slot and keeps it until all threads have one. */
static void hold(void *arg)
{
    uint32_t *slot = arg;
    *slot = leat__slot();
    leat__mutex_lock(&gate.lock);
    gate.inside++;
    leat__cond_broadcast(&gate.all_in);
    while (gate.inside < gate.wanted) leat__cond_wait(&gate.all_in, &gate.lock);
    leat__mutex_unlock(&gate.lock);
    if (leat__slot() != *slot) *slot = UINT32_MAX; /* must not change */
}

static void run_threads(unsigned n)
{
    static leat__thread threads[MANY];
    leat_error err = {0};
    leat__mutex_init(&gate.lock);
    leat__cond_init(&gate.all_in);
    gate.inside = 0;
    gate.wanted = n;
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(leat__thread_start(&threads[i], "slot", hold, &gate.slots[i], &err), 0);
    }
    for (unsigned i = 0; i < n; i++) leat__thread_join(&threads[i]);
    leat__cond_destroy(&gate.all_in);
    leat__mutex_destroy(&gate.lock);
}

static void check_distinct(unsigned n, unsigned shared_wanted)
{
    unsigned seen[LEAT__SLOTS + 1] = {0};
    for (unsigned i = 0; i < n; i++) {
        assert_true(gate.slots[i] <= LEAT__SLOTS);
        seen[gate.slots[i]]++;
    }
    for (unsigned i = 0; i < LEAT__SLOTS; i++) assert_true(seen[i] <= 1);
    assert_int_equal(seen[LEAT__SLOTS], shared_wanted);
}

static void test_stable(void **state)
{
    uint32_t mine = leat__slot();
    assert_true(mine < LEAT__SLOTS);
    assert_int_equal(leat__slot(), mine);
}

static void test_distinct_and_reused(void **state)
{
    uint32_t mine = leat__slot();
    for (int round = 0; round < 50; round++) { /* 400 threads through 128 slots */
        run_threads(8);
        check_distinct(8, 0);
        for (unsigned i = 0; i < 8; i++) {
            assert_true(gate.slots[i] != mine);
            assert_true(gate.slots[i] <= 8); /* the lowest free ones */
        }
    }
}

static void test_more_threads_than_slots(void **state)
{
    leat__slot(); /* one is ours */
    run_threads(MANY);
    check_distinct(MANY, MANY - (LEAT__SLOTS - 1));
    run_threads(4); /* all were returned */
    check_distinct(4, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stable),
        cmocka_unit_test(test_distinct_and_reused),
        cmocka_unit_test(test_more_threads_than_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
