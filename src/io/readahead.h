/* SPDX-License-Identifier: Apache-2.0
 *
 * Readahead for known future reads: the caller announces the ranges it will read, in order, and reports when
 * it has read them. A thread asks the kernel to read the next `window` bytes into the page cache. The
 * kernel's own readahead can only guess, but a loader knows which reads come next. One thread pushes and
 * consumes. A separate thread gives the advice, because fadvise may block while the device queue is full.
 */
#ifndef LEAT_IO_READAHEAD_H
#define LEAT_IO_READAHEAD_H

#include "io/file.h"

typedef struct leat__readahead leat__readahead;

/* window: bytes advised ahead of what was consumed (0 = 64 MiB); capacity: ranges that may
 * be pushed and not yet consumed (0 = 4096). */
int leat__readahead_open(leat__readahead **r, uint64_t window, size_t capacity,
                         leat_error *err) LEAT_MUST_CHECK;
void leat__readahead_close(leat__readahead **r);

/* Announces a range. The file must stay open until the range is consumed or the object closed. LEAT_EAGAIN:
 * `capacity` ranges are waiting; consume first. */
int leat__readahead_push(leat__readahead *r, const leat__file *file, uint64_t offset,
                         uint64_t len) LEAT_MUST_CHECK;
void leat__readahead_consume(leat__readahead *r, size_t ranges); /* the oldest ones */

typedef struct leat__readahead_stats {
    uint64_t pushed, advised, consumed; /* ranges */
    uint64_t ahead_bytes;               /* advised and not consumed */
    uint64_t late;                      /* consumed before they were advised */
} leat__readahead_stats;
void leat__readahead_read(leat__readahead *r, leat__readahead_stats *stats);

#endif
