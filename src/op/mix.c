/* SPDX-License-Identifier: Apache-2.0
 *
 * MixUp and CutMix: see mix.h. The batch is changed in place, piece by piece, starting with its last
 * sample. Sample i reads sample i-1, which is not yet changed; the first reads a copy of the last one's
 * piece. Pieces are small, so the copy fits on the stack and the rows stay in the cache.
 */
#include "op/mix.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "dsp/pixel.h"
#include "probe/cpu.h"

enum { MIX_ALPHA, MIX_P, MIX_UNMIXED };
static const leat__param mix_params[] = {
    {.name = "alpha",
     .kind = LEAT__PARAM_FLOAT,
     .def = "1",
     .min = 1e-3,
     .max = 1e3,
     .help = "both parameters of the beta distribution of the weight"},
    {.name = "p", .kind = LEAT__PARAM_FLOAT, .def = "1", .min = 0, .max = 1, .help = "probability per batch"},
    {.name = "unmixed",
     .kind = LEAT__PARAM_FLAG,
     .def = "false",
     .min = 1,
     .help = "only batches that no MixUp or CutMix before it has mixed"},
};

const leat__op_def leat__ops_batch[] = {
    {"MixUp", "blends each sample of a batch, and its label, with the one before it", LEAT_OP_BATCH,
     mix_params, LEAT_COUNT(mix_params), NULL, NULL, NULL},
    {"CutMix", "pastes a rectangle of the sample before it into each, and mixes the labels", LEAT_OP_BATCH,
     mix_params, LEAT_COUNT(mix_params), NULL, NULL, NULL},
    {0},
};

/* The op number separates random streams of batches from those of samples. */
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
    /* the share that remains after clipping at the border */
    mix->lambda = (float)(1.0 - (double)(x1 - x0) * (double)(y1 - y0) / (w * h));
    LEAT_ASSERT(x0 <= x1 && y0 <= y1);
    LEAT_ASSERT(mix->lambda >= 0 && mix->lambda <= 1);
}

bool leat__mix_needs_size(const leat__op_spec *op)
{
    return op->def == &leat__ops_batch[1];
}

bool leat__mix_unmixed(const leat__op_spec *op)
{
    return op->value[MIX_UNMIXED].i != 0;
}

void leat__mix_rng(leat__rng *rng, uint64_t seed, uint64_t epoch, uint64_t position, uint32_t index)
{
    leat__rng_init(rng, seed, epoch, position, BATCH_STREAM + index);
}

void leat__mix_draw(leat__mix *mix, const leat__op_spec *op, const leat__output_spec *spec, uint64_t seed,
                    uint64_t epoch, uint64_t position, uint32_t index)
{
    leat__rng rng;
    *mix = (leat__mix){.lambda = 1};
    leat__mix_rng(&rng, seed, epoch, position, index);
    if (leat__rng_double(&rng) >= op->value[MIX_P].f) return;
    const double alpha = op->value[MIX_ALPHA].f;
    mix->active = true;
    mix->lambda = (float)leat__rng_beta(&rng, alpha, alpha);
    if (leat__mix_needs_size(op)) draw_box(mix, &rng, spec);
}

/* ---- pixels ---- */

static void blend_u16(uint16_t *a, const uint16_t *b, size_t n, float wa, float wb)
{
    for (size_t i = 0; i < n; i++) a[i] = (uint16_t)(wa * (float)a[i] + wb * (float)b[i] + 0.5f);
}

/* Computes torch.roll(x, 1).mul_(1 - lambda).add_(x.mul(lambda)). Integers, which torchvision refuses, are
 * rounded to the nearest. */
static void blend(leat_dtype dtype, void *a, const void *b, size_t bytes, float lambda)
{
    const leat__pixel_dsp *const dsp = leat__pixel_dsp_for(leat__cpu_flags());
    const float rest = (float)(1.0 - (double)lambda);
    switch (dtype) {
    case LEAT_DTYPE_U8: dsp->blend_u8(a, b, bytes, lambda, rest); break;
    case LEAT_DTYPE_U16: blend_u16(a, b, bytes / 2, lambda, rest); break;
    case LEAT_DTYPE_F32: dsp->blend_f32(a, b, bytes / 4, lambda, rest); break;
    case LEAT_DTYPE_F16: dsp->blend_f16(a, b, bytes / 2, lambda, rest); break;
    case LEAT_DTYPE_BF16: dsp->blend_bf16(a, b, bytes / 2, lambda, rest); break;
    default: break;
    }
}

enum { PIECE = 4096 };

/* Changes bytes [at, at + bytes) of all samples: blends them, or copies them from the partner. */
static void mix_piece(const leat__mix *mix, leat_dtype dtype, uint8_t *base, size_t n, size_t stride,
                      size_t at, size_t bytes)
{
    LEAT_ASSERT(n > 0 && bytes <= PIECE);
    LEAT_ASSERT(at + bytes <= stride);
    _Alignas(16) uint8_t last[PIECE];
    memcpy(last, base + (n - 1) * stride + at, bytes);
    for (size_t i = n; i-- > 0;) {
        const uint8_t *const partner = i > 0 ? base + (i - 1) * stride + at : last;
        uint8_t *const own = base + i * stride + at;
        if (mix->paste) memcpy(own, partner, bytes);
        else blend(dtype, own, partner, bytes, mix->lambda);
    }
}

static void mix_range(const leat__mix *mix, leat_dtype dtype, uint8_t *base, size_t n, size_t stride,
                      size_t at, size_t bytes)
{
    for (size_t done = 0; done < bytes; done += PIECE)
        mix_piece(mix, dtype, base, n, stride, at + done, LEAT_MIN(bytes - done, (size_t)PIECE));
}

void leat__mix_pixels(const leat__mix *mix, const leat__output_spec *spec, void *batch, size_t n,
                      size_t stride)
{
    LEAT_ASSERT(!mix->active || stride >= spec->bytes);
    LEAT_ASSERT(!mix->paste || (mix->x + mix->width <= spec->width && mix->y + mix->height <= spec->height));
    if (!mix->active || n == 0) return;
    if (!mix->paste) {
        mix_range(mix, spec->dtype, batch, n, stride, 0, spec->bytes);
        return;
    }
    const size_t element = leat_dtype_size(spec->dtype);
    const bool woven = spec->layout == LEAT__LAYOUT_NHWC;
    const size_t pixel = woven ? element * spec->channels : element;
    for (uint32_t c = 0; c < (woven ? 1 : spec->channels); c++)
        for (uint32_t y = mix->y; y < mix->y + mix->height; y++) {
            const size_t row = ((size_t)c * spec->height + y) * spec->width;
            mix_range(mix, spec->dtype, batch, n, stride, (row + mix->x) * pixel, mix->width * pixel);
        }
}

/* CutMix blends labels by the area of the rectangle. */
void leat__mix_targets(const leat__mix *mix, float *rows, size_t n, uint32_t classes)
{
    LEAT_ASSERT(!mix->active || (mix->lambda >= 0 && mix->lambda <= 1));
    const size_t bytes = classes * sizeof *rows;
    const leat__mix blended = {.active = true, .lambda = mix->lambda};
    if (!mix->active || n == 0) return;
    mix_range(&blended, LEAT_DTYPE_F32, (uint8_t *)rows, n, bytes, 0, bytes);
}
