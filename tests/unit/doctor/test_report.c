/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

#include <leat/version.h>

#include "doctor/report.h"

static int collect(void *cookie, const char *text, size_t len)
{
    return leat__buf_append(cookie, text, len);
}

static leat__buf report_of(const leat_doctor_diagnosis *d, size_t frames)
{
    static leat_doctor_frame frame[50];
    leat__buf out;
    for (size_t i = 0; i < frames; i++)
        frame[i] = (leat_doctor_frame){.at_s = 0.25 * (double)i,
                                       .samples_per_s = 900,
                                       .lost = 0.5,
                                       .budget_limit = 1 << 30,
                                       .budget_used = 1 << 28,
                                       .threads = 4};
    leat__buf_init(&out, LEAT__MEM_DOCTOR, 1 << 20);
    assert_ok(leat_doctor_report(d, frame, frames, "a run of <mine>", collect, &out, NULL));
    return out;
}

static leat_doctor_facts starved(void)
{
    leat_doctor_facts f = healthy();
    starve(&f, 2500);
    f.cpu_all = 2600;
    f.cpu_used = 15.5;
    f.decode_ready = 0.9;
    return f;
}

/* One file: nothing is fetched, nothing runs. */
static void report_is_self_contained(void **state)
{
    leat_doctor_facts f = starved();
    f.decision_count = f.decisions_made = 1;
    f.decisions[0] = (leat_doctor_decision){
        .at_s = 2, .knob = "io_depth", .from = 32, .to = 64, .reason = "reads < wanted"};
    leat_doctor_diagnosis d = judge(f);
    leat__buf out = report_of(&d, 50);
    (void)state;
    assert_contains(out.data, "<!doctype html>");
    assert_contains(out.data, "a run of &lt;mine&gt;");
    assert_contains(out.data, "CPU-bound: ");
    assert_contains(out.data, "(logarithmic scale)");
    assert_contains(out.data, "test_doctor_report"); /* the command, */
    assert_contains(out.data, leat_version());       /* the version */
    assert_contains(out.data, "of a budget of 1.00 GiB");
    assert_contains(out.data, "verdict critical");
    assert_contains(out.data, "<polyline");
    assert_contains(out.data, "Remedies, by predicted gain");
    assert_contains(out.data, "<tr><th>2.00 s</th><th>io_depth 32 &rarr; 64</th><td>reads &lt; wanted</td>");
    assert_null(strstr(out.data, "<script"));
    assert_null(strstr(out.data, "http"));
    assert_null(strstr(out.data, "url("));
    leat__buf_reset(&out);
}

static void without_frames_there_are_no_plots(void **state)
{
    leat_doctor_diagnosis d = judge(starved());
    leat__buf out = report_of(&d, 0);
    (void)state;
    assert_null(strstr(out.data, "<svg"));
    assert_contains(out.data, "<h2>Evidence</h2>");
    leat__buf_reset(&out);
}

static void what_is_missing_is_listed(void **state)
{
    leat_doctor_facts f;
    (void)state;
    leat_doctor_facts_init(&f);
    leat_doctor_diagnosis d = judge(f);
    leat__buf out = report_of(&d, 3);
    assert_contains(out.data, "<h2>Not known</h2>");
    assert_contains(out.data, "the trainer&#39;s step time");
    leat__buf_reset(&out);
}

static void text_is_escaped(void **state)
{
    leat__buf out;
    (void)state;
    leat__buf_init(&out, LEAT__MEM_DOCTOR, 65536);
    leat__html_text(&out, "<script>alert('x' & \"y\")</script>");
    assert_string_equal(out.data, "&lt;script&gt;alert(&#39;x&#39; &amp; &quot;y&quot;)&lt;/script&gt;");
    leat__buf_clear(&out);
    leat__report_page("t", "b", true, &out);
    assert_contains(leat__buf_str(&out), "fetch('/body'");
    leat__buf_reset(&out);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_is_self_contained),
        cmocka_unit_test(without_frames_there_are_no_plots),
        cmocka_unit_test(what_is_missing_is_listed),
        cmocka_unit_test(text_is_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
