/* SPDX-License-Identifier: Apache-2.0
 *
 * Upsampling and colour conversion on vectors. Included by the AVX2 and the AVX-512 file, which define
 *
 *   V, V_BYTES            vector type, its size          V_LOAD, V_STORE     unaligned
 *   V_WIDEN(p)            V_BYTES / 2 bytes at p as 16-bit numbers
 *   V_SET16, V_SET32, V_ZERO, V_ADD16, V_SUB16, V_MULHRS, V_DOT(sum, a, b) sum + pmaddwd,
 *   V_SRL16(v, n), V_SLL16(v, n), V_SRA32(v, n), V_OR, V_LO8, V_HI8, V_LO16, V_HI16,
 *   V_PACK32 (signed), V_PACKUS (unsigned)
 *   YCC_NAME(x)           name of a variant
 *
 * Unpacking and packing stay within lanes of 128 bits and undo each other.
 */
#define YCC_INLINE static inline __attribute__((always_inline))

enum { STEP = V_BYTES / 2 };

YCC_INLINE V times3(V v)
{
    return V_ADD16(v, V_ADD16(v, v));
}

/* Stores two outputs per sample: the even one also depends on the left neighbour, the odd one on the
 * right. */
YCC_INLINE void store_both(uint8_t *out, V here3, V left, V right, V bias_even, V bias_odd, const int shift)
{
    V even = V_SRL16(V_ADD16(V_ADD16(here3, left), bias_even), shift);
    V odd = V_SRL16(V_ADD16(V_ADD16(here3, right), bias_odd), shift);
    V_STORE(out, V_OR(even, V_SLL16(odd, 8)));
}

H2V1_VARIANT(YCC_NAME(up_h2v1))
{
    for (uint32_t i = 0; i < n; i += STEP)
        store_both(out + 2 * i, times3(V_WIDEN(in + i)), V_WIDEN(in + i - 1), V_WIDEN(in + i + 1), V_SET16(1),
                   V_SET16(2), 2);
}

YCC_INLINE V column_sum(const uint8_t *near, const uint8_t *far)
{
    return V_ADD16(times3(V_WIDEN(near)), V_WIDEN(far));
}

H2V2_VARIANT(YCC_NAME(up_h2v2))
{
    for (uint32_t i = 0; i < n; i += STEP)
        store_both(out + 2 * i, times3(column_sum(near + i, far + i)), column_sum(near + i - 1, far + i - 1),
                   column_sum(near + i + 1, far + i + 1), V_SET16(8), V_SET16(7), 4);
}

H1V2_VARIANT(YCC_NAME(up_h1v2))
{
    const V zero = V_ZERO, add = V_SET16((short)bias);
    for (uint32_t i = 0; i < n; i += V_BYTES) {
        V a = V_LOAD(near + i), b = V_LOAD(far + i);
        V low = V_ADD16(V_ADD16(times3(V_LO8(a, zero)), V_LO8(b, zero)), add);
        V high = V_ADD16(V_ADD16(times3(V_HI8(a, zero)), V_HI8(b, zero)), add);
        V_STORE(out + i, V_PACKUS(V_SRL16(low, 2), V_SRL16(high, 2)));
    }
}

typedef struct rgb16 {
    V r, g, b;
} rgb16;

/* Converts to RGB. 1.402 = 1 + 0.402 and 1.772 = 2 - 0.228 have 15 fraction bits, -0.714 = 0.286 - 1 has 16.
 * So products fit 16 bits, and rounded they equal those of the portable version for all 256 values. */
YCC_INLINE rgb16 convert(V y, V cb, V cr)
{
    const V middle = V_SET16(128), half = V_SET32(1 << 15);
    const V green = V_SET32((int)((uint32_t)(uint16_t)-22554 | (uint32_t)18734 << 16));
    V u = V_SUB16(cb, middle), v = V_SUB16(cr, middle);
    V g0 = V_SRA32(V_DOT(half, V_LO16(u, v), green), 16);
    V g1 = V_SRA32(V_DOT(half, V_HI16(u, v), green), 16);
    V red = V_ADD16(v, V_MULHRS(v, V_SET16(13173)));
    V blue = V_ADD16(V_ADD16(u, u), V_MULHRS(u, V_SET16(-7471)));
    return (rgb16){
        .r = V_ADD16(y, red),
        .g = V_ADD16(y, V_SUB16(V_PACK32(g0, g1), v)),
        .b = V_ADD16(y, blue),
    };
}

RGB_VARIANT(YCC_NAME(ycc_rgb))
{
    const V zero = V_ZERO;
    for (uint32_t i = 0; i < n; i += V_BYTES) {
        V yv = V_LOAD(y + i), cbv = V_LOAD(cb + i), crv = V_LOAD(cr + i);
        rgb16 low = convert(V_LO8(yv, zero), V_LO8(cbv, zero), V_LO8(crv, zero));
        rgb16 high = convert(V_HI8(yv, zero), V_HI8(cbv, zero), V_HI8(crv, zero));
        V_STORE(r + i, V_PACKUS(low.r, high.r));
        V_STORE(g + i, V_PACKUS(low.g, high.g));
        V_STORE(b + i, V_PACKUS(low.b, high.b));
    }
}
