/* SPDX-License-Identifier: Apache-2.0
 *
 * Folder listings.
 */
#include "io/dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"

#define NAMES_MAX (SIZE_MAX / 4)

static leat__entry_kind kind_of(mode_t mode)
{
    if (S_ISREG(mode)) return LEAT__ENTRY_FILE;
    if (S_ISDIR(mode)) return LEAT__ENTRY_FOLDER;
    return LEAT__ENTRY_OTHER;
}

/* Without a system call where the file system tells the type in the listing. */
static leat__entry_kind fast_kind(int fd, const struct dirent *e)
{
    if (e->d_type == DT_REG || e->d_type == DT_LNK) return LEAT__ENTRY_FILE;
    if (e->d_type == DT_DIR) return LEAT__ENTRY_FOLDER;
    if (e->d_type != DT_UNKNOWN) return LEAT__ENTRY_OTHER;
    struct stat st;
    if (fstatat(fd, e->d_name, &st, 0) != 0) return LEAT__ENTRY_BROKEN;
    return kind_of(st.st_mode);
}

static int add(leat__dir *d, const char *name, leat__entry_kind kind, uint64_t size)
{
    if (d->count == d->capacity) {
        size_t capacity = d->capacity ? d->capacity * 2 : 64;
        leat__entry *grown = leat__realloc(LEAT__MEM_IO, d->entries, capacity * sizeof *grown);
        if (!grown) return LEAT_ENOMEM;
        d->entries = grown;
        d->capacity = capacity;
    }
    d->entries[d->count] = (leat__entry){d->names.len, kind, size};
    int rc = leat__buf_append(&d->names, name, strlen(name) + 1);
    if (rc == 0) d->count++;
    return rc;
}

static int read_entries(leat__dir *d, DIR *dir, const char *path, bool fast, leat_error *err)
{
    int fd = dirfd(dir);
    for (;;) {
        errno = 0;
        struct dirent *e = LEAT_FAULT(LEAT__FAULT_READ) ? (errno = EIO, NULL) : readdir(dir);
        if (!e) return errno ? leat__fail_errno(err, errno, "cannot list %s", path) : 0;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        struct stat st = {0};
        leat__entry_kind kind = LEAT__ENTRY_BROKEN;
        if (fast)
            kind = fast_kind(fd, e);
        else if (fstatat(fd, e->d_name, &st, 0) == 0)
            kind = kind_of(st.st_mode);
        int rc = add(d, e->d_name, kind, (uint64_t)st.st_size);
        if (rc != 0) return leat__fail(err, rc, "no memory to list %s", path);
    }
}

int leat__dir_read(leat__dir *d, const char *path, bool fast, leat_error *err)
{
    if (!d->names.data) leat__buf_init(&d->names, LEAT__MEM_IO, NAMES_MAX);
    leat__buf_clear(&d->names);
    d->count = 0;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return leat__fail_errno(err, errno, "cannot open folder %s", path);
    struct stat st;
    if (fstat(fd, &st) == 0) {
        d->device = (uint64_t)st.st_dev;
        d->inode = (uint64_t)st.st_ino;
    }
    DIR *dir = fdopendir(fd);
    if (!dir) {
        int saved = errno;
        close(fd);
        return leat__fail_errno(err, saved, "cannot open folder %s", path);
    }
    int rc = read_entries(d, dir, path, fast, err);
    closedir(dir);
    return rc;
}

void leat__dir_reset(leat__dir *d)
{
    leat__buf_reset(&d->names);
    leat__free(d->entries);
    memset(d, 0, sizeof *d);
}

typedef struct sort_by {
    const leat__dir *dir;
    int (*compare)(const char *a, const char *b);
} sort_by;

static int compare_entries(const void *a, const void *b, void *arg)
{
    const sort_by *by = arg;
    const char *names = by->dir->names.data;
    return by->compare(names + ((const leat__entry *)a)->name,
                       names + ((const leat__entry *)b)->name);
}

void leat__dir_sort(leat__dir *d, int (*compare)(const char *a, const char *b))
{
    sort_by by = {d, compare};
    if (d->count > 1) qsort_r(d->entries, d->count, sizeof *d->entries, compare_entries, &by);
}

int leat__path_kind(const char *path, leat__entry_kind *kind, leat_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0) return leat__fail_errno(err, errno, "cannot open %s", path);
    *kind = kind_of(st.st_mode);
    return 0;
}

leat__stamp leat__path_stamp(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return (leat__stamp){0};
    int64_t seconds = (int64_t)st.st_mtim.tv_sec;
    return (leat__stamp){.bytes = (uint64_t)st.st_size,
                         .mtime_ns = seconds * 1000000000 + st.st_mtim.tv_nsec};
}

int leat__dir_private(const char *path, leat_error *err)
{
    struct stat st;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return leat__fail_errno(err, errno, "%s: cannot make the folder", path);
    if (lstat(path, &st) != 0) return leat__fail_errno(err, errno, "%s: cannot stat", path);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return leat__fail(err, LEAT_EPERM, "%s: not a folder that only this user can change", path);
    return 0;
}

void leat__dir_remove(const char *path)
{
    (void)rmdir(path);
}
