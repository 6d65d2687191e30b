/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of the inverse DCT on vectors. Included by the AVX2 and the AVX-512 file, which arrange
 * the words and define the operations:
 *
 *   V            vector type                      V_SET32(x)        x in every 32 bits
 *   V_MADD(x, a, b)     x0 * a + x1 * b of each pair of words in x; a, b constants
 *   V_DOT(s, x, a, b)   s + V_MADD(x, a, b)
 *   V_BOTH(s, x, a, b, &sum, &difference)         s + and s - V_MADD(x, a, b)
 *   V_ADD32, V_SUB32, V_ADD16, V_XOR              V_SRA16(v, n)     shift right
 *   V_PACK16     with signed saturation           V_HIGHS(a, b)     high words of a (even) and b
 *
 * All sums are modulo 2^32, so their order does not matter and constants can be merged. The inputs of a
 * pass are kept as the pairs that pmaddwd needs, (0,4), (2,6), (7,1) and (3,5): the result of the first
 * pass is converted directly to such pairs.
 */
#define IDCT_INLINE static inline __attribute__((always_inline))
#define IDCT_PAIR(a, b) (int32_t)((uint32_t)(uint16_t)(a) | (uint32_t)(uint16_t)(b) << 16)

/* The input of a pass: columns, or rows in the second pass. */
typedef struct idct_pairs {
    V x04, x26, x71, x35;
} idct_pairs;

/* The 8-point transform, rounded but not yet shifted. */
IDCT_INLINE void idct_half(const idct_pairs *x, V out[8], const int shift)
{
    const V round = V_SET32(1 << (shift - 1));
    V even0 = V_DOT(round, x->x04, IDCT_ONE, IDCT_ONE);
    V even1 = V_DOT(round, x->x04, IDCT_ONE, -IDCT_ONE);
    V a0, a1, a2, a3;
    V_BOTH(even0, x->x26, (IDCT_0_541 + IDCT_0_765), IDCT_0_541, &a0, &a3);
    V_BOTH(even1, x->x26, IDCT_0_541, (IDCT_0_541 - IDCT_1_847), &a1, &a2);

    V z34 = V_ADD16(x->x71, x->x35);
    V y3 = V_MADD(z34, IDCT_1_175 - IDCT_1_961, IDCT_1_175);
    V y4 = V_MADD(z34, IDCT_1_175, IDCT_1_175 - IDCT_0_390);
    V b0 = V_DOT(y3, x->x71, IDCT_0_298 - IDCT_0_899, -IDCT_0_899);
    V b3 = V_DOT(y4, x->x71, -IDCT_0_899, IDCT_1_501 - IDCT_0_899);
    V b1 = V_DOT(y4, x->x35, -IDCT_2_562, IDCT_2_053 - IDCT_2_562);
    V b2 = V_DOT(y3, x->x35, IDCT_3_072 - IDCT_2_562, -IDCT_2_562);

    out[0] = V_ADD32(a0, b3);
    out[7] = V_SUB32(a0, b3);
    out[1] = V_ADD32(a1, b2);
    out[6] = V_SUB32(a1, b2);
    out[2] = V_ADD32(a2, b1);
    out[5] = V_SUB32(a2, b1);
    out[3] = V_ADD32(a3, b0);
    out[4] = V_SUB32(a3, b0);
}

/* Like idct_half, when rows 4 to 7 are zero; x02 and x13 are pairs of rows. */
IDCT_INLINE void idct_half_corner(V x02, V x13, V out[8], const int shift)
{
    const V round = V_SET32(1 << (shift - 1));
    V a0 = V_DOT(round, x02, IDCT_ONE, IDCT_0_541 + IDCT_0_765);
    V a3 = V_DOT(round, x02, IDCT_ONE, -IDCT_0_541 - IDCT_0_765);
    V a1 = V_DOT(round, x02, IDCT_ONE, IDCT_0_541);
    V a2 = V_DOT(round, x02, IDCT_ONE, -IDCT_0_541);
    V b0 = V_MADD(x13, IDCT_1_175 - IDCT_0_899, IDCT_1_175 - IDCT_1_961);
    V b1 = V_MADD(x13, IDCT_1_175 - IDCT_0_390, IDCT_1_175 - IDCT_2_562);
    V b2 = V_MADD(x13, IDCT_1_175, IDCT_3_072 - IDCT_2_562 + IDCT_1_175 - IDCT_1_961);
    V b3 = V_MADD(x13, IDCT_1_501 - IDCT_0_899 + IDCT_1_175 - IDCT_0_390, IDCT_1_175);
    out[0] = V_ADD32(a0, b3);
    out[7] = V_SUB32(a0, b3);
    out[1] = V_ADD32(a1, b2);
    out[6] = V_SUB32(a1, b2);
    out[2] = V_ADD32(a2, b1);
    out[5] = V_SUB32(a2, b1);
    out[3] = V_ADD32(a3, b0);
    out[4] = V_SUB32(a3, b0);
}

/* Converts four columns of four rows, not yet shifted, to samples. Each lane has them in pairs: the first two
 * columns of rows 0 to 3, then the other two. The high half of a sum fits 16 bits. */
IDCT_INLINE V idct_samples(const V c[4])
{
    V left = V_SRA16(V_HIGHS(c[0], c[1]), IDCT_SHIFT2 - 16);
    V right = V_SRA16(V_HIGHS(c[2], c[3]), IDCT_SHIFT2 - 16);
    return V_XOR(V_PACK16(left, right), V_SET32((int)0x80808080u));
}

/* Returns the highest of the first n, at most four, of `last`. */
IDCT_INLINE uint8_t idct_latest(const uint8_t *last, uint32_t n)
{
    uint8_t most = last[0];
    for (uint32_t i = 1; i < n; i++) most = last[i] > most ? last[i] : most;
    return most;
}

/* Returns the sample of a block with only a DC coefficient, given after dequantisation. */
IDCT_INLINE uint8_t idct_flat(int16_t dc)
{
    int32_t v = dc * 4;
    v = v < INT16_MIN ? INT16_MIN : v > INT16_MAX ? INT16_MAX : v;
    v = ((v + 16) >> 5) + 128;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}
