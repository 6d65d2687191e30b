/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

static void names_are_those_of_the_contract(void **state)
{
    static const char *const limits[] = {"none",    "io",     "cpu",    "delivery",
                                         "trainer", "memory", "python", "device"};
    (void)state;
    for (uint32_t i = 0; i < LEAT_LIMITS; i++) assert_string_equal(leat_doctor_limit_name(i), limits[i]);
    assert_string_equal(leat_doctor_limit_name(99), "unknown");
    assert_string_equal(leat_doctor_cause_name(LEAT_CAUSE_THROTTLED), "quota");
    assert_string_equal(leat_doctor_cause_name(99), "unknown");
    assert_string_equal(leat_doctor_grade_name(LEAT_GRADE_CRITICAL), "critical");
    assert_string_equal(leat_doctor_basis_name(LEAT_BASIS_GUIDE), "guide");
}

static void the_sentence_has_the_numbers(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    starve(&f, 2764.8); /* 92.6 ms a step of which 50 are the trainer's: 46 % lost */
    f.cpu_all = 2800;
    f.decode_ready = 0.9;
    f.decode_share = 0.81;
    f.cpu_used = 15.5;
    assert_string_equal(judge(f).sentence,
                        "CPU-bound: decode takes 81 % of worker time; the trainer waits 46 % of each step");
}

static bool says(const leat_doctor_diagnosis *d, const char *text)
{
    for (uint32_t i = 0; i < d->evidence_count; i++)
        if (strstr(d->evidence[i], text) != NULL) return true;
    return false;
}

static void decoding_on_the_device_has_a_price(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    leat_doctor_diagnosis d = judge(f);
    assert_false(says(&d, "on the device"));
    f.data_ms = 1;
    f.batch_ms = 49;
    f.copy_ms = 0.4;
    f.device_decode_ms = 0.75;
    f.device_overlap_ms = 0.3;
    f.device_share = 0;
    d = judge(f);
    assert_true(says(&d, "copies 0.40 ms, decoding 0.75 ms, 0.30 ms of both side by side"));
    assert_false(says(&d, "the device decodes"));
    assert_true(says(&d, "decode and augmentation alone, from memory: 12.0k samples/s on 16 threads"));
    f.device_share = 1;
    d = judge(f);
    assert_true(says(&d, "the host's part of decoding and augmentation, beside the device: 12.0k samples/s"));
    assert_false(says(&d, "alone, from memory"));
    assert_true(says(&d, "the device decodes 100 % of the images: it costs up to 1.5 % of the step"));
    f.device_frees = 2.4;
    d = judge(f);
    assert_true(says(&d, "it costs up to 1.5 % of the step and frees 2.4 CPUs"));
}

/* Of a loader that is watched, no part runs alone. */
static void what_was_not_measured_alone_is_not_called_so(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.io_cold = f.io_warm = f.io_deep = f.io_pages = f.loader = f.delivery = f.out_bytes = f.out_pixels = -1;
    leat_doctor_diagnosis d = judge(f);
    assert_false(says(&d, "alone"));
    assert_true(says(&d, "decode and augmentation, from the time that workers were busy: 12.0k samples/s"));
}

static void damage_is_found_beside_the_limit(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.bad = 0.12;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.finding_count, 1);
    assert_contains(d.findings[0], "12 % of the samples are damaged");
}

static void an_idle_gpu_without_waiting_is_found(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.gpu_busy = 0.1;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.limit, LEAT_LIMIT_TRAINER);
    assert_contains(d.findings[0], "the GPU is busy 10 %");
}

static void stalls_that_the_mean_hides_are_found(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.data_ms = 1;
    f.data_ms_p50 = 0.1;
    f.data_ms_p95 = 15;
    leat_doctor_diagnosis d = judge(f);
    assert_int_equal(d.grade, LEAT_GRADE_FINE);
    assert_contains(d.findings[0], "one step in twenty waits 15.0 ms");
}

static void lines_end_at_their_limit(void **state)
{
    char lines[LEAT_DOCTOR_LINES][160];
    uint32_t count = 0;
    (void)state;
    for (int i = 0; i < 2 * LEAT_DOCTOR_LINES; i++) leat__doctor_line(lines, &count, "%0200d", i);
    assert_int_equal(count, LEAT_DOCTOR_LINES);
    assert_int_equal(strlen(lines[0]), 159);
}

static void doubt_names_what_would_settle_it(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    starve(&f, 2600);
    f.steps = 12;
    leat_doctor_diagnosis d = judge(f);
    assert_true(d.confidence < 0.5 && d.finding_count > 0);
    assert_contains(d.findings[0], "not sure after 12 steps: a longer run settles it");
    f.steps = 1;
    d = judge(f);
    assert_contains(d.findings[0], "not sure after 1 step: a longer run settles it");
    f.steps = 200;
    f.batch_ms = f.batch_ms_p50 = f.batch_ms_p95 = -1;
    d = judge(f);
    if (d.confidence < 0.5) assert_contains(d.findings[0], "step time");
    d = judge(healthy());
    for (uint32_t i = 0; i < d.finding_count; i++) assert_null(strstr(d.findings[i], "not sure"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubt_names_what_would_settle_it),
        cmocka_unit_test(names_are_those_of_the_contract),
        cmocka_unit_test(the_sentence_has_the_numbers),
        cmocka_unit_test(decoding_on_the_device_has_a_price),
        cmocka_unit_test(what_was_not_measured_alone_is_not_called_so),
        cmocka_unit_test(damage_is_found_beside_the_limit),
        cmocka_unit_test(an_idle_gpu_without_waiting_is_found),
        cmocka_unit_test(stalls_that_the_mean_hides_are_found),
        cmocka_unit_test(lines_end_at_their_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
