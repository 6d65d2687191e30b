/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes an open loader (leat_loader_set): the parts that depend on pipelines and batch size are
 * built beside the old ones, which keep running, and replace them at the start of an epoch.
 */
#ifndef LEAT_LOADER_CHANGE_H
#define LEAT_LOADER_CHANGE_H

#include "loader/setup.h"

/* Copies the options from which pipelines, shape and bounds are built, with the defaults of l->opts. */
int leat__asked_open(leat__asked **k, const leat_loader *l, const leat_loader_opts *given, bool repeats,
                     leat_error *err) LEAT_MUST_CHECK;
void leat__asked_close(leat__asked **k);

/* Builds the parts and stores them in l->next, replacing a pending change. */
int leat__change_make(leat_loader *l, const leat_loader_change *c, leat_error *err) LEAT_MUST_CHECK;

/* Between epochs: applies the pending change. Cannot fail. */
void leat__change_apply(leat_loader *l);
void leat__change_drop(leat_loader *l); /* drops the pending change */

/* Returns the loader as it will be after the pending change. */
static inline const leat_loader *leat__change_seen(const leat_loader *l)
{
    return l->next != NULL ? l->next : l;
}

#endif
