/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

static leat_plan_minhash minhash(leat_plan_minhash_facts f)
{
    leat_plan_minhash p;
    leat_error err = {0};
    int rc = leat_plan_minhash_make(&f, &p, &err);
    if (rc != 0) fail_msg("%s", err.message);
    return p;
}

/* memory = documents × (8 × hashes + overhead) × bands_per_iteration / bands */
static void the_guides_formula(void **state)
{
    leat_plan_minhash p = minhash((leat_plan_minhash_facts){
        .documents = 1000000, .hashes = 260, .bands = 20, .bands_per_iteration = 5});
    (void)state;
    assert_int_equal(p.guide_bytes, 1000000 * (8 * 260 + 16) / 4);
    assert_int_equal(p.guide_all_bytes, UINT64_C(1000000) * (8 * 260 + 16));
    assert_int_equal(p.passes, 4);
}

static void bands_are_as_many_as_fit(void **state)
{
    leat_plan_minhash_facts f = {.documents = 100000000, .memory_bytes = 64 * PLAN_GB};
    (void)state;
    leat_plan_minhash p = minhash(f);
    assert_int_equal(p.bands_per_iteration, 6); /* 62.9 GB; 7 would be 73.4 */
    assert_int_equal(p.passes, 4);
    assert_true(p.guide_bytes <= f.memory_bytes);
    f.bands_per_iteration = 7;
    assert_true(minhash(f).guide_bytes > f.memory_bytes);
    f.bands_per_iteration = 0;
    f.memory_bytes = 2 * PLAN_GB; /* not even one */
    p = minhash(f);
    assert_int_equal(p.bands_per_iteration, 1);
    assert_int_equal(p.guide_fits, 0);
    assert_int_equal(p.fits, 1); /* leat takes 1.3 GB, and files */
}

/* The guide's table: < 100 GB 5–10, 100–500 GB 2–3, more 1. */
static void bands_by_dataset_size_on_each_side_of_the_edges(void **state)
{
    static const struct {
        uint64_t bytes;
        uint32_t low, high;
    } rows[] = {{1, 5, 10},
                {100 * PLAN_GB - 1, 5, 10},
                {100 * PLAN_GB, 2, 3},
                {500 * PLAN_GB, 2, 3},
                {500 * PLAN_GB + 1, 1, 1}};
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        leat_plan_minhash p =
            minhash((leat_plan_minhash_facts){.documents = 1000, .dataset_bytes = rows[i].bytes});
        assert_int_equal(p.guide_bands_low, rows[i].low);
        assert_int_equal(p.guide_bands_high, rows[i].high);
    }
}

/* The same answer as of leat_plan_text_make, with leat's bands and with given ones. */
static void leat_needs_the_same_as_in_a_plan_for_text(void **state)
{
    static const uint32_t bands[] = {0, 14, 20}, hashes[] = {0, 112, 260};
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(bands); i++) {
        leat_plan_text_facts t = {.text_bytes = 4000 * UINT64_C(125000000), .bands = bands[i]};
        leat_plan_text text;
        if (bands[i] > 0) t.rows = hashes[i] / bands[i];
        assert_int_equal(leat_plan_text_make(&t, &text, NULL), 0);
        leat_plan_minhash p = minhash(
            (leat_plan_minhash_facts){.documents = 125000000, .bands = bands[i], .hashes = hashes[i]});
        assert_int_equal(p.ram_bytes, text.dedup.ram_bytes);
        assert_int_equal(p.work_bytes, text.dedup.work_bytes);
        assert_int_equal(p.leat_passes, text.dedup.passes);
    }
}

static void leat_fits_by_documents(void **state)
{
    leat_plan_minhash_facts f = {.documents = 1000000000, .memory_bytes = 12800000000 + (9 << 20)};
    (void)state;
    assert_int_equal(minhash(f).ram_bytes, 12800000000 + (8 << 20) * 16 / 15 + 1);
    assert_int_equal(minhash(f).fits, 1);
    f.memory_bytes = 12800000000;
    assert_int_equal(minhash(f).fits, 0);
    f.memory_bytes = 0; /* no limit is known */
    assert_int_equal(minhash(f).fits, 2);
    assert_int_equal(minhash(f).guide_fits, 2);
    f = (leat_plan_minhash_facts){.documents = 5 * PLAN_GB}; /* past 32-bit numbers */
    assert_int_equal(minhash(f).fits, 0);
    assert_int_equal(minhash((leat_plan_minhash_facts){.documents = 1}).ram_bytes, 48 << 20);
}

static void impossible_facts_are_refused(void **state)
{
    leat_plan_minhash p;
    (void)state;
    leat_plan_minhash_facts f = {.documents = UINT64_MAX};
    assert_code(LEAT_EINVAL, leat_plan_minhash_make(&f, &p, NULL));
    f = (leat_plan_minhash_facts){.documents = 1, .hashes = 10, .bands = 11};
    assert_code(LEAT_EINVAL, leat_plan_minhash_make(&f, &p, NULL));
    f = (leat_plan_minhash_facts){.documents = 1, .bands_per_iteration = 21};
    assert_code(LEAT_EINVAL, leat_plan_minhash_make(&f, &p, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_guides_formula),
        cmocka_unit_test(bands_are_as_many_as_fit),
        cmocka_unit_test(bands_by_dataset_size_on_each_side_of_the_edges),
        cmocka_unit_test(leat_needs_the_same_as_in_a_plan_for_text),
        cmocka_unit_test(leat_fits_by_documents),
        cmocka_unit_test(impossible_facts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
