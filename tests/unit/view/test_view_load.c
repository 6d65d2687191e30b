/* SPDX-License-Identifier: Apache-2.0 */
#include "view_box.h"

static leat__view_column *load(leat__view_data *d, const char *name)
{
    leat__view_column *c = leat__view_find(d, name);
    assert_non_null(c);
    assert_ok(leat__view_load(d, c, NULL));
    return c;
}

static void values_are_those_of_the_pack(void **state)
{
    leat__view_data d;
    box_open(&d, 1 << 20);
    const double *width = load(&d, "width")->number, *height = load(&d, "height")->number;
    assert_true(width[0] == 64 && height[0] == 48);
    assert_true(width[3] == 48 && height[3] == 67); /* its orientation turns it */
    assert_true(isnan(width[5]));
    const double *score = load(&d, "score")->number, *label = load(&d, "label")->number;
    assert_true(score[2] == 8 && isnan(score[7]) && label[6] == 2);
    leat__view_column *key = load(&d, "key");
    assert_memory_equal(key->text + key->start[4], "k15", 3);
    assert_int_equal(key->start[5] - key->start[4], 3);
    leat__view_column *caption = load(&d, "caption");
    assert_memory_equal(caption->text + caption->start[8], "even 2", 6);
    leat__view_data_close(&d);
    assert_no_leaks();
}

static void vectors_are_bytes_and_a_length(void **state)
{
    leat__view_data d;
    box_open(&d, 1 << 20);
    leat__view_column *v = load(&d, "vector");
    assert_int_equal(v->vector[0], 0);
    assert_int_equal(v->vector[1], 127);
    assert_int_equal(v->vector[2], 64);
    assert_true(fabsf(v->norm[0] - sqrtf(127.0f * 127 + 64 * 64)) < 1e-3f);
    assert_true(v->norm[9] == 0); /* not finite: no value */
    leat__view_data_close(&d);
}

static void floats_of_all_types_are_read(void **state)
{
    const float f32[2] = {1.5f, -2};
    const double f64[2] = {1.5, -2};
    const uint16_t f16[4] = {0x3e00, 0xc000, 0x0001, 0x7c00}, bf16[2] = {0x3fc0, 0xc000};
    float out[4];
    assert_true(leat__view_floats(LEAT_DTYPE_F32, f32, 2, out) && out[0] == 1.5f && out[1] == -2);
    assert_true(leat__view_floats(LEAT_DTYPE_F64, f64, 2, out) && out[0] == 1.5f && out[1] == -2);
    assert_true(leat__view_floats(LEAT_DTYPE_BF16, bf16, 2, out) && out[0] == 1.5f && out[1] == -2);
    assert_true(leat__view_floats(LEAT_DTYPE_F16, f16, 4, out) && out[0] == 1.5f && out[1] == -2);
    assert_true(out[2] == 0x1p-24f && isinf(out[3]));
    assert_false(leat__view_floats(LEAT_DTYPE_U8, f16, 2, out));
}

static void a_view_that_closes_stops_reading(void **state)
{
    leat__view_data d;
    static const char *const names[] = {"width", "caption", "vector"};
    box_open(&d, 1 << 20);
    atomic_store(&d.stopping, true);
    for (size_t i = 0; i < LEAT_COUNT(names); i++)
        assert_code(LEAT_ECANCELED, leat__view_load(&d, leat__view_find(&d, names[i]), NULL));
    assert_int_equal(d.held, 0);
    leat__view_data_close(&d);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_the_pack), cmocka_unit_test(vectors_are_bytes_and_a_length),
        cmocka_unit_test(floats_of_all_types_are_read), cmocka_unit_test(a_view_that_closes_stops_reading)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
