/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that read a pixel's neighbours: sharpness as in Pillow's ImageEnhance, Gaussian blur as in
 * torchvision (which blurs PIL images as float tensors). One thread per workspace.
 */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "op/apply.h"

/* Sums of three rows. Each row is used as the lower, middle and upper row in turn. */
typedef struct smoothing {
    float *edge[3], *middle[3];
} smoothing;

static void smooth_plane(leat__workspace *b, const smoothing *m, uint32_t c)
{
    const leat__planes *const im = &b->image;
    const uint32_t last = im->height - 1;
    for (uint32_t y = 0; y <= last; y++) {
        if (im->width < 3) break;
        b->color->smooth_sums(leat__planes_row(im, c, y), m->edge[y % 3], m->middle[y % 3], im->width - 2);
        if (y < 2) continue;
        b->color->smooth_join(m->edge[(y - 2) % 3], m->middle[(y - 1) % 3], m->edge[y % 3],
                              leat__planes_row(&b->spare, c, y - 1) + 1, im->width - 2);
    }
    /* the border stays as it is */
    for (uint32_t y = 0; y <= last; y++) {
        const uint8_t *const src = leat__planes_row(im, c, y);
        uint8_t *const dst = leat__planes_row(&b->spare, c, y);
        if (y == 0 || y == last || im->width < 3) memcpy(dst, src, im->width);
        dst[0] = src[0];
        dst[im->width - 1] = src[im->width - 1];
    }
}

int leat__step_sharpness(leat__workspace *b, const leat__step *s, leat_error *err)
{
    const leat__planes *const in = &b->image;
    const size_t pitch = ((size_t)in->width + 15) & ~(size_t)15;
    smoothing m;
    float *const work = leat__work_fit(&b->work, 6 * pitch * sizeof(float), err);
    if (!work) return LEAT_ENOMEM;
    for (int i = 0; i < 3; i++) {
        m.edge[i] = work + (size_t)(2 * i) * pitch;
        m.middle[i] = m.edge[i] + pitch;
    }
    LEAT_TRY(leat__planes_resize(&b->spare, in->width, in->height, in->channels, err));
    for (uint32_t c = 0; c < in->channels; c++) {
        smooth_plane(b, &m, c);
        for (uint32_t y = 0; y < in->height; y++) {
            uint8_t *const dst = leat__planes_row(&b->spare, c, y);
            b->color->blend(dst, leat__planes_row(in, c, y), dst, in->width, (float)s->amount);
        }
    }
    leat__planes_swap(&b->image, &b->spare);
    return 0;
}

/* ---- Gaussian blur ---- */

void leat__gaussian(float *k, uint32_t taps, double sigma)
{
    const float half = (float)(taps - 1) * 0.5f;
    float sum = 0;
    for (uint32_t t = 0; t < taps; t++) {
        const float x = ((float)t - half) / (float)sigma;
        k[t] = expf(-0.5f * x * x);
        sum += k[t];
    }
    for (uint32_t t = 0; t < taps; t++) k[t] /= sum;
}

uint32_t leat__reflect(int64_t i, uint32_t n)
{
    if (n == 1) return 0;
    const int64_t period = 2 * ((int64_t)n - 1);
    i = ((i % period) + period) % period;
    return (uint32_t)(i < n ? i : period - i);
}

typedef struct blur {
    uint32_t width, height; /* kernel */
    float *kx, *ky;
    float *padded;      /* one row as floats, with its reflected ends */
    float *ring;        /* `height` rows, blurred along x */
    const float **taps; /* the same rows, in order, for one output row */
    size_t pitch;
} blur;

static void blur_source_row(const leat__workspace *b, const blur *g, uint32_t c, uint32_t y, float *dst)
{
    const uint8_t *const src = leat__planes_row(&b->image, c, y);
    const uint32_t n = b->image.width, half = g->width / 2;
    for (uint32_t i = 0; i < half; i++) {
        g->padded[i] = src[leat__reflect((int64_t)i - half, n)];
        g->padded[half + n + i] = src[leat__reflect((int64_t)n + i, n)];
    }
    for (uint32_t i = 0; i < n; i++) g->padded[half + i] = src[i];
    b->color->blur_row(g->padded, dst, n, g->kx, g->width);
}

static void blur_plane(leat__workspace *b, const blur *g, uint32_t c)
{
    const uint32_t rows = b->image.height, half = g->height / 2;
    /* ring slot t holds padded row y + t - half when row y is written */
    for (int64_t p = -(int64_t)half; p < (int64_t)rows + half; p++) {
        const uint32_t slot = (uint32_t)((p + half) % g->height);
        blur_source_row(b, g, c, leat__reflect(p, rows), g->ring + slot * g->pitch);
        if (p < half) continue;
        const uint32_t y = (uint32_t)(p - half);
        for (uint32_t t = 0; t < g->height; t++) g->taps[t] = g->ring + (y + t) % g->height * g->pitch;
        b->color->blur_column(g->taps, leat__planes_row(&b->spare, c, y), b->image.width, g->ky, g->height);
    }
}

int leat__step_blur(leat__workspace *b, const leat__step *s, leat_error *err)
{
    blur g = {.width = s->width, .height = s->height};
    /* kernels process 64 elements at a time */
    g.pitch = ((size_t)b->image.width + 63) & ~(size_t)63;
    const size_t padded = (g.pitch + g.width + 63) & ~(size_t)63;
    const size_t floats = padded + g.height * g.pitch + g.width + g.height;
    float *const work =
        leat__work_fit(&b->work, floats * sizeof(float) + g.height * sizeof(float *) + 64, err);
    if (!work) return LEAT_ENOMEM;
    memset(work, 0, floats * sizeof(float)); /* row ends are read, but their results are not used */
    g.padded = work;
    g.ring = g.padded + padded;
    g.kx = g.ring + g.height * g.pitch;
    g.ky = g.kx + g.width;
    g.taps = (const float **)(((uintptr_t)(g.ky + g.height) + 15) & ~(uintptr_t)15);
    leat__gaussian(g.kx, g.width, s->amount);
    leat__gaussian(g.ky, g.height, s->amount);
    LEAT_TRY(leat__planes_resize(&b->spare, b->image.width, b->image.height, b->image.channels, err));
    for (uint32_t c = 0; c < b->image.channels; c++) blur_plane(b, &g, c);
    leat__planes_swap(&b->image, &b->spare);
    return 0;
}
