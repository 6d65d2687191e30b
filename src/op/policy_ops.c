/* SPDX-License-Identifier: Apache-2.0
 *
 * Policies: ops that draw other ops. AutoAugment, RandAugment and TrivialAugmentWide as the
 * papers and torchvision define them; magnitudes are computed in float, as torchvision's
 * tensors are. Pure functions.
 */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "op/op.h"
#include "op/warp_recipe.h"

typedef enum action {
    IDENTITY,
    SHEAR_X,
    SHEAR_Y,
    TRANSLATE_X,
    TRANSLATE_Y,
    ROTATE,
    BRIGHTNESS,
    COLOR,
    CONTRAST,
    SHARPNESS,
    POSTERIZE,
    SOLARIZE,
    AUTOCONTRAST,
    EQUALIZE,
    INVERT, /* AutoAugment only: the other two draw from the actions before it */
    ACTIONS
} action;

static bool is_signed(action a)
{
    return a >= SHEAR_X && a <= SHARPNESS;
}

static bool has_magnitude(action a)
{
    return a >= SHEAR_X && a <= SOLARIZE;
}

static int add(leat__recipe *r, leat__step_kind kind, double amount, leat_error *err)
{
    const leat__step s = {.kind = kind, .amount = amount};
    return leat__recipe_add(r, &s, err);
}

static int add_action(leat__recipe *r, action a, double m, const leat__warp_style *style, leat_error *err)
{
    static const double corner[2] = {0, 0};
    leat__affine f = {.scale = 1};
    switch (a) {
    case SHEAR_X:
    case SHEAR_Y:
        f.shear[a == SHEAR_Y] = atan(m) * (180.0 / M_PI);
        f.center = corner;
        return leat__recipe_affine(r, &f, style, err);
    case TRANSLATE_X:
    case TRANSLATE_Y: f.translate[a == TRANSLATE_Y] = trunc(m); return leat__recipe_affine(r, &f, style, err);
    case ROTATE: return leat__recipe_rotate(r, m, false, NULL, style, err);
    case BRIGHTNESS: return add(r, LEAT__STEP_BRIGHTNESS, 1.0 + m, err);
    case COLOR: return add(r, LEAT__STEP_SATURATION, 1.0 + m, err);
    case CONTRAST: return add(r, LEAT__STEP_CONTRAST, 1.0 + m, err);
    case SHARPNESS: return add(r, LEAT__STEP_SHARPNESS, 1.0 + m, err);
    case POSTERIZE: return add(r, LEAT__STEP_POSTERIZE, m, err);
    case SOLARIZE: return add(r, LEAT__STEP_SOLARIZE, m, err);
    case AUTOCONTRAST: return add(r, LEAT__STEP_AUTOCONTRAST, 0, err);
    case EQUALIZE: return add(r, LEAT__STEP_EQUALIZE, 0, err);
    case INVERT: return add(r, LEAT__STEP_INVERT, 0, err);
    default: return 0;
    }
}

/* Computes torch.linspace in float: counted from the nearer end, product and sum rounded once. */
static double linspace(float start, float end, uint32_t i, uint32_t bins)
{
    const float step = (end - start) / (float)(bins - 1);
    return i < bins / 2 ? fmaf(step, (float)i, start) : fmaf(-step, (float)(bins - 1 - i), end);
}

static double posterize_bits(uint32_t i, uint32_t bins, double lost)
{
    return 8 - rintf((float)i / (float)((bins - 1) / lost));
}

/* Returns the magnitude of bin i of an action: narrow for AutoAugment and RandAugment, wide for
 * TrivialAugment. */
static double narrow_magnitude(action a, uint32_t i, uint32_t bins, const leat__recipe *r)
{
    switch (a) {
    case SHEAR_X:
    case SHEAR_Y: return linspace(0, 0.3f, i, bins);
    case TRANSLATE_X: return linspace(0, (float)(150.0 / 331.0 * r->width), i, bins);
    case TRANSLATE_Y: return linspace(0, (float)(150.0 / 331.0 * r->height), i, bins);
    case ROTATE: return linspace(0, 30, i, bins);
    case POSTERIZE: return posterize_bits(i, bins, 4);
    case SOLARIZE: return linspace(255, 0, i, bins);
    default: return linspace(0, 0.9f, i, bins);
    }
}

static double wide_magnitude(action a, uint32_t i, uint32_t bins)
{
    switch (a) {
    case TRANSLATE_X:
    case TRANSLATE_Y: return linspace(0, 32, i, bins);
    case ROTATE: return linspace(0, 135, i, bins);
    case POSTERIZE: return posterize_bits(i, bins, 6);
    case SOLARIZE: return linspace(255, 0, i, bins);
    default: return linspace(0, 0.99f, i, bins);
    }
}

#define MAP_PARAM(default_)                                                                                  \
    {                                                                                                        \
        .name = "interpolation", .kind = LEAT__PARAM_CHOICE, .def = default_, .choices = LEAT__WARP_CHOICES, \
        .min = 1, .help = "how turned and shifted pixels are interpolated"                                   \
    }
#define FILL_PARAM                                                                                           \
    {                                                                                                        \
        .name = "fill", .kind = LEAT__PARAM_FLOATS, .def = "0", .min = 0, .max = 255,                        \
        .help = "value outside the image: one number or one per channel"                                     \
    }
#define BINS_PARAM                                                                                           \
    {                                                                                                        \
        .name = "num_magnitude_bins", .kind = LEAT__PARAM_INT, .def = "31", .min = 2, .max = 1000,           \
        .help = "steps from weakest to strongest"                                                            \
    }

#define P_PARAM                                                                                              \
    {                                                                                                        \
        .name = "p", .kind = LEAT__PARAM_FLOAT, .def = "1", .min = 0, .max = 1, .help = "probability"        \
    }

static int check_fill(const leat__op_spec *op, leat_error *err)
{
    const leat__value *const v = &op->value[leat__op_param_index(op->def, "fill")];
    if (v->count == 1 || v->count == 3) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s.fill: one number or three", op->def->name);
}

/* ---- RandAugment ---- */

enum { RAND_OPS, RAND_MAGNITUDE, RAND_BINS, RAND_MAP, RAND_FILL, RAND_P };
static const leat__param rand_params[] = {
    {.name = "num_ops",
     .kind = LEAT__PARAM_INT,
     .def = "2",
     .min = 0,
     .max = 16,
     .help = "how many ops are drawn"},
    {.name = "magnitude",
     .kind = LEAT__PARAM_INT,
     .def = "9",
     .min = 0,
     .max = 999,
     .help = "bin of the strength, from 0"},
    BINS_PARAM,
    MAP_PARAM("nearest"),
    FILL_PARAM,
    P_PARAM,
};

static int rand_check(const leat__op_spec *op, leat_error *err)
{
    if (op->value[RAND_MAGNITUDE].i >= op->value[RAND_BINS].i)
        return leat__fail(err, LEAT_EINVAL, "RandAugment.magnitude: must be below num_magnitude_bins");
    return check_fill(op, err);
}

static int rand_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__value *const v = op->value;
    if (!leat__op_happens(&v[RAND_P], rng)) return 0;
    const leat__warp_style style = leat__warp_style_of(&v[RAND_MAP], &v[RAND_FILL]);
    for (int64_t i = 0; i < v[RAND_OPS].i; i++) {
        const action a = (action)leat__rng_below(rng, INVERT);
        double m = has_magnitude(a)
                       ? narrow_magnitude(a, (uint32_t)v[RAND_MAGNITUDE].i, (uint32_t)v[RAND_BINS].i, r)
                       : 0;
        if (is_signed(a) && leat__rng_below(rng, 2)) m = -m;
        LEAT_TRY(add_action(r, a, m, &style, err));
    }
    return 0;
}

/* ---- TrivialAugmentWide ---- */

enum { TRIVIAL_BINS, TRIVIAL_MAP, TRIVIAL_FILL, TRIVIAL_P };
static const leat__param trivial_params[] = {BINS_PARAM, MAP_PARAM("nearest"), FILL_PARAM, P_PARAM};

static int trivial_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__value *const v = op->value;
    if (!leat__op_happens(&v[TRIVIAL_P], rng)) return 0;
    const leat__warp_style style = leat__warp_style_of(&v[TRIVIAL_MAP], &v[TRIVIAL_FILL]);
    const uint32_t bins = (uint32_t)v[TRIVIAL_BINS].i;
    const action a = (action)leat__rng_below(rng, INVERT);
    double m = 0;
    if (has_magnitude(a)) m = wide_magnitude(a, (uint32_t)leat__rng_below(rng, bins), bins);
    if (is_signed(a) && leat__rng_below(rng, 2)) m = -m;
    return add_action(r, a, m, &style, err);
}

/* ---- AutoAugment ---- */

enum { POLICY_IMAGENET, POLICY_CIFAR10, POLICY_SVHN, POLICIES };
enum { POLICY_ROWS = 25, POLICY_BINS = 10 };

/* The learned policies: two actions, each with its probability and bin. */
typedef struct chance {
    action action;
    double p;
    uint32_t bin;
} chance;

/* clang-format off */
static const chance policies[POLICIES][POLICY_ROWS][2] = {
    [POLICY_IMAGENET] = {
        {{POSTERIZE, 0.4, 8}, {ROTATE, 0.6, 9}},
        {{SOLARIZE, 0.6, 5}, {AUTOCONTRAST, 0.6, 0}},
        {{EQUALIZE, 0.8, 0}, {EQUALIZE, 0.6, 0}},
        {{POSTERIZE, 0.6, 7}, {POSTERIZE, 0.6, 6}},
        {{EQUALIZE, 0.4, 0}, {SOLARIZE, 0.2, 4}},
        {{EQUALIZE, 0.4, 0}, {ROTATE, 0.8, 8}},
        {{SOLARIZE, 0.6, 3}, {EQUALIZE, 0.6, 0}},
        {{POSTERIZE, 0.8, 5}, {EQUALIZE, 1.0, 0}},
        {{ROTATE, 0.2, 3}, {SOLARIZE, 0.6, 8}},
        {{EQUALIZE, 0.6, 0}, {POSTERIZE, 0.4, 6}},
        {{ROTATE, 0.8, 8}, {COLOR, 0.4, 0}},
        {{ROTATE, 0.4, 9}, {EQUALIZE, 0.6, 0}},
        {{EQUALIZE, 0.0, 0}, {EQUALIZE, 0.8, 0}},
        {{INVERT, 0.6, 0}, {EQUALIZE, 1.0, 0}},
        {{COLOR, 0.6, 4}, {CONTRAST, 1.0, 8}},
        {{ROTATE, 0.8, 8}, {COLOR, 1.0, 2}},
        {{COLOR, 0.8, 8}, {SOLARIZE, 0.8, 7}},
        {{SHARPNESS, 0.4, 7}, {INVERT, 0.6, 0}},
        {{SHEAR_X, 0.6, 5}, {EQUALIZE, 1.0, 0}},
        {{COLOR, 0.4, 0}, {EQUALIZE, 0.6, 0}},
        {{EQUALIZE, 0.4, 0}, {SOLARIZE, 0.2, 4}},
        {{SOLARIZE, 0.6, 5}, {AUTOCONTRAST, 0.6, 0}},
        {{INVERT, 0.6, 0}, {EQUALIZE, 1.0, 0}},
        {{COLOR, 0.6, 4}, {CONTRAST, 1.0, 8}},
        {{EQUALIZE, 0.8, 0}, {EQUALIZE, 0.6, 0}},
    },
    [POLICY_CIFAR10] = {
        {{INVERT, 0.1, 0}, {CONTRAST, 0.2, 6}},
        {{ROTATE, 0.7, 2}, {TRANSLATE_X, 0.3, 9}},
        {{SHARPNESS, 0.8, 1}, {SHARPNESS, 0.9, 3}},
        {{SHEAR_Y, 0.5, 8}, {TRANSLATE_Y, 0.7, 9}},
        {{AUTOCONTRAST, 0.5, 0}, {EQUALIZE, 0.9, 0}},
        {{SHEAR_Y, 0.2, 7}, {POSTERIZE, 0.3, 7}},
        {{COLOR, 0.4, 3}, {BRIGHTNESS, 0.6, 7}},
        {{SHARPNESS, 0.3, 9}, {BRIGHTNESS, 0.7, 9}},
        {{EQUALIZE, 0.6, 0}, {EQUALIZE, 0.5, 0}},
        {{CONTRAST, 0.6, 7}, {SHARPNESS, 0.6, 5}},
        {{COLOR, 0.7, 7}, {TRANSLATE_X, 0.5, 8}},
        {{EQUALIZE, 0.3, 0}, {AUTOCONTRAST, 0.4, 0}},
        {{TRANSLATE_Y, 0.4, 3}, {SHARPNESS, 0.2, 6}},
        {{BRIGHTNESS, 0.9, 6}, {COLOR, 0.2, 8}},
        {{SOLARIZE, 0.5, 2}, {INVERT, 0.0, 0}},
        {{EQUALIZE, 0.2, 0}, {AUTOCONTRAST, 0.6, 0}},
        {{EQUALIZE, 0.2, 0}, {EQUALIZE, 0.6, 0}},
        {{COLOR, 0.9, 9}, {EQUALIZE, 0.6, 0}},
        {{AUTOCONTRAST, 0.8, 0}, {SOLARIZE, 0.2, 8}},
        {{BRIGHTNESS, 0.1, 3}, {COLOR, 0.7, 0}},
        {{SOLARIZE, 0.4, 5}, {AUTOCONTRAST, 0.9, 0}},
        {{TRANSLATE_Y, 0.9, 9}, {TRANSLATE_Y, 0.7, 9}},
        {{AUTOCONTRAST, 0.9, 0}, {SOLARIZE, 0.8, 3}},
        {{EQUALIZE, 0.8, 0}, {INVERT, 0.1, 0}},
        {{TRANSLATE_Y, 0.7, 9}, {AUTOCONTRAST, 0.9, 0}},
    },
    [POLICY_SVHN] = {
        {{SHEAR_X, 0.9, 4}, {INVERT, 0.2, 0}},
        {{SHEAR_Y, 0.9, 8}, {INVERT, 0.7, 0}},
        {{EQUALIZE, 0.6, 0}, {SOLARIZE, 0.6, 6}},
        {{INVERT, 0.9, 0}, {EQUALIZE, 0.6, 0}},
        {{EQUALIZE, 0.6, 0}, {ROTATE, 0.9, 3}},
        {{SHEAR_X, 0.9, 4}, {AUTOCONTRAST, 0.8, 0}},
        {{SHEAR_Y, 0.9, 8}, {INVERT, 0.4, 0}},
        {{SHEAR_Y, 0.9, 5}, {SOLARIZE, 0.2, 6}},
        {{INVERT, 0.9, 0}, {AUTOCONTRAST, 0.8, 0}},
        {{EQUALIZE, 0.6, 0}, {ROTATE, 0.9, 3}},
        {{SHEAR_X, 0.9, 4}, {SOLARIZE, 0.3, 3}},
        {{SHEAR_Y, 0.8, 8}, {INVERT, 0.7, 0}},
        {{EQUALIZE, 0.9, 0}, {TRANSLATE_Y, 0.6, 6}},
        {{INVERT, 0.9, 0}, {EQUALIZE, 0.6, 0}},
        {{CONTRAST, 0.3, 3}, {ROTATE, 0.8, 4}},
        {{INVERT, 0.8, 0}, {TRANSLATE_Y, 0.0, 2}},
        {{SHEAR_Y, 0.7, 6}, {SOLARIZE, 0.4, 8}},
        {{INVERT, 0.6, 0}, {ROTATE, 0.8, 4}},
        {{SHEAR_Y, 0.3, 7}, {TRANSLATE_X, 0.9, 3}},
        {{SHEAR_X, 0.1, 6}, {INVERT, 0.6, 0}},
        {{SOLARIZE, 0.7, 2}, {TRANSLATE_Y, 0.6, 7}},
        {{SHEAR_Y, 0.8, 4}, {INVERT, 0.8, 0}},
        {{SHEAR_X, 0.7, 9}, {TRANSLATE_Y, 0.8, 3}},
        {{SHEAR_Y, 0.8, 5}, {AUTOCONTRAST, 0.7, 0}},
        {{SHEAR_X, 0.7, 2}, {INVERT, 0.1, 0}},
    },
};
/* clang-format on */

enum { AUTO_POLICY, AUTO_MAP, AUTO_FILL, AUTO_P };
static const leat__param auto_params[] = {
    {.name = "policy",
     .kind = LEAT__PARAM_CHOICE,
     .def = "imagenet",
     .choices = "imagenet|cifar10|svhn",
     .min = 1,
     .help = "data set that the policy was learned on"},
    MAP_PARAM("nearest"),
    FILL_PARAM,
    P_PARAM,
};

static int auto_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__value *const v = op->value;
    if (!leat__op_happens(&v[AUTO_P], rng)) return 0;
    const leat__warp_style style = leat__warp_style_of(&v[AUTO_MAP], &v[AUTO_FILL]);
    const chance *const row = policies[v[AUTO_POLICY].i][leat__rng_below(rng, POLICY_ROWS)];
    for (int i = 0; i < 2; i++) {
        const double luck = leat__rng_double(rng);
        const bool negative = leat__rng_below(rng, 2) == 0;
        if (luck >= row[i].p) continue;
        const action a = row[i].action;
        double m = has_magnitude(a) ? narrow_magnitude(a, row[i].bin, POLICY_BINS, r) : 0;
        if (is_signed(a) && negative) m = -m;
        LEAT_TRY(add_action(r, a, m, &style, err));
    }
    return 0;
}

/* ---- AugMix ---- */

enum { MIX_SEVERITY, MIX_WIDTH, MIX_DEPTH, MIX_ALPHA, MIX_ALL, MIX_MAP, MIX_FILL, MIX_P };
enum { MIX_BINS = 10, MIX_WIDTH_MAX = 4, MIX_DEPTH_MAX = 8 };
static const leat__param augmix_params[] = {
    {.name = "severity",
     .kind = LEAT__PARAM_INT,
     .def = "3",
     .min = 1,
     .max = MIX_BINS,
     .help = "highest bin of the strength that is drawn, of 10"},
    {.name = "mixture_width",
     .kind = LEAT__PARAM_INT,
     .def = "3",
     .min = 1,
     .max = MIX_WIDTH_MAX,
     .help = "how many changed copies are mixed with the image"},
    {.name = "chain_depth",
     .kind = LEAT__PARAM_INT,
     .def = "-1",
     .min = -1,
     .max = MIX_DEPTH_MAX,
     .help = "ops applied to a copy; -1 or 0 = a random number from 1 to 3"},
    {.name = "alpha",
     .kind = LEAT__PARAM_FLOAT,
     .def = "1",
     .min = 1e-3,
     .max = 1e3,
     .help = "parameter of the distributions of the weights"},
    {.name = "all_ops",
     .kind = LEAT__PARAM_FLAG,
     .def = "true",
     .min = 1,
     .help = "use brightness, color, contrast and sharpness, too"},
    MAP_PARAM("bilinear"),
    FILL_PARAM,
    P_PARAM,
};

static double augmix_magnitude(action a, uint32_t i, const leat__recipe *r)
{
    switch (a) {
    case TRANSLATE_X: return linspace(0, (float)(r->width / 3.0), i, MIX_BINS);
    case TRANSLATE_Y: return linspace(0, (float)(r->height / 3.0), i, MIX_BINS);
    case POSTERIZE: return posterize_bits(i, MIX_BINS, 4) - 4;
    default: return narrow_magnitude(a, i, MIX_BINS, r);
    }
}

static int augmix_chain(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    static const action actions[] = {SHEAR_X,   SHEAR_Y,  TRANSLATE_X,  TRANSLATE_Y, ROTATE,
                                     POSTERIZE, SOLARIZE, AUTOCONTRAST, EQUALIZE,    BRIGHTNESS,
                                     COLOR,     CONTRAST, SHARPNESS};
    const leat__value *const v = op->value;
    const leat__warp_style style = leat__warp_style_of(&v[MIX_MAP], &v[MIX_FILL]);
    const uint64_t known = v[MIX_ALL].i ? LEAT_COUNT(actions) : 9;
    const int64_t depth = v[MIX_DEPTH].i > 0 ? v[MIX_DEPTH].i : 1 + (int64_t)leat__rng_below(rng, 3);
    for (int64_t i = 0; i < depth; i++) {
        const action a = actions[leat__rng_below(rng, known)];
        double m = 0;
        if (has_magnitude(a))
            m = augmix_magnitude(a, (uint32_t)leat__rng_below(rng, (uint64_t)v[MIX_SEVERITY].i), r);
        if (is_signed(a) && leat__rng_below(rng, 2)) m = -m;
        LEAT_TRY(add_action(r, a, m, &style, err));
    }
    return 0;
}

/* Draws weights from a Dirichlet distribution: each takes a beta-distributed share of the remainder. */
static void draw_weights(double *weight, int64_t n, double alpha, leat__rng *rng)
{
    double rest = 1;
    for (int64_t i = 0; i + 1 < n; i++) {
        weight[i] = rest * leat__rng_beta(rng, alpha, alpha * (double)(n - 1 - i));
        rest -= weight[i];
    }
    weight[n - 1] = rest;
}

static int augmix_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__value *const v = op->value;
    const int64_t n = v[MIX_WIDTH].i;
    double own[2], weight[MIX_WIDTH_MAX];
    if (!leat__op_happens(&v[MIX_P], rng)) return 0;
    draw_weights(own, 2, v[MIX_ALPHA].f, rng);
    draw_weights(weight, n, v[MIX_ALPHA].f, rng);
    LEAT_TRY(add(r, LEAT__STEP_BLEND_START, (double)(float)own[0], err));
    for (int64_t i = 0; i < n; i++) {
        LEAT_TRY(augmix_chain(op, rng, r, err));
        const leat__step s = {.kind = LEAT__STEP_BLEND_ADD,
                              .x = i + 1 == n,
                              .amount = (double)((float)weight[i] * (float)own[1])};
        LEAT_TRY(leat__recipe_add(r, &s, err));
    }
    return 0;
}

const leat__op_def leat__ops_policy[] = {
    {"AutoAugment", "applies one of 25 learned pairs of ops", LEAT_OP_POLICY, auto_params,
     LEAT_COUNT(auto_params), check_fill, NULL, auto_draw},
    {"RandAugment", "applies some random ops of one strength", LEAT_OP_POLICY, rand_params,
     LEAT_COUNT(rand_params), rand_check, NULL, rand_draw},
    {"TrivialAugmentWide", "applies one random op of random strength", LEAT_OP_POLICY, trivial_params,
     LEAT_COUNT(trivial_params), check_fill, NULL, trivial_draw},
    {"AugMix", "mixes the image with copies that random ops have changed", LEAT_OP_POLICY, augmix_params,
     LEAT_COUNT(augmix_params), check_fill, NULL, augmix_draw, .splits = true},
    {0},
};
