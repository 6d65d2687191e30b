/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/mem.h"
#include "doctor/text_run.h"

static leat__text_verdict judged(const char *limit, double read, double work, double write, double memory,
                                 double seconds, const char *more)
{
    char json[600];
    leat__text_verdict v;
    leat_error err = {0};
    snprintf(json, sizeof json,
             "{\"limit\":\"%s\",\"read_share\":%g,\"work_share\":%g,\"write_share\":%g,\"memory_share\":%g,"
             "\"seconds\":%g,\"cpu_seconds\":4,\"text_bytes\":100000000%s}",
             limit, read, work, write, memory, seconds, more);
    if (leat__text_run_judge(&v, json, strlen(json), &err) != 0) fail_msg("%s", err.message);
    return v;
}

static void the_limit_has_a_remedy(void **state)
{
    leat__text_verdict v = judged("reading", 0.97, 0.4, 0.1, 0, 10, ",\"bytes_in\":100000000");
    assert_true(v.warning);
    assert_non_null(strstr(v.sentence, "Reading limits this run"));
    assert_non_null(strstr(v.sentence, "97 %"));
    assert_non_null(strstr(v.remedy[0], "faster disk"));
    assert_int_equal((int)v.mb_per_s, 10);
    assert_int_equal((int)v.mb_per_cpu_s, 25);
    v = judged("reading", 0.97, 0.4, 0.1, 0, 10, ",\"bytes_in\":20000000");
    assert_non_null(strstr(v.remedy[0], "not compressed"));
    v = judged("memory", 0.1, 0.4, 0.1, 0.8, 10, "");
    assert_non_null(strstr(v.remedy[0], "raise --memory"));
    v = judged("writing", 0.1, 0.4, 0.8, 0, 10, "");
    assert_non_null(strstr(v.remedy[0], "faster disk"));
    v = judged("writing", 0.1, 0.4, 0.8, 0, 10, ",\"bands\":14");
    assert_non_null(strstr(v.remedy[0], "raise --memory"));
    v = judged("cpus", 0.1, 0.96, 0.8, 0, 10, "");
    assert_false(v.warning); /* as it should be */
    assert_non_null(strstr(v.remedy[0], "more threads"));
}

static void no_verdict_without_evidence(void **state)
{
    leat__text_verdict v = judged("cpus", 0.1, 0.96, 0.8, 0, 0.1, "");
    assert_string_equal(v.limit, "none");
    assert_non_null(strstr(v.sentence, "too short"));
    assert_int_equal(v.remedies, 0);
    v = judged("reading", 0.3, 0.2, 0.1, 0, 10, "");
    assert_non_null(strstr(v.sentence, "Nothing was busy"));
    assert_false(v.warning);
}

static void other_files_are_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "{}",
                                      "{\"limit\":\"reading\"}",
                                      "{\"limit\":7,\"read_share\":1,\"text_bytes\":1}",
                                      "{\"limit\":\"gpu\",\"read_share\":1,\"text_bytes\":1}"};
    leat__text_verdict v;
    leat_error err = {0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(leat__text_run_judge(&v, bad[i], strlen(bad[i]), &err), LEAT_EFORMAT);
}

static void written(void **state)
{
    leat__text_verdict v = judged("memory", 0.1, 0.4, 0.1, 0.8, 10, "");
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, 1u << 16);
    leat__text_run_json(&v, &out);
    json_t *root = json_loads(leat__buf_str(&out), 0, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "grade")), "warning");
    assert_int_equal(json_array_size(json_object_get(root, "remedies")), v.remedies);
    json_decref(root);
    leat__buf_clear(&out);
    leat__text_run_page(&v, &out);
    assert_non_null(strstr(leat__buf_str(&out), "What would help\n  1. raise --memory"));
    leat__buf_reset(&out);
    assert_int_equal(leat__mem_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_has_a_remedy),
        cmocka_unit_test(no_verdict_without_evidence),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
