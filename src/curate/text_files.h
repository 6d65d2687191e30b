/* SPDX-License-Identifier: Apache-2.0
 *
 * JSONL files as chunks of whole lines. Inputs are files, folders and patterns. Files are read in
 * sequence and decompressed if they are gzip or zstd. The same files always give the same chunks. One
 * thread reads; a chunk then belongs to its holder.
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
/* Limits the results of a stage for a chunk of very short lines. */
#define LEAT__CHUNK_LINES 2048
#define LEAT__CHUNK_OUTS 4
#define LEAT__CHUNK_COUNTS 12

/* Lines of one file. */
typedef struct leat__text_chunk {
    uint32_t file;
    uint64_t line;     /* number of the first line, from 1 */
    uint64_t offset;   /* offset of the first byte in the decompressed file */
    uint64_t document; /* number of lines before it in all files */
    uint64_t lines;
    uint64_t longest;              /* bytes of the longest line within the limit */
    size_t end[LEAT__CHUNK_LINES]; /* end of each line, without its newline */
    uint8_t *data;                 /* whole lines, followed by LEAT__TEXT_PAD zeros */
    size_t len, capacity;
    uint64_t too_long;      /* bytes of a skipped line; 0 = none */
    uint64_t skipped_bytes; /* the same without its newline */
    uint64_t skipped_words; /* about how many words the skipped line has */
    bool no_room;           /* skipped because of `room_line`, not of the limit */
    bool partial;           /* a line is longer than `pause`: the next read continues it */
    bool may_cut;           /* a reader that starts after it gets the same chunks */
    bool may_stop;          /* like may_cut; also true at the end of a file */
    bool changed;           /* set by a stage: an earlier pass did not see some of these lines */
    uint64_t sum;           /* checksum, if the files have checksums */
    /* Results of a stage, for the consumer. */
    leat__buf out[LEAT__CHUNK_OUTS];
    uint64_t count[LEAT__CHUNK_COUNTS];
    void *extra; /* freed with leat__free */
} leat__text_chunk;

leat__text_chunk *leat__text_chunk_new(void); /* returns NULL when out of memory */
void leat__text_chunk_free(leat__text_chunk *c);
/* Empties the chunk but keeps its memory. */
void leat__text_chunk_clear(leat__text_chunk *c);
uint64_t leat__text_chunk_held(const leat__text_chunk *c);

/* One line of a chunk. */
typedef struct leat__line {
    const uint8_t *text; /* without the newline */
    size_t len;
    uint64_t number;   /* line number in its file, from 1 */
    uint64_t offset;   /* offset in its file */
    uint64_t document; /* line number in all files, from 0; blank lines count too */
} leat__line;

/* Iterates over the lines. Start with *at = 0 and pass the same *line each time. Returns false after
 * the last. Skips blank lines and a byte order mark at the start of a file. */
bool leat__text_chunk_next(const leat__text_chunk *c, size_t *at, leat__line *line);

/* Unknown line numbers: a part of a file may begin at any line, without counting the lines before it. */
typedef struct leat__line_numbers {
    uint32_t unknown;   /* number of files (0 or 1, the first) with unknown line numbers */
    atomic_bool wanted; /* a number was needed: the results of the pass have wrong numbers */
} leat__line_numbers;

typedef struct leat__text_files {
    char **path;
    uint32_t count, capacity;
    uint64_t *size;    /* bytes on disk; a file that has another size when it is read has changed */
    uint64_t total;    /* bytes of all files */
    char *finished;    /* last output folder that was found to be complete; NULL = none */
    char *ignored;     /* first file left out of an output folder because it is not kept-*; NULL = none */
    char *skipped;     /* first folder left out because it has the output of a run; NULL = none */
    uint32_t skips;    /* number of such folders */
    bool only_outputs; /* the folder that is searched has no files but outputs of runs: they are read */
    /* State of reading. */
    uint32_t next;
    leat__stream *stream;
    leat__buf rest; /* data read after the last line of the last chunk */
    uint64_t line, offset, document;
    bool at_end;         /* at the end of this file */
    uint32_t end_file;   /* reading ends in this file; `count` = after the last */
    uint64_t end_offset; /* reading ends at this offset in it, the start of a line; 0 = before the file */
    leat__line_numbers numbers;
    uint64_t max_line;
    uint64_t room_line;  /* longest line that fits the memory, 0 = any; does not change chunks that fit */
    uint64_t pause;      /* a chunk that would be larger stays partial; 0 = no limit */
    uint64_t bytes_read; /* size of the files read to their end */
    /* Checksums of each file, to compare passes; NULL = none. They have 63 bits, as JSON numbers are
     * signed. */
    uint64_t *sum;     /* checksum of the data taken in this pass */
    uint64_t *first;   /* checksum of the data of the first pass */
    uint64_t *found;   /* leat__text_files_stamp of each file before the first pass */
    uint64_t *stamp;   /* from inode, size and times before the first pass; 0 = changed too recently */
    bool *trusted;     /* in this pass: the stamp is unchanged, no checksum is needed */
    bool again;        /* a later pass, which must read the same data */
    uint32_t compared; /* number of files compared in this pass */
} leat__text_files;

/* Finds the files of the inputs, in the given order. Files of a folder (recursively) and of a pattern
 * are sorted by name. From an output folder of a run, only kept-* is taken. Below a folder that has other
 * files, output folders are left out: their documents may be those of the other files. LEAT_ENOENT when an
 * input does not exist or has no files, LEAT_EDATA when it is the incomplete output of a run. */
int leat__text_files_open(leat__text_files *f, const char *const *inputs, uint32_t count, uint64_t max_line,
                          leat_error *err) LEAT_MUST_CHECK;
/* Fails with LEAT_EINVAL when a run with this output folder and these reports (separated by commas;
 * both may be NULL) would replace one of the files. */
int leat__text_files_check(const leat__text_files *f, const char *output, const char *reports,
                           leat_error *err) LEAT_MUST_CHECK;
/* Fails with LEAT_EINVAL when the output folder is one of these inputs, or the folder of an index
 * (may be NULL). */
int leat__text_output_check(const char *output, const char *const *inputs, uint32_t count, const char *index,
                            leat_error *err) LEAT_MUST_CHECK;
void leat__text_files_reset(leat__text_files *f);
/* Warns about files and folders that were left out. */
void leat__text_files_warn(const leat__text_files *f, const leat_log *log);
/* Starts over at the first file. */
void leat__text_files_rewind(leat__text_files *f);
/* Seeks to the start of a line, given its offset in the decompressed file and its numbers in the file
 * and in all files. */
int leat__text_files_seek(leat__text_files *f, uint32_t file, uint64_t offset, uint64_t line,
                          uint64_t document, leat_error *err) LEAT_MUST_CHECK;
/* Records that a line number of this file is needed; any thread. */
void leat__line_numbers_want(leat__line_numbers *n, uint32_t file);
/* Fails with LEAT_ECANCELED when an unknown line number was needed. */
int leat__line_numbers_check(leat__line_numbers *n, leat_error *err) LEAT_MUST_CHECK;
/* Fills an empty chunk, or continues a partial one. Sets *end when no data is left. */
int leat__text_files_read(leat__text_files *f, leat__text_chunk *c, bool *end,
                          leat_error *err) LEAT_MUST_CHECK;

/* begin starts one of several passes. The first must find each file as it was at its begin, and passes
 * after it (`again`) must read the same data: LEAT_EDATA names a file that has changed. Pass the chunks to
 * take in order, then call end. */
int leat__text_files_begin(leat__text_files *f, bool again, leat_error *err) LEAT_MUST_CHECK;
int leat__text_files_take(leat__text_files *f, const leat__text_chunk *c, leat_error *err) LEAT_MUST_CHECK;
int leat__text_files_end(leat__text_files *f, leat_error *err) LEAT_MUST_CHECK;
/* Returns a stamp of a file's content, from its inode, size and modification time; for a remote file,
 * from its size. Renaming a file or changing its permissions does not change the stamp. */
uint64_t leat__text_files_stamp(const leat__text_files *f, uint32_t file);
/* Fails with LEAT_EDATA: the file has changed. */
int leat__text_files_changed(const leat__text_files *f, uint32_t file, leat_error *err) LEAT_MUST_CHECK;
/* Computes the checksum of a chunk if the pass needs it; any thread. */
void leat__text_chunk_sum(const leat__text_files *f, leat__text_chunk *c);

/* The start of a line in a file. */
typedef struct leat__text_cut {
    uint64_t offset, line; /* line: its number, from 1; 0 = not counted */
} leat__text_cut;

/* Finds starts of lines in the first file that are at least `step` bytes apart. With `chunks`, reads
 * the whole file: lines are counted, and a reader that starts at a cut gets the same chunks as one
 * that reads on there. A compressed file has no cuts. *cuts is a new array (leat__free). */
int leat__text_files_cut(leat__text_files *f, uint64_t step, bool chunks, leat__text_cut **cuts,
                         size_t *count, leat_error *err) LEAT_MUST_CHECK;
/* Counts the newlines in [from, to) of an uncompressed file. */
int leat__text_count_lines(const char *path, uint64_t from, uint64_t to, uint64_t *count,
                           leat_error *err) LEAT_MUST_CHECK;

#endif
