/* SPDX-License-Identifier: Apache-2.0
 *
 * Which pairs are found, compared with all pairs of a corpus, with exact Jaccard similarity of
 * the edits.
 */
#include "curate/dedup_box.h"

static leat_dedup_stats st;

static void keep_policies(void **state)
{
    FILE *f = fopen(in_box("k.jsonl"), "wb");
    put_doc(f, "short", 1, 200, 200, 0);  /* score 200 % 17 = 13 */
    put_doc(f, "long", 1, 210, 210, 0);   /* 6 */
    put_doc(f, "scored", 1, 203, 203, 0); /* 16 */
    put_doc(f, "other", 2, 200, 200, 0);
    fclose(f);
    static const struct {
        uint32_t keep;
        const char *field, *kept, *out;
    } cases[] = {{LEAT_KEEP_FIRST, NULL, "short", "k0"},
                 {LEAT_KEEP_LONGEST, NULL, "long", "k1"},
                 {LEAT_KEEP_FIELD, "score", "scored", "k2"}};
    for (int i = 0; i < 3; i++) {
        char want[64];
        leat_dedup_opts o = fuzzy_opts("k.jsonl", cases[i].out);
        o.keep = cases[i].keep;
        o.keep_field = cases[i].field;
        dedup_ok(&o, &st);
        assert_int_equal(st.removed, 2);
        char path[64];
        snprintf(path, sizeof path, "%s/clusters.jsonl", cases[i].out);
        char *clusters = load_text(path);
        snprintf(want, sizeof want, "\"kept\":\"%s\"", cases[i].kept);
        if (!strstr(clusters, want)) fail_msg("%s: %s", cases[i].out, clusters);
        leat__free(clusters);
    }
}

/* Pairs of known similarity: found about as often as the curve predicts. */
static void pairs_are_found(void **state)
{
    enum { PAIRS = 400 };
    for (int step = 0; step < 3; step++) {
        static const int changed[] = {8, 30, 120}; /* of 400 words, at the end */
        FILE *f = fopen(in_box("p.jsonl"), "wb");
        for (int i = 0; i < PAIRS; i++) {
            put_doc(f, "a", i, 400, 400, 0);
            put_doc(f, "b", i, 400, 400 - changed[step], i + 50000);
        }
        fclose(f);
        leat_dedup_opts o = fuzzy_opts("p.jsonl", "p");
        o.replace = 1;
        o.threshold = 0.3;
        dedup_ok(&o, &st);
        double common = 396 - changed[step], j = common / (2 * 396 - common);
        double want = leat_dedup_chance(j, 14, 8) * PAIRS, spread = 4 * 10;
        if ((double)st.removed < want - spread || (double)st.removed > want + spread)
            fail_msg("similarity %.3f: %llu found, %.0f expected", j, (unsigned long long)st.removed, want);
    }
}

/* Many equal documents form one bucket in every band. */
static void one_large_bucket(void **state)
{
    FILE *f = fopen(in_box("same.jsonl"), "wb");
    for (int i = 0; i < 20000; i++) put_doc(f, "x", 1, 8, 8, 0);
    fclose(f);
    leat_dedup_opts o = fuzzy_opts("same.jsonl", "same");
    o.memory = 64u << 20;
    dedup_ok(&o, &st);
    assert_int_equal(st.kept, 1);
    assert_int_equal(st.candidates, 14 * 19999);
}

/* Threads group different bands: the edges are written in the same order, and counted once. */
static void threads_find_the_same(void **state)
{
    FILE *f = fopen(in_box("t.jsonl"), "wb");
    for (int i = 0; i < 3000; i++) put_doc(f, "x", i % 700, 60, i % 3 ? 60 : 55, i + 50000);
    fclose(f);
    for (uint32_t keep = LEAT_KEEP_FIRST; keep <= LEAT_KEEP_LONGEST; keep++) {
        leat_dedup_stats one;
        for (uint32_t threads = 1; threads < 20; threads += 1 + threads / 3) {
            leat_dedup_opts o = fuzzy_opts("t.jsonl", threads == 1 ? "t1" : "tn");
            o.threads = threads;
            o.keep = keep;
            o.replace = 1;
            dedup_ok(&o, &st);
            if (threads == 1) one = st;
            assert_int_equal(st.candidates, one.candidates);
            assert_int_equal(st.verified, one.verified);
            assert_int_equal(st.disk_bytes, one.disk_bytes);
            if (threads == 1) continue;
            same_files("t1/kept-00000.jsonl", "tn/kept-00000.jsonl");
            same_files("t1/clusters.jsonl", "tn/clusters.jsonl");
        }
        assert_true(one.removed > 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keep_policies),
        cmocka_unit_test(pairs_are_found),
        cmocka_unit_test(one_large_bucket),
        cmocka_unit_test(threads_find_the_same),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
