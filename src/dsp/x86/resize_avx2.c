/* SPDX-License-Identifier: Apache-2.0
 *
 * Resize with AVX2. A 22-bit weight is split into a low part of 15 bits and a signed high
 * part, so that `pmaddwd` multiplies and adds two taps at a time; the two sums, shifted
 * together, are the exact 32-bit sum (what overflows on the way comes back in the end).
 *
 * Horizontal: 8 outputs per vector, 4 per lane, whose next two pixels a byte shuffle collects
 * from 16 bytes of the row. Outputs that lie further apart than that (shrinking more than
 * about 4 times) are computed one by one, 16 taps at a time.
 */
#include <immintrin.h>
#include <string.h>

#include "dsp/x86/resize.h"
#include "dsp/x86/weights_x86.h"

#define HALF (1 << (LEAT__RESIZE_BITS - 1))
#define LOW_BITS 15

typedef struct h_head {
    uint32_t pairs;  /* of taps */
    uint32_t blocks; /* of 32 outputs = 4 vectors */
    uint32_t wide;   /* one by one */
    uint32_t record; /* bytes from vector to vector, or from output to output when wide */
    uint8_t reserved[16];
} h_head;

/* weight[pair][0 low, 1 high] */
typedef struct h_vector {
    uint32_t base[2]; /* per lane */
    uint8_t reserved[24];
    __m256i take;
    __m256i weight[];
} h_vector;

static inline uint32_t pairs_of(uint32_t taps)
{
    return (taps + 1) / 2;
}

static inline uint32_t low_part(int32_t a, int32_t b)
{
    const uint32_t mask = (1u << LOW_BITS) - 1;
    return ((uint32_t)a & mask) | ((uint32_t)b & mask) << 16;
}

static inline uint32_t high_part(int32_t a, int32_t b)
{
    return ((uint32_t)(a >> LOW_BITS) & 0xffff) | (uint32_t)(b >> LOW_BITS) << 16;
}

static size_t pack_bytes(const leat__axis *a, bool vertical)
{
    const size_t pairs = pairs_of(a->taps);
    if (vertical) return (size_t)a->count * pairs * 2 * sizeof(uint32_t);
    const size_t narrow = (a->count + 31) / 32 * 4 * (sizeof(h_vector) + pairs * 64);
    const size_t wide = (size_t)a->count * 2 * sizeof(int16_t) * ((a->taps + 15) & ~15u);
    return sizeof(h_head) + (narrow > wide ? narrow : wide);
}

static void pack_vertical(const leat__axis *a, uint32_t *out)
{
    const uint32_t pairs = pairs_of(a->taps);
    for (uint32_t g = 0; g < pairs; g++) {
        const int32_t *const k0 = a->weight + (size_t)(2 * g) * a->stride;
        const int32_t *const k1 = k0 + a->stride;
        for (uint32_t j = 0; j < a->count; j++) {
            out[(j * pairs + g) * 2] = low_part(k0[j], k1[j]);
            out[(j * pairs + g) * 2 + 1] = high_part(k0[j], k1[j]);
        }
    }
}

static void pack_wide(const leat__axis *a, h_head *head)
{
    const size_t taps16 = (a->taps + 15) & ~15u;
    int16_t *const out = (int16_t *)(head + 1);
    head->wide = 1;
    head->record = (uint32_t)(2 * taps16 * sizeof(int16_t));
    memset(out, 0, a->count * 2 * taps16 * sizeof(int16_t));
    for (uint32_t j = 0; j < a->count; j++)
        for (uint32_t t = 0; t < a->taps_of[j]; t++) {
            const int32_t k = a->weight[(size_t)t * a->stride + j];
            out[j * 2 * taps16 + t] = (int16_t)(k & ((1 << LOW_BITS) - 1));
            out[(j * 2 + 1) * taps16 + t] = (int16_t)(k >> LOW_BITS);
        }
}

/* Outputs j .. j+3 of one lane; false when their pixels are more than 16 bytes apart. Outputs
 * past the end repeat the last one with weight 0. */
static bool pack_lane(const leat__axis *a, h_vector *v, int lane, uint32_t j, uint32_t pairs)
{
    uint8_t *const take = (uint8_t *)&v->take + 16 * lane;
    const uint32_t last = a->stride - 1;
    uint32_t first[4], lowest = UINT32_MAX;
    for (uint32_t i = 0; i < 4; i++) {
        first[i] = a->first[j + i < last ? j + i : last];
        lowest = first[i] < lowest ? first[i] : lowest;
    }
    v->base[lane] = lowest;
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t at = first[i] - lowest;
        if (at > 14) return false;
        const uint32_t pick = at | (at + 1) << 16 | 0x80008000u;
        memcpy(take + 4 * i, &pick, 4);
    }
    for (uint32_t g = 0; g < pairs; g++) {
        uint32_t *const low = (uint32_t *)&v->weight[2 * g] + 4 * lane;
        uint32_t *const high = (uint32_t *)&v->weight[2 * g + 1] + 4 * lane;
        if (j + 4 > a->stride) {
            memset(low, 0, 16);
            memset(high, 0, 16);
            continue;
        }
        const __m128i a0 =
            _mm_loadu_si128((const __m128i *)(a->weight + (size_t)(2 * g) * a->stride + j));
        const __m128i a1 =
            _mm_loadu_si128((const __m128i *)(a->weight + (size_t)(2 * g + 1) * a->stride + j));
        const __m128i mask = _mm_set1_epi32((1 << LOW_BITS) - 1);
        const __m128i l = _mm_or_si128(_mm_and_si128(a0, mask),
                                       _mm_slli_epi32(_mm_and_si128(a1, mask), 16));
        const __m128i h =
            _mm_blend_epi16(_mm_srai_epi32(a0, LOW_BITS),
                            _mm_slli_epi32(_mm_srai_epi32(a1, LOW_BITS), 16), 0xaa);
        _mm_storeu_si128((__m128i *)low, l);
        _mm_storeu_si128((__m128i *)high, h);
    }
    return true;
}

/* Vector q of a block has outputs 4q .. of its first half in the low lane and 4q .. of its
 * second half in the high lane: two packs then leave 32 bytes in order. */
static void pack_horizontal(const leat__axis *a, h_head *head)
{
    const uint32_t pairs = pairs_of(a->taps);
    *head = (h_head){.pairs = pairs, .blocks = (a->count + 31) / 32,
                     .record = (uint32_t)(sizeof(h_vector) + pairs * 64)};
    uint8_t *at = (uint8_t *)(head + 1);
    for (uint32_t i = 0; i < head->blocks * 4; i++, at += head->record) {
        h_vector *const v = (h_vector *)at;
        const uint32_t j = i / 4 * 32 + i % 4 * 4;
        if (!pack_lane(a, v, 0, j, pairs) || !pack_lane(a, v, 1, j + 16, pairs)) {
            pack_wide(a, head);
            return;
        }
    }
}

static void pack(const leat__axis *a, bool vertical, void *packed)
{
    if (vertical)
        pack_vertical(a, packed);
    else
        pack_horizontal(a, packed);
}

/* ---- horizontal ---- */

/* Eight sums of each of `rows` rows, shifted down, not yet clipped. `rows` is a constant 1 or 3:
 * the planes of a pixel row share what is loaded of the weights, which is what limits this. */
static inline __attribute__((always_inline)) void sums_of(const h_vector *v,
                                                          const uint8_t *const *src,
                                                          __m256i sum[3], const uint32_t rows,
                                                          const uint32_t pairs)
{
    const __m256i take = v->take;
    __m256i low[3], high[3];
    for (uint32_t i = 0; i < rows; i++) {
        low[i] = _mm256_set1_epi32(HALF);
        high[i] = _mm256_setzero_si256();
    }
    for (uint32_t g = 0; g < pairs; g++) {
        const __m256i k0 = v->weight[2 * g], k1 = v->weight[2 * g + 1];
        for (uint32_t i = 0; i < rows; i++) {
            const uint8_t *const s = src[i] + 2 * g;
            const __m128i lane0 = _mm_loadu_si128((const __m128i *)(s + v->base[0]));
            const __m128i lane1 = _mm_loadu_si128((const __m128i *)(s + v->base[1]));
            const __m256i px = _mm256_shuffle_epi8(
                _mm256_inserti128_si256(_mm256_castsi128_si256(lane0), lane1, 1), take);
            low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(px, k0));
            high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(px, k1));
        }
    }
    for (uint32_t i = 0; i < rows; i++)
        sum[i] = _mm256_srai_epi32(
            _mm256_add_epi32(low[i], _mm256_slli_epi32(high[i], LOW_BITS)), LEAT__RESIZE_BITS);
}

static inline __m256i clip32(const __m256i sum[4])
{
    return _mm256_packus_epi16(_mm256_packus_epi32(sum[0], sum[1]),
                               _mm256_packus_epi32(sum[2], sum[3]));
}

static inline __attribute__((always_inline)) void rows_of(const h_head *h,
                                                          const uint8_t *const *src,
                                                          uint8_t *const *dst,
                                                          const uint32_t rows,
                                                          const uint32_t pairs)
{
    const uint8_t *at = (const uint8_t *)(h + 1);
    for (size_t x = 0; x < 32 * (size_t)h->blocks; x += 32) {
        __m256i sum[3][4], each[3];
        for (int v = 0; v < 4; v++, at += h->record) {
            sums_of((const h_vector *)at, src, each, rows, pairs);
            for (uint32_t i = 0; i < rows; i++) sum[i][v] = each[i];
        }
        for (uint32_t i = 0; i < rows; i++)
            _mm256_storeu_si256((__m256i *)(dst[i] + x), clip32(sum[i]));
    }
}

static inline int32_t add_up(__m256i v)
{
    __m128i x = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    x = _mm_add_epi32(x, _mm_shuffle_epi32(x, 0x4e));
    x = _mm_add_epi32(x, _mm_shuffle_epi32(x, 0xb1));
    return _mm_cvtsi128_si32(x);
}

static void row_wide(const leat__axis *a, const h_head *h, const uint8_t *src, uint8_t *dst)
{
    const size_t taps16 = h->record / (2 * sizeof(int16_t));
    const int16_t *k = (const int16_t *)(h + 1);
    for (uint32_t j = 0; j < a->count; j++, k += 2 * taps16) {
        const uint8_t *const s = src + a->first[j];
        __m256i low = _mm256_setzero_si256(), high = low;
        for (uint32_t t = 0; t < a->taps_of[j]; t += 16) {
            const __m256i px =
                _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(s + t)));
            const __m256i kl = _mm256_loadu_si256((const __m256i *)(k + t));
            const __m256i kh = _mm256_loadu_si256((const __m256i *)(k + taps16 + t));
            low = _mm256_add_epi32(low, _mm256_madd_epi16(px, kl));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(px, kh));
        }
        low = _mm256_add_epi32(low, _mm256_slli_epi32(high, LOW_BITS));
        const int32_t v = (int32_t)((uint32_t)add_up(low) + HALF) >> LEAT__RESIZE_BITS;
        dst[j] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
}

static inline __attribute__((always_inline)) void narrow(const h_head *h,
                                                         const uint8_t *const *src,
                                                         uint8_t *const *dst,
                                                         const uint32_t rows)
{
    switch (h->pairs) {
    case 1: rows_of(h, src, dst, rows, 1); break;
    case 2: rows_of(h, src, dst, rows, 2); break;
    case 3: rows_of(h, src, dst, rows, 3); break;
    default: rows_of(h, src, dst, rows, h->pairs); break;
    }
}

static void horizontal(const leat__axis *a, const uint8_t *const *src, uint8_t *const *dst,
                       uint32_t rows)
{
    const h_head *const h = a->packed;
    if (h->wide)
        for (uint32_t i = 0; i < rows; i++) row_wide(a, h, src[i], dst[i]);
    else if (rows == 3)
        narrow(h, src, dst, 3);
    else
        for (uint32_t i = 0; i < rows; i++) narrow(h, src + i, dst + i, 1);
}

/* ---- vertical ---- */

static inline __attribute__((always_inline)) __m256i column32(const uint32_t *k,
                                                              const uint8_t *const *rows,
                                                              size_t x, const uint32_t pairs)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i low[4], high[4];
    for (int i = 0; i < 4; i++) {
        low[i] = _mm256_set1_epi32(HALF);
        high[i] = zero;
    }
    for (uint32_t g = 0; g < pairs; g++) {
        const __m256i r0 = _mm256_loadu_si256((const __m256i *)(rows[2 * g] + x));
        const __m256i r1 = _mm256_loadu_si256((const __m256i *)(rows[2 * g + 1] + x));
        const __m256i l = _mm256_unpacklo_epi8(r0, r1), h = _mm256_unpackhi_epi8(r0, r1);
        const __m256i px[4] = {_mm256_unpacklo_epi8(l, zero), _mm256_unpackhi_epi8(l, zero),
                               _mm256_unpacklo_epi8(h, zero), _mm256_unpackhi_epi8(h, zero)};
        const __m256i kl = _mm256_set1_epi32((int)k[2 * g]);
        const __m256i kh = _mm256_set1_epi32((int)k[2 * g + 1]);
        for (int i = 0; i < 4; i++) {
            low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(px[i], kl));
            high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(px[i], kh));
        }
    }
    for (int i = 0; i < 4; i++) {
        low[i] = _mm256_add_epi32(low[i], _mm256_slli_epi32(high[i], LOW_BITS));
        low[i] = _mm256_srai_epi32(low[i], LEAT__RESIZE_BITS);
    }
    return clip32(low);
}

static inline __attribute__((always_inline)) void column(const uint32_t *k,
                                                         const uint8_t *const *rows,
                                                         uint8_t *dst, size_t n,
                                                         const uint32_t pairs)
{
    size_t x = 0;
    for (; x + 32 <= n; x += 32)
        _mm256_storeu_si256((__m256i *)(dst + x), column32(k, rows, x, pairs));
    if (x < n) {
        uint8_t rest[32];
        _mm256_storeu_si256((__m256i *)rest, column32(k, rows, x, pairs));
        memcpy(dst + x, rest, n - x);
    }
}

static void vertical(const leat__axis *a, uint32_t index, const uint8_t *const *rows,
                     uint8_t *dst, size_t n)
{
    const uint32_t pairs = pairs_of(a->taps), used = pairs_of(a->taps_of[index]);
    const uint32_t *const k = (const uint32_t *)a->packed + (size_t)index * pairs * 2;
    switch (used) {
    case 1: column(k, rows, dst, n, 1); break;
    case 2: column(k, rows, dst, n, 2); break;
    default: column(k, rows, dst, n, used); break;
    }
}

const leat__resize_dsp leat__resize_avx2 = {
    .isa = "avx2",
    .weigh_bilinear = weigh_bilinear,
    .tap_group = 2,
    .pack_bytes = pack_bytes,
    .pack = pack,
    .horizontal = horizontal,
    .vertical = vertical,
};
