/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan for programs: JSON (one line, every figure) and YAML (the flags of `leat load`; values
 * for the trainer are comments, so that `leat load --config` reads the file unchanged).
 */
#include "plan/parts.h"

#include "base/json.h"
#include "base/num.h"

static void range(leat__json *j, const char *key, leat_plan_range r)
{
    leat__json_key(j, key);
    if (r.mid <= 0) {
        leat__json_null(j);
        return;
    }
    leat__json_object(j);
    leat__json_kdouble(j, "low", r.low);
    leat__json_kdouble(j, "mid", r.mid);
    leat__json_kdouble(j, "high", r.high);
    leat__json_end(j);
}

/* Writes a number, or null unless it is known. */
static void number(leat__json *j, const char *key, double value, bool is_known)
{
    leat__json_key(j, key);
    if (is_known) leat__json_double(j, value);
    else leat__json_null(j);
}

static void count(leat__json *j, const char *key, uint64_t value, bool is_known)
{
    leat__json_key(j, key);
    if (is_known) leat__json_u64(j, value);
    else leat__json_null(j);
}

/* Writes a number, or null for 0. */
static void known(leat__json *j, const char *key, double value)
{
    number(j, key, value, value > 0);
}

static void known_u64(leat__json *j, const char *key, uint64_t value)
{
    count(j, key, value, value > 0);
}

/* Writes a text, or null for "". */
static void known_str(leat__json *j, const char *key, const char *text)
{
    leat__json_kstr(j, key, text[0] != '\0' ? text : NULL);
}

/* Writes the resource that limits; null when no rate is known. */
static void resource(leat__json *j, const char *key, uint32_t limit)
{
    leat__json_kstr(j, key, limit != LEAT_PLAN_NOTHING ? leat_plan_resource_name(limit) : NULL);
}

static void open_object(leat__json *j, const char *key)
{
    leat__json_key(j, key);
    leat__json_object(j);
}

static const char *loader_name(uint32_t loader)
{
    return loader == LEAT_PLAN_PROCESS ? "process" : "leat";
}

static void facts_json(leat__json *j, const leat_plan_facts *f)
{
    static const char *const images[] = {"tiled", "keep", "raw", "mix"};
    static const char *const optimizers[] = {"auto", "sgd", "momentum", "adamw"};
    open_object(j, "facts");
    leat__json_ku64(j, "nodes", f->nodes);
    known_u64(j, "cpus", f->cpus);
    if (f->cpu_quota > 0) leat__json_kdouble(j, "cpu_quota", f->cpu_quota);
    leat__json_ku64(j, "gpus", f->gpus);
    known_str(j, "gpu", f->gpu);
    known_u64(j, "ram_bytes", f->ram_bytes);
    known_u64(j, "limit_bytes", f->limit_bytes);
    leat__json_ku64(j, "ram_used_bytes", f->ram_used_bytes);
    known_u64(j, "vram_bytes", f->vram_bytes);
    leat__json_kstr(j, "isa", f->isa);
    known_str(j, "storage", f->storage);
    known_u64(j, "samples", f->samples);
    leat__json_ku64(j, "sample_bytes", f->sample_bytes);
    leat__json_ku64(j, "width", f->width);
    leat__json_ku64(j, "height", f->height);
    leat__json_kdouble(j, "cached", f->cached);
    known(j, "latency_seconds", f->latency_s);
    leat__json_kstr(j, "images", images[f->images]);
    leat__json_kdouble(j, "host_share", f->host_share);
    known_str(j, "model", f->model);
    leat__json_kstr(j, "optimizer", f->gpus > 0 ? optimizers[f->optimizer] : NULL);
    leat__json_ku64(j, "image", f->image);
    leat__json_ku64(j, "epochs", f->epochs);
    leat__json_kstr(j, "loader", loader_name(f->loader));
    leat__json_end(j);
}

/* Writes host memory. Batches held by the trainer are pinned copies for a process-based loader,
 * otherwise leat's own buffers. */
static void ram_json(leat__json *j, const char *key, const leat_plan_ram *r, uint32_t loader)
{
    open_object(j, key);
    leat__json_ku64(j, "batch_bytes", r->batch);
    leat__json_ku64(j, "queue_bytes", r->queue);
    leat__json_ku64(j, "assembling_bytes", r->assembling);
    leat__json_ku64(j, loader == LEAT_PLAN_PROCESS ? "pinned_bytes" : "borrowed_bytes", r->pinned);
    leat__json_ku64(j, "workers_bytes", r->workers);
    leat__json_ku64(j, "pages_bytes", r->pages);
    leat__json_ku64(j, "cache_bytes", r->cache);
    leat__json_ku64(j, "os_bytes", r->os);
    leat__json_ku64(j, "framework_bytes", r->framework);
    leat__json_ku64(j, "used_bytes", r->used);
    leat__json_ku64(j, "total_bytes", r->total);
    leat__json_ku64(j, "with_validation_bytes", r->with_validation);
    known_u64(j, "budget_bytes", r->budget);
    known_u64(j, "resident_bytes", r->resident);
    leat__json_ku64(j, "shm_bytes", r->shm);
    known_u64(j, "limit_bytes", r->limit);
    if (r->guide_buffer > 0) {
        leat__json_ku64(j, "guide_batch_bytes", r->guide_batch);
        leat__json_ku64(j, "guide_buffer_bytes", r->guide_buffer);
        leat__json_ku64(j, "guide_total_bytes", r->guide_total);
    }
    leat__json_kstr(j, "verdict", leat_plan_verdict_name(r->verdict));
    leat__json_kstr(j, "source",
                    r->budget > 0
                        ? "model: the loader's own arithmetic (src/loader/footprint.c)"
                        : "model: workers x prefetch x batch and private memory; guide_*: single-GPU "
                          "guide, \"Memory budget\"");
    leat__json_end(j);
}

static void vram_json(leat__json *j, const leat_plan *p)
{
    const leat_plan_vram *v = &p->vram;
    leat__json_key(j, "vram");
    if (p->facts.gpus == 0) {
        leat__json_null(j);
        return;
    }
    leat__json_object(j);
    leat__json_ku64(j, "weights_bytes", v->weights);
    leat__json_ku64(j, "gradients_bytes", v->gradients);
    leat__json_ku64(j, "optimizer_bytes", v->optimizer);
    leat__json_ku64(j, "activations_bytes", v->activations);
    leat__json_ku64(j, "batch_bytes", v->batch);
    leat__json_ku64(j, "workspace_bytes", v->workspace);
    leat__json_ku64(j, "context_bytes", v->context);
    leat__json_ku64(j, "total_bytes", v->total);
    known_u64(j, "limit_bytes", v->limit);
    leat__json_ku64(j, "params", v->params);
    known(j, "macs_per_sample", v->macs);
    count(j, "largest_batch", v->largest_batch, v->limit > 0);
    leat__json_kstr(j, "source", "model: live bytes of the training step, operation by operation");
    leat__json_kstr(j, "verdict", leat_plan_verdict_name(v->verdict));
    leat__json_end(j);
}

static void decodes_json(leat__json *j, const leat_plan *p)
{
    leat__json_key(j, "decode");
    leat__json_array(j);
    for (uint32_t i = 0; i < p->decode_count; i++) {
        const leat_plan_decode *d = &p->decodes[i];
        leat__json_object(j);
        leat__json_kstr(j, "decode", d->decode);
        leat__json_kdouble(j, "samples_per_s", d->rate);
        leat__json_kdouble(j, "share", d->share);
        leat__json_ku64(j, "threads", d->threads);
        leat__json_ku64(j, "device_bytes", d->device_bytes);
        leat__json_kbool(j, "estimated", d->estimated != 0);
        leat__json_kstr(j, "source",
                        d->decode[0] == 'c' ? p->speed.sources[LEAT_PLAN_CPU]
                                            : "table: " PLAN_DEVICE_DECODE_SOURCE);
        leat__json_end(j);
    }
    leat__json_end(j);
}

static void speed_json(leat__json *j, const leat_plan *p)
{
    const leat_plan_speed *s = &p->speed;
    const bool samples = p->facts.samples > 0;
    open_object(j, "speed");
    open_object(j, "rates");
    range(j, "io", s->io);
    range(j, "io_cached", s->io_cached);
    range(j, "cpu", s->cpu);
    range(j, "h2d", s->h2d);
    range(j, "gpu", s->gpu);
    leat__json_end(j);
    open_object(j, "sources");
    for (uint32_t r = LEAT_PLAN_IO; r <= LEAT_PLAN_GPU; r++)
        leat__json_kstr(j, leat_plan_resource_name(r), s->sources[r]);
    leat__json_end(j);
    range(j, "samples_per_s", s->rate);
    range(j, "first_epoch_samples_per_s", s->first_epoch);
    range(j, "later_epochs_samples_per_s", s->later);
    resource(j, "limit", s->limit);
    resource(j, "first_epoch_limit", s->first_limit);
    resource(j, "later_epochs_limit", s->later_limit);
    resource(j, "next_limit", s->next);
    leat__json_kbool(j, "incomplete", s->incomplete != 0);
    leat__json_kbool(j, "gpu_measured", s->gpu_measured != 0);
    number(j, "cached_share", s->cached_share, samples);
    known(j, "cpu_us_per_sample", s->cpu_us);
    count(j, "iterations_per_epoch", s->iterations, samples);
    range(j, "epoch_seconds", s->epoch_s);
    range(j, "total_seconds", s->total_s);
    known(j, "needed_samples_per_s", s->needed);
    known(j, "cores_needed", s->cores_needed);
    leat__json_end(j);
}

static void price_json(leat__json *j, const char *key, const leat_plan_price *p)
{
    open_object(j, key);
    leat__json_kdouble(j, "same_region", p->same_region);
    leat__json_kdouble(j, "other_region", p->other_region);
    leat__json_kdouble(j, "internet", p->internet);
    leat__json_end(j);
}

static void traffic_json(leat__json *j, const leat_plan *p)
{
    const leat_plan_traffic *t = &p->traffic;
    leat__json_key(j, "traffic");
    if (t->epoch_bytes == 0) {
        leat__json_null(j);
        return;
    }
    leat__json_object(j);
    leat__json_ku64(j, "epoch_bytes", t->epoch_bytes);
    leat__json_ku64(j, "epoch_requests", t->epoch_requests);
    leat__json_ku64(j, "run_bytes", t->run_bytes);
    leat__json_ku64(j, "run_requests", t->run_requests);
    leat__json_ku64(j, "disk_cache_bytes", t->disk_bytes);
    leat__json_ku64(j, "disk_cache_saves_bytes", t->disk_saves_bytes);
    if (t->priced) {
        price_json(j, "usd_epoch", &t->epoch);
        price_json(j, "usd_run", &t->run);
        price_json(j, "usd_disk_cache_saves", &t->disk_saves);
        leat__json_kstr(j, "price_date", p->facts.price_date);
    }
    leat__json_end(j);
}

static void config_json(leat__json *j, const leat_plan *p)
{
    const leat_plan_config *c = &p->config;
    open_object(j, "config");
    leat__json_ku64(j, "batch", c->batch);
    leat__json_ku64(j, "total_batch", c->total_batch);
    leat__json_ku64(j, "workers", c->workers);
    leat__json_ku64(j, "prefetch", c->prefetch);
    leat__json_kstr(j, "order", leat__plan_order_name(p));
    leat__json_kstr(j, "cache", c->cache_process ? "process" : "os");
    known_u64(j, "page_window", c->page_window);
    known_u64(j, "memory", c->memory_bytes);
    leat__json_kstr(j, "precision", p->facts.gpus > 0 ? leat_plan_precision_name(c->precision) : NULL);
    leat__json_kbool(j, "compile", c->compile != 0);
    known(j, "lr", c->lr);
    leat__json_end(j);
}

static void tables_json(leat__json *j, const leat_plan *p)
{
    leat__json_key(j, "scale");
    leat__json_array(j);
    for (uint32_t i = 0; i < p->scale_count; i++) {
        const leat_plan_scale *s = &p->scales[i];
        leat__json_object(j);
        leat__json_ku64(j, "gpus", s->gpus);
        leat__json_ku64(j, "nodes", s->nodes);
        leat__json_ku64(j, "total_batch", s->total_batch);
        leat__json_ku64(j, "workers", s->workers);
        leat__json_ku64(j, "unused_cpus", s->unused_cpus);
        leat__json_kdouble(j, "lr", s->lr);
        leat__json_ku64(j, "ram_bytes", s->ram);
        leat__json_ku64(j, "guide_buffer_bytes", s->guide_buffer);
        leat__json_ku64(j, "guide_ram_bytes", s->guide_ram);
        known(j, "samples_per_s", s->rate);
        leat__json_key(j, "fits");
        if (s->fits == 2) leat__json_null(j);
        else leat__json_bool(j, s->fits == 1);
        leat__json_end(j);
    }
    leat__json_end(j);
    leat__json_key(j, "what_if");
    leat__json_array(j);
    for (uint32_t i = 0; i < p->what_if_count; i++) {
        const leat_plan_what_if *w = &p->what_ifs[i];
        leat__json_object(j);
        leat__json_kstr(j, "change", w->change);
        leat__json_kdouble(j, "samples_per_s", w->rate);
        leat__json_kdouble(j, "gain", w->gain);
        resource(j, "limit", w->limit);
        if (w->dataset_bytes > 0) leat__json_ku64(j, "dataset_bytes", w->dataset_bytes);
        leat__json_end(j);
    }
    leat__json_end(j);
    leat__json_kstr(j, "no_gain", p->no_gain);
    leat__json_key(j, "notes");
    leat__json_array(j);
    for (uint32_t i = 0; i < p->note_count; i++) leat__json_str(j, p->notes[i]);
    leat__json_end(j);
}

void leat__plan_json(const leat_plan *p, leat__buf *out)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_ku64(&j, "version", 1);
    leat__json_key(&j, "fits");
    if (p->fits == 2) leat__json_null(&j);
    else leat__json_bool(&j, p->fits == 1);
    known_str(&j, "fix", p->fix);
    facts_json(&j, &p->facts);
    config_json(&j, p);
    ram_json(&j, "ram", &p->ram, p->facts.loader);
    ram_json(&j, "ram_process", &p->ram_process, LEAT_PLAN_PROCESS);
    vram_json(&j, p);
    speed_json(&j, p);
    traffic_json(&j, p);
    decodes_json(&j, p);
    tables_json(&j, p);
    leat__json_end(&j);
}

/* Writes a text in double quotes, as YAML reads it. */
static void yaml_text(leat__buf *out, const char *key, const char *text)
{
    leat__buf_printf(out, "%s: \"", key);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\n') leat__buf_puts(out, "\\n");
        else if (*c == '\t') leat__buf_puts(out, "\\t");
        else {
            if (*c == '"' || *c == '\\') leat__buf_putc(out, '\\');
            leat__buf_putc(out, *c);
        }
    }
    leat__buf_puts(out, "\"\n");
}

/* Writes the pipeline: ops alone, or the settings that define them. */
static void yaml_pipeline(const leat_plan_facts *f, leat__buf *out)
{
    static const char *const dtypes[] = {[1] = "u8", [2] = "f16", [4] = "f32"};
    if (f->ops != NULL) {
        yaml_text(out, "ops", f->ops);
        return;
    }
    leat__buf_printf(out, "size: %u\n", f->image);
    if (f->crop != NULL) leat__buf_printf(out, "crop: %s\n", f->crop);
    if (f->like != NULL) leat__buf_printf(out, "like: %s\n", f->like);
    if (f->wide != 2) leat__buf_printf(out, "dtype: %s\n", dtypes[f->element_bytes]); /* else unchanged */
}

void leat__plan_yaml(const leat_plan *p, leat__buf *out)
{
    const leat_plan_facts *f = &p->facts;
    const leat_plan_config *c = &p->config;
    leat__buf_puts(out, "# Written by `leat plan`; read by `leat load --config`.\n");
    if (p->fits == 0)
        leat__buf_printf(out, "# DOES NOT FIT. Smallest change with which it fits: %s\n", p->fix);
    leat__buf_printf(out, "batch: %llu\n", (unsigned long long)c->batch);
    yaml_pipeline(f, out);
    leat__buf_printf(out, "order: %s\n", leat__plan_order_name(p));
    leat__buf_printf(out, "cache: %s\n", c->cache_process ? "process" : "os");
    leat__buf_printf(out, "threads: %u\n", c->workers);
    leat__buf_printf(out, "epochs: %u\n", f->epochs);
    if (c->memory_bytes > 0) leat__buf_printf(out, "memory: %llu\n", (unsigned long long)c->memory_bytes);
    leat__buf_printf(out, "prefetch: %u\n", c->prefetch);
    if (c->page_window > 0) leat__buf_printf(out, "window_pages: %u\n", c->page_window);
    if (f->gpus == 0) return;
    leat__buf_printf(out,
                     "# trainer: precision %s, compile %s, lr %.6g for a total batch of "
                     "%llu on %u node%s with %u GPU%s\n",
                     leat_plan_precision_name(c->precision), c->compile ? "true" : "false", c->lr,
                     (unsigned long long)c->total_batch, f->nodes, f->nodes > 1 ? "s" : "", f->gpus,
                     f->gpus > 1 ? "s" : "");
}
