/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/select_box.h"

#include "curate/kmeans.h"

enum { ROWS = 500, DIM = 16, CLUSTERS = 5 };

static float vectors[ROWS * DIM];

static leat__vectors make(uint32_t rows, float spread)
{
    const vector_kind k = {.dim = DIM, .clusters = CLUSTERS, .seed = 9, .spread = spread};
    for (uint32_t i = 0; i < rows; i++) {
        double sum = 0;
        vector_of(&k, i, vectors + i * DIM);
        for (int d = 0; d < DIM; d++) sum += (double)vectors[i * DIM + d] * vectors[i * DIM + d];
        for (int d = 0; d < DIM; d++) vectors[i * DIM + d] = (float)(vectors[i * DIM + d] / sqrt(sum));
    }
    return (leat__vectors){.count = rows, .dim = DIM, .row = vectors};
}

static void clusters_are_found_by_any_number_of_threads(void **state)
{
    static const uint32_t threads[] = {1, 2, 7};
    const leat__vectors v = make(ROWS, 0.05f);
    static float first[CLUSTERS * DIM];
    static uint32_t to[ROWS];
    static float distance[ROWS];
    for (size_t t = 0; t < 3; t++) {
        leat__thread_team *crew = NULL;
        leat__kmeans k;
        assert_ok(leat__thread_team_open(&crew, threads[t], NULL));
        assert_ok(leat__kmeans_train(&k, &v, CLUSTERS, crew, NULL));
        leat__kmeans_assign(&k, &v, to, distance, crew);
        if (t == 0) memcpy(first, k.centre, sizeof first);
        assert_memory_equal(first, k.centre, sizeof first);
        for (uint32_t i = 0; i < ROWS; i++) {
            float d[CLUSTERS];
            assert_true(to[i] < CLUSTERS && (to[i] == to[i % CLUSTERS]));
            leat__distance_dsp_for(0)->rows(leat__vectors_at(&v, i), k.centre, DIM, CLUSTERS, d);
            for (int c = 0; c < CLUSTERS; c++) assert_true(d[c] >= distance[i]);
        }
        for (uint32_t a = 0; a < CLUSTERS; a++)
            for (uint32_t b = 0; b < a; b++) assert_true(to[a] != to[b]);
        leat__kmeans_reset(&k);
        leat__thread_team_close(&crew);
    }
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static void few_and_equal_rows_are_clustered(void **state)
{
    leat__thread_team *crew = NULL;
    leat__kmeans k;
    uint32_t to[8];
    float distance[8];
    assert_ok(leat__thread_team_open(&crew, 2, NULL));
    for (uint32_t rows = 0; rows <= 3; rows++) {
        const leat__vectors v = make(rows, 0);
        assert_ok(leat__kmeans_train(&k, &v, 50, crew, NULL));
        assert_int_equal(k.count, rows ? rows : 1);
        leat__kmeans_assign(&k, &v, to, distance, crew);
        for (uint32_t i = 0; i < rows; i++) assert_int_equal(to[i], i);
        leat__kmeans_reset(&k);
    }
    leat__vectors v = make(8, 0);
    for (int i = 1; i < 8; i++) memcpy(vectors + i * DIM, vectors, DIM * sizeof *vectors);
    assert_ok(leat__kmeans_train(&k, &v, 4, crew, NULL));
    leat__kmeans_assign(&k, &v, to, distance, crew);
    for (int i = 0; i < 8; i++) assert_int_equal(to[i], to[0]);
    leat__kmeans_reset(&k);
    leat__thread_team_close(&crew);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clusters_are_found_by_any_number_of_threads),
        cmocka_unit_test(few_and_equal_rows_are_clustered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
