/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/num.h"
#include "curate/select_config.h"

static leat_select_opts with(const char *text)
{
    leat_select_opts o;
    leat_select_opts_init(&o);
    o.config = text;
    o.config_name = "s.yaml";
    return o;
}

static void a_document_fills_the_options(void **state)
{
    leat__select_config *c = NULL;
    leat_select_opts o = with("count: 1000\n"
                              "embeddings: v.leat\n"
                              "with: [a.leat, b.leat]\n"
                              "previous: p.leat\n"
                              "where: issues == 0\n"
                              "strategies:\n"
                              "  - strategy: diversity\n"
                              "    min_distance: 0.25\n"
                              "  - {strategy: weights, column: blur, strength: -0.5}\n"
                              "  - strategy: balance\n"
                              "    column: label\n"
                              "    distribution: {cat: 0.5, dog: 0.3}\n"
                              "  - {strategy: similarity, query: q.leat, embeddings: w.leat}\n"
                              "  - {strategy: random, seed: 18446744073709551615}\n"
                              "  - {strategy: typicality, neighbours: 7}\n"
                              "  - {strategy: threshold, where: blur > 3}\n"
                              "  - {strategy: balance, column: folder, distribution: input}\n");
    leat_error err = {0};
    if (leat__select_config_open(&c, &o, &err) != 0) fail_msg("%s", err.message);
    const leat_select_strategy *s = o.strategies;
    assert_int_equal(o.count, 1000);
    assert_int_equal(o.strategy_count, 8);
    assert_int_equal(o.column_count, 2);
    assert_string_equal(o.columns[1], "b.leat");
    assert_string_equal(o.vectors, "v.leat");
    assert_string_equal(o.previous, "p.leat");
    assert_string_equal(o.where, "issues == 0");
    assert_true(s[0].kind == LEAT_SELECT_DIVERSITY && s[0].least == 0.25);
    assert_true(s[1].kind == LEAT_SELECT_WEIGHTS && s[1].strength == -0.5);
    assert_true(s[2].shares == LEAT_SHARES_TARGET && s[2].target_count == 2 && s[2].targets[1].share == 0.3);
    assert_string_equal(s[2].targets[0].name, "cat");
    assert_true(strcmp(s[3].query, "q.leat") == 0 && strcmp(s[3].vectors, "w.leat") == 0);
    assert_true(s[4].seed == UINT64_MAX && s[5].neighbours == 7 && s[7].shares == LEAT_SHARES_INPUT);
    assert_string_equal(s[6].where, "blur > 3");
    leat__select_config_close(&c);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

/* A name stands for a strategy without settings, alone or in the list. */
static void names_are_strategies(void **state)
{
    static const char *const texts[] = {"strategies: random", "strategies: [random]",
                                        "strategies: {strategy: random}", "strategies:\n  - random\n"};
    for (size_t i = 0; i < LEAT_COUNT(texts); i++) {
        leat__select_config *c = NULL;
        leat_select_opts o = with(texts[i]);
        assert_int_equal(leat__select_config_open(&c, &o, NULL), 0);
        assert_true(o.strategy_count == 1 && o.strategies[0].kind == LEAT_SELECT_RANDOM);
        leat__select_config_close(&c);
    }
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static void options_win(void **state)
{
    leat__select_config *c = NULL;
    leat_select_opts o =
        with("{\"share\": 0.5, \"embeddings\": \"v\", \"with\": \"a\", \"where\": \"x > 1\"}");
    const char *mine = "mine";
    o.count = 3;
    o.vectors = "own";
    o.columns = &mine;
    o.column_count = 1;
    assert_ok(leat__select_config_open(&c, &o, NULL));
    assert_true(o.count == 3 && o.share == 0 && strcmp(o.vectors, "own") == 0 && o.columns == &mine);
    assert_string_equal(o.where, "x > 1");
    leat__select_config_close(&c);
    o = with(NULL);
    assert_ok(leat__select_config_open(&c, &o, NULL));
    assert_null(c);
}

static void wrong_documents_are_named_by_line(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "s.yaml: is empty"},
        {"- a", "must be a mapping"},
        {"count: [", "s.yaml:2: "},
        {"count: 1\ncuont: 2", "s.yaml:2: unknown key 'cuont'; did you mean 'count'?"},
        {"count: 1\ncount: 2", "s.yaml:2: 'count' appears twice"},
        {"count: -1", "s.yaml:1: 'count' is -1, not a whole number from 0 to"},
        {"count: 0", "'count' must be 1 or more"},
        {"share: 1.5", "'share' is 1.5, not between 0 and 1"},
        {"share: 0", "'share' must be above 0"},
        {"share: .nan", "'share' needs a number"},
        {"with: {a: b}", "'with' needs a list of files"},
        {"with: [[a]]", "'with' needs a text"},
        {"strategies: divers", "s.yaml:1: 'divers' is not a strategy; did you mean 'diversity'?"},
        {"strategies: [random, 5]", "s.yaml:1: '5' is not a strategy"},
        {"strategies: [[diversity]]", "strategies must be a list"},
        {"strategies: [{}]", "'strategy' is missing"},
        {"strategies: [{column: x}]", "'strategy' is missing"},
        {"strategies: [{strategy: divresity}]", "'divresity' is not a strategy; did you mean 'diversity'?"},
        {"strategies:\n- strategy: random\n  colunm: 3",
         "s.yaml:3: unknown key 'colunm'; did you mean 'column'?"},
        {"strategies: [{strategy: random, column: x}]", "'column' has no effect on random"},
        {"strategies: [{strategy: threshold, where: x > 1, strength: 2}]",
         "'strength' has no effect on threshold"},
        {"strategies: [{strategy: random, strength: 0}]", "'strength' must not be 0"},
        {"strategies: [{strategy: random, strength: 17}]", "'strength' is 17, not between -16 and 16"},
        {"strategies: [{strategy: random, seed: x}]", "'seed' needs a whole number"},
        {"strategies: [{strategy: random, seed: -1}]", "'seed' is -1, not a whole number from 0 to"},
        {"strategies: [{strategy: random, strategy: random}]", "'strategy' appears twice"},
        {"strategies: [{strategy: typicality, neighbours: 0}]", "'neighbours' must be 1 or more"},
        {"strategies: [{strategy: typicality, neighbours: 1001}]",
         "'neighbours' is 1001, not a whole number from 0 to 1000"},
        {"strategies: [{strategy: diversity, min_distance: 3}]", "'min_distance' is 3"},
        {"strategies: [{strategy: balance, column: a, distribution: even}]",
         "'distribution' is uniform, input"},
        {"strategies: [{strategy: balance, column: a, distribution: {cat: 2}}]",
         "'cat' is 2, not between 0 and 1"},
        {"strategies: [{strategy: balance, column: a, distribution: {[a]: 1}}]", "needs names of values"},
        {"strategies: &a [*a]", "strategies must be a list"},
        {"where: \"a\\0b\"", "'where' needs a text"},
        {"? [a]\n: b", "a key must be a word"},
        {"count: 4\n---\ncount: 3", "s.yaml:2: a second document begins here"},
        {"count: 4\n---\nbogus: [", "s.yaml:"},
        {"strategies: [{strategy: random, field: x}]", "'field' has no effect on random"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        leat__select_config *c = NULL;
        leat_error err = {0};
        leat_select_opts o = with(bad[i].text);
        assert_code(LEAT_EINVAL, leat__select_config_open(&c, &o, &err));
        assert_contains(err.message, bad[i].message);
        assert_null(c);
        assert_int_equal(leat__mem_blocks(), test_blocks);
    }
}

static void long_documents_are_refused(void **state)
{
    leat__select_config *c = NULL;
    leat_error err = {0};
    char *text = malloc(3u << 20);
    memset(text, ' ', 3u << 20);
    text[(3u << 20) - 1] = 0;
    leat_select_opts o = with(text);
    assert_code(LEAT_ELIMIT, leat__select_config_open(&c, &o, &err));
    size_t n = (size_t)sprintf(text, "strategies:\n");
    for (int i = 0; i < 70; i++) n += (size_t)sprintf(text + n, "- strategy: random\n");
    assert_code(LEAT_EINVAL, leat__select_config_open(&c, &o, &err));
    assert_contains(err.message, "at most 64");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_fills_the_options),
        cmocka_unit_test(names_are_strategies),
        cmocka_unit_test(options_win),
        cmocka_unit_test(wrong_documents_are_named_by_line),
        cmocka_unit_test(long_documents_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
