/* SPDX-License-Identifier: Apache-2.0
 *
 * Predicts the time of a training step on a GPU. Arithmetic and memory traffic of a sample (arch.h, tape.h)
 * give a time at the card's peak rates. How close a step comes to the peaks is taken from measured steps
 * (data/plan/steps.txt); those of the same family, precision and kind of card have the most weight.
 */
#include "plan/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

/* Fixed time of a step, independent of the batch: the host launching kernels. ResNet-50 in bf16
 * on an H200 takes 19.3, 30.4 and 55.0 ms for 64, 128 and 256 samples, ViT-B 26.9, 50.0 and 92.4:
 * 7 and 5 ms above the slope. Compiled steps launch fewer, larger kernels. */
#define LAUNCH_S 0.006
#define LAUNCH_COMPILED_S 0.002

/* Uncertainty if this exact case was measured; if its family was measured in its precision on a
 * similar card; and otherwise. Rows held out of the model are off by 10 % on average and by at most
 * 30 %. */
#define SPREAD_EXACT 0.08
#define SPREAD_FAMILY 0.30
#define SPREAD_OTHER 0.40

/* The faster a card, the further its steps are from its peaks: kernels are too short to fill it.
 * ResNet-50 in 16 bits reaches 1.0 of the model's rate on an RTX 3090, 0.8 on an A100, 0.6 on an
 * H200. */
#define FALLS 0.2
/* Similarity of cards is measured by the logarithm of their memory bandwidth; this is the
 * scale. */
#define LIKE 0.3
#define SAME_MODEL 3.0
#define OTHER_FAMILY 0.02
#define OTHER_PRECISION 0.03
#define OTHER_COMPILED 0.05
#define ANYTHING 1e-4 /* so that some row always has weight */

typedef enum math_kind { MATH_HALF, MATH_TF32, MATH_FP32 } math_kind;

/* Returns the arithmetic used. Convolutions in fp32 use TF32 by default, matrix products do not. */
static math_kind math_of(const plan_gpu *gpu, const leat__arch *arch, uint32_t precision)
{
    if (precision != LEAT_PLAN_FP32) return MATH_HALF;
    bool convolutions = arch != NULL && arch->kind == LEAT__ARCH_RESNET;
    return convolutions && gpu->tf32_tflops > 0 ? MATH_TF32 : MATH_FP32;
}

/* Returns the seconds per sample at the card's peaks: arithmetic (forward once, backward twice, two
 * operations per multiply-add) plus memory traffic, in sequence. */
static double ideal_s(const plan_gpu *gpu, math_kind math, const leat_plan_vram *v)
{
    double tflops = math == MATH_HALF   ? gpu->half_tflops
                    : math == MATH_TF32 ? gpu->tf32_tflops
                                        : gpu->fp32_tflops;
    return v->macs * 6 / (tflops * 1e12) + v->traffic_bytes / (gpu->memory_gbs * 1e9);
}

static double launch_s(uint64_t compiled)
{
    return compiled ? LAUNCH_COMPILED_S : LAUNCH_S;
}

static uint32_t precision_of(const char *name)
{
    return strcmp(name, "fp32") == 0       ? LEAT_PLAN_FP32
           : strcmp(name, "16-mixed") == 0 ? LEAT_PLAN_FP16_MIXED
                                           : LEAT_PLAN_BF16_MIXED;
}

/* How similar a row of the table is to the request. */
typedef struct likeness {
    double share; /* rate as a share of the card's peaks, converted to the requested card */
    double weight;
    bool exact;  /* same model, card and precision, compiled or not as requested */
    bool family; /* same family and precision, on a similar card */
} likeness;

/* Returns the share of the peaks that the row's step reaches, without launch time; 0 when unknown. */
static double share_of(const plan_step *row, const plan_gpu *gpu, const leat__arch *arch,
                       const leat_plan_facts *f)
{
    leat_plan_facts g = *f;
    leat_plan_vram v;
    snprintf(g.model, sizeof g.model, "%s", row->model);
    g.precision = precision_of(row->precision);
    g.batch = row->batch;
    g.image = (uint32_t)row->image;
    g.unfused_attention = (uint32_t)row->unfused;
    g.vram_bytes = 0;
    if (leat__plan_vram(&g, &v, NULL) != 0) return 0;
    double sample_s = 1 / row->samples_per_s - launch_s(row->compiled) / (double)row->batch;
    return sample_s > 0 ? ideal_s(gpu, math_of(gpu, arch, g.precision), &v) / sample_s : 0;
}

static likeness compare(const plan_step *row, const leat_plan_facts *f, const plan_gpu *here,
                        const leat__arch *arch)
{
    const plan_gpu *gpu = leat__plan_gpu_find(row->gpu);
    const leat__arch *other = leat__arch_find(row->model);
    likeness l = {0};
    if (row->fit == 0 || gpu == NULL || other == NULL) return l;
    bool family = arch != NULL && other->kind == arch->kind, compiled = row->compiled == f->compile;
    bool math = math_of(gpu, other, precision_of(row->precision)) == math_of(here, arch, f->precision);
    double apart = log(gpu->memory_gbs / here->memory_gbs);
    l.exact = family && other == arch && math && compiled && gpu == here && row->image == f->image;
    l.family = family && math && compiled && fabs(apart) < 2 * LIKE;
    l.weight = exp(-apart * apart / (2 * LIKE * LIKE)) + ANYTHING;
    l.weight *= !family ? OTHER_FAMILY : other == arch ? SAME_MODEL : 1;
    l.weight *= (math ? 1 : OTHER_PRECISION) * (compiled ? 1 : OTHER_COMPILED);
    l.share = share_of(row, gpu, other, f) * pow(gpu->memory_gbs / here->memory_gbs, FALLS);
    return l;
}

double leat__plan_step_s(const leat_plan_facts *f, const leat_plan_vram *v, double *spread)
{
    const plan_gpu *here = leat__plan_gpu_find(f->gpu);
    const leat__arch *arch = leat__arch_find(f->model);
    double sum = 0, weights = 0, exact = 0;
    if (here == NULL || v->macs <= 0) return 0;
    *spread = SPREAD_OTHER;
    for (size_t i = 0; i < LEAT_COUNT(plan_step_rows); i++) {
        likeness l = compare(&plan_step_rows[i], f, here, arch);
        if (l.share <= 0) continue;
        if (l.family) *spread = LEAT_MIN(*spread, SPREAD_FAMILY);
        if (l.exact) exact = l.share;
        sum += l.weight * log(l.share);
        weights += l.weight;
    }
    if (weights <= 0) return 0;
    if (exact > 0) *spread = SPREAD_EXACT;
    double share = exact > 0 ? exact : exp(sum / weights);
    double ideal = ideal_s(here, math_of(here, arch, f->precision), v);
    return ideal / share + launch_s(f->compile) / (double)leat__plan_batch_samples(f);
}
