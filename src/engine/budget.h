/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's internal interface to a budget, beyond include/leat/flow.h.
 *
 * Each running flow has a floor: the bytes it needs to run its tasks one at a time. Ordinary
 * requests are granted only below limit - floors. A request that a flow needs to make progress
 * may also use the floors, up to the limit. This is why there is no deadlock
 * (docs/internals/engine.md).
 */
#ifndef LEAT_ENGINE_BUDGET_H
#define LEAT_ENGINE_BUDGET_H

#include <leat/flow.h>
#include <stdbool.h>

#include "base/thread.h"

/* `freed` is called when bytes were released after a request was refused. No lock of the budget is held. */
typedef struct leat__budget_listener {
    void (*freed)(void *arg);
    void *arg;
    struct leat__budget_listener *next;
} leat__budget_listener;

/* An object that holds bytes only for later reuse (caches, spare blocks). `trim` releases up to
 * about `bytes` and returns how many it released. It is called without any lock of the budget or
 * of a pool. */
typedef struct leat__budget_keeper {
    uint64_t (*trim)(void *arg, uint64_t bytes);
    void *arg;
    struct leat__budget_keeper *next;
} leat__budget_keeper;

void leat__budget_ref(leat_budget *b);

void leat__budget_keep(leat_budget *b, leat__budget_keeper *k);
void leat__budget_unkeep(leat_budget *b, leat__budget_keeper *k); /* waits for a running trim */
/* Asks the keepers for `bytes`; returns how many they released. Call it without any lock that a release
 * takes. */
uint64_t leat__budget_reclaim(leat_budget *b, uint64_t bytes);
/* Return the bytes missing for a senior grant of `bytes`, or for raising `old_floor` to `floor`. */
uint64_t leat__budget_lacking(leat_budget *b, uint64_t bytes);
uint64_t leat__budget_floor_lacking(leat_budget *b, uint64_t old_floor, uint64_t floor);
/* Counts requests outside of flows: they hold bytes that keepers can release when the requests have ended. */
void leat__budget_expect(leat_budget *b, int32_t requests);
/* True when a senior grant of `bytes` is impossible although only this flow (`charged` bytes) and
 * keepers hold bytes, and no request is expected to end or ended after keepers were last asked. */
bool leat__budget_hopeless(leat_budget *b, uint64_t charged, uint64_t bytes);

void leat__budget_listen(leat_budget *b, leat__budget_listener *l);
void leat__budget_unlisten(leat_budget *b, leat__budget_listener *l);

/* Replaces a flow's floor; LEAT_EBUDGET when the floors no longer fit. */
int leat__budget_floor(leat_budget *b, uint64_t old_floor, uint64_t new_floor, const char *who,
                       leat_error *err) LEAT_MUST_CHECK;
/* Like leat__budget_floor, but asks the keepers for missing bytes until they have nothing left. */
int leat__budget_take_floor(leat_budget *b, uint64_t old_floor, uint64_t new_floor, const char *who,
                            leat_error *err) LEAT_MUST_CHECK;

/* Charges `bytes`, or returns false. `senior`: may use the floors. */
bool leat__budget_grant(leat_budget *b, leat_budget_cat cat, uint64_t bytes, bool senior);

/* Like leat_budget_try, for memory that a flow still has charged and releases right afterwards. Until then
 * the bytes are charged twice, so that no other flow gets them in between; the peak counts them once. Refused
 * if less than `spare` bytes would be left for tasks. */
int leat__budget_try_twice(leat_budget *b, leat_budget_cat cat, uint64_t bytes,
                           uint64_t spare) LEAT_MUST_CHECK;

/* Marks `bytes` that leat_budget_try has charged as memory of tasks in flight; negative: no longer. They
 * become free when the tasks end, so a flow's floor needs no room beside them. */
void leat__budget_lend(leat_budget *b, int64_t bytes);

/* Count allocated memory and its peak. Flows are charged before they allocate, so that they never wait in the
 * middle of a task. So `used` is larger than this by the bytes that are only reserved. leat_budget_try and
 * _charge count as an allocation, leat_budget_release as freeing. Other owners call leat__budget_allocated
 * with the bytes they allocated, negative for bytes they freed. */
void leat__budget_allocated(leat_budget *b, int64_t bytes);
uint64_t leat__budget_memory(leat_budget *b, uint64_t *peak);
/* Like leat_budget_release, for memory that a task takes over and has already charged. */
void leat__budget_reuse(leat_budget *b, leat_budget_cat cat, uint64_t bytes);

/* Moves charges between categories and releases bytes; the sum must not be positive. Does not
 * call listeners. Returns true when the caller must call leat__budget_notify once it holds no
 * lock. */
bool leat__budget_apply(leat_budget *b, const int64_t delta[LEAT_BUDGET_CATS]);
void leat__budget_notify(leat_budget *b);

uint64_t leat__budget_limit(leat_budget *b);
uint64_t leat__budget_used(leat_budget *b);

#endif
