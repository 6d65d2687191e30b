/* SPDX-License-Identifier: Apache-2.0
 *
 * The most similar earlier row of each cluster, against a comparison of all pairs.
 */
#include "curate/select_box.h"

#include "curate/semantic_dedup.h"

enum { ROWS = 400, DIM = 16 };

static uint32_t cluster[ROWS], of[ROWS];
static float distance[ROWS], similarity[ROWS];

static int tell(void *cookie, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    return cookie != NULL;
}

static leat__saved saved;

static leat__semantic start(leat__vector_store *store, leat__thread_team *crew, uint32_t clusters,
                            uint64_t tile)
{
    return (leat__semantic){.store = store,
                            .crew = crew,
                            .clusters = clusters,
                            .tile = tile,
                            .cluster = cluster,
                            .distance = distance,
                            .similarity = similarity,
                            .of = of,
                            .saved = &saved,
                            .tell = tell};
}

static bool is_earlier(const leat__semantic *s, uint32_t a, uint32_t b)
{
    if (s->keep != LEAT_KEEP_SIMILAR_FIRST && distance[a] != distance[b])
        return (distance[a] > distance[b]) == (s->keep == LEAT_KEEP_SIMILAR_OUTER);
    return a < b;
}

static void check(const leat__semantic *s, const float *all)
{
    for (uint32_t i = 0; i < ROWS; i++) {
        float best = INFINITY, d;
        for (uint32_t j = 0; j < ROWS; j++) {
            if (j == i || cluster[j] != cluster[i] || !is_earlier(s, j, i)) continue;
            leat__distance_dsp_for(0)->rows(all + i * DIM, all + j * DIM, DIM, 1, &d);
            if (d < best) best = d;
            if (j == of[i]) assert_true(similarity[i] == 1 - d / 2);
        }
        assert_true(best == INFINITY ? of[i] == LEAT__SEMANTIC_NONE && similarity[i] == -1
                                     : similarity[i] == 1 - best / 2);
    }
}

static void pairs_are_exact_for_any_tile_and_threads(void **state)
{
    static const uint32_t threads[] = {1, 2, 7}, tiles[] = {1000, 64, 7};
    static float all[ROWS * DIM];
    static uint32_t first[ROWS];
    const char *path = put_vectors("v.leat", ROWS, (vector_kind){.dim = DIM, .clusters = 6, .spread = 0.3f});
    for (uint32_t keep = 0; keep < 3; keep++)
        for (int t = 0; t < 3; t++) {
            leat__thread_team *crew = NULL;
            leat__vector_store store;
            assert_ok(leat__thread_team_open(&crew, threads[t], NULL));
            assert_ok(leat__vector_store_open(&store, path, NULL, t == 1, crew, NULL));
            leat__semantic s = start(&store, crew, 9, tiles[t]);
            s.keep = keep;
            assert_ok(leat__saved_open(&saved, in_box("out"), NULL));
            saved.key.low = 10 * keep + (uint32_t)t;
            assert_ok(leat__semantic_cluster(&s, 100 * 3, 50, NULL));
            assert_ok(leat__semantic_compare(&s, NULL));
            assert_ok(leat__vector_store_get(&store, NULL, 0, ROWS, all, NULL));
            check(&s, all);
            assert_true(s.at.pairs > 0 && s.at.largest >= ROWS / 9);
            if (t == 0) memcpy(first, of, sizeof of);
            assert_memory_equal(first, of, sizeof of);
            leat__semantic_reset(&s);
            leat__saved_close(&saved);
            leat__vector_store_close(&store);
            leat__thread_team_close(&crew);
        }
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static uint32_t calls;

static int stop_at(void *cookie, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    return calls++ == *(const uint32_t *)cookie;
}

/* Stopped after each chunk and each cluster, a run gives what one run gives. */
static void a_stopped_run_is_continued(void **state)
{
    static uint32_t want_of[ROWS], want_cluster[ROWS];
    static float want[ROWS];
    uint32_t never = UINT32_MAX, first = 0, stops = 0;
    const char *path = put_vectors("v.leat", ROWS, (vector_kind){.dim = DIM, .clusters = 6, .spread = 0.3f});
    for (uint32_t keep = 0; keep < 3; keep++) {
        leat__thread_team *crew = NULL;
        leat__vector_store store;
        assert_ok(leat__thread_team_open(&crew, 2, NULL));
        assert_ok(leat__vector_store_open(&store, path, NULL, keep == 1, crew, NULL));
        assert_ok(leat__saved_open(&saved, in_box("out"), NULL));
        saved.key.low = keep + 1;
        for (int done = 0, whole = 1; !done; whole = 0) {
            leat__semantic s = start(&store, crew, 9, 64);
            memset(cluster, 0xff, sizeof cluster);
            memset(of, 0, sizeof of);
            s.keep = keep;
            s.tell = stop_at;
            s.cookie = whole ? &never : &first; /* one chunk or cluster a run */
            calls = 0;
            int rc = leat__semantic_cluster(&s, 300, 50, NULL);
            if (rc == 0) rc = leat__semantic_compare(&s, NULL);
            done = rc == 0 && !whole;
            if (rc != 0) assert_int_equal(rc, LEAT_ECANCELED);
            stops += rc != 0;
            leat__semantic_reset(&s);
            if (!whole) continue;
            memcpy(want_of, of, sizeof of);
            memcpy(want_cluster, cluster, sizeof cluster);
            memcpy(want, similarity, sizeof want);
        }
        assert_memory_equal(of, want_of, sizeof of);
        assert_memory_equal(cluster, want_cluster, sizeof cluster);
        assert_memory_equal(similarity, want, sizeof want);
        assert_ok(leat__saved_drop(&saved, NULL));
        leat__saved_close(&saved);
        leat__vector_store_close(&store);
        leat__thread_team_close(&crew);
    }
    assert_true(stops >= 3 * (8 + 6));
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_exact_for_any_tile_and_threads),
        cmocka_unit_test(a_stopped_run_is_continued),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
