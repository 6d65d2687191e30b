/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes in flight: whole blocks at positions of files, written by a few threads of the
 * writer while its owner makes the next block. Write-back begins at once, so that a sync at
 * the end has little left to wait for. Blocks change hands instead of being copied: the owner
 * gives a full one and gets one that is written. One thread puts and drains.
 *
 * A write that fails is told by the next put or drain, and by all that follow: what is in the
 * file is then not known.
 */
#ifndef LEAT_IO_WRITE_BEHIND_H
#define LEAT_IO_WRITE_BEHIND_H

#include "io/file.h"

typedef struct leat__writer leat__writer;

/* Memory of leat__alloc or leat__alloc_aligned, or none. */
typedef struct leat__block {
    uint8_t *data;
    uint64_t capacity;
} leat__block;

/* Blocks of more than `keep` bytes are freed when they are written, others used again. */
int leat__writer_open(leat__writer **w, uint64_t keep, leat_error *err) LEAT_MUST_CHECK;
/* Waits for what is in flight; frees the blocks. The files must still be open. */
void leat__writer_close(leat__writer **w);

/* Writes the first `len` bytes of *block at `offset` of `f`. *block becomes another one, of
 * any size, also none. Waits while all blocks are in flight. On failure *block stays. */
int leat__writer_put(leat__writer *w, leat__file *f, uint64_t offset, size_t len,
                     leat__block *block, leat_error *err) LEAT_MUST_CHECK;
/* All that was put is written (not synced) when it returns 0. */
int leat__writer_drain(leat__writer *w, leat_error *err) LEAT_MUST_CHECK;

#endif
