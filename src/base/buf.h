/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing byte buffer with a mandatory maximum. It is also the string builder of the library:
 * `data` always ends with a NUL that is not counted in `len`. One thread at a time.
 *
 * A failed append leaves the content unchanged and is remembered: later appends fail too. A long
 * build-up therefore needs only one check at its end, leat__buf_status().
 */
#ifndef LEAT_BASE_BUF_H
#define LEAT_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

typedef struct leat__buf {
    char *data; /* NULL while empty: use leat__buf_str() for a string */
    size_t len;
    size_t cap;
    size_t max;
    leat__mem_cat cat;
    int status; /* 0, LEAT_ENOMEM or LEAT_ELIMIT (maximum reached) */
} leat__buf;

void leat__buf_init(leat__buf *b, leat__mem_cat cat, size_t max);
void leat__buf_reset(leat__buf *b); /* frees the memory; the buffer is empty and can be used again */
void leat__buf_clear(leat__buf *b); /* keeps the memory, clears content and status */

int leat__buf_reserve(leat__buf *b, size_t extra);
int leat__buf_append(leat__buf *b, const void *data, size_t len);
int leat__buf_putc(leat__buf *b, char c);
int leat__buf_puts(leat__buf *b, const char *s);
int leat__buf_printf(leat__buf *b, const char *fmt, ...) LEAT_PRINTF(2, 3);
int leat__buf_zeros(leat__buf *b, size_t n);

static inline int leat__buf_status(const leat__buf *b)
{
    return b->status;
}

/* Returns the content as a string, valid until the next change. Never NULL. */
const char *leat__buf_str(const leat__buf *b);

/* Moves the bytes to the caller (free with leat__free) and resets the buffer. NULL when out of
 * memory. */
char *leat__buf_take(leat__buf *b, size_t *len);

#endif
