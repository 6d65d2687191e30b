/* SPDX-License-Identifier: Apache-2.0
 *
 * JSONL files as chunks of whole lines. Inputs are files, folders and patterns; files are read in
 * sequence, decompressed when they are gzip or zstd. The same files always give the same chunks.
 * One thread reads; a chunk then belongs to its holder.
 */
#ifndef LEAT_CURATE_TEXT_FILES_H
#define LEAT_CURATE_TEXT_FILES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "ingest/stream.h"
#include "text/jsonl.h"

#define LEAT__CHUNK_BYTES (1u << 20)
/* Bounds what a stage writes for a chunk of very short lines. */
#define LEAT__CHUNK_LINES 2048
#define LEAT__CHUNK_OUTS 4
#define LEAT__CHUNK_COUNTS 12

/* Lines of one file. */
typedef struct leat__text_chunk {
    uint32_t file;
    uint64_t line;     /* number of the first line, from 1 */
    uint64_t offset;   /* of the first byte, decompressed */
    uint64_t document; /* lines before it in all files */
    uint64_t lines;
    uint64_t longest;              /* bytes of the longest line that is not over the limit */
    size_t end[LEAT__CHUNK_LINES]; /* of each line, without its newline */
    uint8_t *data;                 /* whole lines, LEAT__TEXT_PAD zeros after them */
    size_t len, capacity;
    uint64_t too_long; /* bytes of a line that was skipped; 0 = none */
    bool no_room;      /* … not because it is over the limit, but over `room_line` */
    bool partial;      /* the line needs more than `pause`: reading again continues it */
    bool may_cut;      /* reading that begins after it gives the same chunks */
    bool may_stop;     /* the same; also true at the end of a file */
    bool changed;      /* set by a stage: the chunk has lines that an earlier pass did not see */
    uint64_t sum;      /* checksum, if the files have some */
    /* Results of a stage, used by the consumer. */
    leat__buf out[LEAT__CHUNK_OUTS];
    uint64_t count[LEAT__CHUNK_COUNTS];
    void *extra; /* of leat__alloc */
} leat__text_chunk;

leat__text_chunk *leat__text_chunk_new(void); /* NULL when out of memory */
void leat__text_chunk_free(leat__text_chunk *c);
/* Empties it for other lines; keeps its memory. */
void leat__text_chunk_clear(leat__text_chunk *c);
uint64_t leat__text_chunk_held(const leat__text_chunk *c);

/* One line of a chunk. */
typedef struct leat__line {
    const uint8_t *text; /* without the newline */
    size_t len;
    uint64_t number;   /* in its file, from 1 */
    uint64_t offset;   /* in its file */
    uint64_t document; /* in all files, from 0; blank lines count too */
} leat__line;

/* Iterates over the lines: *at is 0 before the first; *line is that of the call before. False after the last.
 * Skips blank lines and a byte order mark at the begin of a file. */
bool leat__text_chunk_next(const leat__text_chunk *c, size_t *at, leat__line *line);

/* Numbers of lines that are not known: a part of a file may begin at any line, uncounted. */
typedef struct leat__line_numbers {
    uint32_t unknown;   /* the lines of the first file that is read, 0 or 1 */
    atomic_bool wanted; /* one was needed: the results of the pass have wrong numbers */
} leat__line_numbers;

typedef struct leat__text_files {
    char **path;
    uint32_t count, capacity;
    uint64_t *size; /* bytes on disk */
    uint64_t total; /* of all */
    char *ignored;  /* first file beside kept-* that was left out of an output folder; NULL = none */
    /* Reading. */
    uint32_t next;
    leat__stream *stream;
    leat__buf rest; /* what was read after the last line of the last chunk */
    uint64_t line, offset, document;
    bool at_end;         /* of this file */
    uint32_t end_file;   /* reading ends at this file, `count` = after the last */
    uint64_t end_offset; /* … at this offset in it, which is the start of a line; 0 = before it */
    leat__line_numbers numbers;
    uint64_t max_line;
    uint64_t room_line;  /* longest line that fits the memory, 0 = any; never changes chunks that fit */
    uint64_t pause;      /* a chunk that would be larger stays partial, 0 = none */
    uint64_t bytes_read; /* of files that are read to their end */
    /* Checksums of each file, to compare passes; NULL = none. They have 63 bits, as JSON has signed numbers.
     */
    uint64_t *sum;   /* of what was taken in this pass */
    uint64_t *first; /* of the first pass */
    uint64_t
        *stamp; /* of inode, size and times before the first pass; 0 = changed too recently to be trusted */
    bool *trusted;     /* in this pass: the stamp is the same, no checksum is needed */
    bool again;        /* a later pass, which must read the same */
    uint32_t compared; /* files of it */
} leat__text_files;

/* Finds the files of the inputs, in the given order; those of a folder (recursively) and of a
 * pattern sorted by name. Of a folder with the output of a run only kept-* is taken. LEAT_ENOENT
 * when an input does not exist or has no files. */
int leat__text_files_open(leat__text_files *f, const char *const *inputs, uint32_t count, uint64_t max_line,
                          leat_error *err) LEAT_MUST_CHECK;
/* LEAT_EINVAL when a run with this output folder and these reports (with commas between; both may be
 * NULL) would replace one of the files. */
int leat__text_files_check(const leat__text_files *f, const char *output, const char *reports,
                           leat_error *err) LEAT_MUST_CHECK;
/* LEAT_EINVAL when the output folder is one of these inputs, or the folder of an index (may be NULL). */
int leat__text_output_check(const char *output, const char *const *inputs, uint32_t count, const char *index,
                            leat_error *err) LEAT_MUST_CHECK;
void leat__text_files_reset(leat__text_files *f);
/* Warns about files that were left out. */
void leat__text_files_warn(const leat__text_files *f, const leat_log *log);
/* Starts again at the first file. */
void leat__text_files_rewind(leat__text_files *f);
/* Seeks to the start of a line: offset in the decompressed file, numbers of that line in the file
 * and in all files. */
int leat__text_files_seek(leat__text_files *f, uint32_t file, uint64_t offset, uint64_t line,
                          uint64_t document, leat_error *err) LEAT_MUST_CHECK;
/* Notes that the number of a line of this file is needed; any thread. */
void leat__line_numbers_want(leat__line_numbers *n, uint32_t file);
/* LEAT_ECANCELED when a number was needed that is not known. */
int leat__line_numbers_check(leat__line_numbers *n, leat_error *err) LEAT_MUST_CHECK;
/* Fills an empty chunk, or continues a partial one; *end when there is none left. */
int leat__text_files_read(leat__text_files *f, leat__text_chunk *c, bool *end,
                          leat_error *err) LEAT_MUST_CHECK;

/* Begins a pass of several. Those after the first, `again`, must read the same: LEAT_EDATA names a file
 * that has changed. Chunks are taken in order; `end` follows the last. */
int leat__text_files_begin(leat__text_files *f, bool again, leat_error *err) LEAT_MUST_CHECK;
int leat__text_files_take(leat__text_files *f, const leat__text_chunk *c, leat_error *err) LEAT_MUST_CHECK;
int leat__text_files_end(leat__text_files *f, leat_error *err) LEAT_MUST_CHECK;
/* Identifies the content of a file by its inode, size and time of modification; of a remote one by its size.
 * Other names or permissions of a file do not change it. */
uint64_t leat__text_files_stamp(const leat__text_files *f, uint32_t file);
/* LEAT_EDATA: the file has changed. */
int leat__text_files_changed(const leat__text_files *f, uint32_t file, leat_error *err) LEAT_MUST_CHECK;
/* Computes the checksum of a chunk, if the pass needs it; any thread. */
void leat__text_chunk_sum(const leat__text_files *f, leat__text_chunk *c);

/* The start of a line of a file. */
typedef struct leat__text_cut {
    uint64_t offset, line; /* of the line, from 1; 0 = not counted */
} leat__text_cut;

/* Finds starts of lines in the first file that are at least `step` bytes apart. With `chunks`, all of
 * the file is read: lines are counted, and reading that begins there gives the same chunks as reading
 * that continues there. A compressed file has no such positions. *cuts is a new array (leat__free). */
int leat__text_files_cut(leat__text_files *f, uint64_t step, bool chunks, leat__text_cut **cuts,
                         size_t *count, leat_error *err) LEAT_MUST_CHECK;
/* Counts the newlines in [from, to) of a file that is not compressed. */
int leat__text_count_lines(const char *path, uint64_t from, uint64_t to, uint64_t *count,
                           leat_error *err) LEAT_MUST_CHECK;

#endif
