/* SPDX-License-Identifier: Apache-2.0
 *
 * The index of a deduplication: digests of all bands, sketch and id of every kept document, in
 * OUTPUT/index.leat-dedup. A later run reads it instead of the old texts: its documents come
 * before all lines of that run and are always kept.
 *
 *   header    magic, version, settings, number of documents (leat__index_header)
 *   records   digests (8 bytes per band), sketch, length of the id (4 bytes), id as JSON
 *   footer    128-bit hash of the records and the header, in this order
 *
 * All numbers are little-endian.
 */
#ifndef LEAT_CURATE_DEDUP_INDEX_H
#define LEAT_CURATE_DEDUP_INDEX_H

#include "curate/dedup.h"

#define LEAT__INDEX_NAME "index.leat-dedup"

typedef struct leat__index_header {
    char magic[8];
    uint32_t version;
    uint32_t kind, normalize, words, chars, bands, rows, sketch_bytes;
    uint64_t documents, bytes; /* bytes: size of all records */
} leat__index_header;

/* Opens the index in a folder and checks that it was made with the settings of this run. Sets
 * d->against to its number of documents. */
int leat__dedup_index_open(leat__dedup *d, const char *folder, leat_error *err) LEAT_MUST_CHECK;
void leat__dedup_index_close(leat__dedup *d);
/* Adds the documents of the index to the files of the sketch phase, before all others. */
int leat__dedup_index_add(leat__dedup *d, leat_error *err) LEAT_MUST_CHECK;
/* Writes the index of all kept documents to the output folder. */
int leat__dedup_index_write(leat__dedup *d, leat_error *err) LEAT_MUST_CHECK;

#endif
