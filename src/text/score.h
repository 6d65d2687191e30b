/* SPDX-License-Identifier: Apache-2.0
 *
 * The counts of one document, from which the scores of all rules are computed. One pass finds words, lines
 * and rare patterns; repeated lines, paragraphs and n-grams are counted from those. Words are maximal
 * sequences without white space (Python's str.split). A scorer belongs to one thread; it allocates only
 * when a document is larger than all before it.
 */
#ifndef LEAT_TEXT_SCORE_H
#define LEAT_TEXT_SCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "text/jsonl.h"

/* Largest document; positions are 32 bits. */
#define LEAT__TEXT_MAX (UINT32_C(1) << 31)

/* name, meaning. The order is also that of the output. */
#define LEAT_TEXT_COUNTS(X)                                                                                  \
    X(bytes, "bytes of UTF-8")                                                                               \
    X(chars, "code points")                                                                                  \
    X(letters, "letters (str.isalpha)")                                                                      \
    X(digits, "decimal digits (category Nd)")                                                                \
    X(ascii_digits, "digits 0 to 9")                                                                         \
    X(spaces, "white space (str.isspace)")                                                                   \
    X(nemo_spaces, "tab, newline, return, backspace, space")                                                 \
    X(nemo_alnum, "ASCII letters and digits, newline and ?!,.")                                              \
    X(symbols, "characters of datatrove's punctuation set")                                                  \
    X(brackets, "brackets {}[]() and mathematical angle brackets")                                           \
    X(hashes, "number signs #")                                                                              \
    X(ellipses, "... and U+2026")                                                                            \
    X(curly, "opening braces {")                                                                             \
    X(urls, "URLs that begin with http:// or https://")                                                      \
    X(url_chars, "characters in URLs")                                                                       \
    X(words, "words between white space")                                                                    \
    X(word_chars, "characters in words")                                                                     \
    X(longest_word, "characters of the longest word")                                                        \
    X(alpha_words, "words with a letter")                                                                    \
    X(plain_words, "words that are not all symbols")                                                         \
    X(plain_word_chars, "characters in such words")                                                          \
    X(stop_words, "occurrences of the, be, to, of, and, that, have, with")                                   \
    X(stop_words_distinct, "how many of these occur")                                                        \
    X(symbol_words, "ellipses and words of # (NeMo)")                                                        \
    X(newlines, "line feeds")                                                                                \
    X(split_lines, "lines of str.splitlines")                                                                \
    X(bullet_lines, "of these, lines that begin with a bullet or -")                                         \
    X(ellipsis_lines, "of these, lines that end in an ellipsis")                                             \
    X(lines, "lines between line feeds that are not blank")                                                  \
    X(nemo_bullet_lines, "of these, lines that begin with one of NeMo's bullets")                            \
    X(open_lines, "of these, lines without . ? ! \" ' at the end")                                           \
    X(nemo_ellipsis_lines, "of these, lines that end in an ellipsis or 'read more'")                         \
    X(unique_lines, "different lines")                                                                       \
    X(unique_line_chars, "characters in different lines")                                                    \
    X(line_chars, "characters in lines")                                                                     \
    X(terminal_lines, "lines that end in terminal punctuation of any script")                                \
    X(short_lines, "lines of 30 characters or fewer")                                                        \
    X(shorter_lines, "lines of fewer than 30 characters")                                                    \
    X(dup_line_chars, "characters in lines that occurred before")                                            \
    X(rep_lines, "parts between runs of line feeds (Gopher repetition)")                                     \
    X(rep_dup_lines, "of these, repeated")                                                                   \
    X(rep_dup_line_chars, "characters in repeated ones")                                                     \
    X(rep_paragraphs, "parts between blank lines, text stripped (Gopher repetition)")                        \
    X(rep_dup_paragraphs, "of these, repeated")                                                              \
    X(rep_dup_paragraph_chars, "characters in repeated ones")                                                \
    X(paragraphs, "parts between two line feeds (NeMo)")                                                     \
    X(unique_paragraphs, "different paragraphs")                                                             \
    X(unique_paragraph_chars, "characters in different paragraphs")                                          \
    X(paragraph_chars, "characters in paragraphs")                                                           \
    X(boilerplate_paragraphs, "paragraphs with policy phrases; all when lorem ipsum occurs")                 \
    X(lorem_ipsum, "1 when lorem ipsum occurs")                                                              \
    X(sentences, "sentence ends: . ? ! before white space or a closing quote")                               \
    X(c4_lines, "lines that C4 keeps (datatrove: 3 words)")                                                  \
    X(c4_words, "words in them")                                                                             \
    X(c4_sentences, "sentences in them")                                                                     \
    X(c4_drop, "1 lorem ipsum, 2 brace on a line that C4 keeps")                                             \
    X(c4_paper_lines, "lines that C4 keeps (paper: 5 words)")                                                \
    X(c4_paper_sentences, "sentences in them")                                                               \
    X(top_2gram_chars, "characters in the most frequent 2-gram")                                             \
    X(top_3gram_chars, "characters in the most frequent 3-gram")                                             \
    X(top_4gram_chars, "characters in the most frequent 4-gram")                                             \
    X(dup_5gram_chars, "characters in repeated 5-grams (datatrove)")                                         \
    X(dup_6gram_chars, "characters in repeated 6-grams (datatrove)")                                         \
    X(dup_7gram_chars, "characters in repeated 7-grams (datatrove)")                                         \
    X(dup_8gram_chars, "characters in repeated 8-grams (datatrove)")                                         \
    X(dup_9gram_chars, "characters in repeated 9-grams (datatrove)")                                         \
    X(dup_10gram_chars, "characters in repeated 10-grams (datatrove)")                                       \
    X(nemo_dup_5gram_chars, "characters in repeated 5-grams (NeMo)")                                         \
    X(nemo_dup_6gram_chars, "characters in repeated 6-grams (NeMo)")                                         \
    X(nemo_dup_7gram_chars, "characters in repeated 7-grams (NeMo)")                                         \
    X(nemo_dup_8gram_chars, "characters in repeated 8-grams (NeMo)")                                         \
    X(nemo_dup_9gram_chars, "characters in repeated 9-grams (NeMo)")                                         \
    X(nemo_dup_10gram_chars, "characters in repeated 10-grams (NeMo)")

typedef struct leat__counts {
#define LEAT_TEXT_FIELD(name, help) uint32_t name;
    LEAT_TEXT_COUNTS(LEAT_TEXT_FIELD)
#undef LEAT_TEXT_FIELD
    /* Not counts: set by the caller after a run if it has a language model; else 0. */
    uint32_t lang_match; /* 1 = the language is one of those wanted */
    float lang_score;    /* probability of the language */
    const char *lang;    /* its label, "" = none */
    uint32_t lang_label; /* the number of the label */
} leat__counts;

/* clang-format off */
enum {
#define LEAT_TEXT_INDEX(name, help) LEAT__COUNT_##name,
    LEAT_TEXT_COUNTS(LEAT_TEXT_INDEX)
#undef LEAT_TEXT_INDEX
    LEAT__COUNT_TOTAL
};
/* clang-format on */

const char *leat__count_name(unsigned index);
const char *leat__count_help(unsigned index);

/* The number of entries that the arrays of a scorer need for a document. */
typedef struct leat__text_size {
    uint64_t words, newlines, candidates;
} leat__text_size;

/* Assigns small numbers to 64-bit keys; equal keys get equal numbers. Slots of earlier uses are recognised by
 * their value, so nothing is cleared between uses. */
typedef struct leat__intern {
    uint32_t *slot;
    uint64_t *key;
    uint32_t base;  /* slots below this value are free */
    uint32_t slots; /* power of two */
} leat__intern;

typedef struct leat__scorer {
    leat__counts counts;
    uint8_t *text; /* the document is written here; 64 bytes before it and LEAT__TEXT_PAD after it are
                      reserved */
    uint64_t text_capacity;
    /* Arrays of the templates; each has room for a few extra entries. */
    uint32_t *bounds; /* starts and ends of words */
    uint64_t *word_hash;
    uint32_t *before; /* before[i]: characters in words before word i */
    uint32_t *newline, *newline_words, *newline_sentences;
    uint32_t *candidate;     /* positions that may begin a rare pattern */
    uint64_t *continuation;  /* one bit per byte: not the first of its code point */
    uint32_t *continuations; /* number of such bytes before each 64 bytes */
    uint32_t *u1, *u2, *u3, *u4, *u5;
    uint64_t *key;
    uint8_t *seen, *filter;
    uint32_t *hit; /* positions of patterns, and their kinds */
    uint8_t *hit_kind;
    leat__intern intern;
    uint32_t word_count, newline_count, candidate_count, hit_count;
    uint32_t nonascii, rare_breaks;
    bool small; /* the arrays fit any small text */
    void *slab, *text_slab;
    uint64_t slab_bytes, text_slab_bytes;
} leat__scorer;

int leat__scorer_init(leat__scorer *s, leat_error *err) LEAT_MUST_CHECK;
void leat__scorer_reset(leat__scorer *s);
/* Makes room for a text of this many bytes at s->text; the old content is lost. */
int leat__scorer_reserve(leat__scorer *s, size_t bytes, leat_error *err) LEAT_MUST_CHECK;
/* Counts the valid UTF-8 in s->text[0, len) into s->counts. LEAT_ENOMEM, LEAT_ELIMIT. */
int leat__scorer_run(leat__scorer *s, size_t len, leat_error *err) LEAT_MUST_CHECK;
/* Maximum bytes needed to score a text of this length, including the text. */
uint64_t leat__scorer_need(uint64_t bytes);

#endif
