/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "engine/budget.h"
#include "loader/blocks.h"

static leat_budget *budget;
static leat__blocks *blocks;

static uint64_t charged(void)
{
    leat_budget_stats s;
    leat_budget_read(budget, &s);
    return s.cat_used[LEAT_BUDGET_PAGE];
}

static int set_up(void **state)
{
    (void)state;
    leat__mem_peak_reset();
    assert_ok(leat_budget_open(&budget, 1 << 20, NULL));
    assert_ok(leat__blocks_open(&blocks, budget, LEAT_BUDGET_PAGE, LEAT__MEM_PAGE, NULL));
    return 0;
}

/* What the budget takes for allocated is what was allocated. */
static void assert_memory(void)
{
    uint64_t peak;
    assert_int_equal(leat__budget_memory(budget, &peak), leat__mem_used(LEAT__MEM_PAGE));
    assert_int_equal(peak, leat__mem_peak(LEAT__MEM_PAGE));
}

static int close_all(void **state)
{
    (void)state;
    leat__blocks_close(&blocks);
    assert_int_equal(leat__mem_used(LEAT__MEM_PAGE), 0);
    leat_budget_close(&budget);
    assert_no_leaks();
    return 0;
}

static int tear_down(void **state)
{
    assert_memory();
    return close_all(state);
}

static void released_block_is_reused(void **state)
{
    (void)state;
    leat__block a = leat__blocks_take(blocks, 100000);
    assert_true(a.bytes >= 100000);
    assert_int_equal((uintptr_t)a.data % 4096, 0);
    assert_int_equal(charged(), a.bytes - 100000); /* in use: its user has charged what was requested */
    leat__blocks_give(blocks, a);
    assert_int_equal(charged(), a.bytes);
    leat__block b = leat__blocks_take(blocks, 90000);
    assert_ptr_equal(a.data, b.data);
    assert_int_equal(charged(), b.bytes - 90000);
    leat__blocks_give(blocks, b);
    leat__block small = leat__blocks_take(blocks, 10); /* many times too large, but small itself */
    assert_ptr_equal(small.data, a.data);
    assert_int_equal(charged(), small.bytes - 10);
    leat__blocks_give(blocks, small);
    leat__blocks_give(blocks, (leat__block){0});
    leat__blocks_trim(blocks);
    assert_int_equal(charged(), 0);
}

static void nothing_is_kept_that_the_budget_needs(void **state)
{
    (void)state;
    leat__block a = leat__blocks_take(blocks, 600000), b = leat__blocks_take(blocks, 600000);
    leat__blocks_give(blocks, a);
    leat__blocks_give(blocks, b); /* a second one does not fit a megabyte */
    assert_true(charged() == a.bytes);
    assert_true(leat__mem_used(LEAT__MEM_PAGE) == a.bytes);
}

/* A task that needs up to `leave` bytes begins although blocks are kept. */
static void kept_blocks_leave_room_for_a_task(void **state)
{
    (void)state;
    leat__block four[4];
    leat__blocks_leave(blocks, 300000);
    for (int i = 0; i < 4; i++) four[i] = leat__blocks_take(blocks, 200000);
    for (int i = 0; i < 4; i++) leat__blocks_give(blocks, four[i]);
    assert_int_equal(charged(), 3 * four[0].bytes);
    assert_true(charged() + 300000 <= 1 << 20);
}

/* Needs that grow: as many blocks as are in use at once, not one of every size. */
static void a_block_that_is_too_small_makes_room(void **state)
{
    (void)state;
    leat__block two[2] = {leat__blocks_take(blocks, 10000), leat__blocks_take(blocks, 40000)};
    leat__blocks_give(blocks, two[0]);
    leat__blocks_give(blocks, two[1]);
    for (uint64_t bytes = 50000; bytes < 200000; bytes += 10000) {
        leat__block a = leat__blocks_take(blocks, bytes);
        assert_int_equal(leat__mem_used(LEAT__MEM_PAGE), charged() + bytes);
        assert_memory();
        leat__blocks_give(blocks, a);
    }
    leat__block largest = leat__blocks_take(blocks, 190000), other = leat__blocks_take(blocks, 180000);
    assert_int_equal(leat__mem_used(LEAT__MEM_PAGE), largest.bytes + other.bytes);
    leat__blocks_give(blocks, largest);
    leat__blocks_give(blocks, other);
}

/* Sizes are rounded only as far as the budget allows. */
static void a_full_budget_gives_no_more_than_requested(void **state)
{
    (void)state;
    assert_ok(leat_budget_try(budget, LEAT_BUDGET_PAGE, (1 << 20) - 1000));
    leat__block a = leat__blocks_take(blocks, 5000);
    assert_int_equal(a.bytes, 5000);
    assert_int_equal(leat__mem_used(LEAT__MEM_PAGE), 5000);
    leat__blocks_give(blocks, a);
    assert_int_equal(leat__mem_used(LEAT__MEM_PAGE), 0);
    leat_budget_release(budget, LEAT_BUDGET_PAGE, (1 << 20) - 1000);
    assert_int_equal(charged(), 0);
}

static uint64_t allocated(void)
{
    uint64_t peak;
    return leat__budget_memory(budget, &peak);
}

static void a_block_filled_in_parts_counts_as_it_is_paid(void **state)
{
    (void)state;
    leat__block a = leat__blocks_take_unpaid(blocks, 100000);
    assert_int_equal(a.bytes, 100000);
    assert_int_equal(allocated(), 0);
    assert_int_equal(leat__blocks_pay(blocks, &a, 30000), 0);
    assert_int_equal(allocated(), 30000);
    assert_int_equal(leat__blocks_pay(blocks, &a, 80000), 10000); /* more than it needs */
    assert_int_equal(allocated(), 100000);
    assert_int_equal(charged(), 0);
    leat__blocks_give(blocks, a);
    assert_int_equal(charged(), 100000);

    /* all of a kept block is allocated: it stays charged until its user pays */
    leat__block b = leat__blocks_take_unpaid(blocks, 80000);
    assert_ptr_equal(b.data, a.data);
    assert_int_equal(charged(), 100000);
    assert_int_equal(leat__blocks_pay(blocks, &b, 30000), 0);
    assert_int_equal(charged(), 70000);
    assert_int_equal(allocated(), 100000);
    leat__blocks_give(blocks, b); /* given up: not kept */
    assert_int_equal(charged(), 0);
    assert_int_equal(allocated(), 0);

    leat__block c = leat__blocks_take_unpaid(blocks, 100000);
    assert_int_equal(leat__blocks_pay(blocks, &c, 1000), 0);
    leat__blocks_give(blocks, c);
    assert_int_equal(allocated(), 0);
    assert_int_equal(leat__mem_used(LEAT__MEM_PAGE), 0);
}

static void a_block_outlives_its_owner(void **state)
{
    (void)state;
    leat__block a = leat__blocks_take(blocks, 5000);
    leat__blocks *b = blocks;
    leat__blocks_close(&blocks);
    memset(a.data, 1, a.bytes);
    leat__blocks_give(b, a);
    assert_int_equal(leat__mem_used(LEAT__MEM_PAGE), 0);
}

static void impossible_sizes_and_no_memory(void **state)
{
    (void)state;
    assert_null(leat__blocks_take(blocks, UINT64_MAX).data);
    if (!leat__fault_available()) skip();
    leat__fault_arm(LEAT__FAULT_ALLOC, 1, false);
    assert_null(leat__blocks_take(blocks, 10).data);
    leat__fault_disarm();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(released_block_is_reused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(kept_blocks_leave_room_for_a_task, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_kept_that_the_budget_needs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_block_that_is_too_small_makes_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_budget_gives_no_more_than_requested, set_up, close_all),
        cmocka_unit_test_setup_teardown(a_block_filled_in_parts_counts_as_it_is_paid, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_block_outlives_its_owner, set_up, tear_down),
        cmocka_unit_test_setup_teardown(impossible_sizes_and_no_memory, set_up, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
