/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include "op/transpose.h"

static void rows_become_columns(void **state)
{
    static const uint32_t sizes[][2] = {{1, 1}, {31, 33}, {64, 32}, {100, 7}, {5, 90}};
    leat__planes in = {0}, out = {0}, back = {0};
    for (size_t i = 0; i < 5; i++) {
        fixture_picture(&in, sizes[i][0], sizes[i][1], 3);
        assert_ok(leat__planes_transpose(&in, &out, NULL));
        assert_int_equal(out.width, in.height);
        assert_int_equal(out.height, in.width);
        for (uint32_t c = 0; c < 3; c++)
            for (uint32_t y = 0; y < in.height; y++)
                for (uint32_t x = 0; x < in.width; x++)
                    assert_int_equal(leat__planes_row(&out, c, x)[y], leat__planes_row(&in, c, y)[x]);
        assert_ok(leat__planes_transpose(&out, &back, NULL));
        assert_memory_equal(leat__planes_row(&back, 2, 0), leat__planes_row(&in, 2, 0), in.width);
    }
    leat__planes_reset(&in);
    leat__planes_reset(&out);
    leat__planes_reset(&back);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_become_columns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
