/* SPDX-License-Identifier: Apache-2.0
 *
 * Files below a folder that somebody else may have put things into: nothing on the way from the
 * folder to a file is followed, so no link that lies there leads a file elsewhere. One thread per
 * file; the folder's own path is the caller's, and links in it are followed.
 */
#ifndef LEAT_IO_BELOW_H
#define LEAT_IO_BELOW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Writes folder/name with these bytes and makes the folders on the way; `name` is a relative path
 * without "." and ".." (leat__path_relative_safe). What is there already: LEAT_EEXIST, or with
 * `replace` a regular file or a link is removed first, so that its other names keep their bytes. A
 * link among the folders, or what is neither, is refused. */
int leat__below_write(const char *folder, const char *name, const void *data, size_t len, bool replace,
                      leat_error *err) LEAT_MUST_CHECK;

#endif
