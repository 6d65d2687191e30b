/* SPDX-License-Identifier: Apache-2.0
 *
 * A list that a run writes for people, line by line: a CSV file, or JSON lines. It is written to PATH.partial
 * and renamed when it is complete, so an interrupted run never leaves half a list. It replaces only an
 * earlier list of its kind, and only with `replace`. One thread.
 */
#ifndef LEAT_IO_RESULT_FILE_H
#define LEAT_IO_RESULT_FILE_H

#include "io/file.h"

typedef struct leat__result_file {
    leat__file *file; /* NULL when not requested */
    char *path, *partial;
} leat__result_file;

/* Checks that `path` (NULL: not requested) may be written. `head`: the first bytes of every list of this
 * kind. LEAT_EEXIST: it exists, and `replace` is false. LEAT_EINVAL: the existing file is neither empty nor a
 * list of this kind, such as an image or a pack. `resume`: an unfinished list beside it was started with
 * `replace`, so it may replace the list. */
int leat__result_file_check(const char *path, const char *head, bool replace, bool resume,
                            leat_error *err) LEAT_MUST_CHECK;
/* Sets *left when an interrupted run has left PATH.partial. */
int leat__result_file_left(const char *path, bool *left, leat_error *err) LEAT_MUST_CHECK;
/* Opens PATH.partial and keeps what an earlier run has written to it. LEAT_ESTATE when another process writes
 * it, LEAT_EINVAL when it is not a list of this kind. */
int leat__result_file_open(leat__result_file *r, const char *path, const char *head,
                           leat_error *err) LEAT_MUST_CHECK;
/* Renames the complete list to PATH. */
int leat__result_file_publish(leat__result_file *r, leat_error *err) LEAT_MUST_CHECK;
/* Closes the list. `discard`: removes an unfinished list. */
void leat__result_file_close(leat__result_file *r, bool discard);

#endif
