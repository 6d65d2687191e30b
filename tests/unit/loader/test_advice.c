/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/num.h"
#include "loader/advice.h"
#include "loader/defaults.h"
#include "loader/state.h"

static const leat__advice_facts large = {.pack = "train.leat",
                                         .order = LEAT_ORDER_RANDOM,
                                         .pack_bytes = UINT64_C(140) << 30,
                                         .page_bytes = 512 << 10,
                                         .sample_bytes = 110 << 10,
                                         .memory_bytes = UINT64_C(60) << 30,
                                         .rotational = true,
                                         .count = 1000,
                                         .batches = 10,
                                         .world = 1,
                                         .batch_size = 100};

static void a_slow_order_is_named_where_it_reads_slowly(void **state)
{
    char text[LEAT__ADVICE_TEXT];
    leat__advice_facts f = large;
    (void)state;
    assert_true(leat__advice_order(&f, text));
    assert_contains(text, "train.leat: order=quasi_random would read faster: the pack (140 GiB)");
    assert_contains(text, "spinning disk");
    f.rotational = false;
    assert_false(leat__advice_order(&f, text)); /* an SSD handles 110 KiB at random */
    f.network = true;
    assert_true(leat__advice_order(&f, text));
    assert_contains(text, "network file system");
    f.network = false;
    f.sample_bytes = 3000;
    assert_true(leat__advice_order(&f, text));
    assert_contains(text, "its samples are small");
    f = large;
    f.memory_bytes = UINT64_C(200) << 30;
    assert_false(leat__advice_order(&f, text)); /* the page cache holds it */
    f = large;
    f.sample_bytes = 600 << 10;
    assert_false(leat__advice_order(&f, text)); /* a sample is a page */
    for (int order = 0; order < LEAT__ORDER_COUNT; order++) {
        f = large;
        f.order = (leat_order)order;
        assert_int_equal(leat__advice_order(&f, text), order == LEAT_ORDER_RANDOM);
    }
}

static leat__advice_facts ranks(uint64_t count, uint32_t world, uint32_t batch, leat_order order,
                                leat_drop drop)
{
    return (leat__advice_facts){.order = order,
                                .count = count,
                                .world = world,
                                .batch_size = batch,
                                .drop = drop,
                                .batches = leat__epoch_batches(count, batch, world, order, drop)};
}

static void packs_without_a_batch_are_announced(void **state)
{
    char text[LEAT__ADVICE_TEXT];
    leat__advice_facts f = large;
    (void)state;
    assert_false(leat__advice_single(&f, text));
    f.left_out = 7;
    assert_true(leat__advice_single(&f, text));
    assert_contains(text,
                    "7 samples of an epoch are left out, because an epoch has only whole batches of 100");
    f.never = 2;
    assert_true(leat__advice_single(&f, text));
    assert_contains(text, "left out, with 2 of the packs unused, because");
}

static void loaders_without_a_batch_are_announced(void **state)
{
    char text[LEAT__ADVICE_TEXT];
    (void)state;
    leat__advice_facts f = ranks(65, 2, 33, LEAT_ORDER_RANDOM, LEAT_DROP_LAST);
    assert_true(leat__advice_none(&f, text));
    assert_contains(text, "65 samples do not fill one of 33 (2 ranks), which takes 66, and drop_last");
    f = ranks(66, 2, 33, LEAT_ORDER_RANDOM, LEAT_DROP_LAST);
    assert_false(leat__advice_none(&f, text));
    f = ranks(65, 2, 33, LEAT_ORDER_RANDOM, LEAT_DROP_EMPTY);
    assert_false(leat__advice_none(&f, text));
}

static void empty_batches_are_announced(void **state)
{
    char text[LEAT__ADVICE_TEXT];
    (void)state;
    leat__advice_facts f = ranks(65, 2, 32, LEAT_ORDER_RANDOM, LEAT_DROP_NEVER);
    assert_int_equal(f.batches, 2);
    assert_true(leat__advice_ranks(&f, text));
    assert_contains(text, "1 of 2 ranks gets an empty last batch");
    f = ranks(65, 2, 32, LEAT_ORDER_RANDOM, LEAT_DROP_EMPTY);
    assert_int_equal(f.batches, 1);
    assert_true(leat__advice_ranks(&f, text));
    assert_contains(text, "1 of 65 samples is left out");
    for (int order = 0; order < LEAT__ORDER_COUNT; order++) {
        bool dropped = leat__order_shuffled((leat_order)order);
        f = ranks(65, 2, 32, (leat_order)order, LEAT_DROP_EMPTY);
        assert_int_equal(f.batches, dropped ? 1 : 2);
        assert_true(leat__advice_ranks(&f, text));
        assert_contains(text, dropped ? "left out" : "empty last batch");
    }
    f = ranks(65, 2, 32, LEAT_ORDER_RANDOM, LEAT_DROP_LAST);
    assert_int_equal(f.batches, 1);
    assert_false(leat__advice_ranks(&f, text));
    f = ranks(66, 2, 32, LEAT_ORDER_RANDOM, LEAT_DROP_EMPTY); /* one each: nothing is left out */
    assert_int_equal(f.batches, 2);
    assert_false(leat__advice_ranks(&f, text));
    f = ranks(3, 8, 4, LEAT_ORDER_RANDOM, LEAT_DROP_EMPTY); /* else there would be no batch at all */
    assert_int_equal(f.batches, 1);
    assert_true(leat__advice_ranks(&f, text));
    assert_contains(text, "5 of 8 ranks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_order_is_named_where_it_reads_slowly),
        cmocka_unit_test(packs_without_a_batch_are_announced),
        cmocka_unit_test(loaders_without_a_batch_are_announced),
        cmocka_unit_test(empty_batches_are_announced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
