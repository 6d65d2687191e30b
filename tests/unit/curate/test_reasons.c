/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <string.h>

#include "base/mem.h"
#include "curate/reasons.h"

static leat__rule_set rules;

static void make_rules(void)
{
    memset(&rules, 0, sizeof rules);
    assert_ok(leat__rule_set_change(&rules, "words.min=5,urls.max=2,curly.max=0", NULL));
}

static void a_line_names_all_violated_rules(void **state)
{
    static char line[128] = "{\"id\":\"a\",\"text\":\"x\"}";
    static char name[] = "in \"1\".jsonl";
    char *path[] = {name};
    uint8_t failed[LEAT__RULES_MAX];
    leat__counts counts = {.words = 3, .curly = 1};
    leat__line_names n = {.text_field = "text", .id_field = "id", .path = path};
    leat__line l = {.text = (const uint8_t *)line, .len = strlen(line), .number = 7};
    leat__text_chunk c = {0};
    leat__record_fields r;
    leat__buf out;
    size_t at;
    make_rules();
    leat__buf_init(&out, LEAT__MEM_MISC, 1u << 20);
    assert_null(leat__line_read(&n, &l, &r, &at));
    leat__rule_verdict v = {&rules, failed, leat__rule_set_judge(&rules, &counts, failed), &counts};
    assert_int_equal(v.first, 0);
    leat__reason_put(&v, &n, &c, &l, &r, &out);
    assert_string_equal(
        leat__buf_str(&out),
        "{\"id\":\"a\",\"file\":\"in \\\"1\\\".jsonl\",\"line\":7,\"rule\":\"words.min\",\"profile\":"
        "\"\",\"score\":3,\"threshold\":5,\"failed\":[\"words.min\",\"curly.max\"]}\n");
    counts.lang = "de";
    counts.lang_score = 0.5f;
    leat__buf_clear(&out);
    leat__reason_lang(&counts, &out);
    assert_string_equal(leat__buf_str(&out), ",\"lang\":\"de\",\"lang_score\":0.5");
    counts.lang_score = 1.0f / 3;
    leat__buf_clear(&out);
    leat__reason_score(leat__score_lang, &counts, &out);
    assert_true(strtof(leat__buf_str(&out), NULL) == 1.0f / 3);
    leat__buf_reset(&out);
    assert_no_leaks();
}

static void rules_are_counted(void **state)
{
    static leat_filter_rule list[LEAT__RULES_MAX];
    uint64_t counts[6] = {0};
    uint8_t failed[] = {0, 1, 1};
    leat__buf out;
    leat__json j;
    make_rules();
    leat__rule_verdict v = {&rules, failed, 1, NULL};
    leat__reason_count(&v, counts);
    leat__reason_count(&v, counts);
    const uint64_t want[] = {0, 0, 2, 2, 2, 0};
    assert_memory_equal(counts, want, sizeof want);
    assert_int_equal(leat__reason_rules(&rules, list), 3);
    list[1].failed = counts[2];
    list[1].first = counts[3];
    leat__buf_init(&out, LEAT__MEM_MISC, 1u << 20);
    leat__json_init(&j, &out, 0);
    leat__json_object(&j);
    leat__reason_rules_json(list, 2, &j);
    leat__json_end(&j);
    assert_string_equal(leat__buf_str(&out),
                        "{\"rules\":[{\"rule\":\"words.min\",\"profile\":\"\",\"threshold\":5,"
                        "\"failed\":0,\"first\":0},{\"rule\":\"urls.max\",\"profile\":\"\","
                        "\"threshold\":2,\"failed\":2,\"first\":2}]}");
    assert_ok(leat__rule_set_change(&rules, "urls.max=off", NULL));
    assert_int_equal(leat__reason_rules(&rules, list), 3);
    leat__buf_clear(&out);
    leat__json_init(&j, &out, 0);
    leat__json_object(&j);
    leat__reason_rules_json(list, 2, &j);
    leat__json_end(&j);
    assert_non_null(
        strstr(leat__buf_str(&out), "\"rule\":\"urls.max\",\"profile\":\"\",\"threshold\":null,"));
    leat__buf_reset(&out);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_names_all_violated_rules),
        cmocka_unit_test(rules_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
