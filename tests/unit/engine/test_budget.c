/* SPDX-License-Identifier: Apache-2.0
 *
 * The byte budget: limits, categories, floors, waiting, lowering.
 */
#include "leat_test.h"

#include "base/clock.h"
#include "base/num.h"
#include "engine/budget.h"

static leat_budget *with_limit(uint64_t limit)
{
    leat_budget *b = NULL;
    assert_int_equal(leat_budget_open(&b, limit, NULL), 0);
    return b;
}

static void charges_up_to_the_limit(void **state)
{
    (void)state;
    leat_budget *b = with_limit(100);
    assert_int_equal(leat_budget_try(b, LEAT_BUDGET_PAGE, 60), 0);
    assert_int_equal(leat_budget_try(b, LEAT_BUDGET_BATCH, 41), LEAT_EAGAIN);
    assert_int_equal(leat_budget_try(b, LEAT_BUDGET_BATCH, 40), 0);
    assert_int_equal(leat_budget_try(b, LEAT_BUDGET_BATCH, 101), LEAT_EBUDGET);
    leat_budget_release(b, LEAT_BUDGET_PAGE, 60);
    leat_budget_stats s;
    leat_budget_read(b, &s);
    assert_int_equal(s.used, 40);
    assert_int_equal(s.peak, 100);
    assert_int_equal(s.cat_used[LEAT_BUDGET_PAGE], 0);
    assert_int_equal(s.cat_peak[LEAT_BUDGET_PAGE], 60);
    assert_int_equal(s.cat_used[LEAT_BUDGET_BATCH], 40);
    assert_int_equal(s.refused, 1);
    leat_budget_release(b, LEAT_BUDGET_BATCH, 40);
    leat_budget_close(&b);
    assert_null(b);
}

/* Memory that moves from a flow to a cache is one peak, not two. */
static void the_peak_counts_moved_bytes_once(void **state)
{
    leat_budget *b = with_limit(200);
    leat_budget_stats s;
    const int64_t released[LEAT_BUDGET_CATS] = {[LEAT_BUDGET_BATCH] = -60};
    assert_true(leat__budget_grant(b, LEAT_BUDGET_BATCH, 60, false));
    assert_int_equal(leat__budget_try_twice(b, LEAT_BUDGET_PAGE, 60, 0), 0);
    leat_budget_read(b, &s);
    assert_int_equal(s.used, 120); /* no other flow gets them */
    assert_int_equal(s.peak, 60);
    leat__budget_apply(b, released);
    assert_int_equal(leat_budget_try(b, LEAT_BUDGET_TASK, 50), 0);
    leat_budget_read(b, &s);
    assert_int_equal(s.used, 110);
    assert_int_equal(s.peak, 110);
    assert_int_equal(leat__budget_try_twice(b, LEAT_BUDGET_PAGE, 91, 0), LEAT_EAGAIN);
    assert_int_equal(leat_budget_try(b, LEAT_BUDGET_TASK, 90), 0);
    leat_budget_read(b, &s);
    assert_int_equal(s.peak, 200); /* what was refused does not lower it */
    leat_budget_release(b, LEAT_BUDGET_TASK, 140);
    leat_budget_release(b, LEAT_BUDGET_PAGE, 60);
    leat_budget_close(&b);
}

/* Reserved bytes are charged, but not counted as memory before their owner has allocated it. */
static void memory_is_counted_apart_from_reservations(void **state)
{
    leat_budget *b = with_limit(200);
    uint64_t peak;
    const int64_t released[LEAT_BUDGET_CATS] = {[LEAT_BUDGET_BATCH] = -60};
    (void)state;
    assert_true(leat__budget_grant(b, LEAT_BUDGET_BATCH, 60, false));
    assert_int_equal(leat__budget_memory(b, &peak), 0);
    leat__budget_allocated(b, 50);
    assert_int_equal(leat_budget_try(b, LEAT_BUDGET_PAGE, 30), 0); /* a cache: memory at once */
    assert_int_equal(leat_budget_charge(b, LEAT_BUDGET_OTHER, 5, 0, NULL), 0);
    assert_int_equal(leat__budget_memory(b, &peak), 85);
    assert_int_equal(leat__budget_try_twice(b, LEAT_BUDGET_BATCH, 50, 0), 0); /* moves to a cache … */
    leat__budget_apply(b, released);
    assert_int_equal(leat__budget_memory(b, &peak), 85);
    leat__budget_reuse(b, LEAT_BUDGET_BATCH, 50); /* … and back to a task */
    assert_int_equal(leat__budget_memory(b, &peak), 85);
    assert_int_equal(leat__budget_used(b), 35);
    leat__budget_allocated(b, -50);
    leat_budget_release(b, LEAT_BUDGET_PAGE, 30);
    leat_budget_release(b, LEAT_BUDGET_OTHER, 5);
    assert_int_equal(leat_budget_try(b, LEAT_BUDGET_PAGE, 201), LEAT_EBUDGET);
    assert_int_equal(leat__budget_memory(b, &peak), 0);
    assert_int_equal(peak, 85);
    leat_budget_close(&b);
}

/* Bytes of tasks in flight become free, so another flow may start beside them. */
static void lent_bytes_do_not_refuse_a_floor(void **state)
{
    leat_budget *b = with_limit(100);
    (void)state;
    assert_int_equal(leat_budget_try(b, LEAT_BUDGET_BATCH, 60), 0);
    assert_int_equal(leat__budget_floor(b, 0, 50, "x", NULL), LEAT_EBUDGET);
    assert_int_equal(leat__budget_floor_lacking(b, 0, 50), 10);
    leat__budget_lend(b, 20);
    assert_int_equal(leat__budget_floor_lacking(b, 0, 50), 0);
    assert_int_equal(leat__budget_floor(b, 0, 50, "x", NULL), 0);
    assert_int_equal(leat__budget_used(b), 60);
    leat__budget_lend(b, -20);
    leat_budget_release(b, LEAT_BUDGET_BATCH, 60);
    assert_int_equal(leat__budget_floor(b, 50, 0, "x", NULL), 0);
    leat_budget_close(&b);
}

static void no_number_overflows_the_budget(void **state)
{
    (void)state;
    leat_budget *b = with_limit(100);
    assert_int_equal(leat_budget_try(b, LEAT_BUDGET_PAGE, 1), 0);
    assert_int_equal(leat_budget_try(b, LEAT_BUDGET_PAGE, UINT64_MAX), LEAT_EBUDGET);
    assert_false(leat__budget_grant(b, LEAT_BUDGET_PAGE, UINT64_MAX, true));
    assert_int_equal(leat__budget_floor(b, 0, UINT64_MAX, "x", NULL), LEAT_EBUDGET);
    assert_int_equal(leat_budget_try(b, (leat_budget_cat)99, 1), LEAT_EINVAL);
    leat_budget_release(b, LEAT_BUDGET_PAGE, 7); /* no more than was charged */
    leat_budget_release(b, LEAT_BUDGET_BATCH, 1);
    assert_int_equal(leat__budget_used(b), 0);
    assert_int_equal(leat_budget_try(b, LEAT_BUDGET_PAGE, 100), 0);
    leat_budget_release(b, LEAT_BUDGET_PAGE, 100);
    leat_budget_close(&b);
}

static void default_is_a_share_of_free_memory(void **state)
{
    (void)state;
    leat_budget *b = with_limit(0);
    leat_budget_stats s;
    leat_budget_read(b, &s);
    assert_true(s.limit > 1 << 20);
    leat_budget_close(&b);
}

static void floors_are_reserved_for_senior_tasks(void **state)
{
    (void)state;
    leat_budget *b = with_limit(100);
    leat_error err;
    assert_int_equal(leat__budget_floor(b, 0, 70, "a", &err), 0);
    assert_false(leat__budget_grant(b, LEAT_BUDGET_TASK, 31, false));
    assert_true(leat__budget_grant(b, LEAT_BUDGET_TASK, 30, false));
    assert_true(leat__budget_grant(b, LEAT_BUDGET_TASK, 70, true));
    assert_false(leat__budget_grant(b, LEAT_BUDGET_TASK, 1, true));
    assert_int_equal(leat__budget_floor(b, 0, 31, "flow b", &err), LEAT_EBUDGET);
    assert_non_null(strstr(err.message, "flow b needs at least 31 B, 1 B more than"));
    int64_t back[LEAT_BUDGET_CATS] = {0};
    back[LEAT_BUDGET_TASK] = -100;
    assert_true(leat__budget_apply(b, back));
    assert_int_equal(leat__budget_floor(b, 70, 0, "a", &err), 0);
    leat_budget_close(&b);
}

static void kept_bytes_leave_room_for_floors(void **state)
{
    (void)state;
    leat_budget *b = with_limit(100);
    assert_int_equal(leat_budget_try(b, LEAT_BUDGET_PAGE, 50), 0);
    assert_int_equal(leat__budget_floor(b, 0, 51, "a", NULL), LEAT_EBUDGET);
    assert_int_equal(leat__budget_floor(b, 0, 50, "a", NULL), 0);
    assert_int_equal(leat_budget_try(b, LEAT_BUDGET_PAGE, 1), LEAT_EAGAIN);
    leat_budget_release(b, LEAT_BUDGET_PAGE, 50);
    assert_int_equal(leat__budget_floor(b, 50, 0, "a", NULL), 0);
    leat_budget_close(&b);
}

static void lowered_limit_waits_for_drain(void **state)
{
    (void)state;
    leat_budget *b = with_limit(100);
    leat_error err;
    assert_int_equal(leat__budget_floor(b, 0, 20, "a", &err), 0);
    assert_true(leat__budget_grant(b, LEAT_BUDGET_TASK, 80, false));
    assert_int_equal(leat_budget_set_limit(b, 10, &err), LEAT_EBUDGET);
    assert_non_null(strstr(err.message, "at least 20 B, 10 B more than the given 10 B"));
    assert_int_equal(leat_budget_set_limit(b, 50, &err), 0);
    assert_false(leat__budget_grant(b, LEAT_BUDGET_TASK, 1, false));
    /* a task that cannot make progress without bytes still gets them, never above the old
     * limit */
    assert_true(leat__budget_grant(b, LEAT_BUDGET_TASK, 20, true));
    assert_false(leat__budget_grant(b, LEAT_BUDGET_TASK, 1, true));
    int64_t back[LEAT_BUDGET_CATS] = {0};
    back[LEAT_BUDGET_TASK] = -70; /* 30 left: as much as the new limit allows */
    leat__budget_apply(b, back);
    assert_true(leat__budget_grant(b, LEAT_BUDGET_TASK, 20, true));
    assert_false(leat__budget_grant(b, LEAT_BUDGET_TASK, 1, true));
    back[LEAT_BUDGET_TASK] = -50;
    leat__budget_apply(b, back);
    assert_int_equal(leat_budget_set_limit(b, 0, &err), LEAT_EINVAL);
    assert_int_equal(leat__budget_floor(b, 20, 0, "a", &err), 0);
    leat_budget_close(&b);
}

static void release_later(void *arg)
{
    leat__sleep_ns(20 * LEAT_NS_PER_MS);
    leat_budget_release(arg, LEAT_BUDGET_PAGE, 80);
}

static void waits_for_bytes(void **state)
{
    (void)state;
    leat_budget *b = with_limit(100);
    leat_error err;
    leat__thread t = {0};
    assert_int_equal(leat_budget_try(b, LEAT_BUDGET_PAGE, 80), 0);
    assert_int_equal(leat_budget_charge(b, LEAT_BUDGET_BATCH, 50, 5, &err), LEAT_ETIMEDOUT);
    assert_int_equal(leat_budget_charge(b, LEAT_BUDGET_BATCH, 500, -1, &err), LEAT_EBUDGET);
    assert_non_null(strstr(err.message, "400 B more than the budget of 100 B"));
    assert_int_equal(leat__thread_start(&t, "release", release_later, b, NULL), 0);
    assert_int_equal(leat_budget_charge(b, LEAT_BUDGET_BATCH, 50, -1, &err), 0);
    leat__thread_join(&t);
    leat_budget_release(b, LEAT_BUDGET_BATCH, 50);
    leat_budget_close(&b);
}

static void count_call(void *arg)
{
    ++*(int *)arg;
}

static void listeners_are_called_only_after_a_refusal(void **state)
{
    (void)state;
    leat_budget *b = with_limit(100);
    int calls = 0;
    leat__budget_listener l = {.freed = count_call, .arg = &calls};
    leat__budget_listen(b, &l);
    assert_int_equal(leat_budget_try(b, LEAT_BUDGET_PAGE, 90), 0);
    leat_budget_release(b, LEAT_BUDGET_PAGE, 10);
    assert_int_equal(calls, 0);
    assert_false(leat__budget_grant(b, LEAT_BUDGET_TASK, 50, false));
    leat_budget_release(b, LEAT_BUDGET_PAGE, 40);
    assert_int_equal(calls, 1);
    leat_budget_release(b, LEAT_BUDGET_PAGE, 40);
    assert_int_equal(calls, 1);
    leat__budget_unlisten(b, &l);
    leat_budget_close(&b);
}

static uint64_t give_all(void *arg, uint64_t bytes)
{
    leat_budget_stats s;
    leat_budget *b = arg;
    leat_budget_read(b, &s);
    uint64_t freed = LEAT_MIN(bytes, s.cat_used[LEAT_BUDGET_PAGE]);
    leat_budget_release(b, LEAT_BUDGET_PAGE, freed);
    return freed;
}

static void kept_bytes_are_released_on_demand(void **state)
{
    leat_budget *b;
    (void)state;
    assert_ok(leat_budget_open(&b, 1000, NULL));
    leat__budget_keeper keeper = {.trim = give_all, .arg = b};
    leat__budget_keep(b, &keeper);
    assert_ok(leat_budget_try(b, LEAT_BUDGET_PAGE, 900));
    assert_int_equal(leat__budget_lacking(b, 300), 200);
    assert_int_equal(leat__budget_floor_lacking(b, 0, 400), 300);
    /* would wait indefinitely */
    assert_ok(leat_budget_charge(b, LEAT_BUDGET_BATCH, 300, -1, NULL));
    assert_int_equal(leat__budget_used(b), 1000);
    /* everything left is cached or the flow's own: no more will come once the keepers are
     * empty */
    assert_int_equal(leat__budget_reclaim(b, 5000), 700);
    assert_false(leat__budget_hopeless(b, 300, 700));
    assert_true(leat__budget_hopeless(b, 300, 701));
    leat__budget_expect(b, 2); /* bytes that a request holds may become free */
    assert_false(leat__budget_hopeless(b, 300, 701));
    leat__budget_expect(b, -2);
    assert_false(leat__budget_hopeless(b, 300, 701)); /* keepers may release them now */
    assert_int_equal(leat__budget_reclaim(b, 1), 0);
    assert_true(leat__budget_hopeless(b, 300, 701));
    assert_ok(leat_budget_try(b, LEAT_BUDGET_PAGE, 100));
    assert_true(leat__budget_hopeless(b, 0, 601)); /* kept bytes count as held */
    leat__budget_unkeep(b, &keeper);
    assert_int_equal(leat__budget_reclaim(b, 100), 0);
    leat_budget_release(b, LEAT_BUDGET_PAGE, 100);
    leat_budget_release(b, LEAT_BUDGET_BATCH, 300);
    leat_budget_close(&b);
}

/* Gives all of it back, and keeps it again at once, the first time. */
static uint64_t give_and_take(void *arg, uint64_t bytes)
{
    static int calls;
    uint64_t freed = give_all(arg, bytes);
    if (calls++ == 0) assert_ok(leat_budget_try(arg, LEAT_BUDGET_PAGE, freed));
    return freed;
}

static void floors_outlast_bytes_that_are_kept_again(void **state)
{
    leat_budget *b;
    (void)state;
    assert_ok(leat_budget_open(&b, 1000, NULL));
    leat__budget_keeper keeper = {.trim = give_and_take, .arg = b};
    leat__budget_keep(b, &keeper);
    assert_ok(leat_budget_try(b, LEAT_BUDGET_PAGE, 900));
    assert_ok(leat__budget_take_floor(b, 0, 400, "a flow", NULL));
    assert_int_equal(leat__budget_used(b), 600);
    assert_int_equal(leat__budget_take_floor(b, 400, 1001, "a flow", NULL), LEAT_EBUDGET);
    assert_int_equal(leat__budget_used(b), 0); /* the keepers were asked for all they had */
    leat__budget_unkeep(b, &keeper);
    assert_ok(leat__budget_floor(b, 400, 0, "a flow", NULL));
    leat_budget_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_bytes_are_released_on_demand),
        cmocka_unit_test(floors_outlast_bytes_that_are_kept_again),
        cmocka_unit_test(charges_up_to_the_limit),
        cmocka_unit_test(the_peak_counts_moved_bytes_once),
        cmocka_unit_test(memory_is_counted_apart_from_reservations),
        cmocka_unit_test(lent_bytes_do_not_refuse_a_floor),
        cmocka_unit_test(no_number_overflows_the_budget),
        cmocka_unit_test(default_is_a_share_of_free_memory),
        cmocka_unit_test(floors_are_reserved_for_senior_tasks),
        cmocka_unit_test(kept_bytes_leave_room_for_floors),
        cmocka_unit_test(lowered_limit_waits_for_drain),
        cmocka_unit_test(waits_for_bytes),
        cmocka_unit_test(listeners_are_called_only_after_a_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
