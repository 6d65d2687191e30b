/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes in flight: whole blocks at positions of files, written by a few threads while the owner
 * fills the next block. Write-back starts at once, so that a final sync has little to wait for.
 * Blocks are swapped, not copied: the owner passes a full block and gets one that has been
 * written. One thread puts and drains.
 *
 * A failed write is reported by the next put or drain and by all later ones: the content of the
 * file is then unknown.
 */
#ifndef LEAT_IO_WRITE_BEHIND_H
#define LEAT_IO_WRITE_BEHIND_H

#include "io/file.h"

typedef struct leat__write_behind leat__write_behind;

/* A block from leat__alloc or leat__alloc_aligned; data NULL = none. */
typedef struct leat__write_block {
    uint8_t *data;
    uint64_t capacity;
} leat__write_block;

/* Blocks of more than `keep` bytes are freed after writing; smaller ones are reused. */
int leat__write_behind_open(leat__write_behind **w, uint64_t keep, leat_error *err) LEAT_MUST_CHECK;
/* Waits for writes in flight; frees the blocks. The files must still be open. */
void leat__write_behind_close(leat__write_behind **w);

/* Writes the first `len` bytes of *block at `offset` of `f`. *block becomes another block, of any
 * size or none. Waits while all blocks are in flight. On failure *block is unchanged. */
int leat__write_behind_put(leat__write_behind *w, leat__file *f, uint64_t offset, size_t len,
                           leat__write_block *block, leat_error *err) LEAT_MUST_CHECK;
/* Waits until all blocks put so far are written (not synced), and returns 0 or the first error. */
int leat__write_behind_drain(leat__write_behind *w, leat_error *err) LEAT_MUST_CHECK;

#endif
