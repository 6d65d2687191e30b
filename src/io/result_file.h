/* SPDX-License-Identifier: Apache-2.0
 *
 * A list that a run writes for people, line by line: a CSV file, or JSON lines. It is written to
 * PATH.partial and gets its name when it is complete, so an interrupted run never leaves half a list.
 * It replaces nothing but an earlier list of its kind, and that only when asked. One thread.
 */
#ifndef LEAT_IO_RESULT_FILE_H
#define LEAT_IO_RESULT_FILE_H

#include "io/file.h"

typedef struct leat__result_file {
    leat__file *file; /* NULL when not requested */
    char *path, *partial;
} leat__result_file;

/* Whether `path` (NULL: not requested) may be written. `head`: the first bytes of every list of this kind.
 * LEAT_EEXIST when it exists and `replace` is false; LEAT_EINVAL when what exists is neither empty nor such
 * a list, so that no image and no pack is ever replaced. `resume`: an unfinished list beside it was allowed
 * to replace it. */
int leat__result_file_check(const char *path, const char *head, bool replace, bool resume,
                            leat_error *err) LEAT_MUST_CHECK;
/* Opens PATH.partial, with what an earlier run has left in it. LEAT_ESTATE when another process writes it,
 * LEAT_EINVAL when it is not a list of this kind. */
int leat__result_file_open(leat__result_file *r, const char *path, const char *head,
                           leat_error *err) LEAT_MUST_CHECK;
/* Gives the list its name. */
int leat__result_file_publish(leat__result_file *r, leat_error *err) LEAT_MUST_CHECK;
/* Closes it. `discard`: an unfinished list is removed. */
void leat__result_file_close(leat__result_file *r, bool discard);

#endif
