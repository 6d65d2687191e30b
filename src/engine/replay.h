/* SPDX-License-Identifier: Apache-2.0
 *
 * Deterministic mode: a pool without threads. Virtual workers drive the real scheduler from
 * inside leat_flow_next, _wait and _close of the one calling thread. A seed decides which worker
 * moves next. So a run is a pure function of its seed, and tests can search thousands of
 * schedules.
 *
 * With a cost function time is virtual too: a call takes as long as the function returns, and the
 * controller ticks on that clock.
 */
#ifndef LEAT_ENGINE_REPLAY_H
#define LEAT_ENGINE_REPLAY_H

#include "engine/sched.h"

typedef struct leat__replay leat__replay;

/* Returns the duration in ns of process() of this stage for this task, at this time. */
typedef uint64_t (*leat__replay_cost)(void *cookie, const char *stage, const leat_task *task,
                                      uint64_t now_ns);

/* Opens a pool driven by `seed`. cost NULL: without time, any worker may finish next. */
int leat__replay_open(leat_pool **pool, const leat_pool_opts *opts, uint64_t seed, leat__replay_cost cost,
                      void *cookie, leat_error *err) LEAT_MUST_CHECK;

/* An actor outside the pool, such as a disk. It is called with a random number, at random times and when no
 * worker can move; it returns false when it has nothing to do. Not with virtual time. */
typedef bool (*leat__replay_outside)(void *cookie, uint32_t draw);
void leat__replay_outside_set(leat_pool *p, leat__replay_outside outside, void *cookie);

/* Makes one move; false when nothing can move (all wait for the consumer, or a deadlock). Called
 * without the pool's lock. */
bool leat__replay_step(leat_pool *p);

/* Simulates a consumer that is busy for this long; the workers continue meanwhile. */
void leat__replay_advance(leat_pool *p, uint64_t ns);

uint64_t leat__replay_now(const leat__replay *r);
uint64_t leat__replay_moves(const leat_pool *p);
void leat__replay_free(leat__replay **r);

/* pool.c */
int leat__pool_make(leat_pool **pool, const leat_pool_opts *opts, bool threads,
                    leat_error *err) LEAT_MUST_CHECK;

#endif
