/* SPDX-License-Identifier: Apache-2.0
 *
 * Portable inverse DCT (the reference), and the selection of a variant. Any thread; no state.
 *
 * The algorithm is that of Loeffler, Ligtenberg and Moschytz with 13-bit constants, which is required to
 * agree with libjpeg's slow integer method.
 */
#include "dsp/idct.h"

#include <string.h>

#include "dsp/idct_constants.h"
#ifdef LEAT_X86
#include "dsp/x86/tile_x86.h"
#endif

static inline int16_t clamp16(int32_t v)
{
    return (int16_t)(v < INT16_MIN ? INT16_MIN : v > INT16_MAX ? INT16_MAX : v);
}

static inline uint8_t clamp_sample(int32_t v)
{
    v += 128;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* One pass: the 8-point transform of each column, 16 bits wide. Sums are modulo 2^32: unsigned. No branches
 * and no dependence between columns, so that compilers vectorise it. */
static inline __attribute__((always_inline)) void pass(int32_t out[8][8], const int16_t in[8][8], int shift)
{
    const uint32_t round = 1u << (shift - 1);
    for (int x = 0; x < 8; x++) {
        uint32_t x0 = (uint32_t)in[0][x], x1 = (uint32_t)in[1][x], x2 = (uint32_t)in[2][x];
        uint32_t x3 = (uint32_t)in[3][x], x4 = (uint32_t)in[4][x], x5 = (uint32_t)in[5][x];
        uint32_t x6 = (uint32_t)in[6][x], x7 = (uint32_t)in[7][x];
        uint32_t even2 = x2 * IDCT_0_541 + x6 * (uint32_t)(IDCT_0_541 - IDCT_1_847);
        uint32_t even3 = x2 * (IDCT_0_541 + IDCT_0_765) + x6 * IDCT_0_541;
        uint32_t even0 = (x0 + x4) * IDCT_ONE + round;
        uint32_t even1 = (x0 - x4) * IDCT_ONE + round;
        uint32_t a0 = even0 + even3, a3 = even0 - even3;
        uint32_t a1 = even1 + even2, a2 = even1 - even2;

        uint32_t z3 = (uint32_t)(int16_t)(x7 + x3), z4 = (uint32_t)(int16_t)(x5 + x1);
        uint32_t y3 = z3 * (uint32_t)(IDCT_1_175 - IDCT_1_961) + z4 * IDCT_1_175;
        uint32_t y4 = z3 * IDCT_1_175 + z4 * (IDCT_1_175 - IDCT_0_390);
        uint32_t b0 = x7 * (uint32_t)(IDCT_0_298 - IDCT_0_899) - x1 * IDCT_0_899 + y3;
        uint32_t b3 = x1 * (IDCT_1_501 - IDCT_0_899) - x7 * IDCT_0_899 + y4;
        uint32_t b1 = x5 * (uint32_t)(IDCT_2_053 - IDCT_2_562) - x3 * IDCT_2_562 + y4;
        uint32_t b2 = x3 * (IDCT_3_072 - IDCT_2_562) - x5 * IDCT_2_562 + y3;

        out[0][x] = (int32_t)(a0 + b3) >> shift;
        out[7][x] = (int32_t)(a0 - b3) >> shift;
        out[1][x] = (int32_t)(a1 + b2) >> shift;
        out[6][x] = (int32_t)(a1 - b2) >> shift;
        out[2][x] = (int32_t)(a2 + b1) >> shift;
        out[5][x] = (int32_t)(a2 - b1) >> shift;
        out[3][x] = (int32_t)(a3 + b0) >> shift;
        out[4][x] = (int32_t)(a3 - b0) >> shift;
    }
}

void leat__tile_block_expand(int16_t out[64], const leat__tile_coefs *coefs, uint32_t b)
{
    const int16_t *value = coefs->value + coefs->first[b];
    memset(out, 0, 64 * sizeof out[0]);
    for (uint64_t mask = coefs->mask[b]; mask != 0; mask &= mask - 1)
        out[leat__tile_order[__builtin_ctzll(mask)]] = *value++;
    out[0] = coefs->dc[b];
}

/* A block that has only a DC coefficient: the same value as both passes would give, for all 64 pixels. */
static void block_flat(uint8_t *dst, size_t stride, int16_t dc)
{
    int32_t pass1 = clamp16(dc * 4);
    uint8_t sample = clamp_sample((pass1 + 16) >> 5);
    for (int y = 0; y < 8; y++) memset(dst + (size_t)y * stride, sample, 8);
}

static void block_full(uint8_t *dst, size_t stride, const int16_t in[64], const uint16_t quant[64])
{
    int16_t block[8][8], turned[8][8];
    int32_t work[8][8];
    for (int k = 0; k < 64; k++) block[k / 8][k % 8] = (int16_t)(in[k] * quant[k]);
    pass(work, (const int16_t(*)[8])block, IDCT_SHIFT1);
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++) turned[x][y] = clamp16(work[y][x]);
    pass(work, (const int16_t(*)[8])turned, IDCT_SHIFT2);
    uint8_t sample[8][8];
    for (int x = 0; x < 8; x++)
        for (int y = 0; y < 8; y++) sample[x][y] = clamp_sample(work[x][y]);
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++) dst[(size_t)y * stride + (size_t)x] = sample[x][y];
}

static void sparse_c(uint8_t *dst, size_t stride, const leat__tile_coefs *coefs, uint32_t b,
                     const uint16_t quant[64])
{
    if (coefs->mask[b] <= 1) {
        block_flat(dst, stride, (int16_t)(coefs->dc[b] * quant[0]));
        return;
    }
    int16_t block[64];
    leat__tile_block_expand(block, coefs, b);
    block_full(dst, stride, block, quant);
}

static void area_c(uint8_t *dst, size_t stride, const leat__tile_coefs *coefs, const leat__idct_area *area,
                   const uint16_t quant[64])
{
    for (uint32_t y = 0; y < area->high; y++, dst += 8 * stride)
        for (uint32_t x = 0; x < area->wide; x++)
            sparse_c(dst + 8 * x, stride, coefs, area->first + y * area->pitch + x, quant);
}

static void plain_c(uint8_t *dst, size_t stride, const int16_t *blocks, const uint8_t *last, uint32_t count,
                    const uint16_t quant[64])
{
    for (uint32_t b = 0; b < count; b++, dst += 8, blocks += 64) {
        if (last[b] == 0) block_flat(dst, stride, (int16_t)(blocks[0] * quant[0]));
        else block_full(dst, stride, blocks, quant);
    }
}

void leat__idct_init(leat__idct_dsp *dsp, uint32_t cpu_flags)
{
    dsp->area = area_c;
    dsp->plain = plain_c;
    dsp->isa = "c";
#ifdef LEAT_X86
    leat__idct_init_x86(dsp, cpu_flags);
#endif
}
