/* SPDX-License-Identifier: Apache-2.0
 *
 * Huffman tables of a JPEG in the form that jpeg_scan.c decodes with: one look at the next
 * few bits gives up to two coefficients, their places and how many bits they take.
 * No state; the owner of a table rebuilds it.
 */
#ifndef LEAT_CODEC_JPEG_HUFF_H
#define LEAT_CODEC_JPEG_HUFF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Bits of a lookup for an AC coefficient and for a DC difference: 8 KiB and 1 KiB per table, so
 * that two of each stay in L1. */
#define LEAT__HUFF_LOOK 10
#define LEAT__HUFF_LOOK_DC 8

/* What AC coefficients the next bits begin with: one or two, or one and the end of the block.
 * The first of two is within the bits seen, and in the table. Of the last, only the code has to
 * be: its value is the last bits that are taken. With one coefficient only, `first` is where the
 * last is; with the end, `last` is the place behind the first, whose value is zero. Bytes are
 * loaded one by one: a core has more loads to spare than shifts. */
typedef struct leat__huff_look {
    _Alignas(8) uint8_t bits; /* taken, LEAT__HUFF_TAKE at most; may have LEAT__HUFF_END */
    uint8_t first, last;      /* how far they are from the coefficient before */
    int8_t value;             /* of the first */
    uint16_t mask;            /* as many ones as the last has bits */
} leat__huff_look;

enum {
    LEAT__HUFF_END = 64,
    LEAT__HUFF_TAKE = 18,   /* so that 56 bits are enough for three looks */
    LEAT__HUFF_NOWHERE = 64 /* `last` of what is none of that: behind the end of any block */
};

/* The value that `bits`, all of `mask`, stand for. */
static inline int32_t leat__huff_signed(uint32_t bits, uint32_t mask)
{
    return (int32_t)(bits - (2 * bits < mask ? mask : 0));
}

/* What DC difference the next bits are. */
typedef struct leat__huff_mean {
    uint8_t bits;       /* of both; 0: the code is longer than the bits seen */
    uint8_t code, size; /* bits of the code, of the value */
} leat__huff_mean;

/* The code that the next bits begin with; of 0 bits when it is longer than the bits seen. */
typedef struct leat__huff_short {
    uint8_t bits, symbol;
} leat__huff_short;

typedef struct leat__huff {
    union {
        struct {
            leat__huff_look look[1 << LEAT__HUFF_LOOK];
            leat__huff_short known[1 << LEAT__HUFF_LOOK]; /* where a look says too much */
        };
        leat__huff_mean mean[1 << LEAT__HUFF_LOOK_DC];
    };
    /* Any code: the first of l bits that is too large for a code of l bits, left-aligned in
     * 16 bits, and what to add to a code for its symbol's place. */
    uint32_t limit[17];
    int32_t place[17];
    uint8_t symbol[256];
    uint8_t counts[16], symbols[256]; /* as in the file, to know the table again */
    bool is_dc, built;
    bool unique; /* no symbol has two codes */
} leat__huff;

/* `counts` of codes per length 1..16, then `symbols` in the order of their codes, as in the
 * file; the sum of counts is at most 256 and that many symbols are there. False when
 * libjpeg would refuse the table. Does nothing when the table is that one already. */
bool leat__huff_build(leat__huff *t, const uint8_t counts[16], const uint8_t *symbols, bool is_dc);

/* Code at the top of `bits`, however long: its length (0: none) and symbol. */
static inline uint32_t leat__huff_code(const leat__huff *t, uint64_t bits, uint32_t *symbol)
{
    const uint32_t top = (uint32_t)(bits >> 48);
    uint32_t l = 1;
    for (int i = 1; i <= 16; i++) l += top >= t->limit[i]; /* limits ascend; no branch to foresee */
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
