/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverse planning: the largest or smallest value of one fact that fits, the smallest change that
 * makes a plan fit, and the table over numbers of GPUs.
 */
#include "plan/parts.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "base/str.h"

#define SHOWN 1.006 /* so that a size is enough also as three digits of it */

static void ram_of(const leat_plan_facts *f, uint32_t window, leat_plan_ram *ram)
{
    if (f->loader == LEAT_PLAN_PROCESS) leat__plan_ram_process(f, ram);
    else leat__plan_ram_leat(f, window, ram);
}

/* Without leat's window of pages: that is reduced first. */
static bool ram_fits(const leat_plan_facts *f)
{
    leat_plan_ram ram;
    ram_of(f, 0, &ram);
    return ram.verdict != LEAT_PLAN_OUT_OF_MEMORY;
}

static bool ram_safe(const leat_plan_facts *f)
{
    leat_plan_ram ram;
    ram_of(f, 0, &ram);
    return ram.verdict == LEAT_PLAN_SAFE;
}

/* Largest value in [1, top] for which the facts with *field = value fit; 0 when none does. Memory
 * grows with each of these fields, so bisection finds it. */
static uint64_t largest(leat_plan_facts *f, uint64_t top, void (*set)(leat_plan_facts *f, uint64_t value),
                        bool (*good)(const leat_plan_facts *f))
{
    uint64_t low = 0, high = top + 1;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        set(f, middle);
        if (good(f)) low = middle;
        else high = middle;
    }
    return low;
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

/* ---- The smallest change ---- */

/* Of the possible values, takes the one that keeps the largest share of what was requested. */
static void fix_ram(leat_plan *plan)
{
    bool process = plan->facts.loader == LEAT_PLAN_PROCESS;
    const struct {
        const char *name;
        void (*set)(leat_plan_facts *, uint64_t);
    } fields[] = {{"--prefetch", set_prefetch},
                  {process ? "--workers" : "--threads", set_workers},
                  {"--batch", set_batch}};
    const uint64_t asked[] = {plan->facts.prefetch, (uint64_t)plan->facts.workers, plan->facts.batch};
    double best_share = 0;
    if (plan->facts.memory_bytes > 0 && !process) {
        leat_plan_facts f = plan->facts;
        leat_plan_ram ram;
        f.memory_bytes = 0;
        leat__plan_ram_leat(&f, 0, &ram);
        if (ram.verdict != LEAT_PLAN_OUT_OF_MEMORY) {
            snprintf(plan->fix, sizeof plan->fix, "--memory %llu", (unsigned long long)ram.budget);
            return;
        }
    }
    for (size_t i = 0; i < LEAT_COUNT(fields); i++) {
        leat_plan_facts f = plan->facts;
        uint64_t value = largest(&f, asked[i], fields[i].set, ram_fits);
        double share = (double)value / (double)asked[i];
        if (value == 0 || share <= best_share) continue;
        best_share = share;
        snprintf(plan->fix, sizeof plan->fix, "%s %llu (instead of %llu)", fields[i].name,
                 (unsigned long long)value, (unsigned long long)asked[i]);
    }
    char text[24];
    leat_plan_ram leat;
    leat__plan_ram_leat(&plan->facts, 0, &leat);
    if (process && leat.verdict != LEAT_PLAN_OUT_OF_MEMORY) {
        size_t used = strlen(plan->fix);
        snprintf(plan->fix + used, sizeof plan->fix - used, "%sleat's loader with a budget of %s",
                 used > 0 ? "; or " : "", leat__format_bytes(leat.budget, text, sizeof text));
    }
    if (plan->fix[0] == '\0') {
        double safe = process ? PLAN_SAFE_PROCESS : PLAN_SAFE_LEAT;
        uint64_t need = (uint64_t)((double)plan->ram.with_validation / safe);
        snprintf(plan->fix, sizeof plan->fix, "%s at least %s of memory",
                 plan->facts.whole_machine ? "a machine with" : "a limit of",
                 leat__format_bytes(need, text, sizeof text));
    }
}

static int fix_vram(leat_plan *plan, leat_error *err)
{
    leat_plan_facts f = plan->facts;
    leat_plan_vram v;
    if (f.precision == LEAT_PLAN_FP32) {
        const plan_gpu *gpu = leat__plan_gpu_find(f.gpu);
        f.precision = gpu != NULL && !gpu->bf16 ? LEAT_PLAN_FP16_MIXED : LEAT_PLAN_BF16_MIXED;
        LEAT_TRY(leat__plan_vram(&f, &v, err));
        if (v.verdict != LEAT_PLAN_OUT_OF_MEMORY) {
            snprintf(plan->fix, sizeof plan->fix, "--precision %s (instead of fp32)",
                     leat_plan_precision_name(f.precision));
            return 0;
        }
    }
    uint64_t batch = plan->vram.largest_batch;
    if (batch > 0) {
        snprintf(plan->fix, sizeof plan->fix, "--batch %llu (instead of %llu) and lr %.4g",
                 (unsigned long long)batch, (unsigned long long)plan->facts.batch,
                 leat__plan_lr(&plan->facts, batch * plan->facts.gpus * plan->facts.nodes));
        return 0;
    }
    char text[24];
    const char *with = plan->facts.batch > 1 ? "--batch 1 and " : "";
    f = plan->facts;
    f.batch = 1;
    LEAT_TRY(leat__plan_vram(&f, &v, err));
    if (v.verdict != LEAT_PLAN_OUT_OF_MEMORY && f.batch < plan->facts.batch)
        snprintf(plan->fix, sizeof plan->fix, "--batch 1 (instead of %llu) and lr %.4g",
                 (unsigned long long)plan->facts.batch,
                 leat__plan_lr(&plan->facts, (uint64_t)plan->facts.gpus * plan->facts.nodes));
    else
        snprintf(plan->fix, sizeof plan->fix, "%sa GPU with at least %s of memory", with,
                 leat__format_bytes((uint64_t)(SHOWN * (double)v.total / PLAN_SAFE_VRAM), text, sizeof text));
    return 0;
}

int leat__plan_fix(leat_plan *plan, leat_error *err)
{
    plan->fix[0] = '\0';
    if (plan->facts.gpus > 0 && plan->vram.verdict == LEAT_PLAN_OUT_OF_MEMORY) return fix_vram(plan, err);
    if (plan->ram.verdict == LEAT_PLAN_OUT_OF_MEMORY) fix_ram(plan);
    return 0;
}

/* ---- The table over GPUs ---- */

static void add_scale(leat_plan *plan, uint32_t gpus, uint32_t nodes)
{
    if (plan->scale_count == LEAT_PLAN_SCALES) return;
    for (uint32_t i = 0; i < plan->scale_count; i++)
        if (plan->scales[i].gpus == gpus && plan->scales[i].nodes == nodes) return;
    leat_plan_facts f = plan->facts;
    leat_plan_ram ram;
    f.gpus = (uint32_t)leat__ceil_div(gpus, nodes);
    f.nodes = nodes;
    uint64_t window = (uint64_t)plan->config.page_window * plan->facts.gpus / f.gpus;
    ram_of(&f, (uint32_t)window, &ram); /* pages of the node shared by its trainers */
    leat_plan_scale *row = &plan->scales[plan->scale_count++];
    *row = (leat_plan_scale){.gpus = gpus, .nodes = nodes};
    /* of the nodes' CPUs: more workers would only contend */
    uint64_t workers = (uint64_t)f.gpus * (uint32_t)f.workers;
    if (f.cpus > 0) workers = LEAT_MIN(workers, (uint64_t)f.cpus);
    row->workers = (uint32_t)workers * nodes;
    row->total_batch = gpus * f.batch;
    row->guide_buffer = gpus * 8 * PLAN_GB;
    row->guide_ram = f.gpus * 8 * PLAN_GB + 5 * PLAN_GB;
    row->ram = ram.total;
    row->fits = ram.limit == 0 ? 2 : ram.verdict != LEAT_PLAN_OUT_OF_MEMORY;
    row->lr = leat__plan_lr(&f, row->total_batch);
    row->rate = plan->facts.gpus > 0 ? plan->speed.gpu.mid / plan->facts.gpus * gpus : 0;
}

void leat__plan_scales(leat_plan *plan)
{
    plan->scale_count = 0;
    for (uint32_t gpus = 1; gpus <= 8; gpus *= 2) add_scale(plan, gpus, 1);
    uint32_t nodes = plan->facts.nodes, per_node = plan->facts.gpus;
    add_scale(plan, per_node, 1);
    if (nodes > 1) add_scale(plan, per_node * nodes, nodes);
}

/* ---- Solving for one fact ---- */

static int solve_batch(const leat_plan *plan, uint64_t *value, leat_error *err)
{
    uint64_t top = UINT64_C(1) << 22;
    if (plan->facts.gpus > 0) {
        if (plan->vram.limit == 0)
            return leat__fail(err, LEAT_EINVAL, "the largest batch needs the GPU's memory");
        top = plan->vram.largest_batch;
    } else if (plan->ram.limit == 0) {
        return leat__fail(err, LEAT_EINVAL, "the largest batch needs a memory limit");
    }
    leat_plan_facts f = plan->facts;
    f.memory_bytes = 0;
    *value = top == 0 || plan->ram.limit == 0 ? top : largest(&f, top, set_batch, ram_safe);
    return 0;
}

static void solve_ram(const leat_plan *plan, uint64_t *value)
{
    double safe = plan->facts.loader == LEAT_PLAN_PROCESS ? PLAN_SAFE_PROCESS : PLAN_SAFE_LEAT;
    *value = (uint64_t)((double)plan->ram.with_validation / safe) + 1;
}

static int solve_gpus(const leat_plan *plan, uint64_t *value, leat_error *err)
{
    if (plan->facts.gpus == 0 || plan->ram.limit == 0 || plan->facts.cpus == 0)
        return leat__fail(err, LEAT_EINVAL, "the most GPUs need a GPU, a memory limit and a number of CPUs");
    leat_plan_facts f = plan->facts;
    uint64_t held = largest(&f, 4096, set_gpus, ram_safe);
    double per_gpu = plan->speed.cores_needed / plan->facts.gpus;
    double fed = per_gpu > 0 ? plan->facts.cpus / per_gpu : (double)held;
    *value = (double)held < fed ? held : (uint64_t)fed;
    return 0;
}

static int solve_cpus(const leat_plan *plan, uint64_t *value, leat_error *err)
{
    if (plan->speed.cores_needed <= 0)
        return leat__fail(err, LEAT_EINVAL,
                          "the least CPUs need the GPU's rate: give a known GPU and model, "
                          "or a measured step time");
    /* plus one for each trainer, as in the guide */
    *value = (uint64_t)plan->speed.cores_needed + 1 + plan->facts.gpus;
    return 0;
}

int leat_plan_solve(const leat_plan_facts *facts, leat_plan_field field, uint64_t *value, leat_error *err)
{
    LEAT_REQUIRE(facts != NULL && value != NULL, err);
    leat_plan plan;
    *value = 0;
    LEAT_TRY(leat_plan_make(facts, &plan, sizeof plan, err));
    switch (field) {
    case LEAT_PLAN_SOLVE_BATCH: return solve_batch(&plan, value, err);
    case LEAT_PLAN_SOLVE_RAM: solve_ram(&plan, value); return 0;
    case LEAT_PLAN_SOLVE_GPUS: return solve_gpus(&plan, value, err);
    case LEAT_PLAN_SOLVE_CPUS: return solve_cpus(&plan, value, err);
    }
    return leat__fail(err, LEAT_EINVAL, "no such field to solve for");
}
