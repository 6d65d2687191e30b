/* SPDX-License-Identifier: Apache-2.0
 *
 * Changing a loader that lives (leat_loader_set): the parts that depend on pipelines and batch size are made
 * anew beside the old ones, which run on, and take their place where an epoch begins.
 */
#ifndef LEAT_LOADER_CHANGE_H
#define LEAT_LOADER_CHANGE_H

#include "loader/setup.h"

/* A copy of the options that pipelines, shape and bounds are made from; l->opts has its defaults. */
int leat__asked_open(leat__asked **k, const leat_loader *l, const leat_loader_opts *given, bool repeats,
                    leat_error *err) LEAT_MUST_CHECK;
void leat__asked_close(leat__asked **k);

/* Makes the parts and lets them wait in l->next, in place of what waits there. */
int leat__change_make(leat_loader *l, const leat_loader_change *c, leat_error *err) LEAT_MUST_CHECK;

/* Between epochs: puts what waits in its place. Cannot fail. */
void leat__change_apply(leat_loader *l);
void leat__change_drop(leat_loader *l); /* what waits */

/* The loader as it will be when what waits is in its place. */
static inline const leat_loader *leat__change_seen(const leat_loader *l)
{
    return l->next != NULL ? l->next : l;
}

#endif
