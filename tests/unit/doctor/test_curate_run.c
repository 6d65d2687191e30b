/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "doctor/curate_run.h"

#define STEP(name, seconds, limit, advice)                                                                   \
    "\"" name "\":{\"state\":\"done\",\"seconds\":" seconds ",\"cpu_seconds\":1,\"limit\":\"" limit          \
    "\",\"why\":\"because\",\"advice\":\"" advice "\"}"

static leat__curate_verdict judged(const char *json)
{
    leat__curate_verdict v;
    leat_error err = {0};
    if (leat__curate_run_judge(&v, json, strlen(json), &err) != 0) fail_msg("%s", err.message);
    return v;
}

static void the_longest_step_counts(void **state)
{
    leat__buf out;
    leat__curate_verdict v =
        judged("{\"version\":1,\"steps\":{" STEP("pack", "10", "I/O", "a faster disk") "," STEP(
            "dedup", "30", "CPU",
            "more CPU cores") ",\"tag\":{\"state\":\"off\"},\"select\":{\"state\":\"running\"}}}");
    (void)state;
    assert_string_equal(v.longest, "dedup");
    assert_false(v.warning); /* it does its own work */
    leat__buf_init(&out, LEAT__MEM_MISC, 1u << 16);
    leat__curate_run_page(&v, &out);
    assert_non_null(strstr(leat__buf_str(&out), "dedup took 75 % of 40.0 s; its limit: CPU (because)."));
    assert_non_null(strstr(leat__buf_str(&out), "a faster disk"));
    assert_non_null(strstr(leat__buf_str(&out), "select   not done"));
    assert_null(strstr(leat__buf_str(&out), "tag"));
    leat__buf_reset(&out);
    leat__buf_init(&out, LEAT__MEM_MISC, 1u << 16);
    leat__curate_run_json(&v, &out);
    assert_non_null(strstr(leat__buf_str(&out), "\"grade\":\"fine\""));
    leat__buf_reset(&out);
    leat__curate_run_reset(&v);
}

static void what_holds_a_step_up_is_a_warning(void **state)
{
    static const char *const limits[] = {"I/O", "memory", "CPU, other processes", "CPU, one thread"};
    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        char json[300];
        snprintf(json, sizeof json,
                 "{\"steps\":{\"pack\":{\"state\":\"done\",\"seconds\":9,\"limit\":\"%s\"}}}", limits[i]);
        leat__curate_verdict v = judged(json);
        assert_true(v.warning);
        leat__curate_run_reset(&v);
    }
}

static void short_and_unfinished_runs_have_no_limit(void **state)
{
    static const char *const runs[] = {
        "{\"steps\":{}}", "{\"steps\":{\"pack\":{\"state\":\"running\"}}}",
        "{\"steps\":{\"pack\":{\"state\":\"done\",\"seconds\":0.1,\"limit\":\"I/O\"}}}"};
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        leat__buf out;
        leat__curate_verdict v = judged(runs[i]);
        assert_false(v.warning);
        leat__buf_init(&out, LEAT__MEM_MISC, 1u << 16);
        leat__curate_run_json(&v, &out);
        assert_non_null(strstr(leat__buf_str(&out), "\"grade\":\"unknown\""));
        leat__buf_reset(&out);
        leat__curate_run_reset(&v);
    }
}

static void other_files_are_refused(void **state)
{
    static const char *const texts[] = {"", "{", "[]", "{\"steps\":3}", "{\"limit\":\"cpus\"}"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        leat__curate_verdict v;
        leat_error err = {0};
        assert_int_equal(leat__curate_run_judge(&v, texts[i], strlen(texts[i]), &err), LEAT_EFORMAT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_step_counts),
        cmocka_unit_test(what_holds_a_step_up_is_a_warning),
        cmocka_unit_test(short_and_unfinished_runs_have_no_limit),
        cmocka_unit_test(other_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
