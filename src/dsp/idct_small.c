/* SPDX-License-Identifier: Apache-2.0
 *
 * Portable inverse DCT to smaller blocks (the reference), and the selection of a variant. Any thread; no
 * state. Every pass, whatever its number of points, gives twice the correct value.
 */
#include "dsp/idct_small.h"

#include <string.h>

#include "probe/cpu.h"

#define ADD(a, b) (int16_t)((a) + (b))
#define SUB(a, b) (int16_t)((a) - (b))

/* Returns x times k, rounded. */
static inline int16_t mul(int16_t x, int16_t k)
{
    return (int16_t)((x * k + (1 << 14)) >> 15);
}

static inline int16_t dequantise(int16_t coef, uint16_t quant)
{
    return (int16_t)(uint16_t)((uint32_t)coef * quant << IDCT_SMALL_BITS);
}

static inline uint8_t sample(int16_t v)
{
    const int32_t s = ((v + (1 << (IDCT_SMALL_SHIFT - 1))) >> IDCT_SMALL_SHIFT) + 128;
    return (uint8_t)(s < 0 ? 0 : s > 255 ? 255 : s);
}

/* Transforms each column, n points: with one point, the DC. */
static inline __attribute__((always_inline)) void pass(int16_t out[4][4], const int16_t in[4][4], const int n)
{
    for (int x = 0; x < n; x++) {
        const int16_t x0 = in[0][x], x1 = n > 1 ? in[1][x] : 0;
        const int16_t x2 = n > 2 ? in[2][x] : 0, x3 = n > 2 ? in[3][x] : 0;
        if (n == 1) {
            out[0][x] = mul(x0, IDCT_SMALL_C4);
        } else if (n == 2) {
            out[0][x] = mul(ADD(x0, x1), IDCT_SMALL_C4);
            out[1][x] = mul(SUB(x0, x1), IDCT_SMALL_C4);
        } else {
            const int16_t a0 = mul(ADD(x0, x2), IDCT_SMALL_C4);
            const int16_t a1 = mul(SUB(x0, x2), IDCT_SMALL_C4);
            const int16_t b0 = ADD(mul(x1, IDCT_SMALL_C2), mul(x3, IDCT_SMALL_C6));
            const int16_t b1 = SUB(mul(x1, IDCT_SMALL_C6), mul(x3, IDCT_SMALL_C2));
            out[0][x] = ADD(a0, b0);
            out[3][x] = SUB(a0, b0);
            out[1][x] = ADD(a1, b1);
            out[2][x] = SUB(a1, b1);
        }
    }
}

static inline __attribute__((always_inline)) void block_of(uint8_t *dst, size_t stride, const int16_t in[64],
                                                           const uint16_t quant[64], const int n)
{
    int16_t a[4][4], b[4][4];
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++) a[y][x] = dequantise(in[8 * y + x], quant[8 * y + x]);
    pass(b, (const int16_t(*)[4])a, n);
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++) a[x][y] = b[y][x];
    pass(b, (const int16_t(*)[4])a, n);
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++) dst[(size_t)y * stride + (size_t)x] = sample(b[x][y]);
}

/* Expands the coefficients of the corner, which come first in a sparse block. */
static void expand_corner(int16_t out[64], const leat__tile_coefs *coefs, uint32_t b)
{
    const int16_t *value = coefs->value + coefs->first[b];
    for (int y = 0; y < 4; y++) memset(out + 8 * y, 0, 4 * sizeof *out);
    for (uint64_t m = coefs->mask[b] & LEAT__TILE_CORNER; m != 0; m &= m - 1)
        out[leat__tile_order[__builtin_ctzll(m)]] = *value++;
    out[0] = coefs->dc[b];
}

#define VARIANTS(n)                                                                                          \
    static void area##n(uint8_t *dst, size_t stride, const leat__tile_coefs *coefs,                          \
                        const leat__idct_area *area, const uint16_t quant[64])                               \
    {                                                                                                        \
        int16_t block[64];                                                                                   \
        for (uint32_t y = 0; y < area->high; y++, dst += n * stride)                                         \
            for (uint32_t x = 0; x < area->wide; x++) {                                                      \
                expand_corner(block, coefs, area->first + y * area->pitch + x);                              \
                block_of(dst + n * x, stride, block, quant, n);                                              \
            }                                                                                                \
    }                                                                                                        \
    static void plain##n(uint8_t *dst, size_t stride, const int16_t *blocks, const uint8_t *last,            \
                         uint32_t count, const uint16_t quant[64])                                           \
    {                                                                                                        \
        for (uint32_t b = 0; b < count; b++, dst += n, blocks += 64)                                         \
            block_of(dst, stride, blocks, quant, n);                                                         \
    }
VARIANTS(4)
VARIANTS(2)
VARIANTS(1)

void leat__idct_small_init(leat__idct_small_dsp *dsp, uint32_t cpu_flags)
{
    leat__idct_dsp exact;
    leat__idct_init(&exact, cpu_flags);
    *dsp =
        (leat__idct_small_dsp){{exact.area, area4, area2, area1}, {exact.plain, plain4, plain2, plain1}, "c"};
#ifdef LEAT_X86
    if (cpu_flags & LEAT__CPU_AVX2) leat__idct_small_avx2(dsp);
#endif
}
