/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/report_box.h"

static void hostile_documents(void **state)
{
    leat_filter_opts o;
    put_text("in.jsonl", "{\"id\":\"<img src=x onerror=alert(1)>\",\"text\":\"</pre>"
                         "<script>alert(2)</script> & \\u0000\\u001b\"}\n{\"id\":[],\"text\":\"\"}\n"
                         "{\"id\":7,\"text\":\"one two three four\"}\n");
    leat_filter_opts_init(&o);
    o.set = "words.min=2,url_ratio.max=0.5";
    if (report_run(&o, "r.html") != 0) fail_msg("%s", err.message);
    char *page = load_box("r.html");
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "<img"));
    assert_null(strchr(page, 0x1b));
    assert_non_null(strstr(page, "&lt;script&gt;alert(2)"));
    assert_non_null(strstr(page, "3 documents: 2 kept, 1 dropped; 0 bad lines."));
    assert_non_null(strstr(page, "words: words between white space"));
    assert_null(strstr(page, "chars: code points")); /* only scores of rules */
    assert_non_null(strstr(page, "in.jsonl:2"));     /* an id that is not text */
    assert_true(strlen(page) > 1000 && strcmp(page + strlen(page) - 15, "</body></html>\n") == 0);
    leat__free(page);
}

static void empty_inputs(void **state)
{
    leat_filter_opts o;
    put_text("in.jsonl", "");
    leat_filter_opts_init(&o);
    o.profile = "gopher@paper";
    if (report_run(&o, "e.html") != 0) fail_msg("%s", err.message);
    char *page = load_box("e.html");
    assert_non_null(strstr(page, "0 documents"));
    assert_null(strstr(page, "nan"));
    leat__free(page);
    /* without rules: all histograms */
    put_text("in.jsonl", "{\"text\":\"a b\"}\n");
    leat_filter_opts_init(&o);
    if (report_run(&o, "e.html") != 0) fail_msg("%s", err.message);
    page = load_box("e.html");
    assert_non_null(strstr(page, "chars: code points"));
    assert_null(strstr(page, "lang_score"));
    leat__free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_documents),
        cmocka_unit_test(empty_inputs),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
