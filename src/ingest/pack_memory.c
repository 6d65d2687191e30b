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
#define HELD_MOST 64        /* in larger windows, the other runs count as large as the last one */
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

int leat__pack_memory_ask(leat__pack_memory *a, uint64_t bytes, leat_error *err)
{
    leat_budget_stats stats;
    if (bytes > a->ceiling)
        return leat__fail(err, LEAT_EBUDGET, "an image needs %s of memory, more than the %s available",
                          leat__as_size(bytes).text, leat__as_size(a->ceiling).text);
    leat_budget_read(a->budget, &stats);
    a->alone = LEAT_MAX(a->alone, stats.used + bytes);
    return 0;
}

uint64_t leat__pack_memory_peak(const leat__pack_memory *a)
{
    leat_budget_stats stats;
    if (!a->budget) return 0;
    leat_budget_read(a->budget, &stats);
    return LEAT_MAX(stats.peak, a->alone);
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

/* The largest numbers of a list, the largest first. */
typedef struct largest {
    uint64_t of[HELD_MOST];
    uint32_t count;
} largest;

static void keep_largest(largest *l, uint64_t bytes)
{
    uint32_t at = l->count < HELD_MOST ? l->count++ : HELD_MOST;
    for (; at > 0 && l->of[at - 1] < bytes; at--)
        if (at < HELD_MOST) l->of[at] = l->of[at - 1];
    if (at < HELD_MOST) l->of[at] = bytes;
}

/* The largest runs of a source. */
typedef struct survey {
    largest held;       /* bytes that the runs hold while they wait for more */
    largest most;       /* maximum bytes that the runs hold and request */
    uint64_t work;      /* maximum memory to process one image */
    uint64_t both;      /* maximum bytes that a single run takes */
    uint64_t list;      /* maximum bytes that a single run holds after listing */
    uint64_t list_need; /* bytes that the list stage requests for a run */
    bool sampled;       /* not every run was read */
} survey;

static void add_run(survey *v, const leat__pack_flow *flow, const leat__records *run)
{
    const uint64_t more = flow->task + (flow->encodes ? TABLES : 0);
    const uint64_t result = flow->encodes ? run->result : 0;
    const uint64_t held = leat__records_held(run) + SLACK + result + more;
    keep_largest(&v->held, held);
    keep_largest(&v->most, leat__records_most(run, result) + more);
    v->work = LEAT_MAX(v->work, run->decode);
    v->both = LEAT_MAX(v->both, held + run->decode);
    v->list = LEAT_MAX(v->list, leat__records_most(run, 0) + flow->task);
}

/* Returns the sum over the `window` largest runs. */
static uint64_t sum_of(const survey *v, const largest *l, uint32_t window)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < window && l->count > 0; i++) {
        const uint32_t at = v->sampled ? 0 : LEAT_MIN(i, HELD_MOST - 1);
        if (at < l->count) sum += l->of[at];
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

/* Opens the source and reads its runs; errors are reported later. */
static survey survey_of(const leat_ingest_opts *opts, const leat__pack_flow *flow)
{
    leat__source *source = NULL;
    leat__records_pool spare;
    survey v = {.sampled = false};
    if (leat__source_open(&source, opts, NULL) == 0 && !source->remote) {
        v.list_need = leat__source_list_need(source) + flow->task;
        leat__records_pool_init(&spare, source->field_count, 1);
        (void)!look_at_images(source, &spare, flow, &v);
        leat__records_pool_reset(&spare);
        if (source->ops->load) v.list = 0; /* only names are listed */
    }
    leat__source_close(&source);
    return v;
}

uint64_t leat__pack_memory_enough(const leat_ingest_opts *opts, const leat__pack_flow *flow)
{
    const uint64_t others = flow->in + LOANS * flow->out;
    const uint32_t threads = threads_of(opts), window = LEAT__PACK_WINDOW(threads) + 1;
    const survey v = survey_of(opts, flow);
    /* The floor of the flow: its list stage requests as much as its largest run so far has held. */
    const uint64_t floor = others + LEAT_MAX(flow->out + flow->scratch, LEAT_MAX(v.list_need, v.list));
    const uint64_t alone = round_up(LEAT_MAX(floor, others + v.both));
    /* Bytes beyond those requested by the list stage are already allocated, so they cannot wait: everything
     * in flight must fit, besides the floor of the flow, which is only for requested bytes. */
    if (v.list > v.list_need)
        return LEAT_MAX(LEAT_MAX(alone, SMALL),
                        round_up(floor + sum_of(&v, &v.most, window) + threads * v.work));
    const uint64_t together = round_up(sum_of(&v, &v.held, window) + v.work);
    /* With a small budget, the scratch memory is the whole budget, so tasks run one at a time. Such a budget
     * is named only if every larger one is also enough. */
    return together <= SMALL ? alone : LEAT_MAX(LEAT_MAX(alone, SMALL), together);
}

int leat__pack_memory_explain(int rc, const leat_ingest_opts *opts, const leat__pack_flow *flow,
                              leat_error *err)
{
    if (rc != LEAT_EBUDGET || opts->memory == 0) return rc;
    const uint64_t enough = leat__pack_memory_enough(opts, flow);
    if (enough <= opts->memory) { /* the survey did not read all images */
        const leat_error why = err ? *err : (leat_error){0};
        return leat__fail(err, LEAT_EBUDGET,
                          "%s; without `memory`, images too large for the default are processed alone",
                          why.message);
    }
    return leat__fail(err, LEAT_EBUDGET, "the images do not fit the %s given (`memory`): %s is enough",
                      leat__as_size(opts->memory).text, leat__as_size(enough).text);
}
