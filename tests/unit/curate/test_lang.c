/* SPDX-License-Identifier: Apache-2.0
 *
 * Filter runs with a language model.
 */
#include "ingest/sandbox.h"

#include <leat/text.h>

#include "io/file.h"
#include "text/lid_box.h"

static leat_filter_stats st;
static leat_error err;

static int filter(const char *out, leat_filter_opts *o)
{
    static char lid[512], inputs[512], output[512];
    const char *in[] = {inputs};
    snprintf(lid, sizeof lid, "%s", in_box("m.bin"));
    snprintf(inputs, sizeof inputs, "%s", in_box("in.jsonl"));
    snprintf(output, sizeof output, "%s", in_box(out));
    if (o->lid) o->lid = lid;
    o->inputs = in;
    o->input_count = 1;
    o->output = output;
    memset(&err, 0, sizeof err);
    return leat_filter_text(o, &st, &err);
}

static void expect_file(const char *name, const char *text)
{
    char *got = NULL;
    size_t len;
    if (leat__file_load(in_box(name), 1u << 24, 1, &got, &len, &err) != 0) fail_msg("%s", err.message);
    assert_non_null(strstr(got, text));
    leat__free(got);
}

static void write_inputs(void)
{
    lid_box b = lid_box_new();
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, 1u << 26);
    lid_box_write(&b, &out);
    FILE *f = fopen(in_box("m.bin"), "wb");
    assert_int_equal(fwrite(out.data, 1, out.len, f), out.len);
    fclose(f);
    leat__buf_reset(&out);
    put_text("in.jsonl", "{\"id\":1,\"text\":\"yes yes\"}\n{\"id\":2,\"text\":\"ja\"}\n"
                         "{\"id\":3,\"text\":\"yes ja yes x\"}\n");
}

static void languages_are_filtered(void **state)
{
    leat_filter_opts o;
    write_inputs();
    leat_filter_opts_init(&o);
    o.lid = "m.bin";
    o.lang = "en";
    o.columns = "id,+lang,+lang_score";
    if (filter("en", &o) != 0) fail_msg("%s", err.message);
    assert_int_equal(st.kept, 2);
    assert_string_equal(st.rules[0].name, "lang_match.min");
    expect_file("en/kept-00000.jsonl", "{\"id\":1,\"lang\":\"en\",\"lang_score\":0.93");
    expect_file("en/reasons.jsonl", "\"failed\":[\"lang_match.min\"],\"lang\":\"de\",\"lang_score\":0.88");
    o.lang = "en,de";
    o.lang_min = 0.8;
    o.columns = NULL;
    assert_int_equal(filter("both", &o), 0);
    assert_int_equal(st.kept, 2);
    assert_int_equal(st.rules[1].failed, 1);
    expect_file("both/reasons.jsonl", "{\"id\":3,");
    leat_filter_opts_init(&o);
    o.lid = "m.bin";
    o.score_only = 1;
    assert_int_equal(filter("scores", &o), 0);
    expect_file("scores/scores-00000.jsonl", ",\"lang\":\"de\",\"lang_score\":0.88");
    leat_filter_opts_init(&o);
    o.lid = "m.bin";
    o.set = "lang_score.below=0.8";
    assert_int_equal(filter("low", &o), 0);
    assert_int_equal(st.kept, 1);
}

static void on_looked(void *cookie, const leat_filter_seen *d)
{
    int *seen = cookie;
    seen[strcmp(d->kind, "borderline") == 0]++;
    assert_true(d->lang_score > 0 && (d->kept != 0) == (strcmp(d->lang, "en") == 0));
}

/* A language matches or does not: no document is near that threshold. */
static void no_language_is_borderline(void **state)
{
    leat_filter_opts o;
    int seen[2] = {0};
    leat_filter_opts_init(&o);
    o.lid = "m.bin";
    o.lang = "en";
    o.look = 9;
    o.looked = on_looked;
    o.cookie = seen;
    assert_int_equal(filter("look", &o), 0);
    assert_int_equal(seen[0], 3);
    assert_int_equal(seen[1], 0);
}

static void expect_wrong(leat_filter_opts *o, int code, const char *message)
{
    int rc = filter("wrong", o);
    if (rc != code || !strstr(err.message, message)) fail_msg("%d %s", rc, err.message);
}

static void what_is_refused(void **state)
{
    leat_filter_opts o;
    leat_filter_opts_init(&o);
    o.lang = "en";
    expect_wrong(&o, LEAT_EINVAL, "languages need a model");
    leat_filter_opts_init(&o);
    o.set = "lang_score.min=0.5";
    expect_wrong(&o, LEAT_EINVAL, "languages need a model");
    leat_filter_opts_init(&o);
    o.columns = "+lang";
    expect_wrong(&o, LEAT_EINVAL, "languages need a model");
    leat_filter_opts_init(&o);
    o.lid = "m.bin";
    o.lang = "en,dee";
    expect_wrong(&o, LEAT_EINVAL, "the model has no label \"dee\" (did you mean de?)");
    o.lang = NULL;
    o.lang_min = 2;
    expect_wrong(&o, LEAT_EINVAL, "lang_min");
    o.lang_min = 0.65;
    o.set = "words.min=2,lang_score.min=0.5";
    expect_wrong(&o, LEAT_EINVAL, "lang_min and set both give the rule lang_score.min a threshold");
    o.lang = "en";
    o.lang_min = 0;
    o.set = "lang_match.min=off";
    expect_wrong(&o, LEAT_EINVAL, "lang and set both give the rule lang_match.min a threshold");
    o.lang = o.set = NULL;
    o.lang_min = 0.5;
    o.memory = 64;
    expect_wrong(&o, LEAT_EBUDGET, "half of the memory limit");
    put_text("m.bin", "not a model");
    o.memory = 0;
    expect_wrong(&o, LEAT_EDATA, "m.bin: not a fastText model");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(languages_are_filtered),
        cmocka_unit_test(no_language_is_borderline),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
