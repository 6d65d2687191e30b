/* SPDX-License-Identifier: Apache-2.0
 *
 * How many tasks a lean flow takes in: for those who plan with it, too.
 */
#ifndef LEAT_ENGINE_LEAN_H
#define LEAT_ENGINE_LEAN_H

#include <stdint.h>

#define LEAT__DEPTH_FIRST 4 /* reads at once that a flow begins with */
#define LEAT__PREFETCH_FIRST 4 /* and results ahead of the consumer */

/* Twice what runs at once, so that nobody waits. */
static inline uint32_t leat__lean_window(uint32_t threads, uint32_t io_depth)
{
    return 2 + 2 * (threads + io_depth);
}

#endif
