/* SPDX-License-Identifier: Apache-2.0
 *
 * Lower case as Python's str.lower, and the simplified text from which datatrove makes shingles.
 * Tables are written at build time by gen_fold.py. Constant data: any thread.
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
    LEAT__FOLD_SUFFIX = 1 << 3, /* at the end */
    LEAT__FOLD_MONEY = 1 << 4   /* at the end, after a digit */
};

#define LEAT__FOLD_SELF 255
#define LEAT__FOLD_GROWTH 3 /* the most a text can grow, in times its length: Hangul syllables */

/* What becomes of a code point. */
typedef struct leat__letter {
    int32_t lower; /* difference to its lower case */
    uint16_t part; /* first part of the decomposition, without marks (Mn) */
    uint8_t parts; /* their number; LEAT__FOLD_SELF: the lower case itself */
    uint8_t flags;
} leat__letter;

const leat__letter *leat__fold_of(uint32_t code);

/* Both take valid UTF-8 and write what becomes of [from, to) to `out`, which has room for
 * LEAT__FOLD_GROWTH times as much; they return the length. Words are divided by one blank. */

/* " ".join(text.lower().split()) */
size_t leat__fold_lower(const uint8_t *text, size_t len, size_t from, size_t to, uint8_t *out);
/* Adds these words. `temp` has room for LEAT__FOLD_GROWTH times as much. */
void leat__fold_lower_words(leat__word_list *list, const uint8_t *text, size_t len, size_t from, size_t to,
                            uint8_t *temp);
/* Lower case, every number as 0, punctuation as blanks, decomposed without marks. Spacing marks
 * of different classes stay in their order. */
size_t leat__fold_simplify(const uint8_t *text, size_t len, size_t from, size_t to, uint8_t *out);

#endif
