/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine asks of a budget beyond include/leat/flow.h.
 *
 * Each running flow has a floor: the bytes with which it could run its tasks one after the
 * other. Ordinary requests are granted only below limit - floors; a request that a flow cannot
 * make progress without may use the floors too, up to the limit. That is the whole of the
 * deadlock argument (docs/internals/engine.md).
 */
#ifndef LEAT_ENGINE_BUDGET_H
#define LEAT_ENGINE_BUDGET_H

#include <leat/flow.h>
#include <stdbool.h>

#include "base/thread.h"

/* Told, without any lock of the budget's, that bytes came free after someone was refused. */
typedef struct leat__budget_listener {
    void (*freed)(void *arg);
    void *arg;
    struct leat__budget_listener *next;
} leat__budget_listener;

void leat__budget_ref(leat_budget *b);

void leat__budget_listen(leat_budget *b, leat__budget_listener *l);
void leat__budget_unlisten(leat_budget *b, leat__budget_listener *l);

/* Replaces a flow's floor; LEAT_EBUDGET when the floors no longer fit. */
int leat__budget_floor(leat_budget *b, uint64_t old_floor, uint64_t new_floor, const char *who,
                       leat_error *err) LEAT_MUST_CHECK;

/* Charges `bytes`, or answers false. `senior`: may use the floors. */
bool leat__budget_grant(leat_budget *b, leat_budget_cat cat, uint64_t bytes, bool senior);

/* Moves charges between categories and gives bytes back; the sum must not be positive. Does
 * not call listeners: answers whether the caller should, with leat__budget_notify, once it
 * holds no lock. */
bool leat__budget_apply(leat_budget *b, const int64_t delta[LEAT_BUDGET_CATS]);
void leat__budget_notify(leat_budget *b);

uint64_t leat__budget_limit(leat_budget *b);

#endif
