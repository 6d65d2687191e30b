/* SPDX-License-Identifier: Apache-2.0
 *
 * Many append-only files written at once through small buffers: the data of a run that does not
 * fit memory. A file is open only while its buffer is written, so that there may be any number of
 * files. Lengths and checksums can be recorded, for resuming. One thread.
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
    uint64_t *base;   /* offset in the file of the first byte of the buffer: whole blocks */
    uint64_t *length; /* written; the buffer may have the last part of it */
    uint64_t *sum;    /* of the blocks before the buffer */
} leat__spill;

#define LEAT__SPILL_BLOCK 512u /* bytes of a block; a buffer to write to has at least one */

/* `lengths` and `sums` (may be NULL): those recorded of existing files, which are truncated to them.
 * NULL empties files of an earlier run. */
int leat__spill_open(leat__spill *s, const char *folder, const char *name, uint32_t count,
                     size_t buffer_bytes, const uint64_t *lengths, const uint64_t *sums,
                     leat_error *err) LEAT_MUST_CHECK;
void leat__spill_reset(leat__spill *s); /* frees; the files stay */
int leat__spill_put(leat__spill *s, uint32_t file, const void *data, size_t len,
                    leat_error *err) LEAT_MUST_CHECK;
/* The checksum of a file, after leat__spill_flush. It has 63 bits. */
uint64_t leat__spill_sum(const leat__spill *s, uint32_t file);
/* That of `len` bytes at `offset` of a file, a multiple of the block; sums of a file's parts are added. */
uint64_t leat__spill_sum_of(const void *data, size_t len, uint64_t offset);
/* LEAT_EDATA when the first `len` bytes of the file do not have this checksum. */
int leat__spill_verify(const char *path, uint64_t len, uint64_t sum, leat_error *err) LEAT_MUST_CHECK;
/* Writes all buffers; with `sync` the data is on stable storage. */
int leat__spill_flush(leat__spill *s, bool sync, leat_error *err) LEAT_MUST_CHECK;
/* Opens a file for reading. Call leat__spill_flush first. */
int leat__spill_file(const leat__spill *s, uint32_t file, leat__file **f, leat_error *err) LEAT_MUST_CHECK;
int leat__spill_remove(leat__spill *s, leat_error *err) LEAT_MUST_CHECK; /* the files */
/* Removes what a killed run left: files NAME-0 to NAME-(most - 1) of the folder. */
void leat__spill_clear(const char *folder, const char *name, uint32_t most);
uint64_t leat__spill_bytes(const leat__spill *s);

#endif
