/* SPDX-License-Identifier: Apache-2.0
 *
 * Portable 16-bit inverse DCT (the reference), and the choice of variant. Any thread; no state.
 *
 * Chen's algorithm: rotations by products of two cosines, then butterflies. Every pass of n
 * points gives twice what an orthonormal one of eight would, whatever n.
 */
#include "dsp/idct_fast.h"

#include <string.h>

#include "dsp/idct.h"
#include "probe/cpu.h"
#ifdef LEAT_X86
#include "dsp/x86/idct_fast.h"
#endif

#define mul leat__idct_fast_mul
#define ADD(a, b) (int16_t)((a) + (b))
#define SUB(a, b) (int16_t)((a) - (b))

/* Down each column. No branches and no dependence between columns: compilers make vectors. */
static void pass8(int16_t out[8][8], const int16_t in[8][8])
{
    for (int x = 0; x < 8; x++) {
        const int16_t e0 = mul(ADD(in[0][x], in[4][x]), IDCT_FAST_C4);
        const int16_t e1 = mul(SUB(in[0][x], in[4][x]), IDCT_FAST_C4);
        const int16_t e2 = ADD(mul(in[2][x], IDCT_FAST_C2), mul(in[6][x], IDCT_FAST_C6));
        const int16_t e3 = SUB(mul(in[2][x], IDCT_FAST_C6), mul(in[6][x], IDCT_FAST_C2));
        const int16_t a0 = ADD(e0, e2), a3 = SUB(e0, e2), a1 = ADD(e1, e3), a2 = SUB(e1, e3);
        const int16_t p = ADD(mul(in[1][x], IDCT_FAST_C1), mul(in[7][x], IDCT_FAST_C7));
        const int16_t q = SUB(mul(in[1][x], IDCT_FAST_C7), mul(in[7][x], IDCT_FAST_C1));
        const int16_t r = ADD(mul(in[3][x], IDCT_FAST_C3), mul(in[5][x], IDCT_FAST_C5));
        const int16_t s = SUB(mul(in[5][x], IDCT_FAST_C3), mul(in[3][x], IDCT_FAST_C5));
        const int16_t b0 = ADD(p, r), b3 = ADD(q, s), u = SUB(p, r), v = SUB(q, s);
        const int16_t b1 = mul(ADD(u, v), IDCT_FAST_C4), b2 = mul(SUB(u, v), IDCT_FAST_C4);
        out[0][x] = ADD(a0, b0);
        out[7][x] = SUB(a0, b0);
        out[1][x] = ADD(a1, b1);
        out[6][x] = SUB(a1, b1);
        out[2][x] = ADD(a2, b2);
        out[5][x] = SUB(a2, b2);
        out[3][x] = ADD(a3, b3);
        out[4][x] = SUB(a3, b3);
    }
}

static void pass4(int16_t out[8][8], const int16_t in[8][8])
{
    for (int x = 0; x < 4; x++) {
        const int16_t a0 = mul(ADD(in[0][x], in[2][x]), IDCT_FAST_C4);
        const int16_t a1 = mul(SUB(in[0][x], in[2][x]), IDCT_FAST_C4);
        const int16_t b0 = ADD(mul(in[1][x], IDCT_FAST_C2), mul(in[3][x], IDCT_FAST_C6));
        const int16_t b1 = SUB(mul(in[1][x], IDCT_FAST_C6), mul(in[3][x], IDCT_FAST_C2));
        out[0][x] = ADD(a0, b0);
        out[3][x] = SUB(a0, b0);
        out[1][x] = ADD(a1, b1);
        out[2][x] = SUB(a1, b1);
    }
}

static void pass2(int16_t out[8][8], const int16_t in[8][8])
{
    for (int x = 0; x < 2; x++) {
        out[0][x] = mul(ADD(in[0][x], in[1][x]), IDCT_FAST_C4);
        out[1][x] = mul(SUB(in[0][x], in[1][x]), IDCT_FAST_C4);
    }
}

/* One block of n x n samples, n a constant. */
static inline __attribute__((always_inline)) void block_of(int8_t *dst, size_t stride,
                                                           const int16_t in[64],
                                                           const uint16_t quant[64], const int n)
{
    int16_t a[8][8], b[8][8];
    void (*const pass)(int16_t[8][8], const int16_t[8][8]) = n == 8 ? pass8 : n == 4 ? pass4 : pass2;
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++)
            a[y][x] = (int16_t)(uint16_t)((uint32_t)in[8 * y + x] * quant[8 * y + x]
                                          << IDCT_FAST_BITS);
    pass(b, (const int16_t(*)[8])a);
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++) a[x][y] = b[y][x];
    pass(b, (const int16_t(*)[8])a);
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++)
            dst[(size_t)y * stride + (size_t)x] = leat__idct_fast_sample(b[x][y]);
}

static inline __attribute__((always_inline)) void row_of(int8_t *dst, size_t stride,
                                                         const leat__tile_coefs *coefs,
                                                         uint32_t first, uint32_t count,
                                                         const uint16_t quant[64], const int n)
{
    for (uint32_t b = first; b < first + count; b++, dst += n) {
        int16_t block[64];
        if (coefs->mask[b] <= 1 || n == 1) {
            for (int y = 0; y < n; y++)
                memset(dst + (size_t)y * stride, leat__idct_fast_flat(coefs->dc[b], quant[0]),
                       (size_t)n);
            continue;
        }
        leat__tile_block_expand(block, coefs, b);
        block_of(dst, stride, block, quant, n);
    }
}

static inline __attribute__((always_inline)) void plain_of(int8_t *dst, size_t stride,
                                                           const int16_t *blocks, uint32_t count,
                                                           const uint16_t quant[64], const int n)
{
    for (uint32_t b = 0; b < count; b++, dst += n, blocks += 64) {
        if (n == 1) *dst = leat__idct_fast_flat(blocks[0], quant[0]);
        else block_of(dst, stride, blocks, quant, n);
    }
}

#define VARIANTS(n)                                                                        \
    static void row##n(int8_t *dst, size_t stride, const leat__tile_coefs *coefs,          \
                       uint32_t first, uint32_t count, const uint16_t quant[64])           \
    {                                                                                      \
        row_of(dst, stride, coefs, first, count, quant, n);                                \
    }                                                                                      \
    static void plain##n(int8_t *dst, size_t stride, const int16_t *blocks,                \
                         const uint8_t *last, uint32_t count, const uint16_t quant[64])    \
    {                                                                                      \
        plain_of(dst, stride, blocks, count, quant, n);                                    \
    }
VARIANTS(8)
VARIANTS(4)
VARIANTS(2)
VARIANTS(1)

void leat__idct_fast_init(leat__idct_fast_dsp *dsp, uint32_t cpu_flags)
{
    *dsp = (leat__idct_fast_dsp){{row8, row4, row2, row1}, {plain8, plain4, plain2, plain1}, "c"};
#ifdef LEAT_X86
    if (cpu_flags & LEAT__CPU_AVX2) leat__idct_fast_avx2(dsp);
    if (cpu_flags & LEAT__CPU_AVX512ICL) leat__idct_fast_avx512(dsp);
#endif
}
