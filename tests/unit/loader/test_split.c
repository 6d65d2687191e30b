/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/loader/split.c: a trainer of 1000 samples a second, CPUs that make fewer or more.
 */
#include "leat_test.h"

#include "loader/split.h"

#define STEP_NS 100000000u

/* The share after `batches`, when the CPUs alone make `cpus` of what the trainer takes. */
static uint32_t settle(leat__split *s, double cpus, int batches, uint64_t *now)
{
    uint32_t share = s->share;
    for (int i = 0; i < batches; i++) {
        double rate = cpus / (1 - (double)share / 16.0 + 1e-9); /* the device takes its part off them */
        uint64_t waited = rate < 1 ? (uint64_t)(STEP_NS / rate) - STEP_NS : 0;
        *now += STEP_NS + waited;
        share = leat__split_step(s, waited, *now, true);
    }
    return share;
}

static void cpus_that_keep_up_decode_alone(void **state)
{
    leat__split s = {0};
    uint64_t now = 1;
    assert_int_equal(settle(&s, 1.2, 500, &now), 0);
}

static void the_device_takes_what_is_missing(void **state)
{
    leat__split s = {0};
    uint64_t now = 1;
    uint32_t share = settle(&s, 0.5, 400, &now); /* a half is missing */
    assert_true(share >= 8 && share <= 13);
    leat__split t = {0};
    assert_true(settle(&t, 0.1, 400, &now) >= 14);
}

static void slow_cpus_move_the_share_in_two_windows(void **state)
{
    leat__split s = {0};
    uint64_t now = 1;
    assert_int_equal(settle(&s, 0.2, 1 + 2 * 8, &now), 16);
}

static void the_cpus_get_it_back(void **state)
{
    leat__split s = {0};
    uint64_t now = 1;
    assert_true(settle(&s, 0.5, 200, &now) >= 8);
    assert_true(settle(&s, 3, 40000, &now) <= 1);
}

/* The trainer got slower (a larger model, an evaluation): the CPUs are tried again soon. */
static void a_slower_trainer_returns_it_to_the_cpus_soon(void **state)
{
    leat__split s = {0};
    uint64_t now = 1;
    assert_int_equal(settle(&s, 0.1, 100, &now), 16);
    for (int i = 0; i < 320; i++) {
        now += 3 * STEP_NS;
        leat__split_step(&s, 600000, now, true); /* what taking a ready batch costs */
    }
    assert_int_equal(s.share, 0);
}

/* Taking a batch that is ready costs 0.6 ms on an H200: 3 % of a step of 20 ms, 38 % of one of 1 ms. */
static void the_handover_alone_moves_nothing(void **state)
{
    for (uint64_t step = 1000000; step <= 1000000000; step *= 10) {
        leat__split s = {0};
        uint64_t now = 1;
        for (int i = 0; i < 4000; i++) {
            now += step + 600000;
            assert_int_equal(leat__split_step(&s, 600000, now, true), 0);
        }
    }
}

/* Steps of 20 ms, CPUs that make half of what they take, then steps of 200 ms; each batch also costs its
 * hand-over. */
static void the_share_follows_the_trainer(void **state)
{
    const uint64_t batch_ns = 40000000, handover = 600000;
    leat__split s = {0};
    uint64_t now = 1;
    for (int round = 0; round < 3; round++) {
        for (int slow = 0; slow < 2; slow++) {
            const uint64_t step = slow ? 200000000 : 20000000;
            for (int i = 0; i < 400; i++) {
                const uint64_t cpus = batch_ns * (16 - s.share) / 16;
                const uint64_t waited = (cpus > step ? cpus - step : 0) + handover;
                now += step + waited;
                leat__split_step(&s, waited, now, true);
            }
            if (slow) assert_int_equal(s.share, 0);
            else assert_true(s.share >= 8);
        }
    }
}

static void waiting_without_a_batch_is_added_up(void **state)
{
    leat__split s = {0};
    uint64_t now = 1;
    for (int i = 0; i < 100; i++) {
        now += STEP_NS;
        leat__split_step(&s, STEP_NS / 2, now, i % 2 == 0); /* every other call timed out */
    }
    assert_true(s.share == 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpus_that_keep_up_decode_alone),
        cmocka_unit_test(the_device_takes_what_is_missing),
        cmocka_unit_test(slow_cpus_move_the_share_in_two_windows),
        cmocka_unit_test(the_cpus_get_it_back),
        cmocka_unit_test(a_slower_trainer_returns_it_to_the_cpus_soon),
        cmocka_unit_test(the_handover_alone_moves_nothing),
        cmocka_unit_test(the_share_follows_the_trainer),
        cmocka_unit_test(waiting_without_a_batch_is_added_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
