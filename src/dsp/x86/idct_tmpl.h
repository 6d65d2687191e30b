/* SPDX-License-Identifier: Apache-2.0
 *
 * The inverse DCT on vectors of 128-bit lanes, one block per lane: included by the AVX2 file
 * (two lanes) and the AVX-512 file (four), which define the operations:
 *
 *   V            vector type                      V_SET32(x)        x in every 32 bits
 *   V_MADD       pmaddwd                          V_DOT(s, a, b)    s + pmaddwd(a, b)
 *   V_BOTH(s, a, b, &sum, &difference)            s + and s - pmaddwd(a, b)
 *   V_ADD32, V_SUB32, V_ADD16, V_XOR              V_SRA32(v,n), V_SRA16(v,n)  shift right
 *   V_PACK32, V_PACK16  with signed saturation    V_SHUFFLE8        pshufb
 *   V_LO16, V_HI16, V_LO32, V_HI32, V_LO64, V_HI64   unpack within lanes
 *   V_HIGHS(a,b) high words of a (even) and b (odd)   V_LANES(x)    a 128-bit value in each lane
 *
 * pmaddwd does two products and their sum; all sums are modulo 2^32, so the order in which
 * they are taken does not matter and constants can be merged. Shuffles are what these machines
 * have least of: the inputs of a pass are kept as the pairs that pmaddwd wants, (0,4), (2,6),
 * (7,1) and (3,5), so that one turn of 4x4 pairs leads from the first pass to the second.
 */
#define IDCT_INLINE static inline __attribute__((always_inline))
#define IDCT_PAIR(a, b) V_SET32((int)((uint32_t)(uint16_t)(a) | (uint32_t)(uint16_t)(b) << 16))

/* What a pass works on: four columns (rows in the second pass) of a block. */
typedef struct idct_pairs {
    V x04, x26, x71, x35;
} idct_pairs;

/* The 8-point transform, rounded but not yet shifted. */
IDCT_INLINE void idct_half(const idct_pairs *x, V out[8], const int shift)
{
    const V round = V_SET32(1 << (shift - 1));
    V even0 = V_DOT(round, x->x04, IDCT_PAIR(IDCT_ONE, IDCT_ONE));
    V even1 = V_DOT(round, x->x04, IDCT_PAIR(IDCT_ONE, -IDCT_ONE));
    V a0, a1, a2, a3;
    V_BOTH(even0, x->x26, (IDCT_0_541 + IDCT_0_765), IDCT_0_541, &a0, &a3);
    V_BOTH(even1, x->x26, IDCT_0_541, (IDCT_0_541 - IDCT_1_847), &a1, &a2);

    V z34 = V_ADD16(x->x71, x->x35);
    V y3 = V_MADD(z34, IDCT_PAIR(IDCT_1_175 - IDCT_1_961, IDCT_1_175));
    V y4 = V_MADD(z34, IDCT_PAIR(IDCT_1_175, IDCT_1_175 - IDCT_0_390));
    V b0 = V_DOT(y3, x->x71, IDCT_PAIR(IDCT_0_298 - IDCT_0_899, -IDCT_0_899));
    V b3 = V_DOT(y4, x->x71, IDCT_PAIR(-IDCT_0_899, IDCT_1_501 - IDCT_0_899));
    V b1 = V_DOT(y4, x->x35, IDCT_PAIR(-IDCT_2_562, IDCT_2_053 - IDCT_2_562));
    V b2 = V_DOT(y3, x->x35, IDCT_PAIR(IDCT_3_072 - IDCT_2_562, -IDCT_2_562));

    out[0] = V_ADD32(a0, b3);
    out[7] = V_SUB32(a0, b3);
    out[1] = V_ADD32(a1, b2);
    out[6] = V_SUB32(a1, b2);
    out[2] = V_ADD32(a2, b1);
    out[5] = V_SUB32(a2, b1);
    out[3] = V_ADD32(a3, b0);
    out[4] = V_SUB32(a3, b0);
}

/* Four rows of eight columns -> the pairs of columns of these rows. */
IDCT_INLINE void idct_turn(const V low[4], const V high[4], idct_pairs *x)
{
    const V pairs =
        V_LANES(_mm_setr_epi8(0, 1, 8, 9, 4, 5, 12, 13, 14, 15, 2, 3, 6, 7, 10, 11));
    V p[4];
    for (int i = 0; i < 4; i++) {
        V row = V_PACK32(V_SRA32(low[i], IDCT_SHIFT1), V_SRA32(high[i], IDCT_SHIFT1));
        p[i] = V_SHUFFLE8(row, pairs);
    }
    V a = V_LO32(p[0], p[1]), b = V_LO32(p[2], p[3]);
    V c = V_HI32(p[0], p[1]), d = V_HI32(p[2], p[3]);
    x->x04 = V_LO64(a, b);
    x->x26 = V_HI64(a, b);
    x->x71 = V_LO64(c, d);
    x->x35 = V_HI64(c, d);
}

/* All pairs of a block: its left and its right four columns. */
typedef struct idct_block {
    idct_pairs left, right;
} idct_block;

/* g: the groups of leat__tile_order, dequantised. */
IDCT_INLINE idct_block idct_of_groups(const V g[8])
{
    return (idct_block){{V_LO16(g[0], g[3]), V_LO16(g[1], g[5]), V_HI16(g[5], g[0]),
                         V_HI16(g[1], g[3])},
                        {V_LO16(g[2], g[6]), V_LO16(g[4], g[7]), V_HI16(g[7], g[2]),
                         V_HI16(g[4], g[6])}};
}

IDCT_INLINE idct_block idct_of_rows(const V r[8])
{
    return (idct_block){{V_LO16(r[0], r[4]), V_LO16(r[2], r[6]), V_LO16(r[7], r[1]),
                         V_LO16(r[3], r[5])},
                        {V_HI16(r[0], r[4]), V_HI16(r[2], r[6]), V_HI16(r[7], r[1]),
                         V_HI16(r[3], r[5])}};
}

/* Both passes. Leaves columns: rows 0 to 3 in top, 4 to 7 in bottom, to be shifted by
 * IDCT_SHIFT2. */
IDCT_INLINE void idct_full(const idct_block *in, V top[8], V bottom[8])
{
    V low[8], high[8];
    idct_pairs x;
    idct_half(&in->left, low, IDCT_SHIFT1);
    idct_half(&in->right, high, IDCT_SHIFT1);
    idct_turn(low, high, &x);
    idct_half(&x, top, IDCT_SHIFT2);
    idct_turn(low + 4, high + 4, &x);
    idct_half(&x, bottom, IDCT_SHIFT2);
}

/* idct_half where rows 4 to 7 are zero; x02 and x13 are pairs of rows. */
IDCT_INLINE void idct_half_corner(V x02, V x13, V out[8], const int shift)
{
    const V round = V_SET32(1 << (shift - 1));
    V a0 = V_DOT(round, x02, IDCT_PAIR(IDCT_ONE, IDCT_0_541 + IDCT_0_765));
    V a3 = V_DOT(round, x02, IDCT_PAIR(IDCT_ONE, -IDCT_0_541 - IDCT_0_765));
    V a1 = V_DOT(round, x02, IDCT_PAIR(IDCT_ONE, IDCT_0_541));
    V a2 = V_DOT(round, x02, IDCT_PAIR(IDCT_ONE, -IDCT_0_541));
    V b0 = V_MADD(x13, IDCT_PAIR(IDCT_1_175 - IDCT_0_899, IDCT_1_175 - IDCT_1_961));
    V b1 = V_MADD(x13, IDCT_PAIR(IDCT_1_175 - IDCT_0_390, IDCT_1_175 - IDCT_2_562));
    V b2 = V_MADD(x13, IDCT_PAIR(IDCT_1_175,
                                 IDCT_3_072 - IDCT_2_562 + IDCT_1_175 - IDCT_1_961));
    V b3 = V_MADD(x13, IDCT_PAIR(IDCT_1_501 - IDCT_0_899 + IDCT_1_175 - IDCT_0_390,
                                 IDCT_1_175));
    out[0] = V_ADD32(a0, b3);
    out[7] = V_SUB32(a0, b3);
    out[1] = V_ADD32(a1, b2);
    out[6] = V_SUB32(a1, b2);
    out[2] = V_ADD32(a2, b1);
    out[5] = V_SUB32(a2, b1);
    out[3] = V_ADD32(a3, b0);
    out[4] = V_SUB32(a3, b0);
}

/* Two rows of four columns -> the pairs of columns (0,2) of both rows, then (1,3). */
IDCT_INLINE V idct_turn_two(V first, V second)
{
    const V pairs =
        V_LANES(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    return V_SHUFFLE8(V_PACK32(V_SRA32(first, IDCT_SHIFT1), V_SRA32(second, IDCT_SHIFT1)),
                      pairs);
}

/* idct_full for blocks whose coefficients are all in the 4x4 corner, a third of them in
 * photographs; from the pairs of rows (0,2) and (1,3). */
IDCT_INLINE void idct_corner(V x02, V x13, V top[8], V bottom[8])
{
    V d[8];
    idct_half_corner(x02, x13, d, IDCT_SHIFT1);
    V a = idct_turn_two(d[0], d[1]), b = idct_turn_two(d[2], d[3]);
    V e = idct_turn_two(d[4], d[5]), f = idct_turn_two(d[6], d[7]);
    idct_half_corner(V_LO64(a, b), V_HI64(a, b), top, IDCT_SHIFT2);
    idct_half_corner(V_LO64(e, f), V_HI64(e, f), bottom, IDCT_SHIFT2);
}

/* Four columns of four rows, not yet shifted -> samples, in each lane by twos: the first two
 * columns of rows 0 to 3, then the other two. The high half of a sum is within 16 bits. */
IDCT_INLINE V idct_samples(const V c[4])
{
    V left = V_SRA16(V_HIGHS(c[0], c[1]), IDCT_SHIFT2 - 16);
    V right = V_SRA16(V_HIGHS(c[2], c[3]), IDCT_SHIFT2 - 16);
    return V_XOR(V_PACK16(left, right), V_SET32((int)0x80808080u));
}

/* Quantisers in the order of the groups, */
IDCT_INLINE void idct_quant(const uint16_t quant[64], V q[8])
{
    for (int i = 0; i < 8; i++) {
        const uint16_t *const at = quant + leat__tile_order[8 * i];
        q[i] = V_LANES(_mm_unpacklo_epi64(
            _mm_loadl_epi64((const __m128i *)(const void *)at),
            _mm_loadl_epi64((const __m128i *)(const void *)(at + 8))));
    }
}

/* and of the rows. */
IDCT_INLINE void idct_quant_rows(const uint16_t quant[64], V q[8])
{
    for (int i = 0; i < 8; i++)
        q[i] = V_LANES(_mm_loadu_si128((const __m128i *)(const void *)(quant + 8 * i)));
}

/* The highest of the first n, at most four, of `last`. */
IDCT_INLINE uint8_t idct_latest(const uint8_t *last, uint32_t n)
{
    uint8_t most = last[0];
    for (uint32_t i = 1; i < n; i++) most = last[i] > most ? last[i] : most;
    return most;
}

/* Sample of a block that is only its mean; `dc` after dequantisation. */
IDCT_INLINE uint8_t idct_flat(int16_t dc)
{
    int32_t v = dc * 4;
    v = v < INT16_MIN ? INT16_MIN : v > INT16_MAX ? INT16_MAX : v;
    v = ((v + 16) >> 5) + 128;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}
