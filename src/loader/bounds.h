/* SPDX-License-Identifier: Apache-2.0
 *
 * Maximum sizes of a batch and a run of a loader. The engine's proof that it cannot deadlock
 * relies on these numbers, so they hold for every batch of every epoch. Runs once, at open.
 */
#ifndef LEAT_LOADER_BOUNDS_H
#define LEAT_LOADER_BOUNDS_H

#include "loader/setup.h"

/* Payload bytes of one ragged column: of the largest value, and of the values of any batch. */
typedef struct leat__ragged_bound {
    uint64_t value, batch;
} leat__ragged_bound;

/* From the largest sample of the pack: costs nothing, but includes bytes of other fields. */
leat__ragged_bound leat__ragged_assume(const leat_pack_info *info, uint32_t batch, bool repeats);

/* From the index entries of `field`, of all samples (indices NULL) or of these: exact for the
 * largest value; for a batch the sum of the `batch` largest, or `batch` times the largest when
 * samples may repeat. Damaged entries are ignored, because batches leave them out. */
int leat__ragged_measure(leat_pack *pack, uint32_t field, const uint64_t *indices, uint64_t count,
                         uint32_t batch, bool repeats, leat__ragged_bound *out,
                         leat_error *err) LEAT_MUST_CHECK;

/* The same for values whose bytes are computed, for each valid entry that has a value. */
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

/* LEAT_EBUDGET when the loader cannot run with `limit` bytes. */
int leat__loader_check_floor(const leat_loader *l, uint64_t limit, leat_error *err) LEAT_MUST_CHECK;

/* Sets env.scratch_most: the memory for one image that the current budget leaves beside
 * everything else a serial run holds. A run with a large image enters when there is room for it,
 * or alone. */
void leat__loader_bound_scratch(leat_loader *l);

#endif
