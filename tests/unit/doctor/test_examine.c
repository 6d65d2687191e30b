/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/inject.h"
#include "loader/tiny_pack.h"

#define PACK "doctor-examine.leat"

static int setup(void **state)
{
    (void)state;
    tiny_pack(PACK, &(tiny_opts){.samples = 600, .classes = 2});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(PACK);
}

typedef struct seen {
    int calls, watched;
    double done;
    int stop_at;
} seen;

static int progress(void *cookie, const char *what, double done, leat_doctor_watch *watch)
{
    seen *s = cookie;
    assert_non_null(what);
    assert_true(done >= 0 && done <= 1);
    s->calls++;
    s->watched += watch != NULL;
    s->done = done;
    return s->stop_at > 0 && s->calls >= s->stop_at;
}

static int examined_for(double seconds, double step_ms, uint32_t batch, seen *s, leat_doctor_facts *f,
                        leat_error *err)
{
    leat_doctor_examine_opts o = LEAT_DOCTOR_EXAMINE_OPTS_INIT;
    leat_loader_opts l;
    leat_loader_opts_init(&l);
    l.batch_size = batch;
    l.ops = "RandomResizedCrop(32)";
    l.order = LEAT_ORDER_RANDOM;
    l.threads = 2;
    o.step_ms = step_ms;
    o.seconds = seconds;
    o.progress = progress;
    o.cookie = s;
    return leat_doctor_examine(PACK, &l, &o, f, err);
}

static int examined(double step_ms, uint32_t batch, seen *s, leat_doctor_facts *f, leat_error *err)
{
    return examined_for(1.5, step_ms, batch, s, f, err);
}

/* A trainer that takes 40 ms for 4 tiny images is the limit on any machine. */
static void a_slow_trainer_is_named(void **state)
{
    leat_doctor_facts f;
    leat_error err = {0};
    seen s = {0};
    (void)state;
    int rc = examined(40, 4, &s, &f, &err);
    if (rc != 0) fail_msg("%s", err.message);
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_TRAINER);
    assert_int_equal(d.complete, 1);
    assert_true(d.lost < 0.05);
    assert_true(f.steps >= 10);
    assert_true(f.batch_ms >= 40);
    assert_true(f.io_warm > 0 && f.cpu_all > 0 && f.delivery > 0 && f.loader > 0);
    assert_true(s.watched > 0);
    assert_near(s.done, 1, 0);
    assert_no_leaks();
}

/* Every read takes 30 ms: whatever else the machine does, the disk is the bottleneck. */
static void a_slow_disk_is_named(void **state)
{
    leat__inject_rule rule = {.path = PACK, .delay_ns = 30000000};
    leat_doctor_facts f;
    leat_error err = {0};
    seen s = {0};
    (void)state;
    assert_ok(leat__io_inject(&rule, NULL));
    int rc = examined(2, 20, &s, &f, &err);
    leat__io_inject_clear();
    if (rc != 0) fail_msg("%s", err.message);
    leat_doctor_diagnosis d = judge(f);
    if (d.limit != LEAT_LIMIT_IO) fail_msg("%s", d.sentence);
    assert_true(d.lost > 0.2);
    assert_no_leaks();
}

/* For a pack that is not in memory, the loader is also tried with cached samples, in any
 * order. */
static void a_cold_pack_is_tried_from_memory(void **state)
{
    leat__inject_rule rule = {.path = PACK, .delay_ns = 4000000};
    leat_doctor_examine_opts o = LEAT_DOCTOR_EXAMINE_OPTS_INIT;
    leat_doctor_facts f;
    leat_loader_opts l;
    leat_error err = {0};
    (void)state;
    leat_loader_opts_init(&l);
    l.batch_size = 8;
    l.ops = "RandomResizedCrop(32)";
    l.order = LEAT_ORDER_SEQUENTIAL;
    l.threads = 2;
    o.step_ms = 1;
    o.seconds = 1.5;
    int fd = open(PACK, O_RDONLY);
    assert_true(fd >= 0 && fsync(fd) == 0);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    assert_ok(leat__io_inject(&rule, NULL));
    int rc = leat_doctor_examine(PACK, &l, &o, &f, &err);
    leat__io_inject_clear();
    if (rc != 0) fail_msg("%s", err.message);
    bool asked = judge(f).limit == LEAT_LIMIT_IO && f.cached >= 0 && f.cached < 0.5 && f.skipped == 0;
    if (asked) assert_true(f.loader_warm > 0);
    assert_no_leaks();
}

/* One read in flight, each of 15 ms: more are tried, and the measured rate is the gain. */
static void remedy_gain_is_measured_by_trying_it(void **state)
{
    leat__inject_rule rule = {.path = PACK, .delay_ns = 15000000};
    leat_doctor_examine_opts o = LEAT_DOCTOR_EXAMINE_OPTS_INIT;
    leat_doctor_facts f;
    leat_loader_opts l;
    leat_error err = {0};
    (void)state;
    leat_loader_opts_init(&l);
    l.batch_size = 8;
    l.ops = "RandomResizedCrop(32)";
    l.io_depth = 1;
    l.threads = 2;
    o.step_ms = 1;
    o.seconds = 1.5;
    assert_ok(leat__io_inject(&rule, NULL));
    int rc = leat_doctor_examine(PACK, &l, &o, &f, &err);
    leat__io_inject_clear();
    if (rc != 0) fail_msg("%s", err.message);
    leat_doctor_diagnosis d = judge(f);
    const leat_doctor_remedy *r = remedy(&d, "io-depth=64");
    if (f.skipped > 0 && f.trial_count == 0)
        return; /* the machine was too busy, and it is
                 * reported */
    if (r == NULL) fail_msg("%s; %u trials", d.sentence, f.trial_count);
    assert_int_equal(r->basis, LEAT_BASIS_MEASURED);
    assert_true(r->gain > 1.5);
    assert_no_leaks();
}

static void no_step_time_is_incomplete(void **state)
{
    leat_doctor_facts f;
    leat_error err = {0};
    seen s = {0};
    (void)state;
    assert_ok(examined(0, 50, &s, &f, &err));
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.complete, 0);
    assert_contains(d.missing[0], "step time");
    assert_true(f.loader > 0 && f.data_ms < 0);
}

/* Storage that is too slow for a single step: the step time was given, and the rate is that of the reads. */
static void a_run_without_steps_has_a_rate(void **state)
{
    leat__inject_rule rule = {.path = PACK, .delay_ns = 150 * LEAT_NS_PER_MS};
    leat_doctor_examine_opts o = LEAT_DOCTOR_EXAMINE_OPTS_INIT;
    leat_loader_opts l;
    leat_doctor_facts f;
    leat_error err = {0};
    (void)state;
    leat_loader_opts_init(&l);
    l.batch_size = 300;
    l.ops = "RandomResizedCrop(32)";
    l.order = LEAT_ORDER_RANDOM;
    l.io_depth = 1;
    o.step_ms = 7;
    o.seconds = 1;
    assert_ok(leat__io_inject(&rule, NULL));
    int rc = leat_doctor_examine(PACK, &l, &o, &f, &err);
    leat__io_inject_clear();
    if (rc != 0) fail_msg("%s", err.message);
    leat_doctor_diagnosis d = judge(f);
    assert_true(f.steps < LEAT__STEPS_ENOUGH);
    for (uint32_t i = 0; i < d.missing_count; i++) assert_null(strstr(d.missing[i], "step time"));
    assert_true(f.batch_ms > 0);
    assert_int_equal(d.limit, LEAT_LIMIT_IO);
    assert_true(d.rate < 1000); /* or unknown */
}

static void it_can_be_stopped(void **state)
{
    leat_doctor_facts f;
    leat_error err = {0};
    seen s = {.stop_at = 2};
    (void)state;
    assert_code(LEAT_ECANCELED, examined(5, 20, &s, &f, &err));
    assert_int_equal(s.calls, 3); /* the last call announces the end of the watch */
    assert_no_leaks();
}

/* 24 batches of a million samples do not fit a millisecond: the trial makes smaller ones and
 * reports it, and the reported step is that of the largest batches that the pack has: its 600 samples. */
static void batches_too_large_for_the_time_are_shrunk(void **state)
{
    leat_doctor_facts f;
    leat_error err = {0};
    seen s = {0};
    (void)state;
    assert_ok(examined_for(0.001, 10, 1000000, &s, &f, &err));
    assert_true(f.trial_batch >= 1 && f.trial_batch < 600);
    assert_near(f.batch, 600, 0);
    leat_doctor_diagnosis d = judge(f);
    bool said = false;
    for (uint32_t i = 0; i < d.finding_count; i++)
        said |= strstr(d.findings[i], "larger ones take too long") != NULL;
    assert_true(said);
    assert_no_leaks();
}

/* Stopped in the run with the trainer: its measurements are kept. */
static void stopping_keeps_what_is_known(void **state)
{
    leat_doctor_facts f;
    leat_error err = {0};
    seen s = {.stop_at = 40};
    (void)state;
    assert_code(LEAT_ECANCELED, examined_for(600, 1, 4, &s, &f, &err));
    assert_true(f.samples_per_s > 0 && f.steps > 0);
    assert_true(f.io_cold < 0 && f.option_count == 0); /* later parts were not reached */
    assert_no_leaks();
}

/* A step of a minute is not waited for: the facts are converted. */
static void long_steps_are_shortened(void **state)
{
    leat_doctor_facts f;
    leat_doctor_diagnosis d;
    leat_error err = {0};
    seen s = {0};
    uint64_t begin = leat__clock_ns();

    assert_ok(examined_for(1.0, 60000, 8, &s, &f, &err));
    assert_true(leat__clock_ns() - begin < 20 * LEAT_NS_PER_S);
    assert_true(f.batch_ms > 59000 && f.batch_ms < 66000);
    assert_true(f.data_ms >= 0 && f.data_ms < 1000);
    assert_true(f.samples_per_s > 0.12 && f.samples_per_s < 0.14); /* 8 in a minute */
    assert_ok(leat_doctor_judge(&f, &d, sizeof d, &err));
    assert_int_equal(LEAT_LIMIT_TRAINER, d.limit);
    assert_true(f.trial_step_ms > 0 && f.trial_step_ms < 1000);
    bool said = false;
    for (uint32_t i = 0; i < d.finding_count; i++)
        said |= strstr(d.findings[i], "no time for enough longer ones") != NULL;
    assert_true(said);
}

static void count_line(void *cookie, leat_log_level level, const char *line)
{
    (void)level;
    (void)line;
    ++*(int *)cookie;
}

/* A loader logs advice about the options once; the trials do not repeat it. */
static void trials_are_silent(void **state)
{
    leat_doctor_examine_opts o = LEAT_DOCTOR_EXAMINE_OPTS_INIT;
    leat_doctor_facts f;
    leat_loader_opts l;
    leat_error err = {0};
    int lines = 0;
    (void)state;
    leat_loader_opts_init(&l);
    l.batch_size = 23; /* of 600 samples two are left for 13 ranks */
    l.world = 13;
    l.ops = "RandomResizedCrop(32)";
    l.order = LEAT_ORDER_RANDOM;
    l.log = (leat_log){.write = count_line, .cookie = &lines};
    o.step_ms = 1;
    o.seconds = 0.5;
    assert_ok(leat_doctor_examine(PACK, &l, &o, &f, &err));
    assert_int_equal(lines, 1);
}

static void a_missing_pack_is_an_error(void **state)
{
    leat_loader_opts l;
    leat_doctor_facts f;
    leat_error err = {0};
    (void)state;
    leat_loader_opts_init(&l);
    assert_code(LEAT_ENOENT, leat_doctor_examine("no-such.leat", &l, NULL, &f, &err));
    assert_contains(err.message, "no-such.leat");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_trainer_is_named),
        cmocka_unit_test(a_slow_disk_is_named),
        cmocka_unit_test(a_cold_pack_is_tried_from_memory),
        cmocka_unit_test(remedy_gain_is_measured_by_trying_it),
        cmocka_unit_test(no_step_time_is_incomplete),
        cmocka_unit_test(a_run_without_steps_has_a_rate),
        cmocka_unit_test(it_can_be_stopped),
        cmocka_unit_test(a_missing_pack_is_an_error),
        cmocka_unit_test(batches_too_large_for_the_time_are_shrunk),
        cmocka_unit_test(stopping_keeps_what_is_known),
        cmocka_unit_test(long_steps_are_shortened),
        cmocka_unit_test(trials_are_silent),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
