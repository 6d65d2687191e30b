/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include "curate/report_page.h"
#include "io/file.h"

static leat__buf out;

static void fresh(void)
{
    leat__buf_reset(&out);
    leat__buf_init(&out, LEAT__MEM_MISC, 1u << 20);
}

static void text_is_escaped(void **state)
{
    static const char text[] = "<script>alert(\"x\" & 'y')</script>\x1b[31m\n\xc3\xa4\x7f";
    fresh();
    leat__page_text(&out, text, sizeof text - 1);
    assert_string_equal(leat__buf_str(&out),
                        "&lt;script&gt;alert(&quot;x&quot; &amp; &#39;y&#39;)&lt;/script&gt; "
                        "[31m\n\xc3\xa4 ");
    fresh();
    leat__page_begin(&out, "<b>");
    leat__page_bar(&out, "<i>", 2, 7, "a&b");
    leat__page_end(&out);
    assert_null(strstr(leat__buf_str(&out), "<b>"));
    assert_null(strstr(leat__buf_str(&out), "<i>"));
    assert_non_null(strstr(leat__buf_str(&out), "width:100.00%")); /* shares end at 1 */
    assert_non_null(strstr(leat__buf_str(&out), "default-src 'none'"));
}

static void plots_have_bars(void **state)
{
    uint64_t kept[4] = {0, 4, 1, 0}, dropped[4] = {2, 0, 1, 0};
    double marks[1] = {2};
    leat__page_plot p = {"words", "0", "9", kept, dropped, 4, marks, 1};
    fresh();
    leat__page_histogram(&out, &p);
    int bars = 0;
    for (const char *s = leat__buf_str(&out); (s = strstr(s, "<rect")) != NULL; s++) bars++;
    assert_int_equal(bars, 4); /* of counts that are not 0 */
    assert_non_null(strstr(leat__buf_str(&out), "x1=\"180.00\""));
}

static void files_by_ending(void **state)
{
    char paths[1200];
    leat_error err = {0};
    leat__buf html, json;
    leat__buf_init(&html, LEAT__MEM_MISC, 1000);
    leat__buf_init(&json, LEAT__MEM_MISC, 1000);
    leat__buf_puts(&html, "<p>");
    leat__buf_puts(&json, "{}");
    snprintf(paths, sizeof paths, "%s", in_box("a.html"));
    snprintf(paths + strlen(paths), sizeof paths - strlen(paths), ",%s", in_box("b.json"));
    assert_int_equal(leat__page_check(paths, "out", &err), 0);
    assert_int_equal(leat__page_store(paths, &html, &json, &err), 0);
    char *a = NULL;
    size_t len;
    assert_int_equal(leat__file_load(in_box("a.html"), 100, 1, &a, &len, &err), 0);
    assert_string_equal(a, "<p>");
    leat__free(a);
    assert_int_equal(leat__file_load(in_box("b.json"), 100, 1, &a, &len, &err), 0);
    assert_string_equal(a, "{}");
    leat__free(a);
    assert_int_equal(leat__page_check("a.txt", NULL, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "must end in .html or .json"));
    assert_int_equal(leat__page_check("x.html,out/report.json", "out/", &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "written by the run itself"));
    assert_int_equal(leat__page_check("out/report.html", "out", &err), 0);
    put_text("mine.json", "{\"documents\":[1]}"); /* not a report */
    assert_int_equal(leat__page_check(in_box("mine.json"), NULL, &err), LEAT_EINVAL);
    put_text("mine.json", "{\"report\":\"leat\",\"documents\":1}");
    assert_int_equal(leat__page_check(in_box("mine.json"), NULL, &err), 0);
    leat__buf_reset(&html);
    leat__buf_reset(&json);
    leat__buf_reset(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_escaped),
        cmocka_unit_test(plots_have_bars),
        cmocka_unit_test(files_by_ending),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
