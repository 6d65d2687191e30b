/* SPDX-License-Identifier: Apache-2.0
 *
 * Lower case like Python's str.lower, and the simplified text from which datatrove makes shingles.
 * gen_fold.py writes the tables at build time. Constant data: any thread.
 */
#ifndef LEAT_TEXT_FOLD_H
#define LEAT_TEXT_FOLD_H

#include <stddef.h>
#include <stdint.h>

#include "text/word_list.h"

enum {
    LEAT__FOLD_BLANK = 1 << 0,  /* datatrove turns it into a blank */
    LEAT__FOLD_ICON = 1 << 1,   /* spaCy splits before and after it, anywhere in a word */
    LEAT__FOLD_PREFIX = 1 << 2, /* spaCy splits it off at the beginning of a word */
    LEAT__FOLD_SUFFIX = 1 << 3, /* spaCy splits it off at the end of a word */
    LEAT__FOLD_MONEY = 1 << 4   /* spaCy splits it off at the end of a word, after a digit */
};

#define LEAT__FOLD_SELF 255
#define LEAT__FOLD_GROWTH 3 /* how many times longer a text can become, at most: Hangul syllables */

/* How a code point changes. */
typedef struct leat__letter {
    int32_t lower; /* difference to its lower case */
    uint16_t part; /* first part of the decomposition, without marks (Mn) */
    uint8_t parts; /* their number; LEAT__FOLD_SELF: the lower case itself */
    uint8_t flags;
} leat__letter;

const leat__letter *leat__fold_of(uint32_t code);

/* Both take valid UTF-8 and write the converted [from, to) to `out`, which has room for LEAT__FOLD_GROWTH
 * times as much. They return the length. Words are separated by one blank. */

/* " ".join(text.lower().split()) */
size_t leat__fold_lower(const uint8_t *text, size_t len, size_t from, size_t to, uint8_t *out);
/* Adds the words of the text in lower case. `temp` has room for LEAT__FOLD_GROWTH times as much. */
void leat__fold_lower_words(leat__word_list *list, const uint8_t *text, size_t len, size_t from, size_t to,
                            uint8_t *temp);
/* Converts to lower case, replaces every number by 0 and punctuation by blanks, decomposes letters and
 * removes marks. Spacing marks of different classes keep their order. */
size_t leat__fold_simplify(const uint8_t *text, size_t len, size_t from, size_t to, uint8_t *out);

#endif
