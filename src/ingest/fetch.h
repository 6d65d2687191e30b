/* SPDX-License-Identifier: Apache-2.0
 *
 * Fetches sample files from buckets with one request each, all files of a run in parallel: one at a
 * time would mostly wait for round trips.
 */
#ifndef LEAT_INGEST_FETCH_H
#define LEAT_INGEST_FETCH_H

#include "ingest/source.h"

/* True when the record's file is remote and small enough for one request; larger ones are read by
 * ranges. */
bool leat__fetchable(const leat__records *run, const leat__record *r);
/* Fetches one file and returns its error. */
int leat__fetch_record(leat__source *s, leat__records *run, leat__record *r, leat_error *err) LEAT_MUST_CHECK;
/* Fetches all files of the run that are not read yet. A record whose file cannot be read is marked as
 * failed. The only error returned is LEAT_ENOMEM. */
int leat__fetch_run(leat__source *s, leat__records *run, leat_error *err) LEAT_MUST_CHECK;

#endif
