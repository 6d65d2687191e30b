/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/select_box.h"

#include "curate/select_run.h"

enum { ROWS = 60 };

static void fill_odd(uint32_t row, leat_pack_value *v, void *cookie)
{
    v[0].f = row == 3 ? (double)NAN : row == 4 ? (double)INFINITY : row;
    v[1].f = 7;
    v[2].i = row % 4;
}

static leat__selecting *prepare(const char *config)
{
    static const leat_field fields[] = {{.name = "odd", .type = LEAT_FIELD_FLOAT},
                                        {.name = "same", .type = LEAT_FIELD_FLOAT},
                                        {.name = "group", .type = LEAT_FIELD_INT}};
    leat_error err = {0};
    static const char *columns[1];
    leat__selecting *s = LEAT_NEW(MISC, leat__selecting);
    put_pack(in_box("odd.leat"), fields, 3, ROWS, fill_odd, NULL);
    columns[0] = in_box("odd.leat");
    leat_select_opts_init(&s->opts);
    s->opts.pack = put_rows("p.leat", ROWS);
    const char *vectors = put_vectors("v.leat", ROWS, (vector_kind){.dim = 8, .clusters = 3, .spread = 0.2f});
    if (uses_vectors(config)) s->opts.vectors = vectors;
    s->opts.output = in_box("out.leat");
    if (strstr(config, "where") || strstr(config, "column")) {
        s->opts.columns = columns;
        s->opts.column_count = 1;
    }
    s->opts.count = 10;
    s->opts.config = config;
    int rc = leat__select_config_open(&s->config, &s->opts, &err);
    if (rc == 0) rc = leat__select_check(s, &err);
    if (rc == 0) rc = leat__column_packs_open(&s->sheets, s->opts.pack, columns, 1, &err);
    s->rows = s->sheets.rows;
    if (rc == 0) rc = leat__select_plan(s, &err);
    if (rc == 0) rc = leat__thread_team_open(&s->crew, 2, &err);
    if (rc == 0) rc = leat__select_prepare(s, &err);
    if (rc != 0) fail_msg("%s", err.message);
    return s;
}

static void done(leat__selecting *s)
{
    leat__select_forget(s);
    leat__free(s);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static void weights_are_scaled(void **state)
{
    leat__selecting *s = prepare("strategies: [{strategy: weights, column: odd}]");
    assert_true(fabs(s->weight[0] - log2(0.001)) < 1e-12 && fabs(s->weight[59] - log2(1.001)) < 1e-12);
    assert_true(s->state[3] == LEAT__ROW_UNKNOWN && s->state[4] == LEAT__ROW_UNKNOWN);
    assert_int_equal(s->stats.unknown, 2);
    assert_true(fabs(s->weight[30] - log2(0.001 + 30.0 / 59)) < 1e-12);
    done(s);
    s = prepare("strategies: [{strategy: weights, column: odd, strength: -2}, {strategy: "
                "weights, column: same}]");
    assert_true(fabs(s->weight[59] + 2 * log2(1.001)) < 1e-9 && s->weight[0] > log2(9e5));
    done(s);
}

static void thresholds_leave_rows_out(void **state)
{
    leat__selecting *s = prepare("{where: odd < 50, strategies: [{strategy: threshold, where: group != 2}]}");
    for (uint32_t i = 0; i < ROWS; i++) {
        const bool first = i < 50 && i != 3 && i != 4;
        assert_int_equal(s->state[i], !first       ? LEAT__ROW_OUT
                                      : i % 4 == 2 ? LEAT__ROW_OUT + 1
                                                   : LEAT__ROW_OPEN);
    }
    assert_string_equal(leat__select_where(s, 0), "odd < 50");
    assert_string_equal(leat__select_where(s, 1), "group != 2");
    assert_null(leat__select_where(s, 2));
    assert_true(s->stats.excluded == 12 + 12);
    done(s);
}

static void balances_have_shares(void **state)
{
    leat__selecting *s = prepare("{where: group != 3, strategies: [{strategy: balance, "
                                 "column: group}, {strategy: balance, "
                                 "column: label, distribution: input}, {strategy: "
                                 "balance, column: group, distribution: "
                                 "{1: 0.7}}]}");
    assert_int_equal(s->balances, 3);
    for (int g = 0; g < 3; g++)
        assert_true(fabs(s->balance[0].want[g] / s->balance[0].sum - 1.0 / 3) < 1e-12);
    assert_true(s->balance[0].want[3] == 0); /* none may be chosen */
    uint32_t cats = 0, open = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        open += i % 4 != 3;
        cats += i % 4 != 3 && label_of(i) == 0;
    }
    assert_true(fabs(s->balance[1].want[0] - cats) < 1e-12 && s->balance[1].sum == open);
    assert_true(fabs(s->balance[2].want[1] - 0.7) < 1e-12 && fabs(s->balance[2].want[0] - 0.15) < 1e-12);
    assert_true(s->balance[2].want[3] == 0); /* the rest is for groups that can be chosen */
    done(s);
}

/* Shares of decimals may add up to slightly less than 1: such a rest counts as 0. */
static void rows_without_a_share_are_left_out(void **state)
{
    leat__selecting *s = prepare("strategies: [{strategy: balance, column: group, distribution: "
                                 "{0: 0.7, 1: 0.2, 2: 0.1}}]");
    for (uint32_t i = 0; i < ROWS; i++)
        assert_int_equal(s->state[i], i % 4 == 3 ? LEAT__ROW_SHARELESS : LEAT__ROW_OPEN);
    done(s);
    s = prepare("strategies: [{strategy: balance, column: group, distribution: {2: 0}}]");
    for (uint32_t i = 0; i < ROWS; i++)
        assert_int_equal(s->state[i], i % 4 == 2 ? LEAT__ROW_SHARELESS : LEAT__ROW_OPEN);
    assert_true(fabs(s->balance[0].want[3] - 1.0 / 3) < 1e-12);
    done(s);
}

static void vectors_give_objectives(void **state)
{
    leat__selecting *s = prepare("strategies: [{strategy: typicality, neighbours: 3}, "
                                 "{strategy: random, seed: 5}]");
    double most = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_true(s->shown[0][i] > 0 && s->shown[0][i] <= 1 && s->shown[1][i] > 0 && s->shown[1][i] <= 1);
        assert_true(fabs(s->weight[i] - log2(s->shown[0][i]) - log2(s->shown[1][i])) < 1e-12);
        most = LEAT_MAX(most, s->shown[0][i]);
    }
    assert_true(most == 1);
    done(s);
    char config[800];
    snprintf(config, sizeof config, "strategies: [{strategy: similarity, query: %s}]",
             put_vectors("q.leat", 2, (vector_kind){.dim = 8, .clusters = 3, .spread = 0.2f}));
    s = prepare(config);
    assert_true(s->shown[0][0] == 1 && s->shown[0][1] == 1 &&
                s->shown[0][2] < 1); /* the query is rows 0 and 1 */
    done(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_scaled),      cmocka_unit_test(thresholds_leave_rows_out),
        cmocka_unit_test(balances_have_shares),    cmocka_unit_test(rows_without_a_share_are_left_out),
        cmocka_unit_test(vectors_give_objectives),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
