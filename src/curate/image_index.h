/* SPDX-License-Identifier: Apache-2.0
 *
 * Searches for near descriptors with an inverted file: coarse descriptors are put into lists around
 * k-means centres, and a query searches only the nearest lists. The result does not depend on the
 * number of threads that build and search it.
 */
#ifndef LEAT_CURATE_IMAGE_INDEX_H
#define LEAT_CURATE_IMAGE_INDEX_H

#include <stdbool.h>

#include "base/error.h"
#include "curate/image_sign.h"
#include "curate/thread_team.h"

typedef struct leat__image_index leat__image_index;

/* The threads that build an index, and when to stop. NULL: the calling thread builds it alone. */
typedef struct leat__index_work {
    leat__thread_team *team;
    bool (*stop)(void *cookie); /* called several times a second; true: fail with LEAT_ECANCELED */
    void *cookie;
} leat__index_work;

/* Finds the centres of `count` descriptors of LEAT__COARSE_BYTES, whose last byte is ignored.
 * `sample` has leat__image_index_sample(count) of them: numbers i * count / sample for all i. The
 * lists stay empty. */
uint32_t leat__image_index_sample(uint32_t count);
int leat__image_index_train(leat__image_index **index, const int8_t *sample, uint32_t count,
                            const leat__index_work *work, leat_error *err) LEAT_MUST_CHECK;
/* Finds the list of each of `n` descriptors. */
void leat__image_index_assign(const leat__image_index *index, const int8_t *codes, uint32_t n,
                              uint32_t *list);
/* Descriptors with their lists. `number` (NULL: 0, 1, ...) ascends; `list` comes from assign. Copied. */
typedef struct leat__index_part {
    const int8_t *codes;
    const uint32_t *list, *number;
    uint32_t count;
} leat__index_part;
/* Replaces the lists by a part of all descriptors; a query may search several parts in sequence. */
int leat__image_index_fill(leat__image_index *index, const leat__index_part *part,
                           leat_error *err) LEAT_MUST_CHECK;

/* Trains, assigns and fills in one call: `codes` are all descriptors. */
int leat__image_index_open(leat__image_index **index, const int8_t *codes, uint32_t count,
                           const leat__index_work *work, leat_error *err) LEAT_MUST_CHECK;
void leat__image_index_close(leat__image_index **index);

/* Returns the memory for the centres of `count` descriptors and the lists of `filled` of them. */
uint64_t leat__image_index_bytes(uint64_t count, uint64_t filled);
uint32_t leat__image_index_lists(const leat__image_index *index);

typedef struct leat__near {
    uint32_t entry;
    float distance;
    uint32_t owner; /* set to LEAT__NEAR_NEW, then owned by the caller, as is `rank` */
    float rank;
} leat__near;
#define LEAT__NEAR_NEW UINT32_MAX

typedef struct leat__near_query {
    const int8_t *code;
    float limit;     /* only entries nearer than this */
    float share;     /* share of the lists to search, at least 8 */
    uint32_t before; /* only entries below this number, */
    uint32_t after;  /* and from this one on; 0: from the first */
} leat__near_query;
#define LEAT__NEAR_QUERIES 256 /* maximum queries at a time */

/* The nearest entries that a query has found so far. */
typedef struct leat__near_heap {
    leat__near *near; /* `room` entries */
    uint32_t count, room;
    int32_t least; /* product with the centre of the last list to search; valid after the first part */
    bool begun;    /* false before the first part */
} leat__near_heap;

/* Adds the entries of the part to the heaps of `n` queries. A list is read once for all queries, so
 * large batches are faster. `scratch` has leat__image_index_scratch bytes. */
void leat__image_index_scan(const leat__image_index *index, const leat__near_query *query,
                            leat__near_heap *heap, uint32_t n, void *scratch);
size_t leat__image_index_scratch(const leat__image_index *index);
void leat__near_sort(leat__near *near, uint32_t n); /* sorts: nearest first, ties by number */

#endif
