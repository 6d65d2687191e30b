/* SPDX-License-Identifier: Apache-2.0 */
#include "view_ask.h"

#include "base/thread.h"

static void nothing_is_answered_without_the_token(void **state)
{
    leat__view *v = NULL;
    char path[128];
    static const char *const bad[] = {"/",
                                      "",
                                      "//",
                                      "/facts",
                                      "/00000000000000000000000000000000/facts",
                                      "/00000000000000000000000000000000/",
                                      "/../"};
    box_pack(BOX_PACK);
    assert_ok(leat__view_open(&v, &(leat__view_opts){.pack = BOX_PACK}, NULL));
    for (size_t i = 0; i <= LEAT_COUNT(bad); i++) {
        leat__httpd_answer a = {.status = 200};
        snprintf(path, sizeof path, "/%s", leat__view_token(v)); /* without the slash at its end */
        const leat__httpd_request r = {
            .path = i < LEAT_COUNT(bad) ? bad[i] : path, .arg = ask_arg, .from = ""};
        leat__buf_init(&a.body, LEAT__MEM_MISC, 1 << 20);
        leat__view_answer(v, &r, &a);
        assert_int_equal(a.status, 403);
        assert_int_equal(a.body.len, 0);
        leat__buf_reset(&a.body);
    }
    leat__view_close(&v);
    leat__view_close(&v);
    assert_no_leaks();
}

static void the_page_runs_only_its_own_script(void **state)
{
    leat__view *v = NULL;
    leat__httpd_answer a;
    box_pack(BOX_PACK);
    assert_ok(leat__view_open(&v, &(leat__view_opts){.pack = BOX_PACK}, NULL));
    assert_int_equal(ask_view(v, "", "", NULL, &a), 200);
    assert_contains(a.policy, "default-src 'none'");
    assert_contains(a.policy, "script-src 'nonce-");
    assert_null(strstr(a.policy, "unsafe-inline"));
    assert_null(strstr(a.body.data, "@NONCE@"));
    assert_null(strstr(a.body.data, "innerHTML"));
    assert_null(strstr(a.body.data, "https://"));
    assert_false(a.keep);
    leat__buf_reset(&a.body);
    assert_int_equal(ask_view(v, "t/0", "s=20", NULL, &a), 200);
    assert_true(a.keep);
    leat__buf_reset(&a.body);
    leat__view_close(&v);
    assert_no_leaks();
}

static void pictures_of_wrong_rows_are_refused(void **state)
{
    static const struct {
        const char *path, *args;
        uint32_t status;
    } bad[] = {
        {"t/20", "", 404}, {"t/", "", 404},     {"t/-1", "", 404},      {"t/99999999999999999999", "", 404},
        {"i/20", "", 404}, {"t/1", "s=0", 400}, {"t/1", "s=1025", 400}, {"t/5", "", 404},
        {"none", "", 404}, {"select", "", 404}, {"t/1/2", "", 404}};
    leat__view *v = NULL;
    box_pack(BOX_PACK);
    assert_ok(leat__view_open(&v, &(leat__view_opts){.pack = BOX_PACK}, NULL));
    for (size_t i = 0; i < LEAT_COUNT(bad); i++) {
        leat__httpd_answer a;
        if (ask_view(v, bad[i].path, bad[i].args, NULL, &a) != bad[i].status)
            fail_msg("%s: %u", bad[i].path, a.status);
        assert_false(a.keep);
        leat__buf_reset(&a.body);
    }
    leat__view_close(&v);
    assert_no_leaks();
}

static void post(leat__view *v, const char *path, const char *body, uint32_t status, const char *text)
{
    leat__httpd_answer a;
    if (ask_view(v, path, "", body, &a) != status) fail_msg("%s %s: %u", path, body, a.status);
    assert_contains(leat__buf_str(&a.body), text);
    leat__buf_reset(&a.body);
}

static void selections_change_and_are_saved(void **state)
{
    leat__view *v = NULL;
    leat__httpd_answer a;
    box_pack(BOX_PACK);
    assert_ok(leat__view_open(&v, &(leat__view_opts){.pack = BOX_PACK, .save = "mine.leat"}, NULL));
    post(v, "save", "{}", 400, "no image is selected");
    post(v, "select", "{\"rows\":[1,4,4],\"on\":true}", 200, "{\"selected\":2}");
    post(v, "select", "{\"rows\":[1,20],\"on\":false}", 400, "no such row");
    post(v, "select", "{\"rows\":[99999999999999999999],\"on\":true}", 400, "no such row");
    post(v, "select", "{\"rows\":[1],\"on\":false}", 200, "{\"selected\":1}");
    post(v, "select", "{\"on\":true}", 400, "needs");
    post(v, "select", "[", 400, "needs");
    const char *chosen = "q={\"where\":[{\"selected\":true}]}";
    assert_int_equal(ask_view(v, "rows", chosen, NULL, &a), 200);
    assert_contains(a.body.data, "{\"matched\":1,");
    leat__buf_reset(&a.body);
    post(v, "select",
         "{\"q\":\"{\\\"where\\\":[{\\\"column\\\":\\\"label\\\",\\\"in\\\":[0]}]}\",\"on\":true}", 200,
         "{\"selected\":5}");
    assert_int_equal(ask_view(v, "rows", chosen, NULL, &a), 200); /* not the result before the change */
    assert_contains(a.body.data, "{\"matched\":5,");
    leat__buf_reset(&a.body);
    post(v, "save", "{}", 200, "{\"path\":\"mine.leat\",\"selected\":5}");
    post(v, "save", "{}", 200, "\"mine-2.leat\"");
    leat__view_close(&v);
    assert_ok(leat__view_open(&v, &(leat__view_opts){.pack = BOX_PACK, .selection = "mine.leat"}, NULL));
    assert_int_equal(ask_view(v, "facts", "", NULL, &a), 200);
    assert_contains(a.body.data, "\"selected\":5,\"save\":\"box.selection\"");
    leat__buf_reset(&a.body);
    leat__view_close(&v);
    assert_no_leaks();
}

static void a_small_budget_is_enough_or_refused(void **state)
{
    leat__view *v = NULL;
    leat__httpd_answer a;
    box_pack(BOX_PACK);
    assert_ok(leat__view_open(&v, &(leat__view_opts){.pack = BOX_PACK, .memory = 900}, NULL));
    for (int i = 0; i < 40; i++) { /* results and columns make room for each other */
        char args[128];
        snprintf(args, sizeof args, "q={\"sort\":\"%s\",\"desc\":%s}", i % 2 ? "width" : "score",
                 i % 3 ? "true" : "false");
        if (ask_view(v, "rows", args, NULL, &a) != 200) fail_msg("%s", leat__buf_str(&a.body));
        leat__buf_reset(&a.body);
    }
    assert_int_equal(ask_view(v, "rows", "q={\"sort\":\"caption\"}", NULL, &a), 413);
    assert_contains(a.body.data, "but memory is");
    leat__buf_reset(&a.body);
    leat__view_close(&v);
    assert_no_leaks();
}

/* One thread of a browser: rows, pictures and changes of the selection, in another order each. */
static void browse(void *view)
{
    static const char *const args[] = {"q={\"sort\":\"score\"}", "q={\"sort\":\"key\",\"desc\":true}",
                                       "q={\"where\":[{\"selected\":true}]}", "column=label", "s=40"};
    static const char *const paths[] = {"rows", "rows", "rows", "histogram", "t/2"};
    leat__httpd_answer a;
    for (uint32_t i = 0; i < 60; i++) {
        const uint32_t n = (i * 7 + leat__thread_id()) % 6;
        const uint32_t status = n < 5 ? ask_view(view, paths[n], args[n], NULL, &a)
                                      : ask_view(view, "select", "", "{\"rows\":[1,3],\"on\":true}", &a);
        if (status != 200) abort();
        leat__buf_reset(&a.body);
    }
}

static void threads_may_ask_at_once(void **state)
{
    leat__view *v = NULL;
    leat__thread threads[4] = {0};
    box_pack(BOX_PACK);
    assert_ok(leat__view_open(&v, &(leat__view_opts){.pack = BOX_PACK, .memory = 4000}, NULL));
    for (size_t i = 0; i < LEAT_COUNT(threads); i++)
        assert_ok(leat__thread_start(&threads[i], "browse", browse, v, NULL));
    for (size_t i = 0; i < LEAT_COUNT(threads); i++) leat__thread_join(&threads[i]);
    leat__view_close(&v);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_answered_without_the_token),
        cmocka_unit_test(the_page_runs_only_its_own_script),
        cmocka_unit_test(pictures_of_wrong_rows_are_refused),
        cmocka_unit_test(selections_change_and_are_saved),
        cmocka_unit_test(a_small_budget_is_enough_or_refused),
        cmocka_unit_test(threads_may_ask_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
