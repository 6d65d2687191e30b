/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads vectors of a pack on demand. They are all kept in memory when they fit the budget; otherwise all
 * members of a team read rows from the pack each time. Rows without a vector (zeros, or a value that is
 * not finite) are left out: row i of the store is row `in_pack[i]` of the pack.
 */
#ifndef LEAT_CURATE_VECTOR_STORE_H
#define LEAT_CURATE_VECTOR_STORE_H

#include <stdbool.h>

#include "curate/thread_team.h"
#include "curate/vectors.h"

typedef struct leat__vector_store {
    leat_pack *pack;
    leat__thread_team *crew;
    uint64_t count;    /* rows with a vector */
    uint32_t *in_pack; /* their rows in the pack, ascending */
    size_t dim;
    leat__vectors whole;  /* row is NULL when the vectors stay on disk */
    leat_sample **sample; /* one per member */
    uint32_t field;
} leat__vector_store;

/* Opens the vectors and finds the rows that have one. field: see leat__vectors_field. keep: all rows stay
 * in memory. */
int leat__vector_store_open(leat__vector_store *s, const char *path, const char *field, bool keep,
                            leat__thread_team *crew, leat_error *err) LEAT_MUST_CHECK;
void leat__vector_store_close(leat__vector_store *s);

/* Reads rows row[0] … row[n - 1] into `out` (n * dim). row NULL: rows first … first + n - 1. */
int leat__vector_store_get(leat__vector_store *s, const uint32_t *row, uint64_t first, uint64_t n, float *out,
                           leat_error *err) LEAT_MUST_CHECK;

#endif
