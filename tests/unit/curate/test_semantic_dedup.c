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
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
