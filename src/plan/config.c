/* SPDX-License-Identifier: Apache-2.0
 *
 * Completes the given facts: defaults, presets, workers, learning rate. Presets and the default number of
 * workers come from the guides. A default that a figure depends on adds a note.
 */
#include "plan/parts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "base/str.h"
#include "engine/flow_window.h"
#include "loader/footprint.h"

#define BYTES_MOST 0x1p58
#define INDEX_BYTES 100                 /* per sample in the index of a pack with an image and a label */
#define SAMPLE_MOST (UINT64_C(1) << 40) /* bytes of a sample */
#define MEASURED_MOST 1.2e15            /* bytes per second: the most that options take, with its spread */

/* "Conservative / Balanced / Aggressive" of the single-GPU guide on its 16 cores: batch 192,
 * 256, 320; workers 8, 12, 16 = a share of the cores; prefetch 2, 3, 4. */
static const struct preset {
    uint64_t batch;
    double workers_share;
    uint32_t prefetch;
    uint32_t compile;
} presets[] = {
    [LEAT_PLAN_PRESET_NONE] = {256, 0.0, 3, 0},
    [LEAT_PLAN_CONSERVATIVE] = {192, 0.5, 2, 0},
    [LEAT_PLAN_BALANCED] = {256, 0.75, 3, 1},
    [LEAT_PLAN_AGGRESSIVE] = {320, 1.0, 4, 1},
};

/* Learning rates at a total batch of 256, scaled linearly with it. SGD: the single-GPU guide. AdamW:
 * DeiT (5e-4 at 512) and ConvNeXt (4e-3 at 4096) are on the same line. */
#define LR_SGD 0.5
#define LR_ADAMW 0.00025

void leat__plan_note(leat_plan *plan, const char *fmt, ...)
{
    char text[sizeof plan->notes[0]];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (uint32_t i = 0; i < plan->note_count; i++)
        if (strcmp(plan->notes[i], text) == 0) return;
    if (plan->note_count == LEAT_PLAN_NOTES) return;
    memcpy(plan->notes[plan->note_count++], text, sizeof text);
}

uint32_t leat__plan_default_workers(uint32_t cpus, uint32_t devices)
{
    if (devices == 0) return LEAT_MAX(cpus, 1u);
    return cpus > devices ? LEAT_MAX((cpus - devices) / devices, 1u) : 1u;
}

/* Returns the number of workers of all GPUs together when it is not given. By default each trainer
 * keeps one CPU. */
static uint32_t workers_in_all(const leat_plan_facts *f)
{
    double share = f->workers == -1 ? 1 : presets[f->preset].workers_share;
    if (share > 0) return (uint32_t)(share * f->cpus);
    return f->cpus > f->gpus ? f->cpus - f->gpus : 0;
}

uint32_t leat__plan_unused_cpus(const leat_plan_facts *given, uint32_t workers)
{
    uint32_t devices = LEAT_MAX(given->gpus, 1u), all = workers_in_all(given);
    double share = given->workers == 0 ? presets[given->preset].workers_share : 0;
    if (given->workers > 0 || (share > 0 && share < 1)) return 0; /* CPUs are left free on purpose */
    return workers == all / devices ? all % devices : 0;
}

uint64_t leat__plan_total_batch(const leat_plan_facts *f, uint64_t batch, uint64_t ranks)
{
    return f->samples > 0 ? LEAT_MIN(batch * ranks, f->samples) : batch * ranks;
}

double leat__plan_lr(const leat_plan_facts *f, uint64_t total_batch)
{
    return f->lr * (double)total_batch / (double)f->lr_batch;
}

static void default_u32(uint32_t *field, uint32_t value)
{
    if (*field == 0) *field = value;
}

static void default_u64(uint64_t *field, uint64_t value)
{
    if (*field == 0) *field = value;
}

static int check(const leat_plan_facts *f, leat_error *err)
{
    const struct {
        const char *name;
        uint64_t value, max;
    } limits[] = {
        {"cpus", f->cpus, 1 << 20},
        {"gpus", f->gpus, 1 << 16},
        {"nodes", f->nodes, 1 << 20},
        {"batch", f->batch, LEAT_PLAN_BATCH_MOST},
        {"image", f->image, LEAT__PLAN_IMAGE_MOST},
        {"classes", f->classes, 1 << 28},
        {"prefetch", f->prefetch, 65536},
        {"width", f->width, 1 << 20},
        {"height", f->height, 1 << 20},
        {"samples", f->samples, UINT64_C(1) << 48},
        {"epochs", f->epochs, 1 << 24},
        {"sample_bytes", f->sample_bytes, SAMPLE_MOST},
        {"max_sample_bytes", f->max_sample_bytes, SAMPLE_MOST},
        {"params", f->params, UINT64_C(1) << 48},
        {"activation_bytes", f->activation_bytes, UINT64_C(1) << 44},
        {"ram_bytes", f->ram_bytes, UINT64_C(1) << 56},
        {"limit_bytes", f->limit_bytes, UINT64_C(1) << 56},
        {"vram_bytes", f->vram_bytes, UINT64_C(1) << 56},
        {"page_bytes", f->page_bytes, UINT64_C(1) << 32},
        {"mean_page_bytes", f->mean_page_bytes, UINT64_C(1) << 40},
        {"index_bytes", f->index_bytes, UINT64_C(1) << 56},
        {"memory_bytes", f->memory_bytes, UINT64_C(1) << 56},
        {"process_bytes", f->process_bytes, UINT64_C(1) << 48},
        {"image_bytes", f->image_bytes, UINT64_C(1) << 44},
        {"max_image_bytes", f->max_image_bytes, UINT64_C(1) << 44},
        {"used_image_bytes", f->used_image_bytes, UINT64_C(1) << 44},
        {"max_used_image_bytes", f->max_used_image_bytes, UINT64_C(1) << 44},
        {"preset", f->preset, LEAT_PLAN_AGGRESSIVE},
        {"precision", f->precision, LEAT_PLAN_BF16_TRUE},
        {"optimizer", f->optimizer, LEAT_PLAN_ADAMW},
        {"loader", f->loader, LEAT_PLAN_PROCESS},
        {"images", f->images, LEAT_PLAN_MIX},
    };
    for (size_t i = 0; i < LEAT_COUNT(limits); i++)
        if (limits[i].value > limits[i].max)
            return leat__fail(err, LEAT_EINVAL, "%s of %llu is out of range (up to %llu)", limits[i].name,
                              (unsigned long long)limits[i].value, (unsigned long long)limits[i].max);
    if (f->workers < -1 || f->workers > 65536)
        return leat__fail(err, LEAT_EINVAL, "workers of %d is out of range (-1 to 65536)", (int)f->workers);
    if (f->element_bytes != 1 && f->element_bytes != 2 && f->element_bytes != 4)
        return leat__fail(err, LEAT_EINVAL, "elements of %u bytes (1, 2 or 4)", f->element_bytes);
    const leat_plan_calibration *m = &f->measured;
    const leat_plan_range ranges[] = {m->io_bytes_per_s, m->cpu_us, m->step_ms, m->h2d_bytes_per_s};
    for (size_t i = 0; i < LEAT_COUNT(ranges); i++) {
        leat_plan_range r = ranges[i];
        bool known = r.low > 1e-6 && r.low <= r.mid && r.mid <= r.high && r.high <= MEASURED_MOST;
        if (!known && r.mid != 0)
            return leat__fail(err, LEAT_EINVAL,
                              "a measured range must be low <= mid <= high, and within 1e-6 to %g",
                              MEASURED_MOST);
    }
    if (!(f->lr >= 0 && f->lr < 1e9) || !(f->macs >= 0 && f->macs <= 1e18))
        return leat__fail(err, LEAT_EINVAL, "`lr` must be 0 to 1e9, and the multiply-adds 0 to 1e18");
    if (!(f->cpu_quota >= 0 && f->cpu_quota <= 1 << 20))
        return leat__fail(err, LEAT_EINVAL, "a quota of %g CPUs is out of range (0 to %d)", f->cpu_quota,
                          1 << 20);
    if (!(f->mix_raw >= 0 && f->mix_raw <= 1) || !(f->crop_area > 0 && f->crop_area <= 1))
        return leat__fail(err, LEAT_EINVAL, "a share must be between 0 and 1");
    return 0;
}

/* Checks products of facts, which are multiplied later: each fact alone may be large, but not all
 * together. */
static int check_products(const leat_plan_facts *f, leat_error *err)
{
    double workers = (double)f->workers * LEAT_MAX(f->gpus, 1u) * f->nodes;
    double batch = (double)f->batch * 3 * f->image * f->image * f->element_bytes;
    double raw = (double)f->width * f->height * 3;
    double decoded = workers * (raw + 32.0 * (double)f->sample_bytes);
    if (workers * (f->prefetch + 4.0) * batch >= BYTES_MOST)
        return leat__fail(err, LEAT_EOVERFLOW,
                          "`batch`, `image`, `prefetch`, `workers` and `nodes` are out of range: batches of "
                          "more than 2^58 bytes");
    if (decoded >= BYTES_MOST)
        return leat__fail(err, LEAT_EOVERFLOW,
                          "`width`, `height`, `sample_bytes`, `workers` and `nodes` are out of range: images "
                          "of more than 2^58 bytes at once");
    if ((double)f->samples * LEAT_MAX(raw, (double)f->sample_bytes) >= BYTES_MOST)
        return leat__fail(err, LEAT_EOVERFLOW,
                          "`samples`, `sample_bytes`, `width` and `height` are out of range: a dataset of "
                          "more than 2^58 bytes");
    return 0;
}

static int complete_model(leat_plan *plan, leat_error *err)
{
    leat_plan_facts *f = &plan->facts;
    if (f->model[0] == '\0') {
        snprintf(f->model, sizeof f->model, "resnet50");
        leat__plan_note(plan, "no model given: figures are for ResNet-50");
    }
    const leat__arch *arch = leat__arch_find(f->model);
    if (arch == NULL) {
        const char *near = leat__arch_nearest(f->model);
        return leat__fail(err, LEAT_EINVAL,
                          "unknown model '%s'%s%s%s; any model can be given "
                          "as 'generic' with its parameters and activation bytes per sample",
                          f->model, near != NULL ? " (did you mean '" : "", near != NULL ? near : "",
                          near != NULL ? "'?)" : "");
    }
    if (arch->kind == LEAT__ARCH_GENERIC && (f->params == 0 || f->activation_bytes == 0))
        return leat__fail(err, LEAT_EINVAL,
                          "model 'generic' needs its parameters and its "
                          "activation bytes per sample");
    snprintf(f->model, sizeof f->model, "%s", arch->name);
    if (f->optimizer == LEAT_PLAN_OPTIMIZER_AUTO)
        f->optimizer = arch->adamw ? LEAT_PLAN_ADAMW : LEAT_PLAN_MOMENTUM;
    if (f->lr <= 0) f->lr = f->optimizer == LEAT_PLAN_ADAMW ? LR_ADAMW : LR_SGD;
    const plan_gpu *gpu = leat__plan_gpu_find(f->gpu);
    if (f->gpu[0] != '\0' && gpu == NULL && f->vram_bytes == 0)
        return leat__plan_gpu_unknown(f->gpu, "--vram and --step-ms", err);
    if (gpu != NULL && f->vram_bytes == 0) f->vram_bytes = gpu->vram_mib << 20;
    if (f->precision == LEAT_PLAN_PRECISION_AUTO)
        f->precision = gpu != NULL && !gpu->bf16 ? LEAT_PLAN_FP16_MIXED : LEAT_PLAN_BF16_MIXED;
    if (f->vram_bytes == 0) leat__plan_note(plan, "GPU not known: VRAM has no limit to check");
    return 0;
}

/* Sets workers, prefetch and batch: as given, else from the preset. Without one, leat's loader chooses how
 * many batches it makes ahead. */
static void configure(leat_plan *plan)
{
    leat_plan_facts *f = &plan->facts;
    const struct preset *p = &presets[f->preset];
    uint32_t devices = LEAT_MAX(f->gpus, 1u);
    default_u64(&f->batch, p->batch);
    const bool own = f->loader == LEAT_PLAN_LEAT && f->preset == LEAT_PLAN_PRESET_NONE;
    default_u32(&f->prefetch,
                own ? leat__prefetch_first(f->batch, leat__plan_frame_bytes(f), LEAT__PREFETCH_FIRST)
                    : p->prefetch);
    if (p->compile) f->compile = 1;
    if (f->cpus == 0) leat__plan_note(plan, "number of CPUs not known: give --cpus");
    if (f->workers <= 0) f->workers = (int32_t)LEAT_MAX(workers_in_all(f) / devices, 1u);
    uint64_t total_workers = (uint64_t)f->workers * devices;
    if (f->cpus > 0 && total_workers > f->cpus)
        leat__plan_note(plan, "%llu workers on %u usable CPU%s: they will contend",
                        (unsigned long long)total_workers, f->cpus, leat__plural(f->cpus));
    leat_plan_config *c = &plan->config;
    c->workers = (uint32_t)f->workers;
    c->prefetch = f->prefetch;
    c->batch = f->batch;
    c->total_batch = leat__plan_total_batch(f, f->batch, (uint64_t)devices * f->nodes);
    c->precision = f->precision;
    c->compile = f->compile;
    c->lr = leat__plan_lr(f, c->total_batch);
}

/* Assumes the usual image size, scaled by the bytes of a sample. */
static void assume_size(leat_plan *plan)
{
    leat_plan_facts *f = &plan->facts;
    const leat_plan_facts usual = {.width = LEAT__PLAN_WIDTH, .height = LEAT__PLAN_HEIGHT};
    double bytes = (double)(f->sample_bytes > 0 ? f->sample_bytes : f->measured.sample_bytes);
    double times =
        bytes > 0 ? sqrt(bytes / (double)leat__plan_stored_bytes(&usual, f->images, f->mix_raw)) : 1;
    times = LEAT_MIN(times, 1000.0);
    f->width = LEAT_MAX((uint32_t)(usual.width * times + 0.5), 1u);
    f->height = LEAT_MAX((uint32_t)(usual.height * times + 0.5), 1u);
    if (f->samples > 0)
        leat__plan_note(plan, "image size not known: %u x %u assumed%s", f->width, f->height,
                        bytes > 0 ? ", by the bytes of a sample" : "");
}

int leat__plan_complete(leat_plan *plan, leat_error *err)
{
    leat_plan_facts *f = &plan->facts;
    default_u32(&f->nodes, 1);
    default_u32(&f->image, 224);
    default_u32(&f->classes, 1000);
    default_u32(&f->epochs, 1);
    default_u32(&f->element_bytes, 4);
    default_u64(&f->lr_batch, 256);
    default_u64(&f->page_bytes, UINT64_C(512) << 10);
    default_u64(&f->mean_page_bytes, f->page_bytes);
    default_u64(&f->index_bytes, f->samples * INDEX_BYTES);
    if (f->crop_area == 0) f->crop_area = 0.42;
    if (f->isa[0] == '\0') snprintf(f->isa, sizeof f->isa, "avx2");
    if (f->width == 0 || f->height == 0) assume_size(plan);
    LEAT_TRY(check(f, err));
    if (f->sample_bytes == 0) {
        f->sample_bytes = f->measured.sample_bytes;
        if (f->sample_bytes == 0) {
            f->sample_bytes = leat__plan_stored_bytes(f, f->images, f->mix_raw);
            if (f->samples > 0 && f->images != LEAT_PLAN_RAW)
                leat__plan_note(plan, "bytes per sample not known: 110 KB assumed (ImageNet's mean)%s",
                                f->images == LEAT_PLAN_MIX ? " of those that are not raw" : "");
        }
    }
    default_u64(&f->max_sample_bytes, LEAT_MIN(4 * f->sample_bytes, SAMPLE_MOST));
    if (f->gpus > 0) LEAT_TRY(complete_model(plan, err));
    configure(plan);
    return check_products(f, err);
}
