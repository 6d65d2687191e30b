/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/dedup_box.h"

#include "curate/dedup_index.h"

static leat_dedup_stats st;

/* Lines [from, to) of a file, as another file. */
static void cut_lines(const char *in, const char *out, int from, int to)
{
    char *text = load_text(in);
    FILE *f = fopen(in_box(out), "wb");
    assert_non_null(f);
    int i = 0;
    for (char *p = text; *p; i++) {
        char *end = strchr(p, '\n') + 1;
        if (i >= from && i < to) fwrite(p, 1, (size_t)(end - p), f);
        p = end;
    }
    fclose(f);
    leat__free(text);
}

static void join(const char *a, const char *b, const char *out)
{
    char *x = load_text(a), *y = load_text(b);
    FILE *f = fopen(in_box(out), "wb");
    assert_non_null(f);
    fputs(x, f);
    fputs(y, f);
    fclose(f);
    leat__free(x);
    leat__free(y);
}

static void batch(const char *in, const char *out, uint32_t kind, const char *against, uint32_t threads)
{
    leat_dedup_opts o = fuzzy_opts(in, out);
    o.kind = kind;
    o.index = 1;
    o.threads = threads;
    o.against = against ? in_box(against) : NULL;
    dedup_ok(&o, &st);
}

/* Exact: batch by batch gives the result of one run over all, and the same index. Fuzzy: one run
 * also finds some documents through others that were removed, which an index does not contain. */
static void batches_equal_one_run(void **state)
{
    make_corpus("all.jsonl", 1500);
    /* lines without a document and without words are in no index */
    FILE *f = fopen(in_box("all.jsonl"), "ab");
    fputs("{}\n\n{\"id\":\"none\",\"text\":\"...\"}\n{\"id\":\"none2\",\"text\":\"...\"}\n", f);
    fclose(f);
    cut_lines("all.jsonl", "a.jsonl", 0, 600);
    cut_lines("all.jsonl", "b.jsonl", 600, 2000);
    for (uint32_t kind = LEAT_DEDUP_EXACT; kind <= LEAT_DEDUP_FUZZY; kind++) {
        char a[8], b[8], all[8], k[40], k2[40], i1[40], i2[40];
        snprintf(a, sizeof a, "a%u", kind);
        snprintf(b, sizeof b, "b%u", kind);
        snprintf(all, sizeof all, "all%u", kind);
        batch("a.jsonl", a, kind, NULL, 2);
        assert_int_equal(st.against, 0);
        uint64_t kept = st.kept;
        batch("b.jsonl", b, kind, a, 7);
        assert_int_equal(st.against, kept);
        assert_int_equal(st.documents, 902);
        if (kind == LEAT_DEDUP_FUZZY) assert_true(st.removed_against > 50);
        assert_true(st.index_bytes > 0);
        leat_dedup_stats st_b = st;
        batch("all.jsonl", all, kind, NULL, 1);
        snprintf(k, sizeof k, "%s/kept-00000.jsonl", a);
        snprintf(k2, sizeof k2, "%s/kept-00000.jsonl", b);
        join(k, k2, "joined.jsonl");
        if (kind == LEAT_DEDUP_FUZZY) {
            assert_in_range(st_b.kept + kept, st.kept, st.kept + st.kept / 50);
            assert_int_equal(st_b.below_threshold, 0);
            continue;
        }
        snprintf(k, sizeof k, "%s/kept-00000.jsonl", all);
        same_files("joined.jsonl", k);
        snprintf(i1, sizeof i1, "%s/%s", b, LEAT__INDEX_NAME);
        snprintf(i2, sizeof i2, "%s/%s", all, LEAT__INDEX_NAME);
        char *x = NULL, *y = NULL;
        size_t n, m;
        assert_int_equal(leat__file_load(in_box(i1), 1u << 28, 1, &x, &n, NULL), 0);
        assert_int_equal(leat__file_load(in_box(i2), 1u << 28, 1, &y, &m, NULL), 0);
        assert_int_equal(n, m);
        assert_memory_equal(x, y, n);
        leat__free(x);
        leat__free(y);
    }
}

/* Documents of the index are kept, whatever the preference. */
static void the_index_has_priority(void **state)
{
    leat_dedup_opts o = fuzzy_opts("b.jsonl", "p1");
    o.against = in_box("a2");
    o.keep = LEAT_KEEP_LONGEST;
    o.bands_per_iteration = 5;
    dedup_ok(&o, &st);
    uint64_t removed = st.removed_against;
    assert_true(removed > 50);
    o = fuzzy_opts("a.jsonl", "p2"); /* the same batch again: nothing is new */
    o.against = in_box("a2");
    dedup_ok(&o, &st);
    assert_int_equal(st.kept, 0);
    assert_int_equal(st.removed, 600);
    assert_int_equal(st.removed_against, 600);
    o.replace = o.index = 1;
    dedup_ok(&o, &st);
    assert_int_equal(access(in_box("p2/index.leat-dedup"), F_OK), 0);
    o.index = 0; /* an index that is not rewritten is removed */
    dedup_ok(&o, &st);
    assert_int_not_equal(access(in_box("p2/index.leat-dedup"), F_OK), 0);
    o = fuzzy_opts("a.jsonl", "p3");
    o.against = in_box("a2");
    o.clusters = LEAT_CLUSTERS_COMPONENTS;
    dedup_ok(&o, &st);
    assert_int_equal(st.kept, 0);
}

static int calls;

static int stop(void *cookie, uint64_t done, uint64_t total, uint64_t documents, uint64_t dropped)
{
    return ++calls == *(const int *)cookie;
}

static void write_words(const char *name, const char *const *ids, const int *from, int count)
{
    FILE *f = fopen(in_box(name), "wb");
    assert_non_null(f);
    for (int i = 0; i < count; i++) {
        fprintf(f, "{\"id\":\"%s\",\"text\":\"", ids[i]);
        for (int w = from[i]; w < from[i] + 300; w++)
            fprintf(f, "%s%c%c%c%d", w > from[i] ? " " : "", 'a' + w % 10, 'k' + w / 10 % 10, 'u' + w / 100,
                    w);
        fputs("\"}\n", f);
    }
    fclose(f);
}

/* A new document may connect two of the index, which become one component; both stay in the new index. */
static void documents_of_an_index_stay(void **state)
{
    write_words("april.jsonl", (const char *[]){"a", "b"}, (const int[]){0, 60}, 2);
    write_words("may.jsonl", (const char *[]){"c"}, (const int[]){30}, 1);
    write_words("june.jsonl", (const char *[]){"copy of b"}, (const int[]){60}, 1);
    leat_dedup_opts o = fuzzy_opts("april.jsonl", "april");
    o.clusters = LEAT_CLUSTERS_COMPONENTS;
    o.index = 1;
    dedup_ok(&o, &st);
    assert_int_equal(st.kept, 2);
    o = fuzzy_opts("may.jsonl", "may");
    o.clusters = LEAT_CLUSTERS_COMPONENTS;
    o.index = 1;
    o.against = in_box("april");
    dedup_ok(&o, &st);
    assert_int_equal(st.removed_against, 1);
    o = fuzzy_opts("june.jsonl", "june");
    o.clusters = LEAT_CLUSTERS_COMPONENTS;
    o.against = in_box("may");
    dedup_ok(&o, &st);
    assert_int_equal(st.against, 2);
    assert_int_equal(st.kept, 0);
}

static void interrupted_run_is_resumed(void **state)
{
    for (int at = 3; at < 12; at += 6) {
        leat_error err = {0};
        leat_dedup_opts o = fuzzy_opts("b.jsonl", "r");
        o.against = in_box("a2");
        o.index = 1;
        o.checkpoint_bytes = 100000;
        o.bands_per_iteration = 7;
        o.replace = 1;
        o.progress = stop;
        o.cookie = &at;
        calls = 0;
        int rc = leat_dedup_text(&o, &st, &err);
        if (rc == 0) break;
        assert_int_equal(rc, LEAT_ECANCELED);
        o.progress = NULL;
        o.resume = 1;
        o.replace = 0;
        dedup_ok(&o, &st);
        same_files("r/kept-00000.jsonl", "b2/kept-00000.jsonl");
        same_files("r/clusters.jsonl", "b2/clusters.jsonl");
    }
}

static void others_are_refused(void **state)
{
    leat_error err = {0};
    leat_dedup_opts o = fuzzy_opts("b.jsonl", "x");
    o.against = in_box("a1");
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_ESTATE);
    assert_non_null(strstr(err.message, "exact"));
    o.against = in_box("absent");
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_ENOENT);
    assert_non_null(strstr(err.message, "--index"));
    char *data = NULL, path[64];
    size_t n;
    snprintf(path, sizeof path, "a2/%s", LEAT__INDEX_NAME);
    assert_int_equal(leat__file_load(in_box(path), 1u << 28, 1, &data, &n, NULL), 0);
    snprintf(path, sizeof path, "d/%s", LEAT__INDEX_NAME);
    o.against = in_box("d");
    for (size_t at = 0; at < n; at += n / 9) {
        data[at] ^= 1;
        put_file(path, data, n);
        data[at] ^= 1;
        int rc = leat_dedup_text(&o, &st, &err);
        assert_true(rc == LEAT_EDATA || rc == LEAT_EFORMAT);
    }
    for (size_t at = 0; at < sizeof(leat__index_header); at++) { /* settings are never those of damage */
        data[at] ^= 1;
        put_file(path, data, n);
        data[at] ^= 1;
        int rc = leat_dedup_text(&o, &st, &err);
        if (rc != LEAT_EDATA && rc != LEAT_EFORMAT) fail_msg("byte %zu: %s", at, err.message);
    }
    put_file(path, data, n / 2);
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "(truncated?)"));
    char *more = leat__alloc(LEAT__MEM_MISC, n + 1);
    memcpy(more, data, n);
    more[n] = 0;
    put_file(path, more, n + 1);
    leat__free(more);
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "is damaged"));
    put_file(path, data, 5);
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EFORMAT);
    leat__free(data);
}

/* The index and the documents of the earlier run stay as they are. */
static void the_output_does_not_replace_the_index(void **state)
{
    leat_error err = {0};
    make_corpus("april.jsonl", 50);
    batch("april.jsonl", "u", LEAT_DEDUP_EXACT, NULL, 1);
    char *kept = load_text("u/kept-00000.jsonl");
    leat_dedup_opts o = fuzzy_opts("april.jsonl", "u");
    o.kind = LEAT_DEDUP_EXACT;
    o.against = in_box("u/.");
    o.replace = 1;
    assert_int_equal(leat_dedup_text(&o, &st, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "has the index of against"));
    char *now = load_text("u/kept-00000.jsonl");
    assert_string_equal(now, kept);
    leat__free(now);
    leat__free(kept);
    batch("april.jsonl", "v", LEAT_DEDUP_EXACT, "u", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_equal_one_run),      cmocka_unit_test(the_index_has_priority),
        cmocka_unit_test(documents_of_an_index_stay), cmocka_unit_test(interrupted_run_is_resumed),
        cmocka_unit_test(others_are_refused),         cmocka_unit_test(the_output_does_not_replace_the_index),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
