/* SPDX-License-Identifier: Apache-2.0
 *
 * Spherical k-means: centres have unit length, and each row belongs to the nearest one. The member that
 * owns a centre sums its rows in order, so the result does not depend on the number of threads.
 */
#ifndef LEAT_CURATE_KMEANS_H
#define LEAT_CURATE_KMEANS_H

#include "curate/thread_team.h"
#include "curate/vectors.h"

typedef struct leat__kmeans {
    uint32_t count;
    size_t dim;
    float *centre; /* count * dim */
} leat__kmeans;

/* Finds `count` centres (at most as many as rows) of the rows of `v`. */
int leat__kmeans_train(leat__kmeans *k, const leat__vectors *v, uint32_t count, leat__thread_team *crew,
                       leat_error *err) LEAT_MUST_CHECK;
void leat__kmeans_reset(leat__kmeans *k);

/* Finds the nearest centre of each row (ties: the lower number) and its squared distance. */
void leat__kmeans_assign(const leat__kmeans *k, const leat__vectors *v, uint32_t *to, float *distance,
                         leat__thread_team *crew);

/* Adds each row to the sum (count * dim) of its centre and counts it in `members`, in the order of rows. */
void leat__kmeans_add(leat__kmeans *k, const leat__vectors *v, const uint32_t *to, double *sum,
                      uint32_t *members, leat__thread_team *crew);
/* Moves each centre to the mean of its rows, at unit length. */
void leat__kmeans_move(leat__kmeans *k, const double *sum);
/* Computes the squared distance of each row to its centre. */
void leat__kmeans_measure(const leat__kmeans *k, const leat__vectors *v, uint32_t *to, float *distance,
                          leat__thread_team *crew);

/* Returns the bytes needed to train on `rows` rows, without the rows themselves. */
uint64_t leat__kmeans_bytes(uint64_t rows, uint32_t count, size_t dim);

#endif
