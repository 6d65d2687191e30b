/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "op/wide_ops.h"

enum { W = 7, H = 5, C = 6 };

static void start(leat__wide_workspace *b)
{
    assert_int_equal(leat__wide_resize(&b->image, LEAT__SAMPLE_U16, C, W, H, NULL), 0);
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++)
            for (uint32_t c = 0; c < C; c++)
                ((uint16_t *)leat__wide_row(&b->image, y))[x * C + c] = (uint16_t)(x * 1000 + y * 100 + c);
}

static uint16_t at(const leat__wide_workspace *b, uint32_t x, uint32_t y, uint32_t c)
{
    assert_true(x < b->image.width && y < b->image.height);
    return ((const uint16_t *)leat__wide_row(&b->image, y))[x * C + c];
}

static void crops_and_flips(void **state)
{
    leat__wide_workspace b = {0};
    start(&b);
    leat__step s = {.kind = LEAT__STEP_CROP, .x = 2, .y = 1, .width = 4, .height = 3};
    assert_int_equal(leat__wide_apply(&b, &s, NULL), 0);
    assert_int_equal(at(&b, 0, 0, 5), 2105);
    assert_int_equal(leat__wide_apply(&b, &(leat__step){.kind = LEAT__STEP_FLIP_H}, NULL), 0);
    assert_int_equal(at(&b, 0, 0, 5), 5105);
    assert_int_equal(leat__wide_apply(&b, &(leat__step){.kind = LEAT__STEP_FLIP_V}, NULL), 0);
    assert_int_equal(at(&b, 0, 0, 5), 5305);
    s = (leat__step){.kind = LEAT__STEP_CROP, .x = 3, .y = 2, .width = 1, .height = 1};
    assert_int_equal(leat__wide_apply(&b, &s, NULL), 0);
    assert_int_equal(at(&b, 0, 0, 0), 2100);
    leat__wide_workspace_reset(&b);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void pads(void **state)
{
    leat__wide_workspace b = {0};
    leat__step s = {.kind = LEAT__STEP_PAD,
                    .x = 2,
                    .y = 1,
                    .width = W + 3,
                    .height = H + 2,
                    .fill = {60000, 1, 2, 3, 4, 50000}};
    start(&b);
    assert_int_equal(leat__wide_apply(&b, &s, NULL), 0);
    assert_int_equal(at(&b, 0, 0, 0), 60000);
    assert_int_equal(at(&b, W + 2, H + 1, 5), 50000);
    assert_int_equal(at(&b, 2, 1, 3), 3);
    s.edge = LEAT__EDGE_REFLECT;
    start(&b);
    assert_int_equal(leat__wide_apply(&b, &s, NULL), 0);
    assert_int_equal(at(&b, 0, 0, 0), 2100);
    leat__wide_workspace_reset(&b);
}

/* A shift by whole pixels moves them with every filter; by half a pixel, bilinear gives the mean. */
static void maps(void **state)
{
    for (int f = LEAT__FILTER_NEAREST; f <= LEAT__FILTER_BICUBIC; f++) {
        if (f == LEAT__FILTER_BOX || f == LEAT__FILTER_HAMMING) continue;
        leat__wide_workspace b = {0};
        leat__step s = {.kind = LEAT__STEP_AFFINE,
                        .width = W,
                        .height = H,
                        .filter = (leat__filter)f,
                        .fill = {8, 9, 10},
                        .matrix = {1, 0, 2, 0, 1, 1}};
        start(&b);
        assert_int_equal(leat__wide_apply(&b, &s, NULL), 0);
        assert_int_equal(at(&b, 0, 0, 1), 2101);
        assert_int_equal(at(&b, W - 1, 0, 1), 9);
        s.kind = LEAT__STEP_PERSPECTIVE;
        start(&b);
        assert_int_equal(leat__wide_apply(&b, &s, NULL), 0);
        assert_int_equal(at(&b, 1, 1, 1), 3201);
        leat__wide_workspace_reset(&b);
    }
    leat__wide_workspace b = {0};
    leat__step s = {.kind = LEAT__STEP_AFFINE,
                    .width = W,
                    .height = H,
                    .filter = LEAT__FILTER_BILINEAR,
                    .matrix = {1, 0, 0.5, 0, 1, 0}};
    start(&b);
    assert_int_equal(leat__wide_apply(&b, &s, NULL), 0);
    assert_int_equal(at(&b, 1, 2, 4), 1704);
    leat__wide_workspace_reset(&b);
}

static void others_have_no_place(void **state)
{
    leat__wide_workspace b = {0};
    start(&b);
    assert_int_equal(leat__wide_apply(&b, &(leat__step){.kind = LEAT__STEP_HUE}, NULL), LEAT_EINTERNAL);
    leat__wide_workspace_reset(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crops_and_flips),
        cmocka_unit_test(pads),
        cmocka_unit_test(maps),
        cmocka_unit_test(others_have_no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
