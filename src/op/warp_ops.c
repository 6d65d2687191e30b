/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotation, affine and perspective: draws and matrices, computed as in Pillow and torchvision. The steps
 * that change pixels are in warp_steps.c. Pure functions.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "op/op.h"
#include "op/elastic.h"
#include "op/warp_recipe.h"

leat__warp_style leat__warp_style_of(const leat__value *interpolation, const leat__value *fill)
{
    static const leat__filter filters[] = {LEAT__FILTER_NEAREST, LEAT__FILTER_BILINEAR, LEAT__FILTER_BICUBIC};
    leat__warp_style s = {.filter = filters[interpolation->i]};
    leat__op_fill(fill, s.fill);
    return s;
}

static double radians(double degrees)
{
    return degrees * (M_PI / 180.0);
}

/* Python's round(v, 15), by way of its decimal form. */
static double round15(double v)
{
    char text[40];
    snprintf(text, sizeof text, "%.15f", v);
    return strtod(text, NULL);
}

static int add_map(leat__recipe *r, const double m[6], uint32_t width, uint32_t height,
                   const leat__warp_style *style, leat_error *err)
{
    leat__step s = {.kind = LEAT__STEP_AFFINE, .width = width, .height = height, .filter = style->filter};
    memcpy(s.matrix, m, 6 * sizeof *m);
    memcpy(s.fill, style->fill, sizeof s.fill);
    return leat__recipe_add(r, &s, err);
}

static void move(const double m[6], double x, double y, double *u, double *v)
{
    *u = m[0] * x + m[1] * y + m[2];
    *v = m[3] * x + m[4] * y + m[5];
}

/* Computes the output size that holds the whole rotated image, and shifts the map accordingly. */
static void expand_to(double m[6], uint32_t *width, uint32_t *height)
{
    const double w = *width, h = *height;
    const double corner[4][2] = {{0, 0}, {w, 0}, {w, h}, {0, h}};
    double x0 = INFINITY, x1 = -INFINITY, y0 = INFINITY, y1 = -INFINITY;
    for (int i = 0; i < 4; i++) {
        double u, v;
        move(m, corner[i][0], corner[i][1], &u, &v);
        x0 = fmin(x0, u);
        x1 = fmax(x1, u);
        y0 = fmin(y0, v);
        y1 = fmax(y1, v);
    }
    const double nw = ceil(x1) - floor(x0), nh = ceil(y1) - floor(y0);
    double u, v;
    move(m, -(nw - w) / 2.0, -(nh - h) / 2.0, &u, &v);
    m[2] = u;
    m[5] = v;
    *width = (uint32_t)nw;
    *height = (uint32_t)nh;
}

/* A quarter turn moves each pixel to another position, so the output has exactly the sides of the input,
 * exchanged. expand_to would add a row and a column when one side is odd and the other even. */
static int add_quarter_turn(leat__recipe *r, bool clockwise, leat_error *err)
{
    const double left[6] = {0, -1, r->width, 1, 0, 0}, right[6] = {0, 1, 0, -1, 0, r->height};
    const leat__warp_style exact = {.filter = LEAT__FILTER_NEAREST};
    return add_map(r, clockwise ? right : left, r->height, r->width, &exact, err);
}

int leat__recipe_rotate(leat__recipe *r, double degrees, bool expand, const double *center,
                        const leat__warp_style *style, leat_error *err)
{
    double turn = fmod(degrees, 360.0);
    if (turn < 0) turn += 360.0;
    if (!center && turn == 0) return 0;
    if (!center && turn == 180) {
        LEAT_TRY(leat__recipe_add(r, &(leat__step){.kind = LEAT__STEP_FLIP_H}, err));
        return leat__recipe_add(r, &(leat__step){.kind = LEAT__STEP_FLIP_V}, err);
    }
    if (!center && expand && (turn == 90 || turn == 270)) return add_quarter_turn(r, turn == 270, err);
    uint32_t width = r->width, height = r->height;
    const double cx = center ? center[0] : width / 2.0, cy = center ? center[1] : height / 2.0;
    const double a = -radians(turn);
    double m[6] = {round15(cos(a)), round15(sin(a)), 0.0, round15(-sin(a)), round15(cos(a)), 0.0};
    double u, v;
    move(m, -cx, -cy, &u, &v);
    m[2] = u + cx;
    m[5] = v + cy;
    if (expand) expand_to(m, &width, &height);
    return add_map(r, m, width, height, style, err);
}

int leat__recipe_affine(leat__recipe *r, const leat__affine *f, const leat__warp_style *style,
                        leat_error *err)
{
    const double rot = radians(f->angle), sx = radians(f->shear[0]), sy = radians(f->shear[1]);
    const double cx = f->center ? f->center[0] : r->width * 0.5;
    const double cy = f->center ? f->center[1] : r->height * 0.5;
    const double tx = f->translate[0], ty = f->translate[1];
    const double a = cos(rot - sy) / cos(sy);
    const double b = -cos(rot - sy) * tan(sx) / cos(sy) - sin(rot);
    const double c = sin(rot - sy) / cos(sy);
    const double d = -sin(rot - sy) * tan(sx) / cos(sy) + cos(rot);
    double m[6] = {d / f->scale, -b / f->scale, 0.0, -c / f->scale, a / f->scale, 0.0};
    m[2] += m[0] * (-cx - tx) + m[1] * (-cy - ty);
    m[5] += m[3] * (-cx - tx) + m[4] * (-cy - ty);
    m[2] += cx;
    m[5] += cy;
    return add_map(r, m, r->width, r->height, style, err);
}

/* ---- ops ---- */

#define MAP_PARAM(default_)                                                                                  \
    {                                                                                                        \
        .name = "interpolation", .kind = LEAT__PARAM_CHOICE, .def = default_, .choices = LEAT__WARP_CHOICES, \
        .min = 1, .help = "how pixels are interpolated"                                                      \
    }
#define FILL_PARAM                                                                                           \
    {                                                                                                        \
        .name = "fill", .kind = LEAT__PARAM_FLOATS, .def = "0", .min = 0, .max = 65535,                      \
        .help = "value outside the image: one number or one per channel, up to 255 for 8-bit images"         \
    }
#define CENTER_PARAM                                                                                         \
    {                                                                                                        \
        .name = "center", .kind = LEAT__PARAM_FLOATS, .def = "", .min = -65536, .max = 65536,                \
        .help = "(x, y) that stays in place; the middle when not given"                                      \
    }

#define P_PARAM                                                                                              \
    {                                                                                                        \
        .name = "p", .kind = LEAT__PARAM_FLOAT, .def = "1", .min = 0, .max = 1, .help = "probability"        \
    }

static int check_counts(const leat__op_spec *op, const char *param, int a, int b, leat_error *err)
{
    const int n = op->value[leat__op_param_index(op->def, param)].count;
    if (n == a || n == b) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s.%s: %d or %d numbers", op->def->name, param, a, b);
}

/* Draws an angle; one number is a range around zero. */
static double draw_angle(const leat__value *v, leat__rng *rng)
{
    const double lo = v->count == 1 ? -v->list[0] : v->list[0];
    return leat__rng_range(rng, lo, v->list[v->count - 1]);
}

enum { ROTATE_DEGREES, ROTATE_MAP, ROTATE_EXPAND, ROTATE_CENTER, ROTATE_FILL, ROTATE_P };
static const leat__param rotate_params[] = {
    {.name = "degrees",
     .kind = LEAT__PARAM_FLOATS,
     .min = -360,
     .max = 360,
     .help = "angles from -this to this, or (lowest, highest)"},
    MAP_PARAM("nearest"),
    {.name = "expand",
     .kind = LEAT__PARAM_FLAG,
     .def = "false",
     .min = 1,
     .help = "grow the image to hold all of it"},
    CENTER_PARAM,
    FILL_PARAM,
    P_PARAM,
};

static int rotate_check(const leat__op_spec *op, leat_error *err)
{
    LEAT_TRY(check_counts(op, "degrees", 1, 2, err));
    LEAT_TRY(check_counts(op, "center", 0, 2, err));
    return leat__op_check_channels(op, ROTATE_FILL, err);
}

static leat__op_size rotate_size(const leat__op_spec *op, leat__op_size in)
{
    return op->value[ROTATE_EXPAND].i ? (leat__op_size){0, 0} : in;
}

/* The box around a rotated image: each side is at most its diagonal and at least its shorter side. */
static void rotate_reach(const leat__op_spec *op, leat__op_reach *r)
{
    if (!op->value[ROTATE_EXPAND].i) return;
    const double most = ceil(hypot(r->width_max, r->height_max)) + 2; /* rounded outward to whole pixels */
    r->width_min = r->height_min = LEAT_MIN(r->width_min, r->height_min);
    r->width_max = r->height_max = (uint32_t)fmin(most, LEAT__RESIZE_MAX);
}

static int rotate_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__value *const v = op->value;
    if (!leat__op_happens(&v[ROTATE_P], rng)) return 0;
    const leat__warp_style style = leat__warp_style_of(&v[ROTATE_MAP], &v[ROTATE_FILL]);
    return leat__recipe_rotate(r, draw_angle(&v[ROTATE_DEGREES], rng), v[ROTATE_EXPAND].i != 0,
                               v[ROTATE_CENTER].count ? v[ROTATE_CENTER].list : NULL, &style, err);
}

enum {
    AFFINE_DEGREES,
    AFFINE_TRANSLATE,
    AFFINE_SCALE,
    AFFINE_SHEAR,
    AFFINE_MAP,
    AFFINE_FILL,
    AFFINE_CENTER,
    AFFINE_P
};
static const leat__param affine_params[] = {
    {.name = "degrees",
     .kind = LEAT__PARAM_FLOATS,
     .min = -360,
     .max = 360,
     .help = "angles from -this to this, or (lowest, highest)"},
    {.name = "translate",
     .kind = LEAT__PARAM_FLOATS,
     .def = "0,0",
     .min = 0,
     .max = 1,
     .arity = 2,
     .help = "largest shift as a share of the width and of the height"},
    {.name = "scale",
     .kind = LEAT__PARAM_FLOATS,
     .def = "1,1",
     .min = 1e-3,
     .max = 1e3,
     .arity = 2,
     .help = "lowest and highest factor"},
    {.name = "shear",
     .kind = LEAT__PARAM_FLOATS,
     .def = "0",
     .min = -89,
     .max = 89,
     .help = "degrees along x: largest, (lowest, highest), or four numbers for x and y"},
    MAP_PARAM("nearest"),
    FILL_PARAM,
    CENTER_PARAM,
    P_PARAM,
};

static int affine_check(const leat__op_spec *op, leat_error *err)
{
    LEAT_TRY(check_counts(op, "degrees", 1, 2, err));
    LEAT_TRY(check_counts(op, "center", 0, 2, err));
    if (op->value[AFFINE_SHEAR].count == 3 || op->value[AFFINE_SHEAR].count > 4)
        return leat__fail(err, LEAT_EINVAL, "RandomAffine.shear: 1, 2 or 4 numbers");
    return leat__op_check_channels(op, AFFINE_FILL, err);
}

static int affine_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__value *const v = op->value;
    if (!leat__op_happens(&v[AFFINE_P], rng)) return 0;
    leat__affine f = {.angle = draw_angle(&v[AFFINE_DEGREES], rng)};
    const double most_x = v[AFFINE_TRANSLATE].list[0] * r->width;
    const double most_y = v[AFFINE_TRANSLATE].list[1] * r->height;
    f.translate[0] = rint(leat__rng_range(rng, -most_x, most_x));
    f.translate[1] = rint(leat__rng_range(rng, -most_y, most_y));
    f.scale = leat__rng_range(rng, v[AFFINE_SCALE].list[0], v[AFFINE_SCALE].list[1]);
    const leat__value *const shear = &v[AFFINE_SHEAR];
    if (shear->count == 4) {
        f.shear[0] = leat__rng_range(rng, shear->list[0], shear->list[1]);
        f.shear[1] = leat__rng_range(rng, shear->list[2], shear->list[3]);
    } else {
        f.shear[0] = draw_angle(shear, rng);
    }
    f.center = v[AFFINE_CENTER].count ? v[AFFINE_CENTER].list : NULL;
    const leat__warp_style style = leat__warp_style_of(&v[AFFINE_MAP], &v[AFFINE_FILL]);
    return leat__recipe_affine(r, &f, &style, err);
}

/* ---- perspective ---- */

enum { VIEW_SCALE, VIEW_P, VIEW_MAP, VIEW_FILL };
static const leat__param view_params[] = {
    {.name = "distortion_scale",
     .kind = LEAT__PARAM_FLOAT,
     .def = "0.5",
     .min = 0,
     .max = 1,
     .help = "how far the corners move, as a share of half the side"},
    {.name = "p", .kind = LEAT__PARAM_FLOAT, .def = "0.5", .min = 0, .max = 1, .help = "probability"},
    MAP_PARAM("bilinear"),
    FILL_PARAM,
};

static int view_check(const leat__op_spec *op, leat_error *err)
{
    return leat__op_check_channels(op, VIEW_FILL, err);
}

/* Gaussian elimination with pivots; false when there is no unique solution. */
static bool solve8(double a[8][9], double x[8])
{
    for (int c = 0; c < 8; c++) {
        int best = c;
        for (int i = c + 1; i < 8; i++)
            if (fabs(a[i][c]) > fabs(a[best][c])) best = i;
        if (!(fabs(a[best][c]) > 1e-9)) return false;
        for (int j = 0; j < 9; j++) {
            const double t = a[c][j];
            a[c][j] = a[best][j];
            a[best][j] = t;
        }
        for (int i = 0; i < 8; i++) {
            if (i == c) continue;
            const double f = a[i][c] / a[c][c];
            for (int j = c; j < 9; j++) a[i][j] -= f * a[c][j];
        }
    }
    for (int i = 0; i < 8; i++) x[i] = a[i][8] / a[i][i];
    return true;
}

/* Computes the map from corners `to` of the output to corners `from` of the input. torchvision rounds its
 * coefficients to float. */
static bool perspective(const double from[4][2], const double to[4][2], double m[8])
{
    double a[8][9];
    for (int i = 0; i < 4; i++) {
        const double x = to[i][0], y = to[i][1], u = from[i][0], v = from[i][1];
        const double row0[9] = {x, y, 1, 0, 0, 0, -u * x, -u * y, u};
        const double row1[9] = {0, 0, 0, x, y, 1, -v * x, -v * y, v};
        memcpy(a[2 * i], row0, sizeof row0);
        memcpy(a[2 * i + 1], row1, sizeof row1);
    }
    if (!solve8(a, m)) return false;
    for (int i = 0; i < 8; i++) m[i] = (double)(float)m[i];
    return true;
}

static int view_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__value *const v = op->value;
    if (leat__rng_double(rng) >= v[VIEW_P].f) return 0;
    const double w = r->width, h = r->height;
    const uint32_t dx = (uint32_t)(v[VIEW_SCALE].f * (r->width / 2));
    const uint32_t dy = (uint32_t)(v[VIEW_SCALE].f * (r->height / 2));
    const double from[4][2] = {{0, 0}, {w - 1, 0}, {w - 1, h - 1}, {0, h - 1}};
    double to[4][2];
    for (int i = 0; i < 4; i++) {
        const double x = (double)leat__rng_below(rng, dx + 1);
        const double y = (double)leat__rng_below(rng, dy + 1);
        to[i][0] = from[i][0] == 0 ? x : w - 1 - x;
        to[i][1] = from[i][1] == 0 ? y : h - 1 - y;
    }
    leat__step s = {.kind = LEAT__STEP_PERSPECTIVE};
    if (!perspective(from, to, s.matrix)) return 0; /* an image one pixel wide or high */
    const leat__warp_style style = leat__warp_style_of(&v[VIEW_MAP], &v[VIEW_FILL]);
    s.filter = style.filter;
    memcpy(s.fill, style.fill, sizeof s.fill);
    return leat__recipe_add(r, &s, err);
}

/* ---- ElasticTransform ---- */

enum { ELASTIC_ALPHA, ELASTIC_SIGMA, ELASTIC_MAP, ELASTIC_FILL, ELASTIC_P };
static const leat__param elastic_params[] = {
    {.name = "alpha",
     .kind = LEAT__PARAM_FLOATS,
     .def = "50",
     .min = 0,
     .max = 1e5,
     .help = "strength of the shifts: one number or (x, y)"},
    {.name = "sigma",
     .kind = LEAT__PARAM_FLOATS,
     .def = "5",
     .min = 0,
     .max = LEAT__ELASTIC_SIGMA_MAX,
     .help = "smoothness of the shifts: one number or (x, y)"},
    {.name = "interpolation",
     .kind = LEAT__PARAM_CHOICE,
     .def = "bilinear",
     .choices = "nearest|bilinear",
     .min = 1,
     .help = "how pixels are interpolated"},
    FILL_PARAM,
    P_PARAM,
};

static double of_axis(const leat__value *v, int axis)
{
    return v->list[v->count == 2 ? axis : 0];
}

static int elastic_check(const leat__op_spec *op, leat_error *err)
{
    const leat__value *const sigma = &op->value[ELASTIC_SIGMA];
    LEAT_TRY(check_counts(op, "alpha", 1, 2, err));
    LEAT_TRY(check_counts(op, "sigma", 1, 2, err));
    if ((of_axis(sigma, 0) > 0) != (of_axis(sigma, 1) > 0))
        return leat__fail(err, LEAT_EINVAL, "ElasticTransform.sigma: both are 0, or none");
    return leat__op_check_channels(op, ELASTIC_FILL, err);
}

static int elastic_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__value *const v = op->value;
    if (!leat__op_happens(&v[ELASTIC_P], rng)) return 0;
    const leat__warp_style style = leat__warp_style_of(&v[ELASTIC_MAP], &v[ELASTIC_FILL]);
    leat__step s = {.kind = LEAT__STEP_ELASTIC, .filter = style.filter};
    memcpy(s.fill, style.fill, sizeof s.fill);
    for (int axis = 0; axis < 2; axis++) {
        s.matrix[axis] = of_axis(&v[ELASTIC_ALPHA], axis);
        s.matrix[2 + axis] = of_axis(&v[ELASTIC_SIGMA], axis);
    }
    s.noise_seed = leat__rng_u64(rng);
    return leat__recipe_add(r, &s, err);
}

const leat__op_def leat__ops_warp[] = {
    {"RandomRotation", "turns by a random angle", LEAT_OP_GEOMETRY, rotate_params, LEAT_COUNT(rotate_params),
     rotate_check, rotate_size, rotate_draw, .canvas = true, .reach = rotate_reach},
    {"RandomAffine", "turns, shifts, scales and shears at random", LEAT_OP_GEOMETRY, affine_params,
     LEAT_COUNT(affine_params), affine_check, NULL, affine_draw},
    {"RandomPerspective", "moves the corners at random with probability p", LEAT_OP_GEOMETRY, view_params,
     LEAT_COUNT(view_params), view_check, NULL, view_draw},
    {"ElasticTransform", "shifts pixels by a smooth random field", LEAT_OP_GEOMETRY, elastic_params,
     LEAT_COUNT(elastic_params), elastic_check, NULL, elastic_draw, .bytes_only = true},
    {0},
};
