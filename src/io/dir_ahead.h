/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders of a bucket, listed ahead: a list takes a round trip for each 1000 names, so the lists
 * that will be asked for next are fetched by a few threads meanwhile. Belongs to one thread.
 */
#ifndef LEAT_IO_DIR_AHEAD_H
#define LEAT_IO_DIR_AHEAD_H

#include "io/dir.h"

#define LEAT__DIR_AHEAD 16 /* lists on their way, at most */

typedef struct leat__dir_ahead leat__dir_ahead;

leat__dir_ahead *leat__dir_ahead_open(void); /* NULL when out of memory */
void leat__dir_ahead_close(leat__dir_ahead **a); /* waits for the lists on their way */

/* Starts the list of `path` unless it is on its way. False when no more can be. */
bool leat__dir_ahead_want(leat__dir_ahead *a, const char *path);
/* leat__dir_read, by the list that is on its way where there is one. `a` may be NULL. */
int leat__dir_ahead_read(leat__dir_ahead *a, leat__dir *d, const char *path, leat_error *err) LEAT_MUST_CHECK;

#endif
