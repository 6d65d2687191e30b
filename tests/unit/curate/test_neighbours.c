/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/select_box.h"

#include "curate/neighbours.h"

enum { ROWS = 700, DIM = 16, K = 9 };

static float vectors[ROWS * DIM];
static leat__neighbour near_rows[ROWS][K];
static uint32_t counts[ROWS];

static void take(void *cookie, uint64_t row, const leat__neighbour *near, uint32_t count)
{
    memcpy(near_rows[row], near, count * sizeof *near);
    counts[row] = count;
}

static int tell(void *cookie, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    return cookie != NULL;
}

static leat__vectors make(uint32_t rows)
{
    const vector_kind k = {.dim = DIM, .clusters = 6, .seed = 1, .spread = 0.5f};
    for (uint32_t i = 0; i < rows; i++) vector_of(&k, i % 600, vectors + i * DIM); /* some are copies */
    return (leat__vectors){.count = rows, .dim = DIM, .row = vectors};
}

static void check_row(const leat__vectors *v, uint32_t row)
{
    bool used[ROWS] = {false};
    float d[ROWS];
    leat__distance_dsp_for(0)->rows(leat__vectors_at(v, row), v->row, DIM, (size_t)v->count, d);
    for (uint32_t n = 0; n < counts[row]; n++) {
        uint32_t best = UINT32_MAX;
        for (uint32_t i = 0; i < v->count; i++)
            if (i != row && !used[i] && (best == UINT32_MAX || d[i] < d[best])) best = i;
        used[best] = true;
        assert_int_equal(near_rows[row][n].row, best);
        assert_true(near_rows[row][n].distance == d[best]);
    }
}

static void neighbours_are_exact(void **state)
{
    static const uint32_t threads[] = {1, 2, 7}, sizes[] = {ROWS, 17, 4, 1, 0};
    for (size_t t = 0; t < 3; t++)
        for (size_t s = 0; s < 5; s++) {
            const leat__vectors v = make(sizes[s]);
            leat__neighbours n = {.vectors = &v, .k = K, .take = take, .tell = tell};
            memset(counts, 0xff, sizeof counts);
            assert_ok(leat__thread_team_open(&n.crew, threads[t], NULL));
            assert_ok(leat__neighbours_run(&n, NULL));
            leat__thread_team_close(&n.crew);
            for (uint32_t i = 0; i < sizes[s]; i++) {
                assert_int_equal(counts[i], sizes[s] - 1 < K ? sizes[s] - 1 : K);
                if (i % 13 == 0) check_row(&v, i);
            }
        }
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static void rows_without_a_vector_are_left_out(void **state)
{
    const leat__vectors v = make(40);
    leat__neighbours n = {.vectors = &v, .k = K, .take = take, .tell = tell};
    for (uint32_t i = 0; i < 40; i += 5) memset(vectors + i * DIM, 0, DIM * sizeof *vectors);
    assert_ok(leat__thread_team_open(&n.crew, 2, NULL));
    assert_ok(leat__neighbours_run(&n, NULL));
    leat__thread_team_close(&n.crew);
    for (uint32_t i = 0; i < 40; i++) {
        assert_int_equal(counts[i], i % 5 ? K : 0);
        for (uint32_t k = 0; k < counts[i]; k++) assert_true(near_rows[i][k].row % 5 != 0);
    }
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static void a_search_can_be_stopped(void **state)
{
    const leat__vectors v = make(ROWS);
    leat__neighbours n = {.vectors = &v, .k = K, .take = take, .tell = tell, .cookie = &n};
    assert_ok(leat__thread_team_open(&n.crew, 1, NULL));
    assert_code(LEAT_ECANCELED, leat__neighbours_run(&n, NULL));
    leat__thread_team_close(&n.crew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_are_exact),
        cmocka_unit_test(rows_without_a_vector_are_left_out),
        cmocka_unit_test(a_search_can_be_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
