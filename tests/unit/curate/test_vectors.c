/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/select_box.h"

#include "curate/vectors.h"

static leat__vectors read_ok(const char *path)
{
    leat_pack *pack = NULL;
    leat__vectors v;
    leat_error err = {0};
    assert_ok(leat_pack_open(&pack, path, NULL, NULL));
    if (leat__vectors_read(&v, pack, NULL, &err) != 0) fail_msg("%s", err.message);
    leat_pack_close(&pack);
    return v;
}

static int read_bad(const char *path, leat_error *err)
{
    leat_pack *pack = NULL;
    leat__vectors v;
    assert_ok(leat_pack_open(&pack, path, NULL, NULL));
    int rc = leat__vectors_read(&v, pack, NULL, err);
    assert_null(v.row);
    leat_pack_close(&pack);
    return rc;
}

static void rows_have_unit_length_and_padding(void **state)
{
    leat__vectors v =
        read_ok(put_vectors("v.leat", 20, (vector_kind){.dim = 21, .clusters = 5, .spread = 1}));
    assert_int_equal(v.count, 20);
    assert_int_equal(v.dim, 32);
    for (uint64_t r = 0; r < v.count; r++) {
        double sum = 0;
        for (size_t i = 0; i < v.dim; i++)
            sum += (double)leat__vectors_at(&v, r)[i] * leat__vectors_at(&v, r)[i];
        assert_true(fabs(sum - 1) < 1e-5);
        for (size_t i = 21; i < v.dim; i++) assert_true(leat__vectors_at(&v, r)[i] == 0);
    }
    leat__vectors_reset(&v);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

/* 1, -2, 0.5, a subnormal, and zeros as halves. */
static void fill_half(uint32_t row, leat_pack_value *v, void *cookie)
{
    static const uint16_t bits[2][4] = {{0x3c00, 0xc000, 0x3800, 0x0001}, {0, 0, 0, 0}};
    static const uint16_t bad[4] = {0x3c00, 0x7e00, 0, 0};
    v[0].data = cookie ? bad : bits[row];
    v[0].size = sizeof bad;
}

static void halves_are_read(void **state)
{
    leat_field f = {.name = "v", .type = LEAT_FIELD_ARRAY, .dtype = LEAT_DTYPE_F16, .ndim = 1, .shape = {4}};
    put_pack(in_box("half.leat"), &f, 1, 2, fill_half, NULL);
    leat__vectors v = read_ok(in_box("half.leat"));
    const double length = sqrt(1 + 4 + 0.25);
    assert_true(fabs(v.row[0] - 1 / length) < 1e-6 && fabs(v.row[1] + 2 / length) < 1e-6);
    assert_true(fabs(v.row[2] - 0.5 / length) < 1e-6 && fabs(v.row[3] * length - 5.9604645e-8) < 1e-12);
    for (size_t i = 0; i < v.dim; i++) assert_true(v.row[v.dim + i] == 0);
    leat__vectors_reset(&v);
    put_pack(in_box("nan.leat"), &f, 1, 2, fill_half, &f);
    v = read_ok(in_box("nan.leat"));
    assert_true(leat__vectors_is_zero(v.row, v.dim)); /* as a row of zeros: no vector */
    leat__vectors_reset(&v);
}

static void packs_without_vectors_are_refused(void **state)
{
    leat_error err = {0};
    assert_code(LEAT_EINVAL, read_bad(put_rows("plain.leat", 3), &err));
    assert_contains(err.message, "has no field of vectors");
    leat_field two[] = {
        {.name = "a", .type = LEAT_FIELD_ARRAY, .dtype = LEAT_DTYPE_F16, .ndim = 1, .shape = {4}},
        {.name = "b", .type = LEAT_FIELD_ARRAY, .dtype = LEAT_DTYPE_F16, .ndim = 1, .shape = {4}},
        {.name = "c", .type = LEAT_FIELD_INT}};
    put_pack(in_box("two.leat"), two, 3, 0, fill_half, NULL);
    assert_code(LEAT_EINVAL, read_bad(in_box("two.leat"), &err));
    assert_contains(err.message, "several fields of vectors");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_unit_length_and_padding),
        cmocka_unit_test(halves_are_read),
        cmocka_unit_test(packs_without_vectors_are_refused),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
