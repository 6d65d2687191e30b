/* SPDX-License-Identifier: Apache-2.0
 *
 * Mixup and CutMix: see mix.h. The batch is changed in place from its last sample on: sample
 * i reads sample i-1, which is still as it came; the first reads a copy of the last.
 */
#include "op/mix.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "dsp/pixel.h"

enum { MIX_ALPHA, MIX_P };
static const leat__param mix_params[] = {
    {.name = "alpha", .kind = LEAT__PARAM_FLOAT, .def = "1", .min = 1e-3, .max = 1e3,
     .help = "both parameters of the beta distribution of the weight"},
    {.name = "p", .kind = LEAT__PARAM_FLOAT, .def = "1", .min = 0, .max = 1,
     .help = "probability per batch"},
};

const leat__op_def leat__ops_batch[] = {
    {"MixUp", "blends each sample of a batch, and its label, with another", LEAT_OP_BATCH,
     mix_params, LEAT_COUNT(mix_params), NULL, NULL, NULL},
    {"CutMix", "puts a rectangle of another sample into each, and mixes the labels",
     LEAT_OP_BATCH, mix_params, LEAT_COUNT(mix_params), NULL, NULL, NULL},
    {0},
};

/* Streams of batches are kept apart from those of samples by the op number. */
enum { BATCH_STREAM = 0xf000 };

static void draw_box(leat__mix *mix, leat__rng *rng, const leat__output_spec *spec)
{
    const double w = spec->width, h = spec->height;
    const int64_t cx = (int64_t)leat__rng_below(rng, spec->width);
    const int64_t cy = (int64_t)leat__rng_below(rng, spec->height);
    const double half = 0.5 * sqrt(1.0 - (double)mix->lambda);
    const int64_t hw = (int64_t)(half * w), hh = (int64_t)(half * h);
    const int64_t x0 = LEAT_MAX(cx - hw, 0), x1 = LEAT_MIN(cx + hw, spec->width);
    const int64_t y0 = LEAT_MAX(cy - hh, 0), y1 = LEAT_MIN(cy + hh, spec->height);
    mix->paste = true;
    mix->x = (uint32_t)x0;
    mix->y = (uint32_t)y0;
    mix->width = (uint32_t)(x1 - x0);
    mix->height = (uint32_t)(y1 - y0);
    /* the share that is really left, after cutting at the border */
    mix->lambda = (float)(1.0 - (double)(x1 - x0) * (double)(y1 - y0) / (w * h));
}

void leat__mix_draw(leat__mix *mix, const leat__op_spec *op, const leat__output_spec *spec,
                    uint64_t seed, uint64_t epoch, uint64_t batch, uint32_t index)
{
    leat__rng rng;
    *mix = (leat__mix){.lambda = 1};
    leat__rng_init(&rng, seed, epoch, batch, BATCH_STREAM + index);
    if (leat__rng_double(&rng) >= op->value[MIX_P].f) return;
    const double alpha = op->value[MIX_ALPHA].f;
    mix->active = true;
    mix->lambda = (float)leat__rng_beta(&rng, alpha, alpha);
    if (op->def == &leat__ops_batch[1]) draw_box(mix, &rng, spec);
}

/* ---- pixels ---- */

static void blend_u8(uint8_t *a, const uint8_t *b, size_t n, float lambda)
{
    for (size_t i = 0; i < n; i++)
        a[i] = (uint8_t)(lambda * (float)a[i] + (1.0f - lambda) * (float)b[i] + 0.5f);
}

static void blend_f32(float *a, const float *b, size_t n, float lambda)
{
    const float rest = 1.0f - lambda;
    for (size_t i = 0; i < n; i++) a[i] = b[i] * rest + a[i] * lambda;
}

static void blend_half(uint16_t *a, const uint16_t *b, size_t n, float lambda, bool brain)
{
    const float rest = 1.0f - lambda;
    for (size_t i = 0; i < n; i++) {
        const float x = brain ? leat__f32_of_bf16(a[i]) : leat__f32_of_f16(a[i]);
        const float y = brain ? leat__f32_of_bf16(b[i]) : leat__f32_of_f16(b[i]);
        const float v = y * rest + x * lambda;
        a[i] = brain ? leat__bf16_of(v) : leat__f16_of(v);
    }
}

static void blend(const leat__output_spec *spec, void *a, const void *b, float lambda)
{
    const size_t n = spec->bytes / leat__dtype_bytes(spec->dtype);
    switch (spec->dtype) {
    case LEAT__DTYPE_U8: blend_u8(a, b, n, lambda); break;
    case LEAT__DTYPE_F32: blend_f32(a, b, n, lambda); break;
    case LEAT__DTYPE_F16: blend_half(a, b, n, lambda, false); break;
    case LEAT__DTYPE_BF16: blend_half(a, b, n, lambda, true); break;
    }
}

static void paste(const leat__mix *mix, const leat__output_spec *spec, uint8_t *a,
                  const uint8_t *b)
{
    const size_t element = leat__dtype_bytes(spec->dtype);
    const bool woven = spec->layout == LEAT__LAYOUT_NHWC;
    const size_t pixel = woven ? element * spec->channels : element;
    const uint32_t planes = woven ? 1 : spec->channels;
    for (uint32_t c = 0; c < planes; c++)
        for (uint32_t y = mix->y; y < mix->y + mix->height; y++) {
            const size_t at =
                (((size_t)c * spec->height + y) * spec->width + mix->x) * pixel;
            memcpy(a + at, b + at, mix->width * pixel);
        }
}

int leat__mix_pixels(const leat__mix *mix, const leat__output_spec *spec, void *batch,
                     size_t n, size_t stride, leat_error *err)
{
    uint8_t *const base = batch;
    if (!mix->active || n == 0) return 0;
    uint8_t *const last = leat__alloc(LEAT__MEM_SCRATCH, spec->bytes);
    if (!last) return leat__fail_nomem(err, spec->bytes, "a sample to mix with");
    memcpy(last, base + (n - 1) * stride, spec->bytes);
    for (size_t i = n; i-- > 0;) {
        const uint8_t *const partner = i > 0 ? base + (i - 1) * stride : last;
        if (mix->paste)
            paste(mix, spec, base + i * stride, partner);
        else
            blend(spec, base + i * stride, partner, mix->lambda);
    }
    leat__free(last);
    return 0;
}

int leat__mix_labels(const leat__mix *mix, const int64_t *labels, size_t n, uint32_t classes,
                     float *targets, leat_error *err)
{
    const float lambda = mix->active ? mix->lambda : 1.0f;
    for (size_t i = 0; i < n; i++)
        if (labels[i] < 0 || labels[i] >= classes)
            return leat__fail(err, LEAT_EINVAL, "label %lld is not one of %u classes",
                              (long long)labels[i], classes);
    memset(targets, 0, n * classes * sizeof *targets);
    for (size_t i = 0; i < n; i++) {
        float *const row = targets + i * classes;
        row[labels[i > 0 ? i - 1 : n - 1]] += 1.0f - lambda;
        row[labels[i]] += lambda;
    }
    return 0;
}
