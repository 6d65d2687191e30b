/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves boxes and points along a recipe: see targets.h.
 */
#include "op/targets.h"

#include <math.h>

#include "base/num.h"
#include "op/elastic.h"

typedef struct point {
    double x, y;
} point;

/* Width and height of the image that coordinates belong to. */
typedef struct extent {
    uint32_t width, height;
} extent;

/* Inverts an affine step: steps map output to input, boxes and points go the other way. False when the map
 * has no inverse. */
static bool invert_affine(const double m[6], double out[6])
{
    const double det = m[0] * m[4] - m[1] * m[3];
    if (!(fabs(det) > 1e-12)) return false;
    out[0] = m[4] / det;
    out[1] = -m[1] / det;
    out[3] = -m[3] / det;
    out[4] = m[0] / det;
    out[2] = -(out[0] * m[2] + out[1] * m[5]);
    out[5] = -(out[3] * m[2] + out[4] * m[5]);
    return true;
}

/* Inverts a perspective map: the inverse is the adjugate of its 3x3 matrix. */
static bool invert_perspective(const double m[8], double o[9])
{
    const double a = m[0], b = m[1], c = m[2], d = m[3], e = m[4], f = m[5], g = m[6], h = m[7];
    o[0] = e - f * h;
    o[1] = c * h - b;
    o[2] = b * f - c * e;
    o[3] = f * g - d;
    o[4] = a - c * g;
    o[5] = c * d - a * f;
    o[6] = d * h - e * g;
    o[7] = b * g - a * h;
    o[8] = a * e - b * d;
    return fabs(a * o[0] + b * o[3] + c * o[6]) > 1e-12;
}

/* The inverse of an affine or perspective step. */
typedef struct warp {
    double m[9];
    bool ok;
} warp;

static warp warp_of(const leat__step *s)
{
    warp w = {{0}, false};
    w.ok = s->kind == LEAT__STEP_AFFINE ? invert_affine(s->matrix, w.m) : invert_perspective(s->matrix, w.m);
    if (s->kind == LEAT__STEP_AFFINE) w.m[8] = 1;
    return w;
}

/* Moves a point. False when the map has no inverse or the point is on the horizon. */
static bool move_point(const warp *w, point p, point *out)
{
    const double *const m = w->m;
    const double d = m[6] * p.x + m[7] * p.y + m[8];
    if (!w->ok || !(fabs(d) > 1e-12)) return false;
    *out = (point){(m[0] * p.x + m[1] * p.y + m[2]) / d, (m[3] * p.x + m[4] * p.y + m[5]) / d};
    return true;
}

static bool is_warp(leat__step_kind kind)
{
    return kind == LEAT__STEP_AFFINE || kind == LEAT__STEP_PERSPECTIVE;
}

/* Returns the size of the image after the step. */
static extent after(const leat__step *s, extent e)
{
    switch (s->kind) {
    case LEAT__STEP_CROP:
    case LEAT__STEP_PAD:
    case LEAT__STEP_RESIZE:
    case LEAT__STEP_AFFINE: return (extent){s->width, s->height};
    default: return e;
    }
}

/* ---- boxes ---- */

static bool warp_box(const leat__step *s, float box[4])
{
    const warp w = warp_of(s);
    const point corner[4] = {{box[0], box[1]}, {box[2], box[1]}, {box[2], box[3]}, {box[0], box[3]}};
    double x0 = INFINITY, y0 = INFINITY, x1 = -INFINITY, y1 = -INFINITY;
    for (int i = 0; i < 4; i++) {
        point p;
        if (!move_point(&w, corner[i], &p)) return false;
        x0 = fmin(x0, p.x);
        x1 = fmax(x1, p.x);
        y0 = fmin(y0, p.y);
        y1 = fmax(y1, p.y);
    }
    box[0] = (float)x0;
    box[1] = (float)y0;
    box[2] = (float)x1;
    box[3] = (float)y1;
    return true;
}

/* Moves pixel (x, y), clipped to the image, by torchvision's approximate inverse of the shifts. */
static point unbend(const leat__elastic e[2], double x, double y)
{
    const uint32_t u = (uint32_t)fmin(fmax(x, 0), e->width - 1.0);
    const uint32_t v = (uint32_t)fmin(fmax(y, 0), e->height - 1.0);
    return (point){u - (double)leat__elastic_at(&e[0], u, v), v - (double)leat__elastic_at(&e[1], u, v)};
}

static void bend_box(const leat__step *s, extent size, float box[4])
{
    leat__elastic e[2];
    double x0 = INFINITY, y0 = INFINITY, x1 = -INFINITY, y1 = -INFINITY;
    for (int axis = 0; axis < 2; axis++) leat__elastic_init(&e[axis], s, size.width, size.height, axis);
    for (int i = 0; i < 4; i++) {
        const float x = box[i == 1 || i == 2 ? 2 : 0], y = box[i < 2 ? 1 : 3];
        const point p = unbend(e, ceil((double)x), ceil((double)y));
        x0 = fmin(x0, p.x);
        x1 = fmax(x1, p.x);
        y0 = fmin(y0, p.y);
        y1 = fmax(y1, p.y);
    }
    box[0] = (float)x0;
    box[1] = (float)y0;
    box[2] = (float)x1;
    box[3] = (float)y1;
}

static void bend_point(const leat__step *s, extent size, float *x, float *y)
{
    leat__elastic e[2];
    for (int axis = 0; axis < 2; axis++) leat__elastic_init(&e[axis], s, size.width, size.height, axis);
    const point p = unbend(e, trunc((double)*x), trunc((double)*y));
    *x = (float)p.x;
    *y = (float)p.y;
}

static void mirror(float *lo, float *hi, uint32_t length)
{
    const float t = (float)length - *lo;
    *lo = (float)length - *hi;
    *hi = t;
}

/* True when the centre of a box, in coordinates of the crop, is inside the crop. */
static bool middle_inside(const leat__step *s, const float box[4])
{
    const float x = 0.5f * (box[0] + box[2]), y = 0.5f * (box[1] + box[3]);
    return x > 0 && y > 0 && x < (float)s->width && y < (float)s->height;
}

static bool move_box(const leat__step *s, extent e, float box[4])
{
    switch (s->kind) {
    case LEAT__STEP_CROP:
        for (int i = 0; i < 4; i++) box[i] -= (float)(i % 2 ? s->y : s->x);
        return !s->centers || middle_inside(s, box);
    case LEAT__STEP_PAD:
        for (int i = 0; i < 4; i++) box[i] += (float)(i % 2 ? s->y : s->x);
        return true;
    case LEAT__STEP_RESIZE:
        for (int i = 0; i < 4; i++)
            box[i] *= (float)(i % 2 ? (double)s->height / e.height : (double)s->width / e.width);
        return true;
    case LEAT__STEP_FLIP_H: mirror(&box[0], &box[2], e.width); return true;
    case LEAT__STEP_FLIP_V: mirror(&box[1], &box[3], e.height); return true;
    case LEAT__STEP_ELASTIC: bend_box(s, e, box); return true;
    default: return !is_warp(s->kind) || warp_box(s, box);
    }
}

static double area(const float box[4])
{
    return fmax(0, (double)box[2] - (double)box[0]) * fmax(0, (double)box[3] - (double)box[1]);
}

/* Clips a box; returns the share of its area that is left. */
static double clip_box(float box[4], extent e)
{
    const double before = area(box);
    for (int i = 0; i < 4; i++) box[i] = fminf(fmaxf(box[i], 0.0f), (float)(i % 2 ? e.height : e.width));
    return before > 0 ? area(box) / before : 0;
}

static void to_corners(const leat__box_rule *rule, extent e, float b[4])
{
    if (rule->relative)
        for (int i = 0; i < 4; i++) b[i] *= (float)(i % 2 ? e.height : e.width);
    if (rule->format == LEAT__BOX_CXCYWH) {
        b[0] -= b[2] * 0.5f;
        b[1] -= b[3] * 0.5f;
    }
    if (rule->format != LEAT__BOX_XYXY) {
        b[2] += b[0];
        b[3] += b[1];
    }
}

static void from_corners(const leat__box_rule *rule, extent e, float b[4])
{
    if (rule->format != LEAT__BOX_XYXY) {
        b[2] -= b[0];
        b[3] -= b[1];
    }
    if (rule->format == LEAT__BOX_CXCYWH) {
        b[0] += b[2] * 0.5f;
        b[1] += b[3] * 0.5f;
    }
    if (rule->relative)
        for (int i = 0; i < 4; i++) b[i] /= (float)(i % 2 ? e.height : e.width);
}

void leat__box_corners(const leat__box_rule *rule, uint32_t width, uint32_t height, float box[4])
{
    to_corners(rule, (extent){width, height}, box);
}

void leat__box_format_of(const leat__box_rule *rule, uint32_t width, uint32_t height, float box[4])
{
    from_corners(rule, (extent){width, height}, box);
}

void leat__recipe_boxes(const leat__recipe *r, const leat__box_rule *rule, float *boxes, bool *keep,
                        uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        float *const b = boxes + 4 * i;
        extent e = {r->in_width, r->in_height};
        double visible = 1;
        bool ok = true;
        to_corners(rule, e, b);
        for (uint32_t k = 0; ok && k < r->count; k++) {
            ok = move_box(&r->step[k], e, b);
            e = after(&r->step[k], e);
            if (leat__step_is_geometry(r->step[k].kind)) visible *= clip_box(b, e);
        }
        if (r->count == 0) visible = clip_box(b, e);
        const float w = b[2] - b[0], h = b[3] - b[1];
        keep[i] = ok && w > 0 && h > 0 && w >= rule->min_size && h >= rule->min_size &&
                  visible >= (double)rule->min_visible;
        from_corners(rule, (extent){r->width, r->height}, b);
    }
}

/* ---- points ---- */

/* Points are pixel indices, so mirroring maps the first pixel to the last. */
static void step_point(const leat__step *s, const warp *w, extent e, float *x, float *y)
{
    point p;
    switch (s->kind) {
    case LEAT__STEP_CROP:
        *x -= (float)s->x;
        *y -= (float)s->y;
        break;
    case LEAT__STEP_PAD:
        *x += (float)s->x;
        *y += (float)s->y;
        break;
    case LEAT__STEP_RESIZE:
        *x *= (float)((double)s->width / e.width);
        *y *= (float)((double)s->height / e.height);
        break;
    case LEAT__STEP_FLIP_H: *x = (float)(e.width - 1) - *x; break;
    case LEAT__STEP_FLIP_V: *y = (float)(e.height - 1) - *y; break;
    case LEAT__STEP_ELASTIC: bend_point(s, e, x, y); break;
    default:
        if (!is_warp(s->kind)) break;
        if (!move_point(w, (point){*x, *y}, &p)) p = (point){NAN, NAN};
        *x = (float)p.x;
        *y = (float)p.y;
    }
}

void leat__recipe_points(const leat__recipe *r, const leat__point_rule *rule, float *points, uint64_t n)
{
    extent e = {r->in_width, r->in_height};
    const float out_w = rule->relative ? (float)r->width : 1, out_h = rule->relative ? (float)r->height : 1;
    for (uint64_t i = 0; rule->relative && i < n; i++) {
        points[i * rule->stride] *= (float)e.width;
        points[i * rule->stride + 1] *= (float)e.height;
    }
    for (uint32_t k = 0; k < r->count; k++) {
        const leat__step *const s = &r->step[k];
        if (!leat__step_is_geometry(s->kind)) continue;
        const warp w = is_warp(s->kind) ? warp_of(s) : (warp){{0}, false};
        for (uint64_t i = 0; i < n; i++) {
            float *const p = points + i * rule->stride;
            step_point(s, &w, e, &p[0], &p[1]);
        }
        e = after(s, e);
    }
    for (uint64_t i = 0; i < n; i++) {
        float *const p = points + i * rule->stride;
        const bool seen = p[0] >= 0 && p[1] >= 0 && p[0] < (float)e.width && p[1] < (float)e.height;
        if (rule->stride == 3 && !seen) p[2] = 0;
        p[0] /= out_w;
        p[1] /= out_h;
    }
}
