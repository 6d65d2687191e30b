/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of a deduplication of lines, paragraphs or substrings, as a page and as JSON: the share of
 * their text that changed documents lost, and the documents that lost most. One thread.
 */
#ifndef LEAT_CURATE_PIECES_REPORT_H
#define LEAT_CURATE_PIECES_REPORT_H

#include "curate/dedup.h"

#define LEAT__PIECES_BINS 20
#define LEAT__PIECES_MOST 20
#define LEAT__PIECES_ID 200

typedef struct leat__pieces_doc {
    uint64_t bytes, pieces, removed;
    char id[LEAT__PIECES_ID]; /* JSON; longer ids are truncated, as strings */
} leat__pieces_doc;

typedef struct leat__pieces_report {
    uint64_t share[LEAT__PIECES_BINS + 1];    /* number of documents by the share of pieces lost */
    leat__pieces_doc most[LEAT__PIECES_MOST]; /* most bytes first, then in the order of the text */
    unsigned count;
} leat__pieces_report;

/* Appends a note about what a document lost. `id` is JSON. */
void leat__pieces_note(leat__buf *out, uint64_t pieces, uint64_t removed, uint64_t bytes, const char *id);
/* Adds the notes of a chunk, in the order of the text. */
void leat__pieces_add(leat__pieces_report *r, const leat__buf *notes);
/* Writes the report files (opts->report). `unit` names the pieces, such as "lines". */
int leat__pieces_store(const leat__pieces_report *r, const leat__dedup *d, const char *unit,
                       leat_error *err) LEAT_MUST_CHECK;

#endif
