/* SPDX-License-Identifier: Apache-2.0
 *
 * The inverse DCT on vectors of 128-bit lanes, one block per lane: included by the AVX2 file
 * (two lanes) and the AVX-512 file (four), which define the operations:
 *
 *   V            vector type                      V_SET32(x)        x in every 32 bits
 *   V_MADD       pmaddwd                          V_ADD32, V_SUB32, V_ADD16
 *   V_SRA32(v,n) arithmetic shift right           V_PACK32, V_PACK16  with signed saturation
 *   V_LO16, V_HI16, V_LO32, V_HI32, V_LO64, V_HI64   unpack within lanes
 *   V_SHUFFLE8   pshufb                           V_LANES(x)        a 128-bit value in each lane
 *
 * pmaddwd does two products and their sum; all sums are modulo 2^32, so the order in which
 * they are taken does not matter and constants can be merged.
 */
#define IDCT_INLINE static inline __attribute__((always_inline))
#define IDCT_PAIR(a, b) V_SET32((int)((uint32_t)(uint16_t)(a) | (uint32_t)(uint16_t)(b) << 16))

/* Four of the eight columns of a pass: x[i] holds (row a, row b) pairs as said. */
IDCT_INLINE void idct_half(V x26, V x04, V x71, V x53, V z34, V out[8], const int shift)
{
    const V round = V_SET32(1 << (shift - 1));
    V even2 = V_MADD(x26, IDCT_PAIR(IDCT_0_541, IDCT_0_541 - IDCT_1_847));
    V even3 = V_MADD(x26, IDCT_PAIR(IDCT_0_541 + IDCT_0_765, IDCT_0_541));
    V even0 = V_ADD32(V_MADD(x04, IDCT_PAIR(IDCT_ONE, IDCT_ONE)), round);
    V even1 = V_ADD32(V_MADD(x04, IDCT_PAIR(IDCT_ONE, -IDCT_ONE)), round);
    V a0 = V_ADD32(even0, even3), a3 = V_SUB32(even0, even3);
    V a1 = V_ADD32(even1, even2), a2 = V_SUB32(even1, even2);

    V y3 = V_MADD(z34, IDCT_PAIR(IDCT_1_175 - IDCT_1_961, IDCT_1_175));
    V y4 = V_MADD(z34, IDCT_PAIR(IDCT_1_175, IDCT_1_175 - IDCT_0_390));
    V b0 = V_ADD32(V_MADD(x71, IDCT_PAIR(IDCT_0_298 - IDCT_0_899, -IDCT_0_899)), y3);
    V b3 = V_ADD32(V_MADD(x71, IDCT_PAIR(-IDCT_0_899, IDCT_1_501 - IDCT_0_899)), y4);
    V b1 = V_ADD32(V_MADD(x53, IDCT_PAIR(IDCT_2_053 - IDCT_2_562, -IDCT_2_562)), y4);
    V b2 = V_ADD32(V_MADD(x53, IDCT_PAIR(-IDCT_2_562, IDCT_3_072 - IDCT_2_562)), y3);

    out[0] = V_SRA32(V_ADD32(a0, b3), shift);
    out[7] = V_SRA32(V_SUB32(a0, b3), shift);
    out[1] = V_SRA32(V_ADD32(a1, b2), shift);
    out[6] = V_SRA32(V_SUB32(a1, b2), shift);
    out[2] = V_SRA32(V_ADD32(a2, b1), shift);
    out[5] = V_SRA32(V_SUB32(a2, b1), shift);
    out[3] = V_SRA32(V_ADD32(a3, b0), shift);
    out[4] = V_SRA32(V_SUB32(a3, b0), shift);
}

/* One pass over all eight columns, 16 bits in and out. */
IDCT_INLINE void idct_pass(V r[8], const int shift)
{
    V low[8], high[8];
    V z3 = V_ADD16(r[7], r[3]), z4 = V_ADD16(r[5], r[1]);
    idct_half(V_LO16(r[2], r[6]), V_LO16(r[0], r[4]), V_LO16(r[7], r[1]), V_LO16(r[5], r[3]),
              V_LO16(z3, z4), low, shift);
    idct_half(V_HI16(r[2], r[6]), V_HI16(r[0], r[4]), V_HI16(r[7], r[1]), V_HI16(r[5], r[3]),
              V_HI16(z3, z4), high, shift);
    for (int i = 0; i < 8; i++) r[i] = V_PACK32(low[i], high[i]);
}

IDCT_INLINE void idct_transpose(V r[8])
{
    V a0 = V_LO16(r[0], r[1]), a1 = V_HI16(r[0], r[1]), a2 = V_LO16(r[2], r[3]);
    V a3 = V_HI16(r[2], r[3]), a4 = V_LO16(r[4], r[5]), a5 = V_HI16(r[4], r[5]);
    V a6 = V_LO16(r[6], r[7]), a7 = V_HI16(r[6], r[7]);
    V b0 = V_LO32(a0, a2), b1 = V_HI32(a0, a2), b2 = V_LO32(a1, a3), b3 = V_HI32(a1, a3);
    V b4 = V_LO32(a4, a6), b5 = V_HI32(a4, a6), b6 = V_LO32(a5, a7), b7 = V_HI32(a5, a7);
    r[0] = V_LO64(b0, b4);
    r[1] = V_HI64(b0, b4);
    r[2] = V_LO64(b1, b5);
    r[3] = V_HI64(b1, b5);
    r[4] = V_LO64(b2, b6);
    r[5] = V_HI64(b2, b6);
    r[6] = V_LO64(b3, b7);
    r[7] = V_HI64(b3, b7);
}

/* idct_half where rows 4 to 7 are zero; x02 and x13 are pairs of rows. */
IDCT_INLINE void idct_half_corner(V x02, V x13, V out[8], const int shift)
{
    const V round = V_SET32(1 << (shift - 1));
    V a0 = V_ADD32(V_MADD(x02, IDCT_PAIR(IDCT_ONE, IDCT_0_541 + IDCT_0_765)), round);
    V a3 = V_ADD32(V_MADD(x02, IDCT_PAIR(IDCT_ONE, -IDCT_0_541 - IDCT_0_765)), round);
    V a1 = V_ADD32(V_MADD(x02, IDCT_PAIR(IDCT_ONE, IDCT_0_541)), round);
    V a2 = V_ADD32(V_MADD(x02, IDCT_PAIR(IDCT_ONE, -IDCT_0_541)), round);
    V b0 = V_MADD(x13, IDCT_PAIR(IDCT_1_175 - IDCT_0_899, IDCT_1_175 - IDCT_1_961));
    V b1 = V_MADD(x13, IDCT_PAIR(IDCT_1_175 - IDCT_0_390, IDCT_1_175 - IDCT_2_562));
    V b2 = V_MADD(x13, IDCT_PAIR(IDCT_1_175,
                                 IDCT_3_072 - IDCT_2_562 + IDCT_1_175 - IDCT_1_961));
    V b3 = V_MADD(x13, IDCT_PAIR(IDCT_1_501 - IDCT_0_899 + IDCT_1_175 - IDCT_0_390,
                                 IDCT_1_175));
    out[0] = V_SRA32(V_ADD32(a0, b3), shift);
    out[7] = V_SRA32(V_SUB32(a0, b3), shift);
    out[1] = V_SRA32(V_ADD32(a1, b2), shift);
    out[6] = V_SRA32(V_SUB32(a1, b2), shift);
    out[2] = V_SRA32(V_ADD32(a2, b1), shift);
    out[5] = V_SRA32(V_SUB32(a2, b1), shift);
    out[3] = V_SRA32(V_ADD32(a3, b0), shift);
    out[4] = V_SRA32(V_SUB32(a3, b0), shift);
}

/* Both passes for blocks whose coefficients are all in the 4x4 corner, a third of them in
 * photographs. r[0..3]: rows 0 to 3, columns 0 to 3 in the low halves of the lanes. Leaves
 * columns, as two full passes with a transposition between them do. */
IDCT_INLINE void idct_corner(V r[8])
{
    V d[8], e[8];
    idct_half_corner(V_LO16(r[0], r[2]), V_LO16(r[1], r[3]), d, IDCT_SHIFT1);
    /* Eight rows of four columns -> four columns of eight rows. */
    V p0 = V_PACK32(d[0], d[1]), p1 = V_PACK32(d[2], d[3]);
    V p2 = V_PACK32(d[4], d[5]), p3 = V_PACK32(d[6], d[7]);
    V a = V_LO16(p0, p1), b = V_HI16(p0, p1), c = V_LO16(p2, p3), f = V_HI16(p2, p3);
    V c01_low = V_LO16(a, b), c23_low = V_HI16(a, b);
    V c01_high = V_LO16(c, f), c23_high = V_HI16(c, f);
    V c0 = V_LO64(c01_low, c01_high), c1 = V_HI64(c01_low, c01_high);
    V c2 = V_LO64(c23_low, c23_high), c3 = V_HI64(c23_low, c23_high);
    idct_half_corner(V_LO16(c0, c2), V_LO16(c1, c3), d, IDCT_SHIFT2);
    idct_half_corner(V_HI16(c0, c2), V_HI16(c1, c3), e, IDCT_SHIFT2);
    for (int i = 0; i < 8; i++) r[i] = V_PACK32(d[i], e[i]);
}

/* Eight columns of 16 bits -> bytes in rows: out[i] has rows 2i and 2i + 1 in each lane. */
IDCT_INLINE void idct_bytes(const V r[8], V out[4])
{
    const V pairs =
        V_LANES(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
    const V middle = V_SET32((int)0x80808080u);
    V p[4];
    for (int i = 0; i < 4; i++)
        p[i] = V_SHUFFLE8(V_ADD8(V_PACK16(r[2 * i], r[2 * i + 1]), middle), pairs);
    V a = V_LO16(p[0], p[1]), b = V_HI16(p[0], p[1]);
    V c = V_LO16(p[2], p[3]), d = V_HI16(p[2], p[3]);
    out[0] = V_LO32(a, c);
    out[1] = V_HI32(a, c);
    out[2] = V_LO32(b, d);
    out[3] = V_HI32(b, d);
}

/* Groups of a bitmap (two rows of four) -> rows: see leat__tile_order. */
IDCT_INLINE void idct_rows_of_groups(const V g[8], V r[8])
{
    r[0] = V_LO64(g[0], g[2]);
    r[1] = V_HI64(g[0], g[2]);
    r[2] = V_LO64(g[1], g[4]);
    r[3] = V_HI64(g[1], g[4]);
    r[4] = V_LO64(g[3], g[6]);
    r[5] = V_HI64(g[3], g[6]);
    r[6] = V_LO64(g[5], g[7]);
    r[7] = V_HI64(g[5], g[7]);
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
