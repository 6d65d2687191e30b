/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of an examination: a deadline, and a callback that returns whether the user wants to stop. Every
 * loop that may run longer than some milliseconds checks it. One thread.
 */
#ifndef LEAT_DOCTOR_TIME_LIMIT_H
#define LEAT_DOCTOR_TIME_LIMIT_H

#include <stdint.h>

#include <leat/error.h>

typedef struct leat__time_limit {
    uint64_t until_ns;         /* as leat__clock_ns; UINT64_MAX = no deadline */
    int (*stop)(void *cookie); /* non-zero = stop now; may be NULL */
    void *cookie;
} leat__time_limit;

/* Returns 0 while there is time, LEAT_ECANCELED when `stop` returns non-zero, LEAT_ETIMEDOUT after
 * the deadline. A NULL limit never ends. */
int leat__time_check(const leat__time_limit *limit, leat_error *err) LEAT_MUST_CHECK;

/* Returns the seconds left; a large number when there is no deadline. */
double leat__time_left(const leat__time_limit *limit);

#endif
