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
#define LOOK 4096           /* runs checked for the memory they need */
#define HELD_MOST 64        /* larger windows assume that the other runs are as large as the last one */
#define SLACK (256u << 10)  /* growth of a run's buffers */
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

void leat__pack_memory_measure(const leat__encode_plan *plan, const leat__source *source, leat__records *run,
                               const leat__record *r)
{
    for (uint32_t f = 0; f < run->fields && !r->failed; f++) {
        const leat__item *item = &r->items[f];
        if (source->fields[f].type != LEAT_FIELD_IMAGE || item->absent) continue;
        const leat__encode_bytes need = leat__encode_need(plan, leat__records_data(run, item), item->size);
        run->decode = LEAT_MAX(run->decode, need.work);
        run->result += need.result;
    }
}

/* The largest runs of a source. */
typedef struct survey {
    uint64_t held[HELD_MOST]; /* what the largest runs hold, the largest first */
    uint32_t count;
    uint64_t work; /* most memory to process one image */
    uint64_t both; /* most that a single run takes */
    bool sampled;  /* not every run was read */
} survey;

static void add_run(survey *v, const leat__pack_flow *flow, const leat__records *run)
{
    uint64_t held = leat__records_held(run) + flow->task + SLACK;
    if (flow->encodes) held += run->result + TABLES;
    v->work = LEAT_MAX(v->work, run->decode);
    v->both = LEAT_MAX(v->both, held + run->decode);
    uint32_t at = v->count < HELD_MOST ? v->count++ : HELD_MOST;
    for (; at > 0 && v->held[at - 1] < held; at--)
        if (at < HELD_MOST) v->held[at] = v->held[at - 1];
    if (at < HELD_MOST) v->held[at] = held;
}

/* Returns the most that `window` runs hold at once. */
static uint64_t held_by(const survey *v, uint32_t window)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < window && v->count > 0; i++) {
        const uint32_t at = v->sampled ? 0 : LEAT_MIN(i, HELD_MOST - 1);
        if (at < v->count) sum += v->held[at];
    }
    return sum;
}

/* Reads the bytes of a run that the source has listed. */
static void load_run(leat__source *s, leat__records *run)
{
    for (uint32_t i = 0; i < run->count && s->ops->load; i++) {
        leat__record *r = &run->record[i];
        leat_error why = {0};
        if (!r->failed && s->ops->load(s, run, r, &why) != 0) leat__records_fail(r, &why);
    }
}

static int look_at_images(leat__source *s, leat__records_pool *spare, const leat__pack_flow *flow, survey *v)
{
    const uint64_t step = s->total / LEAT__RECORDS_MOST / LOOK + 1;
    bool end = false;
    int rc = 0;
    v->sampled = step > 1;
    for (uint64_t i = 0; i < LOOK * step && rc == 0 && !end; i++) {
        leat__records *run = leat__records_pool_take(spare);
        if (!run) return LEAT_ENOMEM;
        s->skim = i % step != 0;
        rc = leat__source_fill(s, run, &end, NULL);
        if (rc == 0 && !s->skim && run->count > 0) {
            load_run(s, run);
            for (uint32_t k = 0; k < run->count; k++)
                leat__pack_memory_measure(flow->plan, s, run, &run->record[k]);
            add_run(v, flow, run);
        }
        leat__records_pool_give(spare, run);
    }
    v->sampled = v->sampled || !end;
    return rc;
}

/* Rounds up to a size that leat__as_size prints exactly, so that the number in a message is enough. */
static uint64_t round_up(uint64_t bytes)
{
    const uint64_t step = bytes <= UINT64_C(999) << 20 ? 1u << 20 : 512u << 20;
    return (bytes + step - 1) / step * step;
}

/* Returns the threads of a pool with these options. */
static uint32_t threads_of(const leat_ingest_opts *opts)
{
    leat_pool *pool = NULL;
    leat_pool_opts o;
    leat_pool_opts_init(&o);
    o.threads = opts->threads;
    if (leat_pool_open(&pool, &o, NULL) != 0) return LEAT_MAX(opts->threads, 1);
    const uint32_t threads = leat_pool_threads(pool);
    leat_pool_close(&pool);
    return threads;
}

uint64_t leat__pack_memory_enough(const leat_ingest_opts *opts, const leat__pack_flow *flow)
{
    const uint64_t others = flow->in + LOANS * flow->out;
    const uint32_t threads = threads_of(opts), window = LEAT__PACK_WINDOW(threads);
    leat__source *source = NULL;
    leat__records_pool spare;
    survey v = {.count = 0};
    bool listed = true; /* the bytes are read after the list was made */
    if (leat__source_open(&source, opts, NULL) == 0 && !source->remote) {
        leat__records_pool_init(&spare, source->field_count, 1);
        (void)!look_at_images(source, &spare, flow, &v); /* read errors are reported later */
        leat__records_pool_reset(&spare);
        listed = source->ops->load != NULL;
    }
    leat__source_close(&source);
    const uint64_t alone = round_up(others + LEAT_MAX(flow->out + flow->scratch, v.both));
    /* Bytes that are read with the list do not wait until others have been processed. */
    const uint64_t running = listed ? 1 : threads;
    const uint64_t together = round_up(held_by(&v, window + 1) + running * v.work);
    /* A small budget is declared as a whole: tasks run one at a time. It has no room for a large image that
     * is read with the list. It is named only where every larger budget is enough, too. */
    if (together <= SMALL && (listed || v.count == 0 || v.held[0] <= flow->in)) return alone;
    return LEAT_MAX(LEAT_MAX(alone, SMALL), together);
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
