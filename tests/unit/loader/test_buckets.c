/* SPDX-License-Identifier: Apache-2.0 */
#include "tiny_loader.h"

#include "base/num.h"
#include "loader/buckets.h"

static const char *const path = "buckets.leat";

static void every_sample_comes_once_in_its_bucket(void **state)
{
    static const uint64_t ends[] = {3, 40, 41, 77, 200};
    (void)state;
    for (uint64_t batch = 1; batch <= 230; batch += batch < 20 ? 1 : 35) {
        leat__buckets *b;
        assert_ok(leat__buckets_open(&b, 9, batch, ends, LEAT_COUNT(ends), NULL));
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            bool seen[200] = {false};
            uint64_t mixed = 0;
            leat__buckets_epoch(b, epoch);
            for (uint64_t p = 0; p < 200; p++) {
                uint64_t at = leat__buckets_at(b, p);
                assert_true(at < 200 && !seen[at]);
                seen[at] = true;
            }
            for (uint64_t p = 0; p < 200; p += batch) {
                uint32_t low = 99, high = 0;
                for (uint64_t k = p; k < LEAT_MIN(p + batch, 200u); k++) {
                    uint32_t which = 0;
                    while (leat__buckets_at(b, k) >= ends[which]) which++;
                    low = LEAT_MIN(low, which);
                    high = LEAT_MAX(high, which);
                }
                mixed += low != high;
            }
            assert_true(mixed <= LEAT_COUNT(ends)); /* only of what is left */
        }
        leat__buckets_close(&b);
    }
    assert_no_leaks();
}

static void samples_are_sorted_and_cut(void **state)
{
    uint64_t samples[] = {10, 11, 12, 13, 14, 15, 16}, *ends;
    const double values[] = {3, 1, 2, 2, 9, 0.5, 2}, edges[] = {1, 2, 5, 6};
    const uint64_t sorted[] = {15, 11, 12, 13, 16, 10, 14}, by_edge[] = {1, 2, 6, 7};
    uint32_t count;
    (void)state;
    assert_ok(leat__buckets_sort(samples, values, 7, edges, 5, &ends, &count, NULL));
    assert_memory_equal(samples, sorted, sizeof sorted);
    assert_int_equal(count, 4); /* nothing between 5 and 6 */
    assert_memory_equal(ends, by_edge, sizeof by_edge);
    leat__free(ends);
    const double again[] = {1, 2, 3, 4, 5, 6, 7};
    assert_ok(leat__buckets_sort(samples, again, 7, NULL, 3, &ends, &count, NULL));
    assert_int_equal(count, 3);
    assert_int_equal(ends[0], 2);
    assert_int_equal(ends[1], 4);
    assert_int_equal(ends[2], 7);
    leat__free(ends);
    assert_no_leaks();
}

/* Ids of a whole epoch in `world` ranks, global batch 12, from a state on. */
static void ids_of(const leat_loader_opts *base, uint32_t world, const char *resume, uint64_t *ids,
                   uint64_t *count)
{
    for (uint32_t rank = 0; rank < world; rank++) {
        leat_loader_opts o = *base;
        leat_loader *l;
        leat_batch *b;
        o.world = world;
        o.rank = rank;
        o.batch_size = 12 / world;
        o.drop_last = LEAT_DROP_NEVER;
        assert_ok(leat_loader_open(&l, path, &o, NULL));
        if (resume != NULL) assert_ok(leat_loader_restore(l, resume, NULL));
        else assert_ok(leat_loader_begin(l, 4, NULL));
        while (leat_loader_next(l, &b, -1, NULL) == 0 && b != NULL) {
            for (uint32_t i = 0; i < b->samples; i++) ids[b->sample_ids[i]]++;
            *count += b->samples;
            leat_batch_release(&b);
        }
        leat_loader_close(&l);
    }
}

static void buckets_resume_in_other_worlds(void **state)
{
    leat_loader_opts o = base_opts();
    char text[LEAT_LOADER_STATE_MAX];
    size_t size;
    leat_error err;
    (void)state;
    o.bucket = LEAT_BUCKET_ASPECT;
    o.bucket_count = 5;
    o.batch_size = 12;
    o.drop_last = LEAT_DROP_NEVER;
    tiny_pack(path, &(tiny_opts){.samples = 100, .classes = 2});
    for (uint32_t taken = 0; taken < 9; taken += 4) {
        uint64_t ids[100] = {0}, count = 0;
        leat_loader *l;
        leat_batch *b;
        assert_ok(leat_loader_open(&l, path, &o, NULL));
        assert_ok(leat_loader_begin(l, 4, NULL));
        for (uint32_t i = 0; i < taken; i++) {
            assert_ok(leat_loader_next(l, &b, -1, NULL));
            for (uint32_t k = 0; k < b->samples; k++) ids[b->sample_ids[k]]++;
            count += b->samples;
            leat_batch_release(&b);
        }
        assert_ok(leat_loader_state(l, UINT64_MAX, text, sizeof text, &size, NULL));
        leat_loader_close(&l);
        ids_of(&o, 3, text, ids, &count);
        assert_int_equal(count, 100);
        for (uint32_t i = 0; i < 100; i++) assert_int_equal(ids[i], 1);
    }
    leat_loader *l;
    o.bucket_count = 6;
    assert_ok(leat_loader_open(&l, path, &o, NULL));
    assert_code(LEAT_EINVAL, leat_loader_restore(l, text, &err));
    assert_non_null(strstr(err.message, "bucket"));
    leat_loader_close(&l);
    unlink(path);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_comes_once_in_its_bucket),
        cmocka_unit_test(samples_are_sorted_and_cut),
        cmocka_unit_test(buckets_resume_in_other_worlds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
