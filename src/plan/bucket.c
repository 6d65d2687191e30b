/* SPDX-License-Identifier: Apache-2.0
 *
 * A dataset in a bucket: how the loader reads it with the memory that it has, how fast that is, and the
 * traffic: bytes, requests, their price, and the savings of a disk cache of the whole dataset. A node that
 * keeps a page does not fetch it again.
 */
#include <math.h>

#include "base/num.h"
#include "loader/footprint.h"
#include "loader/order.h"
#include "loader/remote_pages.h"
#include "loader/state.h"
#include "plan/parts.h"

/* The most requests at once: the loader's connections. Amazon documents this rate for one prefix; of other
 * servers, one thread of the loader starts about as many as the next. */
#define IN_FLIGHT 64.0
#define REQUESTS_MOST 5500.0
#define REQUESTS_STARTED 40000.0
#define SPREAD_LATENCY 0.50 /* of a measured latency */
#define SPREAD_READS 1.0    /* of the table's */
/* The index is fetched in pieces, one at a time. Its last bytes came when the pack was opened. */
#define PIECE (1024.0 * 1024)
#define OPENED (PIECE / 4)
/* Bytes per second at which the loader asks for pages as fast as it can: faulting in their memory takes most
 * of this time. */
#define ASKED_PER_S 4.5e9
/* The mean request of a sequential order, in MB, is JOINED times powers of the MB in flight and of the
 * samples in a page, and at most JOINED_MOST. Fitted to runs over packs of 4 and 1000 samples per page. */
#define JOINED 1.22
#define JOINED_AHEAD 0.29
#define JOINED_SAMPLES (-0.15)
#define JOINED_MOST 8.4
/* If pages leave memory before all of their samples were used, some are read again for one sample: this many
 * times the dataset, times the square of the share that does not fit. Measured: 1.5 times with 12 % of the
 * dataset in memory, 1.03 to 1.12 times with 66 %. */
#define READ_AGAIN 0.6
/* The other pages that are asked for at once wait for a connection, and neighbours become one request. */
#define WAITED_BYTES 12e6

static double samples_per_page(const leat_plan_facts *f)
{
    return LEAT_MAX(1.0, (double)f->mean_page_bytes / (double)LEAT_MAX(f->sample_bytes, UINT64_C(1)));
}

static double pages_of(const leat_plan_facts *f)
{
    return ceil((double)f->samples / samples_per_page(f));
}

/* Returns the bytes that the pages take in memory: the bytes of a pack include its index. */
static double data_bytes(const leat_plan_facts *f)
{
    double dataset = (double)leat__plan_dataset_bytes(f);
    return LEAT_MAX(dataset - (double)f->index_bytes, dataset / 2);
}

uint64_t leat__plan_open_bytes(const leat_plan_facts *f)
{
    return leat__pages_open(leat__plan_order(f), leat__plan_dataset_bytes(f), (uint64_t)pages_of(f),
                            leat__order_window(f->page_bytes));
}

static double latency_of(const leat_plan_facts *f)
{
    return f->latency_s > 0 ? f->latency_s : IN_FLIGHT / leat__plan_read_limit("bucket");
}

/* Returns the requests for the pieces of the index, each of which a loader waits for. */
static double index_pieces(const leat_plan_facts *f)
{
    return f->loader == LEAT_PLAN_LEAT ? ceil(LEAT_MAX((double)f->index_bytes - OPENED, 0.0) / PIECE) : 0;
}

/* Returns the requests for all pages, when the loader may ask for this many bytes before they are needed. */
static double page_requests(const leat_plan_facts *f, double ahead)
{
    double pages = pages_of(f), dataset = (double)leat__plan_dataset_bytes(f), page = dataset / pages;
    if (ahead <= 0) return pages;
    if (!leat__order_shuffled(leat__plan_order(f))) {
        double mb = JOINED * pow(LEAT_MIN(ahead, dataset) / 1e6, JOINED_AHEAD) *
                    pow(samples_per_page(f), JOINED_SAMPLES);
        return ceil(dataset / LEAT_MAX(LEAT_MIN(mb, JOINED_MOST) * 1e6, page));
    }
    if (ahead < dataset) return pages; /* pages are asked for one by one */
    double alone = IN_FLIGHT * (1 + dataset / ASKED_PER_S / latency_of(f));
    if (alone >= pages) return pages;
    return ceil(alone + (pages - alone) / LEAT_MAX(1.0, WAITED_BYTES / page));
}

/* Returns the reads of worker processes, which read pages as they come, and those of a dataset of unknown
 * size. */
static leat__plan_reads usual_reads(const leat_plan_facts *f)
{
    const leat_order order = leat__plan_order(f);
    leat__plan_reads r = {.times = 1, .at_once = IN_FLIGHT};
    r.single = f->loader == LEAT_PLAN_LEAT && order == LEAT_ORDER_RANDOM;
    r.requests = page_requests(f, leat__order_shuffled(order) ? 0 : (double)LEAT__REMOTE_BYTES);
    if (f->samples == 0) r.requests = r.single > 0 ? 1 : 1 / samples_per_page(f); /* of one sample */
    r.later_requests = r.requests;
    return r;
}

/* Returns the single samples that the loader requests at a time. */
static double singles_at_once(const leat_plan_facts *f, const leat_plan_ram *ram)
{
    uint64_t mean = f->sample_bytes, largest = LEAT_MAX(f->max_sample_bytes, mean);
    uint64_t sample = mean + leat__plan_frame_bytes(f) / LEAT_MAX(leat__plan_batch_samples(f), UINT64_C(1));
    uint32_t batch = (uint32_t)LEAT_MIN(f->batch, UINT64_C(1) << 24);
    uint32_t run = leat__run_usual(batch, (uint32_t)f->workers, mean, largest);
    return (double)leat__singles_at_once(ram->budget, ram->reading, sample, run);
}

leat__plan_reads leat__plan_reads_of(const leat_plan_facts *f, const leat_plan_ram *ram)
{
    const leat_order order = leat__plan_order(f);
    uint64_t dataset = leat__plan_dataset_bytes(f), open = leat__plan_open_bytes(f), cap = ram->page_cache;
    if (!leat__plan_remote(f)) return (leat__plan_reads){.times = 1};
    if (f->loader != LEAT_PLAN_LEAT || dataset == 0) return usual_reads(f);
    uint64_t ahead = leat__pages_ahead(order, dataset, open, cap);
    double room = LEAT_MIN(1.0, (double)cap / ((double)open * data_bytes(f) / (double)dataset));
    leat__plan_reads r = {.times = 1, .ahead = ahead > 0 ? (double)ahead : (double)cap, .at_once = IN_FLIGHT};
    /* in a random order pages stay; in others each leaves when its samples were used, unless all fit */
    r.kept = order == LEAT_ORDER_RANDOM ? room : cap >= dataset ? 1 : 0;
    r.single = ahead > 0 ? 0 : 1 - room;
    if (r.single > 0) r.at_once = LEAT_MIN(IN_FLIGHT, singles_at_once(f, ram));
    if (order == LEAT_ORDER_QUASI) r.times += READ_AGAIN * r.single * r.single;
    r.requests = (1 - r.single) * page_requests(f, (double)ahead) + r.single * (double)f->samples;
    r.later_requests = order == LEAT_ORDER_RANDOM && r.single > 0 ? (double)f->samples : r.requests;
    return r;
}

/* Returns how many samples a loader fetches together. */
static double fetched_together(const leat_plan_facts *f, const leat__plan_reads *r)
{
    return r->single > 0 ? 1 : samples_per_page(f);
}

/* Returns the share of the dataset that one of `parts` loaders or machines has read after `epochs`. They take
 * turns in the order, so that a page has samples of several of them. */
static double seen_share(const leat_plan_facts *f, double parts, double each, double epochs)
{
    if (!leat__order_shuffled(leat__plan_order(f))) return LEAT_MIN(1.0, each / parts);
    return 1 - pow(1 - 1 / parts, each * epochs);
}

/* Returns how many loaders read the dataset: one per GPU. */
static double loaders_of(const leat_plan_facts *f)
{
    uint64_t gpus = f->loader == LEAT_PLAN_LEAT ? LEAT_MAX(f->gpus, 1u) : 1;
    return (double)(LEAT_MAX(f->nodes, 1u) * gpus);
}

double leat__plan_seen_share(const leat_plan_facts *f, const leat__plan_reads *r, double epochs)
{
    return seen_share(f, loaders_of(f), fetched_together(f, r), epochs);
}

/* Returns how many times the dataset is fetched by all of `parts` over the run when each keeps up to the
 * share `kept` of what it read. They get other samples in each epoch, unless the order does not shuffle. */
static double times_fetched(const leat_plan_facts *f, double parts, double each, double kept, double epochs)
{
    double first = seen_share(f, parts, each, 1), full = epochs;
    if (!leat__order_shuffled(leat__plan_order(f))) return parts * first * (1 + (epochs - 1) * (1 - kept));
    /* memory fills in the first epochs; after them the same share is fetched in each */
    if (kept < 1) full = first < 1 ? ceil(log(1 - kept) / log(1 - first)) : kept > 0;
    full = LEAT_MIN(full, epochs);
    return parts * (seen_share(f, parts, each, full) + (epochs - full) * first * (1 - kept));
}

static leat_plan_range at_most(leat_plan_range a, leat_plan_range b)
{
    return (leat_plan_range){LEAT_MIN(a.low, b.low), LEAT_MIN(a.mid, b.mid), LEAT_MIN(a.high, b.high)};
}

static double latency_spread(const leat_plan_facts *f)
{
    return f->latency_s > 0 ? SPREAD_LATENCY : SPREAD_READS;
}

/* Returns requests per second: those in flight / latency. */
static leat_plan_range request_rate(const leat_plan_facts *f, const leat__plan_reads *r)
{
    double most = f->price_requests > 0 ? REQUESTS_MOST : REQUESTS_STARTED;
    double mid = LEAT_MIN(r->at_once / latency_of(f), most), by = latency_spread(f);
    return (leat_plan_range){mid / (1 + by), mid, mid * (1 + by)};
}

/* Returns the rate of a first epoch, in which samples wait for the index: for all of it and the first page,
 * or in a sequential order for the next piece, while pages arrive. */
static double with_index(const leat_plan_facts *f, double rate, double slower)
{
    double samples = (double)f->samples / LEAT_MAX(f->nodes, 1u);
    double latency = latency_of(f) * slower, wait = index_pieces(f) * latency;
    if (rate <= 0 || wait <= 0) return rate;
    if (!leat__order_shuffled(leat__plan_order(f))) return LEAT_MIN(rate, samples / wait);
    return 1 / (1 / rate + (wait + latency) / samples);
}

leat_plan_range leat__plan_bucket_rate(const leat_plan_facts *f, const leat__plan_reads *r,
                                       leat_plan_range link, bool later)
{
    /* all loaders together read a page several times, and need each of its samples once */
    double times = times_fetched(f, loaders_of(f), fetched_together(f, r), 0, 1);
    double bytes = (double)f->sample_bytes * r->times * times;
    if (link.mid <= 0) return (leat_plan_range){0};
    double each =
        (double)LEAT_MAX(f->samples, UINT64_C(1)) / (times * (later ? r->later_requests : r->requests));
    leat_plan_range asked = request_rate(f, r);
    asked = (leat_plan_range){asked.low * each, asked.mid * each, asked.high * each};
    leat_plan_range rate =
        at_most((leat_plan_range){link.low / bytes, link.mid / bytes, link.high / bytes}, asked);
    double by = 1 + latency_spread(f);
    if (r->single <= 0 && r->ahead > 0) { /* bytes in flight / latency */
        double most = r->ahead / latency_of(f) / bytes;
        rate = at_most(rate, (leat_plan_range){most / by, most, most * by});
    }
    if (later) return rate;
    return (leat_plan_range){with_index(f, rate.low, by), with_index(f, rate.mid, 1),
                             with_index(f, rate.high, 1 / by)};
}

static leat_plan_price price_of(const leat_plan_facts *f, double bytes, double requests)
{
    double asked = requests / 1000 * f->price_requests, gb = bytes / 1e9;
    return (leat_plan_price){asked, asked + gb * f->price_other_region, asked + gb * f->price_internet};
}

void leat__plan_traffic(leat_plan *plan)
{
    const leat_plan_facts *f = &plan->facts;
    leat_plan_traffic *t = &plan->traffic;
    double dataset = (double)leat__plan_dataset_bytes(f);
    *t = (leat_plan_traffic){0};
    if (!leat__plan_remote(f) || dataset <= 0) return;
    const leat__plan_reads r = leat__plan_reads_of(f, &plan->ram);
    double loaders = loaders_of(f), nodes = LEAT_MAX(f->nodes, 1u), each = fetched_together(f, &r);
    double epoch = times_fetched(f, loaders, each, r.kept, 1);
    double run = times_fetched(f, loaders, each, r.kept, f->epochs);
    double disk = times_fetched(f, nodes, each, 1, f->epochs); /* loaders of a machine share it */
    double requests = r.requests * epoch + loaders * index_pieces(f);
    double all = requests + r.later_requests * (run - epoch);
    double saved = LEAT_MAX(0.0, run * r.times - disk);
    double unasked = saved > 0 ? LEAT_MAX(0.0, all - disk * (r.single > 0 ? pages_of(f) : r.requests)) : 0;
    t->epoch_bytes = (uint64_t)(dataset * epoch * r.times);
    t->epoch_requests = (uint64_t)ceil(requests);
    t->run_bytes = (uint64_t)(dataset * run * r.times);
    t->run_requests = (uint64_t)ceil(all);
    bool shuffled = leat__order_shuffled(leat__plan_order(f)); /* a node needs all in the end */
    t->disk_bytes = (uint64_t)(shuffled ? dataset : dataset * seen_share(f, nodes, each, 1));
    t->disk_saves_bytes = (uint64_t)(dataset * saved);
    t->priced = f->price_requests > 0;
    if (!t->priced) return;
    t->epoch = price_of(f, (double)t->epoch_bytes, requests);
    t->run = price_of(f, (double)t->run_bytes, all);
    t->disk_saves = price_of(f, dataset * saved, unasked);
}
