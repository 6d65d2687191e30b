/* SPDX-License-Identifier: Apache-2.0
 *
 * The component resize on vectors, included by the AVX2 and the AVX-512 file, which define
 *
 *   V, V_BYTES   vector type and its size      V_SET16(x)          x in every 16 bits
 *   V_LOAD(p), V_STORE(p, v)  unaligned        V_ADD, V_SUB        16 bits
 *   V_DOT(w, s)  pmaddubsw: unsigned weights,  V_MUL(v, k)         pmulhrsw by a constant
 *                signed samples                V_SRA(v, n)         16 bits
 *   V_LO8, V_HI8 unpack within lanes           V_PACK, V_PACKU     to signed, unsigned bytes
 *   V_ZERO, V_XOR
 */
#include <string.h>

#define YCC_INLINE static inline __attribute__((always_inline))

/* ---- vertical ---- */

/* The sums of V_BYTES pixels, in the order of the unpacks; the packs restore the order. */
typedef struct ycc_sums {
    V lo, hi;
} ycc_sums;

/* Returns the weights of a pair of rows. */
YCC_INLINE V ycc_weights(const leat__ycc_taps *t, uint32_t pair)
{
    return V_SET16((short)t->weight[pair * t->step]);
}

YCC_INLINE ycc_sums ycc_pair_at(const leat__ycc_taps *t, uint32_t pair, V weights, size_t x)
{
    const int8_t *const at = t->rows + 2 * pair * t->pitch + x;
    const V a = V_LOAD(at), b = V_LOAD(at + t->pitch);
    return (ycc_sums){V_DOT(weights, V_LO8(a, b)), V_DOT(weights, V_HI8(a, b))};
}

/* Sums all pairs of rows. `pairs` is a constant 1, 2, or 0 = any; w: the weights of the first two. */
YCC_INLINE ycc_sums ycc_sums_at(const leat__ycc_taps *t, const V w[2], const uint32_t pairs, size_t x)
{
    ycc_sums all = ycc_pair_at(t, 0, w[0], x);
    for (uint32_t p = 1; p < (pairs ? pairs : t->pairs); p++) {
        const ycc_sums more = ycc_pair_at(t, p, pairs ? w[p] : ycc_weights(t, p), x);
        all.lo = V_ADD(all.lo, more.lo);
        all.hi = V_ADD(all.hi, more.hi);
    }
    return all;
}

YCC_INLINE V ycc_grey_at(const leat__ycc_taps *y, size_t x)
{
    const V w[2] = {ycc_weights(y, 0)};
    const ycc_sums s = ycc_sums_at(y, w, 0, x);
    return V_XOR(V_PACK(V_MUL(s.lo, LEAT__YCC_ROUND8), V_MUL(s.hi, LEAT__YCC_ROUND8)),
                 V_SET16((short)0x8080));
}

/* Computes red, green and blue of half a vector of pixels, in 16 bits. */
YCC_INLINE void ycc_rgb_of(V y, V cb, V cr, V out[3])
{
    const V luma = V_ADD(V_MUL(y, LEAT__YCC_ROUND4), V_SET16(LEAT__YCC_BIAS));
    const V green = V_ADD(V_MUL(cb, LEAT__YCC_GREEN_CB), V_MUL(cr, LEAT__YCC_GREEN_CR));
    out[0] = V_SRA(V_ADD(luma, V_MUL(cr, LEAT__YCC_RED)), 4);
    out[1] = V_SRA(V_SUB(luma, green), 4);
    out[2] = V_SRA(V_ADD(luma, V_MUL(cb, LEAT__YCC_BLUE)), 4);
}

/* Returns the position of the next vector. The last one ends with the row and repeats some pixels of the
 * previous one; only rows shorter than a vector are clipped. */
YCC_INLINE size_t ycc_next(size_t x, size_t n)
{
    return x + V_BYTES < n && x + 2 * V_BYTES > n ? n - V_BYTES : x + V_BYTES;
}

YCC_INLINE void ycc_store(uint8_t *dst, V v, size_t left)
{
    uint8_t some[V_BYTES];
    if (left >= V_BYTES) {
        V_STORE(dst, v);
        return;
    }
    V_STORE(some, v);
    memcpy(dst, some, left);
}

static void ycc_grey(const leat__ycc_taps *y, uint8_t *dst, size_t n)
{
    for (size_t x = 0; x < n; x = ycc_next(x, n)) ycc_store(dst + x, ycc_grey_at(y, x), n - x);
}

/* Computes one RGB row. luma, chroma: their `pairs`, as in ycc_sums_at. */
YCC_INLINE void ycc_colour_of(const leat__ycc_taps comp[3], uint8_t *const dst[3], size_t n,
                              const uint32_t luma, const uint32_t chroma)
{
    V w[3][2];
    for (int c = 0; c < 3; c++)
        for (uint32_t p = 0; p < 2; p++) w[c][p] = ycc_weights(&comp[c], p < comp[c].pairs ? p : 0);
    for (size_t x = 0; x < n; x = ycc_next(x, n)) {
        V lo[3], hi[3];
        const ycc_sums y = ycc_sums_at(&comp[0], w[0], luma, x);
        const ycc_sums cb = ycc_sums_at(&comp[1], w[1], chroma, x);
        const ycc_sums cr = ycc_sums_at(&comp[2], w[2], chroma, x);
        ycc_rgb_of(y.lo, cb.lo, cr.lo, lo);
        ycc_rgb_of(y.hi, cb.hi, cr.hi, hi);
        for (int c = 0; c < 3; c++) ycc_store(dst[c] + x, V_PACKU(lo[c], hi[c]), n - x);
    }
}

static void ycc_colour(const leat__ycc_taps comp[3], uint8_t *const dst[3], size_t n)
{
    const uint32_t luma = comp[0].pairs, chroma = comp[1].pairs;
    if (luma > 2 || chroma > 2) ycc_colour_of(comp, dst, n, 0, 0);
    else if (luma == 1 && chroma == 1) ycc_colour_of(comp, dst, n, 1, 1);
    else if (luma == 1) ycc_colour_of(comp, dst, n, 1, 2);
    else if (chroma == 1) ycc_colour_of(comp, dst, n, 2, 1);
    else ycc_colour_of(comp, dst, n, 2, 2);
}

/* ---- horizontal ---- */

/* Resizes one or two rows (a constant), so that weights are loaded once for both. Defined by the ISA's
 * file. */
YCC_INLINE void some_rows(const leat__ycc_axis *a, const uint8_t *const src[2], int8_t *const dst[2],
                          const uint32_t rows);

/* Resizes a row whose outputs are too far apart for a shuffle. */
static void ycc_far_row(const leat__ycc_axis *a, const uint8_t *src, int8_t *dst)
{
    for (uint32_t j = 0; j < a->count; j++) {
        const uint8_t *s = src + a->first[j];
        const uint16_t *w = a->weight + j;
        int32_t sum = 0;
        for (uint32_t p = 0; p < a->pairs; p++, s += 2, w += a->stride)
            sum += (*w & 255) * (s[0] - 128) + (*w >> 8) * (s[1] - 128);
        dst[j] = (int8_t)((sum + 128) >> 8);
    }
}

static void ycc_across(const leat__ycc_axis *a, uint32_t rows, const uint8_t *src, size_t src_stride,
                       int8_t *dst, size_t dst_stride)
{
    for (; rows > 0 && a->loads == 0; rows--, src += src_stride, dst += dst_stride) ycc_far_row(a, src, dst);
    for (; rows > 0; src += 2 * src_stride, dst += 2 * dst_stride) {
        const uint8_t *const from[2] = {src, src + src_stride};
        int8_t *const to[2] = {dst, dst + dst_stride};
        if (rows >= 2) some_rows(a, from, to, 2);
        else some_rows(a, from, to, 1);
        rows -= rows >= 2 ? 2 : 1;
    }
}
