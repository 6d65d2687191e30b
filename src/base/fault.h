/* SPDX-License-Identifier: Apache-2.0
 *
 * Injected failures, for tests. Every place that can fail for a reason outside leat calls LEAT_FAULT(kind)
 * first. In builds without -Dfault=true the call costs nothing.
 *
 * A test arms one kind: the n-th call (from 1) fails, either once or every time from then on. With n = 0
 * calls are only counted, so that a test can first count them and then fail each one in turn.
 */
#ifndef LEAT_BASE_FAULT_H
#define LEAT_BASE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum leat__fault_kind {
    LEAT__FAULT_ALLOC,
    LEAT__FAULT_READ,
    LEAT__FAULT_WRITE,
    LEAT__FAULT_THREAD,
    LEAT__FAULT_MAP,
    LEAT__FAULT_SYNC, /* fsync, rename and the like */
    LEAT__FAULT_RING, /* io_uring_enter */
    LEAT__FAULT_KINDS
} leat__fault_kind;

#ifdef LEAT_FAULT_INJECTION
bool leat__fault_hit(leat__fault_kind kind);
#define LEAT_FAULT(kind) leat__fault_hit(kind)
#else
#define LEAT_FAULT(kind) false
#endif

/* Arm `kind` (n = 0: count only), disarm all kinds, and return how often `kind` was called since. */
void leat__fault_arm(leat__fault_kind kind, uint64_t nth, bool for_ever);
/* Makes the n-th call kill the process, as kill -9 would. */
void leat__fault_arm_kill(leat__fault_kind kind, uint64_t nth);
void leat__fault_disarm(void);
uint64_t leat__fault_count(leat__fault_kind kind);

/* True in builds with -Dfault=true. */
bool leat__fault_available(void);

#endif
