/* SPDX-License-Identifier: Apache-2.0
 *
 * Portable upsampling and colour conversion: known colours, flat rows stay flat, and the conversion is
 * within half a level of the definition for every input. The tests of codec/tile show on whole images that
 * the bits equal libjpeg-turbo's.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dsp/ycc.h"
#include "probe/cpu.h"

static leat__ycc_dsp dsp;

static int setup(void **state)
{
    leat__ycc_init(&dsp, LEAT__CPU_SSE42);
    return 0;
}

static double clamped(double v)
{
    return v < 0 ? 0 : v > 255 ? 255 : v;
}

static void colours_are_close_to_the_definition(void **state)
{
    uint8_t y[256], cb[256], cr[256], r[256], g[256], b[256];
    for (int u = 0; u < 256; u += 3)
        for (int v = 0; v < 256; v += 3) {
            for (int i = 0; i < 256; i++) {
                y[i] = (uint8_t)i;
                cb[i] = (uint8_t)u;
                cr[i] = (uint8_t)v;
            }
            dsp.rgb(r, g, b, y, cb, cr, 256);
            for (int i = 0; i < 256; i++) {
                double du = u - 128, dv = v - 128;
                assert_true(fabs(r[i] - clamped(i + 1.402 * dv)) <= 0.51);
                assert_true(fabs(g[i] - clamped(i - 0.344136 * du - 0.714136 * dv)) <= 0.51);
                assert_true(fabs(b[i] - clamped(i + 1.772 * du)) <= 0.51);
            }
        }
}

static void rows_by_hand(void **state)
{
    const uint8_t padded[] = {10, 10, 20, 40, 40}, below[] = {30, 30, 0, 0, 0};
    const uint8_t *in = padded + 1, *far = below + 1;
    uint8_t out[64];
    dsp.h2v1(out, in, 3);
    const uint8_t h2v1[] = {10, 13, 17, 25, 35, 40};
    assert_memory_equal(out, h2v1, 6);
    dsp.h2v2(out, in, far, 3); /* column sums 60 60 60 120 120 */
    const uint8_t h2v2[] = {15, 15, 15, 19, 26, 30};
    assert_memory_equal(out, h2v2, 6);
    dsp.h1v2(out, in, far, 3, 1);
    const uint8_t h1v2[] = {15, 15, 30};
    assert_memory_equal(out, h1v2, 3);
    dsp.repeat2(out, in, 3);
    const uint8_t repeat2[] = {10, 10, 20, 20, 40, 40};
    assert_memory_equal(out, repeat2, 6);
    dsp.repeat4(out, in, 2);
    const uint8_t repeat4[] = {10, 10, 10, 10, 20, 20, 20, 20};
    assert_memory_equal(out, repeat4, 8);
}

static void flat_rows_stay_flat(void **state)
{
    uint8_t in[34], out[64];
    for (int level = 0; level < 256; level++) {
        memset(in, level, sizeof in);
        for (int k = 0; k < 4; k++) {
            if (k == 0) dsp.h2v1(out, in + 1, 32);
            if (k == 1) dsp.h2v2(out, in + 1, in + 1, 32);
            if (k == 2) dsp.h1v2(out, in + 1, in + 1, 32, 1);
            if (k == 3) dsp.h1v2(out, in + 1, in + 1, 32, 2);
            for (int i = 0; i < (k < 2 ? 64 : 32); i++) assert_int_equal(out[i], level);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colours_are_close_to_the_definition),
        cmocka_unit_test(rows_by_hand),
        cmocka_unit_test(flat_rows_stay_flat),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
