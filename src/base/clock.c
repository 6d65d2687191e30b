/* SPDX-License-Identifier: Apache-2.0
 *
 * Clocks. clock_gettime cannot fail for these clocks on Linux.
 */
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

static uint64_t read_clock(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * LEAT_NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t leat__clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t leat__clock_thread_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t leat__clock_process_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t leat__clock_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

void leat__sleep_ns(uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / LEAT_NS_PER_S), .tv_nsec = (long)(ns % LEAT_NS_PER_S)};
    while (nanosleep(&t, &t) != 0 && errno == EINTR) {
    }
}
