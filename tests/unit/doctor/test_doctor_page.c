/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

static leat__buf page_of(leat_doctor_facts f, bool ascii)
{
    leat__buf out;
    leat_doctor_diagnosis d = judge(f);
    leat__buf_init(&out, LEAT__MEM_DOCTOR, 1 << 20);
    leat__doctor_page(&d, &out, ascii);
    return out;
}

static void the_page_begins_with_the_sentence_and_marks_the_limit(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    starve(&f, 2500);
    f.cpu_all = 2600;
    f.cpu_used = 15.5;
    f.decode_ready = 0.9;
    leat_doctor_diagnosis d = judge(f);
    leat__buf out = page_of(f, true);
    assert_memory_equal(out.data, d.sentence, strlen(d.sentence));
    assert_contains(out.data, "2.60k  <- the limit");
    assert_contains(out.data, "Remedies, by predicted gain");
    for (size_t i = 0; i < out.len; i++) assert_true((unsigned char)out.data[i] < 0x80);
    leat__buf_reset(&out);
}

static void unknown_facts_are_listed(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    f.io_cold = f.io_warm = f.decode_ready = -1;
    leat__buf out = page_of(f, false);
    assert_contains(out.data, "INCOMPLETE");
    assert_contains(out.data, "the rate of reads");
    assert_contains(out.data, "reads               not known");
    leat__buf_reset(&out);
    assert_no_leaks();
}

static void decisions_of_the_controller_are_shown(void **state)
{
    leat_doctor_facts f = healthy();
    (void)state;
    leat__buf out = page_of(f, true);
    assert_null(strstr(out.data, "Decided"));
    leat__buf_reset(&out);
    f.decision_count = 1;
    f.decisions_made = 1;
    f.decisions[0] = (leat_doctor_decision){
        .at_s = 12.25, .knob = "threads", .from = 8, .to = 4, .reason = "the consumer does not wait"};
    out = page_of(f, true);
    assert_contains(out.data, "\nDecided by the controller\n    12.25 s  threads 8 -> 4: the consumer does");
    leat__buf_reset(&out);
    f.decisions_made = 20;
    out = page_of(f, true);
    assert_contains(out.data, "Decided by the controller, the last 1 of 20\n");
    leat__buf_reset(&out);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_begins_with_the_sentence_and_marks_the_limit),
        cmocka_unit_test(unknown_facts_are_listed),
        cmocka_unit_test(decisions_of_the_controller_are_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
