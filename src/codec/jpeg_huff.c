/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds lookup tables from JPEG's code counts. Photographs often have their own tables, so this runs once
 * or more per image and is limited to about 10,000 cycles per table.
 */
#include "codec/jpeg_huff.h"

#include "base/num.h"

#define LOOK LEAT__HUFF_LOOK

enum { EOB = 0, VALUE_BITS_MAX = 7 };

typedef leat__huff_short code;

/* Returns the entry for code `a` and its value alone. */
static leat__huff_look look_at_one(code a)
{
    uint32_t size = a.symbol & 15, bits = a.bits + size;
    uint8_t place = (uint8_t)((a.symbol >> 4) + 1);
    if (a.bits != 0 && a.symbol == EOB)
        return (leat__huff_look){.bits = (uint8_t)(LEAT__HUFF_END | bits), .first = 1, .last = 1};
    if (a.bits == 0 || size == 0 || bits > LEAT__HUFF_TAKE)
        return (leat__huff_look){.last = LEAT__HUFF_NOWHERE};
    return (leat__huff_look){
        .bits = (uint8_t)bits, .first = place, .last = place, .mask = (uint16_t)((1u << size) - 1)};
}

/* Extends `one`, whose value is known, by code `b` and its value if they fit. */
static inline leat__huff_look look_at_two(leat__huff_look one, int32_t value, code b)
{
    uint32_t size = b.symbol & 15, code_end = one.bits + b.bits, end = code_end + size;
    bool is_end = b.symbol == EOB;
    if (b.bits == 0 || code_end > LOOK || end > LEAT__HUFF_TAKE || (size == 0 && !is_end)) return one;
    return (leat__huff_look){.bits = (uint8_t)(end | (is_end ? LEAT__HUFF_END : 0u)),
                             .first = one.first,
                             .last = (uint8_t)(one.last + (b.symbol >> 4) + 1),
                             .value = (int8_t)value,
                             .mask = (uint16_t)((1u << size) - 1)};
}

/* Fills the table. Entries that begin with the same code, or with the same code and value, are adjacent. */
static void fill_looks(leat__huff_look *look, const code *codes)
{
    for (uint32_t seen = 0, n; seen < 1u << LOOK; seen += n) {
        code a = codes[seen];
        leat__huff_look one = look_at_one(a);
        uint32_t size = a.symbol & 15;
        bool alone = one.mask == 0 || size > VALUE_BITS_MAX || one.bits >= LOOK;
        if (alone) {
            n = a.bits == 0 ? 1 : 1u << (LOOK - a.bits);
            for (uint32_t i = 0; i < n; i++) look[seen + i] = one;
            continue;
        }
        int32_t value = leat__huff_extend((uint64_t)seen << (64 - LOOK + a.bits), size);
        n = 1u << (LOOK - one.bits);
        for (uint32_t i = 0; i < n; i++) look[seen + i] = look_at_two(one, value, codes[i << one.bits]);
    }
}

static void put_ac(code *codes, uint32_t bits, uint32_t l, uint32_t symbol)
{
    uint32_t first = bits << (LOOK - l), count = 1u << (LOOK - l);
    for (uint32_t i = first; i < first + count; i++) codes[i] = (code){(uint8_t)l, (uint8_t)symbol};
}

static void put_dc(leat__huff_mean *mean, uint32_t bits, uint32_t l, uint32_t size)
{
    uint32_t first = bits << (LEAT__HUFF_LOOK_DC - l), count = 1u << (LEAT__HUFF_LOOK_DC - l);
    for (uint32_t i = first; i < first + count; i++)
        mean[i] = (leat__huff_mean){(uint8_t)(l + size), (uint8_t)l, (uint8_t)size};
}

static bool assign_codes(leat__huff *t)
{
    uint32_t bits = 0, at = 0;
    bool seen[256] = {false};
    t->unique = true;
    for (uint32_t l = 1; l <= 16; l++, bits <<= 1) {
        t->place[l] = (int32_t)at - (int32_t)bits;
        for (uint32_t i = 0; i < t->counts[l - 1]; i++, bits++, at++) {
            uint32_t symbol = t->symbols[at];
            if (t->is_dc && symbol > 15) return false;
            if (bits >> l != 0) return false;
            t->symbol[at] = (uint8_t)symbol;
            t->unique = t->unique && !seen[symbol];
            seen[symbol] = true;
            if (t->is_dc && l <= LEAT__HUFF_LOOK_DC) put_dc(t->mean, bits, l, symbol);
            if (!t->is_dc && l <= LOOK) put_ac(t->known, bits, l, symbol);
        }
        if (bits >> l != 0) return false; /* no code is all ones */
        t->limit[l] = bits << (16 - l);
    }
    return true;
}

bool leat__huff_build(leat__huff *t, const uint8_t counts[16], const uint8_t *symbols, bool is_dc)
{
    size_t n = 0;
    for (int l = 0; l < 16; l++) n += counts[l];
    if (n > 256) return false;
    if (t->built && t->is_dc == is_dc && memcmp(t->counts, counts, 16) == 0 &&
        memcmp(t->symbols, symbols, n) == 0)
        return true;
    t->built = false;
    t->is_dc = is_dc;
    memcpy(t->counts, counts, 16);
    memcpy(t->symbols, symbols, n);
    if (is_dc) memset(t->mean, 0, sizeof t->mean);
    else memset(t->known, 0, sizeof t->known);
    t->built = assign_codes(t);
    if (t->built && !is_dc) fill_looks(t->look, t->known);
    return t->built;
}
