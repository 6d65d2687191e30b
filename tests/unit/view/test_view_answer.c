/* SPDX-License-Identifier: Apache-2.0 */
#include "view_ask.h"

#include "base/bytes.h"

static leat__view *view;

/* The answer as text; the status must be 200. */
static const char *get(const char *path, const char *args)
{
    static char text[1 << 16];
    leat__httpd_answer a;
    const uint32_t status = ask_view(view, path, args, NULL, &a);
    snprintf(text, sizeof text, "%s", leat__buf_str(&a.body));
    leat__buf_reset(&a.body);
    if (status != 200) fail_msg("%s: %u %s", path, status, text);
    return text;
}

static void rows_come_in_parts(void **state)
{
    assert_string_equal(
        get("rows", "q={\"sort\":\"key\"}&from=18&count=10&show=label"),
        "{\"matched\":20,\"from\":18,\"rows\":[{\"row\":1,\"key\":\"k18\",\"width\":65,\"height\":48,"
        "\"selected\":false,\"value\":1},{\"row\":0,\"key\":\"k19\",\"width\":64,\"height\":48,"
        "\"selected\":false,\"value\":0}]}");
    assert_string_equal(get("rows", "from=4294967295&count=2000"),
                        "{\"matched\":20,\"from\":20,\"rows\":[]}");
    assert_contains(get("rows", "count=4&show=caption"),
                    "\"row\":3,\"key\":\"k16\",\"width\":48,\"height\":67");
    assert_contains(get("rows", "count=1&show=caption"), "\"value\":\"even 0\"");
    assert_contains(get("rows", "from=7&count=1&show=score"), "\"value\":null");
}

static void groups_have_their_rows(void **state)
{
    const char *g = get("groups", "column=label&from=3&count=5");
    assert_contains(g, "{\"groups\":4,\"list\":[{\"value\":3,\"size\":5,\"rows\":[{\"row\":3,");
    assert_contains(get("groups", "column=label&from=3&show=score"), "\"selected\":false,\"value\":7}");
    assert_contains(get("groups", "column=label&from=9"), "\"list\":[]");
    assert_contains(get("groups", "column=caption&count=1"), "{\"value\":\"An ODD one\",\"size\":10");
}

static void points_are_bytes(void **state)
{
    leat__httpd_answer a;
    assert_int_equal(ask_view(view, "map", "x=width&y=score", NULL, &a), 200);
    assert_string_equal(a.type, "application/octet-stream");
    assert_int_equal(leat__load_u32(a.body.data), 18); /* without those that lack a value */
    assert_int_equal(leat__load_u32(a.body.data + 4), 20);
    assert_int_equal(a.body.len, 8 + 18 * 8);
    assert_int_equal(leat__load_u32(a.body.data + 8), 0); /* row 0 has the highest score */
    assert_int_equal(leat__load_u16(a.body.data + 14), 65535);
    leat__buf_reset(&a.body);
    assert_int_equal(ask_view(view, "map", "x=width&y=width&colour=score", NULL, &a), 200);
    assert_int_equal(leat__load_u32(a.body.data), 19); /* without the row that has no image */
    assert_int_equal(a.body.len, 8 + 19 * 10);
    assert_int_equal(leat__load_u16(a.body.data + 8 + 19 * 8), 65535);     /* row 0 */
    assert_int_equal(leat__load_u16(a.body.data + 8 + 19 * 8 + 2 * 6), 0); /* row 7 has no score */
    assert_int_equal(leat__load_u16(a.body.data + a.body.len - 2), 1);     /* the least */
    leat__buf_reset(&a.body);
    assert_int_equal(ask_view(view, "map", "column=vector", NULL, &a), 200);
    assert_int_equal(leat__load_u32(a.body.data), 19);
    leat__buf_reset(&a.body);
}

static void samples_have_all_values(void **state)
{
    const char *s = get("sample", "row=2");
    assert_contains(s, "{\"row\":{\"row\":2,\"key\":\"k17\"");
    assert_contains(s, "{\"name\":\"label\",\"source\":\"box\",\"type\":\"int\",\"value\":\"2\","
                       "\"names\":[\"<b>eel</b>\"]}");
    assert_contains(s, "{\"name\":\"caption\",\"source\":\"box\",\"type\":\"text\",\"value\":\"even 0\"}");
    assert_contains(s, "\"name\":\"vector\",\"source\":\"box\",\"type\":\"array\",\"bytes\":12");
    assert_contains(get("sample", "row=5"), "\"type\":\"image\"}");
    assert_contains(get("similar", "row=2&column=vector&count=1"), "\"row\":{\"row\":3,\"key\":\"k16\"");
    assert_contains(get("histogram", "column=width"), "\"missing\":1}");
}

static void wrong_arguments_are_refused(void **state)
{
    static const struct {
        const char *path, *args;
        uint32_t status;
    } bad[] = {{"rows", "count=2001", 400},
               {"rows", "from=-1", 400},
               {"rows", "from=4294967296", 400},
               {"rows", "count=x", 400},
               {"rows", "q={", 400},
               {"rows", "show=none", 400},
               {"histogram", "", 400},
               {"histogram", "column=vector", 400},
               {"groups", "column=vector", 400},
               {"groups", "column=none", 400},
               {"map", "", 400},
               {"map", "column=label", 400},
               {"map", "x=width&y=caption", 400},
               {"similar", "column=vector", 400},
               {"similar", "row=20&column=vector", 400},
               {"similar", "row=9&column=vector", 404},
               {"similar", "row=1&column=label", 400},
               {"sample", "", 400},
               {"sample", "row=20", 400}};
    for (size_t i = 0; i < LEAT_COUNT(bad); i++) {
        leat__httpd_answer a;
        if (ask_view(view, bad[i].path, bad[i].args, NULL, &a) != bad[i].status)
            fail_msg("%s?%s: %u", bad[i].path, bad[i].args, a.status);
        assert_true(a.body.len > 0);
        assert_contains(a.type, "text/plain");
        leat__buf_reset(&a.body);
    }
}

static int setup(void **state)
{
    box_pack(BOX_PACK);
    return leat__view_open(&view, &(leat__view_opts){.pack = BOX_PACK}, NULL);
}

static int teardown(void **state)
{
    leat__view_close(&view);
    return leat__mem_blocks() != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_in_parts), cmocka_unit_test(groups_have_their_rows),
        cmocka_unit_test(points_are_bytes), cmocka_unit_test(samples_have_all_values),
        cmocka_unit_test(wrong_arguments_are_refused)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
