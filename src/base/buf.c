/* SPDX-License-Identifier: Apache-2.0
 *
 * Growing buffers. Capacity doubles, never past the maximum; one byte is always kept for
 * the closing NUL.
 */
#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#include <leat/error.h>

#include "base/check.h"
#include "base/num.h"

#define FIRST_CAPACITY 64

/* Checks the invariants of a buffer. */
static void check(const leat__buf *b)
{
    LEAT_ASSERT(b->data == NULL ? b->cap == 0 && b->len == 0 : b->len < b->cap);
    LEAT_ASSERT(b->len <= b->max);
}

void leat__buf_init(leat__buf *b, leat__mem_cat cat, size_t max)
{
    *b = (leat__buf){.cat = cat, .max = max};
}

void leat__buf_reset(leat__buf *b)
{
    leat__free(b->data);
    leat__buf_init(b, b->cat, b->max);
}

void leat__buf_clear(leat__buf *b)
{
    b->len = 0;
    b->status = 0;
    if (b->data != NULL) b->data[0] = '\0';
}

int leat__buf_reserve(leat__buf *b, size_t extra)
{
    check(b);
    size_t need;

    if (b->status != 0) return b->status;
    if (!leat__add_size(b->len, extra, &need) || need > b->max) {
        return b->status = LEAT_ELIMIT;
    }
    if (need < b->cap) return 0; /* cap includes the NUL */
    size_t cap = b->cap ? b->cap : FIRST_CAPACITY;
    while (cap <= need) cap = cap > SIZE_MAX / 2 ? SIZE_MAX : cap * 2;
    if (cap > b->max) cap = b->max < SIZE_MAX ? b->max + 1 : b->max;
    char *data = leat__realloc(b->cat, b->data, cap);
    if (data == NULL) return b->status = LEAT_ENOMEM;
    if (b->data == NULL) data[0] = '\0';
    b->data = data;
    b->cap = cap;
    return 0;
}

int leat__buf_append(leat__buf *b, const void *data, size_t len)
{
    int rc = leat__buf_reserve(b, len);
    if (rc != 0) return rc;
    if (len != 0) memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = '\0';
    check(b);
    return 0;
}

int leat__buf_zeros(leat__buf *b, size_t n)
{
    int rc = leat__buf_reserve(b, n);
    if (rc != 0) return rc;
    memset(b->data + b->len, 0, n + 1);
    b->len += n;
    check(b);
    return 0;
}

int leat__buf_putc(leat__buf *b, char c)
{
    return leat__buf_append(b, &c, 1);
}

int leat__buf_puts(leat__buf *b, const char *s)
{
    return leat__buf_append(b, s, strlen(s));
}

static int print_args(leat__buf *b, const char *fmt, va_list ap)
{
    va_list again;
    size_t room = b->status == 0 ? b->cap - b->len : 0; /* with the NUL: most texts fit */

    va_copy(again, ap);
    int n = vsnprintf(room > 0 ? b->data + b->len : NULL, room, fmt, again);
    va_end(again);
    if (n < 0 || (size_t)n >= room) {
        if (room > 0) b->data[b->len] = '\0';
        if (n < 0) return b->status = LEAT_EINVAL;
        int rc = leat__buf_reserve(b, (size_t)n);
        if (rc != 0) return rc;
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    }
    b->len += (size_t)n;
    check(b);
    return 0;
}

int leat__buf_printf(leat__buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int rc = print_args(b, fmt, ap);
    va_end(ap);
    return rc;
}

const char *leat__buf_str(const leat__buf *b)
{
    return b->data != NULL ? b->data : "";
}

char *leat__buf_take(leat__buf *b, size_t *len)
{
    if (b->data == NULL && leat__buf_reserve(b, 0) != 0) return NULL;
    char *data = b->data;
    if (len != NULL) *len = b->len;
    b->data = NULL;
    leat__buf_reset(b);
    return data;
}
