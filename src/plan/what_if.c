/* SPDX-License-Identifier: Apache-2.0
 *
 * What-if rows: the effect of one change to dataset, machine or options. A row is a plan made with the
 * change, by the function that makes every plan, so that `leat plan` reports the same rate after the change.
 * Its name is what a user types: options of `leat plan`, or another command and its options; a description if
 * there is no such option. Text in brackets is a remark.
 */
#include "plan/parts.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"

/* Smaller gains are within the error of the figures and get no row. */
#define LEAST_GAIN 1.05

typedef struct rows {
    leat_plan *plan;
    const leat_plan_facts *given;
    leat__plan_overlap overlap; /* overlap of the plan: changed facts have no calibration */
} rows;

/* Appends to the list of changes without a gain. */
static void add_no_gain(leat_plan *plan, const char *change)
{
    size_t used = strlen(plan->no_gain);
    snprintf(plan->no_gain + used, sizeof plan->no_gain - used, "%s%s", used > 0 ? "; " : "", change);
}

/* Adds one row: the plan with changed facts. A plan that does not fit gets no row. */
static void what_if(const rows *r, const char *change, const leat_plan_facts *f)
{
    leat_plan *plan = r->plan;
    leat_plan then = {.facts = *f};
    double now = plan->speed.rate.mid;
    if (f->element_bytes == plan->facts.element_bytes) then.vram = plan->vram; /* unchanged step */
    if (plan->what_if_count == LEAT_PLAN_WHAT_IFS || now <= 0) return;
    if (leat__plan_judge_as(&then, &r->overlap, NULL) != 0 || then.speed.rate.mid <= 0) return;
    if (then.speed.rate.mid < LEAST_GAIN * now || then.fits == 0) {
        add_no_gain(plan, change);
        return;
    }
    leat_plan_what_if *row = &plan->what_ifs[plan->what_if_count++];
    *row = (leat_plan_what_if){
        .rate = then.speed.rate.mid, .gain = then.speed.rate.mid / now, .limit = then.speed.limit};
    uint64_t bytes = leat__plan_dataset_bytes(&then.facts);
    if (bytes != leat__plan_dataset_bytes(&plan->facts)) row->dataset_bytes = bytes;
    snprintf(row->change, sizeof row->change, "%s", change);
}

/* ---- How images are stored ---- */

static leat_plan_range scaled(leat_plan_range r, double factor)
{
    return (leat_plan_range){r.low * factor, r.mid * factor, r.high * factor};
}

/* Returns the table's cost of a sample with its ops. */
static double sample_us(const leat_plan_facts *f)
{
    return leat__plan_cpu_times(f) * leat__plan_table_us(f) + f->ops_us;
}

/* Scales the cost of the ops, some of which may run before the crop, to the size of the images. */
static void scale_ops(leat_plan_facts *f, const leat_plan_facts *before)
{
    double now, then;
    bool sure;
    if (f->ops == NULL || f->ops_us <= 0) return;
    if (!leat__plan_ops_us(f->ops, f->isa, before->width, before->height, &now, &sure) || now <= 0) return;
    if (!leat__plan_ops_us(f->ops, f->isa, f->width, f->height, &then, &sure)) return;
    f->ops_us *= then / now;
    if (!sure) f->ops_guess = 1;
}

/* Scales a measured cost, which is valid only for the images as stored now, by the ratio of the
 * table's costs. */
static void reprice(leat_plan_facts *f, const leat_plan_facts *before)
{
    double factor = sample_us(f) / sample_us(before);
    leat_plan_calibration *m = &f->measured;
    m->cpu_us = scaled(m->cpu_us, factor);
    m->rate_one = scaled(m->rate_one, 1 / factor);
    m->rate_all = scaled(m->rate_all, 1 / factor);
    m->rate_cold = (leat_plan_range){0}; /* other bytes would be read */
}

static void set_bytes(leat_plan_facts *f, double bytes)
{
    f->max_sample_bytes = (uint64_t)((double)f->max_sample_bytes * bytes / (double)f->sample_bytes);
    f->sample_bytes = LEAT_MAX((uint64_t)bytes, UINT64_C(1));
}

static void store_as(const rows *r, const char *change, uint32_t images, double mix)
{
    leat_plan_facts f = *r->given;
    set_bytes(&f, (double)leat__plan_stored_bytes(&f, images, mix));
    f.images = images;
    f.mix_raw = mix;
    f.work = 0; /* valid only for the images as stored now */
    reprice(&f, r->given);
    what_if(r, change, &f);
}

/* Returns the share of bytes at lower quality; leat pack stores smaller images at this quality, too. */
static double quality_share(const leat_plan_facts *f)
{
    return f->quality_share > 0 ? f->quality_share : leat__plan_quality_share(PLAN_LESS_QUALITY);
}

static double smaller_share(const leat_plan_facts *f, double shrink)
{
    if (f->smaller_share > 0) return f->smaller_share;
    return shrink * shrink * (f->images == LEAT_PLAN_RAW ? 1 : quality_share(f));
}

static void what_if_smaller(const rows *r)
{
    const leat_plan_facts *base = r->given;
    uint32_t side = LEAT_MAX(base->width, base->height);
    leat_plan_facts f = *base;
    if (side > PLAN_SMALLER_SIDE) {
        double shrink = (double)PLAN_SMALLER_SIDE / side;
        f.width = LEAT_MAX((uint32_t)(f.width * shrink + 0.5), 1u);
        f.height = LEAT_MAX((uint32_t)(f.height * shrink + 0.5), 1u);
        set_bytes(&f, (double)f.sample_bytes * smaller_share(base, shrink));
        scale_ops(&f, base);
        reprice(&f, base);
        what_if(r, "leat pack --max-side 400", &f);
    }
    if (base->images == LEAT_PLAN_RAW) return;
    f = *base;
    set_bytes(&f, (double)f.sample_bytes * quality_share(base));
    reprice(&f, base);
    what_if(r, "leat pack --quality 90", &f);
}

static void what_if_stored(const rows *r)
{
    const leat_plan_facts *base = r->given;
    if (base->images == LEAT_PLAN_KEEP) store_as(r, "leat pack --images tiled", LEAT_PLAN_TILED, 0);
    if (base->images != LEAT_PLAN_RAW && base->images != LEAT_PLAN_MIX) {
        store_as(r, "leat pack --images mix --mix-raw 0.5", LEAT_PLAN_MIX, 0.5);
        store_as(r, "leat pack --images raw", LEAT_PLAN_RAW, 0);
    }
    what_if_smaller(r);
}

/* ---- Loader, storage, CPUs ---- */

/* Adds leat's loader. Costs of worker processes say nothing about leat's threads. The type of pixels
 * is kept, although leat's default is another. */
static void what_if_leat(const rows *r)
{
    static const char *const dtypes[] = {[1] = "u8", [2] = "f16", [4] = "f32"};
    leat_plan_facts f = *r->given;
    char change[64];
    const bool keep = f.images == LEAT_PLAN_KEEP, cost = f.measured.cpu_us.mid > 0;
    f.loader = LEAT_PLAN_LEAT;
    if (keep) f.images = LEAT_PLAN_TILED;
    f.measured.cpu_us = f.measured.rate_one = f.measured.rate_all = f.measured.rate_cold =
        (leat_plan_range){0};
    snprintf(change, sizeof change, "--loader leat%s --dtype %s%s", keep ? " --images tiled" : "",
             dtypes[f.element_bytes], cost ? ", no --cpu-us" : "");
    what_if(r, change, &f);
}

static void what_if_storage(const rows *r, const char *change, const char *storage)
{
    leat_plan_facts f = *r->given;
    snprintf(f.storage, sizeof f.storage, "%s", storage);
    f.measured.io_bytes_per_s = f.measured.rate_cold = (leat_plan_range){0};
    what_if(r, change, &f);
}

/* Returns the most workers, up to those that the cores have work for, that still fit host memory. */
static uint32_t more_workers(const rows *r)
{
    leat_plan_facts f = *r->given;
    uint32_t low = (uint32_t)f.workers, high = leat__plan_default_workers(f.cpus, f.gpus) + 1;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        f.workers = (int32_t)middle;
        leat_plan then = {.facts = f};
        bool fits = leat__plan_judge_ram(&then, NULL) == 0 && then.ram.verdict != LEAT_PLAN_OUT_OF_MEMORY;
        if (fits) low = middle;
        else high = middle;
    }
    return low;
}

/* Adds rows for CPUs and workers. A given number of workers does not use more cores; more workers do,
 * if cores are idle. */
static void what_if_cpus(const rows *r)
{
    const leat_plan_facts *base = r->given;
    const char *name = base->loader == LEAT_PLAN_PROCESS ? "workers" : "threads";
    bool fixed = base->workers > 0;
    bool idle = fixed && (uint32_t)base->workers < leat__plan_default_workers(base->cpus, base->gpus);
    uint32_t most = idle ? more_workers(r) : 0;
    leat_plan_facts f = *base;
    char change[64];
    if (most > (uint32_t)base->workers) {
        f.workers = (int32_t)most;
        snprintf(change, sizeof change, "--%s %u", name, most);
        what_if(r, change, &f);
        f = *base;
    }
    f.cpus *= 2;
    f.cpu_quota *= 2;
    if (fixed && !idle) f.workers *= 2;
    if (base->cpu[0] != '\0') /* --cpus would mean a machine of another CPU model */
        snprintf(change, sizeof change, "twice the cores%s%s", fixed && !idle ? " and " : "",
                 fixed && !idle ? name : "");
    else if (fixed && !idle)
        snprintf(change, sizeof change, "--cpus %u --%s %d", f.cpus, name, (int)f.workers);
    else snprintf(change, sizeof change, "--cpus %u", f.cpus);
    what_if(r, change, &f);
}

/* Adds more memory for the pages of a bucket: the budget that the plan would choose, or a machine with twice
 * the memory if this one has too little for it. */
static void what_if_memory(const rows *r)
{
    const leat_plan *now = r->plan;
    leat_plan_facts f = *r->given;
    char change[64];
    if (f.loader != LEAT_PLAN_LEAT) return;
    if (f.memory_bytes > 0) {
        leat_plan own = {.facts = f, .vram = now->vram};
        own.facts.memory_bytes = 0;
        if (leat__plan_judge_ram(&own, NULL) != 0 || own.ram.budget <= f.memory_bytes) return;
        uint64_t mib = leat__ceil_div(own.ram.budget, UINT64_C(1) << 20);
        f.memory_bytes = mib << 20;
        snprintf(change, sizeof change, "--memory %lluM", (unsigned long long)mib);
        what_if(r, change, &f);
        return;
    }
    const leat__plan_reads reads = leat__plan_reads_of(&now->facts, &now->ram);
    if (now->ram.limit == 0 || (reads.kept >= 1 && reads.single <= 0)) return;
    f.ram_bytes *= 2;
    f.limit_bytes *= 2;
    if (f.whole_machine && f.limit_bytes == 0)
        snprintf(change, sizeof change, "--ram %lluM", (unsigned long long)(f.ram_bytes >> 20));
    else snprintf(change, sizeof change, "twice the memory");
    what_if(r, change, &f);
}

/* Adds a disk cache for a bucket: the first epoch still reads from the bucket, whose objects are not
 * in the page cache. */
static void what_if_bucket(const rows *r)
{
    leat_plan_facts f = *r->given;
    if (f.epochs == 1) return;
    what_if_storage(r, "leat load --cache disk:DIR, on NVMe", "nvme");
    if (f.loader == LEAT_PLAN_LEAT) what_if_storage(r, "whole dataset cached in memory", "memory");
}

void leat__plan_what_ifs(leat_plan *plan, const leat_plan_facts *given)
{
    const rows r = {plan, given, leat__plan_overlap_of(&plan->facts)};
    leat_plan_facts f = *given;
    plan->what_if_count = 0;
    plan->no_gain[0] = '\0';
    if (plan->fits == 0) { /* it never reaches the rate that gains are relative to */
        leat__plan_note(plan, "no what-if rows: they are for a plan that fits");
        return;
    }
    if (given->loader == LEAT_PLAN_LEAT && leat__plan_reads_single(&plan->facts)) {
        f.order = PLAN_ORDER(LEAT_ORDER_QUASI);
        what_if(&r, "--order quasi_random", &f);
    }
    if (given->loader == LEAT_PLAN_LEAT) what_if_stored(&r);
    else what_if_leat(&r);
    if (leat__plan_remote(given)) {
        what_if_memory(&r);
        what_if_bucket(&r);
    } else {
        what_if_storage(&r, "whole dataset cached in memory", "memory");
    }
    what_if_cpus(&r);
    if (given->gpus > 0 && given->element_bytes > 1 && given->wide == 0 && given->out_bytes == 0) {
        f = *given;
        f.element_bytes = 1;
        what_if(&r, "--dtype u8 (normalise on the GPU)", &f);
    }
}
