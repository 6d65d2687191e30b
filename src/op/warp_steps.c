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

/* As Pillow: wrapping 32-bit sums along rows and columns. */
static void spots_fixed(spot *s, const leat__planes *im, const leat__step *t, uint32_t row)
{
    const double *const a = t->matrix;
    const uint32_t a0 = (uint32_t)fixed(a[0]), a3 = (uint32_t)fixed(a[3]);
    uint32_t xx = (uint32_t)fixed(a[2] + a[0] * 0.5 + a[1] * 0.5) + row * (uint32_t)fixed(a[1]);
    uint32_t yy = (uint32_t)fixed(a[5] + a[3] * 0.5 + a[4] * 0.5) + row * (uint32_t)fixed(a[4]);
    for (uint32_t i = 0; i < t->width; i++, xx += a0, yy += a3)
        place(&s[i], im, (int32_t)xx >> 16, (int32_t)yy >> 16);
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

static void row_bilinear(const spot *s, const leat__planes *im, uint32_t c, uint8_t *dst,
                         uint32_t n, uint8_t fill)
{
    for (uint32_t i = 0; i < n; i++, s++) {
        if (!s->inside) {
            dst[i] = fill;
            continue;
        }
        const int32_t x0 = clamp(s->x, im->width), x1 = clamp(s->x + 1, im->width);
        const uint8_t *const p = leat__planes_row(im, c, (uint32_t)clamp(s->y, im->height));
        const double v1 = mix(p[x0], p[x1], s->dx);
        double v2 = v1;
        if (s->y + 1 < (int32_t)im->height) {
            const uint8_t *const q = leat__planes_row(im, c, (uint32_t)(s->y + 1));
            v2 = mix(q[x0], q[x1], s->dx);
        }
        dst[i] = (uint8_t)mix(v1, v2, s->dy);
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

int leat__step_warp(leat__bench *b, const leat__step *step, leat_error *err)
{
    const leat__planes *const in = &b->image;
    leat__step t = *step;
    if (t.kind == LEAT__STEP_PERSPECTIVE) {
        t.width = in->width;
        t.height = in->height;
    }
    const double *const a = t.matrix;
    const bool nearest = t.filter == LEAT__FILTER_NEAREST;
    const bool walks = nearest && t.kind == LEAT__STEP_AFFINE;
    const bool scaled = walks && a[1] == 0 && a[3] == 0;
    const bool in_fixed = walks && !scaled && fits_all(a, t.width, t.height);
    walk at = {a[2] + a[1] * 0.5 + a[0] * 0.5, a[5] + a[4] * 0.5 + a[3] * 0.5};
    if (scaled) at = (walk){a[2] + a[0] * 0.5, a[5] + a[4] * 0.5};
    spot *const spots = leat__bench_work(b, t.width * sizeof(spot), err);
    if (!spots) return LEAT_ENOMEM;
    LEAT_TRY(leat__planes_resize(&b->spare, t.width, t.height, in->channels, err));
    for (uint32_t y = 0; y < t.height; y++, at.x += a[1], at.y += a[4]) {
        if (in_fixed)
            spots_fixed(spots, in, &t, y);
        else if (walks)
            spots_walk(spots, in, &t, at);
        else
            spots_mapped(spots, in, &t, y);
        for (uint32_t c = 0; c < in->channels; c++) {
            uint8_t *const dst = leat__planes_row(&b->spare, c, y);
            const uint8_t fill = (uint8_t)t.fill[c < 3 ? c : 0];
            if (nearest)
                row_nearest(spots, in, c, dst, t.width, fill);
            else if (t.filter == LEAT__FILTER_BICUBIC)
                row_bicubic(spots, in, c, dst, t.width, fill);
            else
                row_bilinear(spots, in, c, dst, t.width, fill);
        }
    }
    leat__planes_swap(&b->image, &b->spare);
    return 0;
}
