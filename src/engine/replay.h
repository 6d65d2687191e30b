/* SPDX-License-Identifier: Apache-2.0
 *
 * Deterministic mode: a pool without threads. Virtual workers drive the real scheduler from
 * inside leat_flow_next, _wait and _close of the one calling thread; a seed decides who moves
 * next, so a run is a pure function of its seed and thousands of schedules can be searched.
 *
 * With a cost function time is virtual too: a call lasts as long as the function says, and
 * the controller ticks on that clock.
 */
#ifndef LEAT_ENGINE_REPLAY_H
#define LEAT_ENGINE_REPLAY_H

#include "engine/sched.h"

typedef struct leat__replay leat__replay;

/* ns that process() of this stage would have taken for this task, at this time. */
typedef uint64_t (*leat__replay_cost)(void *cookie, const char *stage, const leat_task *task,
                                      uint64_t now_ns);

/* A pool driven by `seed`. cost NULL: no notion of time, any worker may finish next. */
int leat__replay_open(leat_pool **pool, const leat_pool_opts *opts, uint64_t seed,
                      leat__replay_cost cost, void *cookie, leat_error *err) LEAT_MUST_CHECK;

/* Something outside the pool that moves too, such as a disk: it is asked, with a number to draw
 * from, at random and when no worker can move; false = it has nothing to do. Without time only. */
typedef bool (*leat__replay_outside)(void *cookie, uint32_t draw);
void leat__replay_outside_set(leat_pool *p, leat__replay_outside outside, void *cookie);

/* One move; false when nothing can move (all wait for the consumer, or it is a deadlock).
 * Called without the pool's lock. */
bool leat__replay_step(leat_pool *p);

/* The consumer is busy for this long: the workers go on meanwhile. */
void leat__replay_advance(leat_pool *p, uint64_t ns);

uint64_t leat__replay_now(const leat__replay *r);
uint64_t leat__replay_moves(const leat_pool *p);
void leat__replay_free(leat__replay **r);

/* pool.c */
int leat__pool_make(leat_pool **pool, const leat_pool_opts *opts, bool threads, leat_error *err)
    LEAT_MUST_CHECK;

#endif
