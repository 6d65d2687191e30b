/* SPDX-License-Identifier: Apache-2.0
 *
 * The portable inverse DCT at every block size, compared with the definition in double precision: within
 * one level, and much closer on average. Plain and sparse blocks give the same.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "dsp/idct_small.h"
#include "probe/cpu.h"

static const leat__idct_area one = {0, 1, 1, 1};
static leat__tile_coefs coefs;
static leat__idct_small_dsp dsp;

static int setup(void **state)
{
    leat__idct_small_init(&dsp, LEAT__CPU_SSE42);
    return 0;
}

static void set_block(const int16_t block[64])
{
    uint32_t n = 0;
    coefs.mask[0] = 0;
    coefs.dc[0] = block[0];
    for (uint32_t k = 0; k < 64; k++) {
        const int16_t v = block[leat__tile_order[k]];
        if (v == 0) continue;
        coefs.mask[0] |= UINT64_C(1) << k;
        coefs.value[n++] = v;
    }
}

/* Computes sample (x, y) of n x n from as many coefficients, whose scale is that of 8x8 blocks. */
static double exact(const int16_t block[64], const uint16_t quant[64], int n, int x, int y)
{
    double sum = 0;
    for (int v = 0; v < n; v++)
        for (int u = 0; u < n; u++)
            sum += (u ? 1 : M_SQRT1_2) * (v ? 1 : M_SQRT1_2) * block[8 * v + u] * quant[8 * v + u] *
                   cos((2 * x + 1) * u * M_PI / (2 * n)) * cos((2 * y + 1) * v * M_PI / (2 * n));
    sum = sum / 4 + 128;
    return sum < 0 ? 0 : sum > 255 ? 255 : sum;
}

static void close_to_the_definition(void **state)
{
    leat__rng rng;
    leat__rng_init(&rng, 3, 0, 0, 0);
    for (uint32_t shrink = 0; shrink < LEAT__IDCT_SHRINKS; shrink++) {
        const int n = 8 >> shrink;
        double sum = 0;
        for (int round = 0; round < 300; round++) {
            int16_t block[(1 + LEAT__IDCT_BLOCKS_PAD) * 64] = {0};
            _Alignas(64) uint16_t quant[64];
            uint8_t out[8 * 32], plain[8 * 32];
            const uint8_t last = 63;
            const uint32_t used = 1 + (uint32_t)leat__rng_below(&rng, 20);
            for (int k = 0; k < 64; k++) quant[k] = (uint16_t)(1 + leat__rng_below(&rng, 20));
            for (uint32_t i = 0; i < used; i++)
                block[leat__rng_below(&rng, 64)] = (int16_t)(leat__rng_below(&rng, 21) - 10);
            set_block(block);
            dsp.area[shrink](out, 32, &coefs, &one, quant);
            dsp.plain[shrink](plain, 32, block, &last, 1, quant);
            for (int y = 0; y < n; y++)
                for (int x = 0; x < n; x++) {
                    const double off = fabs(out[y * 32 + x] - exact(block, quant, n, x, y));
                    assert_true(off < 0.75); /* half of it is the rounding to a level */
                    assert_int_equal(out[y * 32 + x], plain[y * 32 + x]);
                    sum += off;
                }
        }
        assert_true(sum / (300.0 * n * n) < 0.27);
    }
}

static void a_mean_alone_is_flat(void **state)
{
    _Alignas(64) uint16_t quant[64] = {16};
    for (int dc = -70; dc <= 70; dc++) {
        int16_t block[64] = {(int16_t)dc};
        uint8_t out[8 * 32];
        const int level = 2 * dc + 128;
        set_block(block);
        for (uint32_t shrink = 0; shrink < LEAT__IDCT_SHRINKS; shrink++) {
            dsp.area[shrink](out, 32, &coefs, &one, quant);
            for (int y = 0; y < 8 >> shrink; y++)
                for (int x = 0; x < 8 >> shrink; x++)
                    assert_int_equal(out[y * 32 + x], level < 0 ? 0 : level > 255 ? 255 : level);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(close_to_the_definition, setup),
        cmocka_unit_test_setup(a_mean_alone_is_flat, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
