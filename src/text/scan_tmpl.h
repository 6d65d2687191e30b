/* SPDX-License-Identifier: Apache-2.0
 *
 * The first pass over a text, 64 bytes at a time: bit masks of the bytes, their counts, and the
 * positions of word boundaries, line feeds and rare patterns. The including file defines
 * block_masks().
 *
 * A text is followed by LEAT__TEXT_PAD blanks, so that the last word has an end and loads may
 * read past it.
 */
#include <string.h>

#include "base/num.h"
#include "text/hash_words.h"
#include "text/score.h"
#include "text/unicode.h"

#define RARE(x) __builtin_expect(!!(x), 0)
#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))

INLINE uint32_t lowest(uint64_t m)
{
    return (uint32_t)__builtin_ctzll(m);
}

INLINE uint32_t bits_of(uint64_t m)
{
    return (uint32_t)__builtin_popcountll(m);
}

/* Returns 64 if m is 0, which __builtin_ctzll does not allow: for stores that are overwritten later. */
INLINE uint32_t lowest_or_64(uint64_t m)
{
    return m ? (uint32_t)__builtin_ctzll(m) : 64;
}

#ifndef HAS_PUT_BITS
/* Appends the positions of the set bits. The first `always` are stored without a branch on the number of
 * bits: the array has room for them, and for at least 64. */
INLINE uint32_t *put_bits(uint32_t *out, uint64_t m, uint32_t base, const int always)
{
    uint32_t *end = out + bits_of(m);
#pragma GCC unroll 32
    for (int i = 0; i < always; i++) {
        out[i] = base + lowest_or_64(m);
        m &= m - 1;
    }
    out += always;
    while (RARE(m)) {
        for (int i = 0; i < 8; i++) {
            out[i] = base + lowest_or_64(m);
            m &= m - 1;
        }
        out += 8;
    }
    return end;
}
#endif

/* Returns x + y + *carry, and the new carry. */
INLINE uint64_t add_carry(uint64_t x, uint64_t y, uint64_t *carry)
{
    unsigned long long sum, all;
    unsigned c1 = __builtin_uaddll_overflow(x, y, &sum);
    unsigned c2 = __builtin_uaddll_overflow(sum, *carry, &all);
    *carry = c1 | c2;
    return all;
}

INLINE uint32_t continuations_before(const leat__scorer *s, uint32_t at)
{
    uint64_t below = s->continuation[at >> 6] & ~(~UINT64_C(0) << (at & 63));
    return s->continuations[at >> 6] + bits_of(below);
}

/* Returns the number of code points in [from, to). */
INLINE uint32_t chars_in(const leat__scorer *s, uint32_t from, uint32_t to)
{
    if (!s->nonascii) return to - from;
    return to - from - (continuations_before(s, to) - continuations_before(s, from));
}

/* State of the first pass between blocks. */
typedef struct scan {
    uint32_t *bounds, *newline, *newline_words, *newline_sentences, *candidate;
    uint64_t letters, digits, ascii_digits, spaces, nemo_spaces, nemo_alnum, symbols, brackets, hashes, curly;
    uint64_t alpha_words, plain_words, symbol_chars, continuations, words, sentences;
    uint64_t last_white; /* bit 0: the byte before this block is white space */
    uint64_t white_over; /* bytes of this block that belong to a space of the previous block */
    uint64_t alpha_carry, plain_carry;
} scan;

/* Handles controls other than tab and line feed: Python's white space, NeMo's backspace, line
 * breaks. */
static NOINLINE uint64_t scan_controls(leat__scorer *s, scan *c, const uint8_t *p, uint64_t m)
{
    uint64_t white = 0;
    for (; m; m &= m - 1) {
        uint32_t k = lowest(m);
        uint8_t b = p[k];
        if (b >= 0x1c && b <= 0x1f) white |= UINT64_C(1) << k;
        if ((b >= 11 && b <= 13) || (b >= 0x1c && b <= 0x1e)) s->rare_breaks = 1;
        if (b == 11 || b == 12) c->nemo_spaces--;
        if (b == 8) c->nemo_spaces++;
        if (b >= 11 && b <= 13) c->symbols++;
    }
    return white;
}

/* Handles the non-ASCII code points that begin in this block. */
INLINE void scan_unicode(leat__scorer *s, scan *c, const uint8_t *p, uint32_t block, uint64_t leads, masks *m,
                         uint64_t *letters, uint64_t *plain)
{
    uint32_t n_letters = 0, n_digits = 0, n_symbols = 0;
    for (; leads; leads &= leads - 1) {
        uint32_t k = lowest(leads), len, code = leat__utf8_decode(p + k, &len);
        uint8_t is = leat__unicode_of(code);
        uint64_t bit = UINT64_C(1) << k;
        if (RARE(is & (LEAT__UNI_SPACE | LEAT__UNI_BREAK | LEAT__UNI_TERMINAL))) {
            if (is & LEAT__UNI_SPACE) {
                uint64_t ones = (UINT64_C(1) << len) - 1;
                m->white |= ones << k;
                if (k + len > 64) c->white_over |= ones >> (64 - k);
            }
            if (is & LEAT__UNI_BREAK) s->rare_breaks = 1;
            if (is & LEAT__UNI_TERMINAL) m->ends |= bit;
        }
        n_letters += is >> 1 & 1;
        n_digits += is >> 2 & 1;
        n_symbols += is >> 4 & 1;
        *letters |= (uint64_t)(is >> 1 & 1) << k;
        if (!(is & (LEAT__UNI_SYMBOL | LEAT__UNI_SPACE))) *plain |= bit;
        if (RARE((code & ~UINT32_C(1)) == 0x27e8)) c->brackets++;
        if (RARE(code == 0x2026)) *c->candidate++ = block * 64 + k;
    }
    c->letters += n_letters;
    c->digits += n_digits;
    c->symbols += n_symbols;
}

/* Counts the characters of the words that end at the bits of m and consist only of symbols. */
static NOINLINE uint64_t scan_symbol_words(const leat__scorer *s, const uint32_t *bounds, uint64_t edges,
                                           uint64_t m, uint32_t base)
{
    uint64_t chars = 0;
    for (; m; m &= m - 1) {
        uint64_t bit = m & (~m + 1);
        uint32_t end = base + lowest(m);
        uint32_t start = bounds[(ptrdiff_t)bits_of(edges & (bit - 1)) - 1];
        for (uint32_t i = start; i < end; i++) chars += (s->text[i] & 0xc0) != 0x80;
    }
    return chars;
}

INLINE void scan_newlines(scan *c, uint64_t newline, uint64_t starts, uint64_t ends, uint32_t base)
{
    uint32_t n = bits_of(newline), i = 0;
    uint64_t m = newline;
    /* always stores two, without a branch on the count: the arrays have room for them */
    for (; i < 2 || RARE(m); m &= m - 1, i++) {
        uint64_t below = (m & (~m + 1)) - 1;
        c->newline[i] = base + lowest_or_64(m);
        c->newline_words[i] = (uint32_t)c->words + bits_of(starts & below);
        c->newline_sentences[i] = (uint32_t)c->sentences + bits_of(ends & below);
    }
    c->newline += n;
    c->newline_words += n;
    c->newline_sentences += n;
}

INLINE void scan_block(leat__scorer *s, scan *c, const uint8_t *p, uint32_t block, uint64_t valid)
{
    masks m;
    block_masks(p, &m);
    uint64_t newline = m.newline & valid;
    c->candidate = put_bits(c->candidate, m.candidate & valid, block * 64, 2);
    c->letters += bits_of(m.alpha);
    c->ascii_digits += bits_of(m.digit);
    c->brackets += bits_of(m.bracket);
    c->hashes += bits_of(m.hash);
    c->curly += bits_of(m.curly);
    c->nemo_alnum += bits_of(m.alpha | m.digit | m.mark | newline);
    c->nemo_spaces += bits_of(m.white & valid);
    c->symbols += bits_of(~(m.alpha | m.digit | m.nonascii | m.white) & valid);
    uint64_t controls = m.control & ~(m.newline | m.tab) & valid;
    if (RARE(controls)) m.white |= scan_controls(s, c, p, controls);
    uint64_t letters = m.alpha, plain = m.alpha | m.digit;
    if (RARE(m.nonascii)) {
        if (!s->nonascii) {
            s->nonascii = 1;
            memset(s->continuation, 0, 8 * (size_t)block);
            memset(s->continuations, 0, 4 * (size_t)block);
        }
        m.white |= c->white_over;
        c->white_over = 0;
        scan_unicode(s, c, p, block, m.nonascii & ~m.follow & valid, &m, &letters, &plain);
    } else {
        m.follow = 0;
        m.white |= c->white_over;
        c->white_over = 0;
    }
    if (RARE(s->nonascii)) {
        s->continuation[block] = m.follow;
        s->continuations[block] = (uint32_t)c->continuations;
        c->continuations += bits_of(m.follow);
    }
    uint64_t edges = m.white ^ (m.white << 1 | c->last_white), starts = edges & ~m.white;
    uint64_t ends = m.ends & valid;
    scan_newlines(c, newline, starts, ends, block * 64);
    const uint32_t *bounds = c->bounds;
    c->bounds = put_bits(c->bounds, edges, block * 64, 24);
    c->last_white = m.white >> 63;
    c->words += bits_of(starts);
    c->sentences += bits_of(ends);
    /* adding a letter bit to the word's run of ones carries out past its end */
    uint64_t inside = ~m.white;
    uint64_t alpha = add_carry(inside, letters & inside, &c->alpha_carry);
    uint64_t other = add_carry(inside, plain & inside, &c->plain_carry);
    c->alpha_words += bits_of(alpha & m.white);
    c->plain_words += bits_of(other & m.white);
    uint64_t symbol_ends = edges & m.white & ~other;
    if (symbol_ends) c->symbol_chars += scan_symbol_words(s, bounds, edges, symbol_ends, block * 64);
    c->spaces += bits_of(m.white & valid & ~m.follow);
}

static void scan_text(leat__scorer *s, size_t len)
{
    scan c = {.bounds = s->bounds,
              .newline = s->newline,
              .newline_words = s->newline_words,
              .newline_sentences = s->newline_sentences,
              .candidate = s->candidate,
              .last_white = 1};
    memset(s->text + len, ' ', LEAT__TEXT_PAD);
    s->nonascii = s->rare_breaks = 0;
    uint32_t blocks = (uint32_t)(len / 64 + 1);
    for (uint32_t b = 0; b + 1 < blocks; b++) scan_block(s, &c, s->text + 64 * (size_t)b, b, ~UINT64_C(0));
    scan_block(s, &c, s->text + 64 * (size_t)(blocks - 1), blocks - 1, ~(~UINT64_C(0) << (len & 63)));
    if (s->nonascii) {
        s->continuation[blocks] = 0;
        s->continuations[blocks] = (uint32_t)c.continuations;
    }
    s->word_count = (uint32_t)(c.bounds - s->bounds) / 2;
    s->newline_count = (uint32_t)(c.newline - s->newline);
    s->candidate_count = (uint32_t)(c.candidate - s->candidate);
    leat__counts *k = &s->counts;
    k->bytes = (uint32_t)len;
    k->chars = (uint32_t)(len - c.continuations);
    k->letters = (uint32_t)c.letters;
    k->digits = (uint32_t)(c.digits + c.ascii_digits);
    k->ascii_digits = (uint32_t)c.ascii_digits;
    k->spaces = (uint32_t)c.spaces;
    k->nemo_spaces = (uint32_t)c.nemo_spaces;
    k->nemo_alnum = (uint32_t)c.nemo_alnum;
    k->symbols = (uint32_t)c.symbols;
    k->brackets = (uint32_t)c.brackets;
    k->hashes = (uint32_t)c.hashes;
    k->curly = (uint32_t)c.curly;
    k->words = s->word_count;
    k->word_chars = k->chars - k->spaces;
    k->alpha_words = (uint32_t)c.alpha_words;
    k->plain_words = (uint32_t)c.plain_words;
    k->plain_word_chars = (uint32_t)(k->word_chars - c.symbol_chars);
    k->sentences = (uint32_t)c.sentences;
    k->newlines = s->newline_count;
}

/* Computes how many entries the arrays need: an upper bound of words, line feeds and candidates. */
static void measure_text(const uint8_t *text, size_t len, leat__text_size *size)
{
    *size = (leat__text_size){0};
    uint64_t last = 1;
    size_t i = 0;
    for (; i + 64 <= len; i += 64) {
        masks m;
        block_masks(text + i, &m);
        /* white space beyond ASCII and controls may split words */
        uint64_t cuts = (m.nonascii & ~m.follow) | (m.control & ~m.white);
        size->words += bits_of(~m.white & (m.white << 1 | last)) + bits_of(cuts);
        size->newlines += bits_of(m.newline);
        size->candidates += bits_of(m.candidate) + bits_of(m.nonascii & ~m.follow);
        last = m.white >> 63;
    }
    size->words = LEAT_MIN(size->words + 64, len / 2 + 1);
    size->newlines = LEAT_MIN(size->newlines + 64, len + 1);
    size->candidates = LEAT_MIN(size->candidates + 64, len + 1);
}
