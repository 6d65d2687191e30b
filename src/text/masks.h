/* SPDX-License-Identifier: Apache-2.0
 *
 * Bit masks of a block of 64 bytes, one bit per byte. Each variant of the kernels fills them with
 * its own block_masks(), which may read 64 bytes past the block.
 */
#ifndef LEAT_TEXT_MASKS_H
#define LEAT_TEXT_MASKS_H

#include <stdint.h>

typedef struct masks {
    uint64_t nonascii; /* 0x80 and above */
    uint64_t follow;   /* continuation bytes of a code point; valid only where nonascii is set */
    uint64_t newline, tab;
    uint64_t white;   /* space and 9 to 13 */
    uint64_t control; /* below 0x20 */
    uint64_t alpha, digit;
    uint64_t bracket; /* ()[]{} */
    uint64_t mark;    /* ,.!? */
    uint64_t hash, curly;
    uint64_t ends;      /* .!? before white space, or before one of "')] and white space */
    uint64_t candidate; /* where a rare pattern may begin: see words_tmpl.h */
} masks;

/* Sentence ends computed from other masks; p is the block, for the two bytes after it. */
static inline uint64_t masks_ends(const uint8_t *p, uint64_t marks, uint64_t white, uint64_t closer)
{
    uint64_t w64 = p[64] == ' ' || (p[64] >= 9 && p[64] <= 13),
             w65 = p[65] == ' ' || (p[65] >= 9 && p[65] <= 13);
    uint64_t c64 = p[64] == '"' || p[64] == '\'' || p[64] == ')' || p[64] == ']';
    uint64_t white1 = white >> 1 | w64 << 63, white2 = white >> 2 | w64 << 62 | w65 << 63;
    return marks & (white1 | ((closer >> 1 | c64 << 63) & white2));
}

#endif
