/* SPDX-License-Identifier: Apache-2.0
 *
 * Resize with AVX-512 VNNI and VBMI. A 22-bit weight is split into three signed bytes, so that one
 * instruction multiplies four pixels by one byte of their weights and adds them up. Three of these sums,
 * shifted and added, are the exact 32-bit sum.
 *
 * Horizontal: 16 outputs per vector. A byte permutation collects the next four pixels of each output from
 * 64 or 128 bytes of the row. Outputs further apart (shrinking more than about 7 times) are computed one by
 * one, 64 taps at a time.
 */
#include <immintrin.h>
#include <string.h>

#include "dsp/x86/resize_x86.h"
#include "dsp/x86/weights_x86.h"

#define HALF_TOP (1 << (LEAT__RESIZE_BITS - 1 - 16)) /* one half, in units of the top byte */

/* The start of a horizontal `packed`; records of the vectors follow. */
typedef struct h_head {
    uint32_t groups;  /* of four taps */
    uint32_t vectors; /* of sixteen outputs */
    uint32_t mode;    /* H_ONE, H_TWO, H_WIDE */
    uint32_t record;  /* bytes from one vector to the next, or from one output to the next when wide */
    uint8_t reserved[48];
} h_head;
enum { H_ONE, H_TWO, H_WIDE };

/* How to compute 16 outputs: load pixels at `base`, select the bytes `take`, multiply by the
 * weights, three vectors (digits) per group of taps. */
typedef struct h_vector {
    int32_t base;
    uint8_t reserved[60];
    __m512i take;
    __m512i weight[];
} h_vector;

static inline uint32_t groups_of(uint32_t taps)
{
    return (taps + 3) / 4;
}

static size_t pack_bytes(const leat__axis *a, bool vertical)
{
    const size_t groups = groups_of(a->taps);
    if (vertical) return (size_t)a->count * groups * 3 * sizeof(uint32_t);
    const size_t narrow = (a->stride / 16) * (sizeof(h_vector) + groups * 3 * 64);
    const size_t wide = (size_t)a->count * 3 * ((a->taps + 63) & ~63u);
    return sizeof(h_head) + (narrow > wide ? narrow : wide);
}

/* Splits the weights of taps 4g .. 4g+3 of outputs j .. j+15 into three vectors of four bytes each. */
static inline void split(const leat__axis *a, uint32_t g, uint32_t j, __m512i digit[3])
{
    const __m512i byte = _mm512_set1_epi32(255);
    digit[0] = digit[1] = digit[2] = _mm512_setzero_si512();
    for (int t = 3; t >= 0; t--) {
        __m512i k = _mm512_loadu_si512(a->weight + (size_t)(4 * g + t) * a->stride + j);
        for (int d = 0; d < 3; d++) {
            const __m512i low = _mm512_srai_epi32(_mm512_slli_epi32(k, 24), 24);
            digit[d] = _mm512_or_si512(_mm512_slli_epi32(digit[d], 8), _mm512_and_si512(low, byte));
            k = _mm512_srai_epi32(_mm512_sub_epi32(k, low), 8);
        }
    }
}

static void pack_vertical(const leat__axis *a, uint32_t *out)
{
    const uint32_t groups = groups_of(a->taps);
    for (uint32_t j = 0; j < a->count; j += 16) {
        const uint32_t n = a->count - j < 16 ? a->count - j : 16;
        for (uint32_t g = 0; g < groups; g++) {
            __m512i digit[3];
            uint32_t k[3][16];
            split(a, g, j, digit);
            for (int d = 0; d < 3; d++) _mm512_storeu_si512(k[d], digit[d]);
            for (uint32_t i = 0; i < n; i++)
                for (int d = 0; d < 3; d++) out[((j + i) * groups + g) * 3 + d] = k[d][i];
        }
    }
}

/* Returns the lowest input of 16 outputs, moved back if the load would exceed the row's slack. */
static inline int32_t base_of(const leat__axis *a, uint32_t j, uint32_t groups, int32_t load)
{
    const int32_t width = (int32_t)(a->hi - a->lo);
    const int32_t last = width + LEAT__RESIZE_SLACK - load - 4 * (int32_t)(groups - 1);
    const int32_t lowest = (int32_t)_mm512_reduce_min_epu32(_mm512_loadu_si512(a->first + j));
    return lowest < last ? lowest : last;
}

/* True when all vectors find their pixels within `load` bytes. */
static bool reach(const leat__axis *a, uint32_t groups, int32_t load)
{
    for (uint32_t j = 0; j < a->stride; j += 16) {
        const int32_t base = base_of(a, j, groups, load);
        const int32_t highest = (int32_t)_mm512_reduce_max_epu32(_mm512_loadu_si512(a->first + j));
        if (base < -LEAT__RESIZE_SLACK || highest - base + 4 > load) return false;
    }
    return true;
}

static void pack_wide(const leat__axis *a, h_head *head)
{
    const size_t taps64 = (a->taps + 63) & ~63u;
    uint8_t *const out = (uint8_t *)(head + 1);
    head->mode = H_WIDE;
    head->record = (uint32_t)(3 * taps64);
    memset(out, 0, a->count * 3 * taps64);
    for (uint32_t j = 0; j < a->count; j++)
        for (uint32_t t = 0; t < a->taps_of[j]; t++) {
            int32_t k = a->weight[(size_t)t * a->stride + j];
            for (int d = 0; d < 3; d++) {
                out[(j * 3 + (size_t)d) * taps64 + t] = (uint8_t)k;
                k = (k - (int8_t)k) >> 8;
            }
        }
}

static void pack_horizontal(const leat__axis *a, h_head *head)
{
    const uint32_t groups = groups_of(a->taps);
    *head = (h_head){.groups = groups,
                     .vectors = a->stride / 16,
                     .record = (uint32_t)(sizeof(h_vector) + groups * 3 * 64)};
    if (reach(a, groups, 64)) {
        head->mode = H_ONE;
    } else if (reach(a, groups, 128)) {
        head->mode = H_TWO;
    } else {
        pack_wide(a, head);
        return;
    }
    const __m512i four = _mm512_set1_epi32(0x03020100), ones = _mm512_set1_epi32(0x01010101);
    uint8_t *at = (uint8_t *)(head + 1);
    for (uint32_t j = 0; j < a->stride; j += 16, at += head->record) {
        h_vector *const v = (h_vector *)at;
        v->base = base_of(a, j, groups, head->mode == H_ONE ? 64 : 128);
        const __m512i first = _mm512_sub_epi32(_mm512_loadu_si512(a->first + j), _mm512_set1_epi32(v->base));
        v->take = _mm512_add_epi32(_mm512_mullo_epi32(first, ones), four);
        for (uint32_t g = 0; g < groups; g++) split(a, g, j, &v->weight[3 * g]);
    }
}

static void pack(const leat__axis *a, bool vertical, void *packed)
{
    if (vertical) pack_vertical(a, packed);
    else pack_horizontal(a, packed);
}

/* ---- horizontal ---- */

static inline __attribute__((always_inline)) __m512i pixels_of(const h_vector *v, const uint8_t *src,
                                                               bool two)
{
    const __m512i low = _mm512_loadu_si512(src);
    if (!two) return _mm512_permutexvar_epi8(v->take, low);
    return _mm512_permutex2var_epi8(low, v->take, _mm512_loadu_si512(src + 64));
}

/* Computes sixteen sums of each of `rows` rows, shifted down, not yet clipped. `rows` is a constant 1 or 3,
 * `groups` a constant 1, 2, or 0 = any. */
static inline __attribute__((always_inline)) void sums_of(const h_head *h, const h_vector *v,
                                                          const uint8_t *const *src, __m512i sum[3],
                                                          const uint32_t rows, const uint32_t groups,
                                                          const bool two)
{
    if (groups == 1 || groups == 2) {
        /* few taps: shift between the digits instead of keeping three sums */
        for (uint32_t i = 0; i < rows; i++) {
            const uint8_t *const s = src[i] + v->base;
            __m512i px[2], all = _mm512_set1_epi32(HALF_TOP);
            for (uint32_t g = 0; g < groups; g++) px[g] = pixels_of(v, s + 4 * g, two);
            for (int d = 2; d >= 0; d--) {
                for (uint32_t g = 0; g < groups; g++)
                    all = _mm512_dpbusd_epi32(all, px[g], v->weight[3 * g + (uint32_t)d]);
                if (d > 0) all = _mm512_slli_epi32(all, 8);
            }
            sum[i] = all;
        }
    } else {
        __m512i mid[3], low[3];
        for (uint32_t i = 0; i < rows; i++) {
            sum[i] = _mm512_set1_epi32(HALF_TOP);
            mid[i] = low[i] = _mm512_setzero_si512();
        }
        for (uint32_t g = 0; g < h->groups; g++)
            for (uint32_t i = 0; i < rows; i++) {
                const __m512i px = pixels_of(v, src[i] + v->base + 4 * g, two);
                low[i] = _mm512_dpbusd_epi32(low[i], px, v->weight[3 * g]);
                mid[i] = _mm512_dpbusd_epi32(mid[i], px, v->weight[3 * g + 1]);
                sum[i] = _mm512_dpbusd_epi32(sum[i], px, v->weight[3 * g + 2]);
            }
        for (uint32_t i = 0; i < rows; i++) {
            sum[i] = _mm512_add_epi32(_mm512_slli_epi32(sum[i], 8), mid[i]);
            sum[i] = _mm512_add_epi32(_mm512_slli_epi32(sum[i], 8), low[i]);
        }
    }
    for (uint32_t i = 0; i < rows; i++) sum[i] = _mm512_srai_epi32(sum[i], LEAT__RESIZE_BITS);
}

/* Clips 4 x 16 sums to 64 bytes in order. */
static inline __m512i clip64(__m512i a, __m512i b, __m512i c, __m512i d)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(
        order, _mm512_packus_epi16(_mm512_packus_epi32(a, b), _mm512_packus_epi32(c, d)));
}

static inline __attribute__((always_inline)) void rows_of(const h_head *h, const uint8_t *const *src,
                                                          uint8_t *const *dst, const uint32_t rows,
                                                          const uint32_t groups, const bool two)
{
    const uint8_t *at = (const uint8_t *)(h + 1);
    const size_t step = h->record;
    size_t x = 0;
    uint32_t v = 0;
    for (; v + 4 <= h->vectors; v += 4, at += 4 * step, x += 64) {
        __m512i sum[4][3];
        for (uint32_t i = 0; i < 4; i++)
            sums_of(h, (const h_vector *)(at + i * step), src, sum[i], rows, groups, two);
        for (uint32_t i = 0; i < rows; i++)
            _mm512_storeu_si512(dst[i] + x, clip64(sum[0][i], sum[1][i], sum[2][i], sum[3][i]));
    }
    for (; v < h->vectors; v++, at += step, x += 16) {
        __m512i sum[3];
        sums_of(h, (const h_vector *)at, src, sum, rows, groups, two);
        for (uint32_t i = 0; i < rows; i++) {
            const __m512i floor = _mm512_max_epi32(sum[i], _mm512_setzero_si512());
            _mm_storeu_si128((__m128i *)(dst[i] + x), _mm512_cvtusepi32_epi8(floor));
        }
    }
}

static void row_wide(const leat__axis *a, const h_head *h, const uint8_t *src, uint8_t *dst)
{
    const size_t taps64 = h->record / 3;
    const uint8_t *k = (const uint8_t *)(h + 1);
    for (uint32_t j = 0; j < a->count; j++, k += h->record) {
        const uint8_t *const s = src + a->first[j];
        __m512i sum[3] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
        for (uint32_t t = 0; t < a->taps_of[j]; t += 64) {
            const __m512i px = _mm512_loadu_si512(s + t);
            for (int d = 0; d < 3; d++)
                sum[d] = _mm512_dpbusd_epi32(sum[d], px, _mm512_loadu_si512(k + (size_t)d * taps64 + t));
        }
        const __m512i high = _mm512_add_epi32(_mm512_slli_epi32(sum[2], 8), sum[1]);
        const __m512i all = _mm512_add_epi32(_mm512_slli_epi32(high, 8), sum[0]);
        const int32_t v = (_mm512_reduce_add_epi32(all) + (HALF_TOP << 16)) >> LEAT__RESIZE_BITS;
        dst[j] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
}

static inline __attribute__((always_inline)) void narrow(const h_head *h, const uint8_t *const *src,
                                                         uint8_t *const *dst, const uint32_t rows)
{
    const bool two = h->mode == H_TWO;
    if (h->groups == 1 && !two) rows_of(h, src, dst, rows, 1, false);
    else if (h->groups == 1) rows_of(h, src, dst, rows, 1, true);
    else if (h->groups == 2 && !two) rows_of(h, src, dst, rows, 2, false);
    else if (h->groups == 2) rows_of(h, src, dst, rows, 2, true);
    else if (!two) rows_of(h, src, dst, rows, 0, false);
    else rows_of(h, src, dst, rows, 0, true);
}

static void horizontal(const leat__axis *a, const uint8_t *const *src, uint8_t *const *dst, uint32_t rows)
{
    const h_head *const h = a->packed;
    if (h->mode == H_WIDE)
        for (uint32_t i = 0; i < rows; i++) row_wide(a, h, src[i], dst[i]);
    else if (rows == 3) narrow(h, src, dst, 3);
    else
        for (uint32_t i = 0; i < rows; i++) narrow(h, src + i, dst + i, 1);
}

/* ---- vertical ---- */

/* Interleaves four rows of 64 pixels to vectors whose dwords are the four taps of one pixel. */
static inline void weave(const uint8_t *const *rows, size_t x, __m512i px[4])
{
    const __m512i r0 = _mm512_loadu_si512(rows[0] + x), r1 = _mm512_loadu_si512(rows[1] + x);
    const __m512i r2 = _mm512_loadu_si512(rows[2] + x), r3 = _mm512_loadu_si512(rows[3] + x);
    const __m512i l01 = _mm512_unpacklo_epi8(r0, r1), h01 = _mm512_unpackhi_epi8(r0, r1);
    const __m512i l23 = _mm512_unpacklo_epi8(r2, r3), h23 = _mm512_unpackhi_epi8(r2, r3);
    px[0] = _mm512_unpacklo_epi16(l01, l23);
    px[1] = _mm512_unpackhi_epi16(l01, l23);
    px[2] = _mm512_unpacklo_epi16(h01, h23);
    px[3] = _mm512_unpackhi_epi16(h01, h23);
}

/* Stores up to 64 bytes. Masked stores are slow, but only rows shorter than a vector need one. */
static inline void store_some(uint8_t *dst, __m512i v, size_t left)
{
    if (left >= 64) _mm512_storeu_si512(dst, v);
    else _mm512_mask_storeu_epi8(dst, _bzhi_u64(~0ull, (unsigned)left), v);
}

/* Returns the position of the next vector. The last one ends with the row and repeats some pixels of the
 * previous one. */
static inline size_t next_vector(size_t x, size_t n)
{
    return x + 64 < n && x + 128 > n ? n - 64 : x + 64;
}

static inline __attribute__((always_inline)) void
column(const uint32_t *k, uint32_t groups, const uint8_t *const *rows, uint8_t *dst, size_t n, const bool one)
{
    for (size_t x = 0; x < n; x = next_vector(x, n)) {
        __m512i low[4], mid[4], sum[4], px[4];
        for (int i = 0; i < 4; i++) {
            sum[i] = _mm512_set1_epi32(HALF_TOP);
            low[i] = mid[i] = _mm512_setzero_si512();
        }
        for (uint32_t g = 0; g < (one ? 1 : groups); g++) {
            const __m512i k0 = _mm512_set1_epi32((int)k[3 * g]);
            const __m512i k1 = _mm512_set1_epi32((int)k[3 * g + 1]);
            const __m512i k2 = _mm512_set1_epi32((int)k[3 * g + 2]);
            weave(rows + 4 * g, x, px);
            for (int i = 0; i < 4; i++) {
                sum[i] = _mm512_dpbusd_epi32(sum[i], px[i], k2);
                if (one) {
                    sum[i] = _mm512_dpbusd_epi32(_mm512_slli_epi32(sum[i], 8), px[i], k1);
                    sum[i] = _mm512_dpbusd_epi32(_mm512_slli_epi32(sum[i], 8), px[i], k0);
                } else {
                    mid[i] = _mm512_dpbusd_epi32(mid[i], px[i], k1);
                    low[i] = _mm512_dpbusd_epi32(low[i], px[i], k0);
                }
            }
        }
        for (int i = 0; i < 4; i++) {
            if (!one) {
                sum[i] = _mm512_add_epi32(_mm512_slli_epi32(sum[i], 8), mid[i]);
                sum[i] = _mm512_add_epi32(_mm512_slli_epi32(sum[i], 8), low[i]);
            }
            sum[i] = _mm512_srai_epi32(sum[i], LEAT__RESIZE_BITS);
        }
        /* the packs undo the interleaving of the unpacks, lane by lane */
        store_some(
            dst + x,
            _mm512_packus_epi16(_mm512_packus_epi32(sum[0], sum[1]), _mm512_packus_epi32(sum[2], sum[3])),
            n - x);
    }
}

static void vertical(const leat__axis *a, uint32_t index, const uint8_t *const *rows, uint8_t *dst, size_t n)
{
    const uint32_t groups = groups_of(a->taps), used = groups_of(a->taps_of[index]);
    const uint32_t *const k = (const uint32_t *)a->packed + (size_t)index * groups * 3;
    if (used == 1) column(k, 1, rows, dst, n, true);
    else column(k, used, rows, dst, n, false);
}

const leat__resize_dsp leat__resize_avx512 = {
    .isa = "avx512",
    .weigh_bilinear = weigh_bilinear,
    .tap_group = 4,
    .pack_bytes = pack_bytes,
    .pack = pack,
    .horizontal = horizontal,
    .vertical = vertical,
};
