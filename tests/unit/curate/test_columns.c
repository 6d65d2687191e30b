/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "curate/columns.h"

static leat__columns columns;

/* The line with the chosen columns; a static text. */
static const char *put(const char *names, const char *json, const char *now)
{
    static leat__buf out;
    static char line[4096];
    leat__line_names n = {.text_field = "text", .id_field = "id"};
    leat__record_fields r;
    leat__counts counts = {.words = 7};
    leat_error err = {0};
    size_t at;
    leat__buf_reset(&out);
    leat__buf_init(&out, LEAT__MEM_MISC, 1u << 20);
    memset(line, 0, sizeof line);
    strcpy(line, json);
    if (leat__columns_parse(&columns, names, "text", "id", &err) != 0) fail_msg("%s", err.message);
    n.column = columns.wanted;
    n.column_count = columns.wanted_count;
    leat__line l = {.text = (const uint8_t *)line, .len = strlen(json), .number = 1};
    assert_null(leat__line_read(&n, &l, &r, &at));
    leat__columns_put(&columns, &l, &r, now, now ? strlen(now) : 0, &counts, &out);
    leat__columns_reset(&columns);
    return leat__buf_str(&out);
}

static const char doc[] = "{\"a\": [1, {\"id\":2}], \"text\" : \"x\\u0041\", \"id\":5, \"\":0, "
                          "\"b\\n\":null} \r";

static void chosen_members_are_copied(void **state)
{
    assert_string_equal(put("id,text", doc, NULL), "{\"id\":5,\"text\" : \"x\\u0041\"}\n");
    assert_string_equal(put("text,a,nothing", doc, NULL),
                        "{\"text\" : \"x\\u0041\",\"a\": [1, {\"id\":2}]}\n");
    assert_string_equal(put("text", doc, "new \"text\""), "{\"text\" : \"new \\\"text\\\"\"}\n");
    assert_string_equal(put("nothing", doc, NULL), "{}\n");
    assert_string_equal(put("b\n,id", doc, NULL), "{\"b\\n\":null,\"id\":5}\n");
}

static void scores_are_added(void **state)
{
    assert_string_equal(put("id,+words,a", doc, NULL), "{\"id\":5,\"words\":7,\"a\": [1, {\"id\":2}]}\n");
    assert_string_equal(put("+words", "{\"text\":\"}\"}", NULL), "{\"text\":\"}\",\"words\":7}\n");
    assert_string_equal(put("+words,+urls", doc, NULL),
                        "{\"a\": [1, {\"id\":2}], \"text\" : \"x\\u0041\", \"id\":5, \"\":0, "
                        "\"b\\n\":null,\"words\":7,\"urls\":0}\n");
    assert_string_equal(put("+words", "{\"text\":\"old\",\"z\":1}", "new"),
                        "{\"text\":\"new\",\"z\":1,\"words\":7}\n");
}

static void a_score_replaces_its_key(void **state)
{
    assert_string_equal(put("+words", "{\"words\":\"one\", \"text\":\"a\"}", NULL),
                        "{\"words\":7, \"text\":\"a\"}\n");
    assert_string_equal(
        put("+urls,+words", "{\"text\":\"a\", \"w\":0 , \"words\" : [1,2], \"urls\":null}", NULL),
        "{\"text\":\"a\", \"w\":0 , \"words\":7, \"urls\":0}\n");
    assert_string_equal(put("+urls,+words", "{\"words\":1,\"text\":\"a\"}", "new"),
                        "{\"words\":7,\"text\":\"new\",\"urls\":0}\n");
    assert_string_equal(put("+words", "{\"text\":\"a\",\"words\":1}", "new"),
                        "{\"text\":\"new\",\"words\":7}\n");
    assert_string_equal(put("id,+words", "{\"text\":\"a\",\"words\":1,\"id\":2}", NULL),
                        "{\"id\":2,\"words\":7}\n");
}

static void keys_that_no_document_has_are_named(void **state)
{
    unsigned i = 0;
    leat_error err = {0};
    assert_int_equal(leat__columns_parse(&columns, "nothing,text,+words,none", "text", "id", &err), 0);
    atomic_store(&columns.found[1], true); /* as a document with a text does */
    assert_string_equal(leat__columns_missing(&columns, &i), "nothing");
    assert_string_equal(leat__columns_missing(&columns, &i), "none");
    assert_null(leat__columns_missing(&columns, &i));
    leat__columns_reset(&columns);
    i = 0;
    assert_int_equal(leat__columns_parse(&columns, "+words", "text", "id", &err), 0);
    assert_null(leat__columns_missing(&columns, &i));
    leat__columns_reset(&columns);
}

static void expect_wrong(const char *names, const char *message)
{
    leat_error err = {0};
    assert_int_not_equal(leat__columns_parse(&columns, names, "text", "id", &err), 0);
    if (!strstr(err.message, message)) fail_msg("%s", err.message);
    leat__columns_reset(&columns);
}

static void wrong_lists_are_refused(void **state)
{
    expect_wrong("", "empty");
    expect_wrong("a,,b", "empty");
    expect_wrong("a,+", "empty");
    expect_wrong("+wrods", "did you mean words?");
    expect_wrong("words,+words", "\"words\" appears twice");
    leat_error err = {0};
    assert_int_equal(leat__columns_parse(&columns, "+words", "words", "id", &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "+words would replace \"words\""));
    leat__columns_reset(&columns);
    assert_int_equal(leat__columns_parse(&columns, "+words", "text", "words", &err), LEAT_EINVAL);
    leat__columns_reset(&columns);
    assert_int_equal(leat__columns_parse(&columns, "id,+words", "words", "id", &err), 0);
    leat__columns_reset(&columns);
    char many[4 * LEAT__COLUMNS_MAX + 16] = "a";
    for (int i = 0; i < LEAT__COLUMNS_MAX; i++) {
        char name[8] = {',', 'b', (char)('a' + i % 26), (char)('a' + i / 26), 0};
        strcat(many, name);
    }
    expect_wrong(many, "more than 64");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chosen_members_are_copied), cmocka_unit_test(scores_are_added),
        cmocka_unit_test(a_score_replaces_its_key),  cmocka_unit_test(keys_that_no_document_has_are_named),
        cmocka_unit_test(wrong_lists_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
