/* SPDX-License-Identifier: Apache-2.0
 *
 * Files: see file.h. A direct file keeps two descriptors: the one with O_DIRECT serves
 * aligned reads, the plain one everything else (small index reads, the ragged end of a file),
 * so callers need not care.
 */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "io/inject.h"

/* Linux moves at most 2 GiB - 4 KiB per call. */
#define TRANSFER_MAX (UINT64_C(1) << 30)

struct leat__file {
    int fd;        /* plain */
    int direct_fd; /* -1 when not direct */
    uint64_t size_at_open;
    char *path;
};

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
    return sys;
}

static int refuse_other_than_regular(int fd, const char *path, uint64_t *size, leat_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return leat__fail_errno(err, errno, "%s: cannot stat", path);
    *size = (uint64_t)st.st_size;
    if (S_ISREG(st.st_mode)) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s: not a regular file", path);
}

int leat__file_open(leat__file **out, const char *path, unsigned flags, leat_error *err)
{
    *out = NULL;
    leat__file *f = LEAT_NEW(IO, leat__file);
    if (f == NULL) return leat__fail_nomem(err, sizeof *f, "a file");
    f->fd = f->direct_fd = -1;

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
    /* O_NONBLOCK: opening a FIFO by mistake must fail below, not wait for a writer. */
    f->fd = open_retry(path, open_flags(flags) | O_NONBLOCK);
    if (f->fd < 0) {
        rc = leat__fail_errno(err, errno, "%s: cannot open", path);
        goto out;
    }
    LEAT_GO(rc, out, refuse_other_than_regular(f->fd, path, &f->size_at_open, err));
    if ((flags & LEAT__FILE_LOCK) && flock(f->fd, LOCK_EX | LOCK_NB) != 0) {
        rc = leat__fail(err, LEAT_ESTATE, "%s: in use by another process", path);
        goto out;
    }
    /* File systems without direct reads (tmpfs, some network ones) refuse the flag. */
    if (flags & LEAT__FILE_DIRECT) f->direct_fd = open_retry(path, O_RDONLY | O_DIRECT);
    *out = f;
    f = NULL;
out:
    leat__file_close(&f);
    return rc;
}

void leat__file_close(leat__file **file)
{
    leat__file *f = *file;
    if (f == NULL) return;
    if (f->fd >= 0) close(f->fd);
    if (f->direct_fd >= 0) close(f->direct_fd);
    leat__free(f->path);
    leat__free(f);
    *file = NULL;
}

const char *leat__file_path(const leat__file *f)
{
    return f->path;
}

int leat__file_fd(const leat__file *f)
{
    return f->direct_fd >= 0 ? f->direct_fd : f->fd;
}

bool leat__file_direct(const leat__file *f)
{
    return f->direct_fd >= 0;
}

int leat__file_size(const leat__file *f, uint64_t *bytes, leat_error *err)
{
    struct stat st;
    if (LEAT_FAULT(LEAT__FAULT_READ) || fstat(f->fd, &st) != 0)
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

/* One system call's worth: what it moved, or -1 and errno. */
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
    int fd = f->direct_fd >= 0 && aligned(buf, len, offset) ? f->direct_fd : f->fd;
    return pread(fd, buf, LEAT_MIN(len, TRANSFER_MAX), (off_t)offset);
}

int leat__file_pread_some(const leat__file *f, void *buf, size_t len, uint64_t offset,
                          size_t *got, leat_error *err)
{
    *got = 0;
    if (offset > INT64_MAX || len > INT64_MAX - offset)
        return leat__fail(err, LEAT_EOVERFLOW, "%s: read past the largest file", f->path);
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

int leat__file_pread(const leat__file *f, void *buf, size_t len, uint64_t offset,
                     leat_error *err)
{
    size_t got;
    LEAT_TRY(leat__file_pread_some(f, buf, len, offset, &got, err));
    if (got == len) return 0;
    leat__fail(err, LEAT_EDATA, "%s: ends at byte %llu, %llu more were expected", f->path,
               (unsigned long long)(offset + got), (unsigned long long)(len - got));
    leat__error_at(err, NULL, -1, (int64_t)(offset + got));
    return LEAT_EDATA;
}

size_t leat__file_pread_cached(const leat__file *f, void *buf, size_t len, uint64_t offset)
{
    struct iovec to = {buf, LEAT_MIN(len, TRANSFER_MAX)};
    if (offset > INT64_MAX || leat__inject_active() || LEAT_FAULT(LEAT__FAULT_READ)) return 0;
    ssize_t n = preadv2(f->fd, &to, 1, (off_t)offset, RWF_NOWAIT);
    return n > 0 ? (size_t)n : 0;
}

int leat__file_pwrite(leat__file *f, const void *buf, size_t len, uint64_t offset,
                      leat_error *err)
{
    size_t put = 0;
    while (put < len) {
        ssize_t n = -1;
        errno = ENOSPC;
        if (!LEAT_FAULT(LEAT__FAULT_WRITE))
            n = pwrite(f->fd, (const char *)buf + put, LEAT_MIN(len - put, TRANSFER_MAX),
                       (off_t)(offset + put));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return leat__fail_errno(err, n < 0 ? errno : ENOSPC,
                                    "%s: cannot write at byte %llu", f->path,
                                    (unsigned long long)(offset + put));
        put += (size_t)n;
    }
    return 0;
}

void leat__file_reserve(leat__file *f, uint64_t offset, uint64_t len)
{
    (void)!fallocate(f->fd, 0, (off_t)offset, (off_t)len);
}

int leat__file_truncate(leat__file *f, uint64_t bytes, leat_error *err)
{
    if (LEAT_FAULT(LEAT__FAULT_WRITE))
        return leat__fail_errno(err, EIO, "%s: cannot set the size", f->path);
    while (ftruncate(f->fd, (off_t)bytes) != 0) {
        if (errno != EINTR) return leat__fail_errno(err, errno, "%s: cannot set the size", f->path);
    }
    return 0;
}

int leat__file_sync(leat__file *f, leat_error *err)
{
    if (LEAT_FAULT(LEAT__FAULT_SYNC))
        return leat__fail_errno(err, EIO, "%s: cannot sync", f->path);
    while (fdatasync(f->fd) != 0) {
        if (errno != EINTR) return leat__fail_errno(err, errno, "%s: cannot sync", f->path);
    }
    return 0;
}

void leat__file_flush_hint(leat__file *f, uint64_t offset, uint64_t len)
{
    uint64_t begin = offset / LEAT__IO_ALIGN, end = (offset + len) / LEAT__IO_ALIGN;
    if (begin == end) return; /* a length of 0 would mean all of the file */
    (void)sync_file_range(f->fd, (off_t)(begin * LEAT__IO_ALIGN),
                          (off_t)((end - begin) * LEAT__IO_ALIGN), SYNC_FILE_RANGE_WRITE);
}

void leat__file_advise(const leat__file *f, uint64_t offset, uint64_t len,
                       leat__advice advice)
{
    static const int map[] = {
        [LEAT__ADVICE_NORMAL] = POSIX_FADV_NORMAL,
        [LEAT__ADVICE_SEQUENTIAL] = POSIX_FADV_SEQUENTIAL,
        [LEAT__ADVICE_RANDOM] = POSIX_FADV_RANDOM,
        [LEAT__ADVICE_WILLNEED] = POSIX_FADV_WILLNEED,
        [LEAT__ADVICE_DONTNEED] = POSIX_FADV_DONTNEED,
    };
    (void)posix_fadvise(f->fd, (off_t)offset, (off_t)len, map[advice]);
}

/* ---- by name --------------------------------------------------------------------------- */

/* The change of a name is durable when its folder is. */
static int sync_folder_of(const char *path, leat_error *err)
{
    size_t len = (size_t)(leat__path_base(path) - path);
    char *dir = len == 0 ? leat__strdup(LEAT__MEM_IO, ".")
                         : leat__strndup(LEAT__MEM_IO, path, len);
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
    if (LEAT_FAULT(LEAT__FAULT_SYNC))
        return leat__fail_errno(err, EIO, "%s: cannot rename to %s", from, to);
    if (rename(from, to) != 0)
        return leat__fail_errno(err, errno, "%s: cannot rename to %s", from, to);
    return sync_folder_of(to, err);
}

int leat__path_unlink(const char *path, leat_error *err)
{
    if (LEAT_FAULT(LEAT__FAULT_SYNC))
        return leat__fail_errno(err, EIO, "%s: cannot remove", path);
    if (unlink(path) == 0 || errno == ENOENT) return 0;
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

int leat__path_mkdir(const char *path, leat_error *err)
{
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
        } else if (mkdir(p, 0777) != 0 &&
                   (errno != EEXIST || stat(p, &st) != 0 || !S_ISDIR(st.st_mode))) {
            rc = leat__fail_errno(err, errno, "%s: cannot make the folder", p);
        }
        p[i] = keep;
        if (rc != 0) break;
    }
    leat__free(p);
    return rc;
}

int leat__file_load(const char *path, size_t max, size_t padding, char **data, size_t *len,
                    leat_error *err)
{
    *data = NULL;
    *len = 0;
    leat__file *f = NULL;
    char *block = NULL;
    uint64_t bytes;
    size_t total;
    int rc;
    LEAT_GO(rc, out, leat__file_open(&f, path, LEAT__FILE_READ, err));
    LEAT_GO(rc, out, leat__file_size(f, &bytes, err));
    if (bytes > max) {
        rc = leat__fail(err, LEAT_ELIMIT, "%s: %llu bytes, at most %llu are allowed", path,
                        (unsigned long long)bytes, (unsigned long long)max);
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

int leat__file_store(const char *path, const void *data, size_t len, leat_error *err)
{
    leat__file *f = NULL;
    leat__buf tmp;
    leat__buf_init(&tmp, LEAT__MEM_IO, 1u << 20);
    int rc = leat__buf_printf(&tmp, "%s.tmp", path);
    if (rc != 0) {
        rc = leat__fail(err, rc, "%s: path too long or out of memory", path);
        goto out;
    }
    LEAT_GO(rc, out, leat__file_open(&f, leat__buf_str(&tmp),
                                     LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_TRUNCATE,
                                     err));
    LEAT_GO(rc, out, leat__file_pwrite(f, data, len, 0, err));
    LEAT_GO(rc, out, leat__file_sync(f, err));
    leat__file_close(&f);
    LEAT_GO(rc, out, leat__path_rename(leat__buf_str(&tmp), path, err));
out:
    if (f != NULL) {
        leat__file_close(&f);
        (void)unlink(leat__buf_str(&tmp));
    }
    leat__buf_reset(&tmp);
    return rc;
}

int leat__file_append(const char *path, const void *data, size_t len, leat_error *err)
{
    leat__file *f = NULL;
    uint64_t end;
    int rc;

    LEAT_GO(rc, out, leat__file_open(&f, path, LEAT__FILE_WRITE | LEAT__FILE_CREATE, err));
    LEAT_GO(rc, out, leat__file_size(f, &end, err));
    LEAT_GO(rc, out, leat__file_pwrite(f, data, len, end, err));
out:
    leat__file_close(&f);
    return rc;
}
