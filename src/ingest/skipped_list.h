/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of skipped samples: one JSON object per line. A resumed run truncates it to the lines
 * of samples that are safely written. One thread.
 */
#ifndef LEAT_INGEST_SKIPPED_LIST_H
#define LEAT_INGEST_SKIPPED_LIST_H

#include "base/buf.h"
#include "base/error.h"
#include "ingest/record.h"
#include "io/file.h"

typedef struct leat__skipped_list {
    leat__file *file; /* NULL when not requested */
    uint64_t end;
    leat__buf line;
} leat__skipped_list;

/* Opens `path` (NULL: no report) and keeps its first `keep` lines. */
int leat__skipped_list_open(leat__skipped_list *r, const char *path, uint64_t keep,
                            leat_error *err) LEAT_MUST_CHECK;
int leat__skipped_list_add(leat__skipped_list *r, const char *key, size_t key_size, const leat_error *why,
                           leat_error *err) LEAT_MUST_CHECK;
void leat__skipped_list_close(leat__skipped_list *r);

#endif
