/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan as text for people: bars for memory, rates with their intervals, tables. Plain text;
 * every line starts at the left margin or is indented by two blanks.
 */
#include "plan/parts.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

#define PAGE_COLUMNS 80u
#define BAR 40

static const char *bytes(uint64_t value, char out[24])
{
    return leat__format_bytes(value, out, 24);
}

/* Returns the decimals of a number shown with three digits, at most `most`. */
static int digits(double value, int most)
{
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return LEAT_MIN(decimals, most);
}

static const char *count(double value, char out[24])
{
    return leat__format_count(value, out, 24);
}

static void bar(leat__buf *out, uint64_t solid, uint64_t light, uint64_t limit, bool ascii)
{
    static const char *const marks[2][3] = {{"\xe2\x96\x88", "\xe2\x96\x92", "\xc2\xb7"}, {"#", "+", "."}};
    uint64_t whole = LEAT_MAX(limit, LEAT_MAX(solid, light));
    if (whole == 0) return;
    int full = (int)((double)solid / (double)whole * BAR + 0.5);
    int part = (int)((double)LEAT_MAX(solid, light) / (double)whole * BAR + 0.5);
    leat__buf_puts(out, "  ");
    for (int i = 0; i < BAR; i++) leat__buf_puts(out, marks[ascii][i < full ? 0 : i < part ? 1 : 2]);
    if (limit == 0) leat__buf_puts(out, "  limit not known\n");
    else
        leat__buf_printf(out, "  %.0f %% of the limit\n",
                         100.0 * (double)LEAT_MAX(solid, light) / (double)limit);
}

static void part(leat__buf *out, const char *name, uint64_t value, const char *why)
{
    char text[24];
    if (value == 0) return;
    leat__buf_printf(out, "  %-14s %12s%s%s\n", name, bytes(value, text), why[0] ? "  " : "", why);
}

static void ram_parts(leat__buf *out, const leat_plan_ram *r, bool process)
{
    part(out, "os", r->os, "operating system and base services");
    part(out, "used", r->used, "taken by others inside the limit");
    part(out, "framework", r->framework, "the trainer itself");
    part(out, "queue", r->queue, process ? "workers x prefetch x batch" : "batches ahead");
    part(out, "assembling", r->assembling,
         process ? "samples of the batch each worker collates" : "the batch being filled");
    part(out, process ? "pinned" : "borrowed", r->pinned,
         process ? "pin thread, in copy, in use" : "by the trainer, until it releases them");
    part(out, "workers", r->workers,
         process ? "private memory of the worker processes" : "scratch of the threads");
    part(out, "pages", r->pages, "of the pack, read ahead and in the shuffle window");
    part(out, "cache", r->cache, "pages of the dataset, kept by the loader");
}

/* Explains the budget: it is what the loader may take; full queues take less. */
static void budget_line(const leat_plan *p, leat__buf *out)
{
    char a[24], b[24];
    if (p->facts.gpus > 1)
        leat__buf_printf(out,
                         "  Each of the %u loaders is allowed %s (memory=); together they are expected to "
                         "use %s.\n",
                         p->facts.gpus, bytes(p->ram.budget, a), bytes(p->ram.resident, b));
    else
        leat__buf_printf(out, "  The loader is allowed %s (memory=); it is expected to use %s.\n",
                         bytes(p->ram.budget, a), bytes(p->ram.resident, b));
}

static void ram_section(const leat_plan *p, leat__buf *out, bool ascii)
{
    const leat_plan_ram *r = &p->ram;
    char a[24], b[24];
    bool process = p->facts.loader == LEAT_PLAN_PROCESS;
    leat__buf_printf(out, "\nHost memory, per node: %s", bytes(r->total, a));
    if (r->with_validation > r->total)
        leat__buf_printf(out, ", %s while a validation loader is alive", bytes(r->with_validation, b));
    leat__buf_printf(out, ": %s\n", leat_plan_verdict_name(r->verdict));
    bar(out, r->total, r->with_validation, r->limit, ascii);
    ram_parts(out, r, process);
    if (process) {
        leat__buf_printf(out,
                         "  As the single-GPU guide counts (docs/plan.md): buffer %.3g GB, total %.3g GB.\n",
                         (double)r->guide_buffer / 1e9, (double)r->guide_total / 1e9);
    } else {
        budget_line(p, out);
    }
    if (!process && p->facts.gpus > 0) {
        const leat_plan_ram *q = &p->ram_process;
        leat__buf_printf(out, "  A DataLoader with %u worker%s x %u batch%s would take %s", p->config.workers,
                         leat__plural(p->config.workers), p->config.prefetch,
                         p->config.prefetch == 1 ? "" : "es", bytes(q->total, a));
        if (q->with_validation > q->total)
            leat__buf_printf(out, " (%s with validation)", bytes(q->with_validation, b));
        leat__buf_printf(out, ": %s.\n", leat_plan_verdict_name(q->verdict));
    }
}

static void vram_section(const leat_plan *p, leat__buf *out, bool ascii)
{
    const leat_plan_vram *v = &p->vram;
    char a[24];
    if (p->facts.gpus == 0) return;
    leat__buf_printf(out, "\nGPU memory: %s: %s\n", bytes(v->total, a), leat_plan_verdict_name(v->verdict));
    bar(out, v->total, v->total, v->limit, ascii);
    part(out, "weights", v->weights, "");
    part(out, "gradients", v->gradients, "of the weights, when memory is highest");
    part(out, "optimizer", v->optimizer, "");
    part(out, "activations", v->activations, "kept for backward, and its own at the peak");
    part(out, "batch", v->batch, "");
    part(out, "workspace", v->workspace, "of the kernel libraries");
    part(out, "context", v->context, "of the driver, outside the framework's count");
    if (v->largest_batch > 0)
        leat__buf_printf(out, "  Largest batch that is safe: %llu\n", (unsigned long long)v->largest_batch);
}

/* `source`: "given", "calibrated", "table" or "model". */
static void rate_line(leat__buf *out, const char *name, leat_plan_range r, const char *source,
                      const char *mark)
{
    char a[24], b[24], c[24];
    if (r.mid <= 0) {
        leat__buf_printf(out, "  %-10s %10s\n", name, "not known");
        return;
    }
    leat__buf_printf(out, "  %-10s %10s  (%s to %s)", name, count(r.mid, a), count(r.low, b),
                     count(r.high, c));
    if (source != NULL) leat__buf_printf(out, "  %.*s", (int)strcspn(source, ":"), source);
    leat__buf_printf(out, "%s\n", mark);
}

/* True when later epochs are faster, because the first one has put samples in memory. */
static bool first_is_slower(const leat_plan_speed *s)
{
    return s->first_epoch.mid > 0 && s->first_epoch.mid < s->later.mid;
}

static const char *mark_of(const leat_plan_speed *s, uint32_t resource)
{
    if (s->limit == resource) return "  <- the limit";
    return s->next == resource ? "  <- the next one" : "";
}

/* Shows a guide's rate for this exact run, if the plan differs, and why. */
static void guide_line(const leat_plan *p, leat__buf *out)
{
    const leat_plan_facts *f = &p->facts;
    const leat__arch *arch = leat__arch_find(f->model);
    char a[24], b[24];
    if (p->speed.iterations == 0 || f->gpus != 1 || f->nodes != 1) return;
    for (size_t i = 0; i < LEAT_COUNT(plan_guide_speed_rows); i++) {
        const plan_guide_speed *g = &plan_guide_speed_rows[i];
        if (arch == NULL || arch != leat__arch_find(g->model) || f->batch != g->batch) continue;
        if (leat__plan_gpu_find(f->gpu) != leat__plan_gpu_find(g->gpu)) continue;
        double slow = (double)p->speed.iterations / g->low, fast = (double)p->speed.iterations / g->high;
        if (p->speed.epoch_s.mid >= fast && p->speed.epoch_s.mid <= slow) continue;
        leat__buf_printf(
            out,
            "  The single-GPU guide (docs/plan.md) expects %g to %g iterations/s, %s to %s\n  per epoch: ",
            g->low, g->high, leat__format_seconds(fast, a, sizeof a),
            leat__format_seconds(slow, b, sizeof b));
        leat__buf_printf(out, "of a whole run over FSx Lustre.%s\n",
                         p->speed.incomplete ? " Ours is the GPU alone until --io-mbs and --cpu-us are given."
                                             : "");
    }
}

/* Shows the rates of the planned run; for a single epoch, also the rate that later ones would have. */
static void rates_section(const leat_plan *p, leat__buf *out)
{
    const leat_plan_speed *s = &p->speed;
    const bool only = p->facts.epochs == 1;
    leat__buf_puts(out, "\nSamples per second, per node\n");
    /* read from memory: the whole dataset, the part that the first epoch put there, or unknown
     * storage, as an upper bound */
    const bool memory = leat__plan_in_memory(&p->facts) || s->io.mid <= 0 || (!only && s->cached_share > 0);
    const bool shown = s->cached_share > 0 || (s->io.mid <= 0 && s->limit == LEAT_PLAN_IO);
    rate_line(out, "storage", s->io, s->sources[LEAT_PLAN_IO], memory ? "" : mark_of(s, LEAT_PLAN_IO));
    if (shown) rate_line(out, "cached", s->io_cached, NULL, memory ? mark_of(s, LEAT_PLAN_IO) : "");
    rate_line(out, "cpu", s->cpu, s->sources[LEAT_PLAN_CPU], mark_of(s, LEAT_PLAN_CPU));
    if (p->facts.gpus > 0) {
        rate_line(out, "copy", s->h2d, s->sources[LEAT_PLAN_H2D], mark_of(s, LEAT_PLAN_H2D));
        rate_line(out, "gpu", s->gpu, s->sources[LEAT_PLAN_GPU], mark_of(s, LEAT_PLAN_GPU));
    }
    const bool slower = first_is_slower(s);
    rate_line(out, "together", s->rate, NULL,
              s->incomplete ? "  incomplete"
              : !slower     ? ""
              : only        ? "  nothing is in memory yet"
                            : "  from the 2nd epoch on");
    if (slower && !only) rate_line(out, "1st epoch", s->first_epoch, NULL, "  nothing is in memory yet");
    if (slower && only) rate_line(out, "2nd epoch", s->later, NULL, "  if there were one (--epochs)");
}

/* Shows the cores needed, from the measured rate, like `cpu`. If other processes used the CPUs
 * meanwhile, also from CPU time. */
static void cores_line(const leat_plan *p, leat__buf *out)
{
    const leat_plan_speed *s = &p->speed;
    double idle = s->needed * s->cpu_us / 1e6;
    char a[24];
    uint32_t wanted;
    leat__buf_printf(out, "  Keeping the GPU busy takes %s samples/s: %.*f cores", count(s->needed, a),
                     digits(s->cores_needed, 1), s->cores_needed);
    if (leat__plan_shared_cpus(&p->facts, &wanted) > 0)
        leat__buf_printf(out, " as busy with other work as these, or %.*f idle ones", digits(idle, 1), idle);
    leat__buf_puts(out, ".\n");
}

static void speed_section(const leat_plan *p, leat__buf *out)
{
    const leat_plan_speed *s = &p->speed;
    char a[24], b[24], c[24];
    rates_section(p, out);
    if (s->cached_share > 0)
        leat__buf_printf(out, "  After the first epoch %.0f %% of the dataset is in memory.\n",
                         100 * s->cached_share);
    if (s->needed > 0) cores_line(p, out);
    if (p->facts.samples == 0) return;
    const char *plural = s->iterations == 1 ? "" : "s";
    if (leat__plan_trainer_unknown(&p->facts))
        leat__buf_printf(out, "  %llu iteration%s per epoch; how long a step takes is not known\n",
                         (unsigned long long)s->iterations, plural);
    if (s->epoch_s.mid <= 0) return;
    leat__buf_printf(out, "  %llu iteration%s, %s per epoch (%s to %s)", (unsigned long long)s->iterations,
                     plural, leat__format_seconds(s->epoch_s.mid, a, sizeof a),
                     leat__format_seconds(s->epoch_s.low, b, sizeof b),
                     leat__format_seconds(s->epoch_s.high, c, sizeof c));
    if (p->facts.epochs > 1)
        leat__buf_printf(out, "; %u epochs: %s", p->facts.epochs,
                         leat__format_seconds(s->total_s.mid, a, sizeof a));
    leat__buf_putc(out, '\n');
    guide_line(p, out);
}

/* Writes dollars with three digits. */
static void price_text(leat__buf *out, const leat_plan_price *p)
{
    char a[24], b[24], c[24];
    leat__buf_printf(out, "$%s in the bucket's region, $%s from another, $%s over the internet",
                     count(p->same_region, a), count(p->other_region, b), count(p->internet, c));
}

static void traffic_section(const leat_plan *p, leat__buf *out)
{
    const leat_plan_traffic *t = &p->traffic;
    char a[24], b[24];
    if (t->epoch_bytes == 0) return;
    leat__buf_printf(out, "\nTraffic from the bucket, all nodes\n  per epoch %s in %s request%s",
                     bytes(t->epoch_bytes, a), count((double)t->epoch_requests, b),
                     leat__plural(t->epoch_requests));
    if (p->facts.epochs > 1)
        leat__buf_printf(out, "; %u epochs: %s in %s requests", p->facts.epochs, bytes(t->run_bytes, a),
                         count((double)t->run_requests, b));
    leat__buf_putc(out, '\n');
    if (t->priced) {
        leat__buf_printf(out, "  by list prices of %s%s: ", p->facts.price_date,
                         p->facts.epochs > 1 ? ", all epochs" : "");
        price_text(out, &t->run);
        leat__buf_putc(out, '\n');
    }
    if (t->disk_saves_bytes == 0) {
        leat__buf_puts(out, p->facts.epochs > 1 ? "  a disk cache saves nothing here\n"
                                                : "  a disk cache saves nothing in one epoch (--epochs)\n");
        return;
    }
    leat__buf_printf(out, "  --cache disk:DIR with %s per node saves %s", bytes(t->disk_bytes, a),
                     bytes(t->disk_saves_bytes, b));
    if (t->priced) {
        leat__buf_puts(out, ": ");
        price_text(out, &t->disk_saves);
    }
    leat__buf_putc(out, '\n');
}

static void decode_section(const leat_plan *p, leat__buf *out)
{
    char a[24], b[24];
    if (p->decode_count == 0) return;
    leat__buf_puts(out, "\nWho decodes (--decode)  samples/s per GPU  of its rate  threads it takes  "
                        "GPU memory\n");
    for (uint32_t i = 0; i < p->decode_count; i++) {
        const leat_plan_decode *d = &p->decodes[i];
        leat__buf_printf(out, "  %-20s  %17s  %9.0f %%  %16u  %10s%s\n", d->decode, count(d->rate, a),
                         100 * d->share, d->threads, bytes(d->device_bytes, b),
                         d->estimated ? "  (estimate)" : "");
    }
    if (p->facts.host_share >= 1)
        leat__buf_puts(out, "  These ops run on CPUs only, so the GPU decodes none of the images.\n");
    else if (p->facts.host_share > 0)
        leat__buf_printf(out, "  The ops of %.0f %% of the images run on CPUs only.\n",
                         100 * p->facts.host_share);
}

/* Writes a list "a; b; c" in lines of up to PAGE_COLUMNS. */
static void no_gain_lines(const char *list, leat__buf *out)
{
    size_t at = PAGE_COLUMNS;
    leat__buf_puts(out, "\nWhat if: none of these would help:");
    while (*list != '\0') {
        const char *end = strchr(list, ';');
        const size_t len = end != NULL ? (size_t)(end + 1 - list) : strlen(list);
        if (at + 1 + len > PAGE_COLUMNS) {
            leat__buf_puts(out, "\n ");
            at = 1;
        }
        leat__buf_printf(out, " %.*s", (int)len, list);
        at += 1 + len;
        list += len;
        while (*list == ' ') list++;
    }
    leat__buf_putc(out, '\n');
}

static void what_if_section(const leat_plan *p, leat__buf *out)
{
    char a[24], b[24];
    if (p->what_if_count == 0 && p->no_gain[0] != '\0') no_gain_lines(p->no_gain, out);
    if (p->what_if_count == 0) return;
    leat__buf_puts(out, "\nWhat if                                   samples/s   gain  then limited by\n");
    if (first_is_slower(&p->speed))
        leat__buf_printf(out, "  now, %-35s %9s\n",
                         p->facts.epochs == 1 ? "in the 1st epoch" : "from the 2nd epoch on",
                         count(p->speed.rate.mid, a));
    for (uint32_t i = 0; i < p->what_if_count; i++) {
        const leat_plan_what_if *w = &p->what_ifs[i];
        leat__buf_printf(out, "  %-40s %9s  %4.*fx  %s", w->change, count(w->rate, a), digits(w->gain, 2),
                         w->gain, leat_plan_resource_name(w->limit));
        if (w->dataset_bytes > 0) leat__buf_printf(out, ", dataset %s", bytes(w->dataset_bytes, b));
        leat__buf_putc(out, '\n');
    }
}

static void scale_section(const leat_plan *p, leat__buf *out)
{
    char a[24];
    if (p->scale_count == 0) return;
    leat__buf_puts(out, "\nGPUs  nodes  total batch  workers       lr  RAM per node  "
                        "guide: 8 GB x GPUs + 5 GB\n");
    for (uint32_t i = 0; i < p->scale_count; i++) {
        const leat_plan_scale *s = &p->scales[i];
        leat__buf_printf(out, "%4u  %5u  %11llu  %7u  %7.3g  %12s  > %.0f GB%s", s->gpus, s->nodes,
                         (unsigned long long)s->total_batch, s->workers, s->lr, bytes(s->ram, a),
                         (double)s->guide_ram / 1e9, s->fits == 0 ? "  does not fit this node" : "");
        if (s->unused_cpus > 0)
            leat__buf_printf(out, "  %u CPU%s not used", s->unused_cpus, s->unused_cpus > 1 ? "s" : "");
        leat__buf_putc(out, '\n');
    }
}

static void config_section(const leat_plan *p, leat__buf *out)
{
    const leat_plan_config *c = &p->config;
    char a[24];
    leat__buf_puts(out, "\nConfiguration\n");
    bool process = p->facts.loader == LEAT_PLAN_PROCESS;
    leat__buf_printf(out, "  batch %llu%s, %s %u, prefetch %u", (unsigned long long)c->batch,
                     p->facts.gpus > 1 ? " per GPU" : "", process ? "workers" : "threads", c->workers,
                     c->prefetch);
    if (!process)
        leat__buf_printf(out, ", order %s, cache %s", leat__plan_order_name(p),
                         c->cache_process ? "process" : "os");
    if (!process && c->page_window > 0)
        leat__buf_printf(out, ", window %u page%s", c->page_window, leat__plural(c->page_window));
    if (c->memory_bytes > 0) leat__buf_printf(out, ", memory %s", bytes(c->memory_bytes, a));
    leat__buf_putc(out, '\n');
    if (p->facts.gpus > 0)
        leat__buf_printf(out, "  precision %s, %s, lr %.3g for a total batch of %llu\n",
                         leat_plan_precision_name(c->precision), c->compile ? "compiled" : "not compiled",
                         c->lr, (unsigned long long)c->total_batch);
}

void leat__plan_page(const leat_plan *p, leat__buf *out, bool ascii)
{
    const leat_plan_facts *f = &p->facts;
    char a[24];
    leat__buf_printf(out, "Plan: batch %llu of %u x %u", (unsigned long long)f->batch, f->image, f->image);
    if (f->gpus > 0) {
        const leat__arch *arch = leat__arch_find(f->model);
        leat__buf_printf(out, ", %s on %u GPU%s", arch != NULL ? arch->title : f->model, f->gpus,
                         f->gpus > 1 ? "s" : "");
        if (f->gpu[0] != '\0') leat__buf_printf(out, " (%s)", f->gpu);
    }
    leat__buf_puts(out, f->gpus > 0 ? " and " : ", ");
    if (f->cpu_quota > 0 && f->cpu_quota < f->cpus)
        leat__buf_printf(out, "a quota of %.3g of ", f->cpu_quota);
    leat__buf_printf(out, "%u CPU%s", f->cpus, leat__plural(f->cpus));
    if (f->nodes > 1) leat__buf_printf(out, " per node, %u nodes", f->nodes);
    if (f->samples > 0)
        leat__buf_printf(out, ", %s sample%s", count((double)f->samples, a), leat__plural(f->samples));
    leat__buf_putc(out, '\n');
    ram_section(p, out, ascii);
    vram_section(p, out, ascii);
    speed_section(p, out);
    traffic_section(p, out);
    decode_section(p, out);
    what_if_section(p, out);
    config_section(p, out);
    scale_section(p, out);
    if (p->note_count > 0) leat__buf_puts(out, "\nNotes\n");
    for (uint32_t i = 0; i < p->note_count; i++) leat__buf_printf(out, "  %s\n", p->notes[i]);
    if (p->fits == 0)
        leat__buf_printf(out, "\nDoes not fit. Smallest change with which it fits: %s\n", p->fix);
}
