/* SPDX-License-Identifier: Apache-2.0
 *
 * A crew: threads that run one function together and wait for each other. For many short
 * steps with a barrier after each, where the tasks of a flow would cost more than the
 * work.
 */
#ifndef LEAT_CURATE_CREW_H
#define LEAT_CURATE_CREW_H

#include <stdint.h>

#include "base/error.h"

typedef struct leat__crew leat__crew;

/* Called by each member, 0 to members - 1. */
typedef void (*leat__crew_work)(void *cookie, uint32_t member, uint32_t members);

/* threads 0 = usable CPUs. The calling thread is one of them. */
int leat__crew_open(leat__crew **crew, uint32_t threads, leat_error *err) LEAT_MUST_CHECK;
void leat__crew_close(leat__crew **crew);
uint32_t leat__crew_size(const leat__crew *crew);

/* Runs `work` on all members and returns when all have finished. One caller at a time. */
void leat__crew_run(leat__crew *crew, leat__crew_work work, void *cookie);

#endif
