/* SPDX-License-Identifier: Apache-2.0 */
#include "view_box.h"

#include "view/view_query.h"

static leat__view_data d;

static const char *histogram(const char *column, const char *query)
{
    static char text[4096];
    leat__buf out;
    leat__json j;
    leat__view_rows rows;
    static const uint8_t none[BOX_ROWS];
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
    leat__json_init(&j, &out, 0);
    assert_ok(leat__view_query(&d, query, none, &rows, NULL));
    assert_ok(leat__view_histogram(&d, leat__view_find(&d, column), &rows, &j, NULL));
    snprintf(text, sizeof text, "%s", leat__buf_str(&out));
    leat__view_rows_reset(&d, &rows);
    leat__buf_reset(&out);
    return text;
}

static void numbers_have_bins(void **state)
{
    const char *h = histogram("score", "{}");
    assert_contains(h, "{\"lo\":-9,\"hi\":10,\"bins\":[1,");
    assert_contains(h, "],\"missing\":1}");
    assert_string_equal(
        histogram("width",
                  "{\"where\":[{\"column\":\"label\",\"in\":[0]},{\"column\":\"score\",\"min\":2}]}"),
        "{\"lo\":64,\"hi\":73,\"bins\":[1,0,0,0,1,0,0,0,1],\"missing\":0}");
    assert_string_equal(histogram("score", "{\"where\":[{\"column\":\"score\",\"min\":99}]}"),
                        "{\"bins\":[],\"missing\":0}");
    h = histogram("score", "{\"where\":[{\"column\":\"score\",\"min\":10}]}"); /* one value */
    assert_contains(h, "{\"lo\":10,\"hi\":10,\"bins\":[1,0,");
}

static void values_come_most_frequent_first(void **state)
{
    assert_string_equal(
        histogram("caption", "{\"where\":[{\"column\":\"score\",\"min\":6}]}"),
        "{\"values\":[{\"value\":\"An ODD one\",\"count\":2},{\"value\":\"even 0\",\"count\":2},"
        "{\"value\":\"even 1\",\"count\":1}],\"others\":0}");
    assert_string_equal(histogram("label", "{\"where\":[{\"column\":\"score\",\"min\":8}]}"),
                        "{\"values\":[{\"value\":0,\"name\":\"cat\",\"count\":1},{\"value\":1,\"name\":"
                        "\"dog\",\"count\":1},"
                        "{\"value\":2,\"name\":\"<b>eel</b>\",\"count\":1}],\"others\":0}");
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_have_bins),
                                       cmocka_unit_test(values_come_most_frequent_first)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
