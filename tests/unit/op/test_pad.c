/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include "op/apply.h"

/* A row 1 2 3 padded by four on both sides, as in numpy.pad. */
static void edges(void **state)
{
    static const uint8_t want[4][11] = {
        [LEAT__EDGE_CONSTANT] = {9, 9, 9, 9, 1, 2, 3, 9, 9, 9, 9},
        [LEAT__EDGE_EDGE] = {1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3},
        [LEAT__EDGE_REFLECT] = {1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3},
        [LEAT__EDGE_SYMMETRIC] = {3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1},
    };
    for (int e = 0; e < 4; e++) {
        leat__workspace b = {0};
        assert_ok(leat__planes_resize(&b.image, 3, 1, 3, NULL));
        for (int c = 0; c < 3; c++)
            for (int x = 0; x < 3; x++) b.image.plane[c][x] = (uint8_t)(x + 1);
        const leat__step s = {.kind = LEAT__STEP_PAD,
                              .x = 4,
                              .y = 2,
                              .width = 11,
                              .height = 4,
                              .edge = (leat__edge)e,
                              .fill = {9, 9, 9}};
        assert_ok(leat__step_apply(&b, &s, false, NULL));
        assert_memory_equal(leat__planes_row(&b.image, 1, 2), want[e], 11);
        const uint8_t *top = leat__planes_row(&b.image, 1, 0);
        for (int x = 0; x < 11; x++) assert_int_equal(top[x], e == LEAT__EDGE_CONSTANT ? 9 : want[e][x]);
        leat__workspace_reset(&b);
    }
    assert_no_leaks();
}

static void erasing(void **state)
{
    leat__workspace b = {0};
    fixture_picture(&b.image, 20, 10, 3);
    leat__step s = {.kind = LEAT__STEP_ERASE, .x = 3, .y = 4, .width = 5, .height = 2, .fill = {1, 2, 3}};
    leat__planes in = {0};
    fixture_picture(&in, 20, 10, 3);
    assert_ok(leat__step_apply(&b, &s, false, NULL));
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t y = 0; y < 10; y++)
            for (uint32_t x = 0; x < 20; x++) {
                const bool inside = x >= 3 && x < 8 && y >= 4 && y < 6;
                assert_int_equal(leat__planes_row(&b.image, c, y)[x],
                                 inside ? c + 1 : leat__planes_row(&in, c, y)[x]);
            }
    /* noise is drawn from its seed */
    uint8_t first[5];
    s.noise = true;
    s.noise_seed = 5;
    assert_ok(leat__step_apply(&b, &s, false, NULL));
    memcpy(first, leat__planes_row(&b.image, 0, 4) + 3, 5);
    assert_ok(leat__step_apply(&b, &s, false, NULL));
    assert_memory_equal(first, leat__planes_row(&b.image, 0, 4) + 3, 5);
    s.noise_seed = 6;
    assert_ok(leat__step_apply(&b, &s, false, NULL));
    assert_memory_not_equal(first, leat__planes_row(&b.image, 0, 4) + 3, 5);
    leat__workspace_reset(&b);
    leat__planes_reset(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(edges), cmocka_unit_test(erasing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
