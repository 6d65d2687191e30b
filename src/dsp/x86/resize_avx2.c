/* SPDX-License-Identifier: Apache-2.0
 *
 * Resize with AVX2. A 22-bit weight is split into a low part of 15 bits and a signed high part, so that
 * `pmaddwd` multiplies and adds two taps at a time. The two sums, shifted and added, are the exact 32-bit
 * sum (intermediate overflows cancel out). The pixels of the vertical pass are in the order that
 * `pmaddubsw` needs. If no weight is negative, it splits weights into a signed low part of 16 bits and a
 * high part of a byte.
 *
 * Horizontal: 8 outputs per vector, 4 per lane; a byte shuffle collects the next two pixels of each from 16
 * bytes of the row. If the outputs are near each other (shrinking less than about 1.7 times), these are
 * the same 16 bytes for all taps of all 8 outputs. Else they are 16 for each lane, or 16 for each lane and
 * pair of taps. Outputs further apart (shrinking more than about 4 times) are computed one by one, 16 taps
 * at a time.
 */
#include <immintrin.h>
#include <string.h>

#include "dsp/x86/resize_x86.h"
#include "dsp/x86/weights_x86.h"

#define HALF (1 << (LEAT__RESIZE_BITS - 1))
#define LOW_BITS 15

/* How the pixels of a vector are loaded. */
typedef enum h_way { H_ONCE, H_PER_LANE, H_PER_PAIR, H_WIDE } h_way;

typedef struct h_head {
    uint32_t pairs;  /* of taps */
    uint32_t blocks; /* of 32 outputs = 4 vectors */
    h_way way;       /* H_WIDE: one by one */
    uint32_t record; /* bytes from one vector to the next, or from one output to the next when wide */
    uint8_t reserved[16];
} h_head;

/* weight[pair][0 low, 1 high] */
typedef struct h_vector {
    uint32_t base[2]; /* per lane */
    uint8_t reserved[24];
    __m256i take;
    __m256i weight[];
} h_vector;

/* The low and the high part for each output and pair of its taps. */
typedef struct v_head {
    uint32_t bytes; /* high parts are bytes */
    uint32_t weight[];
} v_head;

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
    if (vertical) return sizeof(v_head) + (size_t)a->count * pairs * 2 * sizeof(uint32_t);
    const size_t narrow = (a->count + 31) / 32 * 4 * (sizeof(h_vector) + pairs * 64);
    const size_t wide = (size_t)a->count * 2 * sizeof(int16_t) * ((a->taps + 15) & ~15u);
    return sizeof(h_head) + (narrow > wide ? narrow : wide);
}

/* True when high parts fit into bytes. If no weight is negative, they sum up to at most 64 and half a unit
 * per tap; 255 times that fits 16 bits. */
static bool has_byte_weights(const leat__axis *a)
{
    int32_t any = 0;
    for (size_t i = 0; i < (size_t)a->taps * a->stride; i++) any |= a->weight[i];
    return any >= 0 && a->taps <= 64;
}

static inline uint32_t byte_part(int32_t a, int32_t b)
{
    const uint32_t both = (uint32_t)((a + 0x8000) >> 16) | (uint32_t)((b + 0x8000) >> 16) << 8;
    return both | both << 16;
}

static void pack_vertical(const leat__axis *a, v_head *head)
{
    const uint32_t pairs = pairs_of(a->taps);
    uint32_t *const out = head->weight;
    head->bytes = has_byte_weights(a);
    for (uint32_t g = 0; g < pairs; g++) {
        const int32_t *const k0 = a->weight + (size_t)(2 * g) * a->stride;
        const int32_t *const k1 = k0 + a->stride;
        if (head->bytes) {
            for (uint32_t j = 0; j < a->count; j++) {
                out[(j * pairs + g) * 2] = ((uint32_t)k0[j] & 0xffff) | (uint32_t)k1[j] << 16;
                out[(j * pairs + g) * 2 + 1] = byte_part(k0[j], k1[j]);
            }
            continue;
        }
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
    head->way = H_WIDE;
    head->record = (uint32_t)(2 * taps16 * sizeof(int16_t));
    memset(out, 0, a->count * 2 * taps16 * sizeof(int16_t));
    for (uint32_t j = 0; j < a->count; j++)
        for (uint32_t t = 0; t < a->taps_of[j]; t++) {
            const int32_t k = a->weight[(size_t)t * a->stride + j];
            out[j * 2 * taps16 + t] = (int16_t)(k & ((1 << LOW_BITS) - 1));
            out[(j * 2 + 1) * taps16 + t] = (int16_t)(k >> LOW_BITS);
        }
}

/* Returns the first input of output j; outputs past the end repeat the last one, with weight 0. */
static inline uint32_t first_of(const leat__axis *a, uint32_t j)
{
    return a->first[j < a->stride ? j : a->stride - 1];
}

/* Returns the lowest first input of n outputs from j on, and the distance of the highest from it. */
static uint32_t lowest_of(const leat__axis *a, uint32_t j, uint32_t n, uint32_t *apart)
{
    uint32_t lowest = first_of(a, j), highest = lowest;
    for (uint32_t i = 1; i < n; i++) {
        const uint32_t at = first_of(a, j + i);
        lowest = at < lowest ? at : lowest;
        highest = at > highest ? at : highest;
    }
    *apart = highest - lowest;
    return lowest;
}

static h_way choose_way(const leat__axis *a, uint32_t pairs)
{
    uint32_t most4 = 0, most8 = 0;
    for (uint32_t j = 0; j < a->stride; j += 8) {
        uint32_t apart;
        lowest_of(a, j, 8, &apart);
        most8 = apart > most8 ? apart : most8;
        for (uint32_t i = 0; i < 8; i += 4) {
            lowest_of(a, j + i, 4, &apart);
            most4 = apart > most4 ? apart : most4;
        }
    }
    if (most8 + 2 * pairs <= 16) return H_ONCE;
    if (most4 + 2 * pairs <= 16) return H_PER_LANE;
    return most4 + 2 <= 16 ? H_PER_PAIR : H_WIDE;
}

/* Packs outputs j .. j+3 of one lane, whose pixels are loaded from `base` on. */
static void pack_lane(const leat__axis *a, h_vector *v, int lane, uint32_t j, uint32_t base, uint32_t pairs)
{
    uint8_t *const take = (uint8_t *)&v->take + 16 * lane;
    v->base[lane] = base;
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t at = first_of(a, j + i) - base;
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
        const __m128i a0 = _mm_loadu_si128((const __m128i *)(a->weight + (size_t)(2 * g) * a->stride + j));
        const __m128i a1 =
            _mm_loadu_si128((const __m128i *)(a->weight + (size_t)(2 * g + 1) * a->stride + j));
        const __m128i mask = _mm_set1_epi32((1 << LOW_BITS) - 1);
        const __m128i l = _mm_or_si128(_mm_and_si128(a0, mask), _mm_slli_epi32(_mm_and_si128(a1, mask), 16));
        const __m128i h = _mm_blend_epi16(_mm_srai_epi32(a0, LOW_BITS),
                                          _mm_slli_epi32(_mm_srai_epi32(a1, LOW_BITS), 16), 0xaa);
        _mm_storeu_si128((__m128i *)low, l);
        _mm_storeu_si128((__m128i *)high, h);
    }
}

/* If all taps of 8 outputs are loaded at once, vector q of a block has outputs 8q to 8q+7. Else it has 4q ..
 * of the block's first half in the low lane and 4q .. of its second half in the high lane: two packs then
 * leave 32 bytes in order. */
static void pack_horizontal(const leat__axis *a, h_head *head)
{
    const uint32_t pairs = pairs_of(a->taps);
    *head = (h_head){.pairs = pairs,
                     .blocks = (a->count + 31) / 32,
                     .way = choose_way(a, pairs),
                     .record = (uint32_t)(sizeof(h_vector) + pairs * 64)};
    if (head->way == H_WIDE) {
        pack_wide(a, head);
        return;
    }
    uint8_t *at = (uint8_t *)(head + 1);
    for (uint32_t i = 0; i < head->blocks * 4; i++, at += head->record) {
        h_vector *const v = (h_vector *)at;
        uint32_t apart;
        if (head->way == H_ONCE) {
            const uint32_t base = lowest_of(a, 8 * i, 8, &apart);
            pack_lane(a, v, 0, 8 * i, base, pairs);
            pack_lane(a, v, 1, 8 * i + 4, base, pairs);
        } else {
            const uint32_t j = i / 4 * 32 + i % 4 * 4;
            pack_lane(a, v, 0, j, lowest_of(a, j, 4, &apart), pairs);
            pack_lane(a, v, 1, j + 16, lowest_of(a, j + 16, 4, &apart), pairs);
        }
    }
}

static void pack(const leat__axis *a, bool vertical, void *packed)
{
    if (vertical) pack_vertical(a, packed);
    else pack_horizontal(a, packed);
}

/* ---- horizontal ---- */

#define H_INLINE static inline __attribute__((always_inline))

/* Loads 16 bytes for each lane. */
H_INLINE __m256i load_lanes(const uint8_t *s, const h_vector *v)
{
    const __m128i low = _mm_loadu_si128((const __m128i *)(s + v->base[0]));
    const __m128i high = _mm_loadu_si128((const __m128i *)(s + v->base[1]));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

H_INLINE __m256i load_both(const uint8_t *s, const h_vector *v)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(s + v->base[0])));
}

/* Computes eight sums of each of `rows` rows, shifted down, not yet clipped. `rows` is a constant 1 or 3: the
 * planes of a pixel row share the loads of the weights, which are the bottleneck. */
H_INLINE void sums_of(const h_vector *v, const uint8_t *const *src, __m256i sum[3], const uint32_t rows,
                      const uint32_t pairs, const h_way way)
{
    __m256i take = v->take, low[3], high[3], bytes[3];
    for (uint32_t i = 0; i < rows; i++) {
        low[i] = _mm256_set1_epi32(HALF);
        high[i] = _mm256_setzero_si256();
        bytes[i] = way == H_ONCE ? load_both(src[i], v) : load_lanes(src[i], v);
    }
    for (uint32_t g = 0; g < pairs; g++) {
        const __m256i k0 = v->weight[2 * g], k1 = v->weight[2 * g + 1];
        for (uint32_t i = 0; i < rows; i++) {
            if (way == H_PER_PAIR && g > 0) bytes[i] = load_lanes(src[i] + 2 * g, v);
            const __m256i px = _mm256_shuffle_epi8(bytes[i], take);
            low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(px, k0));
            high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(px, k1));
        }
        if (way != H_PER_PAIR) take = _mm256_add_epi8(take, _mm256_set1_epi8(2));
    }
    for (uint32_t i = 0; i < rows; i++)
        sum[i] = _mm256_srai_epi32(_mm256_add_epi32(low[i], _mm256_slli_epi32(high[i], LOW_BITS)),
                                   LEAT__RESIZE_BITS);
}

H_INLINE void rows_of(const h_head *h, const uint8_t *const *src, uint8_t *const *dst, const uint32_t rows,
                      const uint32_t pairs, const h_way way)
{
    const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const uint8_t *at = (const uint8_t *)(h + 1);
    for (size_t x = 0; x < 32 * (size_t)h->blocks; x += 32) {
        __m256i half[2][3], first[3], second[3];
        for (int i = 0; i < 2; i++, at += 2 * (size_t)h->record) {
            sums_of((const h_vector *)at, src, first, rows, pairs, way);
            sums_of((const h_vector *)(at + h->record), src, second, rows, pairs, way);
            for (uint32_t r = 0; r < rows; r++) half[i][r] = _mm256_packus_epi32(first[r], second[r]);
        }
        for (uint32_t r = 0; r < rows; r++) {
            __m256i out = _mm256_packus_epi16(half[0][r], half[1][r]);
            if (way == H_ONCE) out = _mm256_permutevar8x32_epi32(out, in_order);
            _mm256_storeu_si256((__m256i *)(dst[r] + x), out);
        }
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
            const __m256i px = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(s + t)));
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

/* Dispatches with constants for the common cases. */
H_INLINE void narrow(const h_head *h, const uint8_t *const *src, uint8_t *const *dst, const uint32_t rows)
{
    if (h->way == H_PER_PAIR) {
        rows_of(h, src, dst, rows, h->pairs, H_PER_PAIR);
    } else if (h->way == H_PER_LANE) {
        if (h->pairs == 2) rows_of(h, src, dst, rows, 2, H_PER_LANE);
        else if (h->pairs == 3) rows_of(h, src, dst, rows, 3, H_PER_LANE);
        else rows_of(h, src, dst, rows, h->pairs, H_PER_LANE);
    } else {
        if (h->pairs == 1) rows_of(h, src, dst, rows, 1, H_ONCE);
        else if (h->pairs == 2) rows_of(h, src, dst, rows, 2, H_ONCE);
        else rows_of(h, src, dst, rows, h->pairs, H_ONCE);
    }
}

static void horizontal(const leat__axis *a, const uint8_t *const *src, uint8_t *const *dst, uint32_t rows)
{
    const h_head *const h = a->packed;
    if (h->way == H_WIDE)
        for (uint32_t i = 0; i < rows; i++) row_wide(a, h, src[i], dst[i]);
    else if (rows == 3) narrow(h, src, dst, 3);
    else
        for (uint32_t i = 0; i < rows; i++) narrow(h, src + i, dst + i, 1);
}

/* ---- vertical ---- */

#define V_INLINE static inline __attribute__((always_inline))

/* Computes 32 outputs. `bytes` is a constant, as is `pairs` if it is small. */
V_INLINE __m256i column32(const uint32_t *k, const uint8_t *const *rows, size_t x, const uint32_t pairs,
                          const bool bytes)
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
        for (int i = 0; i < 4; i++) low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(px[i], kl));
        if (bytes) { /* 16 sums of 16 bits in each */
            high[0] = _mm256_add_epi16(high[0], _mm256_maddubs_epi16(l, kh));
            high[1] = _mm256_add_epi16(high[1], _mm256_maddubs_epi16(h, kh));
        } else {
            for (int i = 0; i < 4; i++) high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(px[i], kh));
        }
    }
    for (int i = 0; i < 4; i++) {
        const __m256i part = !bytes  ? _mm256_slli_epi32(high[i], LOW_BITS)
                             : i & 1 ? _mm256_unpackhi_epi16(zero, high[i / 2])
                                     : _mm256_unpacklo_epi16(zero, high[i / 2]);
        low[i] = _mm256_srai_epi32(_mm256_add_epi32(low[i], part), LEAT__RESIZE_BITS);
    }
    return _mm256_packus_epi16(_mm256_packus_epi32(low[0], low[1]), _mm256_packus_epi32(low[2], low[3]));
}

V_INLINE void column(const uint32_t *k, const uint8_t *const *rows, uint8_t *dst, size_t n,
                     const uint32_t pairs, const bool bytes)
{
    size_t x = 0;
    for (; x + 32 <= n; x += 32)
        _mm256_storeu_si256((__m256i *)(dst + x), column32(k, rows, x, pairs, bytes));
    if (x < n) {
        uint8_t rest[32];
        _mm256_storeu_si256((__m256i *)rest, column32(k, rows, x, pairs, bytes));
        memcpy(dst + x, rest, n - x);
    }
}

static void vertical(const leat__axis *a, uint32_t index, const uint8_t *const *rows, uint8_t *dst, size_t n)
{
    const uint32_t pairs = pairs_of(a->taps), used = pairs_of(a->taps_of[index]);
    const v_head *const head = a->packed;
    const uint32_t *const k = head->weight + (size_t)index * pairs * 2;
    if (!head->bytes) column(k, rows, dst, n, used, false);
    else if (used == 1) column(k, rows, dst, n, 1, true);
    else if (used == 2) column(k, rows, dst, n, 2, true);
    else column(k, rows, dst, n, used, true);
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
