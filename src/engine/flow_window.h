/* SPDX-License-Identifier: Apache-2.0
 *
 * The number of tasks that a flow with the option `lean` admits. Shared with the planner.
 */
#ifndef LEAT_ENGINE_FLOW_WINDOW_H
#define LEAT_ENGINE_FLOW_WINDOW_H

#include <stdint.h>

#define LEAT__DEPTH_FIRST 4    /* initial reads in flight of a flow */
#define LEAT__PREFETCH_FIRST 4 /* initial results prefetched */

/* Returns twice the number of tasks that run at once, so that no thread waits for work. */
static inline uint32_t leat__flow_window(uint32_t threads, uint32_t io_depth)
{
    return 2 + 2 * (threads + io_depth);
}

#endif
