/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/dedup_box.h"

#include "curate/decontaminate.h"

static leat_decontaminate_stats st;

static leat_decontaminate_opts opts(const char *out)
{
    static const char *in[1], *evals[1];
    leat_decontaminate_opts o;
    leat_decontaminate_opts_init(&o);
    in[0] = in_box("c.jsonl");
    evals[0] = in_box("e.jsonl");
    o.inputs = in;
    o.evals = evals;
    o.input_count = o.eval_count = 1;
    o.output = in_box(out);
    o.ngram = 3;
    o.threads = 2;
    o.memory = 64u << 20;
    return o;
}

static void run_ok(const leat_decontaminate_opts *o)
{
    leat_error err = {0};
    if (leat_decontaminate_text(o, &st, &err) != 0) fail_msg("%s", err.message);
}

static void is_file(const char *name, const char *expect)
{
    char *text = load_text(name);
    assert_string_equal(text, expect);
    leat__free(text);
}

static void documents_go(void **state)
{
    put_text("e.jsonl", "{\"id\":\"q1\",\"text\":\"a b c d\"}\n{\"id\":\"q2\",\"text\":\"x y z\"}\n"
                        "{\"id\":\"q3\",\"text\":\"short\"}\n{\"id\":\"q4\",\"text\":\"never seen here\"}\n");
    put_text("c.jsonl", "{\"id\":1,\"text\":\"so A, b\\nc; d. more X y z\",\"k\":\"\\u00e9\"}\n"
                        "{\"id\":2,\"text\":\"a b\"}\n{\"id\":3,\"text\":\"short\"}\n[]\n"
                        "{\"id\":4,\"text\":\"x y z\"}\n");
    leat_decontaminate_opts o = opts("d");
    run_ok(&o);
    is_file("d/kept-00000.jsonl", "{\"id\":2,\"text\":\"a b\"}\n{\"id\":3,\"text\":\"short\"}\n");
    is_file("d/evals.jsonl", "{\"id\":\"q1\",\"documents\":1}\n{\"id\":\"q2\",\"documents\":2}\n");
    char *matches = load_text("d/matches.jsonl");
    assert_non_null(strstr(matches, "\"line\":1,\"ngrams\":3,\"eval\":\"q1\",\"span\":\"A, b\\nc; d\","
                                    "\"kept\":false}"));
    leat__free(matches);
    assert_int_equal(st.documents, 4);
    assert_int_equal(st.contaminated, 2);
    assert_int_equal(st.dropped, 2);
    assert_int_equal(st.bad, 1);
    assert_int_equal(st.evals, 4);
    assert_int_equal(st.evals_found, 2);
    assert_int_equal(st.evals_short, 1);
    assert_int_equal(st.eval_ngrams, 4);
    o = opts("m");
    o.min_matches = 2;
    run_ok(&o);
    assert_int_equal(st.contaminated, 1);
}

static void spans_go(void **state)
{
    leat_decontaminate_opts o = opts("s");
    o.by = LEAT_DECONTAMINATE_SPAN;
    run_ok(&o);
    is_file("s/kept-00000.jsonl", "{\"id\":1,\"text\":\"so \\n. more \\n\",\"k\":\"\\u00e9\"}\n"
                                  "{\"id\":2,\"text\":\"a b\"}\n{\"id\":3,\"text\":\"short\"}\n");
    assert_int_equal(st.contaminated, 2);
    assert_int_equal(st.dropped, 1);
    assert_int_equal(st.spans, 3);
    assert_int_equal(st.bytes_removed, 9 + 5 + 5);
    o = opts("w");
    o.by = LEAT_DECONTAMINATE_SPAN;
    o.window = 4; /* the windows meet */
    run_ok(&o);
    assert_int_equal(st.dropped, 2);
    assert_int_equal(st.bytes_removed, 24 + 5);
}

static void documents_without_words_go(void **state)
{
    put_text("e.jsonl", "{\"id\":\"q1\",\"text\":\"a b c d\"}\n");
    put_text("c.jsonl",
             "{\"id\":1,\"text\":\"a b c \u2014\"}\n{\"id\":2,\"text\":\"\u2026a b c\u3002\"}\n"
             "{\"id\":3,\"text\":\"a b c \\u2022\"}\n{\"id\":4,\"text\":\"a b c \U0001f642\"}\n"
             "{\"id\":5,\"text\":\"\\u200ba b c\"}\n{\"id\":6,\"text\":\"a b c \u00e9\"}\n"
             "{\"id\":7,\"text\":\"a b c \u4e2d\u3002\"}\n{\"id\":8,\"text\":\"7 a b c \u2014\"}\n");
    leat_decontaminate_opts o = opts("n");
    o.by = LEAT_DECONTAMINATE_SPAN;
    run_ok(&o);
    is_file("n/kept-00000.jsonl",
            "{\"id\":6,\"text\":\"\\n \u00e9\"}\n{\"id\":7,\"text\":\"\\n \u4e2d\u3002\"}\n"
            "{\"id\":8,\"text\":\"7 \\n \u2014\"}\n");
    assert_int_equal(st.dropped, 5);
}

static void output_is_the_same(void **state)
{
    make_corpus("c.jsonl", 2000);
    char *text = load_text("c.jsonl");
    char *end = text;
    for (int i = 0; i < 20; i++) end = strchr(end, '\n') + 1;
    *end = 0;
    put_text("e.jsonl", text);
    leat__free(text);
    leat_decontaminate_opts o = opts("t1");
    o.ngram = 13;
    o.threads = 1;
    run_ok(&o);
    assert_int_equal(st.evals_found, 20);
    assert_true(st.contaminated >= 20 && st.kept > 1000);
    o = opts("t7");
    o.ngram = 13;
    o.threads = 7;
    o.memory = 256u << 20;
    run_ok(&o);
    same_files("t1/kept-00000.jsonl", "t7/kept-00000.jsonl");
    same_files("t1/matches.jsonl", "t7/matches.jsonl");
    same_files("t1/evals.jsonl", "t7/evals.jsonl");
}

static void options_are_checked(void **state)
{
    leat_error err = {0};
    leat_decontaminate_opts o = opts("x");
    o.window = 5;
    assert_int_equal(leat_decontaminate_text(&o, &st, &err), LEAT_EINVAL);
    o = opts("x");
    o.eval_fields = "none";
    assert_int_equal(leat_decontaminate_text(&o, &st, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "(see eval_field)"));
    o = opts("d");
    assert_int_equal(leat_decontaminate_text(&o, &st, &err), LEAT_EEXIST);
    o.replace = 1;
    run_ok(&o);
    o = opts("x");
    o.ngram = 65;
    assert_int_equal(leat_decontaminate_text(&o, &st, &err), LEAT_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_go),
        cmocka_unit_test(spans_go),
        cmocka_unit_test(documents_without_words_go),
        cmocka_unit_test(output_is_the_same),
        cmocka_unit_test(options_are_checked),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
