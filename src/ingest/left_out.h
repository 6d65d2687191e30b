/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of skipped samples: one JSON object per line. A resumed run truncates it to the lines
 * of samples that are safely written. One thread.
 */
#ifndef LEAT_INGEST_LEFT_OUT_H
#define LEAT_INGEST_LEFT_OUT_H

#include "base/buf.h"
#include "base/error.h"
#include "ingest/record.h"
#include "io/file.h"

typedef struct leat__report {
    leat__file *file; /* NULL when not requested */
    uint64_t end;
    leat__buf line;
} leat__report;

/* Opens `path` (NULL: no report) and keeps its first `keep` lines. */
int leat__report_open(leat__report *r, const char *path, uint64_t keep,
                      leat_error *err) LEAT_MUST_CHECK;
int leat__report_add(leat__report *r, const char *key, size_t key_size, const leat_error *why,
                     leat_error *err) LEAT_MUST_CHECK;
void leat__report_close(leat__report *r);

#endif
