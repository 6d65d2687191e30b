/* SPDX-License-Identifier: Apache-2.0
 *
 * Files: see file.h. A direct file has two descriptors: the one with O_DIRECT serves aligned reads, the plain
 * one all others (small index reads, the unaligned end of a file).
 */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "io/inject.h"
#include "io/remote.h"
#include "io/url.h"

/* Linux moves at most 2 GiB - 4 KiB per call. */
#define TRANSFER_MAX (UINT64_C(1) << 30)
#define LINKS_MAX 40 /* the kernel's limit */

struct leat__file {
    leat__seat seat; /* the plain descriptor, and one for direct reads or -1 */
    uint64_t size_at_open;
    char *path;
    leat__remote *remote; /* NULL for a local file */
    bool in_memory;       /* its file system has no storage */
};

/* True for tmpfs, which does not support RWF_NOWAIT and does not need it. */
static bool is_in_memory(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

static int open_retry(const char *path, int flags)
{
    int fd;
    do {
        fd = open(path, flags | O_CLOEXEC, 0666);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

static int open_flags(unsigned flags)
{
    int sys = O_RDONLY;
    if (flags & LEAT__FILE_WRITE) sys = O_RDWR;
    if (flags & LEAT__FILE_CREATE) sys |= O_CREAT;
    if (flags & LEAT__FILE_EXCLUSIVE) sys |= O_EXCL;
    if (flags & LEAT__FILE_TRUNCATE) sys |= O_TRUNC;
    if (flags & LEAT__FILE_NO_LINK) sys |= O_NOFOLLOW;
    return sys;
}

static int refuse_other_than_regular(int fd, const char *path, uint64_t *size, leat_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return leat__fail_errno(err, errno, "%s: cannot stat", path);
    *size = (uint64_t)st.st_size;
    if (S_ISREG(st.st_mode)) return 0;
    return leat__fail(err, LEAT_EINVAL,
                      S_ISDIR(st.st_mode) ? "%s: is a folder, not a file" : "%s: not a regular file", path);
}

/* False when the last user of the file removed it between our open and our lock, so it is not the
 * one at `path`. */
static bool lock_file(int fd, const char *path)
{
    struct stat held, named;
    return flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &held) == 0 && stat(path, &named) == 0 &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

static int open_remote(leat__file **out, const char *path, unsigned flags, leat_error *err)
{
    if (flags & LEAT__FILE_WRITE)
        return leat__fail(err, LEAT_ENOTSUP, "%.200s: a remote file cannot be changed in place", path);
    leat__file *f = LEAT_NEW(IO, leat__file);
    if (f == NULL) return leat__fail_nomem(err, sizeof *f, "a file");
    f->seat.fd = f->seat.direct_fd = -1;
    int rc = leat__remote_open(&f->remote, path, err);
    if (rc == 0) {
        f->path = leat__strdup(LEAT__MEM_IO, leat__remote_path(f->remote));
        if (f->path == NULL) rc = leat__fail_nomem(err, strlen(path), "a path");
    }
    if (rc == 0) {
        f->size_at_open = leat__remote_size(f->remote);
        *out = f;
    } else {
        leat__file_close(&f);
    }
    return rc;
}

int leat__file_open(leat__file **out, const char *path, unsigned flags, leat_error *err)
{
    *out = NULL;
    if (leat__path_remote(path)) return open_remote(out, path, flags, err);
    leat__file *f = LEAT_NEW(IO, leat__file);
    if (f == NULL) return leat__fail_nomem(err, sizeof *f, "a file");
    f->seat.fd = f->seat.direct_fd = -1;

    int rc = 0;
    f->path = leat__strdup(LEAT__MEM_IO, path);
    if (f->path == NULL) {
        rc = leat__fail_nomem(err, strlen(path) + 1, "a path");
        goto out;
    }
    if (LEAT_FAULT((flags & LEAT__FILE_WRITE) ? LEAT__FAULT_WRITE : LEAT__FAULT_READ)) {
        rc = leat__fail_errno(err, EIO, "%s: cannot open", path);
        goto out;
    }
    /* O_NONBLOCK: a FIFO opened by mistake must fail below, not wait for a writer. */
    f->seat.fd = open_retry(path, open_flags(flags) | O_NONBLOCK);
    if (f->seat.fd < 0) {
        rc = leat__path_cannot_open(path, errno, err);
        goto out;
    }
    LEAT_GO(rc, out, refuse_other_than_regular(f->seat.fd, path, &f->size_at_open, err));
    f->in_memory = is_in_memory(f->seat.fd);
    if ((flags & LEAT__FILE_LOCK) && !lock_file(f->seat.fd, path)) {
        rc = leat__fail(err, LEAT_ESTATE, "%s: in use by another process or writer", path);
        goto out;
    }
    /* File systems without direct reads (tmpfs, some network ones) refuse the flag. */
    if (flags & LEAT__FILE_DIRECT) {
        f->seat.direct_fd = open_retry(path, O_RDONLY | O_DIRECT);
        f->seat.direct = f->seat.direct_fd >= 0;
    }
    *out = f;
    f = NULL;
out:
    leat__file_close(&f);
    return rc;
}

int leat__file_open_pooled(leat__file **out, leat__file_pool *pool, const char *path, unsigned flags,
                           leat_error *err)
{
    *out = NULL;
    if (pool == NULL || leat__path_remote(path)) return leat__file_open(out, path, flags, err);
    leat__file *f = LEAT_NEW(IO, leat__file);
    if (f == NULL) return leat__fail_nomem(err, sizeof *f, "a file");
    f->path = leat__strdup(LEAT__MEM_IO, path);
    f->seat = (leat__seat){
        .fd = -1, .direct_fd = -1, .pool = pool, .path = f->path, .direct = (flags & LEAT__FILE_DIRECT) != 0};
    int rc = 0, bad = 0;
    if (f->path == NULL) rc = leat__fail_nomem(err, strlen(path) + 1, "a path");
    else if (LEAT_FAULT(LEAT__FAULT_READ)) bad = EIO;
    else bad = leat__seat_take(&f->seat, true);
    if (bad != 0) rc = leat__fail_errno(err, bad, "%s: cannot open", path);
    if (rc == 0) {
        rc = refuse_other_than_regular(f->seat.fd, path, &f->size_at_open, err);
        f->in_memory = is_in_memory(f->seat.fd);
        leat__seat_give(&f->seat, true);
    }
    if (rc == 0) *out = f;
    else leat__file_close(&f);
    return rc;
}

void leat__file_close(leat__file **file)
{
    leat__file *f = *file;
    if (f == NULL) return;
    leat__seat_close(&f->seat);
    leat__remote_close(&f->remote);
    leat__free(f->path);
    leat__free(f);
    *file = NULL;
}

const char *leat__file_path(const leat__file *f)
{
    return f->path;
}

leat__remote *leat__file_remote(const leat__file *f)
{
    return f->remote;
}

void leat__file_settle(const leat__file *f)
{
    if (f->remote != NULL) leat__remote_settle(f->remote);
}

int leat__file_fd(const leat__file *f)
{
    return f->seat.direct ? f->seat.direct_fd : f->seat.fd;
}

bool leat__file_direct(const leat__file *f)
{
    return f->seat.direct;
}

static leat__seat *seat_of(const leat__file *f)
{
    return (leat__seat *)&f->seat; /* the seat has its own lock */
}

int leat__file_hold(const leat__file *f)
{
    return leat__seat_take(seat_of(f), false);
}

void leat__file_release(const leat__file *f)
{
    leat__seat_give(seat_of(f), false);
}

int leat__file_size(const leat__file *f, uint64_t *bytes, leat_error *err)
{
    struct stat st;
    /* a pooled file that was reopened has the same size, else it is ESTALE */
    if (f->remote != NULL || f->seat.pool != NULL) {
        *bytes = f->size_at_open;
        return 0;
    }
    if (LEAT_FAULT(LEAT__FAULT_READ) || fstat(f->seat.fd, &st) != 0)
        return leat__fail_errno(err, errno ? errno : EIO, "%s: cannot stat", f->path);
    *bytes = (uint64_t)st.st_size;
    return 0;
}

uint64_t leat__file_size_at_open(const leat__file *f)
{
    return f->size_at_open;
}

static bool aligned(const void *buf, size_t len, uint64_t offset)
{
    return (((uintptr_t)buf | len | offset) & (LEAT__IO_ALIGN - 1)) == 0;
}

/* Makes one system call; returns bytes transferred, or -1 and errno. */
static ssize_t pread_once(const leat__file *f, void *buf, size_t len, uint64_t offset)
{
    uint64_t delay_ns = 0;
    int bad = leat__inject_ask(f->path, offset, len, &delay_ns);
    if (delay_ns != 0) leat__sleep_ns(delay_ns);
    if (bad == 0 && LEAT_FAULT(LEAT__FAULT_READ)) bad = EIO;
    if (bad != 0) {
        errno = bad;
        return -1;
    }
    bad = leat__seat_take(seat_of(f), true);
    if (bad == 0) {
        bool direct = f->seat.direct && aligned(buf, len, offset);
        ssize_t n =
            pread(direct ? f->seat.direct_fd : f->seat.fd, buf, LEAT_MIN(len, TRANSFER_MAX), (off_t)offset);
        bad = n < 0 ? errno : 0;
        leat__seat_give(seat_of(f), true);
        if (bad == 0) return n;
    }
    errno = bad;
    return -1;
}

int leat__file_pread_some(const leat__file *f, void *buf, size_t len, uint64_t offset, size_t *got,
                          leat_error *err)
{
    *got = 0;
    if (offset > INT64_MAX || len > INT64_MAX - offset)
        return leat__fail(err, LEAT_EOVERFLOW, "%s: read past the largest file", f->path);
    if (f->remote != NULL) return leat__remote_pread(f->remote, buf, len, offset, got, err);
    while (*got < len) {
        ssize_t n = pread_once(f, (char *)buf + *got, len - *got, offset + *got);
        if (n == 0) break;
        if (n < 0) {
            if (errno == EINTR) continue;
            int rc = leat__fail_errno(err, errno, "%s: cannot read at byte %llu", f->path,
                                      (unsigned long long)(offset + *got));
            leat__error_at(err, NULL, -1, (int64_t)(offset + *got));
            return rc;
        }
        *got += (size_t)n;
    }
    return 0;
}

int leat__file_pread(const leat__file *f, void *buf, size_t len, uint64_t offset, leat_error *err)
{
    size_t got;
    LEAT_TRY(leat__file_pread_some(f, buf, len, offset, &got, err));
    if (got == len) return 0;
    leat__fail(err, LEAT_EDATA, "%s: too short: there is no byte %llu, %llu are expected from there", f->path,
               (unsigned long long)(offset + got), (unsigned long long)(len - got));
    leat__error_at(err, NULL, -1, (int64_t)(offset + got));
    return LEAT_EDATA;
}

size_t leat__file_pread_cached(const leat__file *f, void *buf, size_t len, uint64_t offset)
{
    struct iovec to = {buf, LEAT_MIN(len, TRANSFER_MAX)};
    if (f->remote != NULL || offset > INT64_MAX) return 0;
    if (leat__inject_active() || LEAT_FAULT(LEAT__FAULT_READ)) return 0;
    if (leat__seat_take(seat_of(f), true) != 0) return 0;
    ssize_t n = preadv2(f->seat.fd, &to, 1, (off_t)offset, f->in_memory ? 0 : RWF_NOWAIT);
    leat__seat_give(seat_of(f), true);
    return n > 0 ? (size_t)n : 0;
}

int leat__file_pwrite(leat__file *f, const void *buf, size_t len, uint64_t offset, leat_error *err)
{
    size_t put = 0;
    while (put < len) {
        ssize_t n = -1;
        errno = ENOSPC;
        if (!LEAT_FAULT(LEAT__FAULT_WRITE))
            n = pwrite(f->seat.fd, (const char *)buf + put, LEAT_MIN(len - put, TRANSFER_MAX),
                       (off_t)(offset + put));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return leat__fail_errno(err, n < 0 ? errno : ENOSPC, "%s: cannot write at byte %llu", f->path,
                                    (unsigned long long)(offset + put));
        put += (size_t)n;
    }
    return 0;
}

void leat__file_reserve(leat__file *f, uint64_t offset, uint64_t len)
{
    (void)!fallocate(f->seat.fd, 0, (off_t)offset, (off_t)len);
}

int leat__file_truncate(leat__file *f, uint64_t bytes, leat_error *err)
{
    if (LEAT_FAULT(LEAT__FAULT_WRITE)) return leat__fail_errno(err, EIO, "%s: cannot set the size", f->path);
    while (ftruncate(f->seat.fd, (off_t)bytes) != 0) {
        if (errno != EINTR) return leat__fail_errno(err, errno, "%s: cannot set the size", f->path);
    }
    return 0;
}

int leat__file_sync(leat__file *f, leat_error *err)
{
    if (LEAT_FAULT(LEAT__FAULT_SYNC)) return leat__fail_errno(err, EIO, "%s: cannot sync", f->path);
    while (fdatasync(f->seat.fd) != 0) {
        if (errno != EINTR) return leat__fail_errno(err, errno, "%s: cannot sync", f->path);
    }
    return 0;
}

void leat__file_flush_hint(leat__file *f, uint64_t offset, uint64_t len)
{
    uint64_t begin = offset / LEAT__IO_ALIGN, end = (offset + len) / LEAT__IO_ALIGN;
    if (begin == end) return; /* a length of 0 would mean the whole file */
    (void)sync_file_range(f->seat.fd, (off_t)(begin * LEAT__IO_ALIGN),
                          (off_t)((end - begin) * LEAT__IO_ALIGN), SYNC_FILE_RANGE_WRITE);
}

void leat__file_advise(const leat__file *f, uint64_t offset, uint64_t len, leat__advice advice)
{
    static const int map[] = {
        [LEAT__ADVICE_NORMAL] = POSIX_FADV_NORMAL,     [LEAT__ADVICE_SEQUENTIAL] = POSIX_FADV_SEQUENTIAL,
        [LEAT__ADVICE_RANDOM] = POSIX_FADV_RANDOM,     [LEAT__ADVICE_WILLNEED] = POSIX_FADV_WILLNEED,
        [LEAT__ADVICE_DONTNEED] = POSIX_FADV_DONTNEED,
    };
    if (f->remote != NULL || leat__seat_take(seat_of(f), true) != 0) return;
    (void)posix_fadvise(f->seat.fd, (off_t)offset, (off_t)len, map[advice]);
    leat__seat_give(seat_of(f), true);
}

/* ---- by name --------------------------------------------------------------------------- */

/* Syncs the folder of `path`: only then is a rename durable. */
static int sync_folder_of(const char *path, leat_error *err)
{
    size_t len = (size_t)(leat__path_base(path) - path);
    char *dir = len == 0 ? leat__strdup(LEAT__MEM_IO, ".") : leat__strndup(LEAT__MEM_IO, path, len);
    if (dir == NULL) return leat__fail_nomem(err, len + 1, "a path");
    int rc = 0;
    int fd = LEAT_FAULT(LEAT__FAULT_SYNC) ? -1 : open_retry(dir, O_RDONLY | O_DIRECTORY);
    /* Some network file systems cannot sync a folder (EINVAL): the rename itself is done. */
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
        rc = leat__fail_errno(err, errno ? errno : EIO, "%s: cannot sync the folder", dir);
    if (fd >= 0) close(fd);
    leat__free(dir);
    return rc;
}

int leat__path_rename(const char *from, const char *to, leat_error *err)
{
    if (LEAT_FAULT(LEAT__FAULT_SYNC)) return leat__fail_errno(err, EIO, "%s: cannot rename to %s", from, to);
    if (rename(from, to) != 0) return leat__fail_errno(err, errno, "%s: cannot rename to %s", from, to);
    return sync_folder_of(to, err);
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int leat__path_link(const char *from, const char *to, leat_error *err)
{
    if (LEAT_FAULT(LEAT__FAULT_SYNC)) return leat__fail_errno(err, EIO, "%s: cannot link to %s", from, to);
    bool done = link(from, to) == 0 || (errno == EEXIST && same_file(from, to));
    if (!done && errno == EEXIST && unlink(to) == 0) done = link(from, to) == 0;
    if (done) return sync_folder_of(to, err);
    if (errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK || errno == ENOSYS || errno == EACCES)
        return leat__fail(err, LEAT_ENOTSUP, "%s: no hard links here", to);
    return leat__fail_errno(err, errno, "%s: cannot link to %s", from, to);
}

int leat__path_unlink(const char *path, leat_error *err)
{
    if (LEAT_FAULT(LEAT__FAULT_SYNC)) return leat__fail_errno(err, EIO, "%s: cannot remove", path);
    if (unlink(path) == 0 || errno == ENOENT) return 0;
    return leat__fail_errno(err, errno, "%s: cannot remove", path);
}

int leat__path_rmdir(const char *path, leat_error *err)
{
    if (LEAT_FAULT(LEAT__FAULT_SYNC)) return leat__fail_errno(err, EIO, "%s: cannot remove", path);
    if (rmdir(path) == 0 || errno == ENOENT) return 0;
    return leat__fail_errno(err, errno, "%s: cannot remove", path);
}

int leat__path_exists(const char *path, bool *exists, leat_error *err)
{
    struct stat st;
    *exists = false;
    if (LEAT_FAULT(LEAT__FAULT_READ)) return leat__fail_errno(err, EIO, "%s: cannot stat", path);
    if (stat(path, &st) == 0) {
        *exists = true;
        return 0;
    }
    if (errno == ENOENT || errno == ENOTDIR) return 0;
    return leat__fail_errno(err, errno, "%s: cannot stat", path);
}

int leat__path_regular(const char *path, bool *regular, leat_error *err)
{
    struct stat st;
    if (LEAT_FAULT(LEAT__FAULT_READ)) return leat__fail_errno(err, EIO, "%s: cannot stat", path);
    if (stat(path, &st) != 0) return leat__fail_errno(err, errno, "%s: cannot stat", path);
    *regular = S_ISREG(st.st_mode);
    return 0;
}

/* Reads one symbolic link; a relative target is relative to the link's folder. */
static int follow_link(const char *path, char **target, leat_error *err)
{
    char link[PATH_MAX];
    ssize_t n = readlink(path, link, sizeof link - 1);
    /* not a link: the path is the target */
    if (n < 0 && (errno == EINVAL || errno == ENOENT || errno == ENOTDIR)) {
        *target = leat__strdup(LEAT__MEM_IO, path);
        return *target != NULL ? 0 : leat__fail_nomem(err, strlen(path) + 1, "a path");
    }
    if (n < 0) return leat__fail_errno(err, errno, "%s: cannot read the link", path);
    link[n] = '\0';
    leat__buf b;
    leat__buf_init(&b, LEAT__MEM_IO, 1u << 20);
    if (link[0] != '/') (void)leat__buf_append(&b, path, (size_t)(leat__path_base(path) - path));
    (void)leat__buf_puts(&b, link);
    *target = leat__buf_status(&b) == 0 ? leat__buf_take(&b, NULL) : NULL;
    leat__buf_reset(&b);
    return *target != NULL ? 0 : leat__fail_nomem(err, (size_t)n, "a path");
}

int leat__path_resolve(const char *path, char **target, leat_error *err)
{
    *target = leat__strdup(LEAT__MEM_IO, path);
    if (*target == NULL) return leat__fail_nomem(err, strlen(path) + 1, "a path");
    for (int links = 0; links < LINKS_MAX; links++) {
        char *next;
        int rc = follow_link(*target, &next, err);
        bool same = rc == 0 && strcmp(next, *target) == 0;
        leat__free(*target);
        *target = rc == 0 ? next : NULL;
        if (rc != 0 || same) return rc;
    }
    leat__free(*target);
    *target = NULL;
    return leat__fail_errno(err, ELOOP, "%s: cannot follow the link", path);
}

int leat__path_local(const char *path, const char *hint, leat_error *err)
{
    if (!leat__path_remote(path)) return 0;
    return leat__fail(err, LEAT_ENOTSUP, "%.200s: must be a local path%s", path, hint);
}

int leat__path_mkdir(const char *path, leat_error *err)
{
    LEAT_TRY(leat__path_local(path, "", err));
    char *p = leat__strdup(LEAT__MEM_IO, path);
    if (p == NULL) return leat__fail_nomem(err, strlen(path) + 1, "a path");
    int rc = 0;
    size_t len = strlen(p);
    for (size_t i = 1; i <= len; i++) {
        if (p[i] != '/' && p[i] != '\0') continue;
        char keep = p[i];
        p[i] = '\0';
        struct stat st;
        if (LEAT_FAULT(LEAT__FAULT_WRITE)) {
            rc = leat__fail_errno(err, EIO, "%s: cannot make the folder", p);
        } else if (mkdir(p, 0777) != 0 && (errno != EEXIST || stat(p, &st) != 0 || !S_ISDIR(st.st_mode))) {
            rc = errno == EEXIST ? leat__fail(err, LEAT_EINVAL, "%s: is a file, not a folder", p)
                                 : leat__fail_errno(err, errno, "%s: cannot make the folder", p);
        }
        p[i] = keep;
        if (rc != 0) break;
    }
    leat__free(p);
    return rc;
}

int leat__file_load(const char *path, size_t max, size_t padding, char **data, size_t *len, leat_error *err)
{
    *data = NULL;
    *len = 0;
    leat__file *f = NULL;
    char *block = NULL;
    uint64_t bytes = 0;
    size_t total;
    int rc;
    LEAT_GO(rc, out, leat__file_open(&f, path, LEAT__FILE_READ, err));
    LEAT_GO(rc, out, leat__file_size(f, &bytes, err));
    if (bytes > max) {
        char size[24], most[24];
        rc = leat__fail(err, LEAT_ELIMIT, "%s: is %s, at most %s are allowed", path,
                        leat__format_bytes(bytes, size, sizeof size),
                        leat__format_bytes(max, most, sizeof most));
        goto out;
    }
    if (!leat__add_size((size_t)bytes, padding, &total)) {
        rc = leat__fail(err, LEAT_EOVERFLOW, "%s: size out of range", path);
        goto out;
    }
    block = leat__alloc(LEAT__MEM_IO, total);
    if (block == NULL) {
        rc = leat__fail_nomem(err, total, path);
        goto out;
    }
    LEAT_GO(rc, out, leat__file_pread(f, block, (size_t)bytes, 0, err));
    memset(block + bytes, 0, padding);
    *data = block;
    *len = (size_t)bytes;
    block = NULL;
out:
    leat__free(block);
    leat__file_close(&f);
    return rc;
}

/* ---- a whole file at once ---------------------------------------------------------------- */

/* Writes into the existing file, like shell redirection. A FIFO without a reader is an error; it
 * must not block. */
static int write_through(const char *path, const void *data, size_t len, leat_error *err)
{
    int fd = open_retry(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return leat__fail_errno(err, errno, "%s: cannot open", path);
    int rc = 0, flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0)
        rc = leat__fail_errno(err, errno, "%s: cannot open", path);
    for (size_t done = 0; done < len && rc == 0;) {
        ssize_t n = LEAT_FAULT(LEAT__FAULT_WRITE) ? (errno = EIO, -1)
                                                  : write(fd, (const char *)data + done, len - done);
        if (n > 0) done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            rc = leat__fail_errno(err, n == 0 ? EIO : errno, "%s: cannot write", path);
    }
    close(fd);
    return rc;
}

/* Writes a temporary file beside `path`, syncs and renames it. It is created under a new name, so it is never
 * another writer's file or a planted link. */
static int replace_file(const char *path, const struct stat *old, const void *data, size_t len,
                        leat_error *err)
{
    static _Atomic unsigned count;
    leat__file *f = NULL;
    leat__buf tmp;
    bool made = false;
    LEAT_TRY(leat__path_local(path, "", err));
    leat__buf_init(&tmp, LEAT__MEM_IO, 1u << 20);
    int rc = leat__buf_printf(&tmp, "%s.%ld-%u.tmp", path, (long)getpid(), count++);
    if (rc != 0) {
        rc = leat__fail(err, rc, "%s: path too long or out of memory", path);
        goto out;
    }
    LEAT_GO(rc, out,
            leat__file_open(&f, leat__buf_str(&tmp),
                            LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_EXCLUSIVE, err));
    made = true;
    /* keep the permissions of the old file */
    if (old != NULL) (void)!fchmod(f->seat.fd, old->st_mode & 07777);
    LEAT_GO(rc, out, leat__file_pwrite(f, data, len, 0, err));
    LEAT_GO(rc, out, leat__file_sync(f, err));
    leat__file_close(&f);
    LEAT_GO(rc, out, leat__path_rename(leat__buf_str(&tmp), path, err));
out:
    leat__file_close(&f);
    if (rc != 0 && made) (void)unlink(leat__buf_str(&tmp));
    leat__buf_reset(&tmp);
    return rc;
}

bool leat__file_store_temp(const char *name, const char *of)
{
    size_t n = strlen(of);
    if (strncmp(name, of, n) != 0 || name[n] != '.') return false;
    name += n + 1;
    n = strspn(name, "0123456789");
    if (n == 0 || name[n] != '-') return false;
    name += n + 1;
    n = strspn(name, "0123456789");
    return n > 0 && leat__str_eq(name + n, ".tmp");
}

/* True for names of descriptors. /dev/stdout may be a regular file that another program has open: never
 * rename over it. */
static bool is_descriptor(const char *path)
{
    return strncmp(path, "/dev/std", 8) == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/", 6) == 0;
}

int leat__path_can_make(const char *path, leat_error *err)
{
    struct stat st;
    char *folder;
    LEAT_TRY(leat__path_local(path, "", err));
    LEAT_TRY(leat__path_resolve(path, &folder, err));
    char *slash = strrchr(folder, '/');
    if (slash != NULL) slash[slash == folder] = '\0'; /* "/x" is in "/" */
    const char *name = slash != NULL ? folder : ".";
    int rc = 0, failed = stat(name, &st);
    while (failed && errno == ENOTDIR && (slash = strrchr(folder, '/')) != NULL && slash > folder) {
        *slash = '\0'; /* the part up to the file that should be a folder */
        failed = stat(name, &st);
    }
    if (failed) {
        rc = errno == ENOENT ? leat__fail(err, LEAT_ENOENT, "%s: no such folder", name)
                             : leat__fail_errno(err, errno, "%s: cannot stat", name);
    } else if (!S_ISDIR(st.st_mode)) {
        rc = leat__fail(err, LEAT_EINVAL, "%s: is a file, not a folder", name);
    } else if (access(name, W_OK) != 0) {
        rc = leat__fail_errno(err, errno, "%s: cannot write into this folder", name);
    }
    leat__free(folder);
    return rc;
}

int leat__file_spare_pack(const char *path, leat_error *err)
{
    struct stat st;
    char head[8];
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return leat__fail(err, LEAT_EINVAL, "%s: is a folder; give the name of a file to write", path);
    if (!exists || (S_ISREG(st.st_mode) && !is_descriptor(path))) LEAT_TRY(leat__path_can_make(path, err));
    if (!exists || !S_ISREG(st.st_mode)) return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool pack = fd >= 0 && pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head &&
                memcmp(head, LEAT__PACK_MAGIC, sizeof head) == 0;
    if (fd >= 0) close(fd);
    if (!pack) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s: is a pack; give another name to write to", path);
}

int leat__file_only_kind(const char *path, const char *head, bool replace, leat_error *err)
{
    struct stat st;
    leat__file *f = NULL;
    char found[64];
    size_t got = 0, size = strlen(head);
    LEAT_ASSERT(size <= sizeof found);
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || is_descriptor(path)) return 0;
    LEAT_TRY(leat__file_open(&f, path, LEAT__FILE_READ, err));
    int rc = leat__file_pread_some(f, found, size, 0, &got, err);
    leat__file_close(&f);
    if (rc != 0) return rc;
    if (got == 0 || (got == size && memcmp(found, head, got) == 0))
        return replace ? 0 : leat__fail(err, LEAT_EEXIST, "%s: already exists", path);
    return leat__fail(err, LEAT_EINVAL,
                      "%s: is not an earlier output of this kind, and only such a file may be replaced; give "
                      "another name",
                      path);
}

int leat__file_only_pack(const char *path, bool replace, leat_error *err)
{
    static const char never_written[8]; /* a crash may leave zeros */
    leat__file *f = NULL;
    char head[8];
    size_t got = 0;
    LEAT_TRY(leat__file_open(&f, path, 0, err));
    int rc = leat__file_pread_some(f, head, sizeof head, 0, &got, err);
    leat__file_close(&f);
    if (rc != 0) return rc;
    if (got == 0 || (got == sizeof head &&
                     (memcmp(head, LEAT__PACK_MAGIC, 8) == 0 || memcmp(head, LEAT__PARTIAL_MAGIC, 8) == 0 ||
                      memcmp(head, never_written, 8) == 0)))
        return replace ? 0 : leat__fail(err, LEAT_EEXIST, "%s: already exists", path);
    return leat__fail(err, LEAT_EINVAL,
                      "%s: is not a pack, and only a pack may be replaced; give another name", path);
}

int leat__file_store(const char *path, const void *data, size_t len, leat_error *err)
{
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (!exists && errno != ENOENT && errno != ENOTDIR)
        return leat__fail_errno(err, errno, "%s: cannot stat", path);
    if (exists && (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode) || is_descriptor(path)))
        return write_through(path, data, len, err);
    LEAT_TRY(leat__file_spare_pack(path, err)); /* reports a folder with its own message */
    if (exists && !S_ISREG(st.st_mode)) return leat__fail(err, LEAT_EINVAL, "%s: not a regular file", path);
    char *target;
    LEAT_TRY(leat__path_resolve(path, &target, err));
    int rc = replace_file(target, exists ? &st : NULL, data, len, err);
    leat__free(target);
    return rc;
}

int leat__file_append(const char *path, const void *data, size_t len, leat_error *err)
{
    leat__file *f = NULL;
    uint64_t end = 0;
    int rc;

    LEAT_GO(rc, out, leat__file_spare_pack(path, err));
    LEAT_GO(rc, out, leat__file_open(&f, path, LEAT__FILE_WRITE | LEAT__FILE_CREATE, err));
    LEAT_GO(rc, out, leat__file_size(f, &end, err));
    LEAT_GO(rc, out, leat__file_pwrite(f, data, len, end, err));
out:
    leat__file_close(&f);
    return rc;
}
