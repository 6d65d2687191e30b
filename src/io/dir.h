/* SPDX-License-Identifier: Apache-2.0
 *
 * The entries of a folder, read at once. One thread per list.
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
    LEAT__ENTRY_BROKEN = 4 /* a link to nothing, or not to be looked at */
} leat__entry_kind;

typedef struct leat__entry {
    size_t name; /* offset in `names` */
    leat__entry_kind kind;
    uint64_t size;
    uint64_t tag; /* of an object in a bucket: another one means other bytes; else 0 */
} leat__entry;

typedef struct leat__dir {
    leat__buf names;
    leat__entry *entries;
    size_t count, capacity;
    uint64_t device, inode; /* of the folder: what makes it itself, whatever its name */
} leat__dir;

/* Lists the folder in no particular order, without "." and ".."; links are followed. Zeroed
 * is empty; the memory is reused. With `fast`, sizes are not asked for and links are files.
 * Of a bucket (s3://bucket/prefix/): what lies between the prefix and the next slash. */
int leat__dir_read(leat__dir *d, const char *path, bool fast, leat_error *err) LEAT_MUST_CHECK;
void leat__dir_reset(leat__dir *d);

static inline const char *leat__dir_name(const leat__dir *d, size_t i)
{
    return d->names.data + d->entries[i].name;
}

/* By comparison of names. */
void leat__dir_sort(leat__dir *d, int (*compare)(const char *a, const char *b));

/* What a path is, links followed. LEAT_ENOENT and the like. In a bucket: an object of that name is
 * a file, else a prefix that objects have is a folder. A web server has files only. */
int leat__path_kind(const char *path, leat__entry_kind *kind, leat_error *err) LEAT_MUST_CHECK;

/* Size and time of change of a regular file (in a bucket its tag stands for the time); zeros for
 * anything else, also what is not there. */
typedef struct leat__stamp {
    uint64_t bytes;
    int64_t mtime_ns;
} leat__stamp;
leat__stamp leat__path_stamp(const char *path);

/* A folder that only this user can change, made when it is not there; its parent must be. Refuses
 * a link, another user's folder and one that others may write (LEAT_EPERM). */
int leat__dir_private(const char *path, leat_error *err) LEAT_MUST_CHECK;
/* Removes an empty folder; one that is not empty stays. */
void leat__dir_remove(const char *path);

#endif
