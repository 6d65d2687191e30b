/* SPDX-License-Identifier: Apache-2.0
 *
 * How several sources (packs) share the positions of an epoch: a pure function from (seed, epoch,
 * position) to a source and a sample of it.
 *
 * Each source has a number of draws per epoch. Positions are dealt in stretches. At the end of
 * each stretch, the first t positions contain of each source the whole number nearest to its
 * share (Webster's method: seats of a parliament); inside a stretch the sources are shuffled.
 *
 *   shuffled     one stretch is the whole epoch (quasi: 4096 positions, so that pages are read together)
 *   stratified   one stretch is one global batch: each has the proportions, and what a batch lacks,
 *                a later one gets
 *   single       whole global batches are dealt instead of positions
 *   sequential   one stretch is one position: nothing is random
 *
 * Draws of a source without replacement continue from epoch to epoch: its samples in a new keyed
 * order on every pass, so that all have come equally often, plus or minus one.
 *
 * Set up for one epoch at a time and then constant: any thread may ask.
 */
#ifndef LEAT_LOADER_SHARES_H
#define LEAT_LOADER_SHARES_H

#include <stdbool.h>

#include <leat/loader.h>

#include "base/error.h"

typedef struct leat__share_source {
    uint64_t first, size; /* its samples: places of the whole */
    uint64_t draws;       /* per epoch */
    uint64_t pages;       /* quasi: of this source */
    const uint32_t *page_samples;
} leat__share_source;

typedef struct leat__shares_opts {
    leat_order order;
    uint64_t seed;
    const leat__share_source *sources; /* copied; page_samples must outlive the shares */
    uint32_t count;
    leat_mix_batches batches;
    bool replacement;
    uint64_t global_batch;
    uint32_t streams, window_pages; /* quasi, of all sources together */
} leat__shares_opts;

typedef struct leat__shares leat__shares;

/* The draws of each source of `size[i]` samples: by weight of an epoch of `epoch` positions (largest
 * remainder), or as often as repeat and choose say. LEAT_EINVAL names the pack. */
int leat__shares_draws(const leat_loader_source *given, const uint64_t *size, uint32_t count, uint64_t epoch,
                       uint64_t *draws, leat_error *err) LEAT_MUST_CHECK;

/* With single-source batches, draws are rounded to whole batches: leat__shares_count says what is left. */
int leat__shares_open(leat__shares **s, const leat__shares_opts *opts, leat_error *err) LEAT_MUST_CHECK;
void leat__shares_close(leat__shares **s);
void leat__shares_epoch(leat__shares *s, uint64_t epoch); /* cannot fail; no other thread may
                                                           * be asking */

uint64_t leat__shares_count(const leat__shares *s); /* positions of an epoch */
/* Batches of one pack each: samples of an epoch that whole batches leave out; *packs gets how
 * many packs are left out completely, in every epoch. */
uint64_t leat__shares_left_out(const leat__shares *s, uint32_t *packs);

/* Positions first, first + step …, `n` of them: the places of their samples. A sample that comes
 * several times in an epoch gets another salt each time (0 the first), so that it is augmented
 * differently. */
void leat__shares_fill(const leat__shares *s, uint64_t first, uint64_t step, uint32_t n, uint64_t *places,
                       uint64_t *salts);

/* Places of source `number`, from which replacements are drawn. */
void leat__shares_range(const leat__shares *s, uint32_t number, uint64_t *first, uint64_t *size);

uint64_t leat__shares_memory(const leat__shares *s);

#endif
