/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows that a view shows: a pack with images, and packs of columns that were made from it (their
 * provenance names its fingerprint). Columns are read when first needed and kept as numbers or text
 * within a budget; the least recently used ones are dropped.
 *
 * The caller serialises all calls, except that any thread may read the packs themselves.
 */
#ifndef LEAT_VIEW_VIEW_DATA_H
#define LEAT_VIEW_VIEW_DATA_H

#include <stdatomic.h>
#include <stdbool.h>

#include <leat/pack.h>

#include "base/mem.h"

#define LEAT__VIEW_COLUMNS_MAX 512
#define LEAT__VIEW_SOURCES_MAX 64

typedef enum leat__view_kind {
    LEAT__VIEW_NUMBER,
    LEAT__VIEW_TEXT,
    LEAT__VIEW_VECTOR, /* floats, the same number in every row */
} leat__view_kind;

typedef enum leat__view_origin {
    LEAT__VIEW_FIELD, /* a field of its source */
    LEAT__VIEW_KEY,
    LEAT__VIEW_WIDTH, /* from here on: facts about the image, from the index */
    LEAT__VIEW_HEIGHT,
    LEAT__VIEW_BYTES,
} leat__view_origin;

typedef struct leat__view_column {
    char *name; /* unique */
    leat__view_kind kind;
    leat__view_origin origin;
    uint32_t source, field;
    bool whole;   /* all values are integers */
    bool bits;    /* each bit of the number has a name */
    char **names; /* names of values (classes) or bits; NULL when there are none */
    uint32_t name_count;
    uint32_t dim, dtype; /* VECTOR */
    /* Values in memory, or NULL: */
    double *number;  /* NaN = no value */
    uint64_t *start; /* TEXT: where each row begins in `text`, and the end of the last */
    char *text;
    uint32_t *rank;      /* TEXT: order among the values, equal for equal ones */
    uint32_t ranks;      /* number of different values */
    int8_t *vector;      /* VECTOR: `dim` numbers per row, scaled so that the largest magnitude is 127 */
    float *norm;         /* VECTOR: length of the scaled row; 0 = no value */
    float *plane;        /* VECTOR: coordinates on the map, two per row (view_vector.h) */
    uint64_t held, used; /* bytes in memory; time of last use */
} leat__view_column;

typedef struct leat__view_source {
    leat_pack *pack;
    leat_sample *sample; /* guarded by the caller's lock */
    char *name;
    uint64_t first; /* row in this source of the viewed pack's first sample */
} leat__view_source;

typedef struct leat__view_data {
    leat__view_source source[LEAT__VIEW_SOURCES_MAX]; /* 0: the pack itself; then its columns */
    uint32_t source_count;
    uint32_t rows;
    uint32_t image; /* the image field */
    leat__view_column *column;
    uint32_t column_count;
    uint64_t held, budget, clock;
    atomic_bool stopping; /* makes long work fail with LEAT_ECANCELED */
} leat__view_data;

/* Opens the pack and its columns. `field`: the image field, NULL = the first one. LEAT_EINVAL: no
 * images, or a pack of columns that was not made from this pack. */
int leat__view_data_open(leat__view_data *d, const char *pack, const char *const *with, uint32_t with_count,
                         const char *field, uint64_t budget, leat_error *err) LEAT_MUST_CHECK;
void leat__view_data_close(leat__view_data *d);

/* Returns NULL when there is no column of that name. */
leat__view_column *leat__view_find(const leat__view_data *d, const char *name);

/* Loads a column's values: `number`; or `start` and `text`; or `vector` and `norm`. They stay until
 * the next such call. LEAT_EBUDGET when the column alone exceeds the budget. */
int leat__view_load(leat__view_data *d, leat__view_column *c, leat_error *err) LEAT_MUST_CHECK;
/* Does the same and, for a column of text, also loads its `rank`. */
int leat__view_load_order(leat__view_data *d, leat__view_column *c, leat_error *err) LEAT_MUST_CHECK;

/* charge counts `bytes` of other memory and drops columns to make room; release undoes it. */
int leat__view_charge(leat__view_data *d, uint64_t bytes, const leat__view_column *keep,
                      leat_error *err) LEAT_MUST_CHECK;
void leat__view_release(leat__view_data *d, uint64_t bytes);

/* Returns the row of `source` that belongs to image `row`. */
static inline uint64_t leat__view_row_of(const leat__view_data *d, uint32_t source, uint32_t row)
{
    return d->source[source].first + row;
}

/* From view_load.c: reads the values of a column that is not held. */
int leat__view_read(leat__view_data *d, leat__view_column *c, leat_error *err) LEAT_MUST_CHECK;
/* Converts the elements of a float array to floats; returns false for other types. */
bool leat__view_floats(uint32_t dtype, const void *data, size_t count, float *out);

#endif
