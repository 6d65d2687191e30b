/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes files below a folder that others may be able to change. Links between the folder and a file are not
 * followed, so a planted link cannot redirect a file. The folder's own path is trusted: links in it are
 * followed. One thread per file.
 */
#ifndef LEAT_IO_BELOW_H
#define LEAT_IO_BELOW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

/* Writes folder/name with these bytes and creates the folders in between; `name` is a relative path without
 * "." and ".." (leat__path_relative_safe). LEAT_EEXIST when the file exists. With `replace`, a regular file
 * or a link is replaced by a new file, so that hard links to it keep their bytes. A link among the folders,
 * or any other kind of file, is refused. The file is written under a temporary name and renamed when it is
 * complete. A temporary file left by a killed run is replaced. */
int leat__below_write(const char *folder, const char *name, const void *data, size_t len, bool replace,
                      leat_error *err) LEAT_MUST_CHECK;
/* Sets `partial` to the temporary name of `name`: NAME.partial, where NAME loses its last bytes if the
 * file name would be too long. */
int leat__below_partial(const char *name, leat__buf *partial, leat_error *err) LEAT_MUST_CHECK;

#endif
