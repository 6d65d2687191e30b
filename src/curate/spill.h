/* SPDX-License-Identifier: Apache-2.0
 *
 * Many append-only files written at once through small buffers: the data of a run that does not
 * fit memory. A file is open only while its buffer is written, so that there may be any number of
 * files. Lengths can be recorded and restored, for resuming. One thread.
 */
#ifndef LEAT_CURATE_SPILL_H
#define LEAT_CURATE_SPILL_H

#include "base/error.h"
#include "io/file.h"

typedef struct leat__spill {
    char *base; /* files are BASE-0, BASE-1, … */
    uint32_t count;
    size_t buffer_bytes;
    uint8_t *buffer; /* count * buffer_bytes */
    uint32_t *used;
    uint64_t *length; /* written, without the buffer */
} leat__spill;

/* `lengths` (may be NULL): the recorded lengths of existing files, which are truncated to them.
 * NULL empties files of an earlier run. */
int leat__spill_open(leat__spill *s, const char *folder, const char *name, uint32_t count,
                     size_t buffer_bytes, const uint64_t *lengths, leat_error *err) LEAT_MUST_CHECK;
void leat__spill_reset(leat__spill *s); /* frees; the files stay */
int leat__spill_put(leat__spill *s, uint32_t file, const void *data, size_t len,
                    leat_error *err) LEAT_MUST_CHECK;
/* Writes all buffers; with `sync` the data is on stable storage. */
int leat__spill_flush(leat__spill *s, bool sync, leat_error *err) LEAT_MUST_CHECK;
/* Opens a file for reading. Call leat__spill_flush first. */
int leat__spill_file(const leat__spill *s, uint32_t file, leat__file **f, leat_error *err) LEAT_MUST_CHECK;
int leat__spill_remove(leat__spill *s, leat_error *err) LEAT_MUST_CHECK; /* the files */
/* Removes what a killed run left: files NAME-0 to NAME-(most - 1) of the folder. */
void leat__spill_clear(const char *folder, const char *name, uint32_t most);
uint64_t leat__spill_bytes(const leat__spill *s);

#endif
