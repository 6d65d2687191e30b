/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds lookup tables from JPEG's code counts. Photographs often carry tables of their own, so
 * this runs once or more per image and is kept to some 10,000 cycles per table.
 */
#include "codec/jpeg_huff.h"

#include "base/num.h"

#define LOOK LEAT__HUFF_LOOK

/* Values that fit an entry: seven bits and a sign, distances up to 15. */
enum { SIZE_MAX_IN_ENTRY = 7, DISTANCE_MAX = 15, ZRL = 0xf0, EOB = 0 };

static void fill(uint32_t *look, uint32_t first, uint32_t count, uint32_t entry)
{
    for (uint32_t i = 0; i < count; i++) look[first + i] = entry;
}

/* All entries that begin with `code` of l <= LOOK bits. */
static void put_ac(uint32_t *look, uint32_t code, uint32_t l, uint32_t symbol)
{
    uint32_t first = code << (LOOK - l), count = 1u << (LOOK - l);
    uint32_t size = symbol & 15, distance = (symbol >> 4) + 1;
    if (symbol == EOB) {
        fill(look, first, count, LEAT__HUFF_END | 1u << 8 | l); /* a zero in the next place */
    } else if (size == 0 || size > SIZE_MAX_IN_ENTRY || distance > DISTANCE_MAX
               || l + size > LOOK) {
        fill(look, first, count, LEAT__HUFF_CODE | l | symbol << 8);
    } else {
        count >>= size;
        for (uint32_t extra = 0; extra < 1u << size; extra++, first += count) {
            uint32_t v = (uint8_t)leat__huff_extend((uint64_t)extra << (64 - size), size);
            fill(look, first, count, v << 24 | v << 16 | distance << 8 | (l + size));
        }
    }
}

/* Joins each entry of one value with what follows it, where both fit into the bits seen. */
static void join(uint32_t *look, const uint32_t *single)
{
    for (uint32_t i = 0; i < 1u << LOOK; i++) {
        uint32_t a = single[i];
        uint32_t b = single[i << (a & 63) & ((1u << LOOK) - 1)];
        uint32_t bits = (a & 63) + (b & 63);
        bool fits = (a & LEAT__HUFF_KIND) == 0 && (b & LEAT__HUFF_CODE) == 0 && bits <= LOOK;
        uint32_t pair = (a & 0x00ff0f00) | (b & 0xff000000) | (b << 4 & 0xf000) | bits;
        uint32_t last = (a & 0xffff0f00) | LEAT__HUFF_END | bits;
        look[i] = !fits ? a : (b & LEAT__HUFF_END) != 0 ? last : pair;
    }
}

static bool assign_codes(leat__huff *t, uint32_t *look)
{
    uint32_t code = 0, at = 0;
    bool seen[256] = {false};
    t->unique = true;
    for (uint32_t l = 1; l <= 16; l++, code <<= 1) {
        t->place[l] = (int32_t)at - (int32_t)code;
        for (uint32_t i = 0; i < t->counts[l - 1]; i++, code++, at++) {
            uint32_t symbol = t->symbols[at];
            if (t->is_dc && symbol > 15) return false;
            if (code >> l != 0) return false;
            t->symbol[at] = (uint8_t)symbol;
            t->unique = t->unique && !seen[symbol];
            seen[symbol] = true;
            if (l > LOOK) continue;
            if (t->is_dc)
                fill(look, code << (LOOK - l), 1u << (LOOK - l),
                     LEAT__HUFF_CODE | l | symbol << 8);
            else
                put_ac(look, code, l, symbol);
        }
        if (code >> l != 0) return false; /* no code is all ones */
        t->limit[l] = code << (16 - l);
    }
    t->limit[17] = UINT32_MAX;
    return true;
}

bool leat__huff_build(leat__huff *t, const uint8_t counts[16], const uint8_t *symbols,
                      bool is_dc)
{
    size_t n = 0;
    for (int l = 0; l < 16; l++) n += counts[l];
    if (n > 256) return false;
    if (t->built && t->is_dc == is_dc && memcmp(t->counts, counts, 16) == 0
        && memcmp(t->symbols, symbols, n) == 0)
        return true;
    t->built = false;
    t->is_dc = is_dc;
    memcpy(t->counts, counts, 16);
    memcpy(t->symbols, symbols, n);
    uint32_t single[1 << LOOK];
    uint32_t *look = is_dc ? t->look : single;
    fill(look, 0, 1u << LOOK, LEAT__HUFF_CODE);
    t->built = assign_codes(t, look);
    if (t->built && !is_dc) join(t->look, single);
    return t->built;
}
