/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of injected failures. Process-wide and atomic; any thread may call.
 */
#include "base/fault.h"

#include <signal.h>
#include <stdatomic.h>

typedef struct plan {
    _Atomic uint64_t asked;
    _Atomic uint64_t nth; /* 0: never fails */
    atomic_bool for_ever;
    atomic_bool kills;
} plan;

static plan plans[LEAT__FAULT_KINDS];

#ifdef LEAT_FAULT_INJECTION
bool leat__fault_hit(leat__fault_kind kind)
{
    plan *p = &plans[kind];
    uint64_t call = atomic_fetch_add_explicit(&p->asked, 1, memory_order_relaxed) + 1;
    uint64_t nth = atomic_load_explicit(&p->nth, memory_order_relaxed);
    if (nth == 0) return false;
    if (call == nth && atomic_load(&p->kills)) (void)raise(SIGKILL);
    return call == nth || (call > nth && atomic_load(&p->for_ever));
}
#endif

bool leat__fault_available(void)
{
#ifdef LEAT_FAULT_INJECTION
    return true;
#else
    return false;
#endif
}

void leat__fault_arm(leat__fault_kind kind, uint64_t nth, bool for_ever)
{
    atomic_store(&plans[kind].asked, 0);
    atomic_store(&plans[kind].for_ever, for_ever);
    atomic_store(&plans[kind].kills, false);
    atomic_store(&plans[kind].nth, nth);
}

void leat__fault_arm_kill(leat__fault_kind kind, uint64_t nth)
{
    leat__fault_arm(kind, 0, false);
    atomic_store(&plans[kind].kills, true);
    atomic_store(&plans[kind].nth, nth);
}

void leat__fault_disarm(void)
{
    for (int kind = 0; kind < LEAT__FAULT_KINDS; kind++) {
        atomic_store(&plans[kind].nth, 0);
        atomic_store(&plans[kind].asked, 0);
    }
}

uint64_t leat__fault_count(leat__fault_kind kind)
{
    return atomic_load(&plans[kind].asked);
}
