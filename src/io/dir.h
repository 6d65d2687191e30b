/* SPDX-License-Identifier: Apache-2.0
 *
 * The entries of a folder, all read at once. One thread per list.
 */
#ifndef LEAT_IO_DIR_H
#define LEAT_IO_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

typedef enum leat__entry_kind {
    LEAT__ENTRY_FILE = 1,
    LEAT__ENTRY_FOLDER = 2,
    LEAT__ENTRY_OTHER = 3, /* devices, sockets, pipes */
    LEAT__ENTRY_BROKEN = 4 /* a dangling link, or no permission */
} leat__entry_kind;

typedef struct leat__entry {
    size_t name; /* offset in `names` */
    leat__entry_kind kind;
    uint64_t size;
    uint64_t tag; /* hash of an object in a bucket, which changes with its bytes; else 0 */
} leat__entry;

typedef struct leat__dir {
    leat__buf names;
    leat__entry *entries;
    size_t count, capacity;
    uint64_t device, inode; /* identify the folder, whatever its name */
} leat__dir;

/* Lists the folder in no particular order, without "." and ".."; links are followed. A zeroed
 * list is empty; its memory is reused. With `fast`, sizes are not read and links count as files.
 * In a bucket (s3://bucket/prefix/): the names between the prefix and the next slash. */
int leat__dir_read(leat__dir *d, const char *path, bool fast, leat_error *err) LEAT_MUST_CHECK;
void leat__dir_reset(leat__dir *d);

static inline const char *leat__dir_name(const leat__dir *d, size_t i)
{
    return d->names.data + d->entries[i].name;
}

/* Sorts by name with `compare`. */
void leat__dir_sort(leat__dir *d, int (*compare)(const char *a, const char *b));

/* Finds the kind of a path, following links. Fails with LEAT_ENOENT and similar codes. In a bucket, an object
 * of that name is a file, else a prefix of objects is a folder. A web server has only files. */
int leat__path_kind(const char *path, leat__entry_kind *kind, leat_error *err) LEAT_MUST_CHECK;

/* Size and modification time of a regular file (in a bucket its tag replaces the time); zeros for
 * anything else, including a missing file. */
typedef struct leat__stamp {
    uint64_t bytes;
    int64_t mtime_ns;
} leat__stamp;
leat__stamp leat__path_stamp(const char *path);

/* Creates a folder that only this user can write, if it does not exist; its parent must exist.
 * Refuses a link, another user's folder and one that others may write (LEAT_EPERM). */
int leat__dir_private(const char *path, leat_error *err) LEAT_MUST_CHECK;
/* Removes the folder if it is empty. */
void leat__dir_remove(const char *path);

#endif
