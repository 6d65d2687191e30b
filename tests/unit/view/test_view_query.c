/* SPDX-License-Identifier: Apache-2.0 */
#include "view_box.h"

#include "view/view_query.h"

static leat__view_data d;
static uint8_t selected[(BOX_ROWS + 7) / 8] = {0x05};

/* The rows of a query as text: "3 1 2". */
static const char *rows_of(const char *query)
{
    static char text[256];
    leat__view_rows rows;
    leat_error err = {0};
    size_t len = 0;
    text[0] = 0;
    if (leat__view_query(&d, query, selected, &rows, &err) != 0) fail_msg("%s", err.message);
    for (uint32_t i = 0; i < rows.count; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%u", i ? " " : "", rows.row[i]);
    leat__view_rows_reset(&d, &rows);
    return text;
}

static void conditions_are_joined(void **state)
{
    assert_string_equal(rows_of("{\"where\":[{\"column\":\"score\",\"min\":6,\"max\":8}]}"), "2 3 4");
    assert_string_equal(rows_of("{\"where\":[{\"column\":\"score\",\"min\":2,\"max\":4}]}"),
                        "6 8"); /* 7 is NaN */
    assert_string_equal(
        rows_of("{\"where\":[{\"column\":\"label\",\"in\":[3]},{\"column\":\"score\",\"max\":0}]}"),
        "11 15 19");
    assert_string_equal(rows_of("{\"where\":[{\"column\":\"label\",\"in\":[]}]}"), "");
    assert_string_equal(
        rows_of("{\"where\":[{\"column\":\"label\",\"bit\":1},{\"column\":\"score\",\"min\":5}]}"), "2 3");
    assert_string_equal(rows_of("{\"where\":[{\"column\":\"key\",\"has\":\"K1\"},{\"selected\":true}]}"),
                        "0 2");
    assert_string_equal(rows_of("{\"where\":[{\"column\":\"caption\",\"has\":\"odd\"},{\"selected\":false},"
                                "{\"column\":\"score\",\"min\":5}]}"),
                        "1 3 5");
    assert_string_equal(rows_of("{\"where\":[{\"column\":\"caption\",\"in\":[\"even 1\",\"even 4\"]}]}"),
                        "4 6 16 18");
    assert_string_equal(
        rows_of("{\"where\":[{\"column\":\"key\",\"has\":\"\"},{\"column\":\"score\",\"min\":10}]}"), "0");
}

static void rows_are_sorted(void **state)
{
    assert_string_equal(rows_of("{\"sort\":\"score\",\"where\":[{\"column\":\"key\",\"has\":\"k1\"}]}"),
                        "9 8 6 5 4 3 2 1 0 7"); /* without a value: last */
    assert_string_equal(
        rows_of("{\"sort\":\"score\",\"desc\":true,\"where\":[{\"column\":\"key\",\"has\":\"k1\"}]}"),
        "0 1 2 3 4 5 6 8 9 7");
    assert_string_equal(rows_of("{\"sort\":\"key\",\"where\":[{\"column\":\"score\",\"min\":8}]}"), "2 1 0");
    assert_string_equal(
        rows_of("{\"sort\":\"label\",\"desc\":true,\"where\":[{\"column\":\"key\",\"has\":\"k1\"}]}"),
        "3 7 2 6 1 5 9 0 4 8"); /* equal values keep their order */
    assert_string_equal(rows_of(NULL), rows_of(""));
}

static void bad_queries_are_refused(void **state)
{
    static const char *const bad[] = {"[",
                                      "3",
                                      "{\"where\":3}",
                                      "{\"where\":[{}]}",
                                      "{\"where\":[3]}",
                                      "{\"where\":[{\"column\":\"none\",\"min\":1}]}",
                                      "{\"where\":[{\"column\":\"score\"}]}",
                                      "{\"where\":[{\"column\":\"score\",\"bit\":1}]}",
                                      "{\"where\":[{\"column\":\"label\",\"bit\":64}]}",
                                      "{\"where\":[{\"column\":\"label\",\"bit\":-1}]}",
                                      "{\"where\":[{\"column\":\"key\",\"min\":1}]}",
                                      "{\"where\":[{\"column\":\"vector\",\"min\":1}]}",
                                      "{\"sort\":\"none\"}",
                                      "{\"sort\":\"vector\"}",
                                      "{\"sort\":3}"};
    for (size_t i = 0; i < LEAT_COUNT(bad); i++) {
        leat__view_rows rows;
        leat_error err = {0};
        assert_code(LEAT_EINVAL, leat__view_query(&d, bad[i], selected, &rows, &err));
        assert_true(err.message[0] != 0);
    }
    assert_false(leat__view_query_selects("{\"sort\":\"a\"}"));
    assert_true(leat__view_query_selects("{\"where\":[{\"selected\":true}]}"));
}

static void equal_values_form_groups(void **state)
{
    leat__view_rows rows;
    leat__view_groups g;
    assert_ok(leat__view_query(&d, "{\"where\":[{\"column\":\"score\",\"min\":2}]}", selected, &rows, NULL));
    assert_ok(leat__view_group(&d, leat__view_find(&d, "label"), &rows, &g, NULL)); /* rows 0..6 and 8 */
    assert_int_equal(g.count, 3); /* label 3 is there once */
    assert_int_equal(g.size[0], 3);
    assert_int_equal(rows.row[g.start[0] + 2], 8);
    assert_int_equal(rows.row[g.start[2]], 2);
    leat__view_groups_reset(&d, &g);
    assert_ok(leat__view_group(&d, leat__view_find(&d, "caption"), &rows, &g, NULL));
    assert_int_equal(g.count, 3); /* "An ODD one", "even 0" and "even 1"; "even 2" is there once */
    leat__view_groups_reset(&d, &g);
    leat__view_rows_reset(&d, &rows);
    assert_ok(leat__view_query(&d, "{\"where\":[{\"column\":\"score\",\"max\":-1}]}", selected, &rows, NULL));
    assert_ok(leat__view_group(&d, leat__view_find(&d, "score"), &rows, &g, NULL));
    assert_int_equal(g.count, 0); /* negative numbers are not a group */
    leat__view_groups_reset(&d, &g);
    leat__view_rows_reset(&d, &rows);
}

static int setup(void **state)
{
    box_open(&d, 1 << 20);
    return 0;
}

static int teardown(void **state)
{
    leat__view_data_close(&d);
    return leat__mem_blocks() != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_are_joined), cmocka_unit_test(rows_are_sorted),
        cmocka_unit_test(bad_queries_are_refused), cmocka_unit_test(equal_values_form_groups)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
