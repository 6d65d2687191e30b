/* SPDX-License-Identifier: Apache-2.0
 *
 * Sample files in buckets, read by one request each, those of a run all at once: a request is a
 * round trip, so one after the other would wait most of the time.
 */
#ifndef LEAT_INGEST_FETCH_H
#define LEAT_INGEST_FETCH_H

#include "ingest/source.h"

/* The record's file is remote and small enough for one request; larger ones are read by ranges. */
bool leat__fetchable(const leat__run *run, const leat__record *r);
/* Reads one. Its errors are returned. */
int leat__fetch_record(leat__source *s, leat__run *run, leat__record *r, leat_error *err) LEAT_MUST_CHECK;
/* Reads all of the run that are not read yet. A record whose file cannot be read is failed; only
 * LEAT_ENOMEM is returned. */
int leat__fetch_run(leat__source *s, leat__run *run, leat_error *err) LEAT_MUST_CHECK;

#endif
