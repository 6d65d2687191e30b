/* SPDX-License-Identifier: Apache-2.0
 *
 * Output files of bounded size: NAME-00000.jsonl and so on. Everything is written under temporary
 * names and renamed by commit, so that a failed or killed run leaves no output that looks
 * complete. One thread.
 */
#ifndef LEAT_CURATE_SHARDS_H
#define LEAT_CURATE_SHARDS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "io/file.h"

typedef enum leat__compress { LEAT__COMPRESS_NONE, LEAT__COMPRESS_GZIP, LEAT__COMPRESS_ZSTD } leat__compress;

/* A position in the shards of an output. */
typedef struct leat__place {
    uint64_t shard, offset;
} leat__place;

/* Bytes of a placed part that share a block with another part: `len` bytes of `edge_data`, for offset
 * `at` in a shard. */
typedef struct leat__shard_edge {
    uint64_t shard, at, len;
} leat__shard_edge;

typedef struct leat__shards {
    leat__buf path; /* path of the current or last file */
    char *folder, *name;
    leat__compress compress;
    bool single; /* one file, NAME.jsonl */
    uint64_t shard_bytes;
    leat__file *file;
    uint64_t offset; /* offset in the open file */
    uint32_t count;  /* files started */
    uint64_t bytes;  /* written to all files */
    bool committed;
    const char *token; /* for a part: its single file has this token in its temporary name */
    leat__buf frames;  /* for a part: length of each compressed piece (8 bytes) */
    bool placed;       /* a part of known length, in files that other parts also write */
    leat__place begin, end;
    leat__buf edges, edge_data; /* for a placed part: leat__shard_edge entries, and their bytes */
} leat__shards;

/* Opens the output. shard_bytes 0: one file, NAME.jsonl. */
int leat__shards_open(leat__shards *s, const char *folder, const char *name, uint64_t shard_bytes,
                      leat__compress compress, leat_error *err) LEAT_MUST_CHECK;
/* Opens the output of a part of a run: one file, FOLDER/NAME. Its temporary name has the token (which
 * must outlive it), so that a task presumed dead cannot disturb the one that replaced it. */
int leat__shards_open_part(leat__shards *s, const char *folder, const char *name, const char *token,
                           leat__compress compress, leat_error *err) LEAT_MUST_CHECK;
/* Opens the output of a part whose place is known: it writes to FOLDER/NAME-00000.jsonl and so on, at
 * its place. Repeating it writes the same bytes. Blocks of LEAT__PLACE_BLOCK shared with other parts
 * are not written but returned in `edges`: network file systems lose bytes when two machines write
 * one page. */
#define LEAT__PLACE_BLOCK (64u << 10)
int leat__shards_open_placed(leat__shards *s, const char *folder, const char *name, uint64_t shard_bytes,
                             leat__place begin, leat__place end, leat_error *err) LEAT_MUST_CHECK;
/* Appends whole lines, already compressed if requested. A file ends before the line that would
 * exceed shard_bytes; compressed data is not split. */
int leat__shards_put(leat__shards *s, const void *data, size_t len, leat_error *err) LEAT_MUST_CHECK;
/* Renames the files, and removes files of an earlier run with higher numbers or another compression.
 * An empty output is one empty file. */
int leat__shards_commit(leat__shards *s, leat_error *err) LEAT_MUST_CHECK;
/* Returns the number of files with lines. */
uint32_t leat__shards_filled(const leat__shards *s);
/* Removes the numbered files from `count` on, those with another compression, and temporary ones. */
int leat__shards_trim(const char *folder, const char *name, leat__compress compress, uint32_t count,
                      leat_error *err) LEAT_MUST_CHECK;
/* Fails with LEAT_ELIMIT when a shard of this number would have a name of more than five digits. */
int leat__shards_check(const char *folder, uint64_t number, leat_error *err) LEAT_MUST_CHECK;
/* Removes the files unless they were committed. */
void leat__shards_reset(leat__shards *s);

/* Returns "", ".gz" or ".zst". */
const char *leat__compress_extension(leat__compress how);
/* Compresses the content of a buffer in place: one gzip member or zstd frame. */
int leat__compress_buf(leat__buf *b, leat__compress how, leat_error *err) LEAT_MUST_CHECK;

#endif
