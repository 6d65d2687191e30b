/* SPDX-License-Identifier: Apache-2.0
 *
 * Resizes wide images with Pillow's filters and its order of the two passes. Weights and sums are in
 * double, with floats between the passes, as Pillow resizes images of mode F. One thread per workspace.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "dsp/resizer.h"
#include "op/wide_ops.h"

void leat__wide_to_float(leat__sample_type type, const uint8_t *src, float *dst, size_t n)
{
    switch (type) {
    case LEAT__SAMPLE_U8:
        for (size_t i = 0; i < n; i++) dst[i] = src[i];
        break;
    case LEAT__SAMPLE_U16:
        for (size_t i = 0; i < n; i++) {
            uint16_t v;
            memcpy(&v, src + i * sizeof v, sizeof v);
            dst[i] = v;
        }
        break;
    default: memcpy(dst, src, n * sizeof *dst); break;
    }
}

void leat__wide_from_float(leat__sample_type type, const float *src, uint8_t *dst, size_t n)
{
    switch (type) {
    case LEAT__SAMPLE_U8:
        for (size_t i = 0; i < n; i++) dst[i] = (uint8_t)rintf(src[i] > 0 ? src[i] < 255 ? src[i] : 255 : 0);
        break;
    case LEAT__SAMPLE_U16:
        for (size_t i = 0; i < n; i++) {
            const uint16_t v = (uint16_t)rintf(src[i] > 0 ? src[i] < 65535 ? src[i] : 65535 : 0);
            memcpy(dst + i * sizeof v, &v, sizeof v);
        }
        break;
    default: memcpy(dst, src, n * sizeof *src); break;
    }
}

/* Normalises the weights of a built axis in `work`, so that those of an output sum up to 1. An axis of
 * unchanged length takes one input per output. */
static void finish_weights(leat__axis *a)
{
    if (a->request.in == a->request.out) {
        for (uint32_t j = 0; j < a->count; j++) a->work[j] = 1;
        return;
    }
    for (uint32_t t = 0; t < a->taps; t++)
        for (uint32_t j = 0; j < a->count; j++)
            if (a->sum[j] != 0) a->work[(size_t)t * a->stride + j] /= a->sum[j];
}

/* Returns the weight of tap t of output j. */
static double weight(const leat__axis *a, uint32_t j, uint32_t t)
{
    return a->work[(size_t)t * a->stride + j];
}

/* Resizes one row of interleaved pixels with `channels` samples each. */
static void horizontal(const leat__axis *a, const float *src, uint32_t channels, float *dst)
{
    for (uint32_t j = 0; j < a->count; j++, dst += channels) {
        const float *const from = src + (size_t)(a->lo + a->first[j]) * channels;
        double sum[LEAT__CHANNELS_MAX] = {0};
        for (uint32_t t = 0; t < a->taps_of[j]; t++) {
            const double w = weight(a, j, t);
            for (uint32_t c = 0; c < channels; c++) sum[c] += (double)from[t * channels + c] * w;
        }
        for (uint32_t c = 0; c < channels; c++) dst[c] = (float)sum[c];
    }
}

/* Computes output row j of `n` samples; input rows are `n` apart. */
static void vertical(const leat__axis *a, uint32_t j, const float *src, size_t n, double *sum, float *dst)
{
    const float *row = src + (size_t)(a->lo + a->first[j]) * n;
    for (size_t i = 0; i < n; i++) sum[i] = 0;
    for (uint32_t t = 0; t < a->taps_of[j]; t++, row += n) {
        const double w = weight(a, j, t);
        for (size_t i = 0; i < n; i++) sum[i] += (double)row[i] * w;
    }
    for (size_t i = 0; i < n; i++) dst[i] = (float)sum[i];
}

/* Scratch: the pixels as floats, the image between the passes, a row, and its sums. */
typedef struct room {
    float *in, *middle, *row;
    double *sum;
} room;

static int make_room(leat__wide_workspace *b, size_t in, size_t middle, size_t row, room *r, leat_error *err)
{
    uint64_t floats = (uint64_t)in + middle + row;
    if (floats > PTRDIFF_MAX / 16) return leat__fail(err, LEAT_ELIMIT, "an image is too large to be resized");
    r->sum = leat__work_fit(&b->work, row * sizeof *r->sum + floats * sizeof *r->in, err);
    if (!r->sum) return LEAT_ENOMEM;
    r->in = (float *)(r->sum + row);
    r->middle = r->in + in;
    r->row = r->middle + middle;
    return 0;
}

static void across_then_down(leat__wide_workspace *b, const room *r, uint32_t channels)
{
    const leat__wide *const in = &b->image, *const out = &b->spare;
    const size_t wide = (size_t)in->width * channels, n = (size_t)out->width * channels;
    for (uint32_t y = 0; y < in->height; y++)
        horizontal(&b->x, r->in + y * wide, channels, r->middle + y * n);
    for (uint32_t y = 0; y < out->height; y++) {
        vertical(&b->y, y, r->middle, n, r->sum, r->row);
        leat__wide_from_float(out->type, r->row, leat__wide_row(out, y), n);
    }
}

static void down_then_across(leat__wide_workspace *b, const room *r, uint32_t channels)
{
    const leat__wide *const in = &b->image, *const out = &b->spare;
    const size_t wide = (size_t)in->width * channels, n = (size_t)out->width * channels;
    for (uint32_t y = 0; y < out->height; y++) {
        vertical(&b->y, y, r->in, wide, r->sum, r->middle);
        horizontal(&b->x, r->middle, channels, r->row);
        leat__wide_from_float(out->type, r->row, leat__wide_row(out, y), n);
    }
}

static void pick_nearest(leat__wide_workspace *b)
{
    const leat__wide *const in = &b->image, *const out = &b->spare;
    const size_t pixel = leat__wide_pixel(in);
    for (uint32_t y = 0; y < out->height; y++) {
        const uint8_t *const src = leat__wide_row(in, b->y.lo + b->y.first[y]);
        uint8_t *to = leat__wide_row(out, y);
        for (uint32_t x = 0; x < out->width; x++, to += pixel)
            memcpy(to, src + (b->x.lo + b->x.first[x]) * pixel, pixel);
    }
}

int leat__wide_resample(leat__wide_workspace *b, const leat__step *s, leat_error *err)
{
    const leat__wide *const in = &b->image;
    const leat__resize_dsp *const dsp = leat__resize_dsp_for(0); /* only its weights in double are used */
    const leat__axis_request x = {.in = in->width, .out = s->width, .filter = s->filter};
    const leat__axis_request y = {.in = in->height, .out = s->height, .filter = s->filter};
    room r = {0};
    LEAT_TRY(leat__axis_build(&b->x, &x, dsp, false, err));
    LEAT_TRY(leat__axis_build(&b->y, &y, dsp, true, err));
    LEAT_TRY(leat__wide_resize(&b->spare, in->type, in->channels, s->width, s->height, err));
    if (s->filter == LEAT__FILTER_NEAREST) {
        pick_nearest(b);
    } else {
        finish_weights(&b->x);
        finish_weights(&b->y);
        const bool down = leat__resize_vertical_first(&x, &y, s->order);
        const size_t wide = (size_t)in->width * in->channels, n = (size_t)s->width * in->channels;
        LEAT_TRY(make_room(b, wide * in->height, down ? wide : n * in->height, LEAT_MAX(wide, n), &r, err));
        for (uint32_t i = 0; i < in->height; i++)
            leat__wide_to_float(in->type, leat__wide_row(in, i), r.in + i * wide, wide);
        if (down) down_then_across(b, &r, in->channels);
        else across_then_down(b, &r, in->channels);
    }
    const leat__wide t = b->image;
    b->image = b->spare;
    b->spare = t;
    return 0;
}
