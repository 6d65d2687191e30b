/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits a simplified text (leat__fold_simplify) into words like the English tokenizer of spaCy 3.8, which
 * datatrove uses. Contractions without their apostrophe, units after a number, currencies, quotes and icons
 * become words. Any thread.
 */
#ifndef LEAT_TEXT_ENGLISH_WORDS_H
#define LEAT_TEXT_ENGLISH_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "text/word_list.h"

#define LEAT__CONTRACTION_MAX 10 /* bytes */
#define LEAT__CONTRACTION_LOG 12

/* A contraction: its bytes, padded with zeros, and the words it is split into. */
typedef struct leat__contraction {
    uint64_t low, high;
    const char *parts; /* separated by blanks */
} leat__contraction;

/* A perfect hash: every contraction has a different slot. Entry 0 matches no word. */
typedef struct leat__contractions {
    uint64_t multiplier;
    uint8_t slot[1 << LEAT__CONTRACTION_LOG];
    leat__contraction entry[256];
} leat__contractions;

const leat__contractions *leat__english_contractions(void);

/* Returns the only contraction that may have these bytes. */
static inline const leat__contraction *leat__contraction_of(const leat__contractions *t, uint64_t low,
                                                            uint64_t high)
{
    return &t->entry[t->slot[(low + (high << 3)) * t->multiplier >> (64 - LEAT__CONTRACTION_LOG)]];
}

void leat__english_put_parts(leat__word_list *list, const leat__contraction *c);

/* Adds the words of a simplified text. */
void leat__english_split(leat__word_list *list, const uint8_t *text, size_t len);

/* Simplifies the text and adds its words from `from` on; [from, to) contains a digit or a non-ASCII code
 * point. Returns where it stopped: at or after `to`, between words. `temp` has room for LEAT__FOLD_GROWTH
 * times the rest of the text. */
size_t leat__english_words(leat__word_list *list, const uint8_t *text, size_t len, size_t from, size_t to,
                           uint8_t *temp);

#endif
