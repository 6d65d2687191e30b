/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of what was left out of a pack: one JSON object per line. A run that resumes cuts
 * the list back to the lines that belong to what is safely written. One thread.
 */
#ifndef LEAT_INGEST_LEFT_OUT_H
#define LEAT_INGEST_LEFT_OUT_H

#include "base/buf.h"
#include "base/error.h"
#include "ingest/record.h"
#include "io/file.h"

typedef struct leat__report {
    leat__file *file; /* NULL when none is wanted */
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
