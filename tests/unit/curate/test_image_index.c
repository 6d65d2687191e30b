/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/rng.h"
#include "curate/image_index.h"

#define COUNT 3000
#define DIM LEAT__COARSE_BYTES

/* Clouds of descriptors around random centres. */
static int8_t *make_codes(void)
{
    leat__rng r;
    int8_t *codes = malloc((size_t)COUNT * DIM), middle[40][DIM];
    assert_non_null(codes);
    leat__rng_init(&r, 3, 0, 0, 0);
    for (int c = 0; c < 40; c++)
        for (int i = 0; i < DIM; i++) middle[c][i] = (int8_t)((int)leat__rng_below(&r, 100) - 50);
    for (int n = 0; n < COUNT; n++)
        for (int i = 0; i < DIM; i++)
            codes[n * DIM + i] = (int8_t)(middle[n % 40][i] + (int)leat__rng_below(&r, 41) - 20);
    return codes;
}

static uint32_t find(const leat__image_index *index, const leat__near_query *query, leat__near *out,
                     uint32_t room)
{
    leat__near_heap heap = {.near = out, .room = room};
    void *scratch = malloc(leat__image_index_scratch(index));
    assert_non_null(scratch);
    leat__image_index_scan(index, query, &heap, 1, scratch);
    free(scratch);
    leat__near_sort(out, heap.count);
    return heap.count;
}

static void near_entries_are_found(void **state)
{
    leat__image_index *x = NULL;
    int8_t *codes = make_codes();
    leat__near found[100], first[100];
    uint64_t wanted = 0, got = 0;
    assert_ok(leat__image_index_open(&x, codes, COUNT, NULL, NULL));
    assert_true(leat__image_index_lists(x) <= 1024);
    for (int q = 0; q < 50; q++) {
        const int8_t *code = codes + (size_t)(q * 57) * DIM;
        const uint32_t n = find(x, &(leat__near_query){code, 0.2f, 0.1f, COUNT}, found, 100);
        assert_true(n > 0 && found[0].distance < 1e-4f);
        for (uint32_t i = 1; i < n; i++) assert_true(found[i - 1].distance <= found[i].distance);
        const uint32_t early = find(x, &(leat__near_query){code, 0.2f, 0.1f, (uint32_t)(q * 57)}, first, 100);
        uint32_t below = 0;
        for (uint32_t i = 0; i < n; i++)
            if (found[i].entry < (uint32_t)(q * 57)) assert_int_equal(found[i].entry, first[below++].entry);
        assert_int_equal(early, below);
        const leat__near_query ends = {code, 0.2f, 0.1f, 1000, 1501}; /* without those in the middle */
        uint32_t outside = 0;
        const uint32_t others = find(x, &ends, first, 100);
        for (uint32_t i = 0; i < n; i++)
            if (found[i].entry < 1000 || found[i].entry > 1500)
                assert_int_equal(found[i].entry, first[outside++].entry);
        assert_int_equal(others, outside);
        for (int k = 0; k < COUNT; k++)
            wanted += leat__image_sign_distance(code, codes + (size_t)k * DIM, DIM - 1) < 0.2f;
        got += n;
        assert_int_equal(find(x, &(leat__near_query){code, 0.2f, 0.1f, COUNT}, found, 3), n < 3 ? n : 3);
    }
    assert_true(got <= wanted && got * 10 >= wanted * 9);
    leat__image_index_close(&x);
    free(codes);
    assert_no_leaks();
}

static bool stop_later(void *cookie)
{
    int *left = cookie;
    return (*left)-- == 0;
}

static void a_build_can_be_stopped(void **state)
{
    leat__image_index *x = NULL;
    int8_t *codes = make_codes();
    for (int after = 0; after < 40; after += 3) {
        int left = after;
        const int rc =
            leat__image_index_open(&x, codes, COUNT, &(leat__index_work){NULL, stop_later, &left}, NULL);
        assert_true(left < 0 ? rc == LEAT_ECANCELED && x == NULL : rc == 0);
        leat__image_index_close(&x);
    }
    free(codes);
    assert_no_leaks();
}

/* Searching two parts in turn, by all queries at a time, finds the same as searching all at once by one
 * query, built by several threads. */
static void parts_find_the_same(void **state)
{
    leat__image_index *all = NULL, *x = NULL;
    int8_t *codes = make_codes(), *half = malloc((size_t)COUNT * DIM);
    uint32_t *list = malloc(COUNT * sizeof *list), number[COUNT], some[COUNT];
    leat__near found[100], near[20][100];
    leat__near_heap heap[20] = {{0}};
    leat__index_work threaded = {0};
    assert_ok(leat__thread_team_open(&threaded.team, 3, NULL));
    leat__near_query query[20];
    for (uint32_t q = 0; q < 20; q++) {
        heap[q] = (leat__near_heap){.near = near[q], .room = 100};
        query[q] = (leat__near_query){codes + (size_t)q * 99 * DIM, 0.3f, 0.1f, q == 3 ? 0 : COUNT - q};
    }
    assert_true(half && list);
    assert_int_equal(leat__image_index_sample(COUNT), COUNT);
    assert_ok(leat__image_index_open(&all, codes, COUNT, &threaded, NULL));
    assert_ok(leat__image_index_train(&x, codes, COUNT, NULL, NULL));
    leat__image_index_assign(x, codes, COUNT, list);
    for (uint32_t part = 0; part < 2; part++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < COUNT; i++) {
            if (list[i] % 2 != part) continue;
            memcpy(half + (size_t)n * DIM, codes + (size_t)i * DIM, DIM);
            number[n] = i;
            some[n++] = list[i];
        }
        assert_ok(leat__image_index_fill(
            x, &(leat__index_part){.codes = half, .list = some, .number = number, .count = n}, NULL));
        void *scratch = malloc(leat__image_index_scratch(x));
        assert_non_null(scratch);
        leat__image_index_scan(x, query, heap, 20, scratch);
        free(scratch);
    }
    for (uint32_t q = 0; q < 20; q++) {
        assert_int_equal(heap[q].count, find(all, &query[q], found, 100));
        leat__near_sort(near[q], heap[q].count);
        for (uint32_t i = 0; i < heap[q].count; i++)
            assert_true(near[q][i].entry == found[i].entry && near[q][i].distance == found[i].distance);
    }
    leat__image_index_close(&x);
    leat__image_index_close(&all);
    leat__thread_team_close(&threaded.team);
    free(half);
    free(list);
    free(codes);
    assert_no_leaks();
}

static void few_and_none(void **state)
{
    leat__image_index *x = NULL;
    leat__near found[4];
    const int8_t code[DIM] = {100, 3, [LEAT__COARSE_FLAGS] = 77};
    assert_ok(leat__image_index_open(&x, NULL, 0, NULL, NULL));
    assert_int_equal(find(x, &(leat__near_query){code, 1, 1, 1}, found, 4), 0);
    leat__image_index_close(&x);
    assert_ok(leat__image_index_open(&x, code, 1, NULL, NULL));
    assert_int_equal(find(x, &(leat__near_query){code, 1, 0.01f, 1}, found, 4), 1);
    assert_true(found[0].distance < 1e-4f);
    leat__image_index_close(&x);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(near_entries_are_found),
                                       cmocka_unit_test(a_build_can_be_stopped),
                                       cmocka_unit_test(parts_find_the_same), cmocka_unit_test(few_and_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
