/* SPDX-License-Identifier: Apache-2.0
 *
 * Distortions of values: noise, JPEG artefacts, photometric distortion, channel order, median, grid masks.
 * Parameters and draws; the steps that change pixels are in distort_steps.c and color_steps.c. Pure
 * functions.
 */
#include <math.h>

#include "base/num.h"
#include "op/op.h"

#define P_PARAM(default_)                                                                                    \
    {                                                                                                        \
        .name = "p", .kind = LEAT__PARAM_FLOAT, .def = default_, .min = 0, .max = 1, .help = "probability"   \
    }

static bool happens(const leat__value *p, leat__rng *rng)
{
    return leat__rng_double(rng) < p->f;
}

/* Checks that a parameter is one number, or (lowest, highest). */
static int check_range(const leat__op_spec *op, int i, leat_error *err)
{
    const leat__value *const v = &op->value[i];
    if (v->count >= 1 && v->count <= 2 && v->list[0] <= v->list[v->count - 1]) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s.%s: one number, or (lowest, highest)", op->def->name,
                      op->def->params[i].name);
}

/* ---- GaussianNoise ---- */

enum { NOISE_MEAN, NOISE_SIGMA, NOISE_P };
static const leat__param noise_params[] = {
    {.name = "mean",
     .kind = LEAT__PARAM_FLOAT,
     .def = "0",
     .min = -1,
     .max = 1,
     .help = "mean of the noise; white is 1"},
    {.name = "sigma",
     .kind = LEAT__PARAM_FLOATS,
     .def = "0.1",
     .min = 0,
     .max = 10,
     .help = "standard deviation, or (lowest, highest); white is 1"},
    P_PARAM("1"),
};

static int noise_check(const leat__op_spec *op, leat_error *err)
{
    return check_range(op, NOISE_SIGMA, err);
}

static int noise_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__value *const sigma = &op->value[NOISE_SIGMA];
    if (!happens(&op->value[NOISE_P], rng)) return 0;
    leat__step s = {.kind = LEAT__STEP_NOISE, .fill = {(float)(op->value[NOISE_MEAN].f * 255)}};
    s.amount = leat__rng_range(rng, sigma->list[0], sigma->list[sigma->count - 1]) * 255;
    s.noise_seed = leat__rng_u64(rng);
    return leat__recipe_add(r, &s, err);
}

/* ---- JPEG ---- */

enum { JPEG_QUALITY, JPEG_P };
static const leat__param jpeg_params[] = {
    {.name = "quality",
     .kind = LEAT__PARAM_INTS,
     .min = 1,
     .max = 100,
     .help = "quality of libjpeg, or (lowest, highest)"},
    P_PARAM("1"),
};

static int jpeg_check(const leat__op_spec *op, leat_error *err)
{
    return check_range(op, JPEG_QUALITY, err);
}

static int jpeg_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__value *const q = &op->value[JPEG_QUALITY];
    if (!happens(&op->value[JPEG_P], rng)) return 0;
    const uint64_t choices = (uint64_t)(q->list[q->count - 1] - q->list[0]) + 1;
    const leat__step s = {.kind = LEAT__STEP_JPEG,
                          .amount = q->list[0] + (double)leat__rng_below(rng, choices)};
    return leat__recipe_add(r, &s, err);
}

/* ---- channels ---- */

static int add_permutation(leat__recipe *r, leat__rng *rng, leat_error *err)
{
    int32_t order[3] = {0, 1, 2};
    for (int i = 2; i > 0; i--) {
        const int k = (int)leat__rng_below(rng, (uint64_t)i + 1);
        const int32_t t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    const leat__step s = {.kind = LEAT__STEP_PERMUTE, .x = order[0] | order[1] << 2 | order[2] << 4};
    return leat__recipe_add(r, &s, err);
}

static const leat__param permute_params[] = {P_PARAM("1")};

static int permute_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    return happens(&op->value[0], rng) ? add_permutation(r, rng, err) : 0;
}

/* ---- RandomPhotometricDistort ---- */

enum { PHOTO_BRIGHTNESS, PHOTO_CONTRAST, PHOTO_SATURATION, PHOTO_HUE, PHOTO_P };
#define FACTOR_PARAM(name_, default_)                                                                        \
    {                                                                                                        \
        .name = name_, .kind = LEAT__PARAM_FLOATS, .def = default_, .min = 0, .max = 1e3, .arity = 2,        \
        .help = "lowest and highest factor"                                                                  \
    }
static const leat__param photo_params[] = {
    FACTOR_PARAM("brightness", "0.875,1.125"),
    FACTOR_PARAM("contrast", "0.5,1.5"),
    FACTOR_PARAM("saturation", "0.5,1.5"),
    {.name = "hue",
     .kind = LEAT__PARAM_FLOATS,
     .def = "-0.05,0.05",
     .min = -0.5,
     .max = 0.5,
     .arity = 2,
     .help = "lowest and highest shift in turns"},
    {.name = "p",
     .kind = LEAT__PARAM_FLOAT,
     .def = "0.5",
     .min = 0,
     .max = 1,
     .help = "probability of each change, and of another order of the channels"},
};

static int photo_check(const leat__op_spec *op, leat_error *err)
{
    for (int i = PHOTO_BRIGHTNESS; i <= PHOTO_HUE; i++) LEAT_TRY(check_range(op, i, err));
    return 0;
}

/* Applies each change with probability p. Contrast comes second or last, as in SSD. */
static int photo_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    static const leat__step_kind kinds[] = {LEAT__STEP_BRIGHTNESS, LEAT__STEP_CONTRAST, LEAT__STEP_SATURATION,
                                            LEAT__STEP_HUE};
    static const int orders[2][4] = {{PHOTO_BRIGHTNESS, PHOTO_CONTRAST, PHOTO_SATURATION, PHOTO_HUE},
                                     {PHOTO_BRIGHTNESS, PHOTO_SATURATION, PHOTO_HUE, PHOTO_CONTRAST}};
    bool on[4];
    double amount[4];
    for (int i = 0; i < 4; i++) {
        on[i] = happens(&op->value[PHOTO_P], rng);
        amount[i] = leat__rng_range(rng, op->value[i].list[0], op->value[i].list[1]);
    }
    const int *const order = orders[leat__rng_below(rng, 2)];
    for (int i = 0; i < 4; i++) {
        const leat__step s = {.kind = kinds[order[i]], .amount = amount[order[i]]};
        if (on[order[i]]) LEAT_TRY(leat__recipe_add(r, &s, err));
    }
    return happens(&op->value[PHOTO_P], rng) ? add_permutation(r, rng, err) : 0;
}

/* ---- MedianBlur ---- */

enum { MEDIAN_SIZE, MEDIAN_P };
static const leat__param median_params[] = {
    {.name = "kernel_size",
     .kind = LEAT__PARAM_INT,
     .def = "3",
     .min = 3,
     .max = 63,
     .help = "side of the square the median is taken of; odd"},
    P_PARAM("1"),
};

static int median_check(const leat__op_spec *op, leat_error *err)
{
    if (op->value[MEDIAN_SIZE].i % 2 == 1) return 0;
    return leat__fail(err, LEAT_EINVAL, "MedianBlur.kernel_size: an odd number");
}

static int median_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    if (!happens(&op->value[MEDIAN_P], rng)) return 0;
    const uint32_t side = (uint32_t)op->value[MEDIAN_SIZE].i;
    const leat__step s = {.kind = LEAT__STEP_MEDIAN, .width = side, .height = side};
    return leat__recipe_add(r, &s, err);
}

/* ---- GridMask ---- */

enum { GRID_D, GRID_RATIO, GRID_P, GRID_FILL };
static const leat__param grid_params[] = {
    {.name = "d",
     .kind = LEAT__PARAM_INTS,
     .def = "96,224",
     .min = 2,
     .max = 65535,
     .help = "pixels from one hole to the next, or (lowest, highest)"},
    {.name = "ratio",
     .kind = LEAT__PARAM_FLOAT,
     .def = "0.5",
     .min = 0.001,
     .max = 0.999,
     .help = "side of a hole as a share of d"},
    P_PARAM("0.5"),
    {.name = "fill",
     .kind = LEAT__PARAM_FLOATS,
     .def = "0",
     .min = 0,
     .max = 255,
     .help = "value of the holes: one number or one per channel"},
};

static int grid_check(const leat__op_spec *op, leat_error *err)
{
    const int n = op->value[GRID_FILL].count;
    if (n != 1 && n != 3) return leat__fail(err, LEAT_EINVAL, "GridMask.fill: one number or three");
    return check_range(op, GRID_D, err);
}

static int grid_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__value *const d = &op->value[GRID_D], *const fill = &op->value[GRID_FILL];
    if (!happens(&op->value[GRID_P], rng)) return 0;
    const uint64_t choices = (uint64_t)(d->list[d->count - 1] - d->list[0]) + 1;
    const uint32_t period = (uint32_t)(d->list[0] + (double)leat__rng_below(rng, choices));
    const double hole = rint(period * op->value[GRID_RATIO].f);
    leat__step s = {.kind = LEAT__STEP_GRID,
                    .width = period,
                    .height = (uint32_t)LEAT_MIN(LEAT_MAX(hole, 1), period - 1)};
    s.x = (int32_t)leat__rng_below(rng, period);
    s.y = (int32_t)leat__rng_below(rng, period);
    leat__op_fill(fill, s.fill);
    return leat__recipe_add(r, &s, err);
}

/* ---- CLAHE ---- */

enum { CLAHE_LIMIT, CLAHE_GRID, CLAHE_P };
static const leat__param clahe_params[] = {
    {.name = "clip_limit",
     .kind = LEAT__PARAM_FLOATS,
     .def = "1,4",
     .min = 0.01,
     .max = 256,
     .help = "highest count of a value in a tile, 1 = the mean: one number or (lowest, highest)"},
    {.name = "tile_grid_size",
     .kind = LEAT__PARAM_INTS,
     .def = "8,8",
     .min = 1,
     .max = 64,
     .arity = 2,
     .help = "tiles across and down"},
    P_PARAM("0.5"),
};

static int clahe_check(const leat__op_spec *op, leat_error *err)
{
    return check_range(op, CLAHE_LIMIT, err);
}

static int clahe_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__value *const limit = &op->value[CLAHE_LIMIT];
    if (!happens(&op->value[CLAHE_P], rng)) return 0;
    const leat__step s = {.kind = LEAT__STEP_CLAHE,
                          .width = (uint32_t)op->value[CLAHE_GRID].list[0],
                          .height = (uint32_t)op->value[CLAHE_GRID].list[1],
                          .amount = leat__rng_range(rng, limit->list[0], limit->list[limit->count - 1])};
    return leat__recipe_add(r, &s, err);
}

#define OP(name, help, params, check, draw)                                                                  \
    {                                                                                                        \
        name, help, LEAT_OP_COLOR, params, LEAT_COUNT(params), check, NULL, draw                             \
    }
const leat__op_def leat__ops_distort[] = {
    OP("GaussianNoise", "adds Gaussian noise", noise_params, noise_check, noise_draw),
    OP("JPEG", "encodes as JPEG and decodes again", jpeg_params, jpeg_check, jpeg_draw),
    OP("RandomPhotometricDistort",
       "changes brightness, contrast, saturation, hue and the order of channels, each with probability p",
       photo_params, photo_check, photo_draw),
    OP("RandomChannelPermutation", "puts the channels in random order", permute_params, NULL, permute_draw),
    OP("MedianBlur", "replaces each value by the median round it", median_params, median_check, median_draw),
    OP("GridMask", "blanks a grid of squares with probability p", grid_params, grid_check, grid_draw),
    OP("CLAHE", "equalises the histogram tile by tile, with limited contrast", clahe_params, clahe_check,
       clahe_draw),
    {0},
};
