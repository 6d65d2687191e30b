/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller: every 250 ms looks at each flow and moves its I/O depth, its threads or its
 * prefetch, one at a time, saying why in the log and to the tuner. Pinned numbers are left
 * alone.
 */
#ifndef LEAT_ENGINE_CONTROLLER_H
#define LEAT_ENGINE_CONTROLLER_H

#include "engine/sched.h"

#define LEAT__CONTROLLER_NS (250 * LEAT_NS_PER_MS)

/* Starts the pool's controller thread unless it runs (or the pool is a replay). Locked. */
int leat__controller_start(leat_pool *p, leat_error *err) LEAT_MUST_CHECK;

/* One look at one flow, one change at most. Locked. */
void leat__controller_step(leat_flow *f, uint64_t now);

/* Threads of the I/O lane that stage s needs. */
uint32_t leat__io_threads(const leat__stage *s);

/* Makes the knobs' values count. Locked. */
void leat__knobs_apply(leat_flow *f);

#endif
