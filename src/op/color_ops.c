/* SPDX-License-Identifier: Apache-2.0
 *
 * Colour ops and erasing: parameters and draws. The steps that change pixels are in color_steps.c,
 * blur_steps.c and pad.c. Pure functions.
 */
#include <math.h>

#include "base/num.h"
#include "op/op.h"

#define P_PARAM(default_)                                                                                    \
    {                                                                                                        \
        .name = "p", .kind = LEAT__PARAM_FLOAT, .def = default_, .min = 0, .max = 1, .help = "probability"   \
    }

static int add(leat__recipe *r, leat__step_kind kind, double amount, leat_error *err)
{
    const leat__step s = {.kind = kind, .amount = amount};
    return leat__recipe_add(r, &s, err);
}

static bool happens(const leat__value *p, leat__rng *rng)
{
    return leat__rng_double(rng) < p->f;
}

/* ---- ColorJitter ---- */

enum { JITTER_BRIGHTNESS, JITTER_CONTRAST, JITTER_SATURATION, JITTER_HUE, JITTER_P };
#define JITTER_PARAM(name_)                                                                                  \
    {                                                                                                        \
        .name = name_, .kind = LEAT__PARAM_FLOATS, .def = "0", .min = 0, .max = 1e3,                         \
        .help = "largest change of the factor from 1, or (lowest, highest) factor"                           \
    }
static const leat__param jitter_params[] = {
    JITTER_PARAM("brightness"),
    JITTER_PARAM("contrast"),
    JITTER_PARAM("saturation"),
    {.name = "hue",
     .kind = LEAT__PARAM_FLOATS,
     .def = "0",
     .min = -0.5,
     .max = 0.5,
     .help = "largest shift either way in turns, or (lowest, highest)"},
    P_PARAM("1"),
};

static void jitter_range(const leat__op_spec *op, int i, double *lo, double *hi)
{
    const leat__value *const v = &op->value[i];
    const double middle = i == JITTER_HUE ? 0 : 1;
    *lo = v->count == 2 ? v->list[0] : middle - v->list[0];
    *hi = v->count == 2 ? v->list[1] : middle + v->list[0];
    if (i != JITTER_HUE) *lo = fmax(*lo, 0);
}

static int jitter_check(const leat__op_spec *op, leat_error *err)
{
    bool any = false;
    for (int i = JITTER_BRIGHTNESS; i <= JITTER_HUE; i++) any |= op->value[i].set;
    if (!any)
        return leat__fail(err, LEAT_EINVAL,
                          "ColorJitter has no effect: give brightness, contrast, saturation or hue");
    for (int i = JITTER_BRIGHTNESS; i <= JITTER_HUE; i++) {
        double lo, hi;
        jitter_range(op, i, &lo, &hi);
        if (op->value[i].count > 2 || lo > hi)
            return leat__fail(err, LEAT_EINVAL, "ColorJitter.%s: one number from 0 on, or (lowest, highest)",
                              op->def->params[i].name);
    }
    return 0;
}

/* Draws the four changes in random order. A change whose range is a single neutral value is omitted. The
 * order is always drawn over all four, so random streams do not depend on the ranges. */
static int jitter_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    static const leat__step_kind kinds[] = {LEAT__STEP_BRIGHTNESS, LEAT__STEP_CONTRAST, LEAT__STEP_SATURATION,
                                            LEAT__STEP_HUE};
    int order[4] = {0, 1, 2, 3};
    double amount[4];
    bool neutral[4];
    if (!happens(&op->value[JITTER_P], rng)) return 0;
    for (int i = 3; i > 0; i--) {
        const int j = (int)leat__rng_below(rng, (uint64_t)i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (int i = 0; i < 4; i++) {
        double lo, hi;
        jitter_range(op, i, &lo, &hi);
        neutral[i] = lo == hi && lo == (i == JITTER_HUE ? 0 : 1);
        amount[i] = leat__rng_range(rng, lo, hi);
    }
    for (int i = 0; i < 4; i++)
        if (!neutral[order[i]]) LEAT_TRY(add(r, kinds[order[i]], amount[order[i]], err));
    return 0;
}

/* ---- one step with probability p ---- */

static const leat__param p_half[] = {P_PARAM("0.5")};
static const leat__param p_tenth[] = {P_PARAM("0.1")};

#define SIMPLE(name, step)                                                                                   \
    static int name(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)               \
    {                                                                                                        \
        return happens(&op->value[0], rng) ? add(r, step, 0, err) : 0;                                       \
    }
SIMPLE(random_gray_draw, LEAT__STEP_GRAYSCALE)
SIMPLE(invert_draw, LEAT__STEP_INVERT)
SIMPLE(autocontrast_draw, LEAT__STEP_AUTOCONTRAST)
SIMPLE(equalize_draw, LEAT__STEP_EQUALIZE)

#define WITH_AMOUNT(name, step)                                                                              \
    static int name(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)               \
    {                                                                                                        \
        return happens(&op->value[1], rng) ? add(r, step, op->value[0].f, err) : 0;                          \
    }
WITH_AMOUNT(solarize_draw, LEAT__STEP_SOLARIZE)
WITH_AMOUNT(posterize_draw, LEAT__STEP_POSTERIZE)
WITH_AMOUNT(sharpness_draw, LEAT__STEP_SHARPNESS)

static const leat__param solarize_params[] = {
    {.name = "threshold",
     .kind = LEAT__PARAM_FLOAT,
     .min = 0,
     .max = 256,
     .help = "values from this one on are inverted"},
    P_PARAM("0.5"),
};
static const leat__param posterize_params[] = {
    {.name = "bits", .kind = LEAT__PARAM_INT, .min = 1, .max = 8, .help = "bits kept of each value"},
    P_PARAM("0.5"),
};
static const leat__param sharpness_params[] = {
    {.name = "sharpness_factor",
     .kind = LEAT__PARAM_FLOAT,
     .min = 0,
     .max = 1e3,
     .help = "0 smooths, 1 changes nothing, 2 sharpens"},
    P_PARAM("0.5"),
};

static const leat__param gray_params[] = {
    {.name = "num_output_channels",
     .kind = LEAT__PARAM_INT,
     .def = "1",
     .min = 1,
     .max = 3,
     .help = "1, or 3 equal channels"},
};

static int gray_check(const leat__op_spec *op, leat_error *err)
{
    if (op->value[0].i != 2) return 0;
    return leat__fail(err, LEAT_EINVAL, "Grayscale.num_output_channels: 1 or 3");
}

static int gray_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    return add(r, LEAT__STEP_GRAYSCALE, 0, err);
}

/* ---- GaussianBlur ---- */

enum { BLUR_KERNEL, BLUR_SIGMA, BLUR_P };
static const leat__param blur_params[] = {
    {.name = "kernel_size",
     .kind = LEAT__PARAM_INTS,
     .min = 1,
     .max = 255,
     .help = "size of the kernel, odd: one number or (width, height)"},
    {.name = "sigma",
     .kind = LEAT__PARAM_FLOATS,
     .def = "0.1,2",
     .min = 0.001,
     .max = 1000,
     .help = "deviation in pixels, or (lowest, highest)"},
    P_PARAM("1"),
};

static int blur_check(const leat__op_spec *op, leat_error *err)
{
    const leat__value *const k = &op->value[BLUR_KERNEL], *const s = &op->value[BLUR_SIGMA];
    for (int i = 0; i < k->count; i++)
        if (k->count > 2 || fmod(k->list[i], 2) != 1)
            return leat__fail(err, LEAT_EINVAL, "GaussianBlur.kernel_size: one or two odd numbers");
    if (s->count > 2 || s->list[0] > s->list[s->count - 1])
        return leat__fail(err, LEAT_EINVAL, "GaussianBlur.sigma: one number, or (lowest, highest)");
    return 0;
}

static int blur_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__value *const k = &op->value[BLUR_KERNEL], *const s = &op->value[BLUR_SIGMA];
    if (!happens(&op->value[BLUR_P], rng)) return 0;
    const leat__step step = {.kind = LEAT__STEP_BLUR,
                             .width = (uint32_t)k->list[0],
                             .height = (uint32_t)k->list[k->count - 1],
                             .amount = leat__rng_range(rng, s->list[0], s->list[s->count - 1])};
    /* torchvision's reflecting border needs more pixels than half the kernel */
    if (step.width / 2 >= r->width || step.height / 2 >= r->height)
        return leat__fail(err, LEAT_EINVAL, "GaussianBlur: a kernel of %ux%u on an image of %ux%u",
                          step.width, step.height, r->width, r->height);
    return leat__recipe_add(r, &step, err);
}

/* ---- erasing ---- */

enum { ERASE_P, ERASE_SCALE, ERASE_RATIO, ERASE_VALUE, ERASE_NOISE };
static const leat__param erase_params[] = {
    P_PARAM("0.5"),
    {.name = "scale",
     .kind = LEAT__PARAM_FLOATS,
     .def = "0.02,0.33",
     .min = 0,
     .max = 1,
     .arity = 2,
     .help = "share of the area"},
    {.name = "ratio",
     .kind = LEAT__PARAM_FLOATS,
     .def = "0.3,3.3",
     .min = 0.001,
     .max = 1000,
     .arity = 2,
     .help = "height to width"},
    {.name = "value",
     .kind = LEAT__PARAM_FLOATS,
     .def = "0",
     .min = -1e6,
     .max = 1e6,
     .help = "fill value: one number or one per channel"},
    {.name = "random", .kind = LEAT__PARAM_FLAG, .def = "false", .min = 1, .help = "fill with noise instead"},
};

static int erase_check(const leat__op_spec *op, leat_error *err)
{
    bool value = false;
    for (int i = 0; i < op->value[ERASE_VALUE].count; i++) value |= op->value[ERASE_VALUE].list[i] != 0;
    if (value && op->value[ERASE_NOISE].i)
        return leat__fail(err, LEAT_EINVAL, "RandomErasing.value has no effect with random");
    return leat__op_check_channels(op, ERASE_VALUE, err);
}

/* After Normalize, the value is a number of the output; before it, of the 8-bit pixels. */
static int add_erase(leat__recipe *r, leat__step s, const leat__value *value, leat_error *err)
{
    s.kind = r->normalized ? LEAT__STEP_ERASE_OUT : LEAT__STEP_ERASE;
    leat__op_fill(value, s.fill);
    for (int c = 0; c < LEAT__CHANNELS_MAX && !r->normalized; c++)
        s.fill[c] = fminf(fmaxf(s.fill[c], 0), 255);
    return leat__recipe_add(r, &s, err);
}

static int erase_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const double *const scale = op->value[ERASE_SCALE].list, *ratio = op->value[ERASE_RATIO].list;
    const double area = (double)r->width * r->height;
    if (!happens(&op->value[ERASE_P], rng)) return 0;
    for (int i = 0; i < 10; i++) {
        const double target = area * leat__rng_range(rng, scale[0], scale[1]);
        const double aspect = exp(leat__rng_range(rng, log(ratio[0]), log(ratio[1])));
        const double h = rint(sqrt(target * aspect)), w = rint(sqrt(target / aspect));
        if (!(h < r->height && w < r->width) || h < 1 || w < 1) continue;
        leat__step s = {.width = (uint32_t)w, .height = (uint32_t)h, .noise = op->value[ERASE_NOISE].i != 0};
        s.y = (int32_t)leat__rng_below(rng, r->height - s.height + 1);
        s.x = (int32_t)leat__rng_below(rng, r->width - s.width + 1);
        s.noise_seed = leat__rng_u64(rng);
        return add_erase(r, s, &op->value[ERASE_VALUE], err);
    }
    return 0;
}

enum { CUTOUT_SIZE, CUTOUT_P, CUTOUT_VALUE };
static const leat__param cutout_params[] = {
    {.name = "size",
     .kind = LEAT__PARAM_INT,
     .min = 1,
     .max = 65535,
     .help = "side of the square that is blanked"},
    P_PARAM("1"),
    {.name = "value",
     .kind = LEAT__PARAM_FLOATS,
     .def = "0",
     .min = -1e6,
     .max = 1e6,
     .help = "fill value: one number or one per channel"},
};

static int cutout_check(const leat__op_spec *op, leat_error *err)
{
    return leat__op_check_channels(op, CUTOUT_VALUE, err);
}

/* The centre may be anywhere in the image, so squares at the border are clipped, as in the paper. */
static int cutout_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const int64_t size = op->value[CUTOUT_SIZE].i, w = r->width, h = r->height;
    if (!happens(&op->value[CUTOUT_P], rng)) return 0;
    const int64_t cx = (int64_t)leat__rng_below(rng, r->width);
    const int64_t cy = (int64_t)leat__rng_below(rng, r->height);
    const int64_t x0 = LEAT_MAX(cx - size / 2, 0), y0 = LEAT_MAX(cy - size / 2, 0);
    const int64_t x1 = LEAT_MIN(cx - size / 2 + size, w), y1 = LEAT_MIN(cy - size / 2 + size, h);
    if (x1 <= x0 || y1 <= y0) return 0;
    const leat__step s = {
        .x = (int32_t)x0, .y = (int32_t)y0, .width = (uint32_t)(x1 - x0), .height = (uint32_t)(y1 - y0)};
    return add_erase(r, s, &op->value[CUTOUT_VALUE], err);
}

#define OP(name, help, kind, params, check, draw)                                                            \
    {                                                                                                        \
        name, help, kind, params, LEAT_COUNT(params), check, NULL, draw                                      \
    }
#define IN_PLACE(name, help, kind, params, check, draw)                                                      \
    {                                                                                                        \
        name, help, kind, params, LEAT_COUNT(params), check, NULL, draw, .in_place = true                    \
    }
const leat__op_def leat__ops_color[] = {
    IN_PLACE("ColorJitter", "changes brightness, contrast, saturation and hue, in random order",
             LEAT_OP_COLOR, jitter_params, jitter_check, jitter_draw),
    IN_PLACE("Grayscale", "leaves only the luma", LEAT_OP_COLOR, gray_params, gray_check, gray_draw),
    IN_PLACE("RandomGrayscale", "leaves only the luma, in three channels, with probability p", LEAT_OP_COLOR,
             p_tenth, NULL, random_gray_draw),
    IN_PLACE("RandomInvert", "inverts with probability p", LEAT_OP_COLOR, p_half, NULL, invert_draw),
    IN_PLACE("RandomPosterize", "keeps some bits of each value with probability p", LEAT_OP_COLOR,
             posterize_params, NULL, posterize_draw),
    IN_PLACE("RandomSolarize", "inverts values from a threshold on with probability p", LEAT_OP_COLOR,
             solarize_params, NULL, solarize_draw),
    OP("RandomAdjustSharpness", "sharpens or smooths with probability p", LEAT_OP_COLOR, sharpness_params,
       NULL, sharpness_draw),
    IN_PLACE("RandomAutocontrast", "stretches each channel to the full range with probability p",
             LEAT_OP_COLOR, p_half, NULL, autocontrast_draw),
    IN_PLACE("RandomEqualize", "flattens each channel's histogram with probability p", LEAT_OP_COLOR, p_half,
             NULL, equalize_draw),
    OP("GaussianBlur", "blurs with a random deviation", LEAT_OP_COLOR, blur_params, blur_check, blur_draw),
    IN_PLACE("RandomErasing", "blanks a random rectangle with probability p", LEAT_OP_ERASE, erase_params,
             erase_check, erase_draw),
    IN_PLACE("Cutout", "blanks a square at a random place", LEAT_OP_ERASE, cutout_params, cutout_check,
             cutout_draw),
    {0},
};
