/* SPDX-License-Identifier: Apache-2.0
 *
 * Recipes: following the image size along the steps, and where boxes go. Pure functions.
 */
#include "op/step.h"

#include <math.h>

#include "base/num.h"

void leat__recipe_start(leat__recipe *r, uint32_t width, uint32_t height)
{
    r->count = 0;
    r->normalized = false;
    r->width = r->in_width = width;
    r->height = r->in_height = height;
}

bool leat__step_is_geometry(leat__step_kind kind)
{
    return kind <= LEAT__STEP_PERSPECTIVE;
}

const char *leat__step_name(leat__step_kind kind)
{
    static const char *const names[LEAT__STEP_KINDS] = {
        [LEAT__STEP_CROP] = "crop",
        [LEAT__STEP_RESIZE] = "resize",
        [LEAT__STEP_FLIP_H] = "flip_h",
        [LEAT__STEP_FLIP_V] = "flip_v",
        [LEAT__STEP_PAD] = "pad",
        [LEAT__STEP_AFFINE] = "affine",
        [LEAT__STEP_PERSPECTIVE] = "perspective",
        [LEAT__STEP_BRIGHTNESS] = "brightness",
        [LEAT__STEP_CONTRAST] = "contrast",
        [LEAT__STEP_SATURATION] = "saturation",
        [LEAT__STEP_SHARPNESS] = "sharpness",
        [LEAT__STEP_HUE] = "hue",
        [LEAT__STEP_GRAYSCALE] = "grayscale",
        [LEAT__STEP_INVERT] = "invert",
        [LEAT__STEP_SOLARIZE] = "solarize",
        [LEAT__STEP_POSTERIZE] = "posterize",
        [LEAT__STEP_EQUALIZE] = "equalize",
        [LEAT__STEP_AUTOCONTRAST] = "autocontrast",
        [LEAT__STEP_BLUR] = "blur",
        [LEAT__STEP_ERASE] = "erase",
        [LEAT__STEP_ERASE_OUT] = "erase_out",
    };
    return (unsigned)kind < LEAT__STEP_KINDS ? names[kind] : "?";
}

static bool inside(const leat__recipe *r, const leat__step *s)
{
    return s->x >= 0 && s->y >= 0 && s->width > 0 && s->height > 0 &&
           leat__range_inside((uint64_t)s->x, s->width, r->width) &&
           leat__range_inside((uint64_t)s->y, s->height, r->height);
}

static bool fits(const leat__recipe *r, const leat__step *s)
{
    const bool sized = s->width > 0 && s->height > 0 && s->width <= LEAT__RESIZE_MAX &&
                       s->height <= LEAT__RESIZE_MAX;
    switch (s->kind) {
    case LEAT__STEP_CROP:
    case LEAT__STEP_ERASE:
    case LEAT__STEP_ERASE_OUT: return inside(r, s);
    case LEAT__STEP_PAD:
        return sized && s->x >= 0 && s->y >= 0 && (uint64_t)s->x + r->width <= s->width &&
               (uint64_t)s->y + r->height <= s->height;
    case LEAT__STEP_RESIZE:
    case LEAT__STEP_AFFINE: return sized;
    case LEAT__STEP_BLUR: return s->width % 2 == 1 && s->height % 2 == 1 && s->amount > 0;
    default: return true;
    }
}

int leat__recipe_add(leat__recipe *r, const leat__step *step, leat_error *err)
{
    if (r->count == LEAT__RECIPE_MAX)
        return leat__fail(err, LEAT_ELIMIT, "more than %d steps for one image",
                          LEAT__RECIPE_MAX);
    if (!fits(r, step))
        return leat__fail(err, LEAT_EINVAL, "%s %d,%d %ux%u does not fit an image of %ux%u",
                          leat__step_name(step->kind), step->x, step->y, step->width,
                          step->height, r->width, r->height);
    r->step[r->count++] = *step;
    switch (step->kind) {
    case LEAT__STEP_CROP:
    case LEAT__STEP_RESIZE:
    case LEAT__STEP_PAD:
    case LEAT__STEP_AFFINE:
        r->width = step->width;
        r->height = step->height;
        break;
    default: break;
    }
    return 0;
}

/* ---- boxes ---- */

typedef struct point {
    double x, y;
} point;

/* Steps map output to input; boxes go the other way. False when the map has no inverse. */
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

/* The inverse of a perspective map is the adjugate of its 3x3 matrix. */
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

static void bound(const point p[4], float box[4])
{
    double x0 = p[0].x, x1 = x0, y0 = p[0].y, y1 = y0;
    for (int i = 1; i < 4; i++) {
        x0 = fmin(x0, p[i].x);
        x1 = fmax(x1, p[i].x);
        y0 = fmin(y0, p[i].y);
        y1 = fmax(y1, p[i].y);
    }
    box[0] = (float)x0;
    box[1] = (float)y0;
    box[2] = (float)x1;
    box[3] = (float)y1;
}

static bool move_warped(const leat__step *s, float box[4])
{
    point p[4] = {
        {box[0], box[1]}, {box[2], box[1]}, {box[0], box[3]}, {box[2], box[3]}};
    double m[9] = {0};
    const bool flat = s->kind == LEAT__STEP_AFFINE;
    if (!(flat ? invert_affine(s->matrix, m) : invert_perspective(s->matrix, m))) return false;
    if (flat) m[8] = 1;
    for (int i = 0; i < 4; i++) {
        const double w = m[6] * p[i].x + m[7] * p[i].y + m[8];
        if (!(fabs(w) > 1e-12)) return false;
        p[i] = (point){(m[0] * p[i].x + m[1] * p[i].y + m[2]) / w,
                       (m[3] * p[i].x + m[4] * p[i].y + m[5]) / w};
    }
    bound(p, box);
    return true;
}

static void mirror(float *lo, float *hi, uint32_t length)
{
    const float t = (float)length - *lo;
    *lo = (float)length - *hi;
    *hi = t;
}

/* One box under one step; w and h are the image before it and become those after. */
static bool move_box(const leat__step *s, uint32_t *w, uint32_t *h, float box[4])
{
    switch (s->kind) {
    case LEAT__STEP_CROP:
        for (int i = 0; i < 4; i++) box[i] -= (float)(i % 2 ? s->y : s->x);
        break;
    case LEAT__STEP_PAD:
        for (int i = 0; i < 4; i++) box[i] += (float)(i % 2 ? s->y : s->x);
        break;
    case LEAT__STEP_RESIZE:
        for (int i = 0; i < 4; i++)
            box[i] = (float)(box[i] * (double)(i % 2 ? s->height : s->width) / (i % 2 ? *h : *w));
        break;
    case LEAT__STEP_FLIP_H: mirror(&box[0], &box[2], *w); return true;
    case LEAT__STEP_FLIP_V: mirror(&box[1], &box[3], *h); return true;
    case LEAT__STEP_PERSPECTIVE: return move_warped(s, box);
    case LEAT__STEP_AFFINE:
        if (!move_warped(s, box)) return false;
        break;
    default: return true;
    }
    *w = s->width;
    *h = s->height;
    return true;
}

void leat__recipe_boxes(const leat__recipe *r, float *boxes, bool *keep, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        float *const b = boxes + 4 * (size_t)i;
        uint32_t w = r->in_width, h = r->in_height;
        bool ok = true;
        for (uint32_t k = 0; ok && k < r->count; k++) {
            ok = move_box(&r->step[k], &w, &h, b);
            for (int j = 0; j < 4; j++)
                b[j] = fminf(fmaxf(b[j], 0.0f), (float)(j % 2 ? h : w));
        }
        keep[i] = ok && b[0] < b[2] && b[1] < b[3];
    }
}
