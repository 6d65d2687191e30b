/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "curate/text_line.h"

static char data[256 + LEAT__TEXT_PAD];

static leat__line line_of(const char *text)
{
    memset(data, 0, sizeof data);
    memcpy(data, text, strlen(text));
    return (leat__line){.text = (uint8_t *)data, .len = strlen(text), .number = 7};
}

static char path_text[] = "a \"b\".jsonl";
static char *const paths[] = {path_text};
static const leat__line_names names = {"text", "id", "score", paths, 200};

static void ids(void **state)
{
    static const char *const cases[][2] = {
        {"{\"text\":\"\",\"id\":\"x\\\"y\"}", "\"x\\\"y\""},
        {"{\"text\":\"\",\"id\":-12}", "-12"},
        {"{\"text\":\"\",\"id\":null}", "\"a \\\"b\\\".jsonl:7\""},
        {"{\"text\":\"\"}", "\"a \\\"b\\\".jsonl:7\""},
    };
    for (int i = 0; i < 4; i++) {
        leat__line line = line_of(cases[i][0]);
        leat__record_fields f;
        leat__text_chunk c = {0};
        leat__buf out;
        size_t at;
        leat__buf_init(&out, LEAT__MEM_CURATE, 1000);
        assert_null(leat__line_read(&names, &line, &f, &at));
        leat__line_id_json(&names, &c, &line, &f, &out);
        assert_string_equal(leat__buf_str(&out), cases[i][1]);
        leat__buf_reset(&out);
    }
}

static void what_is_wrong(void **state)
{
    leat__record_fields f;
    size_t at;
    leat__line line = line_of("{\"id\":1}");
    assert_contains(leat__line_read(&names, &line, &f, &at), "missing");
    line = line_of("{\"text\":5}");
    assert_contains(leat__line_read(&names, &line, &f, &at), "not a string");
    line = line_of("{\"text\":null}");
    assert_contains(leat__line_read(&names, &line, &f, &at), "is null");
    line = line_of("{\"text\":\"a\"");
    assert_non_null(leat__line_read(&names, &line, &f, &at));
    assert_int_equal(at, 11);
    leat__buf out;
    int32_t rest;
    leat__buf_init(&out, LEAT__MEM_CURATE, 1000);
    leat__line_bad_json(&names, 0, 3, 99, "broken", &out);
    assert_string_equal(leat__buf_str(&out),
                        "{\"file\":\"a \\\"b\\\".jsonl\",\"line\":3,\"offset\":99,\"reason\":\"broken\"}\n");
    leat__buf_reset(&out);
    line = line_of("{\"text\":\"a\"}");
    line.len = 201;
    assert_contains(leat__line_read(&names, &line, &f, &at), "max-document");
    line = line_of("{\"text\":\"a\",\"score\":2.5}");
    assert_null(leat__line_read(&names, &line, &f, &at));
    assert_true(leat__jsonl_number(&f.keep, &rest) == 2.5);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ids), cmocka_unit_test(what_is_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
