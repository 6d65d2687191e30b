/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefetches the listings of a bucket's folders. A listing takes one round trip per 1000 names,
 * so a few threads fetch the next listings in advance. One thread per object.
 */
#ifndef LEAT_IO_DIR_AHEAD_H
#define LEAT_IO_DIR_AHEAD_H

#include "io/dir.h"

#define LEAT__DIR_AHEAD 16 /* maximum listings in flight */

typedef struct leat__dir_ahead leat__dir_ahead;

leat__dir_ahead *leat__dir_ahead_open(void);     /* NULL when out of memory */
void leat__dir_ahead_close(leat__dir_ahead **a); /* waits for listings in flight */

/* Starts listing `path` unless it is already in flight. False when the limit is reached. */
bool leat__dir_ahead_want(leat__dir_ahead *a, const char *path);
/* Like leat__dir_read, but uses a listing in flight if there is one. `a` may be NULL. */
int leat__dir_ahead_read(leat__dir_ahead *a, leat__dir *d, const char *path, leat_error *err) LEAT_MUST_CHECK;

#endif
