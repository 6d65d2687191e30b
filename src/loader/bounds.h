/* SPDX-License-Identifier: Apache-2.0
 *
 * Maximum sizes of a batch and a run of a loader. The engine's proof that it cannot deadlock relies on these
 * numbers, so they must hold for every batch of every epoch. Computed once, at open.
 */
#ifndef LEAT_LOADER_BOUNDS_H
#define LEAT_LOADER_BOUNDS_H

#include "loader/setup.h"

/* Payload bytes of one ragged column: of the largest value, and most in a batch. */
typedef struct leat__ragged_bound {
    uint64_t value, batch;
} leat__ragged_bound;

/* Derives the bound from the largest sample: costs nothing, but includes bytes of other fields. */
leat__ragged_bound leat__ragged_assume(const leat_pack_info *info, uint32_t batch, bool repeats);

/* Measures the bound from the index entries of `field`, of all samples (indices NULL) or of these. The
 * largest value is exact; for a batch it is the sum of the `batch` largest, or `batch` times the largest when
 * samples may repeat. Damaged entries are ignored, because batches leave them out. */
int leat__ragged_measure(leat_pack *pack, uint32_t field, const uint64_t *indices, uint64_t count,
                         uint32_t batch, bool repeats, leat__ragged_bound *out,
                         leat_error *err) LEAT_MUST_CHECK;

/* Like leat__ragged_measure, for values whose size in bytes `value` computes from the index entry. Ignores
 * damaged and absent entries. */
typedef struct leat__measured {
    leat_pack *pack;
    uint32_t field;
    const uint64_t *indices; /* or NULL */
    uint64_t count;
    uint64_t (*value)(void *arg, const leat_pack_cell *cell);
    void *arg;
} leat__measured;
int leat__values_measure(const leat__measured *what, uint32_t batch, bool repeats, leat__ragged_bound *out,
                         leat_error *err) LEAT_MUST_CHECK;

/* Sets max_frame_bytes, max_run_bytes and floor of `l`, from the index if assumed bounds would
 * take a large part of the budget. LEAT_EBUDGET when the floor does not fit. */
int leat__loader_bound(leat_loader *l, bool repeats, leat_error *err) LEAT_MUST_CHECK;

/* Returns LEAT_EBUDGET when the loader cannot run with `limit` bytes. */
int leat__loader_check_floor(const leat_loader *l, uint64_t limit, leat_error *err) LEAT_MUST_CHECK;

/* Sets env.scratch_rest and env.scratch_most: the memory that the current budget leaves for one image,
 * besides everything else that one run at a time holds. A run with a large image starts when there is room
 * for it, or alone. */
void leat__loader_bound_scratch(leat_loader *l);

#endif
