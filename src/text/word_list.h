/* SPDX-License-Identifier: Apache-2.0
 *
 * Words joined by single blanks, and the start of each. The caller provides the memory: for the bytes of
 * the words, one more for each, and LEAT__TEXT_PAD; and for one more start than words.
 */
#ifndef LEAT_TEXT_WORD_LIST_H
#define LEAT_TEXT_WORD_LIST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct leat__word_list {
    uint8_t *out;
    uint32_t *start;
    size_t bytes;   /* used in `out`: where the next word begins */
    uint32_t count; /* words */
} leat__word_list;

/* Appends a word; does nothing if it is empty. */
static inline void leat__word_list_put(leat__word_list *list, const uint8_t *p, size_t len)
{
    if (len == 0) return;
    list->start[list->count++] = (uint32_t)list->bytes;
    memcpy(list->out + list->bytes, p, len);
    list->bytes += len;
    list->out[list->bytes++] = ' ';
}

#endif
