/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include <leat/text.h>

#include "io/file.h"

static char *load(const char *name)
{
    char *data = NULL;
    size_t len;
    leat_error err = {0};
    if (leat__file_load(in_box(name), 1u << 28, 1, &data, &len, &err) != 0) fail_msg("%s", err.message);
    return data;
}

static void expect_file(const char *name, const char *text)
{
    char *got = load(name);
    assert_string_equal(got, text);
    leat__free(got);
}

static int filter(const char *in, const char *out, leat_filter_opts *o, leat_filter_stats *st,
                  leat_error *err)
{
    const char *inputs[] = {in_box(in)};
    o->inputs = inputs;
    o->input_count = 1;
    o->output = out ? in_box(out) : NULL;
    return leat_filter_text(o, st, err);
}

static leat_filter_stats st;

static void kept_lines_are_untouched(void **state)
{
    static const char lines[] = "{ \"text\" : \"one two three\\u0041\", \"x\": [1.50, {}] }\r\n"
                                "\n"
                                "{\"text\":\"one\",\"id\":\"b\"}\n"
                                "{\"text\":\"one two \\ud800\",\"id\":3}\n"
                                "{\"text\":5}\n"
                                "{\"text\":\"x\"\n"
                                "{\"text\":\"\xff\"}\n"
                                "{\"txt\":\"\"}";
    put_text("in.jsonl", lines);
    leat_filter_opts o;
    leat_error err = {0};
    leat_filter_opts_init(&o);
    o.set = "words.min=2";
    assert_int_equal(filter("in.jsonl", "out", &o, &st, &err), 0);
    assert_int_equal(st.documents, 3);
    assert_int_equal(st.kept, 2);
    assert_int_equal(st.dropped, 1);
    assert_int_equal(st.bad, 4);
    assert_int_equal(st.lone_surrogates, 1);
    assert_int_equal(st.rules[0].failed, 1);
    expect_file("out/kept-00000.jsonl", "{ \"text\" : \"one two three\\u0041\", \"x\": [1.50, {}] }\r\n"
                                        "{\"text\":\"one two \\ud800\",\"id\":3}\n");
    char *reasons = load("out/reasons.jsonl"), *bad = load("out/bad.jsonl");
    assert_non_null(strstr(reasons, "{\"id\":\"b\",\"file\":"));
    assert_non_null(
        strstr(reasons, "\"line\":3,\"rule\":\"words.min\",\"profile\":\"\",\"score\":1,\"threshold\":2"));
    assert_non_null(strstr(bad, "\"line\":5,\"offset\":111,\"reason\":\"the text field is not a string\""));
    assert_non_null(strstr(bad, "\"line\":6"));
    assert_non_null(strstr(bad, "not valid UTF-8"));
    assert_non_null(strstr(bad, "missing"));
    leat__free(reasons);
    leat__free(bad);
    assert_int_equal(filter("in.jsonl", "out", &o, &st, &err), LEAT_EEXIST);
    assert_non_null(strstr(err.message, "use force"));
    o.replace = 1;
    o.fail_on_bad = 1;
    assert_int_equal(filter("in.jsonl", "out", &o, &st, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "line 5, offset 111: the text field is not a string"));
    o.fail_on_bad = 0;
    assert_int_equal(filter("in.jsonl", "out", &o, &st, &err), 0);
}

/* Many documents: same bytes for any number of threads, and sharded. */
static void threads_do_not_matter(void **state)
{
    FILE *f = fopen(in_box("many.jsonl"), "wb");
    for (int i = 0; i < 30000; i++) {
        fprintf(f, "{\"id\":%d,\"text\":\"", i);
        for (int k = 0; k < i % 60; k++) fprintf(f, "word%d the of ", (i * 31 + k * 7) % 97);
        fprintf(f, ".\"}\n");
    }
    fclose(f);
    char *first[3] = {NULL};
    for (uint32_t t = 1; t <= 5; t += 2) {
        leat_filter_opts o;
        leat_filter_opts_init(&o);
        o.profile = "gopher@paper";
        o.set = "top_2gram_ratio.max=off,words.min=20";
        o.threads = t;
        o.shard_bytes = 4u << 20;
        o.replace = 1;
        o.memory = t == 5 ? 80u << 20 : 0;
        leat_error err = {0};
        if (filter("many.jsonl", "many", &o, &st, &err) != 0) fail_msg("%s", err.message);
        assert_true(st.shards > 1 && st.dropped > 0 && st.kept > 0);
        static const char *const names[] = {"many/kept-00000.jsonl", "many/kept-00001.jsonl",
                                            "many/reasons.jsonl"};
        for (int i = 0; i < 3; i++) {
            char *now = load(names[i]);
            if (first[i]) assert_string_equal(first[i], now);
            leat__free(first[i]);
            first[i] = now;
        }
    }
    for (int i = 0; i < 3; i++) leat__free(first[i]);
}

static void modified_texts_are_written(void **state)
{
    put_text("mod.jsonl", "{\"a\":1,\"text\":\"see http://x.y/z "
                          "now\\r\\n\",\"b\":\"\\u0041\"}\n{\"text\":\"plain\",\"b\":\"\\u0041\"}\n");
    leat_filter_opts o;
    leat_error err = {0};
    leat_filter_opts_init(&o);
    o.modify = "urls,newlines";
    assert_int_equal(filter("mod.jsonl", "mod", &o, &st, &err), 0);
    assert_int_equal(st.modified, 1);
    expect_file("mod/kept-00000.jsonl",
                "{\"a\":1,\"text\":\"see  "
                "now\\n\",\"b\":\"\\u0041\"}\n{\"text\":\"plain\",\"b\":\"\\u0041\"}\n");
}

static char explained[4096];

static void on_explained(void *cookie, const char *json)
{
    snprintf(explained, sizeof explained, "%s", json);
}

static void scores_and_explanations(void **state)
{
    leat_filter_opts o;
    leat_error err = {0};
    leat_filter_opts_init(&o);
    o.score_only = 1;
    assert_int_equal(filter("mod.jsonl", "scores", &o, &st, &err), 0);
    char *scores = load("scores/scores-00000.jsonl");
    assert_non_null(strstr(scores, ",\"words\":3,"));
    leat__free(scores);
    leat_filter_opts_init(&o);
    o.profile = "fineweb@paper";
    o.explain = "b";
    o.explained = on_explained;
    assert_int_equal(filter("in.jsonl", NULL, &o, &st, &err), 0);
    assert_non_null(strstr(explained, "{\"id\":\"b\""));
    assert_non_null(strstr(explained, "\"rule\":\"terminal_line_ratio.above\""));
}

static void wrong_options(void **state)
{
    leat_filter_opts o;
    leat_error err = {0};
    leat_filter_opts_init(&o);
    assert_int_equal(filter("in.jsonl", "x", &o, &st, &err), LEAT_EINVAL);
    o.profile = "nothing";
    assert_int_equal(filter("in.jsonl", "x", &o, &st, &err), LEAT_EINVAL);
    o.profile = "gopher@paper";
    o.modify = "nothing";
    assert_int_equal(filter("in.jsonl", "x", &o, &st, &err), LEAT_EINVAL);
    o.modify = NULL;
    assert_int_equal(filter("absent.jsonl", "x", &o, &st, &err), LEAT_ENOENT);
    o.memory = 4096;
    assert_int_equal(filter("in.jsonl", "x", &o, &st, &err), LEAT_EBUDGET);
    assert_int_not_equal(access(in_box("x/report.json"), F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_lines_are_untouched),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(modified_texts_are_written),
        cmocka_unit_test(scores_and_explanations),
        cmocka_unit_test(wrong_options),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
