/* SPDX-License-Identifier: Apache-2.0
 *
 * Traffic of a dataset in a bucket: bytes, requests, their price, and the savings of a disk cache of the
 * whole dataset. A node that keeps a page does not fetch it again.
 */
#include <math.h>

#include "base/num.h"
#include "loader/state.h"
#include "plan/parts.h"

static leat_plan_price price_of(const leat_plan_facts *f, double bytes, double requests)
{
    double asked = requests / 1000 * f->price_requests, gb = bytes / 1e9;
    return (leat_plan_price){asked, asked + gb * f->price_other_region, asked + gb * f->price_internet};
}

/* Returns how many samples a node fetches together. Single samples are read only in a random order, from a
 * dataset that does not fit in memory. */
static double fetched_together(const leat_plan_facts *f, double kept)
{
    bool single = leat__plan_reads_single(f) && f->loader == LEAT_PLAN_LEAT && kept < 1;
    return single ? 1 : LEAT_MAX(1.0, (double)f->page_bytes / (double)LEAT_MAX(f->sample_bytes, UINT64_C(1)));
}

/* Nodes take turns in the order, so that a page has samples of several nodes. */
double leat__plan_seen_share(const leat_plan_facts *f, double kept, double epochs)
{
    double nodes = LEAT_MAX(f->nodes, 1u), each = fetched_together(f, kept);
    if (!leat__order_shuffled(leat__plan_order(f))) return LEAT_MIN(1.0, each / nodes);
    return 1 - pow(1 - 1 / nodes, each * epochs);
}

/* Returns how many times the dataset is fetched by all nodes over the run when each keeps up to the share
 * `kept` of what it read. Nodes get other samples in each epoch, unless the order does not shuffle. */
static double times_fetched(const leat_plan_facts *f, double kept, double epochs)
{
    double nodes = LEAT_MAX(f->nodes, 1u), first = leat__plan_seen_share(f, kept, 1), full = epochs;
    if (!leat__order_shuffled(leat__plan_order(f))) return nodes * first * (1 + (epochs - 1) * (1 - kept));
    /* memory fills in the first epochs; after them the same share is fetched in each */
    if (kept < 1) full = first < 1 ? ceil(log(1 - kept) / log(1 - first)) : kept > 0;
    full = LEAT_MIN(full, epochs);
    return nodes * (leat__plan_seen_share(f, kept, full) + (epochs - full) * first * (1 - kept));
}

void leat__plan_traffic(leat_plan *plan)
{
    const leat_plan_facts *f = &plan->facts;
    leat_plan_traffic *t = &plan->traffic;
    double dataset = (double)leat__plan_dataset_bytes(f);
    *t = (leat_plan_traffic){0};
    if (!leat__plan_remote(f) || dataset <= 0) return;
    double kept = leat__plan_kept_share(f, &plan->ram);
    double each = LEAT_MAX(leat__plan_samples_per_request(f), fetched_together(f, kept));
    double requests = ceil((double)f->samples / each);
    double epoch = times_fetched(f, kept, 1), run = times_fetched(f, kept, f->epochs);
    double saved = LEAT_MAX(0.0, run - times_fetched(f, 1, f->epochs));
    t->epoch_bytes = (uint64_t)(dataset * epoch);
    t->epoch_requests = (uint64_t)ceil(requests * epoch);
    t->run_bytes = (uint64_t)(dataset * run);
    t->run_requests = (uint64_t)ceil(requests * run);
    bool shuffled = leat__order_shuffled(leat__plan_order(f)); /* a node needs all in the end */
    t->disk_bytes = (uint64_t)(shuffled ? dataset : dataset * leat__plan_seen_share(f, 1, 1));
    t->disk_saves_bytes = (uint64_t)(dataset * saved);
    t->priced = f->price_requests > 0;
    if (!t->priced) return;
    t->epoch = price_of(f, dataset * epoch, requests * epoch);
    t->run = price_of(f, dataset * run, requests * run);
    t->disk_saves = price_of(f, dataset * saved, requests * saved);
}
