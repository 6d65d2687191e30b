/* SPDX-License-Identifier: Apache-2.0
 *
 * Many append-only files written at once through small buffers: the data of a run that does not fit in
 * memory. A file is open only while its buffer is written, so any number of files is possible. Lengths
 * and checksums can be recorded for resuming. One thread.
 */
#ifndef LEAT_CURATE_SPILL_H
#define LEAT_CURATE_SPILL_H

#include "base/error.h"
#include "io/file.h"

typedef struct leat__spill {
    char *name; /* files are NAME-0, NAME-1, … */
    uint32_t count;
    size_t buffer_bytes;
    uint8_t *buffer; /* count * buffer_bytes */
    uint32_t *used;
    uint64_t *base;   /* file offset of the first byte of the buffer, a multiple of the block */
    uint64_t *length; /* bytes written; the last of them may still be in the buffer */
    uint64_t *sum;    /* checksum of the blocks before the buffer */
} leat__spill;

#define LEAT__SPILL_BLOCK 512u /* bytes; a buffer for writing has at least one block */

/* Opens the files. `lengths` and `sums` (may be NULL) are those recorded for existing files, which
 * are truncated to them. NULL empties existing files. */
int leat__spill_open(leat__spill *s, const char *folder, const char *name, uint32_t count,
                     size_t buffer_bytes, const uint64_t *lengths, const uint64_t *sums,
                     leat_error *err) LEAT_MUST_CHECK;
void leat__spill_reset(leat__spill *s); /* frees memory; the files stay */
int leat__spill_put(leat__spill *s, uint32_t file, const void *data, size_t len,
                    leat_error *err) LEAT_MUST_CHECK;
/* Returns the checksum of a file, which has 63 bits. Call leat__spill_flush first. */
uint64_t leat__spill_sum(const leat__spill *s, uint32_t file);
/* Returns the checksum of `len` bytes at `offset`, a multiple of the block. The checksum of a file is
 * the sum over its parts. */
uint64_t leat__spill_sum_of(const void *data, size_t len, uint64_t offset);
/* Fails with LEAT_EDATA when the first `len` bytes of the file do not have this checksum. */
int leat__spill_verify(const char *path, uint64_t len, uint64_t sum, leat_error *err) LEAT_MUST_CHECK;
/* Writes all buffers; with `sync` also to stable storage. */
int leat__spill_flush(leat__spill *s, bool sync, leat_error *err) LEAT_MUST_CHECK;
/* Opens a file for reading. Call leat__spill_flush first. */
int leat__spill_file(const leat__spill *s, uint32_t file, leat__file **f, leat_error *err) LEAT_MUST_CHECK;
int leat__spill_remove(leat__spill *s, leat_error *err) LEAT_MUST_CHECK; /* removes the files */
/* Removes files that a killed run left in the folder: NAME-0 to NAME-(most - 1). */
void leat__spill_clear(const char *folder, const char *name, uint32_t most);
uint64_t leat__spill_bytes(const leat__spill *s);

#endif
