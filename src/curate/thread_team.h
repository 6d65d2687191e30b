/* SPDX-License-Identifier: Apache-2.0
 *
 * A team of threads that run one function together and wait for each other. Meant for many short steps
 * with a barrier after each, where tasks of a flow would cost more than the work.
 */
#ifndef LEAT_CURATE_THREAD_TEAM_H
#define LEAT_CURATE_THREAD_TEAM_H

#include <stdint.h>

#include "base/error.h"

typedef struct leat__thread_team leat__thread_team;

/* Called by each member, with its number from 0 to members - 1. */
typedef void (*leat__thread_team_work)(void *cookie, uint32_t member, uint32_t members);

/* Opens a team. threads 0 = usable CPUs; the calling thread is one of them. */
int leat__thread_team_open(leat__thread_team **crew, uint32_t threads, leat_error *err) LEAT_MUST_CHECK;
void leat__thread_team_close(leat__thread_team **crew);
uint32_t leat__thread_team_size(const leat__thread_team *crew);

/* Runs `work` on all members and returns when all have finished. One caller at a time. */
void leat__thread_team_run(leat__thread_team *crew, leat__thread_team_work work, void *cookie);

#endif
