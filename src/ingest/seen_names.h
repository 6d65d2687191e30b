/* SPDX-License-Identifier: Apache-2.0
 *
 * The samples of a tar shard seen so far: a 64-bit hash of each name and which fields it had. It finds
 * samples whose members are not side by side. One thread at a time.
 */
#ifndef LEAT_INGEST_SEEN_NAMES_H
#define LEAT_INGEST_SEEN_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Names remembered per shard, in up to 80 MiB: later names are compared with these only. */
#define LEAT__SEEN_NAMES_MAX (UINT64_C(4) << 20)

typedef struct leat__seen_names {
    uint64_t *hash;   /* 0 = an empty slot */
    uint16_t *fields; /* of the sample in each slot */
    uint64_t slots;   /* a power of two, or 0 */
    uint64_t count;
} leat__seen_names;

/* Remembers a sample. `fields`: bit f mod 16 is set for each field f that it has. Sets *torn if an earlier
 * sample has this name and none of these fields: they are parts of one sample. A sample with a field of the
 * earlier one is a duplicate. */
int leat__seen_names_add(leat__seen_names *s, const char *name, size_t len, uint16_t fields, bool *torn,
                         leat_error *err) LEAT_MUST_CHECK;
void leat__seen_names_clear(leat__seen_names *s); /* for the next shard */
void leat__seen_names_reset(leat__seen_names *s); /* frees the memory */

#endif
