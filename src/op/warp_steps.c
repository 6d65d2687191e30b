/* SPDX-License-Identifier: Apache-2.0
 *
 * Affine and perspective maps with Pillow's arithmetic: 16.16 fixed point for nearest affine, double
 * precision for the rest. The positions of a row are computed once and used for all channels. One thread
 * per workspace.
 */
#include <math.h>
#include <string.h>

#include "op/apply.h"

/* A map of planes in progress. */
typedef struct job {
    leat__warp_walk walk;
    uint32_t *row; /* pixels of one row */
    const leat__planes *out;
} job;

static int32_t floor_of(double v)
{
    return v < 0.0 ? (int32_t)floor(v) : (int32_t)v;
}

static uint32_t fixed(double v)
{
    return (uint32_t)floor_of(v * 65536.0 + 0.5);
}

static bool fits_fixed(const double a[6], double x, double y)
{
    return fabs(x * a[0] + y * a[1] + a[2]) < 32768.0 && fabs(x * a[3] + y * a[4] + a[5]) < 32768.0;
}

static bool fits_all(const double a[6], uint32_t w, uint32_t h)
{
    return fits_fixed(a, 0, 0) && fits_fixed(a, w, h) && fits_fixed(a, 0, h) && fits_fixed(a, w, 0);
}

/* Uses 32-bit sums, like Pillow. */
static void warp_fixed(const leat__warp_walk *w)
{
    const double *const a = w->step->matrix;
    const uint32_t step[2] = {fixed(a[0]), fixed(a[3])}, down[2] = {fixed(a[1]), fixed(a[4])};
    uint32_t from[2] = {fixed(a[2] + a[0] * 0.5 + a[1] * 0.5), fixed(a[5] + a[3] * 0.5 + a[4] * 0.5)};
    for (uint32_t y = 0; y < w->step->height; y++, from[0] += down[0], from[1] += down[1]) {
        w->dsp->fixed(&w->in, w->spots.at, w->step->width, from, step);
        w->row(w->ctx, y);
    }
}

/* Returns the pixel that contains a coordinate, or -1 outside. */
static int32_t coordinate(double v, uint32_t size)
{
    return v >= 0.0 && v < size ? (int32_t)v : -1;
}

/* Computes positions by repeated addition, along the row and from row to row. */
static void warp_walked(const leat__warp_walk *w)
{
    const double *const a = w->step->matrix;
    double x0 = a[2] + a[1] * 0.5 + a[0] * 0.5, y0 = a[5] + a[4] * 0.5 + a[3] * 0.5;
    for (uint32_t row = 0; row < w->step->height; row++, x0 += a[1], y0 += a[4]) {
        double x = x0, y = y0;
        for (uint32_t i = 0; i < w->step->width; i++, x += a[0], y += a[3]) {
            const int32_t u = coordinate(x, w->in.width), v = coordinate(y, w->in.height);
            w->spots.at[i] = u < 0 || v < 0 ? w->in.outside : v * w->in.stride + u;
        }
        w->row(w->ctx, row);
    }
}

/* Plain scaling and shifting: every row reads the same columns. */
static void warp_scaled(const leat__warp_walk *w)
{
    const double *const a = w->step->matrix;
    const uint32_t n = w->step->width;
    int32_t *const column = w->columns;
    double x = a[2] + a[0] * 0.5, y = a[5] + a[4] * 0.5;
    for (uint32_t i = 0; i < n; i++, x += a[0]) column[i] = coordinate(x, w->in.width);
    for (uint32_t row = 0; row < w->step->height; row++, y += a[4]) {
        const int32_t v = coordinate(y, w->in.height);
        for (uint32_t i = 0; i < n; i++)
            w->spots.at[i] = (column[i] | v) < 0 ? w->in.outside : v * w->in.stride + column[i];
        w->row(w->ctx, row);
    }
}

/* Handles any map and filter; each position is computed independently. */
static void warp_mapped(const leat__warp_walk *w)
{
    const leat__step *const t = w->step;
    leat__warp_map m = {.flat = t->kind == LEAT__STEP_AFFINE, .nearest = t->filter == LEAT__FILTER_NEAREST};
    memcpy(m.a, t->matrix, sizeof m.a);
    for (uint32_t y = 0; y < t->height; y++) {
        w->dsp->mapped(&w->in, &m, y, t->width, w->spots);
        w->row(w->ctx, y);
    }
}

/* Pillow uses fixed point where it is exact enough, but not for plain scaling. */
void leat__warp_rows(const leat__warp_walk *w)
{
    const leat__step *const t = w->step;
    const double *const a = t->matrix;
    if (t->kind != LEAT__STEP_AFFINE || t->filter != LEAT__FILTER_NEAREST) warp_mapped(w);
    else if (a[1] == 0 && a[3] == 0) warp_scaled(w);
    else if (fits_all(a, t->width, t->height)) warp_fixed(w);
    else warp_walked(w);
}

static void put_row(void *ctx, uint32_t y)
{
    const job *const j = ctx;
    const leat__warp_walk *const w = &j->walk;
    const uint32_t n = w->step->width, channels = j->out->channels;
    uint8_t *dst[4] = {NULL};
    for (uint32_t c = 0; c < channels; c++) dst[c] = leat__planes_row(j->out, c, y);
    switch (w->step->filter) {
    case LEAT__FILTER_NEAREST: w->dsp->nearest(&w->in, w->spots, j->row, n); break;
    case LEAT__FILTER_BICUBIC: w->dsp->bicubic(&w->in, w->spots, j->row, n); break;
    default: w->dsp->bilinear(&w->in, w->spots, j->row, n); break;
    }
    w->dsp->unpack(j->row, dst, channels, n);
}

int leat__step_warp(leat__workspace *b, const leat__step *step, leat_error *err)
{
    const leat__planes *const in = &b->image;
    const size_t pixels = leat__warp_pixels(in->width, in->height);
    leat__step t = *step;
    if (t.kind == LEAT__STEP_PERSPECTIVE) {
        t.width = in->width;
        t.height = in->height;
    }
    if (pixels == 0)
        return leat__fail(err, LEAT_ELIMIT, "an image of %u x %u is too large to be rotated or warped",
                          in->width, in->height);
    const size_t n = leat__warp_spots_for(t.width), row = n * (2 * sizeof(double) + 3 * sizeof(int32_t));
    double *const work = leat__work_fit(&b->work, row + pixels * sizeof(uint32_t), err);
    if (!work) return LEAT_ENOMEM;
    LEAT_TRY(leat__planes_resize(&b->spare, t.width, t.height, in->channels, err));
    int32_t *const at = (int32_t *)(work + 2 * n);
    const uint8_t *plane[4];
    uint8_t fill[4];
    for (uint32_t c = 0; c < 4; c++) {
        plane[c] = in->plane[c < in->channels ? c : 0];
        fill[c] = (uint8_t)t.fill[c < 3 ? c : 0];
    }
    job j = {.row = (uint32_t *)(at + 2 * n), .out = &b->spare};
    const leat__warp_image laid = leat__warp_image_lay(b->warp, plane, in->stride, in->width, in->height,
                                                       fill, (uint32_t *)(at + 3 * n));
    j.walk = (leat__warp_walk){.dsp = b->warp,
                               .step = &t,
                               .in = laid,
                               .spots = {.at = at, .dx = work, .dy = work + n},
                               .columns = at + n,
                               .row = put_row,
                               .ctx = &j};
    leat__warp_rows(&j.walk);
    leat__planes_swap(&b->image, &b->spare);
    return 0;
}
