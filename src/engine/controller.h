/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller: every 250 ms it checks each flow and adjusts its I/O depth, threads or
 * prefetch, one at a time. It reports the reason to the log and to the tuner. Pinned settings are
 * not changed.
 */
#ifndef LEAT_ENGINE_CONTROLLER_H
#define LEAT_ENGINE_CONTROLLER_H

#include "engine/sched.h"

#define LEAT__CONTROLLER_NS (250 * LEAT_NS_PER_MS)

/* Starts the pool's controller thread unless it is running or the pool is a replay. Locked. */
int leat__controller_start(leat_pool *p, leat_error *err) LEAT_MUST_CHECK;

/* Runs one tick of one flow; makes at most one change. Call it with the pool's lock held ("locked"). */
void leat__controller_step(leat_flow *f, uint64_t now);

/* Returns how many threads of the I/O lane stage s needs. */
uint32_t leat__io_threads(const leat__stage *s);

/* Applies the knobs' values. Locked. */
void leat__knobs_apply(leat_flow *f);

#endif
