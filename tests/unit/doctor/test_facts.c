/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

static void facts_start_unknown(void **state)
{
    leat_doctor_facts f;
    (void)state;
    leat_doctor_facts_init(&f);
    for (size_t i = 0; i < leat__fact_row_count; i++) assert_true(leat__fact_at(&f, i) < 0);
}

static void facts_survive_json(void **state)
{
    leat_doctor_facts f = healthy(), back;
    leat_error err = {0};
    leat__buf out;
    leat__json j;
    (void)state;
    f.gpu_busy = -1;
    f.option_count = 1;
    f.options[0] = (leat_doctor_option){
        .action = "leat pack --images raw", .set = "", .cpu_all = 9, .sample_bytes = 5, .out_bytes = -1};
    f.decision_count = 2;
    f.decisions_made = 9;
    f.decisions[1] = (leat_doctor_decision){
        .at_s = 1.5, .knob = "io_depth", .from = 32, .to = 64, .reason = "read had tasks waiting (90 %)"};
    f.trial_count = 1;
    f.trials[0] = (leat_doctor_trial){.set = "order=quasi_random", .rate = 700, .gain = 1.38, .spread = 0.25};
    leat__buf_init(&out, LEAT__MEM_DOCTOR, 1 << 20);
    leat__json_init(&j, &out, 0);
    leat__json_object(&j);
    leat__facts_json(&j, &f);
    leat__json_end(&j);
    assert_ok(leat_doctor_facts_parse(&back, out.data, out.len, &err));
    for (size_t i = 0; i < leat__fact_row_count; i++)
        assert_near(leat__fact_at(&back, i), leat__fact_at(&f, i), 0);
    assert_int_equal(back.option_count, 1);
    assert_string_equal(back.options[0].action, f.options[0].action);
    assert_near(back.options[0].cpu_all, 9, 0);
    assert_true(back.options[0].out_bytes < 0);
    assert_int_equal(back.trial_count, 1);
    assert_string_equal(back.trials[0].set, "order=quasi_random");
    assert_near(back.trials[0].rate, 700, 0);
    assert_near(back.trials[0].gain, 1.38, 0);
    assert_near(back.trials[0].spread, 0.25, 0);
    assert_int_equal(back.decision_count, 2);
    assert_int_equal(back.decisions_made, 9);
    assert_near(back.decisions[1].at_s, 1.5, 0);
    assert_int_equal(back.decisions[1].from, 32);
    assert_int_equal(back.decisions[1].to, 64);
    assert_string_equal(back.decisions[1].knob, "io_depth");
    assert_string_equal(back.decisions[1].reason, f.decisions[1].reason);
    leat__buf_reset(&out);
    assert_no_leaks();
}

static void a_run_file_may_hold_them_inside(void **state)
{
    static const char text[] = "{\"loader\": \"any\", \"facts\": {\"steps\": 7, \"data_ms\": null}}";
    leat_doctor_facts f;
    leat_error err;
    (void)state;
    assert_ok(leat_doctor_facts_parse(&f, text, sizeof text - 1, &err));
    assert_near(f.steps, 7, 0);
    assert_true(f.data_ms < 0);
}

static void nonsense_is_refused(void **state)
{
    static const struct {
        const char *text, *says;
        int code;
    } rows[] = {{"[1]", "nor a JSON object", LEAT_EDATA},
                {"{\"name\": \"x\"}", "no facts about a run", LEAT_EDATA},
                {"{\"steps\": \"many\"}", "steps", LEAT_EDATA},
                {"{\"steps\": 1", "line 1", LEAT_EDATA},
                {"{\"throttled\": 3}", "throttled", LEAT_EINVAL},
                {"{\"steps\": 1, \"steps\": 2}", "duplicate", LEAT_EDATA},
                {"", "line", LEAT_EDATA}};
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        leat_doctor_facts f;
        leat_error err;
        assert_code(rows[i].code, leat_doctor_facts_parse(&f, rows[i].text, strlen(rows[i].text), &err));
        assert_contains(err.message, rows[i].says);
    }
}

/* A loop that never waits for its device: the wait is beside the work that is queued there. */
static void waits_beside_the_device_are_training(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.data_ms = 24;
    f.data_ms_p50 = 20;
    f.data_ms_p95 = 30;
    f.start_ms = 64;
    f.batch_ms = 1;
    f.prepare_ms = 1;
    f.epoch_steps = 5;
    const double step = leat__doctor_wait_ms(&f) + 2; /* 34 */
    leat_doctor_facts same = f;
    leat__doctor_hide_waits(&same, 1.9); /* shorter than what the host takes */
    assert_memory_equal(&same, &f, sizeof f);
    leat__doctor_hide_waits(&f, 26);
    assert_near(f.batch_ms, 25, 1e-9);
    assert_near(leat__doctor_wait_ms(&f), 8, 1e-9);
    assert_near(leat__doctor_wait_ms(&f) + f.prepare_ms + f.batch_ms, step, 1e-9);
    assert_near(f.start_ms, 16, 1e-9);
    leat__doctor_hide_waits(&f, 1000); /* no more than was waited */
    assert_near(leat__doctor_wait_ms(&f), 0, 1e-9);
    assert_near(f.batch_ms, 33, 1e-9);
    f.data_ms = -1;
    same = f;
    leat__doctor_hide_waits(&f, 1000);
    assert_memory_equal(&same, &f, sizeof f);
}

/* t = c / warm + (1 − c) / cold */
static void reads_blend_by_what_is_cached(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.io_cold = 1000;
    f.io_warm = 9000;
    f.cached = 0.5;
    assert_near(leat__doctor_rates_of(&f).part[LEAT_LIMIT_IO], 1800, 1e-6);
    f.cached = 0;
    assert_near(leat__doctor_rates_of(&f).part[LEAT_LIMIT_IO], 1000, 1e-6);
    f.cached = 1;
    assert_near(leat__doctor_rates_of(&f).part[LEAT_LIMIT_IO], 9000, 1e-6);
    f.io_cold = -1;
    f.cached = 0.5;
    assert_true(leat__doctor_rates_of(&f).part[LEAT_LIMIT_IO] < 0);
}

static void the_smallest_part_and_the_next(void **state)
{
    leat_doctor_facts f = healthy();
    uint32_t next;
    (void)state;
    leat__doctor_rates r = leat__doctor_rates_of(&f);
    assert_int_equal(leat__doctor_smallest(&r, false, &next), LEAT_LIMIT_CPU);
    assert_int_equal(next, LEAT_LIMIT_IO);
    assert_int_equal(leat__doctor_smallest(&r, true, &next), LEAT_LIMIT_TRAINER);
    assert_int_equal(next, LEAT_LIMIT_CPU);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_start_unknown),
        cmocka_unit_test(facts_survive_json),
        cmocka_unit_test(a_run_file_may_hold_them_inside),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(waits_beside_the_device_are_training),
        cmocka_unit_test(reads_blend_by_what_is_cached),
        cmocka_unit_test(the_smallest_part_and_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
