/* SPDX-License-Identifier: Apache-2.0
 *
 * The vectors of a pack (leat embed) in memory: floats of unit length, rows padded with zeros to whole
 * groups of LEAT__DISTANCE_LANES. A row whose vector is zeros, or has a value that is not finite, is zeros:
 * it has no vector.
 */
#ifndef LEAT_CURATE_VECTORS_H
#define LEAT_CURATE_VECTORS_H

#include <leat/pack.h>

#include <stdbool.h>

#include "dsp/distance.h"

typedef struct leat__vectors {
    uint64_t count;
    size_t length; /* numbers per vector */
    size_t dim;    /* the same with padding */
    float *row;    /* count * dim */
} leat__vectors;

/* Finds the field with vectors (one-dimensional arrays of floats) called `name`; with NULL, the only one. */
int leat__vectors_field(const leat_pack *pack, const char *name, uint32_t *field,
                        leat_error *err) LEAT_MUST_CHECK;
/* Returns the numbers per vector of that field, including the padding. */
size_t leat__vectors_dim(const leat_pack *pack, uint32_t field);

/* Reads one row to `to`, which has space for `dim` numbers. */
int leat__vectors_read_one(leat_sample *s, uint32_t field, const leat_pack *pack, uint64_t row, float *to,
                           size_t dim, leat_error *err) LEAT_MUST_CHECK;
/* Reads all rows of a field. */
int leat__vectors_read(leat__vectors *v, leat_pack *pack, const char *name, leat_error *err) LEAT_MUST_CHECK;
void leat__vectors_reset(leat__vectors *v);

/* Returns true for a row without a vector, such as an image that cannot be read. */
static inline bool leat__vectors_is_zero(const float *row, size_t dim)
{
    size_t i = 0;
    while (i < dim && row[i] == 0) i++;
    return i == dim;
}

static inline const float *leat__vectors_at(const leat__vectors *v, uint64_t row)
{
    return v->row + row * v->dim;
}

#endif
