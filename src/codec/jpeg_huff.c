/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds lookup tables from JPEG's code counts. Photographs often carry tables of their own, so
 * this runs once or more per image and is kept to some 10,000 cycles per table.
 */
#include "codec/jpeg_huff.h"

#include "base/num.h"

#define LOOK LEAT__HUFF_LOOK

enum { EOB = 0, VALUE_BITS_MAX = 7 };

/* The code that LOOK bits begin with; of 0 bits when it is longer. */
typedef struct code {
    uint8_t bits, symbol;
} code;

static leat__huff_look look_at(const code *codes, uint32_t seen)
{
    const leat__huff_look other = {.last = LEAT__HUFF_NOWHERE};
    code a = codes[seen];
    uint32_t size = a.symbol & 15, bits = a.bits + size, place = (a.symbol >> 4) + 1u;
    if (a.bits == 0) return other;
    if (a.symbol == EOB)
        return (leat__huff_look){.bits = (uint8_t)(LEAT__HUFF_END | bits), .first = 1, .last = 1};
    if (size == 0 || bits > LEAT__HUFF_TAKE) return other;
    leat__huff_look e = {.bits = (uint8_t)bits, .first = (uint8_t)place, .last = (uint8_t)place,
                         .mask = (uint16_t)((1u << size) - 1)};
    if (size > VALUE_BITS_MAX || bits >= LOOK) return e;

    code b = codes[seen << bits & ((1u << LOOK) - 1)];
    uint32_t size_b = b.symbol & 15, both = bits + b.bits + size_b;
    if (b.bits == 0 || bits + b.bits > LOOK || both > LEAT__HUFF_TAKE) return e;
    if (size_b == 0 && b.symbol != EOB) return e;
    e.bits = (uint8_t)(both | (b.symbol == EOB ? LEAT__HUFF_END : 0u));
    e.last = (uint8_t)(place + (b.symbol >> 4) + 1);
    e.value = (int8_t)leat__huff_extend((uint64_t)seen << (64 - LOOK + a.bits), size);
    e.mask = (uint16_t)((1u << size_b) - 1);
    return e;
}

static void put_ac(code *codes, uint32_t bits, uint32_t l, uint32_t symbol)
{
    uint32_t first = bits << (LOOK - l), count = 1u << (LOOK - l);
    for (uint32_t i = first; i < first + count; i++)
        codes[i] = (code){(uint8_t)l, (uint8_t)symbol};
}

static void put_dc(leat__huff_mean *mean, uint32_t bits, uint32_t l, uint32_t size)
{
    uint32_t first = bits << (LEAT__HUFF_LOOK_DC - l), count = 1u << (LEAT__HUFF_LOOK_DC - l);
    for (uint32_t i = first; i < first + count; i++)
        mean[i] = (leat__huff_mean){(uint8_t)(l + size), (uint8_t)l, (uint8_t)size};
}

static bool assign_codes(leat__huff *t, code *codes)
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
            if (!t->is_dc && l <= LOOK) put_ac(codes, bits, l, symbol);
        }
        if (bits >> l != 0) return false; /* no code is all ones */
        t->limit[l] = bits << (16 - l);
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
    code codes[1 << LOOK] = {{0}};
    if (is_dc) memset(t->mean, 0, sizeof t->mean);
    t->built = assign_codes(t, codes);
    for (uint32_t i = 0; t->built && !is_dc && i < 1u << LOOK; i++)
        t->look[i] = look_at(codes, i);
    return t->built;
}
