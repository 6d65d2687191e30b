/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "dsp/pixel.h"
#include "op/wide_ops.h"

enum { W = 3, H = 2, C = 5 };

static leat__output_spec spec_of(leat_dtype dtype, leat__layout layout)
{
    return (leat__output_spec){.width = W, .height = H, .channels = C, .dtype = dtype, .layout = layout};
}

static void layouts_and_types(void **state)
{
    leat__wide im = {0};
    leat__wide_norm norm = {.div = 65535};
    uint16_t planar[C][H][W], woven[H][W][C], half[C][H][W];
    float numbers[C][H][W];
    assert_int_equal(leat__wide_resize(&im, LEAT__SAMPLE_U16, C, W, H, NULL), 0);
    for (uint32_t c = 0; c < C; c++) {
        norm.mean[c] = 0.1f * (float)c;
        norm.std[c] = 0.5f + (float)c;
        for (uint32_t y = 0; y < H; y++)
            for (uint32_t x = 0; x < W; x++)
                ((uint16_t *)leat__wide_row(&im, y))[x * C + c] = (uint16_t)(10000 * c + 100 * y + x);
    }
    const leat__output_spec own = spec_of(LEAT_DTYPE_U16, LEAT__LAYOUT_NCHW);
    const leat__output_spec last = spec_of(LEAT_DTYPE_U16, LEAT__LAYOUT_NHWC);
    const leat__output_spec f32 = spec_of(LEAT_DTYPE_F32, LEAT__LAYOUT_NCHW);
    const leat__output_spec f16 = spec_of(LEAT_DTYPE_F16, LEAT__LAYOUT_NCHW);
    leat__wide_write(&im, &norm, &own, planar);
    leat__wide_write(&im, &norm, &last, woven);
    leat__wide_write(&im, &norm, &f32, numbers);
    leat__wide_write(&im, &norm, &f16, half);
    for (uint32_t c = 0; c < C; c++)
        for (uint32_t y = 0; y < H; y++)
            for (uint32_t x = 0; x < W; x++) {
                const uint16_t v = (uint16_t)(10000 * c + 100 * y + x);
                const float n = ((float)v / 65535.0f - norm.mean[c]) / norm.std[c];
                assert_int_equal(planar[c][y][x], v);
                assert_int_equal(woven[y][x][c], v);
                assert_true(numbers[c][y][x] == n);
                assert_int_equal(half[c][y][x], leat__f16_of(n));
            }
    leat__wide_reset(&im);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void floats_keep_their_bits(void **state)
{
    leat__wide im = {0};
    leat__wide_norm norm = {.div = 1, .std = {1, 1, 1, 1, 1}};
    uint32_t out[C * H * W], odd = 0x7fa00001; /* a signalling NaN */
    const leat__output_spec s = spec_of(LEAT_DTYPE_F32, LEAT__LAYOUT_NHWC);
    assert_int_equal(leat__wide_resize(&im, LEAT__SAMPLE_F32, C, W, H, NULL), 0);
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t i = 0; i < W * C; i++) memcpy(leat__wide_row(&im, y) + 4 * i, &odd, 4);
    leat__wide_write(&im, &norm, &s, out);
    for (int i = 0; i < C * H * W; i++) assert_int_equal(out[i], odd);
    leat__wide_reset(&im);
}

static void rectangles_are_blanked(void **state)
{
    float out[C][H][W] = {{{0}}};
    const leat__output_spec s = spec_of(LEAT_DTYPE_F32, LEAT__LAYOUT_NCHW);
    const leat__step e = {
        .kind = LEAT__STEP_ERASE_OUT, .x = 1, .y = 1, .width = 2, .height = 1, .fill = {-2, -2, -2, -2, -2}};
    leat__wide_erase_out(&s, &e, out);
    for (uint32_t c = 0; c < C; c++)
        for (uint32_t y = 0; y < H; y++)
            for (uint32_t x = 0; x < W; x++) assert_true(out[c][y][x] == (x >= 1 && y == 1 ? -2.0f : 0.0f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_and_types),
        cmocka_unit_test(floats_keep_their_bits),
        cmocka_unit_test(rectangles_are_blanked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
