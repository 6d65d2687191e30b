/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

#include "doctor/report.h"

static double rate_of(const leat_doctor_frame *f)
{
    return f->samples_per_s;
}

static double lost_of(const leat_doctor_frame *f)
{
    return f->lost;
}

static leat__buf plotted(size_t count, double top, const char *unit)
{
    static leat_doctor_frame frames[1000];
    static const leat__curve curves[] = {{"rate", "c0", rate_of}, {"lost", "bad", lost_of}};
    leat__buf out;
    for (size_t i = 0; i < count; i++)
        frames[i] =
            (leat_doctor_frame){.at_s = (double)i, .samples_per_s = 130.0 * (double)(i % 2), .lost = 0.5};
    leat__buf_init(&out, LEAT__MEM_DOCTOR, 1 << 20);
    leat__svg_plot(&out, "a <b>", unit, curves, 2, top, frames, count);
    return out;
}

static size_t occurs(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) n++;
    return n;
}

static void a_plot_has_a_line_per_curve_and_a_round_axis(void **state)
{
    leat__buf out = plotted(10, 0, "");
    (void)state;
    assert_int_equal(occurs(out.data, "<polyline"), 2);
    assert_contains(out.data, ">200<"); /* 130, rounded up */
    assert_contains(out.data, "a &lt;b&gt;");
    assert_contains(out.data, "class=\"key bad\">lost<");
    leat__buf_reset(&out);
}

static void bytes_have_a_separate_axis(void **state)
{
    leat__buf out = plotted(10, 0, "B");
    (void)state;
    assert_contains(out.data, ">256 B<"); /* 130, and 200 would not be a round number of bytes */
    assert_contains(out.data, ">128 B<");
    leat__buf_reset(&out);
}

/* Half of the axis: half of the height between the margins. */
static void values_match_the_axis(void **state)
{
    leat__buf out = plotted(2, 260, "");
    (void)state;
    assert_contains(out.data, "points=\"52.0,128.0 552.0,69.0\"");
    leat__buf_reset(&out);
}

static void many_frames_are_averaged(void **state)
{
    leat__buf out = plotted(1000, 0, "");
    (void)state;
    assert_true(occurs(out.data, ",") < 600);
    leat__buf_reset(&out);
}

static void nothing_gives_nothing(void **state)
{
    leat__buf out = plotted(0, 0, "");
    (void)state;
    assert_int_equal(out.len, 0);
    leat__buf_reset(&out);
    out = plotted(1, 0, "");
    assert_int_equal(occurs(out.data, "<polyline"), 2);
    assert_null(strstr(out.data, "nan"));
    leat__buf_reset(&out);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plot_has_a_line_per_curve_and_a_round_axis),
        cmocka_unit_test(bytes_have_a_separate_axis),
        cmocka_unit_test(values_match_the_axis),
        cmocka_unit_test(many_frames_are_averaged),
        cmocka_unit_test(nothing_gives_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
