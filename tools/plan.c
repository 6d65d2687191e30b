/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat plan`: predicts memory, workers, machines and hours before anything runs. Gathers facts
 * (plan_facts.c: flags first, then this machine), calls the library, and prints the plan.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <leat/plan.h>

#include "base/error.h"
#include "base/num.h"
#include "base/str.h"
#include "cli.h"
#include "cli_frame.h"
#include "io/http.h"
#include "io/url.h"
#include "load_flags.h"
#include "loader/defaults.h"
#include "plan/parts.h"
#include "plan_facts.h"
#include "plan_modes.h"

/* Defaults for the seconds without a byte that end an attempt, and for the number of attempts. A plan
 * on a server that never answers thus fails within some 30 seconds. */
#define STALL_S "3"
#define TRIES "6"

/* ---- Options ---- */

static const leat__param dataset_options[] = {
    CLI_PATH("dataset", 'd', NULL, "PACK",
             "take samples, sizes and storage from this pack, or from images below a bucket's prefix"),
    CLI_FLAG("calibrate", 0, "measure cost and storage on the pack for a few seconds"),
    CLI_FLAG("measure", 0, "run the loader on the pack briefly; default yes, --no-measure: tables only"),
    CLI_INT("samples", 0, NULL, 1, PLAN_SAMPLES_MAX, "N", "samples in the dataset"),
    CLI_BYTES("sample-bytes", 0, NULL, 1, 1e12, "mean bytes of a sample as stored"),
    CLI_INT("width", 0, NULL, 1, 1e6, "PIXELS", "mean width of the stored images"),
    CLI_INT("height", 0, NULL, 1, 1e6, "PIXELS", "mean height of the stored images"),
    CLI_CHOICE("images", 0, "tiled", "tiled|keep|raw|mix", "how the images are stored"),
    CLI_FLOAT("mix-raw", 0, "0.5", 0, 1, "P", "share stored raw, for --images mix"),
    CLI_FLOAT("video-hours", 0, NULL, 0.001, 4e6, "H", "count frames of this many hours as samples"),
    CLI_FLOAT("fps", 0, "30", 0.001, 1e6, "F", "frames per second of those videos"),
    CLI_CHOICE("storage", 0, NULL, "hdd|ssd|nvme|network|memory|bucket", "the storage of the dataset"),
    CLI_BYTES10("dataset-bytes", 0, NULL, 1, 4e15,
                "bytes of text, for --recommend and --documents; 10G is 10 GB, as in the guides"),
    CLI_END,
};

static const leat__param model_options[] = {
    CLI_STRING("model", 0, NULL, "NAME", "resnet18 to 152, vit_s|b|l, convnext_t|s|b, or generic"),
    CLI_INT("params", 0, NULL, 1, 2e14, "N", "parameters of a generic model"),
    CLI_BYTES("activation-bytes", 0, NULL, 1, 1e13, "kept per sample by a generic model"),
    CLI_FLOAT("gmacs", 0, NULL, 0, 1e9, "G", "multiply-adds per sample of a generic model, 1e9"),
    CLI_INT("batch", 'b', NULL, 1, 1 << 24, "N", "samples per step and GPU"),
    CLI_INT("image", 0, "224", 1, LEAT__PLAN_IMAGE_MOST, "PIXELS", "side of the training images"),
    CLI_CHOICE("crop", 0, "rrc", "rrc|center|none", "which part of the stored image is decoded"),
    CLI_CHOICE("precision", 0, "auto", "auto|fp32|16-mixed|bf16-mixed|bf16-true", "of the training step"),
    CLI_CHOICE("optimizer", 0, "auto", "auto|sgd|momentum|adamw", "whose state is counted"),
    CLI_INT("epochs", 0, "1", 1, 1 << 24, "N", "passes over the dataset"),
    CLI_FLAG("compile", 0, "the model is compiled (torch.compile)"),
    CLI_FLAG("unfused-attention", 0, "attention stores its scores"),
    CLI_FLOAT("lr", 0, NULL, 1e-12, 1e6, "LR",
              "learning rate at a total batch of 256; default: 0.5, AdamW 0.00025"),
    CLI_END,
};

static const leat__param machine_options[] = {
    CLI_INT("cpus", 0, NULL, 1, 1 << 20, "N", "usable CPUs per node; default: this machine's"),
    CLI_BYTES("ram", 0, NULL, 1, 1e16, "memory per node; default: this machine's limit"),
    CLI_BYTES("limit", 0, NULL, 1, 1e16, "memory this job alone may take, as a container's limit"),
    CLI_INT("gpus", 0, NULL, 0, 65536, "N", "GPUs per node; default: this machine's"),
    CLI_STRING("gpu", 0, NULL, "NAME", "kind of GPU: T4, A10G, A100, H100, B200 and others"),
    CLI_BYTES("vram", 0, NULL, 1, 1e16, "memory of a GPU, instead of what its name says"),
    CLI_INT("nodes", 0, "1", 1, 1 << 20, "N", "machines that train together"),
    CLI_FLOAT("io-mbs", 0, NULL, 0.001, 1e9, "MB/S", "measured read rate of the storage"),
    CLI_FLOAT("gbps", 0, NULL, 0.000001, 1e6, "GBIT/S",
              "link of the machine to the bucket, instead of measuring it"),
    CLI_FLOAT("cpu-us", 0, NULL, 0.001, 1e9, "US", "measured CPU time per sample, one core"),
    CLI_FLOAT("step-ms", 0, NULL, 0.001, 1e9, "MS", "measured time of a training step of --batch"),
    CLI_FLOAT("h2d-gbs", 0, NULL, 0.001, 1e6, "GB/S", "measured copy rate to the GPU"),
    CLI_END,
};

static const leat__param answer_options[] = {
    CLI_INT("threads", 't', NULL, 1, 65536, "N", "leat's threads per GPU"),
    CLI_INT("workers", 'w', NULL, -1, 65536, "N",
            "worker processes per GPU: plans a process-based loader; -1 = all usable, 0 is not planned"),
    CLI_INT("prefetch", 0, NULL, 1, 65536, "N", "batches ahead, per worker for processes"),
    CLI_CHOICE("loader", 0, NULL, "leat|process", "default: process when --workers is given"),
    CLI_CHOICE("preset", 0, NULL, "conservative|balanced|aggressive",
               "batch, workers, prefetch and compilation of the guide"),
    CLI_CHOICE("dtype", 0, NULL, "u8|f16|f32",
               "type of the delivered pixels; default: the images' own for leat, f32 for worker processes"),
    CLI_STRING("ops", 0, NULL, "TEXT", "plan this pipeline, as in leat load --ops"),
    CLI_CHOICE("like", 0, "pillow13", LEAT__PASS_CHOICES, "how images are resized, as in leat load"),
    CLI_CHOICE("order", 0, NULL, LEAT__ORDER_CHOICES, "plan this order"),
    CLI_CHOICE("cache", 0, NULL, "os|process", "plan this cache"),
    CLI_BYTES("memory", 'm', NULL, 1, 1e16, "leat's budget; for --documents and --text the limit"),
    CLI_FLAG("single-loader", 0, "no validation loader is ever alive beside this one"),
    CLI_CHOICE("solve", 0, NULL, "batch|ram|gpus|cpus",
               "print the most samples or GPUs, or the least memory or CPUs, that is safe; with gpus and "
               "cpus the CPUs also keep the GPUs busy"),
    CLI_CHOICE("recommend", 0, NULL, "images|text|video", "name a machine for the dataset"),
    CLI_INT("videos", 0, NULL, 1, 1e14, "N", "videos, for --recommend video"),
    CLI_STRING("stage", 0, NULL, "NAME",
               "plan a stage of a curation pipeline for --samples documents or clips on --gpus GPUs"),
    CLI_BYTES10("text", 0, NULL, 1, 4e15,
                "plan leat filter and leat dedup fuzzy of this much text; 500G is 500 GB"),
    CLI_INT("documents", 0, NULL, 1, 1e12, "N",
            "plan fuzzy deduplication of this many texts; with --text, their number"),
    CLI_INT("hashes", 0, "260", 1, 65536, "N", "values per MinHash signature"),
    CLI_INT("bands", 0, "20", 1, 65536, "N", "bands they are split into"),
    CLI_INT("bands-per-iteration", 0, NULL, 1, 65536, "N", "bands held at once"),
    CLI_PATH("compare", 0, NULL, "RUN.json", "predicted against what leat load --json measured"),
    CLI_FLAG("yaml", 0, "print a file for leat load --config"),
    CLI_END,
};

/* ---- Measuring ---- */

/* Sets the options of the planned loader. */
static void loader_opts(cli *c, const leat_plan_facts *f, leat__buf *ops, leat_loader_opts *opts)
{
    leat_loader_opts_init(opts);
    plan_write_ops(c, f, ops);
    opts->ops = leat__buf_str(ops);
    opts->batch_size = (uint32_t)(f->batch > 0 ? LEAT_MIN(f->batch, UINT64_C(1) << 20) : LEAT__DEFAULT_BATCH);
    opts->prefetch = f->prefetch;
    opts->memory = f->memory_bytes;
    if (f->order > 0) opts->order = (leat_order)(f->order - 1);
    if (f->cache > 0) opts->cache = (leat_cache)(f->cache - 1);
}

static uint32_t threads_of(const leat_plan_facts *f)
{
    return LEAT_MAX(f->workers > 0 ? LEAT_MIN((uint32_t)f->workers, f->cpus) : f->cpus, 1u);
}

/* Fails after a signal: the measurements so far are not enough. */
static int stopped(cli *c)
{
    return cli_failf(c, CLI_DATA, "stopped while it measured: there is no plan (--no-measure needs no time)");
}

/* Runs the loader on the pack. For a pack in a bucket, storage is measured too, unless it was given. */
static int try_loader(cli *c, leat_plan_facts *f, bool cold, leat_plan_calibration *k)
{
    static leat__buf ops; /* static: used by a thread that may be left running */
    leat__http_stats before, after;
    leat_error err = {0};
    char text[24];
    bool own = cli_given(c, "sample-bytes") || cli_given(c, "width") || cli_given(c, "height");
    plan_trial t = {.path = cli_str(c, "dataset"),
                    .threads = threads_of(f),
                    .cold = cold,
                    .link = f->measured.io_bytes_per_s.mid <= 0 && !cli_given(c, "storage"),
                    .longer = cli_flag(c, "calibrate"),
                    .storage = f->loader == LEAT_PLAN_PROCESS,
                    .sizes = !own,
                    .facts = *f};
    leat__http_read(&before);
    leat__buf_init(&ops, LEAT__MEM_MISC, 65536);
    loader_opts(c, f, &ops, &t.opts);
    int rc = plan_trial_run(c, &t, &err);
    if (!plan_trial_left()) leat__buf_reset(&ops);
    if (cli_interrupted(c)) return stopped(c);
    if (rc == LEAT_EBUDGET) { /* the plan may be for a larger machine; else it reports the problem, and a
                                 sufficient budget */
        static const char option[] = "--memory: ";
        bool other = !cli_given(c, "memory") && leat__str_starts(err.message, option);
        cli_warn(c, "not measured: %s; used the tables", err.message + (other ? sizeof option - 1 : 0));
        leat__error_reset(&err);
        return CLI_OK;
    }
    if (rc != 0) return cli_fail(c, &err);
    leat__http_read(&after);
    if (leat__path_remote(t.path))
        cli_say(c, "measured on the bucket: %s in %llu request%s",
                leat__format_bytes(after.bytes_in - before.bytes_in, text, sizeof text),
                (unsigned long long)(after.requests - before.requests),
                cli_s(after.requests - before.requests));
    f->process_bytes = t.facts.process_bytes;
    f->smaller_share = t.facts.smaller_share;
    f->quality_share = t.facts.quality_share;
    if (t.latency_s > 0) f->latency_s = t.latency_s;
    *k = t.k;
    return CLI_OK;
}

/* Runs the loader briefly on the pack; on by default if there is a pack of images. */
static int measure(cli *c, leat_plan_facts *f)
{
    leat_plan_calibration k = {0}, *m = &f->measured;

    if (!cli_given(c, "dataset") || plan_tables_only(c)) return CLI_OK;
    if (f->loader == LEAT_PLAN_PROCESS) return CLI_OK;
    if (m->cpu_us.mid > 0 || f->samples == 0 || f->width == 0 || cli_given(c, "images")) return CLI_OK;
    bool cold = f->cached < PLAN_CACHED && m->io_bytes_per_s.mid <= 0 && !cli_given(c, "storage");
    int rc = try_loader(c, f, cold, &k);
    if (rc != CLI_OK) return rc;
    m->cpu_us = k.cpu_us;
    m->rate_one = k.rate_one;
    m->rate_all = k.rate_all;
    m->threads = k.threads;
    m->cpus = k.cpus;
    m->quick = k.quick;
    m->calibrated |= k.calibrated;
    m->failed |= k.failed;
    if (k.io_bytes_per_s.mid <= 0) return CLI_OK;
    m->io_bytes_per_s = k.io_bytes_per_s;
    m->rate_cold = k.rate_cold;
    m->cold_cpu_us = k.cold_cpu_us;
    return CLI_OK;
}

/* Measures on the pack; numbers given by the user still win. Only leat's loader is measured; for
 * worker processes, only the storage. */
static int calibrate(cli *c, leat_plan_facts *f)
{
    leat_plan_calibration k = {0}, *m = &f->measured;
    leat_error err = {0};
    if (!cli_given(c, "dataset")) return cli_usage(c, "--calibrate needs --dataset");
    bool remote = leat__path_remote(cli_str(c, "dataset"));
    if (!remote) cli_say(c, "calibrating on %s ...", cli_str(c, "dataset"));
    int rc = try_loader(c, f, true, &k);
    if (rc != CLI_OK) return rc;
    if (!remote && f->gpus > 0 && m->h2d_bytes_per_s.mid <= 0 && plan_measure_copy(c, &k, &err) != 0)
        return cli_fail(c, &err);
    k.step_ms = m->step_ms;
    k.step_batch = m->step_batch;
    if (cli_given(c, "storage")) { /* ignore the current storage of the pack */
        k.io_bytes_per_s = k.rate_cold = (leat_plan_range){0};
        k.calibrated &= ~(1u << LEAT_PLAN_IO);
    }
    if (m->io_bytes_per_s.mid > 0) {
        k.io_bytes_per_s = m->io_bytes_per_s;
        k.rate_cold = (leat_plan_range){0};
        k.calibrated &= ~(1u << LEAT_PLAN_IO);
    }
    const bool process = f->loader == LEAT_PLAN_PROCESS;
    if (process && m->cpu_us.mid <= 0)
        cli_warn(c, "--calibrate measures no worker processes: their CPU time per sample is a table's (give "
                    "--cpu-us)");
    if (process || m->cpu_us.mid > 0) {
        k.cpu_us = m->cpu_us;
        k.rate_one = k.rate_all = k.rate_cold = (leat_plan_range){0};
        k.calibrated &= ~(1u << LEAT_PLAN_CPU);
    }
    if (m->h2d_bytes_per_s.mid > 0) k.h2d_bytes_per_s = m->h2d_bytes_per_s;
    *m = k;
    return CLI_OK;
}

/* ---- Answers ---- */

static int write_out(void *cookie, const char *text, size_t len)
{
    cli_out((cli *)cookie, "%.*s", (int)len, text);
    return 0;
}

/* Reads --hashes and --bands. Both are 0 when none is given, because the defaults of the guide and of
 * leat differ. */
static int band_facts(cli *c, uint32_t *hashes, uint32_t *bands)
{
    *hashes = *bands = 0;
    if (!cli_given(c, "bands") && !cli_given(c, "hashes")) return CLI_OK;
    *hashes = (uint32_t)cli_int(c, "hashes");
    *bands = (uint32_t)cli_int(c, "bands");
    if (*hashes % *bands == 0) return CLI_OK;
    return cli_usage(c, "--hashes %u%s is not a multiple of --bands %u%s", *hashes,
                     cli_given(c, "hashes") ? "" : " (the default)", *bands,
                     cli_given(c, "bands") ? "" : " (the default)");
}

/* Returns the memory of a text run: the smallest of the given limits, which may be those of another machine;
 * else this machine's. *option names the limit, NULL = the machine. */
static uint64_t text_memory(cli *c, const leat_plan_facts *f, const char **option)
{
    uint64_t least = plan_given_bytes(c, "ram");
    *option = cli_given(c, "ram") ? "--ram" : NULL;
    if (cli_given(c, "limit") && (least == 0 || cli_bytes(c, "limit") <= least)) {
        least = cli_bytes(c, "limit");
        *option = "--limit";
    }
    if (cli_given(c, "memory") && (least == 0 || cli_bytes(c, "memory") <= least)) {
        least = cli_bytes(c, "memory");
        *option = "--memory";
    }
    return *option ? least : f->ram_bytes;
}

static int documents(cli *c, const leat_plan_facts *f)
{
    const char *option;
    uint32_t hashes, bands;
    int rc = band_facts(c, &hashes, &bands);
    if (rc != CLI_OK) return rc;
    leat_plan_minhash_facts m = {
        .documents = (uint64_t)cli_int(c, "documents"),
        .dataset_bytes = plan_given_bytes(c, "dataset-bytes"),
        .memory_bytes = text_memory(c, f, &option),
        .hashes = hashes,
        .bands = bands,
        .bands_per_iteration = (uint32_t)plan_given_int(c, "bands-per-iteration"),
    };
    return plan_minhash(c, &m, option);
}

/* Returns the bytes per second of the disk: measured, or the middle of its class; 0 = the default. */
static double disk_rate(const leat_plan_facts *f)
{
    if (f->measured.io_bytes_per_s.mid > 0) return f->measured.io_bytes_per_s.mid;
    for (size_t i = 0; i < LEAT_COUNT(plan_storage_rows); i++)
        if (leat__str_eq(plan_storage_rows[i].name, f->storage)) return plan_storage_rows[i].mid_mbs * 1e6;
    return 0;
}

static int text(cli *c, const leat_plan_facts *f)
{
    const char *option;
    uint32_t hashes, bands;
    int rc = band_facts(c, &hashes, &bands);
    if (rc != CLI_OK) return rc;
    leat_plan_text_facts t = {
        .text_bytes = cli_bytes(c, "text"),
        .documents = (uint64_t)plan_given_int(c, "documents"),
        .memory_bytes = text_memory(c, f, &option),
        .disk_bytes_per_s = disk_rate(f),
        .cpus = f->cpus,
        .cpu_quota = f->cpu_quota,
        .nodes = f->nodes,
        .bands = bands,
        .rows = bands > 0 ? hashes / bands : 0,
        .bands_per_iteration = (uint32_t)plan_given_int(c, "bands-per-iteration"),
    };
    return plan_text(c, &t, option);
}

static int recommend(cli *c, const leat_plan_facts *f)
{
    int kind = cli_choice(c, "recommend");
    uint64_t amount = f->samples;
    if (kind == LEAT_PLAN_KIND_TEXT) amount = plan_given_bytes(c, "dataset-bytes");
    if (kind == LEAT_PLAN_KIND_VIDEO) amount = (uint64_t)plan_given_int(c, "videos");
    if (amount == 0)
        return cli_usage(c, "--recommend %s needs --%s", cli_str(c, "recommend"),
                         kind == LEAT_PLAN_KIND_TEXT    ? "dataset-bytes"
                         : kind == LEAT_PLAN_KIND_VIDEO ? "videos"
                                                        : "samples or --video-hours");
    return plan_recommend(c, f, kind, amount);
}

static int show(cli *c, const leat_plan *plan)
{
    leat_error err = {0};
    leat_plan_format format = c->json               ? LEAT_PLAN_JSON
                              : cli_flag(c, "yaml") ? LEAT_PLAN_YAML
                              : c->utf8             ? LEAT_PLAN_PAGE
                                                    : LEAT_PLAN_PAGE_ASCII;
    if (format == LEAT_PLAN_YAML && plan->config.workers > load_flag_most("threads"))
        return cli_usage(c, "--yaml: the plan has %u threads, and leat load takes up to %.0f: give --threads",
                         plan->config.workers, load_flag_most("threads"));
    if (leat_plan_write(plan, format, write_out, c, &err) != 0) return cli_fail(c, &err);
    if (c->json) cli_out(c, "\n");
    if (plan->fits == 0) return cli_failf(c, CLI_FIT, "does not fit; %s", plan->fix);
    return CLI_OK;
}

/* True when data or a model is given: without either, a plan would consist only of defaults. */
static bool has_subject(cli *c)
{
    static const char *const names[] = {"dataset", "samples", "video-hours", "sample-bytes", "model"};
    for (size_t i = 0; i < LEAT_COUNT(names); i++)
        if (cli_given(c, names[i])) return true;
    return false;
}

/* True when a word is in a list, in which a space precedes and follows each word. */
static bool listed_in(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = strstr(list, word); at != NULL; at = strstr(at + 1, word))
        if (at[-1] == ' ' && at[n] == ' ') return true;
    return false;
}

/* Kinds of plans and the options that affect them: `uses`, or all except `unused`. The first kinds are
 * answers without a plan of images; of the other kinds, several may apply at once. docs/plan.md has the same
 * table. */
static const struct {
    const char *option, *value; /* option and value that select it; NULL = any value */
    const char *uses, *unused;
} kinds[] = {
    {"text", NULL,
     " text documents memory ram limit storage io-mbs cpus nodes hashes bands bands-per-iteration ", NULL},
    {"documents", NULL, " documents dataset-bytes memory ram limit hashes bands bands-per-iteration ", NULL},
    {"recommend", "text", " recommend dataset-bytes samples ", NULL},
    {"recommend", "video", " recommend videos ", NULL},
    {"recommend", "images",
     " recommend dataset calibrate measure samples sample-bytes width height images mix-raw video-hours fps "
     "storage model params activation-bytes gmacs batch image crop precision optimizer epochs compile "
     "unfused-attention io-mbs gbps cpu-us step-ms h2d-gbs threads workers prefetch loader preset dtype ops "
     "like order cache memory single-loader ",
     NULL},
    {"stage", NULL, " stage samples gpus gpu vram ", NULL},
    {"solve", NULL, NULL, " lr compare yaml "},
    {"compare", NULL, NULL, " yaml "},
    {"loader", "process", NULL, " threads ops like cache memory yaml measure "},
    {"gpus", "0", NULL,
     " params activation-bytes gmacs precision optimizer compile unfused-attention lr gpu vram step-ms "
     "h2d-gbs "},
};

/* True when the plan is of this kind. `gpus`: the option, or the machine's GPUs if it is not given. */
static bool is_kind(const cli *c, size_t kind, uint32_t gpus)
{
    const char *const option = kinds[kind].option, *const value = kinds[kind].value;
    if (leat__str_eq(option, "loader")) return plan_is_process(c);
    if (leat__str_eq(option, "gpus")) return gpus == 0;
    return cli_given(c, option) && (value == NULL || leat__str_eq(cli_str(c, option), value));
}

/* Fails for the first option that has no effect on a plan of this kind. */
static int check_kind(cli *c, size_t kind)
{
    static const leat__param *const tables[] = {dataset_options, model_options, machine_options,
                                                answer_options};
    const char *const uses = kinds[kind].uses, *option = kinds[kind].option, *value = kinds[kind].value;
    if (!cli_given(c, option) && leat__str_eq(option, "loader")) option = "workers", value = NULL;
    for (size_t t = 0; t < LEAT_COUNT(tables); t++)
        for (const leat__param *p = tables[t]; p->name != NULL; p++) {
            if (!cli_given(c, p->name) || leat__str_eq(p->name, option)) continue;
            if (uses != NULL ? listed_in(uses, p->name) : !listed_in(kinds[kind].unused, p->name)) continue;
            const char *no = p->kind == LEAT__PARAM_FLAG && !cli_flag(c, p->name) ? "no-" : "";
            if (!cli_given(c, option))
                return cli_usage(c, "--%s%s has no effect without a GPU: give --gpus, --gpu or --model", no,
                                 p->name);
            return cli_usage(c, "--%s%s has no effect with --%s%s%s", no, p->name, option,
                             value != NULL ? " " : "", value != NULL ? value : "");
        }
    return CLI_OK;
}

static int check_kinds(cli *c, uint32_t gpus)
{
    for (size_t i = 0; i < LEAT_COUNT(kinds); i++) {
        if (!is_kind(c, i, gpus)) continue;
        int rc = check_kind(c, i);
        if (rc != CLI_OK) return rc;
        if (kinds[i].uses != NULL) break; /* not a plan of images */
    }
    if (cli_given(c, "measure") && !cli_given(c, "dataset") && !cli_given(c, "ops"))
        return cli_usage(c, "--%smeasure has an effect only with --dataset or --ops",
                         plan_tables_only(c) ? "no-" : "");
    if (cli_given(c, "measure") && !plan_tables_only(c) && (cli_given(c, "cpu-us") || cli_given(c, "images")))
        return cli_usage(c, "--measure has no effect with --%s: nothing would be measured",
                         cli_given(c, "cpu-us") ? "cpu-us" : "images");
    bool limits = cli_given(c, "text") || cli_given(c, "documents");
    if (limits && cli_given(c, "memory") && (cli_given(c, "ram") || cli_given(c, "limit")))
        return cli_usage(c, "--memory and --%s both set the memory limit: give one of them",
                         cli_given(c, "ram") ? "ram" : "limit");
    return CLI_OK;
}

/* Fails for options that have no effect without another option. */
static int check_effects(cli *c)
{
    static const struct {
        const char *option, *needs, *value; /* value NULL = any */
    } rows[] = {
        {"params", "model", "generic"},   {"activation-bytes", "model", "generic"},
        {"gmacs", "model", "generic"},    {"unfused-attention", "model", "vit"},
        {"mix-raw", "images", "mix"},     {"fps", "video-hours", NULL},
        {"videos", "recommend", "video"}, {"width", "height", NULL},
        {"height", "width", NULL},        {"like", "dataset", NULL},
    };
    static const char *const minhash[] = {"hashes", "bands", "bands-per-iteration"};
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        const char *const value = rows[i].value;
        if (!cli_given(c, rows[i].option)) continue;
        const bool met = cli_given(c, rows[i].needs) &&
                         (value == NULL || leat__str_starts(cli_str(c, rows[i].needs), value));
        if (!met)
            return cli_usage(c, "--%s has an effect only with --%s%s%s", rows[i].option, rows[i].needs,
                             value != NULL ? " " : "", value != NULL ? value : "");
    }
    for (size_t i = 0; i < LEAT_COUNT(minhash); i++)
        if (cli_given(c, minhash[i]) && !cli_given(c, "documents") && !cli_given(c, "text"))
            return cli_usage(c, "--%s has an effect only with --documents or --text", minhash[i]);
    if (cli_given(c, "dataset-bytes") && !cli_given(c, "documents") && !cli_given(c, "recommend"))
        return cli_usage(c, "--dataset-bytes has an effect only with --documents or --recommend");
    if (cli_given(c, "threads") && cli_given(c, "workers"))
        return cli_usage(c, "--threads is for leat, --workers for process-based loaders: give one of them");
    if (cli_given(c, "samples") && cli_given(c, "video-hours"))
        return cli_usage(c, "--samples and --video-hours both set the number of samples: give one of them");
    if (cli_given(c, "solve") && cli_given(c, cli_str(c, "solve")))
        return cli_usage(c, "--%s has no effect with --solve %s, which finds it", cli_str(c, "solve"),
                         cli_str(c, "solve"));
    if (cli_given(c, "like") && plan_tables_only(c))
        return cli_usage(c,
                         "--like is measured on the pack, and --no-measure forbids that: give one of them");
    return CLI_OK;
}

/* Fails for rates that have no effect on a solution. The batch and the RAM depend on no rate, GPUs and CPUs
 * only on the rates of CPUs and GPUs. With several epochs and no given number of threads, every rate counts,
 * because the threads follow from the rates.
 */
static int check_solve(cli *c)
{
    static const char *const rates[] = {"storage", "io-mbs",  "gbps",  "h2d-gbs",
                                        "cpu-us",  "step-ms", "gmacs", "crop"};
    const bool threads = !cli_given(c, "threads") && !cli_given(c, "workers") && !cli_given(c, "preset");
    if (!cli_given(c, "solve") || (threads && cli_int(c, "epochs") > 1)) return CLI_OK;
    const char *const field = cli_str(c, "solve");
    const bool memory = leat__str_eq(field, "batch") || leat__str_eq(field, "ram");
    for (size_t i = 0; i < (memory ? LEAT_COUNT(rates) : 4); i++)
        if (cli_given(c, rates[i]))
            return cli_usage(c, "--%s has no effect with --solve %s%s", rates[i], field,
                             threads ? ", unless --epochs is 2 or more" : " and a given number of threads");
    return CLI_OK;
}

/* Checks that the YAML written for leat load has only values that leat load accepts. */
static int check_yaml(cli *c)
{
    static const struct {
        const char *option, *written; /* name in leat load */
    } rows[] = {{"batch", "batch"},
                {"image", "size"},
                {"threads", "threads"},
                {"prefetch", "prefetch"},
                {"epochs", "epochs"}};
    if (cli_flag(c, "yaml") && c->json) return cli_usage(c, "--yaml has no effect with --json");
    for (size_t i = 0; i < LEAT_COUNT(rows) && cli_flag(c, "yaml"); i++) {
        if (!cli_given(c, rows[i].option)) continue;
        double most = load_flag_most(rows[i].written);
        if ((double)cli_int(c, rows[i].option) > most)
            return cli_usage(c, "--yaml: leat load takes --%s up to %.0f", rows[i].written, most);
    }
    return CLI_OK;
}

/* Fails for options of requests when nothing remote is read. */
static int check_remote(cli *c)
{
    static const char *const names[] = {"anonymous", "ca-file"};
    if (cli_given(c, "dataset") && leat__path_remote(cli_str(c, "dataset"))) return CLI_OK;
    for (size_t i = 0; i < LEAT_COUNT(names); i++)
        if (cli_given(c, names[i]))
            return cli_usage(c, "--%s has an effect only with a remote --dataset", names[i]);
    return CLI_OK;
}

static int plan_run(cli *c)
{
    leat_plan_facts f;
    leat_plan plan;
    leat_error err = {0};
    leat__image_kind kind = 0;
    bool listed = false;
    int rc;
    plan_trial_note_memory();
    leat_plan_facts_init(&f);
    setenv("LEAT_REMOTE_STALL_S", STALL_S, 0);
    setenv("LEAT_REMOTE_TRIES", TRIES, 0);
    if ((rc = check_effects(c)) != CLI_OK) return rc;
    if ((rc = check_solve(c)) != CLI_OK) return rc;
    if ((rc = check_yaml(c)) != CLI_OK) return rc;
    if ((rc = check_remote(c)) != CLI_OK) return rc;
    if ((rc = plan_model_facts(c, &f)) != CLI_OK) return rc;
    if ((rc = plan_machine_facts(c, &f)) != CLI_OK) return rc;
    if ((rc = check_kinds(c, f.gpus)) != CLI_OK) return rc;
    if ((rc = plan_dataset_facts(c, &f, &kind, &listed)) != CLI_OK) return rc;
    if ((rc = plan_loading_facts(c, &f, kind)) != CLI_OK) return rc;
    if ((rc = plan_measured_facts(c, &f)) != CLI_OK) return rc;
    if ((rc = plan_ops_facts(c, &f, kind, listed)) != CLI_OK) return rc;
    if ((rc = plan_image_facts(c, &f, kind, listed)) != CLI_OK) return rc;
    if ((rc = plan_device_facts(c, &f, kind)) != CLI_OK) return rc;
    if (cli_flag(c, "calibrate") && plan_tables_only(c))
        return cli_usage(c, "--calibrate measures, and --no-measure forbids that: give one of them");
    if (cli_flag(c, "calibrate") && listed)
        return cli_usage(c, "--calibrate needs a pack: %s is a prefix of images", cli_str(c, "dataset"));
    if (!listed && (rc = cli_flag(c, "calibrate") ? calibrate(c, &f) : measure(c, &f)) != CLI_OK) return rc;
    if (cli_interrupted(c)) return stopped(c);
    if (cli_given(c, "text")) return text(c, &f);
    if (cli_given(c, "documents")) return documents(c, &f);
    if (cli_given(c, "recommend")) return recommend(c, &f);
    if (cli_given(c, "stage") && cli_given(c, "gpus") && f.gpus == 0)
        return cli_usage(c, "--stage runs on GPUs: --gpus must be at least 1");
    if (cli_given(c, "stage")) return plan_stage(c, &f, cli_str(c, "stage"), f.samples);
    if (cli_given(c, "solve")) return plan_solve(c, &f, cli_choice(c, "solve"));
    if (!has_subject(c))
        return cli_usage(c, "nothing to plan: give the data (--dataset PACK, or --samples N), "
                            "the model (--model NAME), or both");
    if (leat_plan_make(&f, &plan, sizeof plan, &err) != 0)
        return err.code == LEAT_EINVAL || err.code == LEAT_EOVERFLOW ? cli_usage(c, "%s", err.message)
                                                                     : cli_fail(c, &err);
    if (cli_given(c, "compare")) return plan_compare(c, &plan, cli_str(c, "compare"));
    return show(c, &plan);
}

static int run(cli *c)
{
    int code = plan_run(c);
    if (plan_trial_left()) _exit(cli_end(c, code));
    return code;
}

const cli_command cli_cmd_plan = {
    .name = "plan",
    .summary = "predict the memory, rate, hours and settings of a run",
    .examples =
        (const cli_example[]){
            {"leat plan --dataset train.leat --model resnet50", "a pack on this machine"},
            {"leat plan --samples 1281167 --model resnet50 --gpu A10G --ram 62G --cpus 16",
             "a plan for another machine"},
            {"leat plan --model resnet50 --gpu A10G --ram 62G --cpus 16 --workers 16 --prefetch 4",
             "check a PyTorch loader's settings"},
            {"leat plan --dataset train.leat --ops 'RandomResizedCrop(224); RandAugment()'",
             "a pipeline of your own"},
            {"leat plan --dataset s3://bucket/train.leat --gbps 10 --epochs 90",
             "hours, traffic and its price for a pack in a bucket"},
            {"leat plan --model vit_b --gpu A100 --solve batch", "the largest batch that fits"},
            {"leat plan --samples 50000 --model resnet18 --yaml > load.yaml",
             "settings for leat load --config"},
            {"leat plan --recommend images --video-hours 16.7 --fps 30", "a machine for a dataset"},
            {"leat plan --documents 1000000000 --memory 64G", "memory and passes of deduplication"},
            {"leat plan --text 500G --memory 64G --cpus 32", "hours, memory and disk of text curation"},
            {NULL, NULL}},
    .description =
        "Predicts host memory, GPU memory, the rate and what limits it, the time of an epoch, and "
        "a configuration, from facts alone. Facts that are not given "
        "are this machine's (its cgroup's limits, its GPUs) or defaults, which are noted.\n\n"
        "GPU memory is computed from the architecture, operation by operation. Rates come from "
        "measured facts (--calibrate, --io-mbs, --cpu-us, --step-ms) where given. With --dataset the loader "
        "runs on the pack for about a second, with the pipeline, order and cache that are planned "
        "(--no-measure leaves that out). Storage has two seconds for that, a bucket five, --calibrate a "
        "minute: after them the tables are used, and it says so. Ctrl-C ends it within a second. A pack in a "
        "bucket is measured by some 50 requests, and their bytes are printed; --gbps gives the link instead. "
        "Everything else comes from tables, with wide intervals; a rate that is not known makes the plan "
        "incomplete.\n\n"
        "Exits with 3 when the plan does not fit, and names the smallest change with which it fits.",
    .options = {{"Dataset", dataset_options},
                {"Model and training", model_options},
                {"Machine", machine_options},
                {"Loading and answers", answer_options}},
    .json =
        (const cli_key[]){
            {"version", "of this format: 1"},
            {"fits", "true, false, or null when a limit is not known"},
            {"fix", "the smallest change with which it fits, which may be risky; null when it fits"},
            {"facts", "everything the plan rests on, defaults filled in; null: not known"},
            {"config", "batch, workers, prefetch, order, cache, memory, precision, lr"},
            {"ram", "host memory by part, verdict, and the guide's arithmetic"},
            {"ram_process", "the same for a process-based loader"},
            {"vram", "GPU memory by part, verdict, largest_batch; null without a GPU"},
            {"speed", "rates, samples_per_s, limit, next_limit (of the only epoch, else from the 2nd on), "
                      "epoch_seconds, cores_needed"},
            {"traffic",
             "a bucket: bytes, requests, usd per epoch and run; disk_cache_saves_bytes; else null"},
            {"decode[]", "tiles and a GPU: samples_per_s, share, threads, device_bytes of each --decode"},
            {"scale[]", "the table over numbers of GPUs"},
            {"what_if[]",
             "changes that gain 5 % or more, of a plan that fits: change, samples_per_s, gain, limit"},
            {"no_gain", "changes that were computed and gain less, separated by semicolons"},
            {"notes[]", "defaults taken and rules broken"},
            {NULL, NULL}},
    .remote = true,
    .run = run,
};
