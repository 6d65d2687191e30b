/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/dedup_box.h"

static leat_dedup_stats st;

static void options_are_checked(void **state)
{
    leat_error err = {0};
    leat_dedup_opts o = fuzzy_opts("c.jsonl", "x");
    make_corpus("c.jsonl", 3000);
    o.kind = 7;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EINVAL);
    o = fuzzy_opts("c.jsonl", "x");
    o.bands = 200;
    o.rows = 20;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "200 bands of 20 rows"));
    o = fuzzy_opts("c.jsonl", "x");
    o.shingle_words = 5;
    o.shingle_chars = 9;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EINVAL);
    o = fuzzy_opts("c.jsonl", "x");
    o.keep = LEAT_KEEP_FIELD;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EINVAL);
    o = fuzzy_opts("c.jsonl", "x");
    o.kind = LEAT_DEDUP_EXACT;
    o.bands = 3;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EINVAL);
    o = fuzzy_opts("absent.jsonl", "x");
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_ENOENT);
    /* a failure before the first checkpoint leaves nothing to resume, and no work files */
    put_text("broken.jsonl", "{\"text\":\"a\"}\n{\n");
    o = fuzzy_opts("broken.jsonl", "x");
    o.fail_on_bad = 1;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EDATA);
    assert_int_equal(st.resumable, 0);
    assert_int_not_equal(access(in_box("x/.leat-work"), F_OK), 0);
}

/* The same bytes for any threads, memory and number of bands at once. */
static void output_is_the_same(void **state)
{
    leat_dedup_opts o = fuzzy_opts("c.jsonl", "a");
    dedup_ok(&o, &st);
    assert_int_equal(st.documents, 3000);
    assert_int_equal(st.kept + st.removed, 3000);
    assert_true(st.removed > 200);
    assert_int_equal(st.below_threshold, 0);
    assert_int_not_equal(access(in_box("a/.leat-work"), F_OK), 0);
    o = fuzzy_opts("c.jsonl", "b");
    o.threads = 7;
    o.memory = 64u << 20;
    o.bands_per_iteration = 3;
    o.checkpoint_bytes = 100000;
    dedup_ok(&o, &st);
    assert_int_equal(st.passes, 5);
    same_files("a/kept-00000.jsonl", "b/kept-00000.jsonl");
    same_files("a/clusters.jsonl", "b/clusters.jsonl");
    leat_error err = {0};
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EEXIST);
    o.replace = 1;
    dedup_ok(&o, &st);
}

/* Results of very short lines are many times longer than the lines. */
static void short_lines_fit_a_small_budget(void **state)
{
    FILE *f = fopen(in_box("short.jsonl"), "wb");
    assert_non_null(f);
    for (int i = 0; i < 64000; i++) fprintf(f, "{\"text\":\"a%d b\"}\n", i % 60000);
    fclose(f);
    leat_dedup_opts o = fuzzy_opts("short.jsonl", "short");
    o.memory = 64u << 20;
    o.index = 1;
    dedup_ok(&o, &st);
    assert_int_equal(st.documents, 64000);
    assert_int_equal(st.removed, 4000);
}

typedef struct stopper {
    int calls, stop_at;
} stopper;

static int stop(void *cookie, uint64_t done, uint64_t total, uint64_t documents, uint64_t dropped)
{
    stopper *s = cookie;
    assert_true(done <= total);
    return s->calls++ == s->stop_at;
}

/* Stopped after every possible step, and resumed until it is done. */
static void stopped_runs_continue(void **state)
{
    leat_dedup_opts o = fuzzy_opts("c.jsonl", "s");
    leat_error err = {0};
    int rc = LEAT_ECANCELED, runs = 0;
    o.bands_per_iteration = 7;
    o.checkpoint_bytes = 1;
    o.resume = 1;
    for (int at = 0; rc == LEAT_ECANCELED; at++, runs++) {
        stopper s = {.stop_at = at % 4};
        o.progress = stop;
        o.cookie = &s;
        if (runs > 100) o.progress = NULL;
        rc = leat_dedup_text(&o, &st, &err);
    }
    if (rc != 0) fail_msg("%s", err.message);
    assert_true(runs > 2);
    assert_int_equal(st.resumed, 1);
    same_files("a/kept-00000.jsonl", "s/kept-00000.jsonl");
    same_files("a/clusters.jsonl", "s/clusters.jsonl");
}

/* A run with `force` that is stopped before it saved a state starts over with `resume`, as after a kill. */
static void stopped_force_starts_over(void **state)
{
    stopper s = {0};
    leat_error err = {0};
    leat_dedup_opts o = fuzzy_opts("c.jsonl", "again");
    o.progress = stop;
    o.cookie = &s;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_ECANCELED);
    assert_int_not_equal(access(in_box("again/.leat-work"), F_OK),
                         0); /* no earlier output: nothing is left */
    o.kind = LEAT_DEDUP_EXACT;
    o.progress = NULL;
    dedup_ok(&o, &st);
    o.kind = LEAT_DEDUP_FUZZY;
    o.progress = stop;
    for (int i = 0; i < 2; i++) { /* `resume` is stopped, too */
        s = (stopper){0};
        o.replace = i == 0;
        o.resume = i == 1;
        assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_ECANCELED);
        assert_int_equal(st.resumable, 0);
        assert_int_equal(access(in_box("again/.leat-work/begun"), F_OK), 0);
    }
    o.progress = NULL;
    o.kind = LEAT_DEDUP_EXACT; /* other options than those of the stopped run: nothing is replaced */
    o.normalize = 1;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EEXIST);
    assert_non_null(strstr(err.message, "other options"));
    o.kind = LEAT_DEDUP_FUZZY;
    o.normalize = 0;
    dedup_ok(&o, &st);
    assert_int_equal(st.already_complete, 0);
    same_files("a/kept-00000.jsonl", "again/kept-00000.jsonl");
    assert_int_not_equal(access(in_box("again/.leat-work"), F_OK), 0);
}

/* Files of someone else in the work folder stay, also with `force`. */
static void other_files_in_the_work_folder_are_kept(void **state)
{
    leat_error err = {0};
    leat_dedup_opts o = fuzzy_opts("c.jsonl", "shared");
    put_text("shared/.leat-work/mine", "mine");
    for (int i = 0; i < 3; i++) {
        o.replace = i == 1;
        o.resume = i == 2;
        assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EEXIST);
        assert_non_null(strstr(err.message, ".leat-work/mine: is not a file of leat"));
    }
    assert_int_equal(access(in_box("shared/.leat-work/mine"), F_OK), 0);
    assert_int_equal(unlink(in_box("shared/.leat-work/mine")), 0);
    put_text("shared/.leat-work/edge-3", "left by a run that was killed");
    o.resume = 0;
    dedup_ok(&o, &st);
}

/* A link in place of the work folder: nothing of its target is removed. */
static void a_link_is_refused_as_work_folder(void **state)
{
    leat_error err = {0};
    leat_dedup_opts o = fuzzy_opts("c.jsonl", "linked");
    assert_int_equal(mkdir(in_box("own"), 0777), 0);
    put_text("own/state.json", "mine");
    assert_int_equal(mkdir(in_box("linked"), 0777), 0);
    assert_int_equal(symlink("../own", in_box("linked/.leat-work")), 0);
    for (int i = 0; i < 3; i++) {
        o.replace = i == 1;
        o.resume = i == 2;
        assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EEXIST);
        assert_non_null(strstr(err.message, ".leat-work: is not a folder: remove it first"));
        assert_int_equal(access(in_box("own/state.json"), F_OK), 0);
    }
}

/* One run with rules writes what a filter and a deduplication write in sequence, also when it is
 * stopped and resumed, in several passes, and in little memory. */
static void rules_drop_documents_first(void **state)
{
    static leat_filter_stats fs;
    const char *in[] = {in_box("c.jsonl")};
    leat_filter_opts f;
    leat_error err = {0};
    leat_filter_opts_init(&f);
    f.inputs = in;
    f.input_count = 1;
    f.output = in_box("filtered");
    f.profile = "fineweb@paper";
    f.set = "words.min=75,terminal_line_ratio.above=off";
    if (leat_filter_text(&f, &fs, &err) != 0) fail_msg("%s", err.message);
    assert_true(fs.dropped > 100 && fs.kept > 100);
    leat_dedup_opts o = fuzzy_opts("filtered", "second");
    dedup_ok(&o, &st);
    assert_int_equal(st.rule_count, 0);
    uint64_t kept = st.kept, removed = st.removed;
    for (int way = 0; way < 3; way++) {
        o = fuzzy_opts("c.jsonl", "both");
        o.profile = f.profile;
        o.set = f.set;
        o.replace = 1;
        if (way == 1) o.bands_per_iteration = 5;
        if (way == 1) o.memory = 96u << 20;
        if (way < 2) dedup_ok(&o, &st);
        for (int at = 0, rc = LEAT_ECANCELED; way == 2 && rc == LEAT_ECANCELED; at++) {
            stopper s = {.stop_at = at % 4};
            o.output = in_box("stopped");
            o.checkpoint_bytes = 1;
            o.replace = 0;
            o.resume = 1;
            o.progress = at > 100 ? NULL : stop;
            o.cookie = &s;
            rc = leat_dedup_text(&o, &st, &err);
            if (rc != 0 && rc != LEAT_ECANCELED) fail_msg("%s", err.message);
        }
        const char *out = way == 2 ? "stopped" : "both";
        char name[64];
        for (int i = 0; i < 4; i++) {
            static const char *const names[] = {"kept-00000.jsonl", "clusters.jsonl", "reasons.jsonl",
                                                "bad.jsonl"};
            char mine[64];
            snprintf(mine, sizeof mine, "%s/%s", out, names[i]);
            snprintf(name, sizeof name, "%s/%s", i < 2 ? "second" : "filtered", names[i]);
            same_files(mine, name);
        }
        assert_int_equal(st.documents, fs.documents);
        assert_int_equal(st.dropped, fs.dropped);
        assert_int_equal(st.kept, kept);
        assert_int_equal(st.removed, removed);
        assert_int_equal(st.rule_count, fs.rule_count);
        for (uint32_t i = 0; i < fs.rule_count; i++) {
            assert_string_equal(st.rules[i].name, fs.rules[i].name);
            assert_int_equal(st.rules[i].failed, fs.rules[i].failed);
            assert_int_equal(st.rules[i].first, fs.rules[i].first);
        }
    }
}

static void exact(void **state)
{
    put_text("e.jsonl", "{\"id\":1,\"text\":\"Same text.\"}\n{\"id\":2,\"text\":\"same  "
                        "TEXT\"}\n{\"id\":3,\"text\":\"Same text.\"}\n"
                        "{\"id\":4,\"text\":\"\"}\n{\"id\":5,\"text\":\"\"}\n{\"id\":6,\"text\":"
                        "\"S\\u0061me text.\"}\n");
    leat_dedup_opts o = fuzzy_opts("e.jsonl", "e");
    o.kind = LEAT_DEDUP_EXACT;
    dedup_ok(&o, &st);
    assert_int_equal(st.removed, 3); /* 3, 5, 6 */
    assert_int_equal(st.clusters, 2);
    char *clusters = load_text("e/clusters.jsonl");
    assert_string_equal(
        clusters, "{\"id\":3,\"kept\":1,\"similarity\":1.0000}\n{\"id\":5,\"kept\":4,\"similarity\":1.0000}\n"
                  "{\"id\":6,\"kept\":1,\"similarity\":1.0000}\n");
    leat__free(clusters);
    o = fuzzy_opts("e.jsonl", "n");
    o.kind = LEAT_DEDUP_EXACT;
    o.normalize = 1;
    dedup_ok(&o, &st);
    assert_int_equal(st.removed, 3); /* 2, 3, 6; texts without a word are kept */
    assert_int_equal(st.empty, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(output_is_the_same),
        cmocka_unit_test(short_lines_fit_a_small_budget),
        cmocka_unit_test(stopped_runs_continue),
        cmocka_unit_test(stopped_force_starts_over),
        cmocka_unit_test(a_link_is_refused_as_work_folder),
        cmocka_unit_test(other_files_in_the_work_folder_are_kept),
        cmocka_unit_test(rules_drop_documents_first),
        cmocka_unit_test(exact),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
