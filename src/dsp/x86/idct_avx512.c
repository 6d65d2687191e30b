/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverse DCT for AVX-512 (VBMI2, VNNI): four blocks at a time; vpexpandw expands half a sparse block at
 * once. The first pass processes all columns of two blocks, in an order in which neighbours are the pairs
 * of the second pass. So its packed rows only need to be distributed by 32 and 128 bits. The second pass
 * processes four rows of all four blocks.
 */
#include <immintrin.h>

#include "base/bytes.h"
#include "dsp/idct.h"
#include "dsp/idct_constants.h"
#include "dsp/x86/load512.h"
#include "dsp/x86/tile_variants.h"

#define V __m512i

/* Constants stay in memory, as operands. Held in registers they cause spills, and compilers reload them in
 * every round (7 % of the total time). */
static inline __attribute__((always_inline)) V madd(V x, const int32_t *pair)
{
    V product;
    __asm__("vpbroadcastd %1, %0" : "=v"(product) : "m"(*pair));
    return _mm512_madd_epi16(x, product);
}

static inline __attribute__((always_inline)) V dot(V sum, V x, const int32_t *pair)
{
    __asm__("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(x), "m"(*pair));
    return sum;
}

#define PAIR_AT(a, b)                                                                                        \
    ({                                                                                                       \
        static const int32_t pair_ = IDCT_PAIR(a, b);                                                        \
        &pair_;                                                                                              \
    })
#define V_SET32(x) _mm512_set1_epi32(x)
#define V_MADD(x, a, b) madd(x, PAIR_AT(a, b))
#define V_DOT(s, x, a, b) dot(s, x, PAIR_AT(a, b))
#define V_BOTH(s, x, a, b, sum, difference)                                                                  \
    do {                                                                                                     \
        *(sum) = V_DOT(s, x, a, b);                                                                          \
        *(difference) = V_DOT(s, x, -(a), -(b));                                                             \
    } while (0)
#define V_XOR _mm512_xor_si512
#define V_ADD16 _mm512_add_epi16
#define V_ADD32 _mm512_add_epi32
#define V_SUB32 _mm512_sub_epi32
#define V_SRA16 _mm512_srai_epi16
#define V_PACK16 _mm512_packs_epi16
#define V_HIGHS(a, b) /* one shuffle into the low words of b: a shift and a blend take longer */             \
    _mm512_mask_shuffle_epi8(                                                                                \
        b, UINT64_C(0x3333333333333333), a,                                                                  \
        _mm512_broadcast_i32x4(_mm_setr_epi8(2, 3, 2, 3, 6, 7, 6, 7, 10, 11, 10, 11, 14, 15, 14, 15)))
#include "dsp/x86/idct_tmpl.h"

/* ---- permutations of 16-bit words ---- */

/* PAIRS(at, a, b): positions at(i, a) and at(i, b) alternating, i = 0 .. 7: half a vector. */
#define PAIRS(at, a, b)                                                                                      \
    at(0, a), at(0, b), at(1, a), at(1, b), at(2, a), at(2, b), at(3, a), at(3, b), at(4, a), at(4, b),      \
        at(5, a), at(5, b), at(6, a), at(6, b), at(7, a), at(7, b)

/* Pairs of rows, selected from the two halves of a block, or from the first halves of two. */
typedef struct places {
    _Alignas(64) uint16_t even[32], odd[32]; /* (0,4) and (2,6); (7,1) and (3,5) */
    uint16_t corner[32];                     /* (0,2) and (1,3) */
} places;
#define PLACES(at, corner_at)                                                                                \
    {                                                                                                        \
        {PAIRS(at, 0, 4), PAIRS(at, 2, 6)}, {PAIRS(at, 7, 1), PAIRS(at, 3, 5)},                              \
        {                                                                                                    \
            PAIRS(corner_at, 0, 2), PAIRS(corner_at, 1, 3)                                                   \
        }                                                                                                    \
    }

/* Columns 0 4 2 6 7 1 3 5, and 0 2 1 3 of both corners. */
#define COLUMN(i) ((i) < 4 ? ((i)&2) + ((i)&1) * 4 : (i) == 4 ? 7 : (i)*2 - 9)
#define CORNER_COLUMN(i) (((i)&1) * 2 + ((i) >> 1 & 1))
/* Position of column c, row r of a block in leat__tile_order, and in natural order. */
#define GROUP(c, r) ((c) < 4 ? ((r) < 2 ? 0 : (r) / 2 * 2 - 1) : (r) < 6 ? (r) / 2 * 2 + 2 : 7)
#define IN_GROUPS(c, r) 8 * GROUP(c, r) + 4 * ((r)&1) + ((c)&3)
#define IN_ROWS(c, r) 8 * (r) + (c)
#define WHOLE_IN_GROUPS(i, r) IN_GROUPS(COLUMN(i), r)
#define WHOLE_IN_ROWS(i, r) IN_ROWS(COLUMN(i), r)
#define CORNERS_IN_GROUPS(i, r) 32 * ((i) / 4) + IN_GROUPS(CORNER_COLUMN(i), r)
#define CORNERS_IN_ROWS(i, r) 32 * ((i) / 4) + IN_ROWS(CORNER_COLUMN(i), r)
static const places of_groups = PLACES(WHOLE_IN_GROUPS, CORNERS_IN_GROUPS);
static const places of_rows = PLACES(WHOLE_IN_ROWS, CORNERS_IN_ROWS);

IDCT_INLINE V words(V a, const uint16_t at[32], V b)
{
    return _mm512_permutex2var_epi16(a, _mm512_load_si512(at), b);
}

/* Return the low halves of two vectors, or the high halves. */
IDCT_INLINE V lows(V a, V b)
{
    return _mm512_inserti64x4(a, _mm512_castsi512_si256(b), 1);
}

IDCT_INLINE V highs(V a, V b)
{
    return _mm512_shuffle_i64x2(a, b, 0xee);
}

/* Returns elements 0 and 2 (of 32 bits) of each 128-bit lane of a and b. */
IDCT_INLINE V evens(V a, V b)
{
    return _mm512_castps_si512(_mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0x88));
}

/* Returns elements 1 and 3 (of 32 bits) of each 128-bit lane of a and b. */
IDCT_INLINE V odds(V a, V b)
{
    return _mm512_castps_si512(_mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0xdd));
}

/* ---- passes ---- */

/* A dequantised block as stored: groups 0 to 3 or rows 0 to 3, then the others. */
typedef struct block {
    V low, high;
} block;

/* Returns the pairs of all columns of two blocks. */
IDCT_INLINE idct_pairs columns_of(const block in[2], const places *p)
{
    V even0 = words(in[0].low, p->even, in[0].high), odd0 = words(in[0].low, p->odd, in[0].high);
    V even1 = words(in[1].low, p->even, in[1].high), odd1 = words(in[1].low, p->odd, in[1].high);
    return (idct_pairs){lows(even0, even1), highs(even0, even1), lows(odd0, odd1), highs(odd0, odd1)};
}

IDCT_INLINE V pack_rows(V a, V b)
{
    return _mm512_packs_epi32(_mm512_srai_epi32(a, IDCT_SHIFT1), _mm512_srai_epi32(b, IDCT_SHIFT1));
}

/* Returns the pairs of four rows of four blocks: of the first two, then of the others. Packed, a lane holds
 * pairs (0,4) and (2,6), or (7,1) and (3,5), of two rows of a block. */
IDCT_INLINE idct_pairs rows_of(const V first[4], const V others[4])
{
    V a = pack_rows(first[0], first[1]), b = pack_rows(first[2], first[3]);
    V c = pack_rows(others[0], others[1]), d = pack_rows(others[2], others[3]);
    V x04_71 = evens(a, b), y04_71 = evens(c, d), x26_35 = odds(a, b), y26_35 = odds(c, d);
    return (idct_pairs){
        _mm512_shuffle_i32x4(x04_71, y04_71, 0x88), _mm512_shuffle_i32x4(x26_35, y26_35, 0x88),
        _mm512_shuffle_i32x4(x04_71, y04_71, 0xdd), _mm512_shuffle_i32x4(x26_35, y26_35, 0xdd)};
}

/* The destination of four blocks: two pairs, adjacent or not. */
typedef struct spot {
    uint8_t *left, *right;
} spot;

IDCT_INLINE void store_row(spot to, size_t at, __m256i row)
{
    if (to.right == to.left + 16) {
        _mm256_storeu_si256((__m256i *)(void *)(to.left + at), row);
    } else {
        _mm_storeu_si128((__m128i *)(void *)(to.left + at), _mm256_castsi256_si128(row));
        _mm_storeu_si128((__m128i *)(void *)(to.right + at), _mm256_extracti128_si256(row, 1));
    }
}

/* The byte of row r, column c of block b in a pair of idct_samples. */
#define AT(b, r, c) (uint8_t)(((c)&4) * 16 + 16 * (b) + ((c)&2) * 4 + 2 * (r) + ((c)&1))
#define BLOCK(b, r)                                                                                          \
    AT(b, r, 0), AT(b, r, 1), AT(b, r, 2), AT(b, r, 3), AT(b, r, 4), AT(b, r, 5), AT(b, r, 6), AT(b, r, 7)
#define ROW(r) BLOCK(0, r), BLOCK(1, r), BLOCK(2, r), BLOCK(3, r)
static const uint8_t rows_at[2][64] __attribute__((aligned(64))) = {{ROW(0), ROW(1)}, {ROW(2), ROW(3)}};

/* Stores rows 0 to 3 and 4 to 7 of four blocks. */
IDCT_INLINE void store_blocks(spot to, size_t stride, const V upper[8], const V lower[8])
{
    V left[2] = {idct_samples(upper), idct_samples(lower)};
    V right[2] = {idct_samples(upper + 4), idct_samples(lower + 4)};
    V rows[4];
    for (size_t i = 0; i < 4; i++)
        rows[i] = _mm512_permutex2var_epi8(left[i / 2], _mm512_load_si512(rows_at[i % 2]), right[i / 2]);
    for (size_t i = 0; i < 4; i++) {
        store_row(to, 2 * i * stride, _mm512_castsi512_si256(rows[i]));
        store_row(to, (2 * i + 1) * stride, _mm512_extracti64x4_epi64(rows[i], 1));
    }
}

/* The input of a pass, for four blocks. Its halves are processed together: schedulers look ahead by at most
 * half of both passes (alternating is 15 % slower). */
typedef struct halves {
    idct_pairs a, b;
} halves;

IDCT_INLINE halves first_pass(const halves *columns)
{
    V a[8], b[8];
    idct_half(&columns->a, a, IDCT_SHIFT1);
    idct_half(&columns->b, b, IDCT_SHIFT1);
    return (halves){rows_of(a, b), rows_of(a + 4, b + 4)};
}

IDCT_INLINE void second_pass(spot to, size_t stride, const halves *rows)
{
    V a[8], b[8];
    idct_half(&rows->a, a, IDCT_SHIFT2);
    idct_half(&rows->b, b, IDCT_SHIFT2);
    store_blocks(to, stride, a, b);
}

/* For blocks with all coefficients in the 4x4 corner, a third of the blocks of photographs. First the pairs
 * (0,2) and (1,3) of all columns, then those of all rows, of which there are twice as many. */
typedef struct corner_columns {
    V x02, x13;
} corner_columns;

typedef struct corner_rows {
    V x02[2], x13[2];
} corner_rows;

IDCT_INLINE corner_columns corner_columns_of(const V low[4], const places *p)
{
    V a = words(low[0], p->corner, low[1]), b = words(low[2], p->corner, low[3]);
    return (corner_columns){lows(a, b), highs(a, b)};
}

IDCT_INLINE corner_rows corner_first_pass(const corner_columns *c)
{
    corner_rows rows;
    V row[8];
    idct_half_corner(c->x02, c->x13, row, IDCT_SHIFT1);
    for (int i = 0; i < 2; i++) {
        V a = pack_rows(row[4 * i], row[4 * i + 1]);
        V b = pack_rows(row[4 * i + 2], row[4 * i + 3]);
        rows.x02[i] = evens(a, b);
        rows.x13[i] = odds(a, b);
    }
    return rows;
}

IDCT_INLINE void corner_second_pass(spot to, size_t stride, const corner_rows *rows)
{
    V a[8], b[8];
    idct_half_corner(rows->x02[0], rows->x13[0], a, IDCT_SHIFT2);
    idct_half_corner(rows->x02[1], rows->x13[1], b, IDCT_SHIFT2);
    store_blocks(to, stride, a, b);
}

static void flat_four(spot to, size_t stride, const int16_t dc[4], uint16_t quant)
{
    const __m256i each = _mm256_setr_epi64x(0, 0x0808080808080808, 0, 0x0808080808080808);
    uint8_t v[4];
    for (int i = 0; i < 4; i++) v[i] = idct_flat((int16_t)(dc[i] * quant));
    const __m256i row = _mm256_shuffle_epi8(_mm256_setr_epi64x(v[0], v[1], v[2], v[3]), each);
    for (size_t y = 0; y < 8; y++) store_row(to, y * stride, row);
}

/* ---- sparse blocks ---- */

/* Loads half a bitmap from memory: moving a half of 64 bits into a mask takes twice as long. */
IDCT_INLINE uint32_t half_mask(const leat__tile_coefs *c, size_t b, size_t half)
{
    return leat__load_u32((const uint8_t *)(c->mask + b) + 4 * half);
}

/* Groups 0 to 3 of block b, expanded, with the DC inserted. */
IDCT_INLINE V low_half(const leat__tile_coefs *c, size_t b)
{
    V v = _mm512_maskz_expand_epi16(half_mask(c, b, 0), load512(c->value + c->first[b]));
    /* by 32 bits with a mask: smaller broadcasts are shuffles */
    return _mm512_mask_mov_epi16(v, 1, V_SET32((int)leat__load_u32(c->dc + b)));
}

/* Groups 4 to 7 of block b, expanded. */
IDCT_INLINE V high_half(const leat__tile_coefs *c, size_t b)
{
    uint32_t before = (uint32_t)_mm_popcnt_u32(half_mask(c, b, 0));
    return _mm512_maskz_expand_epi16(half_mask(c, b, 1), load512(c->value + c->first[b] + before));
}

/* Returns 32 of the 64 quantisers, in the given order. */
IDCT_INLINE V quant_groups(const uint16_t quant[64], const uint8_t order[32])
{
    return _mm512_permutex2var_epi16(
        _mm512_loadu_si512(quant),
        _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)order)),
        _mm512_loadu_si512(quant + 32));
}

/* Four blocks that are transformed together: two neighbours, and two others. */
typedef struct four {
    uint32_t b[2];
    spot to;
} four;

#define FOURS_MAX (LEAT__IDCT_AREA_SIDE * LEAT__IDCT_AREA_SIDE / 4)

/* Groups of four blocks of an area, sorted by which coefficients they have: DC only, a corner, or any. */
typedef struct fours {
    four flat[FOURS_MAX], corner[FOURS_MAX], full[FOURS_MAX];
    uint32_t flats, corners, fulls;
} fours;

IDCT_INLINE size_t block_of(const four *f, size_t i)
{
    return f->b[i / 2] + i % 2;
}

/* Adds four blocks to the group of their kind. Without a branch, which would be predicted in only two of
 * three cases. */
IDCT_INLINE void add_four(fours *f, const leat__tile_coefs *c, uint32_t b0, uint32_t b1, uint8_t *left,
                          uint8_t *right)
{
    const uint64_t any = c->mask[b0] | c->mask[b0 + 1] | c->mask[b1] | c->mask[b1 + 1];
    const four each = {{b0, b1}, {left, right}};
    f->flat[f->flats] = each;
    f->corner[f->corners] = each;
    f->full[f->fulls] = each;
    f->flats += any <= 1;
    f->corners += any > 1 && any <= LEAT__TILE_CORNER;
    f->fulls += any > LEAT__TILE_CORNER;
}

/* Sorts the blocks of an area. If one or two columns are left over, two rows of them are processed at a
 * time. */
static void sort_area(fours *f, uint8_t *dst, size_t stride, const leat__tile_coefs *c,
                      const leat__idct_area *area)
{
    const uint32_t over = area->wide % 4 < 3 ? area->wide % 4 : 0, wide = area->wide - over;
    f->flats = f->corners = f->fulls = 0;
    for (uint32_t y = 0; y < area->high; y++)
        for (uint32_t x = 0; x < wide; x += 4) {
            const uint32_t b = area->first + y * area->pitch + x;
            uint8_t *const to = dst + 8 * (y * stride + x);
            add_four(f, c, b, b + 2, to, to + 16);
        }
    for (uint32_t y = 0; y < area->high && over > 0; y += 2) {
        const uint32_t b = area->first + y * area->pitch + wide;
        uint8_t *const to = dst + 8 * (y * stride + wide);
        if (y + 1 < area->high) add_four(f, c, b, b + area->pitch, to, to + 8 * stride);
        else add_four(f, c, b, b + 2, to, to + 16);
    }
}

IDCT_INLINE corner_columns expand_corners(const leat__tile_coefs *c, const four *f, V q0)
{
    V low[4];
    for (size_t i = 0; i < 4; i++) low[i] = _mm512_mullo_epi16(low_half(c, block_of(f, i)), q0);
    return corner_columns_of(low, &of_groups);
}

IDCT_INLINE halves expand_full(const leat__tile_coefs *c, const four *f, V q0, V q1)
{
    block in[4];
    for (size_t i = 0; i < 4; i++)
        in[i] = (block){_mm512_mullo_epi16(low_half(c, block_of(f, i)), q0),
                        _mm512_mullo_epi16(high_half(c, block_of(f, i)), q1)};
    return (halves){columns_of(in, &of_groups), columns_of(in + 2, &of_groups)};
}

/* Expands the next four blocks between the passes of the current ones, so that both overlap. */
static void corner_fours(size_t stride, const leat__tile_coefs *c, const four *f, uint32_t count, V q0)
{
    corner_columns columns = expand_corners(c, f, q0);
    for (; count > 1; count--, f++) {
        const corner_rows rows = corner_first_pass(&columns);
        columns = expand_corners(c, f + 1, q0);
        corner_second_pass(f->to, stride, &rows);
    }
    const corner_rows rows = corner_first_pass(&columns);
    corner_second_pass(f->to, stride, &rows);
}

static void full_fours(size_t stride, const leat__tile_coefs *c, const four *f, uint32_t count, V q0, V q1)
{
    halves columns = expand_full(c, f, q0, q1);
    for (; count > 1; count--, f++) {
        const halves rows = first_pass(&columns);
        columns = expand_full(c, f + 1, q0, q1);
        second_pass(f->to, stride, &rows);
    }
    const halves rows = first_pass(&columns);
    second_pass(f->to, stride, &rows);
}

IDCT_VARIANT(leat__idct_area_avx512)
{
    const V q0 = quant_groups(quant, leat__tile_order);
    const V q1 = quant_groups(quant, leat__tile_order + 32);
    fours f;
    sort_area(&f, dst, stride, coefs, area);
    for (uint32_t n = 0; n < f.flats; n++) {
        int16_t dc[4];
        for (size_t i = 0; i < 4; i++) dc[i] = coefs->dc[block_of(&f.flat[n], i)];
        flat_four(f.flat[n].to, stride, dc, quant[0]);
    }
    if (f.corners > 0) corner_fours(stride, coefs, f.corner, f.corners, q0);
    if (f.fulls > 0) full_fours(stride, coefs, f.full, f.fulls, q0, q1);
}

/* ---- plain blocks ---- */

IDCT_PLAIN_VARIANT(leat__idct_plain_avx512)
{
    const V q0 = _mm512_loadu_si512(quant), q1 = _mm512_loadu_si512(quant + 32);
    for (uint32_t b = 0; b < count; b += 4, dst += 32, blocks += 256) {
        uint8_t behind = idct_latest(last + b, count - b < 4 ? count - b : 4);
        const spot to = {dst, dst + 16};
        if (behind == 0) {
            const int16_t dc[4] = {blocks[0], blocks[64], blocks[128], blocks[192]};
            flat_four(to, stride, dc, quant[0]);
            continue;
        }
        block in[4];
        V low[4];
        for (int i = 0; i < 4; i++)
            in[i].low = low[i] = _mm512_mullo_epi16(_mm512_loadu_si512(blocks + 64 * i), q0);
        if (behind <= LEAT__IDCT_CORNER_LAST) {
            const corner_columns columns = corner_columns_of(low, &of_rows);
            const corner_rows rows = corner_first_pass(&columns);
            corner_second_pass(to, stride, &rows);
            continue;
        }
        for (int i = 0; i < 4; i++)
            in[i].high = _mm512_mullo_epi16(_mm512_loadu_si512(blocks + 64 * i + 32), q1);
        const halves columns = {columns_of(in, &of_rows), columns_of(in + 2, &of_rows)};
        const halves rows = first_pass(&columns);
        second_pass(to, stride, &rows);
    }
}
