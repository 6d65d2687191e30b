/* SPDX-License-Identifier: Apache-2.0
 *
 * Images of different size in one batch (collate). The output size of a pipeline follows from the
 * size in the index and the drawn recipe. So the sizes of all rows are known when a batch is
 * planned, and every row has its place before it is decoded.
 */
#ifndef LEAT_LOADER_SIZES_H
#define LEAT_LOADER_SIZES_H

#include "loader/bounds.h"

/* Checks that the options are compatible; LEAT_EINVAL or LEAT_ENOTSUP. */
int leat__sizes_check(const leat_loader_opts *o, leat_error *err) LEAT_MUST_CHECK;

/* Turns a column with name and element type into one of images of different size, those of image column `of`.
 * `channels` per pixel; 0 = a mask, without that dimension. `fill` is the padding value in a padded batch. */
int leat__sizes_column(leat__column *c, const leat_loader_opts *o, uint32_t of, uint32_t channels,
                       bool channels_last, double fill, leat_error *err) LEAT_MUST_CHECK;

/* Once all images have their columns: refuses options that need one size. Collate pad: appends
 * the columns NAME_size and, if requested, NAME_mask of each image; the shape has room for them. */
int leat__sizes_extra(const leat_loader_opts *o, leat__pipeline *const *images, uint32_t count,
                      leat__shape *shape, leat_error *err) LEAT_MUST_CHECK;

/* Allocates the feed's memory for the sizes of a batch; the shape must be set. */
int leat__sizes_open(leat_loader *l, leat_error *err) LEAT_MUST_CHECK;

/* The batch being planned: computes the sizes of its rows and sets the feed's payload bytes of
 * their columns. */
int leat__sizes_plan(leat_loader *l, uint32_t rows, leat_error *err) LEAT_MUST_CHECK;
/* Copies the planned sizes to the frame opened for the batch. */
void leat__sizes_lay(const leat_loader *l, leat__frame *f);

/* Sorts the samples of the loader (becoming its indices) by the shape of their first image;
 * *ends, for leat__free, has the ends of the buckets. */
int leat__sizes_buckets(leat_loader *l, const leat_loader_opts *given, uint64_t **ends, uint32_t *count,
                        leat_error *err) LEAT_MUST_CHECK;

/* Computes the payload bytes of a column with images of different size: most of a row, and most of a batch of
 * `rows` rows, whatever is drawn. */
int leat__sizes_bound(leat_loader *l, uint32_t column, uint32_t rows, bool repeats, leat__ragged_bound *out,
                      leat_error *err) LEAT_MUST_CHECK;

#endif
