/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory limits of packing: see pack_memory.h. Set once, then read-only.
 */
#include "ingest/pack_memory.h"

#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "base/str.h"

#define LEAST (UINT64_C(256) << 20)
#define PER_THREAD (UINT64_C(128) << 20)
#define SMALL (UINT64_C(64) << 20)
#define LOANS 2 /* results that the caller of a flow may hold: the default of leat_flow_opts */

int leat__pack_memory_open(leat__pack_memory *a, const leat_ingest_opts *opts, uint32_t threads,
                           leat_error *err)
{
    leat_budget_stats stats;
    memset(a, 0, sizeof *a);
    LEAT_TRY(leat_budget_open(&a->budget, opts->memory, err));
    leat_budget_read(a->budget, &stats);
    a->ceiling = stats.limit;
    a->large = a->most = UINT64_MAX;
    if (opts->memory != 0) return 0;
    uint64_t usual = LEAT_MIN(LEAT_MAX(LEAST, threads * PER_THREAD), stats.limit);
    a->large = usual / 2;
    return leat_budget_set_limit(a->budget, usual, err);
}

void leat__pack_memory_close(leat__pack_memory *a)
{
    leat_budget_close(&a->budget);
}

uint64_t leat__pack_memory_scratch(leat__pack_memory *a, uint64_t least, uint64_t in, uint64_t out)
{
    a->others = in + LOANS * out;
    if (a->large != UINT64_MAX || a->ceiling >= SMALL || a->ceiling < a->others + out + least) return least;
    a->most = a->ceiling - a->others;
    return a->most - out;
}

int leat__pack_memory_fits(const leat__pack_memory *a, uint64_t bytes, leat_error *err)
{
    if (bytes <= a->most) return 0;
    return leat__fail(err, LEAT_EBUDGET,
                      "an image needs %s of memory, for which `memory` must be at least %s",
                      leat__as_size(bytes).text, leat__as_size(bytes + a->others).text);
}

int leat__pack_memory_ask(const leat__pack_memory *a, uint64_t bytes, leat_error *err)
{
    if (bytes <= a->ceiling) return 0;
    return leat__fail(err, LEAT_EBUDGET, "an image that needs %s of memory, more than the %s there are",
                      leat__as_size(bytes).text, leat__as_size(a->ceiling).text);
}
