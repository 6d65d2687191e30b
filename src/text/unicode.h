/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties of code points, and decoding of UTF-8. gen_unicode.py writes the tables at build time.
 * Constant data: any thread.
 */
#ifndef LEAT_TEXT_UNICODE_H
#define LEAT_TEXT_UNICODE_H

#include <stddef.h>
#include <stdint.h>

enum {
    LEAT__UNI_SPACE = 1 << 0,    /* Python's str.isspace() */
    LEAT__UNI_ALPHA = 1 << 1,    /* str.isalpha() */
    LEAT__UNI_DIGIT = 1 << 2,    /* category Nd */
    LEAT__UNI_MARK = 1 << 3,     /* punctuation, symbols, separators, controls: separate words */
    LEAT__UNI_SYMBOL = 1 << 4,   /* datatrove's set of punctuation */
    LEAT__UNI_BREAK = 1 << 5,    /* str.splitlines() breaks here */
    LEAT__UNI_BULLET = 1 << 6,   /* NeMo's list of bullets */
    LEAT__UNI_TERMINAL = 1 << 7, /* ends a sentence (Sentence_Terminal) */
};

extern const uint8_t *const leat__unicode_index;        /* block of code point >> 7 */
extern const uint8_t (*const leat__unicode_block)[128]; /* properties in the block */

static inline uint8_t leat__unicode_of(uint32_t code)
{
    return code < 0x110000 ? leat__unicode_block[leat__unicode_index[code >> 7]][code & 127] : 0;
}

extern const uint8_t *const leat__unicode_case_index;  /* block of code point >> 7; 0 = no capitals */
extern const int32_t (*const leat__unicode_case)[128]; /* offset to the code point without case */

/* Returns the code point without case: simple case folding; ASCII is unchanged. */
static inline uint32_t leat__unicode_fold(uint32_t code)
{
    uint8_t block = leat__unicode_case_index[code >> 7];
    return block == 0 ? code : code + (uint32_t)leat__unicode_case[block][code & 127];
}

/* Decodes the code point at p of valid UTF-8; *len is its length in bytes. */
static inline uint32_t leat__utf8_decode(const uint8_t *p, uint32_t *len)
{
    uint32_t c = p[0];
    if (c < 0x80) {
        *len = 1;
        return c;
    }
    if (c < 0xe0) {
        *len = 2;
        return (c & 31) << 6 | (p[1] & 63u);
    }
    if (c < 0xf0) {
        *len = 3;
        return (c & 15) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u);
    }
    *len = 4;
    return (c & 7) << 18 | (p[1] & 63u) << 12 | (p[2] & 63u) << 6 | (p[3] & 63u);
}

/* Writes a code point as UTF-8, at most 4 bytes; returns how many. */
static inline uint32_t leat__utf8_encode(uint32_t code, uint8_t *out)
{
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xc0 | code >> 6);
        out[1] = (uint8_t)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xe0 | code >> 12);
        out[1] = (uint8_t)(0x80 | (code >> 6 & 63));
        out[2] = (uint8_t)(0x80 | (code & 63));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | code >> 18);
    out[1] = (uint8_t)(0x80 | (code >> 12 & 63));
    out[2] = (uint8_t)(0x80 | (code >> 6 & 63));
    out[3] = (uint8_t)(0x80 | (code & 63));
    return 4;
}

/* Returns the offset of the first byte that is not valid UTF-8 (overlong forms and surrogates are invalid),
 * or `len` when all bytes are valid. */
size_t leat__utf8_check(const uint8_t *p, size_t len);

#endif
