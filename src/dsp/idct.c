/* SPDX-License-Identifier: Apache-2.0
 *
 * Portable inverse DCT (the reference), and the choice of variant. Any thread; no state.
 *
 * The algorithm is Loeffler, Ligtenberg and Moschytz' with 13-bit constants, as everyone who
 * has to agree with libjpeg's slow integer method must do it.
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

/* One 8-point transform; in[i] is 16 bits wide. Sums are taken modulo 2^32: unsigned. */
static inline __attribute__((always_inline)) void transform(const int32_t in[8],
                                                            int32_t out[8], int shift)
{
    const uint32_t round = 1u << (shift - 1);
    uint32_t x[8];
    for (int i = 0; i < 8; i++) x[i] = (uint32_t)in[i];
    uint32_t even2 = x[2] * IDCT_0_541 + x[6] * (uint32_t)(IDCT_0_541 - IDCT_1_847);
    uint32_t even3 = x[2] * (IDCT_0_541 + IDCT_0_765) + x[6] * IDCT_0_541;
    uint32_t even0 = (x[0] + x[4]) * IDCT_ONE + round;
    uint32_t even1 = (x[0] - x[4]) * IDCT_ONE + round;
    uint32_t a0 = even0 + even3, a3 = even0 - even3;
    uint32_t a1 = even1 + even2, a2 = even1 - even2;

    uint32_t z3 = (uint32_t)(int16_t)(x[7] + x[3]), z4 = (uint32_t)(int16_t)(x[5] + x[1]);
    uint32_t y3 = z3 * (uint32_t)(IDCT_1_175 - IDCT_1_961) + z4 * IDCT_1_175;
    uint32_t y4 = z3 * IDCT_1_175 + z4 * (IDCT_1_175 - IDCT_0_390);
    uint32_t b0 = x[7] * (uint32_t)(IDCT_0_298 - IDCT_0_899) - x[1] * IDCT_0_899 + y3;
    uint32_t b3 = x[1] * (IDCT_1_501 - IDCT_0_899) - x[7] * IDCT_0_899 + y4;
    uint32_t b1 = x[5] * (uint32_t)(IDCT_2_053 - IDCT_2_562) - x[3] * IDCT_2_562 + y4;
    uint32_t b2 = x[3] * (IDCT_3_072 - IDCT_2_562) - x[5] * IDCT_2_562 + y3;

    out[0] = (int32_t)(a0 + b3) >> shift;
    out[7] = (int32_t)(a0 - b3) >> shift;
    out[1] = (int32_t)(a1 + b2) >> shift;
    out[6] = (int32_t)(a1 - b2) >> shift;
    out[2] = (int32_t)(a2 + b1) >> shift;
    out[5] = (int32_t)(a2 - b1) >> shift;
    out[3] = (int32_t)(a3 + b0) >> shift;
    out[4] = (int32_t)(a3 - b0) >> shift;
}

void leat__tile_block_expand(int16_t out[64], const leat__tile_coefs *coefs, uint32_t b)
{
    const int16_t *value = coefs->value + coefs->first[b];
    memset(out, 0, 64 * sizeof out[0]);
    for (uint64_t mask = coefs->mask[b]; mask != 0; mask &= mask - 1)
        out[leat__tile_order[__builtin_ctzll(mask)]] = *value++;
    out[0] = coefs->dc[b];
}

/* Only the mean: what both passes give for it. */
static void block_flat(uint8_t *dst, size_t stride, int16_t dc)
{
    int32_t pass1 = clamp16(dc * 4);
    uint8_t sample = clamp_sample((pass1 + 16) >> 5);
    for (int y = 0; y < 8; y++) memset(dst + (size_t)y * stride, sample, 8);
}

static void block_full(uint8_t *dst, size_t stride, const int16_t in[64],
                       const uint16_t quant[64], int columns)
{
    int32_t work[8][8];
    for (int x = 0; x < columns; x++) {
        int32_t column[8], out[8];
        int32_t ac = 0;
        for (int y = 0; y < 8; y++) {
            column[y] = (int16_t)(in[8 * y + x] * quant[8 * y + x]);
            ac |= y > 0 ? column[y] : 0;
        }
        if (ac == 0) {
            for (int y = 0; y < 8; y++) work[y][x] = clamp16(column[0] * 4);
            continue;
        }
        transform(column, out, IDCT_SHIFT1);
        for (int y = 0; y < 8; y++) work[y][x] = clamp16(out[y]);
    }
    for (int y = 0; y < 8; y++) {
        int32_t out[8];
        for (int x = columns; x < 8; x++) work[y][x] = 0;
        transform(work[y], out, IDCT_SHIFT2);
        for (int x = 0; x < 8; x++) dst[(size_t)y * stride + (size_t)x] = clamp_sample(out[x]);
    }
}

static void row_c(uint8_t *dst, size_t stride, const leat__tile_coefs *coefs, uint32_t first,
                  uint32_t count, const uint16_t quant[64])
{
    for (uint32_t b = first; b < first + count; b++, dst += 8) {
        if (coefs->mask[b] <= 1) {
            block_flat(dst, stride, (int16_t)(coefs->dc[b] * quant[0]));
            continue;
        }
        int16_t block[64];
        leat__tile_block_expand(block, coefs, b);
        block_full(dst, stride, block, quant, (coefs->mask[b] & ~LEAT__TILE_CORNER) ? 8 : 4);
    }
}

void leat__idct_init(leat__idct_dsp *dsp, uint32_t cpu_flags)
{
    dsp->row = row_c;
    dsp->isa = "c";
#ifdef LEAT_X86
    leat__idct_init_x86(dsp, cpu_flags);
#endif
}
