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

/* Returns how many times the dataset is fetched by all nodes over the run when each keeps what it
 * read on disk. Nodes get other samples in each epoch, unless the order does not shuffle; in the end
 * each has nearly all. */
static double fetched_with_disk(const leat_plan_facts *f)
{
    double nodes = LEAT_MAX(f->nodes, 1u);
    if (!leat__order_shuffled(leat__plan_order(f))) return 1;
    return nodes * (1 - pow(1 - 1 / nodes, f->epochs));
}

void leat__plan_traffic(leat_plan *plan)
{
    const leat_plan_facts *f = &plan->facts;
    leat_plan_traffic *t = &plan->traffic;
    double dataset = (double)leat__plan_dataset_bytes(f);
    *t = (leat_plan_traffic){0};
    if (!leat__plan_remote(f) || dataset <= 0) return;
    double requests = ceil((double)f->samples / leat__plan_samples_per_request(f));
    double epochs = 1 + (f->epochs - 1.0) * (1 - plan->speed.cached_share);
    double saved = LEAT_MAX(0.0, epochs - fetched_with_disk(f));
    t->epoch_bytes = (uint64_t)dataset;
    t->epoch_requests = (uint64_t)requests;
    t->run_bytes = (uint64_t)(dataset * epochs);
    t->run_requests = (uint64_t)ceil(requests * epochs);
    double parts = leat__order_shuffled(leat__plan_order(f)) ? 1 : LEAT_MAX(f->nodes, 1u);
    t->disk_bytes = (uint64_t)(dataset / parts);
    t->disk_saves_bytes = (uint64_t)(dataset * saved);
    t->priced = f->price_requests > 0;
    if (!t->priced) return;
    t->epoch = price_of(f, dataset, requests);
    t->run = price_of(f, dataset * epochs, requests * epochs);
    t->disk_saves = price_of(f, dataset * saved, requests * saved);
}
