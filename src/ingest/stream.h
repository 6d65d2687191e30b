/* SPDX-License-Identifier: Apache-2.0
 *
 * A file read sequentially and decompressed if it is gzip or zstd (detected by its first bytes,
 * not by its name). Offsets count decompressed bytes. One thread.
 */
#ifndef LEAT_INGEST_STREAM_H
#define LEAT_INGEST_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct leat__stream leat__stream;

int leat__stream_open(leat__stream **s, const char *path, leat_error *err) LEAT_MUST_CHECK;
/* Reads from memory that must outlive the stream; `name` replaces the path in messages. */
int leat__stream_open_memory(leat__stream **s, const char *name, const void *data, size_t len,
                             leat_error *err) LEAT_MUST_CHECK;
void leat__stream_close(leat__stream **s);

/* Reads up to `len` bytes; fewer only at the end. LEAT_EDATA when the compressed data is damaged or
 * truncated; LEAT_EIO and similar codes from the system. */
int leat__stream_read(leat__stream *s, void *buf, size_t len, size_t *got, leat_error *err) LEAT_MUST_CHECK;
/* Skips `len` bytes (cheap if uncompressed); *got as in read. */
int leat__stream_skip(leat__stream *s, uint64_t len, uint64_t *got, leat_error *err) LEAT_MUST_CHECK;

uint64_t leat__stream_offset(const leat__stream *s);
/* Returns the size of the file, as it was opened. */
uint64_t leat__stream_size(const leat__stream *s);
/* Returns the bytes of the file that were decompressed so far. */
uint64_t leat__stream_taken(const leat__stream *s);
const char *leat__stream_name(const leat__stream *s);
bool leat__stream_compressed(const leat__stream *s);

#endif
