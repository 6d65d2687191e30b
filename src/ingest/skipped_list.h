/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of skipped samples: one JSON object per line. A resumed run truncates it to the samples that
 * are safely written. The list gets its final name when the run ends (io/result_file.h). One thread.
 */
#ifndef LEAT_INGEST_SKIPPED_LIST_H
#define LEAT_INGEST_SKIPPED_LIST_H

#include "base/buf.h"
#include "base/error.h"
#include "ingest/record.h"
#include "io/result_file.h"

typedef struct leat__skipped_list {
    leat__result_file to; /* has no file if no list was requested */
    uint64_t end;
    leat__buf line;
} leat__skipped_list;

/* Checks that `path` may be written; see leat__result_file_check. */
int leat__skipped_list_check(const char *path, bool replace, bool resume, leat_error *err) LEAT_MUST_CHECK;
/* Opens `path` (NULL: no list) and keeps the first `keep` lines of an interrupted run. */
int leat__skipped_list_open(leat__skipped_list *r, const char *path, uint64_t keep,
                            leat_error *err) LEAT_MUST_CHECK;
int leat__skipped_list_add(leat__skipped_list *r, const char *key, size_t key_size, const leat_error *why,
                           leat_error *err) LEAT_MUST_CHECK;
/* Gives the list its final name. */
int leat__skipped_list_publish(leat__skipped_list *r, leat_error *err) LEAT_MUST_CHECK;
/* Counts the lines of the list of a killed run whose pack is complete, and renames the list if that run did
 * not. No lines when `path` is NULL or does not exist. */
int leat__skipped_list_recall(const char *path, uint64_t *lines, leat_error *err) LEAT_MUST_CHECK;
/* Closes an unfinished list; keeps it for a resumed run unless `discard` is set. */
void leat__skipped_list_close(leat__skipped_list *r, bool discard);

#endif
