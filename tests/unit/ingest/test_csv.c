/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include "ingest/csv.h"

typedef struct reader {
    leat__stream *stream;
    leat__csv csv;
} reader;

static void begin(reader *r, const char *text, size_t len, char delimiter)
{
    r->stream = NULL;
    assert_int_equal(leat__stream_open_memory(&r->stream, "t.csv", text, len, NULL), 0);
    assert_int_equal(leat__csv_init(&r->csv, r->stream, delimiter, NULL), 0);
}

static void end(reader *r)
{
    leat__csv_reset(&r->csv);
    leat__stream_close(&r->stream);
}

static void expect_row(reader *r, uint64_t line, uint32_t n, const char *const *cells)
{
    bool over;
    leat_error err = {0};
    if (leat__csv_next(&r->csv, &over, &err) != 0) fail_msg("%s", err.message);
    assert_false(over);
    assert_int_equal(r->csv.line, line);
    assert_int_equal(r->csv.cells, n);
    for (uint32_t i = 0; i < n; i++) assert_string_equal(leat__csv_cell(&r->csv, i), cells[i]);
    assert_string_equal(leat__csv_cell(&r->csv, n), "");
}

static void expect_end(reader *r)
{
    bool over;
    assert_int_equal(leat__csv_next(&r->csv, &over, NULL), 0);
    assert_true(over);
}

#define ROW(r, line, ...)                                                                                    \
    expect_row(r, line, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),                              \
               (const char *const[]){__VA_ARGS__})

static void rules_of_rfc_4180(void **state)
{
    static const char text[] = "\xef\xbb\xbfpath,label\r\n"
                               "a.jpg,\"a \"\"quoted\"\" one\"\n"
                               "\n"
                               "\"b,\nc\",\r\n"
                               ",,\n"
                               "last,row";
    reader r;
    begin(&r, text, sizeof text - 1, ',');
    ROW(&r, 1, "path", "label");
    ROW(&r, 2, "a.jpg", "a \"quoted\" one");
    ROW(&r, 4, "b,\nc", "");
    ROW(&r, 6, "", "", "");
    ROW(&r, 7, "last", "row");
    expect_end(&r);
    end(&r);
    begin(&r, "a,b\tc\n", 6, '\t');
    ROW(&r, 1, "a,b", "c");
    end(&r);
}

static void a_bad_row_does_not_end_the_file(void **state)
{
    static const char text[] = "a,b\nx\"y,z\nok,1\n\"q\"r,s\nfine,2\nn\0l,3\nend,4\n\"open\n";
    reader r;
    bool over;
    leat_error err = {0};
    begin(&r, text, sizeof text - 1, ',');
    ROW(&r, 1, "a", "b");
    assert_int_equal(leat__csv_next(&r.csv, &over, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, ":2: "));
    ROW(&r, 3, "ok", "1");
    assert_int_equal(leat__csv_next(&r.csv, &over, &err), LEAT_EDATA);
    ROW(&r, 5, "fine", "2");
    assert_int_equal(leat__csv_next(&r.csv, &over, &err), LEAT_EDATA);
    ROW(&r, 7, "end", "4");
    assert_int_equal(leat__csv_next(&r.csv, &over, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "not closed"));
    expect_end(&r);
    end(&r);
}

static void lines_for_json(void **state)
{
    static const char text[] = "{\"a\":1}\r\n\n{\"b\":\"x,\\\"y\"}\nlast";
    static const char *const want[] = {"{\"a\":1}", "{\"b\":\"x,\\\"y\"}", "last"};
    static const uint64_t line[] = {1, 3, 4};
    reader r;
    bool over;
    begin(&r, text, sizeof text - 1, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(leat__csv_next_line(&r.csv, &over, NULL), 0);
        assert_false(over);
        assert_string_equal(r.csv.row.data, want[i]);
        assert_int_equal(r.csv.line, line[i]);
        assert_memory_equal(text + r.csv.offset, want[i], strlen(want[i]));
    }
    assert_int_equal(leat__csv_next_line(&r.csv, &over, NULL), 0);
    assert_true(over);
    end(&r);
}

static void too_much_is_refused(void **state)
{
    size_t n = LEAT__CSV_ROW_MAX + 100;
    char *text = malloc(n + 4);
    reader r;
    bool over;
    memset(text, ',', n);
    memcpy(text + n, "\nz\n", 4);
    begin(&r, text, n + 3, ',');
    assert_int_equal(leat__csv_next(&r.csv, &over, NULL), LEAT_EDATA);
    ROW(&r, 2, "z");
    end(&r);
    memset(text, 'x', n);
    begin(&r, text, n + 3, ',');
    assert_int_equal(leat__csv_next(&r.csv, &over, NULL), LEAT_EDATA);
    ROW(&r, 2, "z");
    end(&r);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_of_rfc_4180),
        cmocka_unit_test(a_bad_row_does_not_end_the_file),
        cmocka_unit_test(lines_for_json),
        cmocka_unit_test(too_much_is_refused),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
