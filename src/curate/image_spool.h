/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts about all images of a check between its two passes, in a file: the first one appends rows, the
 * second one reads single scores of all rows, then the rows in order. Only this process, or one that
 * continues its work, reads the file, so it is not a pack, which would cost several times as much. One
 * thread.
 */
#ifndef LEAT_CURATE_IMAGE_SPOOL_H
#define LEAT_CURATE_IMAGE_SPOOL_H

#include "curate/image_columns.h"

typedef struct leat__image_spool leat__image_spool;

/* Counts of the first pass over the images. */
typedef struct leat__check_counts {
    uint64_t samples, ok, bytes, early; /* early: with issues that do not need limits */
    uint64_t chain;                     /* of the records, see ingest/source_chain.h */
} leat__check_counts;

/* `key` names all that the rows depend on. The whole blocks that an interrupted run of this key left at
 * `path` stay, and *counts gets what they say; a file with another key is emptied. 0: no run can be
 * continued. LEAT_ESTATE: another process is using the file. */
int leat__image_spool_open(leat__image_spool **spool, const char *path, uint64_t key,
                           leat__check_counts *counts, leat_error *err) LEAT_MUST_CHECK;
void leat__image_spool_close(leat__image_spool **spool); /* and removes the file */
/* Closes it; the file stays for a run that continues. */
void leat__image_spool_leave(leat__image_spool **spool);
/* Drops all rows. */
int leat__image_spool_clear(leat__image_spool *spool, leat_error *err) LEAT_MUST_CHECK;

/* `counts`: with this row. */
int leat__image_spool_put(leat__image_spool *spool, const void *key, size_t key_size,
                          const leat__image_facts *facts, const leat__check_counts *counts,
                          leat_error *err) LEAT_MUST_CHECK;
/* All rows were put: from here on they are read. */
int leat__image_spool_finish(leat__image_spool *spool, leat_error *err) LEAT_MUST_CHECK;

uint64_t leat__image_spool_count(const leat__image_spool *spool);
/* Reads one score of all rows whose verdict is ok into space for all rows; *count gets the number. */
int leat__image_spool_scores(const leat__image_spool *spool, leat__look score, double *out, size_t *count,
                             leat_error *err) LEAT_MUST_CHECK;
/* Reads the next row. *key is NULL behind the last one, and otherwise valid until the next call. */
int leat__image_spool_next(leat__image_spool *spool, leat__image_facts *facts, const char **key,
                           size_t *key_size, leat_error *err) LEAT_MUST_CHECK;

#endif
