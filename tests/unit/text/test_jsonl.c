/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <math.h>

#include "text/jsonl.h"

static uint8_t line[4096 + LEAT__TEXT_PAD];

/* Checks that the result is the same when the text of a field is written while the line is read. */
static void check_into(size_t len, const leat__jsonl_field *f, size_t n, const char *wrong, size_t wrong_at)
{
    static uint8_t into[sizeof line], text[sizeof line];
    for (size_t i = 0; i < n; i++) {
        leat__jsonl_field g = {.name = f[i].name, .name_len = f[i].name_len, .into = into};
        uint64_t lone = 0, other = 0;
        size_t at;
        const char *again = leat__jsonl_read(line, len, &g, 1, &at);
        assert_true(again == wrong && at == wrong_at && g.kind == f[i].kind);
        if (wrong || g.kind != LEAT__JSONL_STRING) continue;
        assert_int_equal(leat__jsonl_take(&g, into, &other), leat__jsonl_text(&f[i], text, &lone));
        assert_int_equal(lone, other);
        assert_memory_equal(into, text, g.into_len);
    }
}

static const char *read_line(const char *text, leat__jsonl_field *f, size_t n, size_t *at)
{
    size_t len = strlen(text);
    memset(line, 0, sizeof line);
    memcpy(line, text, len);
    line[len] = '\n';
    const char *wrong = leat__jsonl_read(line, len, f, n, at);
    check_into(len, f, n, wrong, *at);
    return wrong;
}

static void fields_are_found(void **state)
{
    leat__jsonl_field f[2] = {{.name = "text", .name_len = 4}, {.name = "id", .name_len = 2}};
    uint8_t out[256];
    uint64_t lone = 0;
    int32_t rest;
    size_t at;
    assert_null(read_line(
        "{\"id\": 12, \"n\": {\"text\": [1, {}, []]}, \"text\" : \"a\\n\\u00e9\\ud83d\\ude00\\/\" }", f, 2,
        &at));
    assert_int_equal(f[0].kind, LEAT__JSONL_STRING);
    size_t n = leat__jsonl_text(&f[0], out, &lone);
    assert_int_equal(n, 9);
    assert_memory_equal(out, "a\n\xc3\xa9\xf0\x9f\x98\x80/", 9);
    assert_int_equal(lone, 0);
    assert_int_equal(f[1].kind, LEAT__JSONL_NUMBER);
    assert_true(leat__jsonl_number(&f[1], &rest) == 12);
    assert_memory_equal(f[1].member, "\"id\": 12", 8);
    assert_int_equal(f[1].member_len, 8);
    /* the last of equal keys counts, as in Python; a key may have escapes */
    assert_null(read_line("{\"text\":\"a\",\"t\\u0065xt\":\"b\"}", f, 2, &at));
    assert_memory_equal(f[0].raw, "b", 1);
    assert_int_equal(f[1].kind, LEAT__JSONL_ABSENT);
    assert_null(read_line("{\"text\":null,\"id\":-Infinity}\r", f, 2, &at));
    assert_int_equal(f[0].kind, LEAT__JSONL_OTHER);
    assert_null(read_line("{}", f, 2, &at));
}

static void a_lone_surrogate_is_counted(void **state)
{
    leat__jsonl_field f = {.name = "text", .name_len = 4};
    uint8_t out[256];
    uint64_t lone = 0;
    size_t at;
    assert_null(read_line("{\"text\":\"\\ud800x\\udc00\\ud800\\ud800\\udc00\"}", &f, 1, &at));
    size_t n = leat__jsonl_text(&f, out, &lone);
    assert_int_equal(lone, 3);
    assert_int_equal(n, 3 + 1 + 3 + 3 + 4);
}

static void broken_lines_report_the_offset(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "JSON object"},
        {"[1]", "JSON object"},
        {"{", "key"},
        {"{\"a\"", "colon"},
        {"{\"a\":", "no end"},
        {"{\"a\":1", "no end"},
        {"{\"a\":1,}", "key"},
        {"{\"a\":1}x", "after the object"},
        {"{\"a\":\"b}", "no end"},
        {"{\"a\":\"\\q\"}", "escape"},
        {"{\"a\":\"\\u12g4\"}", "hexadecimal"},
        {"{\"a\":\"\\u12", "hexadecimal"},
        {"{\"a\":01}", "comma"},
        {"{\"a\":1.}", "value"},
        {"{\"a\":+1}", "value"},
        {"{\"a\":tru}", "value"},
        {"{\"a\":\"\x01\"}", "control"},
        {"{\"a\":[1,]}", "value"},
        {"{\"a\":[1}", "comma"},
        {"{\"a\":{\"b\"}}", "colon"},
        {"{\"a\":\"\xff\"}", "UTF-8"},
        {"{a:1}", "key"},
        {"{\"a\":1 \"b\":2}", "comma"},
        {"{\"a\":\"\\", "no end"},
    };
    leat__jsonl_field f = {.name = "text", .name_len = 4};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t at = 9999;
        const char *why = read_line(bad[i].text, &f, 1, &at);
        if (!why) fail_msg("accepted: %s", bad[i].text);
        if (!strstr(why, bad[i].why)) fail_msg("%s: %s", bad[i].text, why);
        assert_true(at <= strlen(bad[i].text));
    }
}

static void nesting_has_a_limit(void **state)
{
    char text[3000] = "{\"a\":";
    leat__jsonl_field f = {.name = "text", .name_len = 4};
    size_t at, n = 5;
    memset(text + n, '[', 512);
    memset(text + n + 512, ']', 512);
    strcpy(text + n + 1024, "}");
    assert_null(read_line(text, &f, 1, &at));
    memset(text + n, '[', 513);
    memset(text + n + 513, ']', 513);
    strcpy(text + n + 1026, "}");
    assert_contains(read_line(text, &f, 1, &at), "deeply");
}

/* 64-bit integers are exact: the double and the rest. */
static void numbers(void **state)
{
    static const struct {
        const char *line;
        double value;
        int32_t rest;
    } cases[] = {
        {"{\"n\":0}", 0, 0},
        {"{\"n\":-12.5}", -12.5, 0},
        {"{\"n\":9007199254740993}", 9007199254740992.0, 1},
        {"{\"n\":-9007199254740993}", -9007199254740992.0, -1},
        {"{\"n\":9223372036854775807}", 0x1p63, -1},
        {"{\"n\":-9223372036854775808}", -0x1p63, 0},
        {"{\"n\":18446744073709551615}", 0x1p64, -1},
        {"{\"n\":18446744073709551616}", 0x1p64, 0},
        {"{\"n\":9007199254740992.0}", 9007199254740992.0, 0},
        {"{\"n\":1e999}", INFINITY, 0},
        {"{\"n\":Infinity}", INFINITY, 0},
        {"{\"n\":-Infinity}", -INFINITY, 0},
        {"{\"n\":1000000000000000000000000000000000000000000000000000000000000000000000}", 1e69, 0},
    };
    leat__jsonl_field f = {.name = "n", .name_len = 1};
    size_t at;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t rest;
        assert_null(read_line(cases[i].line, &f, 1, &at));
        assert_true(leat__jsonl_ordered(&f));
        assert_true(leat__jsonl_number(&f, &rest) == cases[i].value);
        assert_int_equal(rest, cases[i].rest);
    }
    assert_null(read_line("{\"n\":-Infinity}", &f, 1, &at));
    assert_int_equal(f.kind, LEAT__JSONL_OTHER); /* not a number of JSON */
    assert_null(read_line("{\"n\":NaN}", &f, 1, &at));
    assert_false(leat__jsonl_ordered(&f));
    assert_null(read_line("{}", &f, 1, &at));
    assert_false(leat__jsonl_ordered(&f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_found),
        cmocka_unit_test(a_lone_surrogate_is_counted),
        cmocka_unit_test(broken_lines_report_the_offset),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
