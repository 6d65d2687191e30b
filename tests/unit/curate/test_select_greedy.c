/* SPDX-License-Identifier: Apache-2.0
 *
 * The lazy choice against a naive one that computes the score of every row for every
 * choice.
 */
#include "curate/select_box.h"

#include "curate/select_greedy.h"
#include "probe/cpu.h"

enum { ROWS = 600, DIM = 32 };

typedef struct taken {
    uint32_t row[ROWS];
    double score[ROWS], distance[ROWS];
    uint32_t count, stop;
} taken;

static int take(void *cookie, uint64_t row, double score, double distance)
{
    taken *t = cookie;
    t->row[t->count] = (uint32_t)row;
    t->score[t->count] = score;
    t->distance[t->count++] = distance;
    return t->stop && t->count == t->stop;
}

static float vectors[ROWS * DIM];
static const leat__vectors all = {.count = ROWS, .dim = DIM, .row = vectors};

static void make_vectors(float spread)
{
    const vector_kind k = {.dim = DIM, .clusters = 9, .seed = 4, .spread = spread};
    for (uint32_t i = 0; i < ROWS; i++) {
        float *to = vectors + i * DIM;
        double sum = 0;
        vector_of(&k, i % 500, to); /* the last hundred are copies */
        for (int d = 0; d < DIM; d++) sum += (double)to[d] * to[d];
        for (int d = 0; d < DIM; d++) to[d] = (float)(to[d] / sqrt(sum));
    }
}

/* ---- the reference ---- */

static double naive_distance(const leat__greedy *g, const uint8_t *state, uint32_t row)
{
    float near = 4, d;
    for (uint32_t i = 0; i < g->rows; i++) {
        if (state[i] != LEAT__ROW_CHOSEN && state[i] != LEAT__ROW_PREVIOUS) continue;
        leat__distance_dsp_for(0)->rows(leat__vectors_at(g->vectors, row), leat__vectors_at(g->vectors, i),
                                        DIM, 1, &d);
        if (d < near) near = d;
    }
    return sqrt((double)near);
}

static double naive_score(const leat__greedy *g, const uint8_t *state, uint32_t row, double *distance)
{
    double score = g->weight ? exp2(g->weight[row]) : 1, factor = 1;
    *distance = LEAT__SELECT_FAR;
    if (g->vectors) {
        *distance = naive_distance(g, state, row);
        if (*distance < g->min_distance) return -1;
        score *= g->diversity == 1 ? *distance : pow(*distance, g->diversity);
    }
    for (uint32_t b = 0; b < g->balances; b++) {
        const leat__balance *x = &g->balance[b];
        uint64_t have = 0;
        for (uint32_t i = 0; i < g->rows; i++)
            have +=
                x->of[i] == x->of[row] && (state[i] == LEAT__ROW_CHOSEN || state[i] == LEAT__ROW_PREVIOUS);
        const double f = x->want[x->of[row]] / ((double)have + 0.5);
        factor *= x->strength == 1 ? f : pow(f, x->strength);
    }
    return score * factor;
}

static void naive(const leat__greedy *g, uint8_t *state, taken *t)
{
    for (uint64_t n = 0; n < g->count; n++) {
        double best = -1, at = 0;
        uint32_t row = 0;
        for (uint32_t i = 0; i < g->rows; i++) {
            double distance, score;
            if (state[i] != LEAT__ROW_OPEN) continue;
            score = naive_score(g, state, i, &distance);
            if (score <= best) continue;
            best = score;
            at = distance;
            row = i;
        }
        if (best < 0) return;
        state[row] = LEAT__ROW_CHOSEN;
        take(t, row, best, at);
    }
}

/* ---- comparing ---- */

static void compare(leat__greedy g, const uint8_t *state)
{
    static taken want, got;
    static uint8_t own[ROWS];
    static const uint32_t threads[] = {1, 2, 7};
    memset(&want, 0, sizeof want);
    memcpy(own, state, ROWS);
    naive(&g, own, &want);
    assert_true(want.count > 5);
    for (size_t k = 0; k < 3; k++) {
        leat_error err = {0};
        memset(&got, 0, sizeof got);
        memcpy(own, state, ROWS);
        for (uint32_t b = 0; b < g.balances; b++)
            memset(g.balance[b].have, 0, g.balance[b].groups * sizeof *g.balance[b].have);
        assert_ok(leat__thread_team_open(&g.crew, threads[k], NULL));
        g.state = own;
        g.take = take;
        g.cookie = &got;
        g.distances = 0;
        if (leat__greedy_run(&g, &err) != 0) fail_msg("%s", err.message);
        leat__thread_team_close(&g.crew);
        assert_int_equal(got.count, want.count);
        assert_memory_equal(got.row, want.row, sizeof got.row);
        for (uint32_t i = 0; i < got.count; i++)
            assert_true(fabs(got.score[i] - want.score[i]) <= 1e-12 * want.score[i]);
        assert_memory_equal(got.distance, want.distance, sizeof got.distance);
        if (g.vectors) assert_true(g.distances > 0 && g.distances < (uint64_t)ROWS * (want.count + 600));
    }
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static void diversity_is_exact(void **state)
{
    uint8_t open[ROWS] = {0};
    make_vectors(0.3f);
    compare((leat__greedy){.rows = ROWS, .count = 120, .vectors = &all, .diversity = 1}, open);
    make_vectors(3);
    compare((leat__greedy){.rows = ROWS, .count = 80, .vectors = &all, .diversity = 2.5}, open);
    for (uint32_t i = 0; i < ROWS; i += 3) open[i] = LEAT__ROW_OUT + i % 5;
    for (uint32_t i = 1; i < ROWS; i += 50) open[i] = LEAT__ROW_PREVIOUS;
    compare((leat__greedy){.rows = ROWS, .count = 100, .vectors = &all, .diversity = 1}, open);
}

static void all_rows_are_ordered(void **state)
{
    uint8_t open[ROWS] = {0};
    make_vectors(0.5f);
    compare((leat__greedy){.rows = ROWS, .count = ROWS + 5, .vectors = &all, .diversity = 1}, open);
}

static void the_least_distance_is_kept(void **state)
{
    uint8_t open[ROWS] = {0}, own[ROWS] = {0};
    taken t = {0};
    make_vectors(0.3f);
    leat__greedy g = {.rows = ROWS, .count = ROWS, .vectors = &all, .diversity = 1, .min_distance = 0.4};
    compare(g, open);
    assert_ok(leat__thread_team_open(&g.crew, 2, NULL));
    g.state = own;
    g.take = take;
    g.cookie = &t;
    assert_ok(leat__greedy_run(&g, NULL));
    leat__thread_team_close(&g.crew);
    for (uint32_t i = 0; i < ROWS; i++) assert_true(own[i] == LEAT__ROW_CHOSEN || own[i] == LEAT__ROW_NEAR);
    for (uint32_t i = 1; i < t.count; i++) assert_true(t.distance[i] >= 0.4);
}

static void weights_and_balances_are_exact(void **state)
{
    uint8_t open[ROWS] = {0};
    static double weight[ROWS];
    static uint32_t of[2][ROWS];
    double want[2][5] = {{0.25, 0.25, 0.25, 0.25, 0}, {0.5, 0.1, 0.3, 0.05, 0.05}};
    uint64_t have[2][5];
    leat__balance b[2] = {{5, of[0], want[0], have[0], 1}, {5, of[1], want[1], have[1], 1.5}};
    make_vectors(0.5f);
    for (uint32_t i = 0; i < ROWS; i++) {
        weight[i] = log2(0.01 + score_of(i));
        of[0][i] = (uint32_t)label_of(i);
        of[1][i] = i % 11 % 5;
    }
    compare((leat__greedy){.rows = ROWS, .count = 90, .weight = weight}, open);
    compare((leat__greedy){.rows = ROWS, .count = 90, .balance = b, .balances = 1}, open);
    compare((leat__greedy){.rows = ROWS, .count = 200, .weight = weight, .balance = b, .balances = 2}, open);
    for (uint32_t i = 2; i < ROWS; i += 40) open[i] = LEAT__ROW_PREVIOUS;
    compare((leat__greedy){.rows = ROWS,
                           .count = 100,
                           .weight = weight,
                           .balance = b,
                           .balances = 2,
                           .vectors = &all,
                           .diversity = 1},
            open);
    make_vectors(0.2f);
    compare((leat__greedy){.rows = ROWS,
                           .count = 300,
                           .weight = weight,
                           .balance = b,
                           .balances = 1,
                           .vectors = &all,
                           .diversity = 0.5,
                           .min_distance = 0.2},
            open);
}

/* Products far outside of the range of double are in order, in front of those that are 0. */
static void products_out_of_range_are_in_order(void **state)
{
    uint8_t open[ROWS] = {0};
    static double weight[ROWS];
    taken t = {0};
    leat__greedy g = {
        .rows = ROWS, .count = ROWS, .state = open, .weight = weight, .take = take, .cookie = &t};
    for (uint32_t i = 0; i < ROWS; i++) weight[i] = ((double)(i * 7 % ROWS) - ROWS / 2) * 30;
    assert_ok(leat__thread_team_open(&g.crew, 2, NULL));
    assert_ok(leat__greedy_run(&g, NULL));
    leat__thread_team_close(&g.crew);
    assert_int_equal(t.count, ROWS);
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_int_equal(t.row[i] * 7 % ROWS, ROWS - 1 - i);
        assert_true(t.score[i] > 0 && isfinite(t.score[i]));
    }
}

static void a_run_can_be_stopped(void **state)
{
    uint8_t open[ROWS] = {0};
    taken t = {.stop = 4};
    leat__greedy g = {.rows = ROWS,
                      .count = 50,
                      .vectors = &all,
                      .diversity = 1,
                      .state = open,
                      .take = take,
                      .cookie = &t};
    make_vectors(1);
    assert_ok(leat__thread_team_open(&g.crew, 2, NULL));
    assert_code(LEAT_ECANCELED, leat__greedy_run(&g, NULL));
    assert_int_equal(t.count, 4);
    g.rows = 0;
    t.stop = 0;
    assert_ok(leat__greedy_run(&g, NULL));
    leat__thread_team_close(&g.crew);
    assert_int_equal(t.count, 4);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

typedef struct resuming {
    leat__greedy g;
    leat__saved saved;
    taken t;
    uint8_t state[ROWS];
} resuming;

static int run_again(resuming *r, uint32_t threads, uint32_t stop)
{
    memset(&r->t, 0, sizeof r->t);
    memset(r->state, 0, sizeof r->state);
    for (uint32_t b = 0; b < r->g.balances; b++)
        memset(r->g.balance[b].have, 0, r->g.balance[b].groups * sizeof *r->g.balance[b].have);
    r->t.stop = stop;
    r->g.state = r->state;
    r->g.take = take;
    r->g.cookie = &r->t;
    r->g.saved = &r->saved;
    r->g.distances = r->g.resumed = 0;
    assert_ok(leat__thread_team_open(&r->g.crew, threads, NULL));
    const int rc = leat__greedy_run(&r->g, NULL);
    leat__thread_team_close(&r->g.crew);
    return rc;
}

/* Stopped again and again, with other numbers of threads, the choice is that of one run. */
static void a_stopped_run_is_continued(void **state)
{
    static resuming whole, r;
    static double weight[ROWS];
    static uint32_t of[ROWS];
    double want[4] = {0.25, 0.25, 0.25, 0.25};
    uint64_t have[4];
    leat__balance b = {4, of, want, have, 1};
    for (uint32_t i = 0; i < ROWS; i++) {
        weight[i] = log2(0.01 + score_of(i));
        of[i] = (uint32_t)label_of(i);
    }
    make_vectors(0.3f);
    for (int kind = 0; kind < 3; kind++) {
        leat__greedy g = {.rows = ROWS, .count = 200, .vectors = &all, .diversity = 1};
        if (kind == 1) g.min_distance = 0.4;
        if (kind == 2) g.weight = weight, g.balance = &b, g.balances = 1;
        whole.g = r.g = g;
        assert_ok(leat__saved_open(&whole.saved, in_box("whole"), NULL));
        assert_ok(leat__saved_open(&r.saved, in_box("parts"), NULL));
        assert_ok(run_again(&whole, 2, 0));
        for (uint32_t stop = 1; stop < whole.t.count; stop += 29) {
            assert_code(LEAT_ECANCELED, run_again(&r, 1 + stop % 3, stop));
            assert_true(r.g.resumed + 29 >= stop && r.g.resumed < stop);
        }
        r.g.weight = kind == 2 ? NULL : weight; /* another choice does not continue this one */
        assert_ok(run_again(&r, 2, 0));
        assert_int_equal(r.g.resumed, 0);
        r.g.weight = g.weight;
        assert_ok(run_again(&r, 3, 0));
        assert_true(r.g.resumed > whole.t.count - 30 && r.g.distances <= whole.g.distances * 2);
        assert_int_equal(r.t.count, whole.t.count);
        assert_memory_equal(r.t.row, whole.t.row, sizeof r.t.row);
        assert_memory_equal(r.t.score, whole.t.score, sizeof r.t.score);
        assert_memory_equal(r.t.distance, whole.t.distance, sizeof r.t.distance);
        assert_ok(leat__saved_drop(&r.saved, NULL));
        leat__saved_close(&r.saved);
        leat__saved_close(&whole.saved);
    }
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(diversity_is_exact),
        cmocka_unit_test(all_rows_are_ordered),
        cmocka_unit_test(the_least_distance_is_kept),
        cmocka_unit_test(weights_and_balances_are_exact),
        cmocka_unit_test(products_out_of_range_are_in_order),
        cmocka_unit_test(a_run_can_be_stopped),
        cmocka_unit_test(a_stopped_run_is_continued),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
