/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/select_box.h"

#include <leat/select.h>

#include "curate/select_run.h"
#include "io/file.h"

enum { ROWS = 400 };
static const vector_kind kind = {.dim = 24, .clusters = 8, .seed = 2, .spread = 0.4f};

static leat_select_opts opts_for(const char *config)
{
    leat_select_opts o;
    leat_select_opts_init(&o);
    o.pack = put_rows("p.leat", ROWS);
    const char *vectors = put_vectors("v.leat", ROWS, kind);
    if (uses_vectors(config)) o.vectors = vectors;
    o.output = in_box("sel.leat");
    o.config = config;
    o.replace = o.no_sync = 1;
    return o;
}

static leat_select_stats run_ok(const leat_select_opts *o)
{
    leat_select_stats st = {.struct_size = sizeof st};
    leat_error err = {0};
    if (leat_select(o, &st, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(leat__mem_blocks(), test_blocks);
    return st;
}

static void read_ints(const char *path, const char *field, int64_t *to)
{
    leat_pack *pack = NULL;
    assert_ok(leat_pack_open(&pack, path, NULL, NULL));
    assert_int_equal(leat_pack_count(pack), ROWS);
    assert_ok(leat_pack_ints(pack, (uint32_t)leat_pack_field_find(pack, field), 0, ROWS, to, NULL));
    leat_pack_close(&pack);
}

static void the_result_does_not_depend_on_threads(void **state)
{
    static const uint32_t threads[] = {1, 2, 7};
    uint64_t first = 0;
    leat_select_opts o =
        opts_for("strategies: [{strategy: diversity}, {strategy: typicality}, {strategy: weights, "
                 "column: score, strength: 0.3}, {strategy: balance, column: label}]");
    o.share = 0.1;
    for (size_t i = 0; i < 3; i++) {
        o.threads = threads[i];
        const leat_select_stats st = run_ok(&o);
        assert_int_equal(st.selected, ROWS / 10);
        assert_true(st.distances > 0 && st.plan_memory > 0 && st.last_distance > 0);
        if (i == 0) first = hash_of_file(o.output);
        assert_true(hash_of_file(o.output) == first);
    }
}

static void balance_gives_equal_numbers(void **state)
{
    int64_t on[ROWS], count[4] = {0};
    leat_select_opts o = opts_for("{count: 80, strategies: [{strategy: balance, column: label}]}");
    run_ok(&o);
    read_ints(o.output, "selected", on);
    for (uint32_t i = 0; i < ROWS; i++)
        if (on[i]) count[label_of(i)]++;
    for (int c = 0; c < 4; c++) assert_int_equal(count[c], 20);
    memset(count, 0, sizeof count);
    o.config = "{count: 100, strategies: [{strategy: balance, column: label, "
               "distribution: {owl: 0.4, '3': 0.2}}]}";
    run_ok(&o);
    read_ints(o.output, "selected", on);
    for (uint32_t i = 0; i < ROWS; i++)
        if (on[i]) count[label_of(i)]++;
    assert_true(count[2] == 40 && count[3] == 20 && count[0] == 20 && count[1] == 20);
}

static void a_later_round_adds_to_an_earlier_one(void **state)
{
    static int64_t first[ROWS], second[ROWS], round[ROWS], order[ROWS];
    leat_select_opts o = opts_for("{count: 30, strategies: [{strategy: diversity}]}");
    const uint64_t first_plan = run_ok(&o).plan_memory;
    read_ints(o.output, "selected", first);
    o.previous = o.output;
    o.output = in_box("more.leat");
    leat_select_stats st = run_ok(&o);
    assert_true(st.previous == 30 && st.selected == 30 && st.round == 1);
    assert_true(st.plan_memory > first_plan); /* the vectors of the previous rows are kept, too */
    read_ints(o.output, "selected", second);
    read_ints(o.output, "round", round);
    read_ints(o.output, "order", order);
    uint32_t both = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        both += second[i] != 0;
        if (first[i]) assert_true(second[i] && round[i] == 0 && order[i] < 30);
        else assert_true(second[i] ? round[i] == 1 && order[i] >= 30 : round[i] == -1 && order[i] == -1);
    }
    assert_int_equal(both, 60);
    /* choosing 60 at once is the same as 30 and 30: the choice is greedy */
    static int64_t at_once[ROWS];
    o.previous = NULL;
    o.count = 60;
    run_ok(&o);
    read_ints(o.output, "order", at_once);
    assert_memory_equal(order, at_once, sizeof order);
}

static void wrong_options_are_refused(void **state)
{
    static const struct {
        const char *config, *message;
        int code;
    } bad[] = {
        {NULL, "nothing to select by", LEAT_EINVAL},
        {"{count: 3, share: 0.5, where: score > 1}", "either count or share", LEAT_EINVAL},
        {"strategies: [{strategy: diversity}]", "diversity needs a limit", LEAT_EINVAL},
        {"{count: 3, strategies: [{strategy: diversity, strength: -1}]}", "not between 0 and 16",
         LEAT_EINVAL},
        {"{count: 3, strategies: [{strategy: diversity}, {strategy: diversity}]}", "only one", LEAT_EINVAL},
        {"{count: 3, strategies: [{strategy: weights}]}", "weights needs a column", LEAT_EINVAL},
        {"{count: 3, strategies: [{strategy: weights, column: nothing}]}", "no int or float column",
         LEAT_ENOFIELD},
        {"{count: 3, strategies: [{strategy: balance, column: score}]}", "only int columns", LEAT_EINVAL},
        {"{count: 3, strategies: [{strategy: balance, column: label, distribution: {bee: "
         "1}}]}",
         "'bee'", LEAT_ENOCLASS},
        {"{count: 3, strategies: [{strategy: balance, column: label, distribution: {cat: "
         "1, dog: 0.5}}]}",
         "add up to 1.5", LEAT_EINVAL},
        {"{count: 3, strategies: [{strategy: balance, column: label, distribution: {cat: "
         "0.1, '0': 0.5}}]}",
         "has two shares", LEAT_EINVAL},
        {"{count: 3, strategies: [{strategy: balance, column: label, distribution: {cat: 0, dog: 0, owl: 0, "
         "ant: 0}}]}",
         "balance: all shares of label are 0", LEAT_EINVAL},
        {"{where: label != 0, strategies: [{strategy: balance, column: label, distribution: {cat: 1}}]}",
         "have a value without a share", LEAT_EDATA},
        {"{count: 3, strategies: [{strategy: similarity}]}", "needs a query", LEAT_EINVAL},
        {"{count: 3, strategies: [{strategy: threshold}]}", "needs a condition", LEAT_EINVAL},
        {"{count: 3, previous: nothing, strategies: [{strategy: random}]}", "nothing", LEAT_ENOENT},
        {"where: label > 50", "p.leat: no sample is selected: none of 400 meets the conditions", LEAT_EDATA},
        {"strategies: [{strategy: threshold, where: label > 50}, {strategy: random}]",
         "none of 400 meets the conditions", LEAT_EDATA},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        leat_error err = {0};
        leat_select_opts o = opts_for(bad[i].config);
        bool exists = true;
        o.output = in_box("never.leat");
        assert_code(bad[i].code, leat_select(&o, NULL, &err));
        assert_contains(err.message, bad[i].message);
        assert_ok(leat__path_exists(o.output, &exists, NULL));
        assert_false(exists);
        assert_int_equal(leat__mem_blocks(), test_blocks);
    }
    leat_error err = {0};
    leat_select_opts o = opts_for("{count: 3, strategies: [{strategy: diversity}]}");
    o.memory = 1000;
    assert_code(LEAT_EBUDGET, leat_select(&o, NULL, &err));
    o.memory = 0;
    o.vectors = NULL;
    assert_code(LEAT_EINVAL, leat_select(&o, NULL, &err));
    assert_contains(err.message, "diversity needs embeddings");
    o.vectors = put_vectors("short.leat", 5, kind);
    assert_code(LEAT_EINVAL, leat_select(&o, NULL, &err));
    assert_contains(err.message, "has 5 rows");
    o = opts_for("{count: 3, strategies: [{strategy: random}]}");
    run_ok(&o);
    o.replace = 0;
    assert_code(LEAT_EEXIST, leat_select(&o, NULL, &err));
    o.output = "s3://bucket/x.leat";
    assert_code(LEAT_EINVAL, leat_select(&o, NULL, &err));
}

static void a_query_has_vectors_of_the_same_length(void **state)
{
    for (uint32_t dim = 1; dim <= kind.dim + 20; dim++) { /* some of them are padded to the same length */
        char config[800];
        leat_error err = {0};
        vector_kind other = kind;
        other.dim = dim;
        snprintf(config, sizeof config, "{count: 3, strategies: [{strategy: similarity, query: %s}]}",
                 put_vectors("query.leat", 2, other));
        leat_select_opts o = opts_for(config);
        o.output = in_box("similar.leat");
        assert_code(dim == kind.dim ? LEAT_OK : LEAT_EINVAL, leat_select(&o, NULL, &err));
        if (dim != kind.dim) assert_contains(err.message, "another length");
    }
}

static int stop(void *cookie, uint64_t done, uint64_t total, uint64_t bytes, uint64_t found)
{
    return 1;
}

static bool is_there(const char *name)
{
    bool exists = false;
    assert_ok(leat__path_exists(in_box(name), &exists, NULL));
    return exists;
}

static void a_stopped_run_is_continued(void **state)
{
    leat_select_opts o = opts_for("{count: 300, strategies: [{strategy: diversity}]}");
    run_ok(&o);
    const uint64_t whole = hash_of_file(o.output);
    o.output = in_box("again.leat");
    o.replace = 0;
    for (int other = 0; other < 2; other++) {
        o.progress = stop;
        o.config = "{count: 300, strategies: [{strategy: diversity}]}";
        assert_code(LEAT_ECANCELED, leat_select(&o, NULL, NULL));
        assert_true(!is_there("again.leat") && is_there("again.leat.state"));
        o.progress = NULL;
        if (other) o.config = "{count: 299, strategies: [{strategy: diversity}]}"; /* starts again */
        const leat_select_stats st = run_ok(&o);
        assert_int_equal(st.resumed, other ? 0 : 64);
        assert_int_equal(st.selected, other ? 299 : 300);
        assert_false(is_there("again.leat.state"));
        assert_true((hash_of_file(o.output) == whole) == !other);
        o.replace = 1;
        if (!other) assert_ok(leat__path_unlink(o.output, NULL));
    }
}

/* The count ends the choice before all rows were compared: which ones were seen to be too near must not
 * show. */
static void a_count_and_a_least_distance_do_not_depend_on_threads(void **state)
{
    static const uint32_t threads[] = {1, 2, 3, 7};
    uint64_t first = 0;
    leat_select_opts o =
        opts_for("strategies: [{strategy: diversity, min_distance: 0.5}, {strategy: weights, "
                 "column: score, strength: 2}]");
    o.count = 40;
    for (size_t i = 0; i < 4; i++) {
        o.threads = threads[i];
        const leat_select_stats st = run_ok(&o);
        assert_true(st.selected == 40 && st.near == 0);
        if (i == 0) first = hash_of_file(o.output);
        assert_true(hash_of_file(o.output) == first);
    }
    o.count = ROWS;
    const leat_select_stats st = run_ok(&o);
    assert_true(st.near > 0 && st.selected + st.near == ROWS);
}

static void a_stopped_run_leaves_no_output(void **state)
{
    bool exists = true;
    leat_select_opts o = opts_for("{count: 300, strategies: [{strategy: diversity}]}");
    o.output = in_box("stopped.leat");
    o.progress = stop;
    assert_code(LEAT_ECANCELED, leat_select(&o, NULL, NULL));
    assert_ok(leat__path_exists(o.output, &exists, NULL));
    assert_false(exists);
    o.config = "where: label >= 0"; /* nothing to choose one by one: stopped while it is written */
    o.vectors = NULL;
    assert_code(LEAT_ECANCELED, leat_select(&o, NULL, NULL));
    assert_ok(leat__path_exists(o.output, &exists, NULL));
    assert_false(exists);
    o.progress = NULL;
    o.replace = 0;
    run_ok(&o);
}

enum { FEWER = 60 };

/* Row 0, and rows from FEWER on, have no vector: zeros, or a value that is not finite. */
static void fill_some_vectors(uint32_t row, leat_pack_value *v, void *cookie)
{
    fill_vector(row, v, cookie);
    float *to = (float *)(uintptr_t)v[0].data;
    if (row == 0 || (row >= FEWER && row % 2)) memset(to, 0, v[0].size);
    else if (row >= FEWER) to[1] = row % 4 ? NAN : -INFINITY;
}

static void read_some(const char *path, int64_t *order, double *score)
{
    leat_pack *pack = NULL;
    assert_ok(leat_pack_open(&pack, path, NULL, NULL));
    assert_ok(leat_pack_ints(pack, 1, 0, FEWER, order, NULL));
    assert_ok(leat_pack_floats(pack, 3, 0, FEWER, score, NULL));
    leat_pack_close(&pack);
}

static void rows_without_a_vector_change_nothing(void **state)
{
    vector_kind k = {.dim = 12, .clusters = 5, .seed = 2, .spread = 0.4f};
    const leat_field f = {
        .name = "vector", .type = LEAT_FIELD_ARRAY, .dtype = LEAT_DTYPE_F32, .ndim = 1, .shape = {k.dim}};
    static const char *const by[] = {
        "{strategy: diversity}", "{strategy: typicality, neighbours: 5}",
        "{strategy: balance, column: label, distribution: input}, {strategy: diversity, min_distance: 0.2}",
        "{strategy: similarity, query: QUERY}, {strategy: weights, column: score}"};
    put_pack(in_box("fewer.v.leat"), &f, 1, FEWER, fill_some_vectors, &k);
    put_pack(in_box("some.v.leat"), &f, 1, ROWS, fill_some_vectors, &k);
    for (size_t i = 0; i < LEAT_COUNT(by); i++) {
        int64_t order[2][FEWER];
        double score[2][FEWER];
        char config[1200];
        const char *query = strstr(by[i], "QUERY");
        snprintf(config, sizeof config, "{count: 12, strategies: [%.*s%s%s]}",
                 query ? (int)(query - by[i]) : 200, by[i], query ? in_box("some.v.leat") : "",
                 query ? query + 5 : "");
        for (int all = 0; all < 2; all++) {
            leat_select_opts o = opts_for(config);
            o.pack = all ? o.pack : put_rows("fewer.leat", FEWER);
            o.vectors = in_box(all ? "some.v.leat" : "fewer.v.leat");
            const leat_select_stats st = run_ok(&o);
            assert_int_equal(st.without_vector, all ? ROWS - FEWER + 1 : 1);
            read_some(o.output, order[all], score[all]);
        }
        assert_true(order[0][0] == -1);
        assert_memory_equal(order[0], order[1], sizeof order[0]);
        assert_memory_equal(score[0], score[1], sizeof score[0]);
    }
    leat_select_opts o = opts_for("{count: 5, strategies: [{strategy: random}]}"); /* takes no vectors */
    assert_int_equal(run_ok(&o).without_vector, 0);
}

/* A chosen row without a vector is not near to any row. */
static void a_previous_row_may_have_no_vector(void **state)
{
    vector_kind k = {.dim = 12, .clusters = 5, .seed = 2, .spread = 0.4f};
    const leat_field f = {
        .name = "vector", .type = LEAT_FIELD_ARRAY, .dtype = LEAT_DTYPE_F32, .ndim = 1, .shape = {k.dim}};
    put_pack(in_box("some.v.leat"), &f, 1, ROWS, fill_some_vectors, &k);
    leat_select_opts o = opts_for("where: key == 'f0/00000.jpg'");
    o.output = in_box("first.leat");
    assert_int_equal(run_ok(&o).selected, 1);
    o = opts_for("strategies: [{strategy: diversity, min_distance: 1.1}]"); /* zeros are at 1 from all */
    o.vectors = in_box("some.v.leat");
    const uint64_t found = run_ok(&o).selected;
    o.previous = in_box("first.leat");
    o.output = in_box("second.leat");
    const leat_select_stats st = run_ok(&o);
    assert_true(found > 1 && st.selected == found && st.without_vector == ROWS - FEWER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_result_does_not_depend_on_threads),
        cmocka_unit_test(balance_gives_equal_numbers),
        cmocka_unit_test(a_later_round_adds_to_an_earlier_one),
        cmocka_unit_test(rows_without_a_vector_change_nothing),
        cmocka_unit_test(a_previous_row_may_have_no_vector),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(a_query_has_vectors_of_the_same_length),
        cmocka_unit_test(a_stopped_run_leaves_no_output),
        cmocka_unit_test(a_stopped_run_is_continued),
        cmocka_unit_test(a_count_and_a_least_distance_do_not_depend_on_threads),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
