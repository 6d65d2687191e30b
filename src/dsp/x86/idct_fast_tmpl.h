/* SPDX-License-Identifier: Apache-2.0
 *
 * The 16-bit inverse DCT on vectors of 128-bit lanes, included by the AVX2 and the AVX-512 file.
 * 8x8: one block per lane, on vectors V as wide as the ISA has them:
 *
 *   V, V_ADD, V_SUB (16 bits)        V_MUL(v, k)   pmulhrsw by a constant
 *   V_LO16 … V_LO64, V_HI16 … V_HI64 unpack within lanes
 *
 * 4x4: two blocks per lane, four in all, on 256 bits in both.
 */
#include "dsp/idct_fast.h"

#define FAST_INLINE static inline __attribute__((always_inline))

/* Down the rows x[0] .. x[7]; in place. */
FAST_INLINE void fast_pass8(V x[8])
{
    const V e0 = V_MUL(V_ADD(x[0], x[4]), IDCT_FAST_C4);
    const V e1 = V_MUL(V_SUB(x[0], x[4]), IDCT_FAST_C4);
    const V e2 = V_ADD(V_MUL(x[2], IDCT_FAST_C2), V_MUL(x[6], IDCT_FAST_C6));
    const V e3 = V_SUB(V_MUL(x[2], IDCT_FAST_C6), V_MUL(x[6], IDCT_FAST_C2));
    const V a0 = V_ADD(e0, e2), a3 = V_SUB(e0, e2), a1 = V_ADD(e1, e3), a2 = V_SUB(e1, e3);
    const V p = V_ADD(V_MUL(x[1], IDCT_FAST_C1), V_MUL(x[7], IDCT_FAST_C7));
    const V q = V_SUB(V_MUL(x[1], IDCT_FAST_C7), V_MUL(x[7], IDCT_FAST_C1));
    const V r = V_ADD(V_MUL(x[3], IDCT_FAST_C3), V_MUL(x[5], IDCT_FAST_C5));
    const V s = V_SUB(V_MUL(x[5], IDCT_FAST_C3), V_MUL(x[3], IDCT_FAST_C5));
    const V b0 = V_ADD(p, r), b3 = V_ADD(q, s), u = V_SUB(p, r), v = V_SUB(q, s);
    const V b1 = V_MUL(V_ADD(u, v), IDCT_FAST_C4), b2 = V_MUL(V_SUB(u, v), IDCT_FAST_C4);
    x[0] = V_ADD(a0, b0);
    x[7] = V_SUB(a0, b0);
    x[1] = V_ADD(a1, b1);
    x[6] = V_SUB(a1, b1);
    x[2] = V_ADD(a2, b2);
    x[5] = V_SUB(a2, b2);
    x[3] = V_ADD(a3, b3);
    x[4] = V_SUB(a3, b3);
}

FAST_INLINE void fast_turn8(V x[8])
{
    V a[8], b[8];
    for (int i = 0; i < 4; i++) {
        a[2 * i] = V_LO16(x[2 * i], x[2 * i + 1]);
        a[2 * i + 1] = V_HI16(x[2 * i], x[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        b[4 * i] = V_LO32(a[4 * i], a[4 * i + 2]);
        b[4 * i + 1] = V_HI32(a[4 * i], a[4 * i + 2]);
        b[4 * i + 2] = V_LO32(a[4 * i + 1], a[4 * i + 3]);
        b[4 * i + 3] = V_HI32(a[4 * i + 1], a[4 * i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        x[2 * i] = V_LO64(b[i], b[i + 4]);
        x[2 * i + 1] = V_HI64(b[i], b[i + 4]);
    }
}

/* From dequantised rows to columns of sums. */
FAST_INLINE void fast_block8(V x[8])
{
    fast_pass8(x);
    fast_turn8(x);
    fast_pass8(x);
}

/* g: the groups of leat__tile_order -> rows. */
FAST_INLINE void fast_rows_of(const V g[8], V x[8])
{
    static const uint8_t left[4] = {0, 1, 3, 5}, right[4] = {2, 4, 6, 7};
    for (int i = 0; i < 4; i++) {
        x[2 * i] = V_LO64(g[left[i]], g[right[i]]);
        x[2 * i + 1] = V_HI64(g[left[i]], g[right[i]]);
    }
}

/* Quantisers row by row, scaled; for the order of the groups. */
FAST_INLINE __m128i fast_quant_row(const uint16_t quant[64], int row)
{
    return _mm_slli_epi16(_mm_loadu_si128((const __m128i *)(const void *)(quant + 8 * row)),
                          IDCT_FAST_BITS);
}

/* Four blocks that are only their means. */
static void flat_four(int8_t *dst, size_t stride, const int16_t dc[4], uint16_t quant)
{
    uint64_t v[4];
    for (int i = 0; i < 4; i++)
        v[i] = (uint8_t)leat__idct_fast_flat(dc[i], quant) * UINT64_C(0x0101010101010101);
    for (size_t y = 0; y < 8; y++) memcpy(dst + y * stride, v, sizeof v);
}

/* ---- blocks of which only the 4x4 corner of low frequencies is there ---- */

#define H_MUL(v, k) _mm256_mulhrs_epi16(v, _mm256_set1_epi16(k))

/* The pass where rows 4 to 7 are zero; x[0] .. x[3] in, all eight out. For both widths. */
#define FAST_PASS_CORNER(name, T, ADD, SUB, MUL)                                           \
    FAST_INLINE void name(T x[8])                                                          \
    {                                                                                      \
        const T e0 = MUL(x[0], IDCT_FAST_C4);                                              \
        const T e2 = MUL(x[2], IDCT_FAST_C2), e3 = MUL(x[2], IDCT_FAST_C6);                \
        const T a0 = ADD(e0, e2), a3 = SUB(e0, e2), a1 = ADD(e0, e3), a2 = SUB(e0, e3);    \
        const T p = MUL(x[1], IDCT_FAST_C1), q = MUL(x[1], IDCT_FAST_C7);                  \
        const T r = MUL(x[3], IDCT_FAST_C3), s = MUL(x[3], IDCT_FAST_C5);                  \
        const T b0 = ADD(p, r), b3 = SUB(q, s), u = SUB(p, r), v = ADD(q, s);              \
        const T b1 = MUL(ADD(u, v), IDCT_FAST_C4), b2 = MUL(SUB(u, v), IDCT_FAST_C4);      \
        x[0] = ADD(a0, b0);                                                                \
        x[7] = SUB(a0, b0);                                                                \
        x[1] = ADD(a1, b1);                                                                \
        x[6] = SUB(a1, b1);                                                                \
        x[2] = ADD(a2, b2);                                                                \
        x[5] = SUB(a2, b2);                                                                \
        x[3] = ADD(a3, b3);                                                                \
        x[4] = SUB(a3, b3);                                                                \
    }
FAST_PASS_CORNER(fast_corner8, V, V_ADD, V_SUB, V_MUL)
FAST_PASS_CORNER(fast_corner4, __m256i, _mm256_add_epi16, _mm256_sub_epi16, H_MUL)

/* lo, hi: rows 0 and 1, rows 2 and 3 of four blocks, not yet dequantised -> rows, four columns
 * each: of blocks 0 and 1 in the low lane, 2 and 3 in the high one. */
FAST_INLINE void fast_rows4(const __m128i lo[4], const __m128i hi[4], const __m256i quant[2],
                            __m256i x[4])
{
    for (int i = 0; i < 2; i++) {
        const __m128i *const from = i == 0 ? lo : hi;
        const __m256i a = _mm256_mullo_epi16(_mm256_set_m128i(from[2], from[0]), quant[i]);
        const __m256i b = _mm256_mullo_epi16(_mm256_set_m128i(from[3], from[1]), quant[i]);
        x[2 * i] = _mm256_unpacklo_epi64(a, b);
        x[2 * i + 1] = _mm256_unpackhi_epi64(a, b);
    }
}

/* The first pass of four blocks in the order 0, 2, 1, 3, turned: columns 0 to 3 of blocks 0 and
 * 1, and of blocks 2 and 3. */
FAST_INLINE void fast_corner_columns(const __m128i lo[4], const __m128i hi[4],
                                     const __m256i quant[2], __m256i first[4], __m256i second[4])
{
    __m256i x[8], a[4], b[4];
    fast_rows4(lo, hi, quant, x);
    fast_corner4(x);
    for (int i = 0; i < 4; i++) {
        a[i] = _mm256_unpacklo_epi16(x[2 * i], x[2 * i + 1]);
        b[i] = _mm256_unpackhi_epi16(x[2 * i], x[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        const __m256i *const from = i == 0 ? a : b;
        __m256i *const to = i == 0 ? first : second;
        const __m256i top = _mm256_unpacklo_epi32(from[0], from[1]);
        const __m256i bottom = _mm256_unpacklo_epi32(from[2], from[3]);
        const __m256i top2 = _mm256_unpackhi_epi32(from[0], from[1]);
        const __m256i bottom2 = _mm256_unpackhi_epi32(from[2], from[3]);
        to[0] = _mm256_unpacklo_epi64(top, bottom);
        to[1] = _mm256_unpackhi_epi64(top, bottom);
        to[2] = _mm256_unpacklo_epi64(top2, bottom2);
        to[3] = _mm256_unpackhi_epi64(top2, bottom2);
    }
}

/* ---- 4x4 ---- */

FAST_INLINE void fast_pass4(__m256i x[4])
{
    const __m256i a0 = H_MUL(_mm256_add_epi16(x[0], x[2]), IDCT_FAST_C4);
    const __m256i a1 = H_MUL(_mm256_sub_epi16(x[0], x[2]), IDCT_FAST_C4);
    const __m256i b0 = _mm256_add_epi16(H_MUL(x[1], IDCT_FAST_C2), H_MUL(x[3], IDCT_FAST_C6));
    const __m256i b1 = _mm256_sub_epi16(H_MUL(x[1], IDCT_FAST_C6), H_MUL(x[3], IDCT_FAST_C2));
    x[0] = _mm256_add_epi16(a0, b0);
    x[3] = _mm256_sub_epi16(a0, b0);
    x[1] = _mm256_add_epi16(a1, b1);
    x[2] = _mm256_sub_epi16(a1, b1);
}

FAST_INLINE void fast_turn4(__m256i x[4])
{
    const __m256i a = _mm256_unpacklo_epi16(x[0], x[1]), b = _mm256_unpackhi_epi16(x[0], x[1]);
    const __m256i c = _mm256_unpacklo_epi16(x[2], x[3]), d = _mm256_unpackhi_epi16(x[2], x[3]);
    const __m256i e = _mm256_unpacklo_epi32(a, c), f = _mm256_unpackhi_epi32(a, c);
    const __m256i g = _mm256_unpacklo_epi32(b, d), h = _mm256_unpackhi_epi32(b, d);
    x[0] = _mm256_unpacklo_epi64(e, g);
    x[1] = _mm256_unpackhi_epi64(e, g);
    x[2] = _mm256_unpacklo_epi64(f, h);
    x[3] = _mm256_unpackhi_epi64(f, h);
}

FAST_INLINE void fast_store4(int8_t *dst, size_t stride, __m256i rows)
{
    _mm_storeu_si128((__m128i *)(void *)dst, _mm256_castsi256_si128(rows));
    _mm_storeu_si128((__m128i *)(void *)(dst + stride), _mm256_extracti128_si256(rows, 1));
}

/* lo, hi: rows 0 and 1, rows 2 and 3 of four blocks, not yet dequantised, each 128 bits. */
FAST_INLINE void fast_block4(int8_t *dst, size_t stride, const __m128i lo[4], const __m128i hi[4],
                             const __m256i quant[2])
{
    const __m256i order = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 8, 4, 12, 1, 9, 5, 13, 2, 10, 6, 14, 3, 11, 7, 15));
    __m256i x[4];
    fast_rows4(lo, hi, quant, x);
    fast_pass4(x);
    fast_turn4(x);
    fast_pass4(x);
    for (int i = 0; i < 4; i++) x[i] = H_MUL(x[i], 1 << (15 - IDCT_FAST_SHIFT));
    /* columns 0, 1 and 2, 3 side by side, row by row, then all four */
    const __m256i left = _mm256_shuffle_epi8(_mm256_packs_epi16(x[0], x[1]), order);
    const __m256i right = _mm256_shuffle_epi8(_mm256_packs_epi16(x[2], x[3]), order);
    const __m256i top = _mm256_unpacklo_epi16(left, right);
    const __m256i bottom = _mm256_unpackhi_epi16(left, right);
    fast_store4(dst, stride, _mm256_permute4x64_epi64(top, 0xd8));
    fast_store4(dst + 2 * stride, stride, _mm256_permute4x64_epi64(bottom, 0xd8));
}

/* Quantisers of rows 2i and 2i+1, four columns each. */
FAST_INLINE __m256i fast_quant4(const uint16_t quant[64], int i)
{
    return _mm256_broadcastsi128_si256(
        _mm_unpacklo_epi64(fast_quant_row(quant, 2 * i), fast_quant_row(quant, 2 * i + 1)));
}

FAST_INLINE __m128i fast_two_rows4(const int16_t *row)
{
    return _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)(const void *)row),
                              _mm_loadl_epi64((const __m128i *)(const void *)(row + 8)));
}

static void fast_plain4(int8_t *dst, size_t stride, const int16_t *blocks, const uint8_t *last,
                        uint32_t count, const uint16_t quant[64])
{
    const __m256i q[2] = {fast_quant4(quant, 0), fast_quant4(quant, 1)};
    for (uint32_t b = 0; b < count; b += 4, dst += 16, blocks += 256) {
        __m128i lo[4], hi[4];
        for (int i = 0; i < 4; i++) {
            lo[i] = fast_two_rows4(blocks + 64 * i);
            hi[i] = fast_two_rows4(blocks + 64 * i + 16);
        }
        fast_block4(dst, stride, lo, hi, q);
    }
}
