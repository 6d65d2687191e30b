/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash of the records that a run has consumed: keys, and sizes and times of their files. A resumed run
 * skips these records and compares the hash, to detect a changed source.
 */
#ifndef LEAT_INGEST_SOURCE_CHAIN_H
#define LEAT_INGEST_SOURCE_CHAIN_H

#include "ingest/source.h"

typedef struct leat__chain {
    uint64_t value, records;
} leat__chain;

/* Begins with the sources that are files themselves, such as tar shards, manifests, packs, lists of keys. */
leat__chain leat__chain_begin(const leat_ingest_opts *opts);
void leat__chain_add(leat__chain *chain, const leat__records *run, const leat__record *record);
/* Skips `records` records, or all there are, without reading their bytes. `newest` (may be NULL) gets
 * the path of the most recently modified file. */
int leat__chain_skip(leat__chain *chain, leat__source *source, leat__records_pool *spare, uint64_t records,
                     leat__buf *newest, leat_error *err) LEAT_MUST_CHECK;

#endif
