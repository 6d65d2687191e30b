/* SPDX-License-Identifier: Apache-2.0
 *
 * A run over text in parts. Tasks in other processes or on other machines, which share a work folder,
 * each do one part; python/leat/_ray.py sends them to the nodes of a cluster. Every task writes its
 * results under temporary names and renames them, its marker (a JSON file) last. A task whose marker
 * exists is done, so a task may be repeated at any time. The output has the same bytes as that of a
 * single process, however it is divided.
 *
 * Files of the work folder:
 *   part-00003.kept, .second, .bad   output of a part of the input; .json: its marker
 *   part-00003.edge                  first and last bytes of the part's kept documents, if it wrote the
 *                                    others directly to the output files
 *   out.kept-00000.jsonl             an output file, joined from these, or written by the parts
 *   stamps.json                      filter: stamps of the input files when the run began
 *   plan.json                        written at the start by the process that sends the tasks
 */
#ifndef LEAT_CURATE_PART_FILES_H
#define LEAT_CURATE_PART_FILES_H

#include <jansson.h>

#include "curate/shards.h"
#include "curate/text_files.h"
#include "curate/text_flow.h"

#define LEAT__WORK_NAME ".leat-work" /* the work folder in an output folder */
#define LEAT__PART_PLAN "plan.json"
#define LEAT__WORK_STATE "state.json" /* dedup on one machine: a run that can be resumed */
#define LEAT__WORK_BEGUN "begun"      /* dedup on one machine: the run has begun and is not complete */

typedef enum leat__part_step {
    LEAT__PART_BEGIN,   /* once: checks the options, lists the files */
    LEAT__PART_SKETCH,  /* dedup: digests, sketches and ids of a part of the input */
    LEAT__PART_GATHER,  /* dedup: joins side file `number` of all parts */
    LEAT__PART_GROUP,   /* dedup: edges from buckets of the units [from, to) */
    LEAT__PART_RESOLVE, /* dedup, once: decisions */
    LEAT__PART_WRITE,   /* the documents of a part of the input */
    LEAT__PART_JOIN,    /* once: lists the copies that make the output files */
    LEAT__PART_END      /* once: renames them, writes the report, removes the work folder */
} leat__part_step;

/* A range of text in consecutive files. */
typedef struct leat__text_range {
    uint32_t file, end_file;     /* from `offset` in `file` to `end_offset` in `end_file` */
    uint64_t offset, end_offset; /* see leat__text_files */
    uint64_t line;               /* number of the first line in its file, from 1; 0 = not counted */
} leat__text_range;

typedef struct leat__part {
    leat__part_step step;
    const char *work;     /* work folder */
    const char *token;    /* makes temporary names unique among all tasks ever started */
    const char *settings; /* dedup: from the answer of BEGIN */
    uint32_t number;      /* number of the part; GATHER: of the side file; GROUP: of the task */
    uint32_t parts;       /* number of parts; if there is an index to compare with, it is the first part */
    uint32_t groups;      /* number of GROUP tasks */
    uint32_t partitions;  /* partitions of the digests of each band */
    uint32_t from, to;    /* GROUP: range of units; a unit is a partition of a band */
    leat__text_range range;
    double seconds, cpu_seconds; /* END: of the whole run */
} leat__part;

/* Writes "WORK/KIND-00003EXT" to `out` (4096 bytes) and returns it. */
const char *leat__part_path(const leat__part *p, const char *kind, uint32_t number, const char *ext,
                            char *out);
/* Adds the checksum to a JSON object (sealed.h) and writes it to a file of the work folder, atomically. */
int leat__part_mark(const leat__part *p, const char *path, leat__buf *json, leat_error *err) LEAT_MUST_CHECK;
/* Restricts reading to the range. `document`: number of lines before it in all files. */
int leat__part_seek(const leat__text_range *r, leat__text_files *files, uint64_t document,
                    leat_error *err) LEAT_MUST_CHECK;
/* Returns rc. When a step needed the number of an uncounted line, returns 0 and answers
 * {"uncounted":true}: repeat the step with `range.line`. */
int leat__part_answer(leat__text_files *files, int rc, leat__buf *json);
/* Appends the files as JSON: [["path", bytes], …]. */
void leat__part_files(const leat__text_files *files, leat__json *j);
/* stamp stores the stamps of the files when a run begins; compare fails with LEAT_EDATA if one has
 * changed. */
int leat__part_stamp(const leat__part *p, const leat__text_files *files, leat_error *err) LEAT_MUST_CHECK;
int leat__part_compare(const leat__part *p, const leat__text_files *files, leat_error *err) LEAT_MUST_CHECK;

/* A range of a file that is copied into another one. */
typedef struct leat__part_piece {
    const char *path;
    uint64_t from, len;
    uint64_t add; /* added to each 8-byte number */
    uint64_t at;  /* offset in the output file, if others wrote the rest of it */
} leat__part_piece;
int leat__part_copy(const leat__part *p, const char *to, const leat__part_piece *pieces, size_t count,
                    leat_error *err) LEAT_MUST_CHECK;
/* Makes an output file, WORK/out.NAME, from files of the work folder. `patch`: the parts wrote it,
 * and the pieces are their edges. */
int leat__part_copy_output(const leat__part *p, const char *name, bool patch, const leat__part_piece *pieces,
                           size_t count, leat_error *err) LEAT_MUST_CHECK;

enum { LEAT__OUT_KEPT, LEAT__OUT_SECOND, LEAT__OUT_BAD, LEAT__OUTS };

/* The place of a part's kept documents in the output files. */
typedef struct leat__part_place {
    uint64_t shard_bytes;
    leat__place begin, end;
} leat__part_place;
/* Opens the outputs of a part. `place` is NULL if not known. */
int leat__part_open(const leat__part *p, leat__shards out[LEAT__OUTS], leat__compress compress,
                    const leat__part_place *place, leat_error *err) LEAT_MUST_CHECK;
/* Commits the outputs and writes the marker. `stats` is a JSON object. */
int leat__part_finish(const leat__part *p, leat__shards out[LEAT__OUTS], const char *stats,
                      leat_error *err) LEAT_MUST_CHECK;
int leat__part_done(const leat__part *p, const char *kind, bool *done, leat_error *err) LEAT_MUST_CHECK;

/* The outputs of all parts. */
typedef struct leat__join {
    const leat__part *part;
    const char *output;            /* output folder */
    const char *names[LEAT__OUTS]; /* names of the output files, NULL = none */
    uint64_t shard_bytes;
    leat__compress compress;
    uint32_t first;               /* first part with outputs */
    const uint64_t *shard_length; /* lengths of the `shards` files that the parts wrote; NULL = none */
    uint64_t shards, bytes;       /* totals of kept documents; set by leat__join_list and _end */
    leat__text_meter meter;       /* sum over all parts */
    uint64_t *length[LEAT__OUTS];
    leat__buf *frames, *edges;
} leat__join;

/* Reads the markers and calls `add` with the stats of each part. */
int leat__join_open(leat__join *j, void (*add)(void *cookie, const json_t *stats), void *cookie,
                    leat_error *err) LEAT_MUST_CHECK;
void leat__join_close(leat__join *j);
/* Appends
 * {"copies":[{"to":"kept-00000.jsonl","patch":false,"pieces":[["part-00000.kept",0,17,0],…]},…]}. A
 * piece has a name, offset and length there, and the offset in a patched file. */
int leat__join_list(leat__join *j, leat__buf *json, leat_error *err) LEAT_MUST_CHECK;
/* Renames the copies and removes files of an earlier run. */
int leat__join_end(leat__join *j, leat_error *err) LEAT_MUST_CHECK;
/* Adds the load that a task reported, in JSON, to a meter. */
void leat__part_load(const json_t *stats, leat__text_meter *meter);

/* Fails with LEAT_EEXIST when something other than a folder has this name, or when the folder has files that
 * are not leat's. The target of a link is not leat's. */
int leat__part_own(const char *folder, leat_error *err) LEAT_MUST_CHECK;
/* Removes the folder with its files and subfolders, which must have only files. Files that say that a run can
 * be resumed are removed first, so that no run resumes from incomplete files. */
int leat__part_remove(const char *folder, leat_error *err) LEAT_MUST_CHECK;
/* Removes the work folder and temporary files that an earlier run left in an output folder. Fails with
 * LEAT_EEXIST when that run can be resumed, unless the output is replaced. */
int leat__part_clear(const char *output, bool replace, leat_error *err) LEAT_MUST_CHECK;

#endif
