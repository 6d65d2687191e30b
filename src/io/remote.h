/* SPDX-License-Identifier: Apache-2.0
 *
 * A file in a bucket or on a web server, read by ranges. Opening takes one request, which also fetches the
 * end of the file. Every range request sends If-Match with the ETag seen at open, and ETag, Content-Range and
 * length of the answer are checked. So a file that is replaced or removed during reading is an error
 * (LEAT_ECHANGED), never a mixture of old and new bytes. Broken transfers resume at the byte they reached.
 *
 * Ranges are joined: neighbours that wait for a connection become one request of up to 8 MiB, 16 MiB when
 * many wait, less on a slow link. Sequential blocking reads (pread) are prefetched in blocks. Any number of
 * threads may read. A forked child may use pread with its copy, not ranges (LEAT_EFORK).
 */
#ifndef LEAT_IO_REMOTE_H
#define LEAT_IO_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/thread.h"

typedef struct leat__remote leat__remote; /* also in io/file.h */

int leat__remote_open(leat__remote **f, const char *path, leat_error *err) LEAT_MUST_CHECK;
/* No range may be in flight. */
void leat__remote_close(leat__remote **f);

const char *leat__remote_path(const leat__remote *f); /* for messages: without secrets */
uint64_t leat__remote_size(const leat__remote *f);

/* Reads up to `len` bytes, fewer only at the end of the file. */
int leat__remote_pread(leat__remote *f, void *buf, size_t len, uint64_t offset, size_t *got,
                       leat_error *err) LEAT_MUST_CHECK;
/* Frees the end of the file that open fetched, and the prefetched blocks. */
void leat__remote_settle(leat__remote *f);

/* True when storage failed after all retries, or refuses all access: not the fault of one sample. */
static inline bool leat__remote_failed(int rc)
{
    return rc == LEAT_EIO || rc == LEAT_EPERM || rc == LEAT_ETIMEDOUT;
}

/* One range, read asynchronously; it must be inside the file and stay in place until `done`. `done` runs on
 * the HTTP loop's thread and must not block. */
typedef struct leat__range leat__range;
struct leat__range {
    uint64_t offset;
    void *buf;
    size_t len;
    const void *owner; /* ranges of one owner can be canceled together */
    void (*done)(leat__range *r, int rc, const leat_error *err);
    void *cookie;
    /* private */
    size_t got;
    leat__range *next;
};
void leat__remote_read(leat__remote *f, leat__range *r);
void leat__remote_cancel(leat__remote *f, const void *owner);
bool leat__remote_wait(leat__remote *f, const void *owner, leat__cond *ended, leat__mutex *lock,
                       bool asked); /* as leat__http_wait */

#endif
