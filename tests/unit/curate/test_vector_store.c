/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/select_box.h"

#include "curate/vector_store.h"

enum { ROWS = 40, DIM = 20 };

static void rows_are_the_same_from_memory_and_disk(void **state)
{
    static const uint32_t wanted[] = {3, 39, 0, 3, 17};
    static float out[2][ROWS * 32], some[2][5 * 32];
    const char *path = put_vectors("v.leat", ROWS, (vector_kind){.dim = DIM, .clusters = 4, .spread = 1});
    for (uint32_t threads = 1; threads <= 3; threads += 2)
        for (int keep = 0; keep < 2; keep++) {
            leat__thread_team *crew = NULL;
            leat__vector_store s;
            assert_ok(leat__thread_team_open(&crew, threads, NULL));
            assert_ok(leat__vector_store_open(&s, path, NULL, keep, crew, NULL));
            assert_true(s.count == ROWS && s.dim == 32 && (s.whole.row != NULL) == keep);
            assert_ok(leat__vector_store_get(&s, NULL, 0, ROWS, out[keep], NULL));
            assert_ok(leat__vector_store_get(&s, wanted, 0, 5, some[keep], NULL));
            for (int i = 0; i < 5; i++)
                assert_memory_equal(some[keep] + i * 32, out[keep] + wanted[i] * 32, 32 * sizeof(float));
            leat__vector_store_close(&s);
            leat__thread_team_close(&crew);
        }
    assert_memory_equal(out[0], out[1], sizeof out[0]);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static void fill_bad(uint32_t row, leat_pack_value *v, void *cookie)
{
    static float vector[4];
    vector[0] = row != 4;
    vector[1] = row == 4 ? 0 : row == 7 || row == 9 ? NAN : 2;
    v[0].data = vector;
    v[0].size = sizeof vector;
}

static void rows_without_a_vector_are_left_out(void **state)
{
    const leat_field f = {
        .name = "vector", .type = LEAT_FIELD_ARRAY, .dtype = LEAT_DTYPE_F32, .ndim = 1, .shape = {4}};
    leat__thread_team *crew = NULL;
    leat__vector_store s;
    leat_error err = {0};
    float out[2][7 * 16];
    put_pack(in_box("bad.leat"), &f, 1, 10, fill_bad, NULL);
    assert_ok(leat__thread_team_open(&crew, 1, NULL));
    for (int keep = 0; keep < 2; keep++) {
        static const uint32_t want[] = {0, 1, 2, 3, 5, 6, 8};
        assert_ok(leat__vector_store_open(&s, in_box("bad.leat"), NULL, keep, crew, NULL));
        assert_int_equal(s.count, LEAT_COUNT(want));
        assert_memory_equal(s.in_pack, want, sizeof want);
        assert_ok(leat__vector_store_get(&s, NULL, 0, s.count, out[keep], &err));
        leat__vector_store_close(&s);
    }
    assert_memory_equal(out[0], out[1], sizeof out[0]);
    for (int i = 0; i < 7; i++) assert_true(out[0][i * 16] > 0 && out[0][i * 16 + 1] > 0);
    assert_code(LEAT_ENOENT, leat__vector_store_open(&s, in_box("nothing"), NULL, true, crew, &err));
    assert_code(LEAT_EINVAL, leat__vector_store_open(&s, put_rows("plain.leat", 3), NULL, true, crew, &err));
    leat__thread_team_close(&crew);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_the_same_from_memory_and_disk),
        cmocka_unit_test(rows_without_a_vector_are_left_out),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
