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
#include "base/hash.h"
#include "base/mem.h"
#include "io/object.h"

#define NAMES_MAX (SIZE_MAX / 4)

static leat__entry_kind kind_of(mode_t mode)
{
    if (S_ISREG(mode)) return LEAT__ENTRY_FILE;
    if (S_ISDIR(mode)) return LEAT__ENTRY_FOLDER;
    return LEAT__ENTRY_OTHER;
}

/* Finds the kind of an entry, without a system call if the file system reports the type in the listing. */
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
    d->entries[d->count] = (leat__entry){.name = d->names.len, .kind = kind, .size = size};
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
        if (fast) kind = fast_kind(fd, e);
        else if (fstatat(fd, e->d_name, &st, 0) == 0) kind = kind_of(st.st_mode);
        int rc = add(d, e->d_name, kind, (uint64_t)st.st_size);
        if (rc != 0) return leat__fail(err, rc, "no memory to list %s", path);
    }
}

/* ---- buckets ---- */

typedef struct bucket_list {
    leat__dir *dir;
    size_t prefix; /* length of the folder's own key */
} bucket_list;

static int add_object(void *cookie, const leat__object *o, leat_error *err)
{
    bucket_list *l = cookie;
    size_t len = strlen(o->key);
    /* some tools mark an empty folder with a key equal to the folder */
    if (len <= l->prefix || (!o->folder && o->key[len - 1] == '/')) return 0;
    char *name = leat__strndup(LEAT__MEM_IO, o->key + l->prefix, len - l->prefix - (o->folder ? 1 : 0));
    if (name == NULL) return leat__fail_nomem(err, len, "a name");
    int rc = add(l->dir, name, o->folder ? LEAT__ENTRY_FOLDER : LEAT__ENTRY_FILE, o->size);
    leat__free(name);
    if (rc != 0) return leat__fail(err, rc, "no memory to list a bucket");
    l->dir->entries[l->dir->count - 1].tag = o->tag;
    return 0;
}

static int read_bucket(leat__dir *d, const char *path, leat_error *err)
{
    leat__url url;
    leat__store *store = NULL;
    int rc;
    LEAT_TRY(leat__url_parse(&url, path, err));
    bucket_list l = {d, strlen(url.key)};
    d->device = UINT64_MAX;
    d->inode = leat__hash64(path, strlen(path), 0);
    LEAT_GO(rc, out, leat__store_open(&store, path, err));
    LEAT_GO(rc, out, leat__object_list(store, path, true, add_object, &l, err));
out:
    leat__store_close(&store);
    if (rc != 0) leat__error_context(err, "cannot list %s", path);
    return rc;
}

static int stop_at_first(void *cookie, const leat__object *o, leat_error *err)
{
    (void)cookie, (void)o;
    return leat__fail(err, LEAT_ECANCELED, "found");
}

static int remote_kind(const char *path, leat__entry_kind *kind, leat_error *err)
{
    leat__url url;
    leat__store *store = NULL;
    leat__object o;
    leat__buf folder;
    leat_error why = {0};
    int rc;
    LEAT_TRY(leat__url_parse(&url, path, err));
    *kind = LEAT__ENTRY_FILE;
    if (url.scheme >= LEAT__SCHEME_HTTP) return 0;
    bool slash = url.key[0] == '\0' || url.key[strlen(url.key) - 1] == '/';
    leat__buf_init(&folder, LEAT__MEM_IO, 1u << 20);
    leat__buf_puts(&folder, path);
    if (path[strlen(path) - 1] != '/') leat__buf_putc(&folder, '/');
    if (leat__buf_status(&folder) != 0) LEAT_GO(rc, out, leat__fail_nomem(err, 0, "a path"));
    LEAT_GO(rc, out, leat__store_open(&store, path, err));
    rc = slash ? LEAT_ENOENT : leat__object_stat(store, path, &o, err);
    if (rc != LEAT_ENOENT) goto out;
    *kind = LEAT__ENTRY_FOLDER;
    rc = leat__object_list(store, leat__buf_str(&folder), false, stop_at_first, NULL, &why);
    if (rc == LEAT_ECANCELED) rc = 0;
    else if (rc == 0)
        rc = leat__fail(err, LEAT_ENOENT, "%s: there is no such object, and none below it", path);
    else if (err != NULL) *err = why;
out:
    leat__store_close(&store);
    leat__buf_reset(&folder);
    return rc;
}

static leat__stamp remote_stamp(const char *path)
{
    leat__store *store = NULL;
    leat__object o = {0};
    if (leat__store_open(&store, path, NULL) != 0) return (leat__stamp){0};
    (void)!leat__object_stat(store, path, &o, NULL);
    leat__store_close(&store);
    return (leat__stamp){.bytes = o.size, .mtime_ns = (int64_t)o.tag};
}

/* ---- folders of this machine ---- */

int leat__dir_read(leat__dir *d, const char *path, bool fast, leat_error *err)
{
    if (!d->names.data) leat__buf_init(&d->names, LEAT__MEM_IO, NAMES_MAX);
    leat__buf_clear(&d->names);
    d->count = 0;
    if (leat__path_remote(path)) return read_bucket(d, path, err);
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
    return by->compare(names + ((const leat__entry *)a)->name, names + ((const leat__entry *)b)->name);
}

void leat__dir_sort(leat__dir *d, int (*compare)(const char *a, const char *b))
{
    sort_by by = {d, compare};
    if (d->count > 1) qsort_r(d->entries, d->count, sizeof *d->entries, compare_entries, &by);
}

int leat__path_kind(const char *path, leat__entry_kind *kind, leat_error *err)
{
    struct stat st;
    if (leat__path_remote(path)) return remote_kind(path, kind, err);
    if (stat(path, &st) != 0) return leat__path_cannot_open(path, errno, err);
    *kind = kind_of(st.st_mode);
    return 0;
}

leat__stamp leat__path_stamp(const char *path)
{
    struct stat st;
    if (leat__path_remote(path)) return remote_stamp(path);
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
        return leat__fail(
            err, LEAT_EPERM,
            "%s: must be a folder that belongs to this user and that no other user can write to", path);
    return 0;
}

void leat__dir_remove(const char *path)
{
    (void)rmdir(path);
}
