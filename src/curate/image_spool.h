/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts about all images between the two passes of a check, in a file. The first pass appends
 * rows; the second reads single scores of all rows, then the rows in order. Only this process, or one
 * that resumes its work, reads the file. So it is not a pack, which would cost several times as much.
 * One thread.
 */
#ifndef LEAT_CURATE_IMAGE_SPOOL_H
#define LEAT_CURATE_IMAGE_SPOOL_H

#include "curate/image_columns.h"

typedef struct leat__image_spool leat__image_spool;

/* Counts of the first pass over the images. */
typedef struct leat__check_counts {
    uint64_t samples, ok, bytes, early; /* early: rows with issues that need no limits */
    uint64_t chain;                     /* chain of the records, see ingest/source_chain.h */
} leat__check_counts;

/* Opens the file. `key` identifies everything that the rows depend on; 0: no run can be resumed.
 * Complete blocks of an interrupted run with this key are kept, and *counts is set from them; a file
 * with another key is emptied. LEAT_ESTATE: another process is using the file. */
int leat__image_spool_open(leat__image_spool **spool, const char *path, uint64_t key,
                           leat__check_counts *counts, leat_error *err) LEAT_MUST_CHECK;
void leat__image_spool_close(leat__image_spool **spool); /* also removes the file */
/* Closes it but keeps the file, so that a later run can resume. */
void leat__image_spool_leave(leat__image_spool **spool);
/* Drops all rows. */
int leat__image_spool_clear(leat__image_spool *spool, leat_error *err) LEAT_MUST_CHECK;

/* Appends a row. `counts` include this row. */
int leat__image_spool_put(leat__image_spool *spool, const void *key, size_t key_size,
                          const leat__image_facts *facts, const leat__check_counts *counts,
                          leat_error *err) LEAT_MUST_CHECK;
/* Ends writing: from now on rows are read. */
int leat__image_spool_finish(leat__image_spool *spool, leat_error *err) LEAT_MUST_CHECK;

uint64_t leat__image_spool_count(const leat__image_spool *spool);
/* Reads one score of all rows whose verdict is ok; `out` has space for all rows. Sets *count to their
 * number. */
int leat__image_spool_scores(const leat__image_spool *spool, leat__look score, double *out, size_t *count,
                             leat_error *err) LEAT_MUST_CHECK;
/* Reads the next row. *key is valid until the next call, and NULL after the last row. */
int leat__image_spool_next(leat__image_spool *spool, leat__image_facts *facts, const char **key,
                           size_t *key_size, leat_error *err) LEAT_MUST_CHECK;

#endif
