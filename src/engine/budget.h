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

/* Someone who holds bytes only because they may be useful later (caches, spare blocks). `trim` is
 * called without any lock of the budget's or a pool's; it releases up to about `bytes` and answers
 * how many it released. */
typedef struct leat__budget_keeper {
    uint64_t (*trim)(void *arg, uint64_t bytes);
    void *arg;
    struct leat__budget_keeper *next;
} leat__budget_keeper;

void leat__budget_ref(leat_budget *b);

void leat__budget_keep(leat_budget *b, leat__budget_keeper *k);
void leat__budget_unkeep(leat_budget *b, leat__budget_keeper *k); /* waits for a trim that runs */
/* Asks the keepers for `bytes`; answers what they released. Holds no lock that a release takes. */
uint64_t leat__budget_reclaim(leat_budget *b, uint64_t bytes);
/* Bytes missing for a senior grant of `bytes`; for a floor of `floor` instead of `old_floor`. */
uint64_t leat__budget_lacking(leat_budget *b, uint64_t bytes);
uint64_t leat__budget_floor_lacking(leat_budget *b, uint64_t old_floor, uint64_t floor);
/* True when a senior grant of `bytes` is impossible though only this flow (`charged` bytes) and
 * keepers hold anything. */
bool leat__budget_hopeless(leat_budget *b, uint64_t charged, uint64_t bytes);

void leat__budget_listen(leat_budget *b, leat__budget_listener *l);
void leat__budget_unlisten(leat_budget *b, leat__budget_listener *l);

/* Replaces a flow's floor; LEAT_EBUDGET when the floors no longer fit. */
int leat__budget_floor(leat_budget *b, uint64_t old_floor, uint64_t new_floor, const char *who,
                       leat_error *err) LEAT_MUST_CHECK;
/* The same, and asks the keepers for what is missing until they have nothing left. */
int leat__budget_take_floor(leat_budget *b, uint64_t old_floor, uint64_t new_floor, const char *who,
                            leat_error *err) LEAT_MUST_CHECK;

/* Charges `bytes`, or answers false. `senior`: may use the floors. */
bool leat__budget_grant(leat_budget *b, leat_budget_cat cat, uint64_t bytes, bool senior);

/* Moves charges between categories and gives bytes back; the sum must not be positive. Does
 * not call listeners: answers whether the caller should, with leat__budget_notify, once it
 * holds no lock. */
bool leat__budget_apply(leat_budget *b, const int64_t delta[LEAT_BUDGET_CATS]);
void leat__budget_notify(leat_budget *b);

uint64_t leat__budget_limit(leat_budget *b);
uint64_t leat__budget_used(leat_budget *b);

#endif
