/* SPDX-License-Identifier: Apache-2.0
 *
 * Affine and perspective maps with Pillow's arithmetic: 16.16 fixed point for nearest affine,
 * double precision for the rest. A row of source positions is found once and used for all
 * planes. One thread per bench.
 */
#include <math.h>
#include <string.h>

#include "op/apply.h"

/* Where the pixels of one output row come from. */
typedef struct spot {
    int32_t x, y; /* nearest: the pixel; else the upper left of the four or sixteen */
    int32_t inside; /* 0: outside the image, the fill stays */
    double dx, dy;
} spot;

static int32_t floor_of(double v)
{
    return v < 0.0 ? (int32_t)floor(v) : (int32_t)v;
}

static int32_t fixed(double v)
{
    return floor_of(v * 65536.0 + 0.5);
}

static bool inside(const leat__planes *im, int64_t x, int64_t y)
{
    return x >= 0 && y >= 0 && x < im->width && y < im->height;
}

/* ---- positions ---- */

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

static void place(spot *s, const leat__planes *im, int64_t x, int64_t y)
{
    s->inside = inside(im, x, y);
    s->x = (int32_t)x;
    s->y = (int32_t)y;
}

/* Nearest affine, the one that policies use most: offsets into the plane instead of spots, in
 * 32-bit sums as Pillow's. Returns the run [*from, *to) of the row that lies inside: one run,
 * because both coordinates are linear. */
static void offsets_fixed(int32_t *at, const leat__planes *im, const leat__step *t,
                          uint32_t row, uint32_t *from, uint32_t *to)
{
    const double *const a = t->matrix;
    const uint32_t a0 = (uint32_t)fixed(a[0]), a3 = (uint32_t)fixed(a[3]);
    const uint32_t xx = (uint32_t)fixed(a[2] + a[0] * 0.5 + a[1] * 0.5) +
                        row * (uint32_t)fixed(a[1]);
    const uint32_t yy = (uint32_t)fixed(a[5] + a[3] * 0.5 + a[4] * 0.5) +
                        row * (uint32_t)fixed(a[4]);
    const int32_t stride = (int32_t)im->stride;
    const uint32_t w = im->width, h = im->height, n = t->width;
    for (uint32_t i = 0; i < n; i++) {
        const int32_t x = (int32_t)(xx + i * a0) >> 16, y = (int32_t)(yy + i * a3) >> 16;
        const int32_t out = -((uint32_t)x >= w) | -((uint32_t)y >= h);
        at[i] = (int32_t)((uint32_t)y * (uint32_t)stride + (uint32_t)x) | out;
    }
    uint32_t lo = 0, hi = n;
    while (lo < hi && at[lo] < 0) lo++;
    while (hi > lo && at[hi - 1] < 0) hi--;
    *from = lo;
    *to = hi;
}

static void warp_fixed(leat__bench *b, const leat__step *t, int32_t *at)
{
    const leat__planes *const in = &b->image;
    for (uint32_t y = 0; y < t->height; y++) {
        uint32_t from, to;
        offsets_fixed(at, in, t, y, &from, &to);
        for (uint32_t c = 0; c < in->channels; c++) {
            uint8_t *const dst = leat__planes_row(&b->spare, c, y);
            const uint8_t *const src = in->plane[c];
            const int fill = (int)t->fill[c < 3 ? c : 0];
            memset(dst, fill, from);
            memset(dst + to, fill, t->width - to);
            for (uint32_t i = from; i < to; i++) dst[i] = src[at[i]];
        }
    }
}

/* Positions that grow by repeated addition, from row to row and along the row. */
typedef struct walk {
    double x, y;
} walk;

static int64_t coordinate(double v)
{
    /* far outside is outside: the cast must not overflow */
    return v < 0.0 ? -1 : v > 1e9 ? 1000000000 : (int64_t)v;
}

static void spots_walk(spot *s, const leat__planes *im, const leat__step *t, walk at)
{
    for (uint32_t i = 0; i < t->width; i++) {
        place(&s[i], im, coordinate(at.x), coordinate(at.y));
        at.x += t->matrix[0];
        at.y += t->matrix[3];
    }
}

/* Any map and filter, each position by itself. */
static void spots_mapped(spot *s, const leat__planes *im, const leat__step *t, uint32_t row)
{
    const double *const a = t->matrix;
    const double y = row + 0.5;
    const bool flat = t->kind == LEAT__STEP_AFFINE;
    for (uint32_t i = 0; i < t->width; i++) {
        const double x = i + 0.5;
        double u = a[0] * x + a[1] * y + a[2], v = a[3] * x + a[4] * y + a[5];
        if (!flat) {
            u /= a[6] * x + a[7] * y + 1;
            v /= a[6] * x + a[7] * y + 1;
        }
        s[i].inside = u >= 0.0 && v >= 0.0 && u < im->width && v < im->height;
        if (!s[i].inside) continue;
        if (t->filter == LEAT__FILTER_NEAREST) {
            s[i].x = (int32_t)u;
            s[i].y = (int32_t)v;
            continue;
        }
        u -= 0.5;
        v -= 0.5;
        s[i].x = floor_of(u);
        s[i].y = floor_of(v);
        s[i].dx = u - s[i].x;
        s[i].dy = v - s[i].y;
    }
}

/* ---- pixels ---- */

static void row_nearest(const spot *s, const leat__planes *im, uint32_t c, uint8_t *dst,
                        uint32_t n, uint8_t fill)
{
    const uint8_t *const src = im->plane[c];
    for (uint32_t i = 0; i < n; i++)
        dst[i] = s[i].inside ? src[(size_t)s[i].y * im->stride + (size_t)s[i].x] : fill;
}

static int32_t clamp(int32_t v, uint32_t n)
{
    return v < 0 ? 0 : v < (int32_t)n ? v : (int32_t)n - 1;
}

static double mix(double a, double b, double d)
{
    return a + (b - a) * d;
}

static uint8_t bilinear_at_edge(const spot *s, const leat__planes *im, uint32_t c)
{
    const int32_t x0 = clamp(s->x, im->width), x1 = clamp(s->x + 1, im->width);
    const uint8_t *const p = leat__planes_row(im, c, (uint32_t)clamp(s->y, im->height));
    const double v1 = mix(p[x0], p[x1], s->dx);
    double v2 = v1;
    if (s->y + 1 < (int32_t)im->height) {
        const uint8_t *const q = leat__planes_row(im, c, (uint32_t)(s->y + 1));
        v2 = mix(q[x0], q[x1], s->dx);
    }
    return (uint8_t)mix(v1, v2, s->dy);
}

static void row_bilinear(const spot *s, const leat__planes *im, uint32_t c, uint8_t *dst,
                         uint32_t n, uint8_t fill)
{
    const uint32_t last_x = im->width - 1, last_y = im->height - 1;
    for (uint32_t i = 0; i < n; i++, s++) {
        if (!s->inside) {
            dst[i] = fill;
        } else if ((uint32_t)s->x < last_x && (uint32_t)s->y < last_y) {
            const uint8_t *const p =
                im->plane[c] + (size_t)s->y * im->stride + (size_t)s->x;
            const uint8_t *const q = p + im->stride;
            const double v1 = p[0] + (p[1] - p[0]) * s->dx, v2 = q[0] + (q[1] - q[0]) * s->dx;
            dst[i] = (uint8_t)(int)mix(v1, v2, s->dy);
        } else {
            dst[i] = bilinear_at_edge(s, im, c);
        }
    }
}

static double cubic(double v1, double v2, double v3, double v4, double d)
{
    const double p2 = -v1 + v3;
    const double p3 = 2 * (v1 - v2) + v3 - v4;
    const double p4 = -v1 + v2 - v3 + v4;
    return v2 + d * (p2 + d * (p3 + d * p4));
}

static void row_bicubic(const spot *s, const leat__planes *im, uint32_t c, uint8_t *dst,
                        uint32_t n, uint8_t fill)
{
    for (uint32_t i = 0; i < n; i++, s++) {
        if (!s->inside) {
            dst[i] = fill;
            continue;
        }
        int32_t x[4];
        double v[4];
        for (int k = 0; k < 4; k++) x[k] = clamp(s->x - 1 + k, im->width);
        for (int k = 0; k < 4; k++) {
            const int32_t y = s->y - 1 + k;
            if (k > 0 && (y < 0 || y >= (int32_t)im->height)) {
                v[k] = v[k - 1];
                continue;
            }
            const uint8_t *const p = leat__planes_row(im, c, (uint32_t)clamp(y, im->height));
            v[k] = cubic(p[x[0]], p[x[1]], p[x[2]], p[x[3]], s->dx);
        }
        const double sum = cubic(v[0], v[1], v[2], v[3], s->dy);
        dst[i] = (uint8_t)(sum <= 0.0 ? 0.0 : sum >= 255.0 ? 255.0 : sum);
    }
}

/* Every other map and filter, by spots. */
static void warp_spots(leat__bench *b, const leat__step *t, spot *spots)
{
    const leat__planes *const in = &b->image;
    const double *const a = t->matrix;
    const bool nearest = t->filter == LEAT__FILTER_NEAREST;
    const bool walks = nearest && t->kind == LEAT__STEP_AFFINE;
    const bool scaled = a[1] == 0 && a[3] == 0;
    walk at = {a[2] + a[1] * 0.5 + a[0] * 0.5, a[5] + a[4] * 0.5 + a[3] * 0.5};
    if (scaled) at = (walk){a[2] + a[0] * 0.5, a[5] + a[4] * 0.5};
    for (uint32_t y = 0; y < t->height; y++, at.x += a[1], at.y += a[4]) {
        if (walks)
            spots_walk(spots, in, t, at);
        else
            spots_mapped(spots, in, t, y);
        for (uint32_t c = 0; c < in->channels; c++) {
            uint8_t *const dst = leat__planes_row(&b->spare, c, y);
            const uint8_t fill = (uint8_t)t->fill[c < 3 ? c : 0];
            if (nearest)
                row_nearest(spots, in, c, dst, t->width, fill);
            else if (t->filter == LEAT__FILTER_BICUBIC)
                row_bicubic(spots, in, c, dst, t->width, fill);
            else
                row_bilinear(spots, in, c, dst, t->width, fill);
        }
    }
}

/* Pillow takes fixed point when it is exact enough, and not for plain scaling. */
static bool goes_fixed(const leat__planes *im, const leat__step *t)
{
    const double *const a = t->matrix;
    return t->kind == LEAT__STEP_AFFINE && t->filter == LEAT__FILTER_NEAREST &&
           !(a[1] == 0 && a[3] == 0) && fits_all(a, t->width, t->height) &&
           (uint64_t)im->stride * im->height < INT32_MAX;
}

int leat__step_warp(leat__bench *b, const leat__step *step, leat_error *err)
{
    const leat__planes *const in = &b->image;
    leat__step t = *step;
    if (t.kind == LEAT__STEP_PERSPECTIVE) {
        t.width = in->width;
        t.height = in->height;
    }
    void *const work = leat__bench_work(b, t.width * sizeof(spot), err);
    if (!work) return LEAT_ENOMEM;
    LEAT_TRY(leat__planes_resize(&b->spare, t.width, t.height, in->channels, err));
    if (goes_fixed(in, &t))
        warp_fixed(b, &t, work);
    else
        warp_spots(b, &t, work);
    leat__planes_swap(&b->image, &b->spare);
    return 0;
}
