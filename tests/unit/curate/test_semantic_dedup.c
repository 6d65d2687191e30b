/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/select_box.h"

#include "curate/semantic_dedup.h"
#include "io/file.h"

enum { ROWS = 3000, SCENES = 1000, DIM = 32 };

/* A thousand scenes; three near copies of each, far apart in the pack. */
static void fill_copies(uint32_t row, leat_pack_value *v, void *cookie)
{
    static float vector[DIM];
    const vector_kind scene = {.dim = DIM, .clusters = SCENES, .seed = 3};
    leat__rng own;
    vector_of(&scene, row % SCENES, vector);
    leat__rng_init(&own, 8, 0, row, 0);
    for (int i = 0; i < DIM; i++) vector[i] += (float)(0.03 * leat__rng_normal(&own));
    v[0].data = vector;
    v[0].size = sizeof vector;
}

static leat_dedup_semantic_opts opts_for(const char *output)
{
    static const leat_field f = {
        .name = "vector", .type = LEAT_FIELD_ARRAY, .dtype = LEAT_DTYPE_F32, .ndim = 1, .shape = {DIM}};
    leat_dedup_semantic_opts o;
    bool there = false;
    assert_ok(leat__path_exists(in_box("copies.leat"), &there, NULL));
    if (!there) put_pack(in_box("copies.leat"), &f, 1, ROWS, fill_copies, NULL);
    leat_dedup_semantic_opts_init(&o);
    o.input = in_box("copies.leat");
    o.output = in_box(output);
    o.replace = o.no_sync = 1;
    return o;
}

static leat_dedup_semantic_stats run_ok(const leat_dedup_semantic_opts *o)
{
    leat_dedup_semantic_stats st = {.struct_size = sizeof st};
    leat_error err = {0};
    if (leat_dedup_semantic(o, &st, &err) != 0) fail_msg("%s", err.message);
    assert_true(st.kept + st.removed == st.samples && st.samples == ROWS);
    assert_int_equal(leat__mem_blocks(), test_blocks);
    return st;
}

static void copies_are_removed(void **state)
{
    static int64_t keep[ROWS], of[ROWS];
    static double similarity[ROWS];
    leat_pack *pack = NULL;
    leat_dedup_semantic_opts o = opts_for("dup.leat");
    leat_dedup_semantic_stats st = run_ok(&o);
    assert_true(st.threshold == 0.95 && st.removed >= 1700 && st.removed <= 2000 && st.clusters == 54);
    assert_ok(leat_pack_open(&pack, o.output, NULL, NULL));
    assert_ok(leat_pack_ints(pack, 1, 0, ROWS, keep, NULL));
    assert_ok(leat_pack_ints(pack, 2, 0, ROWS, of, NULL));
    assert_ok(leat_pack_floats(pack, 3, 0, ROWS, similarity, NULL));
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_true(keep[i] ? of[i] == -1 : keep[of[i]] == 1 && of[i] % SCENES == i % SCENES && of[i] < i);
        assert_true(keep[i] == (similarity[i] < 0.95));
    }
    leat_pack_close(&pack);
}

static void the_result_does_not_depend_on_threads_or_memory(void **state)
{
    static const uint32_t threads[] = {1, 2, 7};
    static const uint64_t memory[] = {0, 600 << 10, 400 << 10}; /* the vectors alone have 384 KB */
    uint64_t first = 0;
    leat_dedup_semantic_opts o = opts_for("same.leat");
    for (int i = 0; i < 3; i++) {
        o.threads = threads[i];
        o.memory = memory[i];
        const leat_dedup_semantic_stats st = run_ok(&o);
        assert_true(st.plan_memory > 0 && (memory[i] == 0 || st.plan_memory <= memory[i]));
        assert_int_equal(st.in_memory, i == 0);
        if (i == 0) first = hash_of_file(o.output);
        assert_true(hash_of_file(o.output) == first);
    }
    leat_error err = {0};
    o.memory = 50 << 10;
    assert_code(LEAT_EBUDGET, leat_dedup_semantic(&o, NULL, &err));
    assert_contains(err.message, "more than the 50.0 KiB given");
    const char *need = strstr(err.message, "need ");
    assert_non_null(need);
    o.memory = strtoull(need + 5, NULL, 10) << 10; /* what it names is enough, and a KiB less is not */
    (void)run_ok(&o);
    o.memory -= 1024;
    assert_code(LEAT_EBUDGET, leat_dedup_semantic(&o, NULL, &err));
}

static void a_share_is_kept(void **state)
{
    leat_dedup_semantic_opts o = opts_for("share.leat");
    o.keep_share = 0.8;
    leat_dedup_semantic_stats st = run_ok(&o);
    assert_true(st.kept == 2400 && st.threshold > 0.9 && st.threshold < 1);
    o.keep_share = 0.001; /* the first row of each cluster stays */
    st = run_ok(&o);
    assert_int_equal(st.kept, st.clusters);
    o.keep_share = 1;
    st = run_ok(&o);
    assert_true(st.removed == 0 && st.threshold == 1);
    for (uint32_t keep = LEAT_KEEP_SIMILAR_OUTER; keep <= LEAT_KEEP_SIMILAR_CENTRAL; keep++) {
        o.keep_share = 0;
        o.keep = keep;
        o.clusters = 20;
        st = run_ok(&o);
        assert_true(st.clusters == 20 && st.removed >= 1700 && st.removed <= 2000);
    }
}

enum { BLANKS = 40 }; /* rows without a vector: zeros, or a number that is not finite */

static bool is_blank(uint32_t row)
{
    return row % 76 == 0;
}

/* The rows of fill_copies with rows without a vector between them, the first at the beginning. */
static void fill_blanks(uint32_t row, leat_pack_value *v, void *cookie)
{
    fill_copies(row - row / 76 - 1, v, cookie);
    float *vector = (float *)(uintptr_t)v[0].data;
    if (!is_blank(row)) return;
    memset(vector, 0, DIM * sizeof *vector);
    if (row % 3 == 1) vector[5] = row % 8 ? NAN : INFINITY;
}

static void rows_without_a_vector_take_no_part(void **state)
{
    static int64_t want[3][ROWS], got[3][ROWS + BLANKS];
    const leat_field f = {
        .name = "vector", .type = LEAT_FIELD_ARRAY, .dtype = LEAT_DTYPE_F32, .ndim = 1, .shape = {DIM}};
    leat_dedup_semantic_opts o = opts_for("full.leat");
    leat_dedup_semantic_stats more = {.struct_size = sizeof more};
    put_pack(in_box("blanks.leat"), &f, 1, ROWS + BLANKS, fill_blanks, NULL);
    for (int share = 0; share < 4; share++) {
        leat_pack *full = NULL, *part = NULL;
        o = opts_for("full.leat");
        o.keep_share = share % 2 ? 0.5 : 0;
        o.threshold = share % 2 ? 0 : 0.45; /* below the cosine that zeros seemed to have */
        o.memory = share > 1 ? 600 << 10 : 0;
        const leat_dedup_semantic_stats st = run_ok(&o);
        o.input = in_box("blanks.leat");
        o.output = in_box("part.leat");
        assert_ok(leat_dedup_semantic(&o, &more, NULL));
        assert_true(more.in_memory == (share < 2) && more.without_vector == BLANKS);
        assert_true(more.samples == ROWS + BLANKS && more.kept == st.kept && more.removed == st.removed);
        assert_true(more.asked == st.asked && more.threshold == st.threshold && more.pairs == st.pairs);
        assert_ok(leat_pack_open(&full, in_box("full.leat"), NULL, NULL));
        assert_ok(leat_pack_open(&part, o.output, NULL, NULL));
        for (uint32_t c = 0; c < 3; c++) {
            assert_ok(leat_pack_ints(full, c, 0, ROWS, want[c], NULL));
            assert_ok(leat_pack_ints(part, c, 0, ROWS + BLANKS, got[c], NULL));
        }
        for (uint32_t i = 0; i < ROWS + BLANKS; i++) {
            const uint32_t was = i - i / 76 - 1;
            const int64_t of = is_blank(i) || want[2][was] < 0 ? -1 : want[2][was] + want[2][was] / 75 + 1;
            assert_true(got[0][i] == (is_blank(i) ? -1 : want[0][was]));
            assert_true(got[1][i] == (is_blank(i) ? 1 : want[1][was]) && got[2][i] == of);
        }
        leat_pack_close(&full);
        leat_pack_close(&part);
    }
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static int stop(void *cookie, uint64_t done, uint64_t total, uint64_t bytes, uint64_t found)
{
    return 1;
}

static void wrong_options_are_refused(void **state)
{
    leat_error err = {0};
    leat_dedup_semantic_opts o = opts_for("never.leat");
    bool there = true;
    o.threshold = 1.5;
    assert_code(LEAT_EINVAL, leat_dedup_semantic(&o, NULL, &err));
    o.threshold = 0.9;
    o.keep_share = 0.5;
    assert_code(LEAT_EINVAL, leat_dedup_semantic(&o, NULL, &err));
    assert_contains(err.message, "either threshold or keep_share");
    o.keep_share = 0;
    o.keep = 9;
    assert_code(LEAT_EINVAL, leat_dedup_semantic(&o, NULL, &err));
    o.keep = 0;
    o.progress = stop;
    assert_code(LEAT_ECANCELED, leat_dedup_semantic(&o, NULL, &err));
    assert_ok(leat__path_exists(o.output, &there, NULL));
    assert_false(there);
    o.progress = NULL;
    o.input = put_rows("plain.leat", 5);
    assert_code(LEAT_EINVAL, leat_dedup_semantic(&o, NULL, &err));
    assert_contains(err.message, "has no field of vectors");
    o.input = put_vectors("none.leat", 0, (vector_kind){.dim = 4, .clusters = 1});
    leat_dedup_semantic_stats st = {.struct_size = sizeof st};
    assert_ok(leat_dedup_semantic(&o, &st, &err));
    assert_int_equal(st.samples, 0);
    o.replace = 0;
    assert_code(LEAT_EEXIST, leat_dedup_semantic(&o, NULL, &err));
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_removed),
        cmocka_unit_test(the_result_does_not_depend_on_threads_or_memory),
        cmocka_unit_test(a_share_is_kept),
        cmocka_unit_test(rows_without_a_vector_take_no_part),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
