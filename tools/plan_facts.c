/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts of `leat plan` from its options: dataset, model, machine, loader and measured rates. Facts without an
 * option come from the pack and from this machine.
 */
#include "plan_facts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <leat/machine.h>

#include "base/error.h"
#include "base/num.h"
#include "load_flags.h"
#include "loader/defaults.h"
#include "op/device_plan.h"
#include "op/pipeline.h"
#include "plan/parts.h"
#include "plan_modes.h"

int64_t plan_given_int(const cli *c, const char *name)
{
    return cli_given(c, name) ? cli_int(c, name) : 0;
}

uint64_t plan_given_bytes(const cli *c, const char *name)
{
    return cli_given(c, name) ? cli_bytes(c, name) : 0;
}

/* Returns a number given by the user, with the spread that repeated measurements usually show. */
static leat_plan_range given_range(const cli *c, const char *name, double unit, double spread)
{
    if (!cli_given(c, name)) return (leat_plan_range){0};
    double mid = cli_float(c, name) * unit;
    return (leat_plan_range){mid / (1 + spread), mid, mid * (1 + spread)};
}

/* Estimates the sizes of a pack whose images are stored in another way. */
static void store_again(leat_plan_facts *f, uint32_t images, double mix)
{
    bool coded = images == LEAT_PLAN_TILED || images == LEAT_PLAN_KEEP;
    if (f->sample_bytes == 0 || f->width == 0) return;
    if (images == f->images && images != LEAT_PLAN_MIX) return;
    if (coded && (f->images == LEAT_PLAN_TILED || f->images == LEAT_PLAN_KEEP)) return;
    uint64_t bytes = leat__plan_stored_bytes(f, images, mix);
    f->max_sample_bytes = (uint64_t)((double)f->max_sample_bytes * (double)bytes / (double)f->sample_bytes);
    f->sample_bytes = bytes;
}

/* Collects the facts of the dataset: from the pack, overridden by flags. */
int plan_dataset_facts(cli *c, leat_plan_facts *f, leat__image_kind *kind, bool *listed)
{
    leat_error err = {0};
    bool pack = cli_given(c, "dataset");
    if (pack && plan_dataset(cli_str(c, "dataset"), f, kind, listed, &err) != 0) return cli_fail(c, &err);
    static const char *const stored[] = {"sample-bytes", "width", "height"};
    for (size_t i = 0; i < LEAT_COUNT(stored); i++)
        if (pack && !*listed && cli_given(c, stored[i]))
            return cli_usage(c, "--%s contradicts the pack, which has its own: leave out one of them",
                             stored[i]);
    if (cli_given(c, "samples")) f->samples = (uint64_t)cli_int(c, "samples");
    if (cli_given(c, "video-hours")) {
        f->samples = leat_plan_frames(cli_float(c, "video-hours"), cli_float(c, "fps"));
        if (f->samples < 1 || (double)f->samples > PLAN_SAMPLES_MAX)
            return cli_usage(c, "--video-hours %g at --fps %g give no frames or more than %g",
                             cli_float(c, "video-hours"), cli_float(c, "fps"), PLAN_SAMPLES_MAX);
    }
    if (cli_given(c, "sample-bytes")) f->sample_bytes = cli_bytes(c, "sample-bytes");
    if (cli_given(c, "width")) f->width = (uint32_t)cli_int(c, "width");
    if (cli_given(c, "height")) f->height = (uint32_t)cli_int(c, "height");
    uint32_t images = (uint32_t)cli_choice(c, "images");
    double mix = cli_float(c, "mix-raw");
    if (cli_given(c, "images")) f->work = 0;
    if (pack && !*listed && cli_given(c, "images")) store_again(f, images, mix);
    if (!pack || *listed || cli_given(c, "images")) f->images = images;
    if (!pack || cli_given(c, "images")) f->mix_raw = mix;
    if (cli_given(c, "storage")) snprintf(f->storage, sizeof f->storage, "%s", cli_str(c, "storage"));
    return CLI_OK;
}

int plan_model_facts(cli *c, leat_plan_facts *f)
{
    /* mean share of a 4:3 image: random resized crops (measured); 224 out of a short side of 256; all
     * of it */
    static const double crop_area[] = {0.42, 0.574, 1.0};
    const char *model = cli_str(c, "model");
    if (model != NULL) {
        if (strlen(model) >= sizeof f->model) return cli_usage(c, "--model: name too long");
        snprintf(f->model, sizeof f->model, "%s", model);
    }
    f->params = (uint64_t)plan_given_int(c, "params");
    f->activation_bytes = plan_given_bytes(c, "activation-bytes");
    f->macs = cli_given(c, "gmacs") ? cli_float(c, "gmacs") * 1e9 : 0;
    f->batch = (uint64_t)plan_given_int(c, "batch");
    f->image = (uint32_t)cli_int(c, "image");
    f->crop_area = crop_area[cli_choice(c, "crop")];
    f->precision = (uint32_t)cli_choice(c, "precision");
    f->optimizer = (uint32_t)cli_choice(c, "optimizer");
    f->epochs = (uint32_t)cli_int(c, "epochs");
    f->compile = cli_flag(c, "compile");
    f->unfused_attention = cli_flag(c, "unfused-attention");
    f->lr = cli_given(c, "lr") ? cli_float(c, "lr") : 0;
    return CLI_OK;
}

/* True when a fact describes another machine: the user gave it, or it is solved for. */
static bool of_another(const cli *c, const char *name)
{
    return cli_given(c, name) || (cli_given(c, "solve") && leat__str_eq(cli_str(c, "solve"), name));
}

/* Sets the memory of the machine and the limit of the job. */
static void memory_facts(const cli *c, const leat_machine *m, leat_plan_facts *f)
{
    if (of_another(c, "ram")) {
        f->whole_machine = 1;
        f->ram_bytes = plan_given_bytes(c, "ram");
        f->limit_bytes = plan_given_bytes(c, "limit");
    } else if (cli_given(c, "limit")) {
        f->ram_bytes = cli_bytes(c, "limit");
    } else if (m->memory_limit_bytes != LEAT_UNLIMITED) {
        f->ram_bytes = m->memory_limit_bytes;
        f->shm_bytes = m->shm_total_bytes;
        if (m->memory_available_bytes < f->ram_bytes)
            f->ram_used_bytes = f->ram_bytes - m->memory_available_bytes;
    }
}

/* Collects the facts of the machine. Flags describe another machine; everything else is taken from
 * this one. */
int plan_machine_facts(cli *c, leat_plan_facts *f)
{
    leat_machine m;
    leat_error err = {0};
    if (leat_machine_read(&m, sizeof m, &err) != 0) return cli_fail(c, &err);
    f->nodes = (uint32_t)cli_int(c, "nodes");
    f->cpus = cli_given(c, "cpus") ? (uint32_t)cli_int(c, "cpus") : m.cpus_usable;
    snprintf(f->isa, sizeof f->isa, "%s", m.isa);
    if (!of_another(c, "cpus")) {
        snprintf(f->cpu, sizeof f->cpu, "%s", m.cpu_model);
        f->cpu_quota = m.cpu_quota;
    }
    memory_facts(c, &m, f);
    const char *gpu = cli_str(c, "gpu");
    if (gpu != NULL && strlen(gpu) >= sizeof f->gpu) return cli_usage(c, "--gpu: name too long");
    bool asked = gpu != NULL || cli_given(c, "vram") || cli_given(c, "model");
    if (cli_given(c, "gpus")) f->gpus = (uint32_t)cli_int(c, "gpus");
    else f->gpus = m.gpu_count > 0 && gpu == NULL ? m.gpu_count : asked;
    if (gpu != NULL) {
        snprintf(f->gpu, sizeof f->gpu, "%s", gpu);
    } else if (m.gpu_count > 0) {
        snprintf(f->gpu, sizeof f->gpu, "%s", m.gpus[0].name);
        f->vram_bytes = m.gpus[0].memory_bytes; /* minus what other processes use */
        if (m.gpus[0].memory_used_bytes < f->vram_bytes) f->vram_bytes -= m.gpus[0].memory_used_bytes;
    }
    if (cli_given(c, "vram")) f->vram_bytes = cli_bytes(c, "vram");
    return CLI_OK;
}

int plan_measured_facts(cli *c, leat_plan_facts *f)
{
    leat_plan_calibration *k = &f->measured;
    if (cli_given(c, "gbps") && cli_given(c, "io-mbs"))
        return cli_usage(c, "--gbps and --io-mbs both set the rate of the storage: give one of them");
    if (cli_given(c, "gbps") && !leat__plan_remote(f) && !leat__str_eq(f->storage, "network"))
        return cli_usage(c, "--gbps is the link to a bucket: the storage is %s (use --io-mbs)",
                         f->storage[0] != '\0' ? f->storage : "not known");
    k->io_bytes_per_s = given_range(c, "io-mbs", 1e6, 0.10);
    if (cli_given(c, "gbps")) { /* headers of TLS, TCP and IP take some 5 % */
        double most = cli_float(c, "gbps") * 1e9 / 8;
        k->io_bytes_per_s = (leat_plan_range){0.8 * most, 0.95 * most, most};
    }
    k->cpu_us = given_range(c, "cpu-us", 1, 0.05);
    k->step_ms = given_range(c, "step-ms", 1, 0.03);
    k->h2d_bytes_per_s = given_range(c, "h2d-gbs", 1e9, 0.05);
    return CLI_OK;
}

/* Returns the loader's default type; worker processes deliver the type of PyTorch's transforms. */
static int dtype_of(cli *c, bool process)
{
    if (cli_given(c, "dtype")) return cli_choice(c, "dtype");
    return process ? 2 : 0;
}

/* Wide images keep their type and channels unless a type is requested, as in the loader. */
static int wide_facts(cli *c, leat_plan_facts *f, leat__image_kind kind)
{
    const leat__sample_type type = leat__kind_type(kind);
    char text[LEAT__KIND_TEXT];
    const bool own = f->loader == LEAT_PLAN_LEAT && !cli_given(c, "dtype");
    if (f->element_bytes == 1 && !own && type != LEAT__SAMPLE_U8)
        return cli_usage(c, "--dtype u8 would change the values of %s: use f16 or f32",
                         leat__kind_text(kind, text));
    if (own) f->element_bytes = leat__sample_bytes(type);
    f->wide = own ? 2 : 1;
    f->out_bytes = (uint64_t)leat__kind_channels(kind) * f->image * f->image * f->element_bytes;
    return CLI_OK;
}

/* True when a loader with worker processes is planned. */
bool plan_is_process(const cli *c)
{
    return cli_given(c, "loader") ? cli_choice(c, "loader") == 1 : cli_given(c, "workers");
}

int plan_loading_facts(cli *c, leat_plan_facts *f, leat__image_kind kind)
{
    static const uint32_t element[] = {1, 2, 4};
    const bool process = plan_is_process(c);
    f->loader = process ? LEAT_PLAN_PROCESS : LEAT_PLAN_LEAT;
    f->workers = (int32_t)plan_given_int(c, cli_given(c, "threads") ? "threads" : "workers");
    f->prefetch = (uint32_t)plan_given_int(c, "prefetch");
    f->preset = cli_given(c, "preset") ? (uint32_t)cli_choice(c, "preset") + 1 : 0;
    f->element_bytes = element[dtype_of(c, process)];
    f->order = cli_given(c, "order") ? 1 + (uint32_t)cli_choice(c, "order") : 0;
    f->cache = cli_given(c, "cache") ? 1 + (uint32_t)cli_choice(c, "cache") : 0;
    f->memory_bytes = plan_given_bytes(c, "memory");
    f->no_validation = cli_flag(c, "single-loader");
    f->ops = cli_given(c, "ops") ? cli_str(c, "ops") : NULL;
    f->like = cli_given(c, "like") ? cli_str(c, "like") : NULL;
    f->crop = cli_given(c, "crop") ? cli_str(c, "crop") : NULL;
    if (!process && cli_given(c, "workers"))
        cli_warn(c, "--workers counts as --threads: --loader leat has no worker processes");
    if (process && cli_given(c, "workers") && cli_int(c, "workers") == 0)
        return cli_usage(c, "--workers 0 loads in the process that trains, which is not planned: give their "
                            "number, or -1 for all usable");
    return kind != 0 ? wide_facts(c, f, kind) : CLI_OK;
}

bool plan_tables_only(cli *c)
{
    return cli_given(c, "measure") && !cli_flag(c, "measure");
}

/* Writes the pipeline: --ops, or the one that the other flags describe. */
void plan_write_ops(cli *c, const leat_plan_facts *f, leat__buf *ops)
{
    static const char *const dtypes[] = {[1] = "u8", [2] = "f16", [4] = "f32"};
    if (cli_given(c, "ops")) leat__buf_puts(ops, cli_str(c, "ops"));
    else
        load_ops_write(ops, cli_choice(c, "crop"), (int)f->image, LEAT__DEFAULT_FLIP, cli_str(c, "like"),
                       f->wide == 2 ? NULL : dtypes[f->element_bytes], "nchw");
}

/* Sets the output of --ops, and the cost of its ops when it cannot be measured on a pack. */
int plan_ops_facts(cli *c, leat_plan_facts *f, leat__image_kind kind, bool listed)
{
    static const char *const parts[] = {"image", "crop", "like", "dtype"};
    const char *text = cli_str(c, "ops");
    leat_error err = {0};
    leat__pipeline *p = NULL;

    if (!cli_given(c, "ops")) return CLI_OK;
    for (size_t i = 0; i < LEAT_COUNT(parts); i++)
        if (cli_given(c, parts[i])) return cli_usage(c, "--ops replaces --%s: give one of them", parts[i]);
    const leat__pipeline_opts o = {.ops = text, .kind = {leat__kind_type(kind), leat__kind_channels(kind)}};
    if (leat__pipeline_open(&p, &o, &err) != 0) return cli_usage(c, "--ops: %s", err.message);
    const leat__output_spec *out = leat__pipeline_output(p);
    f->out_bytes = out->bytes;
    uint64_t out_pixels = (uint64_t)out->width * out->height;
    f->image = LEAT_MAX(1u, (uint32_t)(sqrt((double)out_pixels) + 0.5));
    uint32_t width = f->width > 0 ? f->width : LEAT__PLAN_WIDTH;
    uint32_t height = f->height > 0 ? f->height : LEAT__PLAN_HEIGHT;
    f->crop_area = leat__plan_ops_area(p, width, height);
    leat__pipeline_close(&p);
    /* the cost is measured; the table is used if that takes too long */
    const bool on_pack = cli_given(c, "dataset") && !listed;
    if (plan_tables_only(c) || on_pack) {
        bool sure;
        f->ops_unknown = !leat__plan_ops_us(text, f->isa, width, height, &f->ops_us, &sure);
        f->ops_guess = !sure;
        f->ops_us *= leat__plan_cpu_times(f);
        return CLI_OK;
    }
    return plan_measure_ops(f, width, height, &f->ops_us, &err) == 0 ? CLI_OK : cli_fail(c, &err);
}

/* Opens the planned pipeline. */
static int open_pipeline(cli *c, const leat_plan_facts *f, leat__image_kind kind, leat__pipeline **p,
                         leat_error *err)
{
    leat__buf ops;
    leat__buf_init(&ops, LEAT__MEM_MISC, 65536);
    plan_write_ops(c, f, &ops);
    const leat__pipeline_opts o = {.ops = leat__buf_str(&ops),
                                   .kind = {leat__kind_type(kind), leat__kind_channels(kind)}};
    int rc = leat__pipeline_open(p, &o, err);
    leat__buf_reset(&ops);
    return rc;
}

int plan_image_facts(cli *c, leat_plan_facts *f, leat__image_kind kind, bool listed)
{
    const bool pack = cli_given(c, "dataset") && !listed;
    leat__pipeline *p = NULL;
    leat_error err = {0};
    uint32_t stored = LEAT__CODEC_NONE;
    if (!pack && !cli_given(c, "ops")) return CLI_OK;
    if (cli_given(c, "images") && f->images == LEAT_PLAN_TILED) stored = LEAT__CODEC_TILE;
    if (cli_given(c, "images") && f->images == LEAT_PLAN_RAW) stored = LEAT__CODEC_RAW;
    int rc = open_pipeline(c, f, kind, &p, &err);
    if (rc == 0) rc = plan_images(pack ? cli_str(c, "dataset") : NULL, stored, p, f, &err);
    leat__pipeline_close(&p);
    return rc == 0 ? CLI_OK : cli_fail(c, &err);
}

int plan_device_facts(cli *c, leat_plan_facts *f, leat__image_kind kind)
{
    leat__pipeline *p = NULL;
    leat_error err = {0};
    if (f->gpus == 0 || f->loader != LEAT_PLAN_LEAT || f->wide != 0) return CLI_OK;
    int rc = open_pipeline(c, f, kind, &p, &err);
    if (rc == 0)
        f->host_share = 1 - leat__device_takes(p, f->width > 0 ? f->width : LEAT__PLAN_WIDTH,
                                               f->height > 0 ? f->height : LEAT__PLAN_HEIGHT);
    leat__pipeline_close(&p);
    return rc == 0 ? CLI_OK : cli_fail(c, &err);
}
