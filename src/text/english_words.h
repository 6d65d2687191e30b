/* SPDX-License-Identifier: Apache-2.0
 *
 * Words of a simplified text (leat__fold_simplify) as the English tokenizer of spaCy 3.8 splits
 * it, which datatrove uses: contractions without their apostrophe, units after a number,
 * currencies, quotes and icons become words. Any thread.
 */
#ifndef LEAT_TEXT_ENGLISH_WORDS_H
#define LEAT_TEXT_ENGLISH_WORDS_H

#include <stddef.h>
#include <stdint.h>

/* Writes the words to `out`, with one blank between, and where each begins to `start`; after the
 * last word, where the next would begin. Returns their number. `out` has room for the
 * text and one more byte for each word, `start` for one more than the words. */
uint32_t leat__english_words(const uint8_t *text, size_t len, uint8_t *out, uint32_t *start);

#endif
