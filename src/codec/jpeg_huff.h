/* SPDX-License-Identifier: Apache-2.0
 *
 * Huffman tables of a JPEG in the form that jpeg_scan.c decodes with: one look at the next
 * few bits gives up to two coefficients, their places and how many bits they took.
 * No state of its own; whoever owns a table rebuilds it.
 */
#ifndef LEAT_CODEC_JPEG_HUFF_H
#define LEAT_CODEC_JPEG_HUFF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LEAT__HUFF_LOOK 11 /* bits looked at: 8 KiB per table, two of which stay in L1 */

/* An entry: bits 0..5 how many bits it takes; bits 6 and 7 what it is beside plain values. */
enum {
    LEAT__HUFF_END = 64,   /* the block ends behind the first value, which may be 0 for none */
    LEAT__HUFF_CODE = 128, /* just a code, its symbol in bits 8..15; none if it takes no bits */
    LEAT__HUFF_KIND = 192
};

/* Bits 8..11: how far the first value is from the one before, 12..15: the second from the first;
 * 0 when there is none. Bits 16..23 and 24..31: the values, equal when there is one. */
static inline uint32_t leat__huff_first(uint32_t entry)
{
    return entry >> 8 & 15;
}

static inline uint32_t leat__huff_second(uint32_t entry)
{
    return entry >> 12 & 15;
}

typedef struct leat__huff {
    uint32_t look[1 << LEAT__HUFF_LOOK];
    /* Any code: the first of l bits that is too large for a code of l bits, left-aligned in
     * 16 bits, and what to add to a code for its symbol's place. */
    uint32_t limit[18];
    int32_t place[17];
    uint8_t symbol[256];
    uint8_t counts[16], symbols[256]; /* as in the file, to know the table again */
    bool is_dc, built;
    bool unique; /* no symbol has two codes */
} leat__huff;

/* `counts` of codes per length 1..16, then `symbols` in the order of their codes, as in the
 * file; the sum of counts is at most 256 and that many symbols are there. False when this is
 * no table that libjpeg takes. Does nothing when the table is that one already. */
bool leat__huff_build(leat__huff *t, const uint8_t counts[16], const uint8_t *symbols,
                      bool is_dc);

/* Code at the top of `bits`, however long: its length (0: none) and symbol. */
static inline uint32_t leat__huff_code(const leat__huff *t, uint64_t bits, uint32_t *symbol)
{
    uint32_t top = (uint32_t)(bits >> 48), l = 1;
    while (top >= t->limit[l]) l++; /* limit[17] stops it */
    if (l > 16) return 0;
    *symbol = t->symbol[(uint8_t)((int32_t)(top >> (16 - l)) + t->place[l])];
    return l;
}

/* The value that `size` (0..15) bits at the top of `bits` stand for. */
static inline int32_t leat__huff_extend(uint64_t bits, uint32_t size)
{
    int32_t v = (int32_t)(bits >> 1 >> (63 - size));
    int32_t positive = (int32_t)((int64_t)bits >> 63);
    return v + (~positive & (1 - (int32_t)(1u << size)));
}

#endif
