/* SPDX-License-Identifier: Apache-2.0
 *
 * Places of the parts of a deduplication in its output files: WORK/places.json, which the step RESOLVE writes
 * and WRITE and JOIN read. The places of plain documents follow from the decisions; those of compressed ones
 * are not known before they are written. One thread.
 */
#ifndef LEAT_CURATE_DEDUP_PLACES_H
#define LEAT_CURATE_DEDUP_PLACES_H

#include "curate/dedup.h"

/* Numbers of documents before each part, the place of each part in the output, lengths of output files:
 * parts + 1 of the first two. */
typedef struct leat__dedup_places {
    leat__buf documents, place, shards; /* 8 bytes; 16; 8 */
} leat__dedup_places;

/* Size at which an output file ends. */
uint64_t leat__dedup_shard_bytes(const leat__dedup *d);

void leat__dedup_places_init(leat__dedup_places *p);
void leat__dedup_places_reset(leat__dedup_places *p);

/* Writes the file. base: documents before each part, parts + 1 of them. */
int leat__dedup_places_write(leat__dedup *d, const uint64_t *base, leat_error *err) LEAT_MUST_CHECK;
int leat__dedup_places_read(leat__dedup *d, leat__dedup_places *p, leat_error *err) LEAT_MUST_CHECK;
/* Reads the file; sets the range of documents of d's part and, if it is known, their place. */
int leat__dedup_places_part(leat__dedup *d, leat__dedup_places *p, leat__part_place *place,
                            leat_error *err) LEAT_MUST_CHECK;

#endif
