/* SPDX-License-Identifier: Apache-2.0
 *
 * Files: local ones and, for reading, remote ones (s3:// … , io/remote.h), with the same
 * interface. Reads and writes are complete or an error: EINTR and short transfers are handled
 * here. A truncated file is LEAT_EDATA with the offset where it ends. Every message names the
 * file. Any number of threads may read a leat__file at positions; everything else is for one
 * thread at a time.
 */
#ifndef LEAT_IO_FILE_H
#define LEAT_IO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "io/file_pool.h"

/* Alignment of offset, length and memory that is enough for direct reads on every file system. */
#define LEAT__IO_ALIGN 4096u

typedef struct leat__file leat__file;
typedef struct leat__remote leat__remote;

/* The whole blocks that contain a range, for a direct read; the range begins `lead` bytes into them. */
typedef struct leat__span {
    uint64_t offset, len, lead;
} leat__span;
static inline leat__span leat__span_around(uint64_t offset, uint64_t len)
{
    uint64_t lead = offset % LEAT__IO_ALIGN;
    uint64_t blocks = (lead + len + LEAT__IO_ALIGN - 1) / LEAT__IO_ALIGN;
    return (leat__span){offset - lead, blocks * LEAT__IO_ALIGN, lead};
}

enum {
    LEAT__FILE_READ = 0,
    LEAT__FILE_WRITE = 1 << 0,     /* read and write; must exist unless CREATE */
    LEAT__FILE_CREATE = 1 << 1,    /* create it when missing (with WRITE) */
    LEAT__FILE_EXCLUSIVE = 1 << 2, /* with CREATE: LEAT_EEXIST when it exists */
    LEAT__FILE_TRUNCATE = 1 << 3,  /* with WRITE: empty it */
    LEAT__FILE_DIRECT = 1 << 4,    /* reads bypass the page cache if the file system allows it */
    LEAT__FILE_LOCK = 1 << 5,      /* with WRITE: lock it; LEAT_ESTATE when another process holds the lock */
    LEAT__FILE_NO_LINK = 1 << 6    /* fails when the path is a symbolic link */
};

int leat__file_open(leat__file **f, const char *path, unsigned flags, leat_error *err) LEAT_MUST_CHECK;
/* Opens for reading, with descriptors shared by the pool's files; without a pool (NULL) like
 * open. */
int leat__file_open_pooled(leat__file **f, leat__file_pool *pool, const char *path, unsigned flags,
                           leat_error *err) LEAT_MUST_CHECK;
/* Closes the descriptor; does not wait for write-back (see sync). */
void leat__file_close(leat__file **f);

const char *leat__file_path(const leat__file *f);     /* for messages */
leat__remote *leat__file_remote(const leat__file *f); /* NULL for a local file */
/* Remote files: frees the data that was read to open the file. */
void leat__file_settle(const leat__file *f);
/* fd returns the descriptor; for a pooled file call it only between hold and release. hold returns 0 or an
 * errno, EAGAIN when the pool has no free descriptor. */
int leat__file_fd(const leat__file *f);
int leat__file_hold(const leat__file *f);
void leat__file_release(const leat__file *f);
bool leat__file_direct(const leat__file *f); /* true if direct reads are in effect */
int leat__file_size(const leat__file *f, uint64_t *bytes, leat_error *err) LEAT_MUST_CHECK;
uint64_t leat__file_size_at_open(const leat__file *f); /* no system call */

/* Reads exactly `len` bytes at `offset`. Any alignment, even on a direct file: only calls aligned
 * in offset, length and memory bypass the page cache. */
int leat__file_pread(const leat__file *f, void *buf, size_t len, uint64_t offset,
                     leat_error *err) LEAT_MUST_CHECK;
/* Reads up to `len` bytes at `offset`, fewer only at the end of the file. */
int leat__file_pread_some(const leat__file *f, void *buf, size_t len, uint64_t offset, size_t *got,
                          leat_error *err) LEAT_MUST_CHECK;
/* Reads only bytes that are in the page cache, without waiting for a disk. Returns how many bytes
 * from `offset` it read; 0 also when the file system or a simulated disk cannot tell. */
size_t leat__file_pread_cached(const leat__file *f, void *buf, size_t len, uint64_t offset);
int leat__file_pwrite(leat__file *f, const void *buf, size_t len, uint64_t offset,
                      leat_error *err) LEAT_MUST_CHECK;
/* Reserves space before writing, so that write-back finds its blocks at once; the file grows to
 * offset + len. A hint: on failure the writes report the error. */
void leat__file_reserve(leat__file *f, uint64_t offset, uint64_t len);
int leat__file_truncate(leat__file *f, uint64_t bytes, leat_error *err) LEAT_MUST_CHECK;
/* When it returns 0, data and size are on stable storage. */
int leat__file_sync(leat__file *f, leat_error *err) LEAT_MUST_CHECK;
/* Starts write-back of a range without waiting, so that a later sync has little to do. A partial
 * last block is left to the write that fills it. */
void leat__file_flush_hint(leat__file *f, uint64_t offset, uint64_t len);

/* Hints; never fail. len 0 = to the end. */
typedef enum leat__advice {
    LEAT__ADVICE_NORMAL,
    LEAT__ADVICE_SEQUENTIAL,
    LEAT__ADVICE_RANDOM,
    LEAT__ADVICE_WILLNEED, /* start reading into the page cache */
    LEAT__ADVICE_DONTNEED  /* drop clean pages from the page cache */
} leat__advice;
void leat__file_advise(const leat__file *f, uint64_t offset, uint64_t len, leat__advice advice);

/* Operations on paths. rename replaces `to` atomically and durably (the folder is synced). unlink of a
 * missing file succeeds. */
int leat__path_rename(const char *from, const char *to, leat_error *err) LEAT_MUST_CHECK;
/* Makes a hard link; an existing link to the same file is kept. LEAT_ENOTSUP when the file system
 * has no hard links, or the file has too many. */
int leat__path_link(const char *from, const char *to, leat_error *err) LEAT_MUST_CHECK;
int leat__path_unlink(const char *path, leat_error *err) LEAT_MUST_CHECK;
int leat__path_rmdir(const char *path, leat_error *err) LEAT_MUST_CHECK; /* an empty folder */
int leat__path_exists(const char *path, bool *exists, leat_error *err) LEAT_MUST_CHECK;
int leat__path_regular(const char *path, bool *regular, leat_error *err) LEAT_MUST_CHECK;
int leat__path_mkdir(const char *path, leat_error *err) LEAT_MUST_CHECK; /* with parents */
/* Refuses a path in a bucket (LEAT_ENOTSUP), for files that can only be written locally. The message ends
 * with `hint`. */
int leat__path_local(const char *path, const char *hint, leat_error *err) LEAT_MUST_CHECK;
/* Resolves a symbolic link, even a dangling one, to a new string (leat__free). A path that is not a link is
 * copied. */
int leat__path_resolve(const char *path, char **target, leat_error *err) LEAT_MUST_CHECK;

/* Loads the whole file into a new block (free with leat__free), followed by `padding` zero bytes;
 * LEAT_ELIMIT when it has more than `max` bytes. */
int leat__file_load(const char *path, size_t max, size_t padding, char **data, size_t *len,
                    leat_error *err) LEAT_MUST_CHECK;
#define LEAT__PACK_MAGIC "\x89LEAT\r\n\x1a" /* the first bytes of a pack */
#define LEAT__PARTIAL_MAGIC "LEATPART"      /* the first bytes of an unfinished pack */
/* Fails when no file can be made at `path`: its folder is missing (LEAT_ENOENT) or not writable. The message
 * names the folder, not the temporary file beside the result. */
int leat__path_can_make(const char *path, leat_error *err) LEAT_MUST_CHECK;
/* Fails early when an output file cannot be written at `path`, before a long run: the folder is missing
 * (LEAT_ENOENT) or not writable. LEAT_EINVAL for a folder and for a pack, which such a file never replaces.
 */
int leat__file_spare_pack(const char *path, leat_error *err) LEAT_MUST_CHECK;
/* Checks that a new output replaces only files of its kind, which begin with `head` (at most 64 bytes).
 * LEAT_EINVAL: a regular file at `path` is neither empty nor begins with `head`. LEAT_EEXIST: it is of this
 * kind, and `replace` is false. */
int leat__file_only_kind(const char *path, const char *head, bool replace, leat_error *err) LEAT_MUST_CHECK;
/* Checks that a new pack replaces only a pack. LEAT_EINVAL: the existing file at `path` is neither a pack,
 * nor an unfinished one, nor empty. LEAT_EEXIST: it is a pack, and `replace` is false. */
int leat__file_only_pack(const char *path, bool replace, leat_error *err) LEAT_MUST_CHECK;
/* Writes a whole output file. A regular file is replaced atomically (written beside its name,
 * synced, renamed); for a symbolic link the target is replaced and the link kept. Character
 * devices, FIFOs and descriptors (/dev/stdout, /proc/self/fd/1) are written to, never replaced.
 * LEAT_EINVAL for anything else that exists: packs, folders, sockets, block devices. */
int leat__file_store(const char *path, const void *data, size_t len, leat_error *err) LEAT_MUST_CHECK;
/* True for the name of a temporary file that leat__file_store made for a file named `of`, and that a kill
 * left. */
bool leat__file_store_temp(const char *name, const char *of);
/* Appends to the file, creating it when missing. One writer at a time. */
int leat__file_append(const char *path, const void *data, size_t len, leat_error *err) LEAT_MUST_CHECK;

#endif
