/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/clock.h"
#include "loader/steps.h"

#define MS LEAT_NS_PER_MS

/* One step: `wait` in next(), then `train`. */
static void step(leat__steps *s, uint64_t wait_ns, uint64_t train_ns)
{
    leat__steps_enter(s);
    leat__sleep_ns(wait_ns);
    leat__steps_leave(s, true);
    leat__sleep_ns(train_ns);
}

static void the_first_step_of_an_epoch_does_not_count(void **state)
{
    leat__steps s = {0};
    leat_loader_stats stats = {0};
    (void)state;
    assert_ok(leat__steps_init(&s, NULL));
    leat__steps_epoch(&s);
    step(&s, 60 * MS, 60 * MS);
    for (int i = 0; i < 4; i++) step(&s, 2 * MS, 5 * MS);
    leat__steps_enter(&s);
    leat__steps_leave(&s, false);
    leat__steps_read(&s, true, &stats);
    assert_int_equal(stats.steps, 4);
    assert_true(stats.data_ms >= 2 && stats.data_ms < 50);
    assert_true(stats.batch_ms >= 5 && stats.batch_ms < 50);
    assert_true(stats.data_ms_p95 >= stats.data_ms_p50);
    leat__steps_reset(&s);
    assert_no_leaks();
}

/* What the caller tells to have spent on a batch is neither waiting nor training. */
static void preparing_is_counted_apart(void **state)
{
    leat__steps s = {0};
    leat_loader_stats stats = {0};
    (void)state;
    assert_ok(leat__steps_init(&s, NULL));
    leat__steps_epoch(&s);
    step(&s, 0, 0);
    for (int i = 0; i < 4; i++) {
        leat__steps_enter(&s);
        leat__steps_leave(&s, true);
        leat__sleep_ns(6 * MS);
        leat__steps_prepared(&s, 4 * MS);
        leat__steps_prepared(&s, 1 * MS);
    }
    leat__steps_enter(&s);
    leat__steps_leave(&s, false);
    leat__steps_read(&s, true, &stats);
    assert_int_equal(stats.steps, 4);
    assert_true(stats.prepare_ms > 4.99 && stats.prepare_ms < 5.01);
    assert_true(stats.batch_ms >= 0.8); /* the rest of 6 ms */
    leat__steps_reset(&s);
    assert_no_leaks();
}

/* More than the time between two calls is no more than that. */
static void preparing_is_bounded_by_the_step(void **state)
{
    leat__steps s = {0};
    leat_loader_stats stats = {0};
    (void)state;
    assert_ok(leat__steps_init(&s, NULL));
    leat__steps_epoch(&s);
    step(&s, 0, 0);
    leat__steps_enter(&s);
    leat__steps_leave(&s, true);
    leat__steps_prepared(&s, UINT64_MAX / 2);
    leat__steps_enter(&s);
    leat__steps_leave(&s, false);
    leat__steps_read(&s, true, &stats);
    assert_true(stats.batch_ms < 1e6 && stats.prepare_ms < 1e6);
    leat__steps_reset(&s);
}

/* A wait cut in pieces by a timeout is one wait, and no step in between. */
static void timeouts_are_one_wait(void **state)
{
    leat__steps s = {0};
    leat_loader_stats stats = {0};
    (void)state;
    assert_ok(leat__steps_init(&s, NULL));
    leat__steps_epoch(&s);
    step(&s, 0, 0);
    for (int i = 0; i < 3; i++) {
        leat__steps_enter(&s);
        leat__sleep_ns(3 * MS);
        leat__steps_leave(&s, i == 2);
    }
    leat__steps_enter(&s);
    leat__steps_leave(&s, false);
    leat__steps_read(&s, true, &stats);
    assert_int_equal(stats.steps, 1);
    assert_true(stats.data_ms >= 9);
    assert_true(stats.batch_ms < 3);
    leat__steps_reset(&s);
    assert_no_leaks();
}

/* Epochs of one batch have no second step: from the second epoch on all count. */
static void short_epochs_count_whole(void **state)
{
    leat__steps s = {0};
    leat_loader_stats stats = {0};
    (void)state;
    assert_ok(leat__steps_init(&s, NULL));
    for (int epoch = 0; epoch < 4; epoch++) {
        leat__steps_epoch(&s);
        step(&s, 2 * MS, 3 * MS);
        leat__steps_enter(&s);
        leat__steps_leave(&s, false);
    }
    leat__steps_read(&s, true, &stats);
    assert_int_equal(stats.steps, 3);
    assert_true(stats.data_ms >= 2 && stats.batch_ms >= 3);
    leat__steps_reset(&s);
}

/* The starts of later epochs are counted apart, with the call that found the end of the epoch before. */
static void starts_of_epochs_are_counted_apart(void **state)
{
    leat__steps s = {0};
    leat_loader_stats stats = {0};
    (void)state;
    assert_ok(leat__steps_init(&s, NULL));
    for (int epoch = 0; epoch < 3; epoch++) {
        leat__steps_epoch(&s);
        step(&s, epoch == 0 ? 0 : 20 * MS, 0);
        for (int i = 0; i < 3; i++) step(&s, 0, 0);
        leat__steps_enter(&s);
        leat__sleep_ns(5 * MS);
        leat__steps_leave(&s, false);
        leat__steps_read(&s, true, &stats);
        if (epoch == 0) assert_true(stats.start_ms == 0 && stats.epoch_steps == 0);
    }
    assert_true(stats.epoch_steps == 4);
    assert_true(stats.start_ms >= 25);
    assert_true(stats.data_ms < 20);
    leat__steps_reset(&s);
    assert_no_leaks();
}

/* One look at a batch, then a long epoch: the look does not make epochs short. */
static void a_look_does_not_make_epochs_short(void **state)
{
    leat__steps s = {0};
    leat_loader_stats stats = {0};
    (void)state;
    assert_ok(leat__steps_init(&s, NULL));
    leat__steps_epoch(&s);
    step(&s, 0, 0);
    leat__steps_epoch(&s);
    step(&s, 20 * MS, 0);
    for (int i = 0; i < 9; i++) step(&s, 0, 0);
    leat__steps_enter(&s);
    leat__steps_read(&s, true, &stats);
    assert_true(stats.epoch_steps == 5.5); /* 1 and, so far, 10 */
    assert_true(stats.start_ms >= 20);
    assert_int_equal(stats.steps, 9);
    assert_true(stats.data_ms < 2); /* without the start */
    leat__steps_reset(&s);
    assert_no_leaks();
}

static void figures_of_the_epoch_are_not_those_of_all(void **state)
{
    leat__steps s = {0};
    leat_loader_stats epoch = {0}, all = {0};
    (void)state;
    assert_ok(leat__steps_init(&s, NULL));
    for (int i = 0; i < 2; i++) {
        leat__steps_epoch(&s);
        for (int k = 0; k < 4; k++) {
            step(&s, 0, i == 0 ? 20 * MS : 0);
            leat__steps_prepared(&s, i == 0 ? 5 * MS : 0);
        }
        leat__steps_enter(&s);
        leat__steps_leave(&s, false);
    }
    leat__steps_read(&s, false, &epoch);
    leat__steps_read(&s, true, &all);
    assert_int_equal(epoch.steps, 3);
    assert_int_equal(all.steps, 6);
    assert_true(all.batch_ms > 7 && all.prepare_ms > 2.4);
    assert_true(epoch.batch_ms < 7 && epoch.batch_ms_p95 < 15 && epoch.prepare_ms == 0);
    leat__steps_reset(&s);
    assert_no_leaks();
}

static void nothing_measured_is_nothing(void **state)
{
    leat__steps s = {0};
    leat_loader_stats stats = {0};
    (void)state;
    assert_ok(leat__steps_init(&s, NULL));
    leat__steps_read(&s, true, &stats);
    assert_int_equal(stats.steps, 0);
    assert_true(stats.data_ms == 0 && stats.batch_ms_p95 == 0);
    leat__steps_reset(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_step_of_an_epoch_does_not_count),
        cmocka_unit_test(preparing_is_counted_apart),
        cmocka_unit_test(preparing_is_bounded_by_the_step),
        cmocka_unit_test(timeouts_are_one_wait),
        cmocka_unit_test(short_epochs_count_whole),
        cmocka_unit_test(starts_of_epochs_are_counted_apart),
        cmocka_unit_test(a_look_does_not_make_epochs_short),
        cmocka_unit_test(figures_of_the_epoch_are_not_those_of_all),
        cmocka_unit_test(nothing_measured_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
