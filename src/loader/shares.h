/* SPDX-License-Identifier: Apache-2.0
 *
 * How several sources (packs) share the positions of an epoch: a pure function from (seed, epoch,
 * position) to a source and a sample of it.
 *
 * Each source has a number of draws per epoch. Positions are assigned to sources in stretches. At the end of
 * each stretch, every source has its share of the first t positions, rounded to a whole number (Webster's
 * method). Inside a stretch the sources are shuffled.
 *
 *   shuffled     one stretch is the whole epoch (quasi: 4096 positions, so that pages are read together)
 *   stratified   one stretch is one global batch: each has the proportions; what rounding takes from one
 * batch, a later one gets single       whole global batches are dealt instead of positions sequential   one
 * stretch is one position: nothing is random
 *
 * Draws without replacement continue across epochs. Each pass over a source has a new keyed order, so that
 * all its samples have come equally often, plus or minus one.
 *
 * Set up for one epoch at a time and then constant: any thread may call.
 */
#ifndef LEAT_LOADER_SHARES_H
#define LEAT_LOADER_SHARES_H

#include <stdbool.h>

#include <leat/loader.h>

#include "base/error.h"

typedef struct leat__share_source {
    uint64_t first, size; /* its range of places among all samples */
    uint64_t draws;       /* per epoch */
    uint64_t pages;       /* quasi: pages of this source */
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
    uint32_t streams, window_pages; /* quasi: of all sources together */
} leat__shares_opts;

typedef struct leat__shares leat__shares;

/* Computes the draws of each source of `size[i]` samples: by weight in an epoch of `epoch` positions (largest
 * remainder), or by repeat and choose. LEAT_EINVAL: err names the pack. */
int leat__shares_draws(const leat_loader_source *given, const uint64_t *size, uint32_t count, uint64_t epoch,
                       uint64_t *draws, leat_error *err) LEAT_MUST_CHECK;

/* Opens shares. With single-source batches, draws are rounded to whole batches; leat__shares_count returns
 * the positions that remain. */
int leat__shares_open(leat__shares **s, const leat__shares_opts *opts, leat_error *err) LEAT_MUST_CHECK;
void leat__shares_close(leat__shares **s);
void leat__shares_epoch(leat__shares *s,
                        uint64_t epoch); /* cannot fail; no other thread may use it meanwhile */

uint64_t leat__shares_count(const leat__shares *s); /* positions of an epoch */
/* With single-source batches: returns the samples per epoch that do not fill whole batches. *packs gets the
 * number of packs that are left out of every epoch. */
uint64_t leat__shares_left_out(const leat__shares *s, uint32_t *packs);

/* Looks up `n` positions first, first + step …: the places of their samples. A sample that comes several
 * times in an epoch gets another salt each time (0 the first time), so that it is augmented differently. */
void leat__shares_fill(const leat__shares *s, uint64_t first, uint64_t step, uint32_t n, uint64_t *places,
                       uint64_t *salts);

/* Returns the places of source `number`, from which replacements are drawn. */
void leat__shares_range(const leat__shares *s, uint32_t number, uint64_t *first, uint64_t *size);

uint64_t leat__shares_memory(const leat__shares *s);

#endif
