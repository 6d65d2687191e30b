/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of leat_dedup_semantic: clusters of all rows, and in each cluster the most
 * similar earlier row of every row.
 */
#ifndef LEAT_CURATE_SEMANTIC_DEDUP_H
#define LEAT_CURATE_SEMANTIC_DEDUP_H

#include <leat/images.h>

#include "base/buf.h"
#include "curate/kmeans.h"
#include "curate/saved.h"
#include "curate/vector_store.h"

#define LEAT__SEMANTIC_NONE UINT32_MAX

enum { LEAT__SEMANTIC_ASSIGN, LEAT__SEMANTIC_MEASURE, LEAT__SEMANTIC_COMPARE };

/* The progress of a run; part of its saved state. */
typedef struct leat__semantic_at {
    uint64_t phase, row;     /* row: the next one; while comparing, its position in the order of clusters */
    uint64_t pairs, largest; /* compared pairs; rows of the largest cluster */
} leat__semantic_at;

typedef struct leat__semantic {
    leat__vector_store *store;
    leat__thread_team *crew;
    uint32_t clusters;
    uint64_t tile; /* rows per tile of a cluster; two tiles are in memory at a time */
    uint32_t keep; /* leat_keep_similar: the order inside a cluster */
    /* Per row: */
    uint32_t *cluster;
    float *distance;   /* squared, to the centre */
    float *similarity; /* to the most similar earlier row of its cluster; -1: it is the first */
    uint32_t *of;      /* the most similar earlier row, or LEAT__SEMANTIC_NONE */
    leat__kmeans k;
    double *sum;       /* per centre: sum of its rows */
    uint32_t *members; /* per centre: number of rows */
    leat__saved *saved;
    leat__semantic_at at;
    uint64_t resumed; /* out: rows whose clusters came from the saved state */
    int (*tell)(void *cookie, uint64_t done, uint64_t total); /* in rows; non-zero stops */
    void *cookie;
} leat__semantic;

/* Finds clusters on a sample of `sample` rows and assigns all rows, `chunk` at a time. */
int leat__semantic_cluster(leat__semantic *s, uint64_t sample, uint64_t chunk,
                           leat_error *err) LEAT_MUST_CHECK;
/* Frees the centres. */
void leat__semantic_reset(leat__semantic *s);
/* Fills in `similarity` and `of`. */
int leat__semantic_compare(leat__semantic *s, leat_error *err) LEAT_MUST_CHECK;

void leat__dedup_semantic_json(const leat_dedup_semantic_stats *stats, leat__buf *out);

#endif
