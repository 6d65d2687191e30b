/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of the thread that takes the batches: data_time, waiting in next(); prepare_time, its own work on a
 * batch before training; and batch_time, the rest of the time between calls. Written by the one thread that
 * calls next(), with two clock reads per step; any thread may read.
 */
#ifndef LEAT_LOADER_STEPS_H
#define LEAT_LOADER_STEPS_H

#include <stdatomic.h>
#include <stdbool.h>

#include <leat/loader.h>

#include "probe/meter.h"

typedef struct leat__steps {
    leat__meters *meters;
    leat__timer *data, *batch, *prepare;
    uint64_t enter_ns, leave_ns; /* leave_ns: when the last batch was delivered, or 0 */
    uint64_t waited_ns;          /* time of a wait that timed out and is continued */
    uint64_t prepared_ns;        /* prepare_time since the last batch was delivered */
    uint64_t step;               /* batches delivered in this epoch */
    bool short_epochs;           /* epochs have one or two batches, so every step counts */
    bool was_short;              /* the previous epoch was short */
    leat__timer_mark data_before, batch_before, prepare_before; /* at the start of this epoch */
    /* Read by any thread: earlier epochs and their batches; batches of this one; epoch starts after the
     * first, and the time waited at them, for the end of the previous epoch and for the first batch. */
    _Atomic uint64_t epochs, epoch_steps, this_steps, starts, start_ns;
    uint64_t end_ns; /* when the last call of the previous epoch, which returned no batch, ended */
} leat__steps;

int leat__steps_init(leat__steps *s, leat_error *err) LEAT_MUST_CHECK;
void leat__steps_reset(leat__steps *s);

/* Starts a new epoch, whose first step does not count unless epochs are short. No other thread may read
 * meanwhile. */
void leat__steps_epoch(leat__steps *s);
void leat__steps_enter(leat__steps *s);
/* `got`: next() returns a batch. Returns the time since enter. */
uint64_t leat__steps_leave(leat__steps *s, bool got);

/* Adds the time that the caller spent preparing the last batch. */
void leat__steps_prepared(leat__steps *s, uint64_t ns);

/* Fills the fields of `stats` about steps: of this epoch, or of `all`. */
void leat__steps_read(const leat__steps *s, bool all, leat_loader_stats *stats);

#endif
