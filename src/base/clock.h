/* SPDX-License-Identifier: Apache-2.0
 *
 * Clocks in nanoseconds.
 */
#ifndef LEAT_BASE_CLOCK_H
#define LEAT_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define LEAT_NS_PER_S UINT64_C(1000000000)
#define LEAT_NS_PER_MS UINT64_C(1000000)

uint64_t leat__clock_ns(void);         /* monotonic */
uint64_t leat__clock_thread_ns(void);  /* CPU time of the calling thread */
uint64_t leat__clock_process_ns(void); /* CPU time of the process */
uint64_t leat__clock_wall_ns(void);    /* since 1970, UTC */
void leat__sleep_ns(uint64_t ns);      /* sleeps the full time, even when signals interrupt it */

/* Returns the time at which a wait that began at begin_ns ends. UINT64_MAX (never) for a negative timeout and
 * for one past the range of the clock. */
static inline uint64_t leat__clock_deadline(uint64_t begin_ns, int64_t timeout_ms)
{
    if (timeout_ms < 0 || (uint64_t)timeout_ms > (UINT64_MAX - begin_ns) / LEAT_NS_PER_MS) return UINT64_MAX;
    return begin_ns + (uint64_t)timeout_ms * LEAT_NS_PER_MS;
}

#endif
