/* SPDX-License-Identifier: Apache-2.0
 *
 * Deduplication in four phases, each of which can be resumed:
 *
 *   sketch   one pass over the text (several, with fewer bands at once): per document a digest
 *            for each band, into files by band and part; its sketch, its id; by line number.
 *            With rules, documents that violate one are dropped here
 *   group    band by band: documents with equal digests are compared with the first ones of
 *            their bucket; pairs above the threshold become edges
 *   resolve  edges in document order: which documents are removed, and for which kept one
 *   write    a second pass over the text: kept documents, clusters, bad lines
 *
 * A document is identified by its line number over all files ("line"), after the documents of an
 * index; lines without a document have no records. If documents other than the first are kept,
 * groups and edges use their rank instead. Data beyond `memory` is on disk, in OUTPUT/.leat-work.
 *
 * The output does not depend on threads, memory, parts or interruptions: buckets and edges are
 * sets, and every choice follows from line numbers (or ranks) and sketches.
 */
#ifndef LEAT_CURATE_DEDUP_H
#define LEAT_CURATE_DEDUP_H

#include <leat/flow.h>
#include <leat/text.h>

#include "base/buf.h"
#include "curate/output_dir.h"
#include "curate/part_files.h"
#include "curate/spill.h"
#include "curate/text_line.h"
#include "text/rule.h"
#include "text/sketch.h"

typedef enum leat__dedup_phase {
    LEAT__PHASE_SKETCH,
    LEAT__PHASE_GROUP,
    LEAT__PHASE_RESOLVE,
    LEAT__PHASE_WRITE
} leat__dedup_phase;

/* Files with a record for each line. With rules, DROPPED has a byte per line and REASONS the lines of
 * reasons.jsonl. In a run in parts, BYTES has the size of each line in an uncompressed output; 0 = no
 * document. */
enum {
    LEAT__SIDE_SKETCH,
    LEAT__SIDE_IDS,
    LEAT__SIDE_ENDS,
    LEAT__SIDE_KEEP,
    LEAT__SIDE_DIGESTS,
    LEAT__SIDE_DROPPED,
    LEAT__SIDE_REASONS,
    LEAT__SIDE_BYTES,
    LEAT__SIDES
};

#define LEAT__EDGE_PARTS_MAX 4096
#define LEAT__BANDS_MAX 256
#define LEAT__DEDUP_LARGE (256u << 10)                          /* lines above this get separate memory */
#define LEAT__DEDUP_SCORER leat__scorer_need(LEAT__DEDUP_LARGE) /* memory for scores, per worker */

/* The saved state for resuming a run. */
typedef struct leat__dedup_state {
    uint32_t phase;
    uint32_t iteration;  /* number of the pass: each pass handles some of the bands */
    uint32_t band, part; /* phase GROUP: the next band and part */
    uint32_t parts, edge_parts, bands_at_once;
    /* Position of the pass over the text: the start of a line. */
    uint32_t file;
    uint64_t offset, line, document;
    uint64_t ids_bytes;
    uint64_t documents, text_bytes, lone_surrogates, empty, unscored;
    uint64_t candidates, verified, crowded, disk_peak;
    uint64_t dropped;      /* documents dropped by rules */
    uint64_t pieces, gaps; /* lines and substrings: numbers assigned; of these, unused between texts */
    uint64_t *band_length; /* lengths of the files of the spill sets */
    uint64_t *edge_length;
    uint64_t side_length[LEAT__SIDES];
    uint64_t *band_sum, *edge_sum; /* checksums of these files; NULL in a run in parts */
    uint64_t side_sum[LEAT__SIDES];
    uint64_t decisions_sum; /* checksum of the file of decisions, or of removed pieces */
    uint32_t removed_file;  /* the file of removed pieces: removed-0 or removed-1 */
    /* As loaded; see the fields of leat__text_files. */
    uint64_t *input_sum, *input_first, *input_found, *input_stamp;
    uint32_t input_files;
    uint64_t rule_counts[2 * LEAT__RULES_MAX]; /* see leat__reason_count */
    uint32_t band_files, edge_files;
} leat__dedup_state;

typedef struct leat__dedup {
    const leat_dedup_opts *opts;
    leat_dedup_stats *stats;
    leat__text_files files;
    leat__line_names names;
    leat__text_pass pass;
    leat__text_meter meter; /* covers all passes */
    leat__rule_set rules;   /* documents that violate one are dropped first */
    uint64_t memory;
    bool fuzzy;
    uint32_t bands, rows;
    uint32_t sketch_bytes;  /* per document */
    uint32_t need_equal;    /* equal bytes of the sketch required for a pair */
    char *work;             /* path of the work folder */
    leat__output_lock lock; /* lock of the output folder */
    leat__dedup_state st;
    leat__spill side, band, edge;
    uint64_t plan_marks;              /* estimated bytes of the files of removed pieces */
    uint64_t plan_output;             /* estimated upper bound for the bytes of kept documents */
    uint64_t since_save;              /* input bytes since the state was saved */
    uint64_t bytes_done, bytes_total; /* in all passes, for progress */
    char settings[40];                /* hash of everything that affects the result */
    char run_key[40]; /* hash of `settings`, the form of the output and stamps of the inputs */
    /* Hashes of each input: its path; its size and first bytes. NULL in tasks of a run in parts. */
    uint64_t *input_name, *input_head;
    /* The index of an earlier run. Its documents have the lowest numbers. */
    leat__file *index;
    uint64_t against; /* documents in the index */
    uint8_t index_hash[16];
    /* Used by GROUP and RESOLVE. */
    leat__file *sketch_file;
    uint8_t *sketches;      /* all sketches, when they fit in memory */
    uint32_t *order, *rank; /* line by rank, rank by line; if documents other than the first are kept */
    /* A run in parts (part_files.h); NULL = the whole run. */
    const leat__part *part;
    uint64_t base, end; /* WRITE: first number of the part's documents, and their end */
    const leat__part_place
        *place; /* WRITE: place of the part's kept documents in the output; NULL = not known */
} leat__dedup;

/* One document in the file of a band. */
typedef struct __attribute__((packed)) leat__band_record {
    uint64_t digest;
    uint32_t line;
} leat__band_record;

/* The number that decides which document is kept; see leat__jsonl_number. */
typedef struct __attribute__((packed)) leat__dedup_keep {
    double value;
    int32_t rest; /* -Infinity with LEAT__KEEP_NONE: no number, below -Infinity itself */
} leat__dedup_keep;
#define LEAT__KEEP_NONE INT32_MIN

typedef struct leat__dedup_edge {
    uint32_t later, earlier; /* rank or line */
} leat__dedup_edge;

/* Returns the root of x in a forest of documents, in which a root is above itself. */
static inline uint32_t leat__dedup_root(uint32_t *up, uint32_t x)
{
    while (up[x] != x) x = up[x] = up[up[x]];
    return x;
}

/* The decision about a line: kept when kept_for is the line itself. */
typedef struct leat__dedup_decision {
    uint32_t kept_for; /* line of the document that is kept instead */
    uint32_t equal;    /* number of equal bytes in the two sketches */
} leat__dedup_decision;

/* A range of records of a band in a file. */
typedef struct leat__band_segment {
    const char *path;
    uint64_t offset, bytes;
    uint32_t base; /* added to the line numbers of the records */
} leat__band_segment;

int leat__dedup_plan(leat__dedup *d, leat_error *err) LEAT_MUST_CHECK;
/* Fails with LEAT_EBUDGET when a phase after SKETCH needs `least` bytes and has less: the plan's estimate of
 * the documents was too low, or a resumed run has less memory. Names what all phases need. */
int leat__dedup_check_memory(const leat__dedup *d, uint64_t least, leat_error *err) LEAT_MUST_CHECK;
/* Fails with LEAT_EBUDGET when the rest of the run does not fit the disk. Call it after planning. */
int leat__dedup_check_disk(const leat__dedup *d, leat_error *err) LEAT_MUST_CHECK;

int leat__dedup_sketch(leat__dedup *d, leat_error *err) LEAT_MUST_CHECK;
int leat__dedup_group(leat__dedup *d, leat_error *err) LEAT_MUST_CHECK;
int leat__dedup_resolve(leat__dedup *d, leat_error *err) LEAT_MUST_CHECK;
int leat__dedup_write(leat__dedup *d, leat_error *err) LEAT_MUST_CHECK;
/* Calls leat__output_refuse_empty with the counts of the run. When it fails, nothing is left to resume. */
int leat__dedup_refuse_empty(leat__dedup *d, leat_error *err) LEAT_MUST_CHECK;

/* Fills in the segments of a unit. */
typedef void (*leat__dedup_fill)(void *cookie, uint32_t unit, leat__band_segment *segments);
/* Groups units of `segments` segments each, instead of all bands. Writes edges to FOLDER/edge-0,
 * edge-1, … and sets d->st.edge_length. */
int leat__dedup_group_units(leat__dedup *d, const char *folder, uint32_t segments, leat__dedup_fill fill,
                            void *cookie, leat_error *err) LEAT_MUST_CHECK;
/* Sets d->order and d->rank if documents other than the first are kept. */
int leat__dedup_rank(leat__dedup *d, leat_error *err) LEAT_MUST_CHECK;
/* copy_state copies counts from the state to the stats; write_report writes report.json. */
void leat__dedup_copy_state(leat__dedup *d);
int leat__dedup_write_report(const leat__dedup *d, leat_error *err) LEAT_MUST_CHECK;

/* The files with the ids of all documents, as JSON, and the end offset of each. */
typedef struct leat__dedup_ids {
    leat__file *ids, *ends;
} leat__dedup_ids;
/* Appends the id of a document to `out`. */
int leat__dedup_put_id(const leat__dedup_ids *f, uint32_t line, leat__buf *out,
                       leat_error *err) LEAT_MUST_CHECK;
/* Writes the report files (opts->report). */
int leat__dedup_report(leat__dedup *d, leat__file *decisions, const leat__dedup_ids *ids,
                       leat_error *err) LEAT_MUST_CHECK;

/* Saves the state, or loads it; *found is false when no state exists. LEAT_ESTATE: the state has
 * other inputs or options. LEAT_EDATA names an input that has changed. */
int leat__dedup_save(leat__dedup *d, leat_error *err) LEAT_MUST_CHECK;
int leat__dedup_load(leat__dedup *d, bool *found, leat_error *err) LEAT_MUST_CHECK;
/* state_json writes the state as JSON; state_read reads a state of this run from another file. */
void leat__dedup_state_json(const leat__dedup *d, leat__buf *out);
int leat__dedup_state_read(leat__dedup *d, const char *path, leat__dedup_state *s,
                           leat_error *err) LEAT_MUST_CHECK;
void leat__dedup_state_reset(leat__dedup_state *s);
/* Allocates the lists of lengths and checksums for `files` files of bands, or of edges. */
int leat__dedup_state_bands(leat__dedup_state *s, uint32_t files, leat_error *err) LEAT_MUST_CHECK;
int leat__dedup_state_edges(leat__dedup_state *s, uint32_t files, leat_error *err) LEAT_MUST_CHECK;
/* Records the lengths and checksums of a spill set. */
/* Copies the checksums and stamps of the state to `files`. LEAT_EDATA when the state has other files. */
int leat__dedup_state_inputs(const leat__dedup_state *s, leat__text_files *files,
                             leat_error *err) LEAT_MUST_CHECK;
void leat__dedup_state_mark(const leat__spill *s, uint64_t *length, uint64_t *sum);
/* Computes d->settings, a hash of the options and the inputs. */
int leat__dedup_settings(leat__dedup *d, leat_error *err) LEAT_MUST_CHECK;

/* Sets d->run_key, by which a complete output is recognized later. */
int leat__dedup_key(leat__dedup *d, leat_error *err) LEAT_MUST_CHECK;

/* Opens the sketches, which are read by line or rank on the thread that runs the phase. */
int leat__dedup_sketches_open(leat__dedup *d, uint64_t memory, leat_error *err) LEAT_MUST_CHECK;
void leat__dedup_sketches_close(leat__dedup *d);
int leat__dedup_sketch_of(leat__dedup *d, uint32_t document, uint8_t *out, leat_error *err) LEAT_MUST_CHECK;

/* Writes the path of a file in the work folder to `out` (4096 bytes) and returns it. */
const char *leat__dedup_path(const leat__dedup *d, const char *name, char *out);
/* Does the same for the file of removed pieces that the state names. */
const char *leat__dedup_removed_path(const leat__dedup *d, char *out);

void leat__dedup_json(const leat_dedup_stats *stats, leat__buf *out);

/* Runs one step of a run in parts; its answer is appended to `json`. BEGIN answers
 * {"memory":…,"max_line":…,"settings":…,"bands":…,"partitions":…,"against":…,"files":[…]}. JOIN answers the
 * copies, END the report. For SKETCH and WRITE see leat__part_answer; the other steps answer nothing. All
 * steps take the options of BEGIN and the `memory` of its answer. SKETCH and WRITE take the files of their
 * range as inputs, the others only the first file. */
int leat__dedup_part(const leat_dedup_opts *opts, const leat__part *part, leat__buf *json,
                     leat_error *err) LEAT_MUST_CHECK;
int leat__dedup_step(leat__dedup *d, leat__buf *json, leat_error *err) LEAT_MUST_CHECK; /* in dedup_parts.c */

#endif
