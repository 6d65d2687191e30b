/* SPDX-License-Identifier: Apache-2.0
 *
 * How much memory packing may hold: the budget of its flows, and from which need on an image
 * is too large for them. Such an image is handled alone, outside the flow, so that a source of
 * enormous images costs one of them at a time and not one per thread. A budget that the user
 * named is hard: nothing is large then, and what does not fit fails.
 */
#ifndef LEAT_INGEST_ALLOWANCE_H
#define LEAT_INGEST_ALLOWANCE_H

#include <leat/flow.h>
#include <leat/ingest.h>

typedef struct leat__allowance {
    leat_budget *budget;
    uint64_t large;   /* an image that needs more is large */
    uint64_t ceiling; /* an image that needs more is refused */
} leat__allowance;

/* By default 128 MiB a thread and 256 MiB at least, but never more than half of what is left. */
int leat__allowance_open(leat__allowance *a, const leat_ingest_opts *opts, uint32_t threads,
                         leat_error *err) LEAT_MUST_CHECK;
void leat__allowance_close(leat__allowance *a);

/* LEAT_EBUDGET when an image may not take `bytes` even alone. */
int leat__allowance_ask(const leat__allowance *a, uint64_t bytes, leat_error *err) LEAT_MUST_CHECK;

#endif
