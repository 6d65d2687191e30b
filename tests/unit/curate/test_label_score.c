/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/label_box.h"

static void read_floats(const char *path, const char *name, double *to)
{
    leat_pack *pack = NULL;
    assert_ok(leat_pack_open(&pack, path, NULL, NULL));
    assert_ok(leat_pack_floats(pack, (uint32_t)leat_pack_field_find(pack, name), 0, LABEL_ROWS, to, NULL));
    leat_pack_close(&pack);
}

/* Votes against a naive count: all pairs, sorted. */
static void votes_are_those_of_the_nearest_rows(void **state)
{
    static double confidence[LABEL_ROWS];
    leat_check_labels_opts o = label_opts("votes.leat");
    leat_pack *pack = NULL;
    leat__vectors v;
    o.neighbours = 6;
    (void)labels_ok(&o);
    read_floats(o.output, "confidence", confidence);
    assert_ok(leat_pack_open(&pack, o.vectors, NULL, NULL));
    assert_ok(leat__vectors_read(&v, pack, NULL, NULL));
    for (uint32_t i = 0; i < LABEL_ROWS; i++) {
        float d[LABEL_ROWS];
        uint32_t near[6];
        double own = 0, sum = 0;
        bool used[LABEL_ROWS] = {[5] = true}; /* row 5 has no label, so it has no vote */
        leat_pack_value mine[2], other[2];
        leat__distance_dsp_for(0)->rows(leat__vectors_at(&v, i), v.row, v.dim, LABEL_ROWS, d);
        for (int k = 0; k < 6; k++) {
            near[k] = LABEL_ROWS;
            for (uint32_t j = 0; j < LABEL_ROWS; j++)
                if (j != i && !used[j] && (near[k] == LABEL_ROWS || d[j] < d[near[k]])) near[k] = j;
            used[near[k]] = true;
        }
        fill_label(i, mine, NULL);
        for (int k = 0; k < 6; k++) {
            fill_label(near[k], other, NULL);
            const double weight = exp(-2 * (double)d[near[k]] / (double)d[near[5]]);
            sum += weight;
            if (other[0].i == mine[0].i) own += weight;
        }
        if (mine[0].i >= 0) assert_true(fabs(confidence[i] - own / sum) < 1e-5);
    }
    leat__vectors_reset(&v);
    leat_pack_close(&pack);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

enum { PART_ROWS = 5 * LABEL_ROWS, BLANK = LABEL_ROWS + 7, BROKEN };

/* The rows of label_opts, then rows without a label; BLANK and BROKEN have one, but no
 * vector: zeros, or a value that is not finite. */
static void fill_part(uint32_t row, leat_pack_value *v, void *cookie)
{
    fill_label(row, v, cookie);
    if (row >= LABEL_ROWS) v[0].i = row == BLANK || row == BROKEN ? 1 : -1 - (int64_t)(row % 2);
}

static void fill_part_vector(uint32_t row, leat_pack_value *v, void *cookie)
{
    fill_vector(row, v, cookie);
    float *to = (float *)(uintptr_t)v[0].data;
    if (row == BLANK) memset(to, 0, v[0].size);
    if (row == BROKEN) to[3] = NAN;
}

static void rows_without_a_label_or_a_vector_change_nothing(void **state)
{
    static const char *const columns[] = {"suspicion", "confidence", "outlier"};
    static const leat_field fields[] = {{.name = "label", .type = LEAT_FIELD_INT},
                                        {.name = "other", .type = LEAT_FIELD_FLOAT}};
    const leat_field vector = {
        .name = "vector", .type = LEAT_FIELD_ARRAY, .dtype = LEAT_DTYPE_F32, .ndim = 1, .shape = {12}};
    vector_kind kind = {.dim = 12, .clusters = LABEL_CLASSES, .seed = 6, .spread = 0.3f};
    static double alone[LABEL_ROWS], part[LABEL_ROWS];
    static int64_t rank[2][PART_ROWS];
    leat_pack *pack = NULL;
    leat_check_labels_opts o = label_opts("alone.leat");
    const leat_check_labels_stats st = labels_ok(&o);
    put_pack(in_box("part.leat"), fields, 2, PART_ROWS, fill_part, NULL);
    put_pack(in_box("pv.leat"), &vector, 1, PART_ROWS, fill_part_vector, &kind);
    o.pack = in_box("part.leat");
    o.vectors = in_box("pv.leat");
    o.output = in_box("both.leat");
    const leat_check_labels_stats more = labels_ok(&o);
    assert_true(more.wrong == st.wrong && more.outliers == st.outliers && st.wrong >= 5);
    assert_true(st.without_vector == 0 && more.without_vector == 2);
    for (size_t c = 0; c < LEAT_COUNT(columns); c++) {
        read_floats(in_box("alone.leat"), columns[c], alone);
        read_floats(o.output, columns[c], part);
        assert_memory_equal(alone, part, sizeof alone);
        assert_true(isnan(alone[5]) && !isnan(alone[4])); /* row 5 has no label */
    }
    assert_ok(leat_pack_open(&pack, in_box("alone.leat"), NULL, NULL));
    assert_ok(leat_pack_ints(pack, 3, 0, LABEL_ROWS, rank[0], NULL));
    leat_pack_close(&pack);
    assert_ok(leat_pack_open(&pack, o.output, NULL, NULL));
    assert_ok(leat_pack_ints(pack, 3, 0, PART_ROWS, rank[1], NULL));
    leat_pack_close(&pack);
    assert_memory_equal(rank[0], rank[1], LABEL_ROWS * sizeof rank[0][0]);
    for (uint32_t i = LABEL_ROWS; i < PART_ROWS; i++) assert_int_equal(rank[1][i], -1);
}

static void predictions_take_the_place_of_votes(void **state)
{
    static double confidence[LABEL_ROWS];
    leat_error err = {0};
    leat_check_labels_opts o = label_opts("predicted.leat");
    put_logits("p.leat", NULL);
    o.predictions = in_box("p.leat");
    o.vectors = NULL;
    const leat_check_labels_stats st = labels_ok(&o);
    assert_true(st.wrong == 5 && st.outliers == 0);
    read_floats(o.output, "confidence", confidence);
    const double sum = exp(3) + 3;
    for (uint32_t i = 0; i < LABEL_ROWS; i++)
        if (i != 5) assert_true(fabs(confidence[i] - (is_wrong(i) ? 1 / sum : exp(3) / sum)) < 1e-5);
    put_logits("bad.leat", &err);
    o.predictions = in_box("bad.leat");
    for (int beside = 0; beside < 2; beside++) { /* without and with vectors */
        o.vectors = beside ? in_box("v.leat") : NULL;
        const leat_check_labels_stats bad = labels_ok(&o);
        assert_true(bad.without_scores == 1 && bad.without_vector == 0 && bad.wrong == 5);
        read_floats(o.output, "confidence", confidence);
        assert_true(isnan(confidence[9]) && isnan(confidence[5]) && !isnan(confidence[8]));
    }
    o.predictions = in_box("v.leat");
    assert_code(LEAT_EINVAL, leat_check_labels(&o, NULL, &err));
    assert_contains(err.message, "no float32 field 'logits'");
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static void outliers_are_far_from_their_class(void **state)
{
    static double outlier[LABEL_ROWS];
    leat_check_labels_opts o = label_opts("far.leat");
    const leat_check_labels_stats st = labels_ok(&o);
    read_floats(o.output, "outlier", outlier);
    assert_true(st.outliers >= 5); /* rows with a wrong label are far from its class */
    for (uint32_t i = 0; i < LABEL_ROWS; i++)
        if (i != 5) assert_true(is_wrong(i) ? outlier[i] > 0.3 : outlier[i] < 0.3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(votes_are_those_of_the_nearest_rows),
        cmocka_unit_test(rows_without_a_label_or_a_vector_change_nothing),
        cmocka_unit_test(predictions_take_the_place_of_votes),
        cmocka_unit_test(outliers_are_far_from_their_class),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
