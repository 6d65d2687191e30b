/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches of images of similar shape, as an order: a pure function from (seed, epoch, position) to a sample.
 * Samples are sorted by shape and split into buckets. In every epoch each bucket is shuffled and split into
 * full global batches. The leftover samples of all buckets are concatenated in the order of the buckets, and
 * split into batches too. All batches come in random order, a smaller last one at the end. Every sample comes
 * once.
 *
 * Set up for one epoch at a time and then constant: any thread may ask.
 */
#ifndef LEAT_LOADER_BUCKETS_H
#define LEAT_LOADER_BUCKETS_H

#include <leat/loader.h>

#include "base/error.h"

typedef struct leat__buckets leat__buckets;

/* Opens buckets: bucket i has the places ends[i - 1] … ends[i] - 1 (copied); the last one ends at the number
 * of samples. */
int leat__buckets_open(leat__buckets **b, uint64_t seed, uint64_t global_batch, const uint64_t *ends,
                       uint32_t count, leat_error *err) LEAT_MUST_CHECK;
void leat__buckets_close(leat__buckets **b);
void leat__buckets_epoch(leat__buckets *b,
                         uint64_t epoch); /* cannot fail; no other thread may use it meanwhile */
uint64_t leat__buckets_at(const leat__buckets *b, uint64_t position);
uint64_t leat__buckets_memory(const leat__buckets *b);

/* Sorts `count` samples by their values, equal ones by number, and finds the ends of buckets. Buckets end at
 * `edges` (a value on an edge belongs to the bucket above); without edges there are `buckets` of equal size.
 * Empty buckets are omitted. Free *ends with leat__free. */
int leat__buckets_sort(uint64_t *samples, const double *values, uint64_t count, const double *edges,
                       uint32_t buckets, uint64_t **ends, uint32_t *end_count,
                       leat_error *err) LEAT_MUST_CHECK;

#endif
