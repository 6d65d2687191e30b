/* SPDX-License-Identifier: Apache-2.0
 *
 * Affine and perspective maps with Pillow's arithmetic: 16.16 fixed point for nearest affine,
 * double precision for the rest. The positions of a row are found once and used for all
 * channels. One thread per bench.
 */
#include <math.h>
#include <string.h>

#include "op/apply.h"

/* A map under way. */
typedef struct job {
    const leat__warp_dsp *dsp;
    const leat__step *step;
    leat__warp_image in;
    leat__warp_spots spots; /* of one row */
    int32_t *columns;       /* of every row, when scaled */
    uint32_t *row;          /* its pixels */
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
    return fabs(x * a[0] + y * a[1] + a[2]) < 32768.0 &&
           fabs(x * a[3] + y * a[4] + a[5]) < 32768.0;
}

static bool fits_all(const double a[6], uint32_t w, uint32_t h)
{
    return fits_fixed(a, 0, 0) && fits_fixed(a, w, h) && fits_fixed(a, 0, h) &&
           fits_fixed(a, w, 0);
}

static void put_row(const job *j, uint32_t y)
{
    const uint32_t n = j->step->width, channels = j->out->channels;
    uint8_t *dst[4] = {NULL};
    for (uint32_t c = 0; c < channels; c++) dst[c] = leat__planes_row(j->out, c, y);
    switch (j->step->filter) {
    case LEAT__FILTER_NEAREST: j->dsp->nearest(&j->in, j->spots, j->row, n); break;
    case LEAT__FILTER_BICUBIC: j->dsp->bicubic(&j->in, j->spots, j->row, n); break;
    default: j->dsp->bilinear(&j->in, j->spots, j->row, n); break;
    }
    j->dsp->unpack(j->row, dst, channels, n);
}

/* In 32-bit sums, as Pillow's. */
static void warp_fixed(const job *j)
{
    const double *const a = j->step->matrix;
    const uint32_t step[2] = {fixed(a[0]), fixed(a[3])}, down[2] = {fixed(a[1]), fixed(a[4])};
    uint32_t from[2] = {fixed(a[2] + a[0] * 0.5 + a[1] * 0.5), fixed(a[5] + a[3] * 0.5 + a[4] * 0.5)};
    for (uint32_t y = 0; y < j->step->height; y++, from[0] += down[0], from[1] += down[1]) {
        j->dsp->fixed(&j->in, j->spots.at, j->step->width, from, step);
        put_row(j, y);
    }
}

/* The pixel that contains a coordinate, -1 outside. */
static int32_t coordinate(double v, uint32_t size)
{
    return v >= 0.0 && v < size ? (int32_t)v : -1;
}

/* Positions that grow by repeated addition, along the row and from row to row. */
static void warp_walked(const job *j)
{
    const double *const a = j->step->matrix;
    double x0 = a[2] + a[1] * 0.5 + a[0] * 0.5, y0 = a[5] + a[4] * 0.5 + a[3] * 0.5;
    for (uint32_t row = 0; row < j->step->height; row++, x0 += a[1], y0 += a[4]) {
        double x = x0, y = y0;
        for (uint32_t i = 0; i < j->step->width; i++, x += a[0], y += a[3]) {
            const int32_t u = coordinate(x, j->in.width), v = coordinate(y, j->in.height);
            j->spots.at[i] = u < 0 || v < 0 ? j->in.outside : v * j->in.stride + u;
        }
        put_row(j, row);
    }
}

/* The same for plain scaling and shifting: every row reads the same columns. */
static void warp_scaled(const job *j)
{
    const double *const a = j->step->matrix;
    const uint32_t n = j->step->width;
    int32_t *const column = j->columns;
    double x = a[2] + a[0] * 0.5, y = a[5] + a[4] * 0.5;
    for (uint32_t i = 0; i < n; i++, x += a[0]) column[i] = coordinate(x, j->in.width);
    for (uint32_t row = 0; row < j->step->height; row++, y += a[4]) {
        const int32_t v = coordinate(y, j->in.height);
        for (uint32_t i = 0; i < n; i++)
            j->spots.at[i] = (column[i] | v) < 0 ? j->in.outside : v * j->in.stride + column[i];
        put_row(j, row);
    }
}

/* Any map and filter, each position by itself. */
static void warp_mapped(const job *j)
{
    const leat__step *const t = j->step;
    leat__warp_map m = {.flat = t->kind == LEAT__STEP_AFFINE,
                        .nearest = t->filter == LEAT__FILTER_NEAREST};
    memcpy(m.a, t->matrix, sizeof m.a);
    for (uint32_t y = 0; y < t->height; y++) {
        j->dsp->mapped(&j->in, &m, y, t->width, j->spots);
        put_row(j, y);
    }
}

/* Pillow takes fixed point when it is exact enough, and not for plain scaling. */
static void warp(const job *j)
{
    const leat__step *const t = j->step;
    const double *const a = t->matrix;
    if (t->kind != LEAT__STEP_AFFINE || t->filter != LEAT__FILTER_NEAREST)
        warp_mapped(j);
    else if (a[1] == 0 && a[3] == 0)
        warp_scaled(j);
    else if (fits_all(a, t->width, t->height))
        warp_fixed(j);
    else
        warp_walked(j);
}

int leat__step_warp(leat__bench *b, const leat__step *step, leat_error *err)
{
    const leat__planes *const in = &b->image;
    const size_t pixels = leat__warp_pixels(in->width, in->height);
    leat__step t = *step;
    if (t.kind == LEAT__STEP_PERSPECTIVE) {
        t.width = in->width;
        t.height = in->height;
    }
    if (pixels == 0)
        return leat__fail(err, LEAT_ELIMIT, "an image of %u x %u is too large to be turned", in->width,
                          in->height);
    const size_t n = leat__warp_spots_for(t.width), row = n * (2 * sizeof(double) + 3 * sizeof(int32_t));
    double *const work = leat__bench_work(b, row + pixels * sizeof(uint32_t), err);
    if (!work) return LEAT_ENOMEM;
    LEAT_TRY(leat__planes_resize(&b->spare, t.width, t.height, in->channels, err));
    int32_t *const at = (int32_t *)(work + 2 * n);
    const uint8_t *plane[4];
    uint8_t fill[4];
    for (uint32_t c = 0; c < 4; c++) {
        plane[c] = in->plane[c < in->channels ? c : 0];
        fill[c] = (uint8_t)t.fill[c < 3 ? c : 0];
    }
    const job j = {.dsp = b->warp,
                   .step = &t,
                   .in = leat__warp_image_lay(b->warp, plane, in->stride, in->width, in->height, fill,
                                              (uint32_t *)(at + 3 * n)),
                   .spots = {.at = at, .dx = work, .dy = work + n},
                   .columns = at + n,
                   .row = (uint32_t *)(at + 2 * n),
                   .out = &b->spare};
    warp(&j);
    leat__planes_swap(&b->image, &b->spare);
    return 0;
}
