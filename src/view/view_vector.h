/* SPDX-License-Identifier: Apache-2.0
 *
 * Embeddings in a view: a map in two dimensions, and the nearest rows of a row. Both normalise vectors to
 * length 1, so only directions matter. The caller serialises all calls.
 */
#ifndef LEAT_VIEW_VIEW_VECTOR_H
#define LEAT_VIEW_VIEW_VECTOR_H

#include "view/view_data.h"

/* Computes the two directions in which `count` rows of `dim` numbers vary most, by orthogonal iteration: the
 * same bits for the same rows. axes: 2 x dim, of length 1; the largest number of each is positive. `mean`
 * gets the mean row. Fails only with LEAT_ENOMEM. */
int leat__view_pca(const float *rows, uint32_t count, uint32_t dim, float *mean, float *axes,
                   leat_error *err) LEAT_MUST_CHECK;

/* Loads c->plane: two coordinates per row, NaN without a vector. */
int leat__view_load_plane(leat__view_data *d, leat__view_column *c, leat_error *err) LEAT_MUST_CHECK;

typedef struct leat__view_near {
    uint32_t row;
    float cosine;
} leat__view_near;

/* Finds up to `most` other rows with the highest cosine, highest first. Exact, except when candidates
 * tie at 8 bits. LEAT_ENOENT when the row has no vector. */
int leat__view_similar(leat__view_data *d, leat__view_column *c, uint32_t row, leat__view_near *near,
                       uint32_t most, uint32_t *count, leat_error *err) LEAT_MUST_CHECK;

#endif
