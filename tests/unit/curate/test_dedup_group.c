/* SPDX-License-Identifier: Apache-2.0
 *
 * Which pairs are found, compared with all pairs of a corpus, with exact Jaccard similarity of
 * the edits.
 */
#include "curate/dedup_box.h"

#include "curate/dedup.h"

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

enum { UNIT = 300000, EDGES = UNIT / 2 - 5 + UNIT / 3 };

/* One unit. Every second document has the same digest, with five different sketches; the others form buckets
 * of three equal ones. */
static void put_unit(const char *band, const char *sketches)
{
    FILE *f = fopen(in_box(band), "wb"), *g = fopen(in_box(sketches), "wb");
    assert_true(f && g);
    for (uint32_t i = 0; i < UNIT; i++) {
        uint64_t same = i % 2 ? i / 6 + 100 : i % 10, sketch[2] = {same, same};
        leat__band_record r = {i % 2 ? same * UINT64_C(0x9e3779b97f4a7c15) : UINT64_C(0x8000000180000001), i};
        assert_int_equal(fwrite(&r, sizeof r, 1, f), 1);
        assert_int_equal(fwrite(sketch, sizeof sketch, 1, g), 1);
    }
    assert_int_equal(fclose(f) | fclose(g), 0);
}

static void fill_unit(void *cookie, uint32_t unit, leat__band_segment *segment)
{
    *segment = (leat__band_segment){.path = cookie, .bytes = UNIT * sizeof(leat__band_record)};
}

static int by_edge(const void *x, const void *y)
{
    return memcmp(x, y, sizeof(leat__dedup_edge));
}

/* Groups the unit, and returns its edges, sorted. */
static char *edges_of(uint64_t memory, bool ranked)
{
    static uint32_t order[UNIT];
    leat_dedup_opts o;
    char work[4096], band[4096], *edges;
    leat__part part = {.to = 1};
    leat__dedup d = {.opts = &o, .memory = memory, .bands = 1, .sketch_bytes = 16, .need_equal = 16};
    leat_error err = {0};
    leat_dedup_opts_init(&o);
    o.threads = 2;
    snprintf(work, sizeof work, "%s", in_box("unit"));
    snprintf(band, sizeof band, "%s", in_box("unit/records"));
    for (uint32_t i = 0; i < UNIT; i++) order[i] = UNIT - 1 - i; /* its own inverse */
    if (ranked) d.order = d.rank = order;
    d.work = work;
    d.part = &part;
    d.st.document = UNIT;
    d.st.parts = d.st.edge_parts = 1;
    d.st.side_length[LEAT__SIDE_SKETCH] = 16 * UNIT;
    assert_int_equal(leat__dedup_state_bands(&d.st, 1, &err), 0);
    assert_int_equal(leat__dedup_state_edges(&d.st, 1, &err), 0);
    d.st.band_length[0] = UNIT * sizeof(leat__band_record);
    if (leat__dedup_group_units(&d, work, 1, fill_unit, band, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(d.st.verified, EDGES);
    assert_int_equal(d.st.edge_length[0], EDGES * sizeof(leat__dedup_edge));
    leat__dedup_state_reset(&d.st);
    edges = load_text("unit/edge-0");
    qsort(edges, EDGES, sizeof(leat__dedup_edge), by_edge);
    return edges;
}

/* A bucket that is larger than the memory for records gives the same edges. */
static void any_bucket_fits(void **state)
{
    assert_int_equal(mkdir(in_box("unit"), 0755), 0);
    put_unit("unit/records", "unit/side-0");
    for (int ranked = 0; ranked < 2; ranked++) {
        uint64_t least = (12u << 20) + UNIT * (ranked ? 12 : 4);
        char *all = edges_of(256u << 20, ranked), *some = edges_of(least, ranked);
        assert_memory_equal(all, some, EDGES * sizeof(leat__dedup_edge));
        leat__free(all);
        leat__free(some);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keep_policies),    cmocka_unit_test(pairs_are_found),
        cmocka_unit_test(one_large_bucket), cmocka_unit_test(threads_find_the_same),
        cmocka_unit_test(any_bucket_fits),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
