/* SPDX-License-Identifier: Apache-2.0
 *
 * Huffman tables of a JPEG in the form that jpeg_scan.c uses: one lookup of the next few bits gives up to
 * two coefficients, their positions and how many bits they take. No state; the owner of a table rebuilds
 * it.
 */
#ifndef LEAT_CODEC_JPEG_HUFF_H
#define LEAT_CODEC_JPEG_HUFF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Bits of a lookup for an AC coefficient and for a DC difference: 8 KiB and 1 KiB per table, so two of each
 * stay in L1. */
#define LEAT__HUFF_LOOK 10
#define LEAT__HUFF_LOOK_DC 8

/* The AC coefficients at the start of the next bits: one or two, or one and the end of the block. The first
 * of two is complete in the bits seen, and its value is in the table. For the last, only the code must be in
 * the bits seen: its value is in the last bits taken. With a single coefficient, `first` equals `last`. With
 * the end of the block, `last` is the position after the first, with value zero. The fields are loaded one by
 * one: a core has more loads to spare than shifts. */
typedef struct leat__huff_look {
    _Alignas(8) uint8_t bits; /* bits taken, at most LEAT__HUFF_TAKE; may include LEAT__HUFF_END */
    uint8_t first, last;      /* distances from the previous coefficient */
    int8_t value;             /* of the first */
    uint16_t mask;            /* as many ones as the last value has bits */
} leat__huff_look;

enum {
    LEAT__HUFF_END = 64,
    LEAT__HUFF_TAKE = 18,   /* so that 56 bits are enough for three lookups */
    LEAT__HUFF_NOWHERE = 64 /* `last` of an entry without a result: past the end of any block */
};

/* Returns the value of `bits`, which has as many bits as `mask`. */
static inline int32_t leat__huff_signed(uint32_t bits, uint32_t mask)
{
    return (int32_t)(bits - (2 * bits < mask ? mask : 0));
}

/* The DC difference at the start of the next bits. */
typedef struct leat__huff_mean {
    uint8_t bits;       /* code and value together; 0: the code is longer than the bits seen */
    uint8_t code, size; /* bits of the code and of the value */
} leat__huff_mean;

/* The code at the start of the next bits; bits = 0 when it is longer than the bits seen. */
typedef struct leat__huff_short {
    uint8_t bits, symbol;
} leat__huff_short;

typedef struct leat__huff {
    union {
        struct {
            leat__huff_look look[1 << LEAT__HUFF_LOOK];
            leat__huff_short known[1 << LEAT__HUFF_LOOK]; /* single codes, where `look` covers too much */
        };
        leat__huff_mean mean[1 << LEAT__HUFF_LOOK_DC];
    };
    /* For codes of any length: the first value of l bits that is too large for a code of l bits, left-aligned
     * in 16 bits; and the offset from a code to its symbol's position. */
    uint32_t limit[17];
    int32_t place[17];
    uint8_t symbol[256];
    uint8_t counts[16], symbols[256]; /* as in the file, to recognise the same table */
    bool is_dc, built;
    bool unique; /* no symbol has two codes */
} leat__huff;

/* Builds a table from `counts` of codes per length 1..16 and `symbols` in the order of their codes, as in the
 * file. The sum of counts must be at most 256, with that many symbols. False when libjpeg would refuse the
 * table. Does nothing when the table is already built from them. */
bool leat__huff_build(leat__huff *t, const uint8_t counts[16], const uint8_t *symbols, bool is_dc);

/* Decodes the code at the top of `bits`, of any length: returns its length (0: none) and its symbol. */
static inline uint32_t leat__huff_code(const leat__huff *t, uint64_t bits, uint32_t *symbol)
{
    const uint32_t top = (uint32_t)(bits >> 48);
    uint32_t l = 1;
    for (int i = 1; i <= 16; i++) l += top >= t->limit[i]; /* limits ascend; avoids an unpredictable branch */
    if (l > 16) return 0;
    *symbol = t->symbol[(uint8_t)((int32_t)(top >> (16 - l)) + t->place[l])];
    return l;
}

/* Returns the value of `size` (0..15) bits at the top of `bits`. */
static inline int32_t leat__huff_extend(uint64_t bits, uint32_t size)
{
    int32_t v = (int32_t)(bits >> 1 >> (63 - size));
    int32_t positive = (int32_t)((int64_t)bits >> 63);
    return v + (~positive & (1 - (int32_t)(1u << size)));
}

#endif
