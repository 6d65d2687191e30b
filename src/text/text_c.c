/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels in plain C: the reference for the others.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "text/masks.h"
#include "text/text_dsp.h"

enum { WHITE = 1, CONTROL = 2, ALPHA = 4, DIGIT = 8, BRACKET = 16, MARK = 32, END = 64, CLOSER = 128 };

static inline uint32_t class_of(uint8_t c)
{
    if ((c | 32) >= 'a' && (c | 32) <= 'z') return ALPHA;
    if (c >= '0' && c <= '9') return DIGIT;
    switch (c) {
    case ' ': return WHITE;
    case '\t':
    case '\n':
    case '\v':
    case '\f':
    case '\r': return WHITE | CONTROL;
    case ',': return MARK;
    case '.':
    case '!':
    case '?': return MARK | END;
    case '"':
    case '\'': return CLOSER;
    case ')':
    case ']': return BRACKET | CLOSER;
    case '(':
    case '[':
    case '{':
    case '}': return BRACKET;
    default: return c < 0x20 ? CONTROL : 0;
    }
}

/* True when one of the patterns may begin here. The checked bytes are cooKIE, priVACy,
 * jaVAScript, teRMS, IPSum, "://", "..." and "#x#". */
static inline uint64_t is_candidate(const uint8_t *p)
{
    uint8_t a = p[0] | 32, b = p[1] | 32, c = p[2] | 32;
    switch (a) {
    case 'k': return b == 'i' && c == 'e';
    case 'v': return b == 'a' && (c == 'c' || c == 's');
    case 'r': return b == 'm' && c == 's';
    case 'i': return b == 'p' && c == 's';
    case ':': return p[0] == ':' && p[1] == '/' && p[2] == '/';
    case '.': return p[0] == '.' && p[1] == '.' && p[2] == '.';
    case '#': return p[0] == '#' && p[1] != '#' && p[2] == '#';
    default: return 0;
    }
}

static inline void block_masks(const uint8_t *p, masks *m)
{
    uint64_t closer = 0, end = 0;
    *m = (masks){0};
    for (uint32_t i = 0; i < 64; i++) {
        uint8_t c = p[i];
        uint64_t is = class_of(c);
        m->nonascii |= (uint64_t)(c >> 7) << i;
        m->follow |= (uint64_t)((c & 0xc0) == 0x80) << i;
        m->newline |= (uint64_t)(c == '\n') << i;
        m->tab |= (uint64_t)(c == '\t') << i;
        m->hash |= (uint64_t)(c == '#') << i;
        m->curly |= (uint64_t)(c == '{') << i;
        m->white |= (is & 1) << i;
        m->control |= (is >> 1 & 1) << i;
        m->alpha |= (is >> 2 & 1) << i;
        m->digit |= (is >> 3 & 1) << i;
        m->bracket |= (is >> 4 & 1) << i;
        m->mark |= (is >> 5 & 1) << i;
        end |= (is >> 6 & 1) << i;
        closer |= (is >> 7 & 1) << i;
        m->candidate |= is_candidate(p + i) << i;
    }
    m->ends = masks_ends(p, end, m->white, closer);
}

static inline void word_masks(const uint8_t *p, uint64_t *nonascii, uint64_t *alnum)
{
    *nonascii = *alnum = 0;
    for (uint32_t i = 0; i < 64; i++) {
        *nonascii |= (uint64_t)(p[i] >> 7) << i;
        *alnum |= (uint64_t)((class_of(p[i]) & (ALPHA | DIGIT)) != 0) << i;
    }
}

static inline void letter_masks(const uint8_t *p, uint64_t *nonascii, uint64_t *letter, uint64_t *digit)
{
    *nonascii = *letter = *digit = 0;
    for (uint32_t i = 0; i < 64; i++) {
        *nonascii |= (uint64_t)(p[i] >> 7) << i;
        *letter |= (uint64_t)(class_of(p[i]) == ALPHA) << i;
        *digit |= (uint64_t)(class_of(p[i]) == DIGIT) << i;
    }
}

/* Python's white space. */
static inline void white_mask(const uint8_t *p, uint64_t *nonascii, uint64_t *white)
{
    *nonascii = *white = 0;
    for (uint32_t i = 0; i < 64; i++) {
        *nonascii |= (uint64_t)(p[i] >> 7) << i;
        *white |= (uint64_t)((p[i] >= 9 && p[i] <= 13) || (p[i] >= 28 && p[i] <= 32)) << i;
    }
}

#define LANE_BYTES 16

/* Converts 64 bytes to lower case, with blanks for white space. */
static inline void fold_block(const uint8_t *p, uint8_t *out, uint64_t *nonascii, uint64_t *white)
{
    white_mask(p, nonascii, white);
    for (uint32_t i = 0; i < 64; i++) {
        uint8_t c = p[i] >= 'A' && p[i] <= 'Z' ? p[i] | 32 : p[i];
        out[i] = *white >> i & 1 ? ' ' : c;
    }
}

/* Marks the first bytes of characters that may be white space. */
static inline uint64_t blank_leads(const uint8_t *p)
{
    uint64_t m = 0;
    for (uint32_t i = 0; i < 64; i++) m |= (uint64_t)(p[i] == 0xc2 || (p[i] >= 0xe1 && p[i] <= 0xe3)) << i;
    return m;
}

static inline uint64_t char_starts(const uint8_t *p)
{
    uint64_t m = 0;
    for (uint32_t i = 0; i < 64; i++) m |= (uint64_t)((p[i] & 0xc0) != 0x80) << i;
    return m;
}

static inline uint64_t high_bytes(const uint8_t *p)
{
    uint64_t nonascii, white;
    white_mask(p, &nonascii, &white);
    return nonascii;
}

/* Writes the 8-byte words at eight consecutive bytes. */
static inline void spread_words(const uint8_t *p, void *out)
{
    for (uint32_t i = 0; i < 8; i++) memcpy((uint8_t *)out + 8 * i, p + i, 8);
}

#include "text/scan_tmpl.h"

#include "text/words_tmpl.h"

#include "text/lines_tmpl.h"

#include "text/ngrams_tmpl.h"

#include "text/shingle_tmpl.h"

#include "text/join_tmpl.h"

static const uint8_t *string_stop(const uint8_t *p)
{
    while (*p != '"' && *p != '\\' && *p >= 0x20) p++;
    return p;
}

static const uint8_t *string_copy(const uint8_t *p, uint8_t **dst)
{
    uint8_t *d = *dst;
    for (;;) {
        while (*p != '"' && *p != '\\' && *p >= 0x20) *d++ = *p++;
        uint8_t c = *p == '\\' ? leat__plain_escape[p[1]] : 0;
        if (!c) break;
        *d++ = c;
        p += 2;
    }
    *dst = d;
    return p;
}

const leat__text_dsp leat__text_c = {"c",          string_stop,  string_copy,  leat__utf8_check,
                                     measure_text, score_text,   shingle_text, keep_low,
                                     keep_open,    join_english, join_lower};
