/* SPDX-License-Identifier: Apache-2.0
 *
 * The first half of every variant of the entropy decoder: decodes Huffman streams or plain bytes to
 * bitmaps, then finds the size planes and the extra bits. Compiled into each ISA file with its own flags,
 * so everything here is static inline. Table lookups in four independent streams do not benefit from wider
 * registers, so they are plain C everywhere. Bitmaps do benefit: a file with its own version defines
 * TILE_OWN_BITMAPS.
 */
#ifndef LEAT_DSP_TILE_FRONT_TMPL_H
#define LEAT_DSP_TILE_FRONT_TMPL_H

#include <string.h>

#include "base/bytes.h"
#include "dsp/tile_entropy.h"

#define TILE_INLINE static inline __attribute__((always_inline))

enum { STREAMS = 4, STREAM_HEADER = 2 * (STREAMS - 1), SYMBOLS_PER_FILL = 5 };

/* The parts after the bitmaps. Plane l has count[l] bits, one per value of size > l: set if the size is > l +
 * 1. The extra bits begin at `extra`. */
typedef struct tile_planes {
    const uint8_t *plane[LEAT__TILE_PLANES_MAX + 1];
    uint32_t count[LEAT__TILE_PLANES_MAX + 1];
    uint32_t planes;
    uint32_t values;
    const uint8_t *extra;
} tile_planes;

/* Four bit streams, read in turn. Positions are bits from `base`. A stream that runs past `limit` is held
 * there while loading, so that no load leaves the padding; the check of its end detects it. */
typedef struct tile_streams {
    const uint8_t *base;
    uint64_t limit;
    uint64_t pos[STREAMS];
} tile_streams;

TILE_INLINE uint64_t tile_bits_at(const uint8_t *base, uint64_t pos)
{
    return leat__load_u64(base + (pos >> 3)) >> (pos & 7);
}

/* Loads 57 bits or more, with a marker bit above them: its position tells how many bits were consumed. A
 * symbol takes at most 11 bits, so five fit. */
TILE_INLINE uint64_t tile_fill(const tile_streams *s, uint64_t *pos)
{
    if (__builtin_expect(*pos > s->limit, 0)) {
        *pos = s->limit;
        __asm__("" : "+r"(*pos)); /* forces a branch: a conditional move would delay each load */
    }
    return tile_bits_at(s->base, *pos) | UINT64_C(1) << 63;
}

#define TILE_SYMBOL(bits, i)                                                                                 \
    do {                                                                                                     \
        const uint16_t *t_ = entry + ((size_t)table[i] << LEAT__TILE_CODE_BITS);                             \
        __asm__("" : "+r"(t_));                                                                              \
        uint32_t e_ = t_[(bits) & ((1u << LEAT__TILE_CODE_BITS) - 1)];                                       \
        (bits) >>= (e_ & 63);                                                                                \
        out[i] = (uint8_t)(e_ >> 8);                                                                         \
    } while (0)

/* Decodes n symbols; symbol i comes from stream i % 4 and uses table[i]. */
TILE_INLINE void tile_symbols(tile_streams *s, const leat__tile_codes *codes, uint8_t *out,
                              const uint8_t *table, uint32_t n)
{
    const uint16_t *entry = codes->entry[0];
    const uint32_t step = STREAMS * SYMBOLS_PER_FILL;
    uint64_t p0 = s->pos[0], p1 = s->pos[1], p2 = s->pos[2], p3 = s->pos[3];

    for (; n >= step; n -= step, table += step, out += step) {
        uint64_t a = tile_fill(s, &p0), b = tile_fill(s, &p1);
        uint64_t c = tile_fill(s, &p2), d = tile_fill(s, &p3);
        TILE_SYMBOL(a, 0);
        TILE_SYMBOL(b, 1);
        TILE_SYMBOL(c, 2);
        TILE_SYMBOL(d, 3);
        TILE_SYMBOL(a, 4);
        TILE_SYMBOL(b, 5);
        TILE_SYMBOL(c, 6);
        TILE_SYMBOL(d, 7);
        TILE_SYMBOL(a, 8);
        TILE_SYMBOL(b, 9);
        TILE_SYMBOL(c, 10);
        TILE_SYMBOL(d, 11);
        TILE_SYMBOL(a, 12);
        TILE_SYMBOL(b, 13);
        TILE_SYMBOL(c, 14);
        TILE_SYMBOL(d, 15);
        TILE_SYMBOL(a, 16);
        TILE_SYMBOL(b, 17);
        TILE_SYMBOL(c, 18);
        TILE_SYMBOL(d, 19);
        p0 += (uint64_t)__builtin_clzll(a);
        p1 += (uint64_t)__builtin_clzll(b);
        p2 += (uint64_t)__builtin_clzll(c);
        p3 += (uint64_t)__builtin_clzll(d);
    }
    s->pos[0] = p0;
    s->pos[1] = p1;
    s->pos[2] = p2;
    s->pos[3] = p3;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t bits = tile_fill(s, &s->pos[i % STREAMS]);
        TILE_SYMBOL(bits, i);
        s->pos[i % STREAMS] += (uint64_t)__builtin_clzll(bits);
    }
}

/* Maps the symbol of a pair to two counts, the first block's in the low byte. */
#define TILE_ROW9(h)                                                                                         \
    0 | (h) << 8, 1 | (h) << 8, 2 | (h) << 8, 3 | (h) << 8, 4 | (h) << 8, 5 | (h) << 8, 6 | (h) << 8,        \
        7 | (h) << 8, 8 | (h) << 8
static const uint16_t tile_pair[LEAT__TILE_PAIRS] = {
    TILE_ROW9(0), TILE_ROW9(1), TILE_ROW9(2), TILE_ROW9(3), TILE_ROW9(4),
    TILE_ROW9(5), TILE_ROW9(6), TILE_ROW9(7), TILE_ROW9(8),
};
#undef TILE_ROW9

/* Decodes the counts of bitmap bytes of a component: pairs of n counts to groups[0 .. n). */
TILE_INLINE void tile_unpair(uint8_t *groups, const uint8_t *symbol, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 2) leat__store_u16(groups + i, tile_pair[*symbol++]);
}

/* Builds bitmaps from their bytes (block b has groups[b] of them), and finds where their values begin.
 * Returns the number of values. */
TILE_INLINE uint32_t tile_bitmaps(leat__tile_coefs *c, const uint8_t *bytes, uint32_t blocks);

/* Reads plain bitmaps: one nibble per block is its number of bitmap nibbles, minus one; then the nibbles of
 * all blocks, adjacent. */
TILE_INLINE leat__tile_damage tile_front_fast(leat__tile_coefs *c, const uint8_t *in, size_t len,
                                              const leat__tile_shape *shape, size_t *used, uint32_t *values);

/* Decodes Huffman-coded bitmaps. *used: bytes of the tile that were read. */
TILE_INLINE leat__tile_damage tile_front_small(leat__tile_coefs *c, const uint8_t *in, size_t len,
                                               const leat__tile_shape *shape, const leat__tile_codes *codes,
                                               size_t *used, uint32_t *values)
{
    if (len < STREAM_HEADER) return LEAT__TILE_SHORT;
    uint64_t start[STREAMS + 1] = {STREAM_HEADER};
    for (int s = 1; s < STREAMS; s++) start[s] = start[s - 1] + leat__load_u16(in + 2 * (s - 1));
    if (start[STREAMS - 1] > len) return LEAT__TILE_SHORT;
    tile_streams streams = {.base = in, .limit = (uint64_t)len * 8};
    for (int s = 0; s < STREAMS; s++) streams.pos[s] = start[s] * 8;

    uint32_t pairs = 0;
    for (uint32_t k = 0; k < shape->components; k++) {
        uint32_t n = (shape->count[k] + 1) / 2;
        memset(c->table + pairs, LEAT__TILE_CONTEXTS + (k > 0), n);
        pairs += n;
    }
    tile_symbols(&streams, codes, c->symbol, c->table, pairs);

    const uint8_t *symbol = c->symbol;
    uint8_t *table = c->table;
    for (uint32_t k = 0, block = 0; k < shape->components; k++) {
        const uint32_t n = shape->count[k];
        const uint8_t(*const context)[8] = codes->context[k > 0];
        uint8_t *const groups = c->groups + block;
        tile_unpair(groups, symbol, n);
        for (const uint8_t *g = groups; g < groups + n; g++) {
            const size_t bytes = *g;
            memcpy(table, context[bytes], 8);
            table += bytes;
        }
        symbol += (n + 1) / 2;
        block += n;
    }
    tile_symbols(&streams, codes, c->symbol, c->table, (uint32_t)(table - c->table));

    start[STREAMS] = (streams.pos[STREAMS - 1] + 7) >> 3;
    for (int s = 0; s < STREAMS; s++)
        if ((streams.pos[s] + 7) >> 3 != start[s + 1]) return LEAT__TILE_BAD_STREAM;
    if (start[STREAMS] > len) return LEAT__TILE_BAD_STREAM;
    *used = (size_t)start[STREAMS];
    *values = tile_bitmaps(c, c->symbol, shape->blocks);
    return LEAT__TILE_WHOLE;
}

#ifndef TILE_OWN_BITMAPS

/* Masks that keep the low `groups` bytes of a bitmap. */
static const uint64_t tile_keep[9] = {
    0,
    UINT64_C(0xff),
    UINT64_C(0xffff),
    UINT64_C(0xffffff),
    UINT64_C(0xffffffff),
    UINT64_C(0xffffffffff),
    UINT64_C(0xffffffffffff),
    UINT64_C(0xffffffffffffff),
    ~UINT64_C(0),
};

TILE_INLINE uint32_t tile_bitmaps(leat__tile_coefs *c, const uint8_t *bytes, uint32_t blocks)
{
    uint32_t values = 0;
    for (uint32_t b = 0; b < blocks; b++) {
        uint32_t groups = c->groups[b];
        uint64_t mask = leat__load_u64(bytes) & tile_keep[groups];
        c->mask[b] = mask;
        c->first[b] = values;
        values += (uint32_t)__builtin_popcountll(mask);
        bytes += groups;
    }
    return values;
}

TILE_INLINE leat__tile_damage tile_front_fast(leat__tile_coefs *c, const uint8_t *in, size_t len,
                                              const leat__tile_shape *shape, size_t *used, uint32_t *values)
{
    const size_t counts = (shape->blocks + 1) / 2;
    size_t at = counts * 2; /* in nibbles */
    uint32_t n = 0;
    if (len < counts + 1) return LEAT__TILE_SHORT;
    const size_t last = len - 1; /* loads start inside the tile, whatever the counts are */
    for (uint32_t b = 0; b < shape->blocks; b++) {
        uint32_t skip = 60 - 4 * (in[b / 2] >> 4 * (b & 1) & 15); /* unused bits at the top */
        const uint8_t *p = in + (at / 2 < last ? at / 2 : last);
        uint32_t shift = 4 * (at & 1);
        uint64_t mask = leat__load_u64(p) >> shift;
        mask |= ((uint64_t)p[8] << (60 - shift)) << 4 & (0 - (uint64_t)(at & 1));
        mask = mask << skip >> skip;
        c->mask[b] = mask;
        c->first[b] = n;
        n += (uint32_t)__builtin_popcountll(mask);
        at += 16 - skip / 4;
    }
    *used = (at + 1) / 2;
    *values = n;
    return *used <= len ? LEAT__TILE_WHOLE : LEAT__TILE_SHORT;
}

#endif

TILE_INLINE uint32_t tile_popcount(const uint8_t *bits, uint32_t n)
{
    uint32_t count = 0;
    for (; n >= 64; n -= 64, bits += 8) {
        uint64_t word = leat__load_u64(bits);
        __asm__("" : "+r"(word)); /* prevents vectorisation, which would gather */
        count += (uint32_t)__builtin_popcountll(word);
    }
    uint64_t rest = leat__load_u64(bits) & ((UINT64_C(1) << n) - 1);
    return count + (uint32_t)__builtin_popcountll(rest);
}

/* Writes the bitmaps to c->mask, and the positions of the other parts to *p. */
TILE_INLINE leat__tile_damage tile_front(leat__tile_coefs *c, const uint8_t *in, size_t len,
                                         const leat__tile_shape *shape, const leat__tile_codes *codes,
                                         tile_planes *p)
{
    size_t at = 0;
    uint32_t left = 0;
    leat__tile_damage damage = codes != NULL ? tile_front_small(c, in, len, shape, codes, &at, &left)
                                             : tile_front_fast(c, in, len, shape, &at, &left);
    if (damage != LEAT__TILE_WHOLE) return damage;

    uint64_t extra_bits = 0;
    p->values = left;
    p->planes = 0;
    while (left > 0) {
        size_t bytes = (left + 7) / 8;
        if (p->planes == LEAT__TILE_PLANES_MAX || len - at < bytes) return LEAT__TILE_BAD_PLANES;
        p->plane[p->planes] = in + at;
        p->count[p->planes++] = left;
        extra_bits += left; /* a value of size s is in s planes */
        left = tile_popcount(in + at, left);
        at += bytes;
    }
    if (len - at != (extra_bits + 7) / 8) return LEAT__TILE_BAD_END;
    p->extra = in + at;
    return LEAT__TILE_WHOLE;
}

/* Undoes the DC prediction. */
TILE_INLINE void tile_finish(leat__tile_coefs *c, const leat__tile_shape *shape)
{
    uint32_t b = 0;
    for (uint32_t k = 0; k < shape->components; k++) {
        uint32_t above = 0;
        for (uint32_t y = 0; y < shape->high[k]; y++) {
            uint32_t dc = above;
            for (uint32_t x = 0; x < shape->wide[k]; x++, b++) {
                uint32_t coded = (uint32_t)(c->mask[b] & 1);
                dc += (uint32_t)c->value[c->first[b]] & (0u - coded);
                c->dc[b] = (int16_t)dc;
                if (x == 0) above = dc;
            }
        }
    }
    for (uint32_t i = 0; i < LEAT__TILE_BLOCKS_PAD; i++) {
        c->mask[b + i] = 0;
        c->first[b + i] = 0;
        c->dc[b + i] = 0;
    }
}

/* Decodes JPEG's amplitude code: numbers of n bits without the top bit are negative. Written without a
 * condition: compilers turn it into a branch, which would be unpredictable. */
TILE_INLINE int16_t tile_amplitude(uint64_t bits, uint32_t size)
{
    uint32_t ones = (1u << size) - 1;
    uint32_t v = (uint32_t)bits & ones;
    uint32_t negative = (v << 1 >> size) - 1; /* all ones or zero */
    return (int16_t)(v - (ones & negative));
}

#endif
