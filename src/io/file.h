/* SPDX-License-Identifier: Apache-2.0
 *
 * Files, local ones and, for reading, remote ones (s3:// … , io/remote.h): whoever reads need not
 * know which. Reads and writes are whole or an error: EINTR and short transfers are handled here,
 * a file that ends early is LEAT_EDATA with the offset where it ended. Every message names
 * the file. A leat__file may be read at positions by many threads at once; everything else
 * is for one thread at a time.
 */
#ifndef LEAT_IO_FILE_H
#define LEAT_IO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "io/file_pool.h"

/* Alignment of offset, length and memory that direct reads need on every file system. */
#define LEAT__IO_ALIGN 4096u

typedef struct leat__file leat__file;
typedef struct leat__remote leat__remote;

/* The whole blocks around a range, as a direct read takes them: the range itself begins `lead`
 * bytes into them. */
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
    LEAT__FILE_CREATE = 1 << 1,    /* make it when it is not there (with WRITE) */
    LEAT__FILE_EXCLUSIVE = 1 << 2, /* with CREATE: LEAT_EEXIST when it is there */
    LEAT__FILE_TRUNCATE = 1 << 3,  /* with WRITE: empty it */
    LEAT__FILE_DIRECT = 1 << 4,    /* reads bypass the page cache where the file system can */
    LEAT__FILE_LOCK = 1 << 5       /* with WRITE: LEAT_ESTATE when another process holds it */
};

int leat__file_open(leat__file **f, const char *path, unsigned flags,
                    leat_error *err) LEAT_MUST_CHECK;
/* For reading, with descriptors that a pool's files share; without a pool (NULL) like open. */
int leat__file_open_pooled(leat__file **f, leat__file_pool *pool, const char *path, unsigned flags,
                           leat_error *err) LEAT_MUST_CHECK;
/* Closes the descriptor; buffered data of the kernel is not waited for (see sync). */
void leat__file_close(leat__file **f);

const char *leat__file_path(const leat__file *f); /* for messages */
leat__remote *leat__file_remote(const leat__file *f); /* NULL for a local file */
/* What was read to open the file is no longer needed (remote files). */
void leat__file_settle(const leat__file *f);
/* The descriptor, of a pooled file only between hold and release. hold: 0 or an errno, EAGAIN when
 * the pool has none to spare just now. */
int leat__file_fd(const leat__file *f);
int leat__file_hold(const leat__file *f);
void leat__file_release(const leat__file *f);
bool leat__file_direct(const leat__file *f); /* direct reads really on */
int leat__file_size(const leat__file *f, uint64_t *bytes, leat_error *err) LEAT_MUST_CHECK;
uint64_t leat__file_size_at_open(const leat__file *f); /* without asking again */

/* Reads exactly `len` bytes at `offset`. Any alignment, also on a direct file: only calls
 * aligned in offset, length and memory bypass the page cache. */
int leat__file_pread(const leat__file *f, void *buf, size_t len, uint64_t offset,
                     leat_error *err) LEAT_MUST_CHECK;
/* Reads up to `len` bytes at `offset`, fewer only at the end of the file. */
int leat__file_pread_some(const leat__file *f, void *buf, size_t len, uint64_t offset,
                          size_t *got, leat_error *err) LEAT_MUST_CHECK;
/* Reads what of it is in the page cache, without waiting for a disk; returns how many bytes from
 * `offset` on it got. 0 also where the file system or a simulated disk cannot tell. */
size_t leat__file_pread_cached(const leat__file *f, void *buf, size_t len, uint64_t offset);
int leat__file_pwrite(leat__file *f, const void *buf, size_t len, uint64_t offset,
                      leat_error *err) LEAT_MUST_CHECK;
/* Asks for room ahead of writing, so that write-back finds its blocks at once; the file grows
 * to offset + len. A hint: where it fails the writes will tell. */
void leat__file_reserve(leat__file *f, uint64_t offset, uint64_t len);
int leat__file_truncate(leat__file *f, uint64_t bytes, leat_error *err) LEAT_MUST_CHECK;
/* Data (and size) on stable storage when it returns 0. */
int leat__file_sync(leat__file *f, leat_error *err) LEAT_MUST_CHECK;
/* Starts write-back of a range without waiting, so that sync later has little left to do. A
 * block that it ends inside of is left to whoever writes the rest of it. */
void leat__file_flush_hint(leat__file *f, uint64_t offset, uint64_t len);

/* Hints; never fail. len 0 = to the end. */
typedef enum leat__advice {
    LEAT__ADVICE_NORMAL,
    LEAT__ADVICE_SEQUENTIAL,
    LEAT__ADVICE_RANDOM,
    LEAT__ADVICE_WILLNEED, /* start reading into the page cache */
    LEAT__ADVICE_DONTNEED  /* drop clean pages from the page cache */
} leat__advice;
void leat__file_advise(const leat__file *f, uint64_t offset, uint64_t len,
                       leat__advice advice);

/* By name. rename replaces `to` atomically and makes the change durable (the folder is
 * synced). unlink of a missing file is no error. */
int leat__path_rename(const char *from, const char *to, leat_error *err) LEAT_MUST_CHECK;
/* A second name of a file; one that leads to it already stays. LEAT_ENOTSUP where the file system has
 * none, or the file too many. */
int leat__path_link(const char *from, const char *to, leat_error *err) LEAT_MUST_CHECK;
int leat__path_unlink(const char *path, leat_error *err) LEAT_MUST_CHECK;
int leat__path_rmdir(const char *path, leat_error *err) LEAT_MUST_CHECK; /* an empty folder */
int leat__path_exists(const char *path, bool *exists, leat_error *err) LEAT_MUST_CHECK;
int leat__path_regular(const char *path, bool *regular, leat_error *err) LEAT_MUST_CHECK;
int leat__path_mkdir(const char *path, leat_error *err) LEAT_MUST_CHECK; /* with parents */
/* Where a path leads when it is a symbolic link, also a dangling one: a new string (leat__free).
 * A path that is no link comes back as it is. */
int leat__path_resolve(const char *path, char **target, leat_error *err) LEAT_MUST_CHECK;

/* The whole file into a new block (free with leat__free), followed by `padding` zero bytes;
 * LEAT_ELIMIT when it has more than `max` bytes. */
int leat__file_load(const char *path, size_t max, size_t padding, char **data, size_t *len,
                    leat_error *err) LEAT_MUST_CHECK;
#define LEAT__PACK_MAGIC "\x89LEAT\r\n\x1a" /* the first bytes of a pack */
#define LEAT__PARTIAL_MAGIC "LEATPART"        /* the first bytes of an unfinished one */
/* LEAT_EINVAL where a pack is at `path`: what is written about a run never takes its place. */
int leat__file_spare_pack(const char *path, leat_error *err) LEAT_MUST_CHECK;
/* LEAT_EINVAL where the file at `path`, which exists, is neither a pack, nor an unfinished one, nor empty:
 * a new pack replaces nothing else. */
int leat__file_only_pack(const char *path, leat_error *err) LEAT_MUST_CHECK;
/* Writes a whole output file. A regular file is replaced atomically (written beside its name,
 * synced, renamed); a symbolic link keeps pointing and its target is replaced. Character devices,
 * FIFOs and descriptors (/dev/stdout, /proc/self/fd/1) are written to, never replaced. LEAT_EINVAL
 * for anything else that exists: packs, folders, sockets, block devices. */
int leat__file_store(const char *path, const void *data, size_t len,
                     leat_error *err) LEAT_MUST_CHECK;
/* Adds to the end of the file, making it when it is not there. One writer at a time. */
int leat__file_append(const char *path, const void *data, size_t len,
                      leat_error *err) LEAT_MUST_CHECK;

#endif
