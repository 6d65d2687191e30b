/* SPDX-License-Identifier: Apache-2.0
 *
 * The portable inverse DCT, compared with the definition in double precision (within one level), and its
 * defined behaviour for coefficients that overflow.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "dsp/idct.h"
#include "probe/cpu.h"

static const leat__idct_area one = {0, 1, 1, 1};
static leat__tile_coefs coefs;
static leat__idct_dsp dsp;

static int setup(void **state)
{
    leat__idct_init(&dsp, LEAT__CPU_SSE42);
    return 0;
}

/* Sets block 0 from 64 coefficients, row by row. */
static void set_block(const int16_t block[64])
{
    uint32_t n = 0;
    coefs.mask[0] = 0;
    coefs.first[0] = 0;
    coefs.dc[0] = block[0];
    for (uint32_t k = 0; k < 64; k++) {
        int16_t v = block[leat__tile_order[k]];
        if (v == 0) continue;
        coefs.mask[0] |= UINT64_C(1) << k;
        coefs.value[n++] = v;
    }
}

static double exact(const int16_t block[64], const uint16_t quant[64], int x, int y)
{
    double sum = 0;
    for (int v = 0; v < 8; v++)
        for (int u = 0; u < 8; u++)
            sum += (u ? 1 : M_SQRT1_2) * (v ? 1 : M_SQRT1_2) * block[8 * v + u] * quant[8 * v + u] *
                   cos((2 * x + 1) * u * M_PI / 16) * cos((2 * y + 1) * v * M_PI / 16);
    sum = sum / 4 + 128;
    return sum < 0 ? 0 : sum > 255 ? 255 : sum;
}

static void close_to_the_definition(void **state)
{
    leat__rng rng;
    leat__rng_init(&rng, 3, 0, 0, 0);
    for (int round = 0; round < 300; round++) {
        int16_t block[64] = {0}, again[64];
        uint16_t quant[64];
        uint8_t out[8 * LEAT__IDCT_ROUND];
        uint32_t used = 1 + (uint32_t)leat__rng_below(&rng, 20);
        for (int k = 0; k < 64; k++) quant[k] = (uint16_t)(1 + leat__rng_below(&rng, 20));
        for (uint32_t i = 0; i < used; i++)
            block[leat__rng_below(&rng, 64)] = (int16_t)(leat__rng_below(&rng, 21) - 10);
        set_block(block);
        leat__tile_block_expand(again, &coefs, 0);
        assert_memory_equal(again, block, sizeof block);
        dsp.area(out, LEAT__IDCT_ROUND, &coefs, &one, quant);
        for (int y = 0; y < 8; y++)
            for (int x = 0; x < 8; x++)
                assert_true(fabs(out[y * LEAT__IDCT_ROUND + x] - exact(block, quant, x, y)) <= 1.0);
    }
}

static void a_mean_alone_is_flat(void **state)
{
    static const struct {
        int16_t dc;
        uint16_t quant;
        uint8_t want;
    } cases[] = {
        {0, 16, 128},   {1, 8, 129},
        {-64, 16, 0},   {63, 16, 254},
        {64, 16, 255},  {-1, 4, 128},
        {3, 20, 136},   {32767, 1, 255},
        {-32768, 1, 0}, {16384, 4, 128} /* 65536 is 0 modulo 2^16 */,
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int16_t block[64] = {cases[i].dc};
        uint16_t quant[64] = {cases[i].quant};
        uint8_t out[8 * LEAT__IDCT_ROUND];
        set_block(block);
        dsp.area(out, LEAT__IDCT_ROUND, &coefs, &one, quant);
        for (int y = 0; y < 8; y++)
            for (int x = 0; x < 8; x++) assert_int_equal(out[y * LEAT__IDCT_ROUND + x], cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(close_to_the_definition),
        cmocka_unit_test(a_mean_alone_is_flat),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
