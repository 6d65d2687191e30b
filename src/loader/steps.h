/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of the thread that takes the batches: data_time, waiting in next(); prepare_time, its
 * own work on a batch before training; and batch_time, the rest between the calls. Written by the
 * one thread that calls next(), two clock reads per step; read by any.
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
    uint64_t enter_ns, leave_ns; /* leave_ns: of the last batch delivered, or 0 */
    uint64_t waited_ns;          /* of a wait that timed out and is continued */
    uint64_t prepared_ns;        /* since the last batch was delivered */
    uint64_t step;               /* batches delivered in this epoch */
    bool short_epochs;           /* of one or two batches: then every step counts */
    bool was_short;              /* the epoch before */
    leat__timer_mark data_before, batch_before, prepare_before; /* at the begin of this epoch */
    /* Read by any thread. Epochs before this one, their batches; batches of this one; starts after the first
     * one, and the time waited there: for the end of the epoch before and for the first batch. */
    _Atomic uint64_t epochs, epoch_steps, this_steps, starts, start_ns;
    uint64_t end_ns; /* of the last call of the epoch before, which found no batch */
} leat__steps;

int leat__steps_init(leat__steps *s, leat_error *err) LEAT_MUST_CHECK;
void leat__steps_reset(leat__steps *s);

/* A new epoch: its first step does not count, unless epochs are too short for any other. Not while another
 * thread reads. */
void leat__steps_epoch(leat__steps *s);
void leat__steps_enter(leat__steps *s);
/* `got`: a batch is returned. Returns the time since enter. */
uint64_t leat__steps_leave(leat__steps *s, bool got);

/* The caller spent this long on preparing the last batch. */
void leat__steps_prepared(leat__steps *s, uint64_t ns);

/* Fills what the stats have about steps: of this epoch, or of `all`. */
void leat__steps_read(const leat__steps *s, bool all, leat_loader_stats *stats);

#endif
