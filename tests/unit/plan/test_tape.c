/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "plan/tape.h"

#define NONE LEAT__TAPE_NONE

/* Three layers of one megabyte each that keep their inputs, computed by hand. */
static void chain_peak_matches_hand_count(void **state)
{
    leat__tape t;
    leat__tape_sum sum;
    (void)state;
    leat__tape_init(&t, 1, 4, false);
    uint32_t x = leat__tape_storage(&t, 1000, 1); /* the batch: counted elsewhere */
    uint32_t a = leat__tape_storage(&t, 1000, 1);
    uint32_t b = leat__tape_storage(&t, 1000, 1);
    uint32_t c = leat__tape_storage(&t, 10, 1);
    leat__tape_op first = {
        .in = {x, NONE}, .out = a, .saves = {x}, .saves_count = 1, .weights = 5, .passes = 1, .macs = 7};
    leat__tape_op second = {
        .in = {a, NONE}, .out = b, .saves = {a}, .saves_count = 1, .passes = 1, .kept_bytes = 100};
    leat__tape_op third = {
        .in = {b, NONE}, .out = c, .saves = {b}, .saves_count = 1, .weights = 3, .passes = 1, .macs = 2};
    leat__tape_add(&t, &first);
    leat__tape_add(&t, &second);
    leat__tape_add(&t, &third);
    assert_ok(leat__tape_run(&t, &sum));
    assert_int_equal(sum.params, 8);
    assert_true(sum.macs == 9);
    assert_int_equal(sum.saved_bytes, 2100);
    /* backward of the third: a, b and what the second keeps, the gradients of c and b, and the
     * gradient of the third's three parameters; the second's has lost b and c already */
    assert_int_equal(sum.peak_bytes, 1000 + 1000 + 100 + 10 + 1000 + 12);
    assert_int_equal(sum.peak_grads_bytes, 12);
    leat__tape_reset(&t);
    assert_no_leaks();
}

static void in_place_shares_and_unsaved_is_freed(void **state)
{
    leat__tape t;
    leat__tape_sum sum;
    (void)state;
    leat__tape_init(&t, 2, 4, false);
    uint32_t x = leat__tape_storage(&t, 50, 1);
    uint32_t a = leat__tape_storage(&t, 50, 1); /* saved by no operation */
    uint32_t b = leat__tape_storage(&t, 50, 1);
    leat__tape_op make = {.in = {x, NONE}, .out = a, .weights = 1, .passes = 1};
    leat__tape_op copy = {.in = {a, NONE}, .out = b, .passes = 1};
    leat__tape_op relu = {.in = {b, NONE}, .out = b, .saves = {b}, .saves_count = 1, .passes = 1};
    leat__tape_add(&t, &make);
    leat__tape_add(&t, &copy);
    leat__tape_add(&t, &relu);
    assert_ok(leat__tape_run(&t, &sum));
    assert_int_equal(sum.saved_bytes, 100);
    /* relu's backward: b, the gradient coming in and the one going out */
    assert_int_equal(sum.peak_bytes, 300);
    leat__tape_reset(&t);
}

static void kept_gradients_are_there_from_the_start(void **state)
{
    leat__tape t;
    leat__tape_sum sum;
    (void)state;
    leat__tape_init(&t, 1, 4, false);
    t.keep_grads = true;
    uint32_t x = leat__tape_storage(&t, 10, 4), y = leat__tape_storage(&t, 10, 4);
    leat__tape_op op = {.in = {x, NONE}, .out = y, .weights = 1000, .passes = 1};
    leat__tape_add(&t, &op);
    assert_ok(leat__tape_run(&t, &sum));
    assert_int_equal(sum.peak_grads_bytes, 4000);
    assert_int_equal(sum.peak_bytes, 4040);
    leat__tape_reset(&t);
}

static void impossible_sizes_are_errors(void **state)
{
    leat__tape t;
    leat__tape_sum sum;
    (void)state;
    leat__tape_init(&t, UINT64_MAX / 2, 4, false);
    leat__tape_storage(&t, 1000, 4);
    assert_code(LEAT_EOVERFLOW, leat__tape_run(&t, &sum));
    leat__tape_reset(&t);
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    if (!leat__fault_available()) skip();
    for (uint64_t n = 1; n <= 3; n++) {
        leat__tape t;
        leat__tape_sum sum;
        leat__fault_arm(LEAT__FAULT_ALLOC, n, false);
        leat__tape_init(&t, 1, 4, false);
        uint32_t x = leat__tape_storage(&t, 10, 4), y = leat__tape_storage(&t, 10, 4);
        leat__tape_op op = {.in = {x, NONE}, .out = y, .passes = 1};
        leat__tape_add(&t, &op);
        assert_code(LEAT_ENOMEM, leat__tape_run(&t, &sum));
        leat__fault_disarm();
        leat__tape_reset(&t);
    }
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chain_peak_matches_hand_count),
        cmocka_unit_test(in_place_shares_and_unsaved_is_freed),
        cmocka_unit_test(kept_gradients_are_there_from_the_start),
        cmocka_unit_test(impossible_sizes_are_errors),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
