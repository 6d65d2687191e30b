/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverse planning: the largest or smallest value of one fact that fits, the smallest change that makes a
 * plan fit, and the table over numbers of GPUs.
 */
#include "plan/parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "base/str.h"
#include "loader/footprint.h"

#define TRIES 128 /* values tried in one round of largest() */
#define FARTHER 4 /* times the bisection's result: beyond it memory grew by more than it varies */
#define RAM_MOST (UINT64_C(1) << 56)
#define GPUS_MOST 4096

/* ---- Verdicts, as those of a whole plan ---- */

static bool judge(const leat_plan_facts *f, leat_plan *plan)
{
    *plan = (leat_plan){.facts = *f};
    return leat__plan_judge(plan, NULL) == 0;
}

static bool ram_fits(const leat_plan_facts *f)
{
    leat_plan plan = {.facts = *f};
    return leat__plan_judge_ram(&plan, NULL) == 0 && plan.ram.verdict != LEAT_PLAN_OUT_OF_MEMORY;
}

/* True when host and GPU memory are safe. An unknown limit counts as safe. */
static bool is_safe(const leat_plan *plan)
{
    bool ram = plan->ram.verdict == LEAT_PLAN_SAFE || plan->ram.verdict == LEAT_PLAN_UNKNOWN;
    bool vram = plan->vram.verdict == LEAT_PLAN_SAFE || plan->vram.verdict == LEAT_PLAN_UNKNOWN;
    return ram && (plan->facts.gpus == 0 || vram);
}

static bool safe(const leat_plan_facts *f)
{
    leat_plan plan;
    return judge(f, &plan) && is_safe(&plan);
}

/* True when host memory is safe. Use it for batches that are safe on the GPU. Rates matter only when
 * they determine the number of threads. */
static bool ram_safe(const leat_plan_facts *f)
{
    leat_plan plan = {.facts = *f};
    if (leat__plan_judge_ram(&plan, NULL) != 0 || plan.ram.verdict == LEAT_PLAN_OUT_OF_MEMORY) return false;
    return leat__plan_own_workers(f) && f->epochs > 1 ? safe(f) : plan.ram.verdict <= LEAT_PLAN_SAFE;
}

/* True when the plan is safe and the CPUs keep the GPUs busy. */
static bool fed(const leat_plan_facts *f)
{
    leat_plan plan;
    return judge(f, &plan) && is_safe(&plan) && plan.speed.cpu.mid >= plan.speed.gpu.mid;
}

/* Returns the largest value in (low, top] for which the facts are good; `low` when there is none.
 * Memory does not grow evenly with the value: batches in flight are whole numbers, and default
 * threads depend on it. So above the result of the bisection, evenly spaced values are tried, then
 * those between them. */
static uint64_t largest(leat_plan_facts *f, uint64_t low, uint64_t top,
                        void (*set)(leat_plan_facts *f, uint64_t value),
                        bool (*good)(const leat_plan_facts *f))
{
    uint64_t high = top + 1, step;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        set(f, middle);
        if (good(f)) low = middle;
        else high = middle;
    }
    top = LEAT_MIN(top, FARTHER * low + TRIES);
    do {
        step = (top - low) / TRIES + 1;
        for (uint64_t value = top; value > low; value -= LEAT_MIN(step, value)) {
            set(f, value);
            if (good(f)) low = value;
        }
        top = LEAT_MIN(top, low + step - 1);
    } while (step > 1);
    return low;
}

/* Returns the smallest value in [1, top] that is good, for a field that memory does not grow with; 0
 * when there is none. */
static uint64_t smallest(leat_plan_facts *f, uint64_t top, void (*set)(leat_plan_facts *f, uint64_t value),
                         bool (*good)(const leat_plan_facts *f))
{
    uint64_t low = 0, high = top;
    set(f, top);
    if (!good(f)) return 0;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        set(f, middle);
        if (good(f)) high = middle;
        else low = middle;
    }
    return high;
}

static void set_memory(leat_plan_facts *f, uint64_t v)
{
    f->memory_bytes = v;
}

static void set_ram(leat_plan_facts *f, uint64_t v)
{
    f->ram_bytes = v;
}

static void set_limit(leat_plan_facts *f, uint64_t v)
{
    f->limit_bytes = v;
}

static void set_cpus(leat_plan_facts *f, uint64_t v)
{
    f->cpus = (uint32_t)v;
}

static void set_prefetch(leat_plan_facts *f, uint64_t v)
{
    f->prefetch = (uint32_t)v;
}

static void set_workers(leat_plan_facts *f, uint64_t v)
{
    f->workers = (int32_t)v;
}

static void set_batch(leat_plan_facts *f, uint64_t v)
{
    f->batch = v;
}

static void set_gpus(leat_plan_facts *f, uint64_t v)
{
    f->gpus = (uint32_t)v;
}

/* Finds the largest batch. Batches that divide the dataset are tried first: one more sample in each
 * takes memory for another batch. */
static uint64_t largest_batch(leat_plan_facts *f, uint64_t top, bool (*good)(const leat_plan_facts *f))
{
    uint64_t low = 0;
    for (uint64_t batches = 1; batches <= TRIES && low == 0; batches++) {
        uint64_t value = leat__ceil_div(f->samples, batches);
        if (value <= 1) break;
        set_batch(f, value);
        if (value <= top && good(f)) low = value;
    }
    return largest(f, low, top, set_batch, good);
}

/* ---- The smallest change ---- */

/* Appends to the text of the change; `separator` only after other text. */
static LEAT_PRINTF(3, 4) void add_text(leat_plan *plan, const char *separator, const char *fmt, ...)
{
    size_t used = strlen(plan->fix);
    if (used > 0) used += (size_t)snprintf(plan->fix + used, sizeof plan->fix - used, "%s", separator);
    if (used >= sizeof plan->fix) return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(plan->fix + used, sizeof plan->fix - used, fmt, ap);
    va_end(ap);
}

/* Names the facts that differ from those of the plan, except the machine's memory. */
static void add_changes(leat_plan *plan, const leat_plan_facts *then)
{
    const leat_plan_facts *f = &plan->facts;
    if (then->precision != f->precision)
        add_text(plan, ", and ", "--precision %s (instead of %s)", leat_plan_precision_name(then->precision),
                 leat_plan_precision_name(f->precision));
    if (then->batch != f->batch) {
        add_text(plan, ", and ", "--batch %llu (instead of %llu)", (unsigned long long)then->batch,
                 (unsigned long long)f->batch);
        if (f->gpus > 0)
            add_text(plan, " and ", "lr %.3g",
                     leat__plan_lr(f, leat__plan_total_batch(f, then->batch, (uint64_t)f->gpus * f->nodes)));
    }
    if (then->vram_bytes != f->vram_bytes)
        add_text(plan, ", and ", "a GPU with at least %s of memory", leat__as_size(then->vram_bytes).text);
    if (then->memory_bytes != f->memory_bytes)
        add_text(plan, ", and ", "--memory %llu", (unsigned long long)then->memory_bytes);
    if (then->prefetch != f->prefetch)
        add_text(plan, ", and ", "--prefetch %u (instead of %u)", then->prefetch, f->prefetch);
    if (then->workers != f->workers && then->workers != 0)
        add_text(plan, ", and ", "%s %d (instead of %d)",
                 f->loader == LEAT_PLAN_PROCESS ? "--workers" : "--threads", (int)then->workers,
                 (int)f->workers);
}

/* Returns what the loader needs beyond this budget when it chooses the threads: the plan has fewer threads
 * with less memory, but the loader has one per CPU, and keeps scratch for each while it decodes a large
 * image. */
static uint64_t other_scratch(const leat_plan_facts *given, uint64_t memory)
{
    leat_plan plan = {.facts = *given};
    plan.facts.memory_bytes = memory;
    uint64_t usual = leat__plan_default_workers(given->cpus, given->gpus);
    if (!leat__plan_own_workers(given) || given->max_image_bytes == 0) return 0;
    if (leat__plan_judge_ram(&plan, NULL) != 0 || usual <= (uint64_t)plan.facts.workers) return 0;
    return (usual - (uint64_t)plan.facts.workers) * LEAT__WORKER_RAM;
}

/* Fixes a budget that is too small, or so large that a cache in it takes all memory. */
static bool fix_memory(leat_plan_facts *facts)
{
    leat_plan_facts f = *facts;
    leat_plan own;
    if (f.memory_bytes == 0 || f.loader == LEAT_PLAN_PROCESS) return false;
    f.memory_bytes = 0; /* let the plan choose it */
    if (!judge(&f, &own) || own.ram.verdict == LEAT_PLAN_OUT_OF_MEMORY) return false;
    uint64_t value = own.ram.budget > facts->memory_bytes
                         ? smallest(&f, own.ram.budget, set_memory, ram_fits)
                         : largest(&f, 0, facts->memory_bytes, set_memory, ram_fits);
    facts->memory_bytes = value > 0 ? value + other_scratch(facts, value) : own.ram.budget;
    return true;
}

/* Reduces prefetching or the number of workers. Of the values that fit, takes the one that keeps the
 * larger share of what was requested. Default workers (0) are already as few as needed. */
static bool fix_ahead(leat_plan_facts *facts)
{
    leat_plan_facts f = *facts;
    uint64_t prefetch = largest(&f, 0, facts->prefetch, set_prefetch, ram_fits);
    f = *facts;
    uint64_t workers = largest(&f, 0, (uint64_t)facts->workers, set_workers, ram_fits);
    if (prefetch == 0 && workers == 0) return false;
    if (prefetch * (uint64_t)facts->workers >= workers * facts->prefetch) set_prefetch(facts, prefetch);
    else set_workers(facts, workers);
    return true;
}

/* Reduces the batch, which changes training. */
static bool fix_batch(leat_plan_facts *facts, bool own_prefetch)
{
    leat_plan_facts f = *facts;
    if (own_prefetch) f.prefetch = 0; /* it depends on the batch */
    uint64_t batch = largest_batch(&f, facts->batch, ram_fits);
    if (batch > 0) facts->batch = batch;
    return batch > 0;
}

/* Offers leat's loader instead of worker processes: with the same pixels, or with the 8-bit pixels
 * that are its default. */
static void offer_leat(leat_plan *plan, const leat_plan_facts *facts, uint64_t named_batch,
                       const char *separator)
{
    leat_plan_facts f = *facts;
    leat_plan leat;
    bool narrow = false;
    f.loader = LEAT_PLAN_LEAT;
    bool fits = judge(&f, &leat) && leat.ram.verdict != LEAT_PLAN_OUT_OF_MEMORY;
    if (!fits && f.wide == 0 && f.out_bytes == 0 && f.element_bytes > 1) {
        narrow = true;
        f.element_bytes = 1;
        fits = judge(&f, &leat) && leat.ram.verdict != LEAT_PLAN_OUT_OF_MEMORY;
    }
    if (!fits) return;
    if (named_batch != f.batch &&
        f.batch != plan->facts.batch) { /* the GPU's batch, which a smaller one had replaced */
        add_text(plan, separator, "--batch %llu", (unsigned long long)f.batch);
        separator = " and ";
    }
    add_text(plan, separator, "leat's loader with %sa budget of %s", narrow ? "--dtype u8 and " : "",
             leat__as_size(leat.ram.budget).text);
}

/* Offers more memory, ignoring a budget or a /dev/shm that would be too small for any. Names each
 * limit, of the machine and of the job, that is too small. */
static void offer_machine(leat_plan *plan, const leat_plan *now, const char *separator)
{
    leat_plan_facts f = now->facts, job = now->facts;
    f.limit_bytes = 0;
    uint64_t need = smallest(&f, RAM_MOST, set_ram, ram_fits), need_job = job.limit_bytes;
    if (need == 0) {
        add_text(plan, separator, "%s", now->ram.shm_short ? "a larger /dev/shm" : "no --memory");
        separator = " and ";
        f.memory_bytes = f.shm_bytes = job.memory_bytes = job.shm_bytes = 0;
        need = smallest(&f, RAM_MOST, set_ram, ram_fits);
    }
    if (need > now->facts.ram_bytes) {
        add_text(plan, separator, "%s at least %s of memory",
                 plan->facts.whole_machine ? "a machine with" : "a limit of", leat__as_size(need).text);
        separator = " and ";
    }
    job.ram_bytes = job.whole_machine = 0;
    if (job.limit_bytes > 0) need_job = smallest(&job, RAM_MOST, set_limit, ram_fits);
    if (need_job > now->facts.limit_bytes)
        add_text(plan, separator, "a limit of at least %s of memory", leat__as_size(need_job).text);
}

/* Fixes host memory. `now`: the plan after a change that makes it fit the GPU. */
static void fix_ram(leat_plan *plan, const leat_plan *now, bool own_prefetch)
{
    bool process = plan->facts.loader == LEAT_PLAN_PROCESS;
    leat_plan_facts f = now->facts;
    bool fixed = fix_memory(&f) || fix_ahead(&f) || fix_batch(&f, own_prefetch);
    add_changes(plan, &f);
    size_t used = strlen(plan->fix);
    if (process) offer_leat(plan, &now->facts, f.batch, fixed ? "; or " : ", and ");
    if (!fixed) offer_machine(plan, now, strlen(plan->fix) > used ? "; or " : ", and ");
}

/* Fixes GPU memory: half precision, else the largest batch that leaves the margin, else a larger GPU. */
static int fix_vram(leat_plan_facts *facts, leat_error *err)
{
    leat_plan_facts f = *facts;
    leat_plan_vram v;
    if (f.precision == LEAT_PLAN_FP32) {
        const plan_gpu *gpu = leat__plan_gpu_find(f.gpu);
        f.precision = gpu != NULL && !gpu->bf16 ? LEAT_PLAN_FP16_MIXED : LEAT_PLAN_BF16_MIXED;
        LEAT_TRY(leat__plan_vram(&f, &v, err));
        if (v.verdict != LEAT_PLAN_OUT_OF_MEMORY) {
            *facts = f;
            return 0;
        }
    }
    LEAT_TRY(leat__plan_largest_batch(facts, &facts->batch, err));
    facts->batch = LEAT_MAX(facts->batch, UINT64_C(1));
    LEAT_TRY(leat__plan_vram(facts, &v, err));
    if (v.verdict == LEAT_PLAN_OUT_OF_MEMORY)
        facts->vram_bytes = (uint64_t)((double)v.total / PLAN_SAFE_VRAM) + 1;
    return 0;
}

/* Makes the change for the GPU first. Then judges the changed plan as a whole, for host memory. If
 * the plan chooses the number of workers, it is chosen again for each change. */
int leat__plan_fix(leat_plan *plan, const leat_plan_facts *given, leat_error *err)
{
    const bool own_workers = leat__plan_own_workers(given);
    leat_plan now = {.facts = plan->facts};
    plan->fix[0] = '\0';
    if (plan->facts.gpus > 0 && plan->vram.verdict == LEAT_PLAN_OUT_OF_MEMORY)
        LEAT_TRY(fix_vram(&now.facts, err));
    if (own_workers) now.facts.workers = 0;
    LEAT_TRY(leat__plan_judge(&now, err));
    if (own_workers) now.facts.workers = 0;
    if (now.ram.verdict == LEAT_PLAN_OUT_OF_MEMORY) fix_ram(plan, &now, given->prefetch == 0);
    else add_changes(plan, &now.facts);
    return 0;
}

/* ---- The table over GPUs ---- */

/* Adds the plan with this many GPUs as a row. */
static void add_scale(leat_plan *plan, const leat_plan_facts *given, uint32_t gpus, uint32_t nodes)
{
    if (plan->scale_count == LEAT_PLAN_SCALES) return;
    for (uint32_t i = 0; i < plan->scale_count; i++)
        if (plan->scales[i].gpus == gpus && plan->scales[i].nodes == nodes) return;
    leat_plan_facts f = *given;
    f.gpus = (uint32_t)leat__ceil_div(gpus, nodes);
    f.nodes = nodes;
    leat_plan then = {.facts = f};
    /* per GPU: equal for all numbers above one, which keep their gradients */
    if ((gpus > 1) == (plan->facts.gpus * plan->facts.nodes > 1)) then.vram = plan->vram;
    if (leat__plan_judge(&then, NULL) != 0) return;
    leat_plan_scale *row = &plan->scales[plan->scale_count++];
    *row = (leat_plan_scale){.gpus = gpus, .nodes = nodes};
    row->workers = then.config.workers * f.gpus * nodes;
    row->unused_cpus = leat__plan_unused_cpus(&f, then.config.workers);
    row->total_batch = leat__plan_total_batch(&f, f.batch, gpus);
    row->guide_buffer = gpus * 8 * PLAN_GB;
    row->guide_ram = f.gpus * 8 * PLAN_GB + 5 * PLAN_GB;
    row->ram = then.ram.total;
    row->fits = then.fits;
    row->lr = leat__plan_lr(&f, row->total_batch);
    row->rate = then.speed.gpu.mid > 0 ? then.speed.rate.mid * nodes : 0;
}

void leat__plan_scales(leat_plan *plan, const leat_plan_facts *given)
{
    plan->scale_count = 0;
    for (uint32_t gpus = 1; gpus <= 8; gpus *= 2) add_scale(plan, given, gpus, 1);
    uint32_t nodes = plan->facts.nodes, per_node = plan->facts.gpus;
    add_scale(plan, given, per_node, 1);
    if (nodes > 1) add_scale(plan, given, per_node * nodes, nodes);
}

/* ---- Solving for one fact ---- */

static int solve_batch(const leat_plan_facts *facts, const leat_plan *plan, uint64_t *value, leat_error *err)
{
    uint64_t top = LEAT_PLAN_BATCH_MOST;
    leat_plan_facts f = *facts;
    if (plan->facts.gpus > 0) {
        if (plan->vram.limit == 0)
            return leat__fail(err, LEAT_EINVAL, "the largest batch needs the GPU's memory");
        top = plan->vram.largest_batch;
    } else if (plan->ram.limit == 0) {
        return leat__fail(err, LEAT_EINVAL, "the largest batch needs a memory limit");
    }
    if (plan->facts.samples > 0) top = LEAT_MIN(top, plan->facts.samples);
    *value = largest_batch(&f, top, ram_safe);
    return 0;
}

/* Tries each number of GPUs, from the most that the CPUs could feed. Workers are whole numbers for
 * each GPU, so one GPU more may leave more CPUs unused than two. */
static int solve_gpus(const leat_plan_facts *facts, const leat_plan *plan, uint64_t *value, leat_error *err)
{
    if (plan->facts.gpus == 0 || plan->ram.limit == 0 || plan->facts.cpus == 0)
        return leat__fail(err, LEAT_EINVAL,
                          "solving for the number of GPUs needs a GPU, a memory limit and a number of CPUs");
    if (plan->speed.cores_needed <= 0 || plan->vram.limit == 0)
        return leat__fail(
            err, LEAT_EINVAL,
            "solving for the number of GPUs needs the GPU's rate and memory: give a known GPU and "
            "model, or the GPU's memory and a measured step time");
    leat_plan_facts f = *facts;
    leat_plan one; /* more GPUs take at least as many cores each */
    set_gpus(&f, 1);
    double each = judge(&f, &one) ? one.speed.cores_needed : plan->speed.cores_needed / plan->facts.gpus;
    for (*value = (uint64_t)LEAT_MIN(plan->facts.cpus / each, GPUS_MOST); *value > 0; (*value)--) {
        set_gpus(&f, *value);
        if (fed(&f)) break;
    }
    return 0;
}

static int solve_cpus(const leat_plan_facts *facts, const leat_plan *plan, uint64_t *value, leat_error *err)
{
    if (plan->speed.cores_needed <= 0)
        return leat__fail(err, LEAT_EINVAL,
                          "the least CPUs need the GPU's rate: give a known GPU and model, "
                          "or a measured step time");
    leat_plan_facts f = *facts;
    /* each GPU may leave one CPU to its trainer, and nearly one more because workers are whole numbers */
    uint64_t first = LEAT_MAX((uint64_t)(plan->speed.cores_needed / 2), UINT64_C(1));
    uint64_t last = 2 * (uint64_t)plan->speed.cores_needed + 4 * (uint64_t)plan->facts.gpus + 1;
    for (set_cpus(&f, first); first > 1 && fed(&f); set_cpus(&f, first)) first /= 2;
    for (*value = first; *value <= last; (*value)++) {
        set_cpus(&f, *value);
        if (fed(&f)) return 0;
    }
    *value = 0;
    return 0;
}

int leat_plan_solve(const leat_plan_facts *facts, leat_plan_field field, uint64_t *value, leat_error *err)
{
    LEAT_REQUIRE(facts != NULL && value != NULL, err);
    leat_plan plan;
    *value = 0;
    LEAT_TRY(leat_plan_make(facts, &plan, sizeof plan, err));
    leat_plan_facts full = {0}; /* as given: defaults may depend on the value */
    memcpy(&full, facts, LEAT_MIN((size_t)facts->struct_size, sizeof full));
    full.struct_size = sizeof full;
    switch (field) {
    case LEAT_PLAN_SOLVE_BATCH: return solve_batch(&full, &plan, value, err);
    case LEAT_PLAN_SOLVE_RAM: *value = smallest(&full, RAM_MOST, set_ram, safe); return 0;
    case LEAT_PLAN_SOLVE_GPUS: return solve_gpus(&full, &plan, value, err);
    case LEAT_PLAN_SOLVE_CPUS: return solve_cpus(&full, &plan, value, err);
    }
    return leat__fail(err, LEAT_EINVAL, "no such field to solve for");
}
