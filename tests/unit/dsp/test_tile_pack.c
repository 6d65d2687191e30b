/* SPDX-License-Identifier: Apache-2.0
 *
 * The portable packing kernels on blocks written by hand. tests/check compares the other variants with
 * them; the codec's tests convert whole tiles in both directions.
 */
#include "leat_test.h"

#include <string.h>

#include "dsp/tile_pack.h"
#include "probe/cpu.h"

static leat__tile_pack_dsp dsp;
static leat__tile_parts parts;

static int setup(void **state)
{
    leat__tile_pack_init(&dsp, LEAT__CPU_SSE42);
    memset(&parts, 0, sizeof parts);
    return 0;
}

/* Row 0, column 4 is position 16, the first of group 2; row 1, column 1 is position 5. */
static void blocks_are_taken_in_tile_order(void **state)
{
    int16_t blocks[3][64] = {{7, [4] = -2, [9] = 5}, {7}, {4, [63] = -300}};
    assert_int_equal(dsp.take(&parts, 10, blocks[0], 3, 3), 1 | 5 | 299);
    assert_int_equal(parts.mask[10], 1 | 1 << 5 | 1 << 16);
    assert_int_equal(parts.mask[11], 0);
    assert_int_equal(parts.mask[12], 1 | UINT64_C(1) << 63);
    const uint8_t groups[3] = {3, 0, 8};
    assert_memory_equal(parts.groups + 10, groups, sizeof groups);
    const int16_t values[5] = {7 - 3, 5, -2, 4 - 7, -300};
    assert_int_equal(parts.values, 5);
    assert_memory_equal(parts.value, values, sizeof values);
}

/* The example of the entropy decoder's test, in the other direction. */
static void values_become_planes_and_extra_bits(void **state)
{
    const uint8_t want[] = {
        0x06, /* plane 1: is size > 1? 0 1 1 */
        0x00, /* plane 2: 0 0 */
        0x11, /* extra: 1 | -3 -> 00 | 2 -> 10 */
    };
    uint8_t out[sizeof want + LEAT__TILE_OVERWRITE];
    const int16_t values[3] = {1, -3, 2};
    memcpy(parts.value, values, sizeof values);
    parts.values = 3;
    assert_ptr_equal(dsp.put_values(out, &parts), out + sizeof want);
    assert_memory_equal(out, want, sizeof want);
    parts.values = 0;
    assert_ptr_equal(dsp.put_values(out, &parts), out);
}

static void order(leat__scan_block *out, uint64_t mask, const int16_t *values, size_t n)
{
    static leat__tile_coefs coefs;
    memset(&coefs, 0, sizeof coefs);
    coefs.mask[1] = mask;
    coefs.first[1] = 3;
    coefs.dc[1] = 55;
    memcpy(coefs.value + 3, values, n * sizeof *values);
    memset(out, 0x5a, sizeof *out);
    dsp.order(out, &coefs, 1, 1);
    assert_int_equal(out->dc, 55);
}

/* Positions 0, 1, 4, 5 of the bitmap are positions 0, 1, 2, 4 of the zigzag. */
static void blocks_get_the_symbols_of_a_scan(void **state)
{
    leat__scan_block b;
    const int16_t values[4] = {9, -1, 5, 2};
    order(&b, 0x33, values, 4);
    assert_false(b.plain);
    assert_int_equal(b.ac, 1 << 1 | 1 << 2 | 1 << 4);
    const uint8_t symbols[] = {0x01, 0x03, 0x12, LEAT__SCAN_END, LEAT__SCAN_NOTHING};
    const uint16_t extra[] = {0, 5, 2, 0, 0};
    assert_int_equal(b.symbols, 4);
    assert_memory_equal(b.symbol, symbols, sizeof symbols);
    assert_memory_equal(b.extra, extra, sizeof extra);
}

static void a_block_without_coefficients_just_ends(void **state)
{
    leat__scan_block b;
    order(&b, 1, (const int16_t[]){3}, 1);
    assert_int_equal(b.ac, 0);
    assert_int_equal(b.symbols, 1);
    assert_int_equal(b.symbol[0], LEAT__SCAN_END);
    assert_int_equal(b.symbol[1], LEAT__SCAN_NOTHING);
}

/* A full block has 63 symbols and no end; a run of sixteen zeros has no symbols. */
static void full_blocks_and_long_runs(void **state)
{
    leat__scan_block b;
    int16_t values[64];
    for (int i = 0; i < 64; i++) values[i] = (int16_t)(i + 1);
    order(&b, ~UINT64_C(0), values, 64);
    assert_false(b.plain);
    assert_int_equal(b.symbols, 63);
    assert_int_equal(b.symbol[62], 7); /* 64 has seven bits */
    assert_int_equal(b.symbol[63], LEAT__SCAN_NOTHING);
    order(&b, UINT64_C(1) << 63, values + 6, 1);
    assert_true(b.plain);
    assert_int_equal(b.ac, UINT64_C(1) << 63);
    assert_int_equal(b.at[63], 7);
    /* place 16 is number 20: fifteen zeros before it; place 17 is number 11: sixteen */
    order(&b, 1 << 20, values, 1);
    assert_false(b.plain);
    assert_int_equal(b.symbol[0], 0xf1);
    order(&b, 1 << 11, values, 1);
    assert_true(b.plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(blocks_are_taken_in_tile_order, setup),
        cmocka_unit_test_setup(values_become_planes_and_extra_bits, setup),
        cmocka_unit_test_setup(blocks_get_the_symbols_of_a_scan, setup),
        cmocka_unit_test_setup(a_block_without_coefficients_just_ends, setup),
        cmocka_unit_test_setup(full_blocks_and_long_runs, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
