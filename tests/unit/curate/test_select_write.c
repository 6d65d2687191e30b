/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/select_box.h"

#include "curate/select_run.h"

enum { ROWS = 50 };

static void text_at(leat_sample *s, uint64_t row, char *to, size_t size)
{
    leat_view v;
    assert_ok(leat_sample_read(s, row, NULL));
    assert_ok(leat_sample_field(s, 5, &v, NULL));
    snprintf(to, size, "%.*s", (int)v.size, (const char *)v.data);
}

static void every_row_has_a_reason(void **state)
{
    leat_pack *pack = NULL;
    leat_sample *sample = NULL;
    leat_error err = {0};
    leat_select_opts o;
    leat_select_opts_init(&o);
    o.pack = put_rows("p.leat", ROWS);
    o.vectors = put_vectors("v.leat", ROWS, (vector_kind){.dim = 8, .clusters = 5, .spread = 0.02f});
    o.output = in_box("sel.leat");
    o.no_sync = 1;
    o.config = "{where: score < 9, count: 4, strategies: [{strategy: diversity, "
               "min_distance: 0.2}, {strategy: weights, "
               "column: score, strength: 0.1}]}";
    leat_select_stats st = {.struct_size = sizeof st};
    if (leat_select(&o, &st, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(st.selected, 4);
    assert_ok(leat_pack_open(&pack, o.output, NULL, NULL));
    assert_contains(leat_pack_provenance(pack),
                    "\"kind\":\"leat select 1\",\"pack\":\"p.leat\",\"fingerprint\":");
    assert_ok(leat_sample_open(&sample, pack, NULL));
    uint32_t seen[4] = {0};
    for (uint32_t i = 0; i < ROWS; i++) {
        char why[200], key[64], want[64];
        size_t size;
        int64_t on, order;
        double score, distance;
        text_at(sample, i, why, sizeof why);
        assert_ok(leat_pack_key(pack, i, key, sizeof key, &size, NULL));
        row_key(want, sizeof want, i);
        assert_string_equal(key, want);
        assert_ok(leat_pack_ints(pack, 0, i, 1, &on, NULL));
        assert_ok(leat_pack_ints(pack, 1, i, 1, &order, NULL));
        assert_ok(leat_pack_floats(pack, 3, i, 1, &score, NULL));
        assert_ok(leat_pack_floats(pack, 4, i, 1, &distance, NULL));
        if (on) {
            assert_true(order >= 0 && order < 4 && score > 0 && distance >= 0.2);
            assert_contains(why, "diversity ");
            assert_contains(why, ", score ");
            seen[0]++;
        } else if (score_of(i) >= 9) {
            assert_string_equal(why, "does not meet score < 9");
            seen[1]++;
        } else {
            assert_true(order == -1 && score == 0);
            const bool near = strcmp(why, "nearer than 0.2 to a selected row") == 0;
            assert_true(near || strcmp(why, "others scored higher") == 0);
            seen[near ? 2 : 3]++;
        }
    }
    assert_true(seen[0] == 4 && seen[1] == st.excluded && seen[2] == st.near && seen[3] > 0);
    leat_sample_close(&sample);
    leat_pack_close(&pack);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_has_a_reason)};
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
