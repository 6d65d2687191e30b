/* SPDX-License-Identifier: Apache-2.0
 *
 * Peak memory of one GPU during a training step: weights and optimizer state, which are always
 * present, the batch, and the tape's peak (arch.h, tape.h).
 */
#include "plan/parts.h"

#include <string.h>

#include "base/error.h"
#include "base/num.h"

/* Outside the framework's allocator: the CUDA context and the kernels it loads. */
#define CONTEXT_BYTES (UINT64_C(550) << 20)
/* Inside it: cuBLAS and cuBLASLt keep 32 MiB each (bench/data/vram_h200.jsonl: memory allocated
 * between steps is 64 to 74 MiB more than weights, momentum and batch). */
#define WORKSPACE_BYTES (UINT64_C(64) << 20)

static leat__arch_shape shape_of(const leat_plan_facts *f)
{
    bool mixed = f->precision == LEAT_PLAN_FP16_MIXED || f->precision == LEAT_PLAN_BF16_MIXED;
    return (leat__arch_shape){
        .batch = leat__plan_batch_samples(f),
        .image = f->image,
        .classes = f->classes,
        .size = f->precision == LEAT_PLAN_FP32 ? 4 : 2,
        .mixed = mixed,
        .fused_attention = !f->unfused_attention,
        /* data-parallel training keeps its gradient buckets between steps */
        .keep_grads = f->gpus * f->nodes > 1,
        .params = f->params,
        .activation_bytes = f->activation_bytes,
        .macs = f->macs,
    };
}

static int measure(const leat_plan_facts *f, leat_plan_vram *v, leat_error *err)
{
    const leat__arch *arch = leat__arch_find(f->model);
    *v = (leat_plan_vram){.limit = f->vram_bytes};
    if (arch == NULL) return leat__fail(err, LEAT_EINVAL, "unknown model '%s'", f->model);
    leat__arch_shape shape = shape_of(f);
    leat__tape_sum sum;
    LEAT_TRY(leat__arch_measure(arch, &shape, &sum, err));

    uint64_t stored = f->precision == LEAT_PLAN_BF16_TRUE ? 2 : 4;
    uint64_t states = f->optimizer == LEAT_PLAN_ADAMW ? 2 : f->optimizer == LEAT_PLAN_MOMENTUM;
    v->params = sum.params;
    v->weights = sum.params * stored;
    v->optimizer = sum.params * stored * states;
    v->gradients = sum.peak_grads_bytes;
    v->activations = sum.peak_bytes - sum.peak_grads_bytes;
    v->batch = leat__plan_batch_bytes(f);
    v->workspace = WORKSPACE_BYTES;
    v->context = CONTEXT_BYTES;
    /* The other possible peak: the optimizer's step, when every gradient exists and fused AdamW holds
     * one more value per parameter. It is the highest only for tiny batches. */
    uint64_t step = sum.params * stored * (states == 2 ? 2 : 1);
    if (step > v->activations + v->gradients) {
        v->gradients = sum.params * stored;
        v->activations = step - v->gradients;
    }
    v->total =
        v->weights + v->optimizer + v->gradients + v->activations + v->batch + v->workspace + v->context;
    v->macs = sum.macs / (double)shape.batch;
    v->traffic_bytes = sum.traffic_bytes / (double)shape.batch;
    return 0;
}

static uint32_t verdict_of(const leat_plan_vram *v)
{
    if (v->limit == 0) return LEAT_PLAN_UNKNOWN;
    if (v->total > v->limit) return LEAT_PLAN_OUT_OF_MEMORY;
    return (double)v->total > PLAN_SAFE_VRAM * (double)v->limit ? LEAT_PLAN_RISKY : LEAT_PLAN_SAFE;
}

int leat__plan_largest_batch(const leat_plan_facts *facts, uint64_t *batch, leat_error *err)
{
    leat_plan_facts f = *facts;
    leat_plan_vram v;
    uint64_t low = 0, high = 1; /* low fits; high is not known to */
    *batch = 0;
    if (f.vram_bytes == 0) return 0;
    f.samples = 0; /* what the GPU holds, also with more samples */
    while (high <= LEAT_PLAN_BATCH_MOST) {
        f.batch = high;
        LEAT_TRY(measure(&f, &v, err));
        if (verdict_of(&v) != LEAT_PLAN_SAFE) break;
        low = high;
        high *= 2;
    }
    high = LEAT_MIN(high, LEAT_PLAN_BATCH_MOST + 1);
    while (high - low > 1) {
        f.batch = low + (high - low) / 2;
        LEAT_TRY(measure(&f, &v, err));
        if (verdict_of(&v) == LEAT_PLAN_SAFE) low = f.batch;
        else high = f.batch;
    }
    *batch = low;
    return 0;
}

int leat__plan_vram(const leat_plan_facts *f, leat_plan_vram *vram, leat_error *err)
{
    LEAT_TRY(measure(f, vram, err));
    vram->verdict = verdict_of(vram);
    return 0;
}
