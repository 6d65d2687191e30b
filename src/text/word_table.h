/* SPDX-License-Identifier: Apache-2.0
 *
 * A perfect hash of the few words that are counted: eight stop words, and the ellipses that NeMo
 * counts as symbols. Built once, constant afterwards.
 */
#ifndef LEAT_TEXT_WORD_TABLE_H
#define LEAT_TEXT_WORD_TABLE_H

#include <stdint.h>

#define LEAT__WORD_SYMBOL (UINT64_C(1) << 32)

typedef struct leat__word_entry {
    uint64_t key;   /* the bytes of the word, padded with zeros */
    uint64_t count; /* 1 for a stop word, LEAT__WORD_SYMBOL for a symbol: one sum counts both */
    uint32_t bit;   /* which stop word */
    uint32_t len;   /* bytes of the word, at most 8 */
} leat__word_entry;

typedef struct leat__word_table {
    uint64_t multiplier;
    leat__word_entry entry[64];
} leat__word_table;

const leat__word_table *leat__word_table_get(void);

#endif
