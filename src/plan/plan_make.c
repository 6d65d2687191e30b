/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole plan: completes the facts, runs each part, chooses cache and order, and names the smallest change
 * when the plan does not fit. Also the plan's texts, and the comparison with a measured run.
 */
#include "plan/parts.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "base/sized.h"
#include "base/str.h"
#include "loader/defaults.h"
#include "loader/order.h"
#include "loader/state.h"

#define STREAMS ((uint64_t)LEAT__DEFAULT_STREAMS)
/* Up to this many default threads may use all memory that fits; more threads only the safe share. */
#define FEW_WORKERS 16u
#define NEAR_BEST 0.99 /* rates above this share of the best count as equal */

void leat_plan_facts_init_sized(leat_plan_facts *facts, size_t size)
{
    if (leat__sized_init(facts, (uint32_t)size) && LEAT__SIZED_HAS(leat_plan_facts, mix_raw, size))
        facts->mix_raw = 0.5;
}

leat_order leat__plan_order(const leat_plan_facts *f)
{
    const bool given = f->order > 0 && f->order <= LEAT__ORDER_COUNT;
    return given ? (leat_order)(f->order - 1) : LEAT__DEFAULT_ORDER;
}

/* Sets order and cache as requested, else to the loader's defaults: a plan does not change the output
 * of a run. The effect of quasi_random is shown as a what-if. */
static void choose_order(leat_plan *plan)
{
    const leat_plan_facts *f = &plan->facts;
    leat_plan_config *c = &plan->config;
    leat_plan_facts rest = *f; /* without a cache, which takes the remaining memory */
    leat_plan_ram ram;
    rest.cache = 0;
    leat__plan_ram_leat(&rest, 0, &ram);
    c->page_window = 0;
    c->quasi_random = leat__plan_order(f) == LEAT_ORDER_QUASI;
    c->cache_process = f->cache == PLAN_CACHE_PROCESS;
    bool in_memory = strcmp(f->storage, "memory") == 0;
    uint64_t dataset = leat__plan_dataset_bytes(f);
    bool cached = ram.limit > ram.with_validation && dataset <= ram.limit - ram.with_validation;
    if (dataset == 0 || in_memory || cached || !c->cache_process || !c->quasi_random) return;
    if (leat__plan_remote(f)) return; /* the budget has room for the loader's own window, as far as is safe */
    /* Pages open at once: a quarter of the safe memory, in multiples of the number of streams. 0
     * leaves it to the loader, which rereads pages rather than exceed its memory. */
    double safe = PLAN_SAFE_LEAT * (double)ram.limit - (double)ram.with_validation;
    double left = f->memory_bytes > 0 ? LEAT_MIN((double)f->memory_bytes, safe) : safe;
    if (left <= 0) return;
    uint64_t pages = (uint64_t)(left / 4 / LEAT_MAX(f->gpus, 1u)) / f->page_bytes;
    uint64_t most = leat__order_window(f->page_bytes);
    c->page_window = (uint32_t)LEAT_MIN(pages / STREAMS * STREAMS, most);
}

/* Adds a note about the cache. A cache of the process is limited by the budget, the page cache by all
 * remaining memory. */
static void note_cache(leat_plan *plan)
{
    leat_plan_facts other = plan->facts;
    leat_plan_ram ram;
    leat_plan_speed speed;
    if (other.loader != LEAT_PLAN_LEAT || other.cache != PLAN_CACHE_PROCESS) return;
    if (leat__plan_remote(&other)) return; /* os is the same */
    other.cache = 0;
    leat__plan_ram_leat(&other, 0, &ram);
    leat__plan_overlap overlap = leat__plan_overlap_of(&other);
    leat__plan_speed(&other, &overlap, &ram, &plan->vram, &speed);
    if (speed.cached_share > plan->speed.cached_share + 0.05)
        leat__plan_note(plan, "--cache process keeps %.0f %% of the dataset, --cache os would keep %.0f %%",
                        100 * plan->speed.cached_share, 100 * speed.cached_share);
}

static void note_busy(leat_plan *plan)
{
    uint32_t wanted;
    double had = leat__plan_shared_cpus(&plan->facts, &wanted);
    if (had > 0)
        leat__plan_note(
            plan,
            "the loader had %.1f of %u CPU%s while it was measured: other processes used the rest, and "
            "rates are as low as that",
            had, wanted, leat__plural(wanted));
}

/* Notes CPUs that are unused because each GPU has the same whole number of workers. */
static void note_unused(leat_plan *plan, const leat_plan_facts *given)
{
    uint32_t unused = leat__plan_unused_cpus(given, plan->config.workers);
    if (unused > 0)
        leat__plan_note(plan, "%u of %u CPUs %s not used: each of the %u GPUs has the same number of %s",
                        unused, given->cpus, unused == 1 ? "is" : "are", given->gpus,
                        given->loader == LEAT_PLAN_PROCESS ? "workers" : "threads");
}

static void note_rules(leat_plan *plan, const leat_plan_facts *given)
{
    const leat_plan_facts *f = &plan->facts;
    note_cache(plan);
    note_busy(plan);
    note_unused(plan, given);
    if (f->gpus > 0 && f->ram_bytes > 0 && f->ram_bytes <= (8 * f->gpus + 5) * PLAN_GB)
        leat__plan_note(plan, "the guide's check fails: RAM > 8 GB x %u GPUs + 5 GB", f->gpus);
    if (f->cpus > 0 && f->ram_bytes > 0 && f->ram_bytes < 4 * PLAN_GB * f->cpus)
        leat__plan_note(plan, "less RAM than 4 GB per vCPU, a rule of thumb: %u GB for %u vCPUs", 4 * f->cpus,
                        f->cpus);
    if (f->gpus > 0 && f->cpus > 0 && f->vram_bytes > 0 && f->vram_bytes * f->gpus < 2 * PLAN_GB * f->cpus)
        leat__plan_note(plan, "less GPU memory than 2 GB per vCPU, a rule of thumb: %u GB for %u vCPUs",
                        2 * f->cpus, f->cpus);
    const plan_gpu *gpu = f->gpus > 0 ? leat__plan_gpu_find(f->gpu) : NULL;
    if (gpu != NULL && !gpu->sure)
        leat__plan_note(plan, "the figures of %s are not certain: give --vram and --step-ms", gpu->name);
    if (f->ops_unknown && f->measured.cpu_us.mid <= 0)
        leat__plan_note(plan, "the CPU time of some --ops is not known: without --no-measure it is measured");
    if (f->ops_guess && f->measured.cpu_us.mid <= 0)
        leat__plan_note(plan, "the CPU time of --ops is a guess: the size of the image varies before some");
    if (f->loader == LEAT_PLAN_PROCESS && plan->ram_process.shm_short)
        leat__plan_note(plan, "/dev/shm is too small for a process-based loader's queue");
    const leat_plan_speed *s = &plan->speed;
    if (leat__plan_trainer_unknown(f))
        leat__plan_note(plan, "incomplete: the rate of the trainer is not known (--model without a GPU): the "
                              "loader alone is planned");
    if (s->io.mid <= 0 || s->cpu.mid <= 0 || (f->gpus > 0 && s->gpu.mid <= 0)) {
        leat__plan_note(plan, "incomplete: the rate of %s%s%s is not known", s->io.mid <= 0 ? "storage" : "",
                        s->io.mid <= 0 && s->gpu.mid <= 0 && f->gpus > 0 ? " and " : "",
                        s->cpu.mid <= 0                  ? "the CPUs"
                        : f->gpus > 0 && s->gpu.mid <= 0 ? "the GPU"
                                                         : "");
    }
}

static uint32_t fits_of(const leat_plan *plan)
{
    bool gpu = plan->facts.gpus > 0;
    if (plan->ram.verdict == LEAT_PLAN_OUT_OF_MEMORY ||
        (gpu && plan->vram.verdict == LEAT_PLAN_OUT_OF_MEMORY))
        return 0;
    if (plan->ram.verdict == LEAT_PLAN_UNKNOWN || (gpu && plan->vram.verdict == LEAT_PLAN_UNKNOWN)) return 2;
    return 1;
}

/* Sets the number of workers per GPU and computes memory with it; facts must be complete. */
static void set_workers(leat_plan *plan, uint32_t workers)
{
    leat_plan_facts *f = &plan->facts;
    f->workers = (int32_t)workers;
    plan->config.workers = workers;
    choose_order(plan);
    leat__plan_ram_process(f, &plan->ram_process);
    if (f->loader == LEAT_PLAN_PROCESS) plan->ram = plan->ram_process;
    else leat__plan_ram_leat(f, plan->config.page_window, &plan->ram);
    plan->config.memory_bytes = plan->ram.budget;
}

/* Returns the most workers up to `top` with this verdict or a better one; 0 = none. */
static uint32_t most_workers(leat_plan *plan, uint32_t top, uint32_t verdict)
{
    uint32_t low = 0, high = top + 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        set_workers(plan, middle);
        if (plan->ram.verdict <= verdict) low = middle;
        else high = middle;
    }
    return low;
}

/* Limits the default number of workers, which follows from the CPUs, to those that memory has room for. */
static void limit_workers(leat_plan *plan)
{
    uint32_t top = (uint32_t)plan->facts.workers;
    if (plan->ram.verdict <= LEAT_PLAN_SAFE) return;
    uint32_t safe = most_workers(plan, top, LEAT_PLAN_SAFE);
    uint32_t few = most_workers(plan, LEAT_MIN(top, FEW_WORKERS), LEAT_PLAN_RISKY);
    set_workers(plan, LEAT_MAX(LEAT_MAX(safe, few), 1u));
}

bool leat__plan_own_workers(const leat_plan_facts *f)
{
    return f->workers == 0 && f->preset == LEAT_PLAN_PRESET_NONE;
}

int leat__plan_judge_ram(leat_plan *plan, leat_error *err)
{
    const bool own = leat__plan_own_workers(&plan->facts);
    LEAT_TRY(leat__plan_complete(plan, err));
    set_workers(plan, (uint32_t)plan->facts.workers);
    if (own) limit_workers(plan);
    return 0;
}

static double rate_with(leat_plan *plan, const leat__plan_overlap *overlap, uint32_t workers)
{
    set_workers(plan, workers);
    leat__plan_speed(&plan->facts, overlap, &plan->ram, &plan->vram, &plan->speed);
    return plan->speed.rate.mid;
}

/* Returns the fastest number of workers up to `top`. Tries each of the first few, because runs of
 * samples are longer with fewer workers. Above them the rate rises with the number, may stay
 * constant, then falls. */
static uint32_t fastest_workers(leat_plan *plan, const leat__plan_overlap *overlap, uint32_t top)
{
    uint32_t few = LEAT_MIN(top, FEW_WORKERS), low = few, high = top, best = 1;
    while (high - low > 2) {
        uint32_t third = (high - low) / 3;
        double left = rate_with(plan, overlap, low + third), right = rate_with(plan, overlap, high - third);
        if (left >= right) high -= third;
        else low += third;
    }
    double most = rate_with(plan, overlap, 1);
    for (uint32_t n = 2; n <= high; n++) {
        if (n > few && n < low) n = low;
        double rate = rate_with(plan, overlap, n);
        if (rate > most) {
            most = rate;
            best = n;
        }
    }
    return best;
}

/* Balances default workers against a cache: more workers are faster until the cache lacks their
 * memory. Takes the largest number whose rate is near the best. */
static void balance_workers(leat_plan *plan, const leat__plan_overlap *overlap)
{
    uint32_t top = (uint32_t)plan->facts.workers;
    if (plan->facts.epochs == 1 || plan->speed.cached_share >= 1) return; /* no cache would become larger */
    uint32_t low = fastest_workers(plan, overlap, top), high = top + 1;
    double least = NEAR_BEST * rate_with(plan, overlap, low);
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (rate_with(plan, overlap, middle) >= least) low = middle;
        else high = middle;
    }
    rate_with(plan, overlap, low);
}

int leat__plan_judge_as(leat_plan *plan, const leat__plan_overlap *overlap, leat_error *err)
{
    const leat_plan_facts *f = &plan->facts;
    const bool own = leat__plan_own_workers(f);
    LEAT_TRY(leat__plan_judge_ram(plan, err));
    if (f->gpus > 0 && plan->vram.total == 0) {
        leat_plan_vram *v = &plan->vram;
        LEAT_TRY(leat__plan_vram(f, v, err));
        v->step_s = leat__plan_step_s(f, v, &v->step_spread);
    }
    leat__plan_overlap measured = leat__plan_overlap_of(f);
    if (overlap == NULL) overlap = &measured;
    leat__plan_speed(f, overlap, &plan->ram, &plan->vram, &plan->speed);
    if (own) balance_workers(plan, overlap);
    plan->fits = fits_of(plan);
    return 0;
}

int leat__plan_judge(leat_plan *plan, leat_error *err)
{
    return leat__plan_judge_as(plan, NULL, err);
}

static int make(leat_plan *plan, leat_error *err)
{
    const leat_plan_facts *f = &plan->facts;
    const int32_t workers = f->workers; /* before defaults are filled in */
    const uint32_t prefetch = f->prefetch;
    const uint64_t max_sample_bytes = f->max_sample_bytes;
    LEAT_TRY(leat__plan_judge(plan, err));
    if (f->gpus > 0) LEAT_TRY(leat__plan_largest_batch(f, &plan->vram.largest_batch, err));
    leat_plan_facts given = *f;
    given.workers = workers;
    given.prefetch = prefetch;
    given.max_sample_bytes = max_sample_bytes;
    leat__plan_traffic(plan);
    leat__plan_decodes(plan);
    leat__plan_what_ifs(plan, &given);
    if (f->gpus > 0) leat__plan_scales(plan, &given);
    note_rules(plan, &given);
    return plan->fits == 0 ? leat__plan_fix(plan, &given, err) : 0;
}

int leat_plan_make(const leat_plan_facts *facts, leat_plan *plan, size_t plan_size, leat_error *err)
{
    LEAT_REQUIRE(facts != NULL && plan != NULL, err);
    if (facts->struct_size == 0 || plan_size == 0)
        return leat__fail(err, LEAT_EINVAL, "facts were not initialised");
    leat_plan full = {.struct_size = (uint32_t)plan_size};
    memcpy(&full.facts, facts, LEAT_MIN((size_t)facts->struct_size, sizeof full.facts));
    full.facts.struct_size = sizeof full.facts;
    int rc = make(&full, err);
    memcpy(plan, &full, LEAT_MIN(plan_size, sizeof full));
    return rc;
}

/* ---- Text ---- */

const char *leat_plan_verdict_name(uint32_t verdict)
{
    static const char *const names[] = {"unknown", "safe", "risky", "out of memory"};
    return verdict < LEAT_COUNT(names) ? names[verdict] : "unknown";
}

const char *leat__plan_order_name(const leat_plan *plan)
{
    return leat__order_name(leat__plan_order(&plan->facts));
}

const char *leat_plan_resource_name(uint32_t resource)
{
    static const char *const names[] = {"nothing", "io", "cpu", "h2d", "gpu"};
    return resource < LEAT_COUNT(names) ? names[resource] : "nothing";
}

const char *leat_plan_precision_name(uint32_t precision)
{
    static const char *const names[] = {"auto", "fp32", "16-mixed", "bf16-mixed", "bf16-true"};
    return precision < LEAT_COUNT(names) ? names[precision] : "auto";
}

/* ---- After a run ---- */

static leat_plan_error_row *add_row(leat_plan_error_row *rows, uint32_t *n, const char *what,
                                    double predicted, double measured)
{
    if (predicted <= 0 || measured <= 0 || *n == LEAT_PLAN_ERROR_ROWS) return NULL;
    leat_plan_error_row *row = &rows[(*n)++];
    *row = (leat_plan_error_row){
        .predicted = predicted, .measured = measured, .error = (predicted - measured) / measured};
    snprintf(row->what, sizeof row->what, "%s", what);
    return row;
}

/* Returns the rate of a run whose first epoch starts with a cold cache. */
static double over_epochs(double first, double later, double epochs)
{
    return first > 0 && later > 0 ? epochs / (1 / first + (epochs - 1) / later) : later;
}

/* the last batch of an epoch may be smaller */
uint64_t leat__plan_other_batch(const leat_plan *plan, const leat_plan_run *run)
{
    uint64_t batch = plan->facts.batch;
    if (run->epochs == 0 || run->batches == 0 || batch == 0) return 0;
    uint64_t samples = run->samples / run->epochs, batches = leat__ceil_div(run->batches, run->epochs);
    return leat__ceil_div(samples, batch) == batches ? 0 : leat__ceil_div(samples, batches);
}

uint32_t leat_plan_compare(const leat_plan *plan, const leat_plan_run *run,
                           leat_plan_error_row rows[LEAT_PLAN_ERROR_ROWS])
{
    if (plan == NULL || run == NULL || rows == NULL) return 0;
    const leat_plan_speed *s = &plan->speed;
    const leat_plan_ram *r = &plan->ram;
    uint32_t n = 0;
    double epochs = (double)LEAT_MAX(run->epochs, UINT64_C(1));
    leat_plan_range rate = {over_epochs(s->first_epoch.low, s->later.low, epochs),
                            over_epochs(s->first_epoch.mid, s->later.mid, epochs),
                            over_epochs(s->first_epoch.high, s->later.high, epochs)};
    leat_plan_error_row *row = add_row(rows, &n, "samples/s", rate.mid, run->samples_per_s);
    if (row != NULL) row->inside = run->samples_per_s >= rate.low && run->samples_per_s <= rate.high;
    if (run->epochs > 0 && rate.mid > 0)
        add_row(rows, &n, "seconds per epoch", (double)run->samples / epochs / rate.mid,
                run->seconds / epochs);
    if (run->samples > 0)
        add_row(rows, &n, "CPU microseconds per sample", s->cpu_us,
                run->cpu_seconds * 1e6 / (double)run->samples);
    /* A trainer that mostly waits for batches never sees full queues: the prediction is then an upper
     * bound. */
    bool starved = run->wait_seconds > 0.5 * run->seconds;
    double resident =
        (double)(plan->facts.loader == LEAT_PLAN_PROCESS ? r->total - r->os - r->framework - r->used
                                                         : r->resident);
    row = add_row(rows, &n, starved ? "peak memory, at most" : "peak memory", resident,
                  (double)run->peak_rss_bytes);
    if (row != NULL) row->bytes = 1;
    return n;
}

/* ---- Output ---- */

int leat_plan_write(const leat_plan *plan, leat_plan_format format,
                    int (*write)(void *cookie, const char *text, size_t len), void *cookie, leat_error *err)
{
    LEAT_REQUIRE(plan != NULL && write != NULL, err);
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_PLAN, (size_t)1 << 24);
    if (format == LEAT_PLAN_JSON) leat__plan_json(plan, &out);
    else if (format == LEAT_PLAN_YAML) leat__plan_yaml(plan, &out);
    else leat__plan_page(plan, &out, format == LEAT_PLAN_PAGE_ASCII);
    int rc = leat__buf_status(&out);
    if (rc != 0) leat__fail_nomem(err, out.len, "the plan's text");
    else rc = write(cookie, leat__buf_str(&out), out.len);
    leat__buf_reset(&out);
    return rc;
}
