/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/time_limit.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/num.h"

#define NO_DEADLINE_S 1e9

int leat__time_check(const leat__time_limit *limit, leat_error *err)
{
    if (limit == NULL) return 0;
    if (limit->stop != NULL && limit->stop(limit->cookie) != 0)
        return leat__fail(err, LEAT_ECANCELED, "stopped");
    if (leat__clock_ns() >= limit->until_ns)
        return leat__fail(err, LEAT_ETIMEDOUT, "no time left for this measurement");
    return 0;
}

double leat__time_left(const leat__time_limit *limit)
{
    if (limit == NULL || limit->until_ns == UINT64_MAX) return NO_DEADLINE_S;
    uint64_t now = leat__clock_ns();
    return now >= limit->until_ns ? 0 : (double)(limit->until_ns - now) / 1e9;
}
