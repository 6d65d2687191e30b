/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory limits of packing: see pack_memory.h. Set once, then read-only.
 */
#include "ingest/pack_memory.h"

#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "base/str.h"
#include "ingest/source.h"

#define LEAST (UINT64_C(256) << 20)
#define PER_THREAD (UINT64_C(128) << 20)
#define SMALL (UINT64_C(64) << 20)
#define LOOK 4096           /* images checked for the memory they need */
#define TABLES (384u << 10) /* for training tile tables: counts, and growth of buffers */
#define LOANS 2             /* results that the caller of a flow may borrow: the default of leat_flow_opts */

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
    return leat__fail(err, LEAT_EBUDGET, "an image needs %s of memory, more than the %s available",
                      leat__as_size(bytes).text, leat__as_size(a->ceiling).text);
}

/* ---- the budget that is enough ---- */

/* Returns the most memory that an image of the record needs while it is decoded and encoded, with its
 * encoded bytes and the rest of its run. */
static uint64_t record_need(const leat__source *s, const leat__records *run, const leat__record *r,
                            const leat__pack_flow *flow)
{
    uint64_t most = 0;
    for (uint32_t f = 0; f < s->field_count; f++) {
        const leat__item *item = &r->items[f];
        if (s->fields[f].type != LEAT_FIELD_IMAGE || item->absent) continue;
        uint64_t need = leat__encode_need(flow->plan, leat__records_data(run, item), item->size);
        need += leat__records_held(run) + LEAT__RECORDS_BYTES;
        if (!s->ops->load) need += item->size; /* such sources read the next image meanwhile */
        if (flow->encodes) need += item->size + TABLES;
        most = LEAT_MAX(most, need);
    }
    return most;
}

static int look_at_images(leat__source *s, leat__records_pool *spare, const leat__pack_flow *flow,
                          uint64_t *largest)
{
    const uint64_t step = s->total > LOOK ? s->total / LOOK : 1;
    bool end = false;
    int rc = 0;
    for (uint64_t i = 0; i < LOOK * step && rc == 0 && !end; i++) {
        leat__records *run = leat__records_pool_take(spare);
        if (!run) return LEAT_ENOMEM;
        leat__record *r = leat__records_add(run);
        s->skim = i % step != 0;
        rc = s->ops->next(s, run, r, &end, NULL);
        const bool wanted = rc == 0 && !end && !s->skim && !r->failed;
        if (wanted && (!s->ops->load || s->ops->load(s, run, r, NULL) == 0))
            *largest = LEAT_MAX(*largest, record_need(s, run, r, flow));
        leat__records_pool_give(spare, run);
    }
    return rc;
}

/* Rounds up to a size that leat__as_size prints exactly, so that the number in a message is enough. */
static uint64_t round_up(uint64_t bytes)
{
    const uint64_t step = bytes <= UINT64_C(999) << 20 ? 1u << 20 : 512u << 20;
    return (bytes + step - 1) / step * step;
}

uint64_t leat__pack_memory_enough(const leat_ingest_opts *opts, const leat__pack_flow *flow)
{
    const uint64_t others = flow->in + LOANS * flow->out;
    leat__source *source = NULL;
    leat__records_pool spare;
    uint64_t largest = 0, least = 0;
    if (leat__source_open(&source, opts, NULL) == 0 && !source->remote) {
        leat__records_pool_init(&spare, source->field_count, 1);
        (void)!look_at_images(source, &spare, flow, &largest); /* read errors are reported later */
        leat__records_pool_reset(&spare);
        /* A smaller budget is declared as a whole, without room for a large image that is read with the list.
         */
        if (!source->ops->load && largest > flow->in) least = SMALL;
    }
    leat__source_close(&source);
    return round_up(LEAT_MAX(least, others + LEAT_MAX(flow->out + flow->scratch, largest)));
}

int leat__pack_memory_explain(int rc, const leat_ingest_opts *opts, const leat__pack_flow *flow,
                              leat_error *err)
{
    if (rc != LEAT_EBUDGET || opts->memory == 0) return rc;
    const uint64_t enough = leat__pack_memory_enough(opts, flow);
    if (enough <= opts->memory) return rc;
    return leat__fail(err, LEAT_EBUDGET, "the images need %s of memory, more than the %s given (`memory`)",
                      leat__as_size(enough).text, leat__as_size(opts->memory).text);
}
