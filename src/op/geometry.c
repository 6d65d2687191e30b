/* SPDX-License-Identifier: Apache-2.0
 *
 * Crops, resizes, padding and flips, with torchvision's rounding and distributions. Draws only: the pixels
 * are moved by the head (src/op/head.c) or by the steps. Pure functions.
 */
#include <math.h>

#include "base/num.h"
#include "dsp/resize.h"
#include "op/op.h"

#define SIZE_PARAM(text)                                                                                     \
    {                                                                                                        \
        .name = "size", .kind = LEAT__PARAM_INTS, .min = 1, .max = 65535, .help = text                       \
    }
#define FILTER_PARAM(default_)                                                                               \
    {                                                                                                        \
        .name = "interpolation", .kind = LEAT__PARAM_CHOICE, .def = default_,                                \
        .choices = LEAT__FILTER_CHOICES, .min = 1, .help = "resize filter, antialiased as in Pillow"         \
    }
#define LIKE_PARAM                                                                                           \
    {                                                                                                        \
        .name = "like", .kind = LEAT__PARAM_CHOICE, .def = "pillow13", .choices = LEAT__PASS_CHOICES,        \
        .min = 1,                                                                                            \
        .help = "pixels as Pillow 13 or 12 makes them, or fast: close to these, faster for JPEG and tiles"   \
    }
#define P_PARAM(default_)                                                                                    \
    {                                                                                                        \
        .name = "p", .kind = LEAT__PARAM_FLOAT, .def = default_, .min = 0, .max = 1, .help = "probability"   \
    }
#define FILL_PARAM                                                                                           \
    {                                                                                                        \
        .name = "fill", .kind = LEAT__PARAM_FLOATS, .def = "0", .min = 0, .max = 65535,                      \
        .help = "value of new pixels: one number or one per channel, up to 255 for 8-bit images"             \
    }
#define EDGE_PARAM                                                                                           \
    {                                                                                                        \
        .name = "padding_mode", .kind = LEAT__PARAM_CHOICE, .def = "constant",                               \
        .choices = LEAT__EDGE_CHOICES, .min = 1, .help = "what fills the new border"                         \
    }

/* Returns a size given as (height, width), in torchvision's order; one number is a square. */
static leat__op_size size_of(const leat__value *v)
{
    return (leat__op_size){.height = (uint32_t)v->list[0], .width = (uint32_t)v->list[v->count == 2 ? 1 : 0]};
}

static int check_size(const leat__op_spec *op, leat_error *err)
{
    const leat__value *v = &op->value[0];
    if (v->count > 2)
        return leat__fail(err, LEAT_EINVAL, "%s.size: one number or (height, width)", op->def->name);
    return 0;
}

static leat__op_size fixed_size(const leat__op_spec *op, leat__op_size in)
{
    return size_of(&op->value[0]);
}

static int add_crop(leat__recipe *r, uint32_t x, uint32_t y, leat__op_size size, leat_error *err)
{
    if (x == 0 && y == 0 && size.width == r->width && size.height == r->height) return 0;
    const leat__step s = {.kind = LEAT__STEP_CROP,
                          .x = (int32_t)x,
                          .y = (int32_t)y,
                          .width = size.width,
                          .height = size.height};
    return leat__recipe_add(r, &s, err);
}

static int add_resize(leat__recipe *r, leat__op_size size, const leat__value *filter, const leat__value *like,
                      leat_error *err)
{
    if (size.width == r->width && size.height == r->height) return 0;
    const leat__step s = {.kind = LEAT__STEP_RESIZE,
                          .width = size.width,
                          .height = size.height,
                          .filter = (leat__filter)filter->i,
                          .order = (leat__pass_order)like->i};
    return leat__recipe_add(r, &s, err);
}

/* ---- RandomResizedCrop ---- */

enum { RRC_SIZE, RRC_SCALE, RRC_RATIO, RRC_FILTER, RRC_LIKE };
static const leat__param rrc_params[] = {
    SIZE_PARAM("size after the crop: one number or (height, width)"),
    {.name = "scale",
     .kind = LEAT__PARAM_FLOATS,
     .def = "0.08,1",
     .min = 0,
     .max = 1,
     .arity = 2,
     .help = "share of the area that is cropped, lowest and highest"},
    {.name = "ratio",
     .kind = LEAT__PARAM_FLOATS,
     .def = "0.75,1.3333333333333333",
     .min = 0.001,
     .max = 1000,
     .arity = 2,
     .help = "aspect ratio of the crop"},
    FILTER_PARAM("bilinear"),
    LIKE_PARAM,
};

static int rrc_check(const leat__op_spec *op, leat_error *err)
{
    LEAT_TRY(check_size(op, err));
    for (int i = RRC_SCALE; i <= RRC_RATIO; i++)
        if (op->value[i].list[0] > op->value[i].list[1])
            return leat__fail(err, LEAT_EINVAL, "%s.%s: the first number is the larger one", op->def->name,
                              op->def->params[i].name);
    return 0;
}

/* Tries ten times, then takes the largest central crop with an allowed ratio. */
static int rrc_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const double *const scale = op->value[RRC_SCALE].list, *ratio = op->value[RRC_RATIO].list;
    const double width = r->width, height = r->height, area = width * height;
    const double log_lo = log(ratio[0]), log_hi = log(ratio[1]);
    leat__op_size crop = {0};
    uint32_t x = 0, y = 0;
    bool found = false;
    for (int i = 0; i < 10 && !found; i++) {
        const double target = area * leat__rng_range(rng, scale[0], scale[1]);
        const double aspect = exp(leat__rng_range(rng, log_lo, log_hi));
        const double w = rint(sqrt(target * aspect)), h = rint(sqrt(target / aspect));
        if (!(w > 0 && w <= width && h > 0 && h <= height)) continue;
        crop = (leat__op_size){.width = (uint32_t)w, .height = (uint32_t)h};
        y = (uint32_t)leat__rng_below(rng, r->height - crop.height + 1);
        x = (uint32_t)leat__rng_below(rng, r->width - crop.width + 1);
        found = true;
    }
    if (!found) {
        crop = (leat__op_size){.width = r->width, .height = r->height};
        if (width / height < ratio[0]) crop.height = (uint32_t)LEAT_MAX(1, rint(width / ratio[0]));
        else if (width / height > ratio[1]) crop.width = (uint32_t)LEAT_MAX(1, rint(height * ratio[1]));
        x = (r->width - crop.width) / 2;
        y = (r->height - crop.height) / 2;
    }
    LEAT_TRY(add_crop(r, x, y, crop, err));
    return add_resize(r, size_of(&op->value[RRC_SIZE]), &op->value[RRC_FILTER], &op->value[RRC_LIKE], err);
}

/* ---- Resize ---- */

enum { RESIZE_SIZE, RESIZE_FILTER, RESIZE_MAX_SIZE, RESIZE_LIKE };
static const leat__param resize_params[] = {
    SIZE_PARAM("one number: length of the shorter side; or (height, width)"),
    FILTER_PARAM("bilinear"),
    {.name = "max_size",
     .kind = LEAT__PARAM_INT,
     .def = "0",
     .min = 0,
     .max = 65535,
     .help = "highest length of the longer side, 0 = none; only with one number"},
    LIKE_PARAM,
};

static int resize_check(const leat__op_spec *op, leat_error *err)
{
    LEAT_TRY(check_size(op, err));
    const leat__value *size = &op->value[RESIZE_SIZE];
    const int64_t most = op->value[RESIZE_MAX_SIZE].i;
    if (most != 0 && (size->count != 1 || most <= size->list[0]))
        return leat__fail(err, LEAT_EINVAL, "Resize.max_size: must exceed a size given as one number");
    return 0;
}

static leat__op_size resized(const leat__op_spec *op, uint32_t width, uint32_t height)
{
    const leat__value *v = &op->value[RESIZE_SIZE];
    if (v->count == 2) return size_of(v);
    const uint64_t size = (uint64_t)v->list[0], most = (uint64_t)op->value[RESIZE_MAX_SIZE].i;
    const bool upright = width <= height;
    const uint64_t s = upright ? width : height, l = upright ? height : width;
    /* as int(size * long / short) in Python: a double quotient, truncated */
    uint64_t new_short = size, new_long = (uint64_t)((double)(size * l) / (double)s);
    if (most != 0 && new_long > most) {
        new_short = (uint64_t)((double)(most * new_short) / (double)new_long);
        new_long = most;
    }
    new_short = LEAT_MAX(new_short, 1);
    new_long = LEAT_MIN(new_long, LEAT__RESIZE_MAX + 1u); /* refused by the step */
    return (leat__op_size){.width = (uint32_t)(upright ? new_short : new_long),
                           .height = (uint32_t)(upright ? new_long : new_short)};
}

static leat__op_size resize_size(const leat__op_spec *op, leat__op_size in)
{
    if (op->value[RESIZE_SIZE].count == 2 || (in.width && in.height)) return resized(op, in.width, in.height);
    return (leat__op_size){0, 0};
}

/* Over several input sizes, the most extreme aspect ratio among them gives the bounds. */
static void resize_reach(const leat__op_spec *op, leat__op_reach *r)
{
    const double size = (double)op->value[RESIZE_SIZE].list[0], most = (double)op->value[RESIZE_MAX_SIZE].i;
    if (r->width_min == r->width_max && r->height_min == r->height_max) {
        const leat__op_size out = resized(op, r->width_min, r->height_min);
        *r = (leat__op_reach){out.width, out.width, out.height, out.height};
        return;
    }
    const double ratio = fmax((double)r->width_max / r->height_min, (double)r->height_max / r->width_min);
    double longest = size * fmax(ratio, 1) + 1, shortest = size;
    if (most != 0 && longest > most) {
        shortest = fmax(floor(most * size / longest) - 1, 1);
        longest = most;
    }
    r->width_min = r->height_min = (uint32_t)shortest;
    r->width_max = r->height_max = (uint32_t)fmin(longest, LEAT__RESIZE_MAX);
}

static int resize_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    return add_resize(r, resized(op, r->width, r->height), &op->value[RESIZE_FILTER], &op->value[RESIZE_LIKE],
                      err);
}

/* ---- padding ---- */

typedef struct border {
    uint32_t left, top, right, bottom;
} border;

static border border_of(const leat__value *v)
{
    const uint32_t a = (uint32_t)v->list[0];
    if (v->count == 1) return (border){a, a, a, a};
    const uint32_t b = (uint32_t)v->list[1];
    if (v->count == 2) return (border){a, b, a, b};
    return (border){a, b, (uint32_t)v->list[2], (uint32_t)v->list[3]};
}

static int add_pad(leat__recipe *r, border b, const leat__value *fill, leat__edge edge, leat_error *err)
{
    if ((b.left | b.top | b.right | b.bottom) == 0) return 0;
    leat__step s = {.kind = LEAT__STEP_PAD,
                    .x = (int32_t)b.left,
                    .y = (int32_t)b.top,
                    .width = r->width + b.left + b.right,
                    .height = r->height + b.top + b.bottom,
                    .edge = edge};
    if (fill) leat__op_fill(fill, s.fill);
    return leat__recipe_add(r, &s, err);
}

enum { PAD_PADDING, PAD_FILL, PAD_EDGE };
static const leat__param pad_params[] = {
    {.name = "padding",
     .kind = LEAT__PARAM_INTS,
     .min = 0,
     .max = 16384,
     .help = "one number, (left and right, top and bottom) or (left, top, right, bottom)"},
    FILL_PARAM,
    EDGE_PARAM,
};

static int check_padding(const leat__op_spec *op, const leat__value *v, leat_error *err)
{
    if (v->count == 1 || v->count == 2 || v->count == 4) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s.padding: 1, 2 or 4 numbers", op->def->name);
}

/* True when the value is not the default, 0. */
static bool is_set(const leat__value *v)
{
    bool any = v->i != 0;
    for (int i = 0; i < v->count; i++) any |= v->list[i] != 0;
    return any;
}

/* Refuses a fill value for a border that is not filled. */
static int check_border(const leat__op_spec *op, const leat__value *fill, const leat__value *edge,
                        leat_error *err)
{
    if (!is_set(fill) || edge->i == LEAT__EDGE_CONSTANT) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s.fill has no effect: padding_mode is not constant", op->def->name);
}

static int pad_check(const leat__op_spec *op, leat_error *err)
{
    LEAT_TRY(check_padding(op, &op->value[PAD_PADDING], err));
    LEAT_TRY(check_border(op, &op->value[PAD_FILL], &op->value[PAD_EDGE], err));
    return leat__op_check_channels(op, PAD_FILL, err);
}

static leat__op_size pad_size(const leat__op_spec *op, leat__op_size in)
{
    const border b = border_of(&op->value[PAD_PADDING]);
    if (in.width) in.width += b.left + b.right;
    if (in.height) in.height += b.top + b.bottom;
    return in;
}

static void pad_reach(const leat__op_spec *op, leat__op_reach *r)
{
    const border b = border_of(&op->value[PAD_PADDING]);
    r->width_min += b.left + b.right;
    r->width_max += b.left + b.right;
    r->height_min += b.top + b.bottom;
    r->height_max += b.top + b.bottom;
}

static int pad_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    return add_pad(r, border_of(&op->value[PAD_PADDING]), &op->value[PAD_FILL],
                   (leat__edge)op->value[PAD_EDGE].i, err);
}

/* ---- CenterCrop ---- */

enum { CENTER_SIZE, CENTER_RATIO, CENTER_FILTER, CENTER_LIKE };
static const leat__param center_params[] = {
    SIZE_PARAM("size of the result; without ratio, smaller images are padded with 0"),
    {.name = "ratio",
     .kind = LEAT__PARAM_FLOAT,
     .def = "0",
     .min = 0,
     .max = 1,
     .help = "crop a square of this share of the shorter side and resize it to size; 0 = crop size"},
    FILTER_PARAM("bilinear"),
    LIKE_PARAM,
};

static int center_check(const leat__op_spec *op, leat_error *err)
{
    LEAT_TRY(check_size(op, err));
    static const int64_t defaults[] = {[CENTER_FILTER] = LEAT__FILTER_BILINEAR, [CENTER_LIKE] = 0};
    for (int i = CENTER_FILTER; i <= CENTER_LIKE && !(op->value[CENTER_RATIO].f > 0); i++)
        if (op->value[i].i != defaults[i])
            return leat__fail(err, LEAT_EINVAL, "CenterCrop.%s has no effect without ratio",
                              op->def->params[i].name);
    return 0;
}

/* FFCV's centre crop: a square, truncated to whole pixels. */
static int center_share(const leat__op_spec *op, leat__recipe *r, leat_error *err)
{
    const double side = op->value[CENTER_RATIO].f * LEAT_MIN(r->width, r->height);
    const uint32_t n = (uint32_t)LEAT_MAX(side, 1);
    const leat__op_size square = {n, n};
    LEAT_TRY(add_crop(r, (r->width - n) / 2, (r->height - n) / 2, square, err));
    return add_resize(r, size_of(&op->value[CENTER_SIZE]), &op->value[CENTER_FILTER], &op->value[CENTER_LIKE],
                      err);
}

static int center_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    if (op->value[CENTER_RATIO].f > 0) return center_share(op, r, err);
    const leat__op_size size = size_of(&op->value[0]);
    const uint32_t dx = size.width > r->width ? size.width - r->width : 0;
    const uint32_t dy = size.height > r->height ? size.height - r->height : 0;
    const border b = {dx / 2, dy / 2, (dx + 1) / 2, (dy + 1) / 2};
    LEAT_TRY(add_pad(r, b, NULL, LEAT__EDGE_CONSTANT, err));
    return add_crop(r, (uint32_t)rint((r->width - size.width) / 2.0),
                    (uint32_t)rint((r->height - size.height) / 2.0), size, err);
}

/* ---- RandomCrop ---- */

enum { CROP_SIZE, CROP_PADDING, CROP_IF_NEEDED, CROP_FILL, CROP_EDGE };
static const leat__param crop_params[] = {
    SIZE_PARAM("size of the crop: one number or (height, width)"),
    {.name = "padding",
     .kind = LEAT__PARAM_INTS,
     .def = "0",
     .min = 0,
     .max = 16384,
     .help = "border added first: 1, 2 or 4 numbers as in Pad"},
    {.name = "pad_if_needed",
     .kind = LEAT__PARAM_FLAG,
     .def = "false",
     .min = 1,
     .help = "pad images that are smaller than the crop"},
    FILL_PARAM,
    EDGE_PARAM,
};

static int crop_check(const leat__op_spec *op, leat_error *err)
{
    LEAT_TRY(check_size(op, err));
    LEAT_TRY(check_padding(op, &op->value[CROP_PADDING], err));
    LEAT_TRY(check_border(op, &op->value[CROP_FILL], &op->value[CROP_EDGE], err));
    const border b = border_of(&op->value[CROP_PADDING]);
    const bool pads = (b.left | b.top | b.right | b.bottom) != 0 || op->value[CROP_IF_NEEDED].i;
    for (int i = CROP_FILL; i <= CROP_EDGE && !pads; i++)
        if (is_set(&op->value[i]))
            return leat__fail(err, LEAT_EINVAL,
                              "RandomCrop.%s has no effect without padding or pad_if_needed",
                              op->def->params[i].name);
    return leat__op_check_channels(op, CROP_FILL, err);
}

static int crop_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__op_size size = size_of(&op->value[CROP_SIZE]);
    const leat__value *const fill = &op->value[CROP_FILL];
    const leat__edge edge = (leat__edge)op->value[CROP_EDGE].i;
    LEAT_TRY(add_pad(r, border_of(&op->value[CROP_PADDING]), fill, edge, err));
    if (op->value[CROP_IF_NEEDED].i) {
        const uint32_t dx = size.width > r->width ? size.width - r->width : 0;
        LEAT_TRY(add_pad(r, (border){dx, 0, dx, 0}, fill, edge, err));
        const uint32_t dy = size.height > r->height ? size.height - r->height : 0;
        LEAT_TRY(add_pad(r, (border){0, dy, 0, dy}, fill, edge, err));
    }
    if (size.width > r->width || size.height > r->height)
        return leat__fail(err, LEAT_EINVAL, "RandomCrop: a crop of %ux%u is larger than the image of %ux%u",
                          size.width, size.height, r->width, r->height);
    const uint32_t y = (uint32_t)leat__rng_below(rng, r->height - size.height + 1);
    const uint32_t x = (uint32_t)leat__rng_below(rng, r->width - size.width + 1);
    return add_crop(r, x, y, size, err);
}

/* ---- flips ---- */

static const leat__param flip_params[] = {P_PARAM("0.5")};

static int flip_draw(leat__step_kind kind, const leat__op_spec *op, leat__rng *rng, leat__recipe *r,
                     leat_error *err)
{
    if (leat__rng_double(rng) >= op->value[0].f) return 0;
    const leat__step s = {.kind = kind};
    return leat__recipe_add(r, &s, err);
}

static int hflip_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    return flip_draw(LEAT__STEP_FLIP_H, op, rng, r, err);
}

static int vflip_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    return flip_draw(LEAT__STEP_FLIP_V, op, rng, r, err);
}

/* ---- random sizes: a later op must give all images one size ---- */

static leat__op_size unknown_size(const leat__op_spec *op, leat__op_size in)
{
    return (leat__op_size){0};
}

static int check_ranges(const leat__op_spec *op, int i, leat_error *err)
{
    if (op->value[i].list[0] <= op->value[i].list[1]) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s.%s: the first number is the larger one", op->def->name,
                      op->def->params[i].name);
}

/* Scales both sides by one factor, truncated to whole pixels as in torchvision. */
static int add_scaled(leat__recipe *r, double factor, const leat__value *filter, const leat__value *like,
                      leat_error *err)
{
    const double most = LEAT__RESIZE_MAX + 1.0; /* refused by the step */
    const leat__op_size size = {.width = (uint32_t)LEAT_MIN(LEAT_MAX(r->width * factor, 1), most),
                                .height = (uint32_t)LEAT_MIN(LEAT_MAX(r->height * factor, 1), most)};
    return add_resize(r, size, filter, like, err);
}

enum { ZOOM_FILL, ZOOM_RANGE, ZOOM_P };
static const leat__param zoom_params[] = {
    FILL_PARAM,
    {.name = "side_range",
     .kind = LEAT__PARAM_FLOATS,
     .def = "1,4",
     .min = 1,
     .max = 64,
     .arity = 2,
     .help = "lowest and highest factor of the sides"},
    P_PARAM("0.5"),
};

static int zoom_check(const leat__op_spec *op, leat_error *err)
{
    LEAT_TRY(check_ranges(op, ZOOM_RANGE, err));
    return leat__op_check_channels(op, ZOOM_FILL, err);
}

static int zoom_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const double *const range = op->value[ZOOM_RANGE].list;
    if (leat__rng_double(rng) >= op->value[ZOOM_P].f) return 0;
    const double factor = leat__rng_range(rng, range[0], range[1]);
    const uint32_t dx = (uint32_t)(r->width * factor) - r->width;
    const uint32_t dy = (uint32_t)(r->height * factor) - r->height;
    const uint32_t left = (uint32_t)(dx * leat__rng_double(rng));
    const uint32_t top = (uint32_t)(dy * leat__rng_double(rng));
    return add_pad(r, (border){left, top, dx - left, dy - top}, &op->value[ZOOM_FILL], LEAT__EDGE_CONSTANT,
                   err);
}

static void zoom_reach(const leat__op_spec *op, leat__op_reach *r)
{
    const double most = op->value[ZOOM_RANGE].list[1];
    r->width_max = (uint32_t)fmin(r->width_max * most, LEAT__RESIZE_MAX);
    r->height_max = (uint32_t)fmin(r->height_max * most, LEAT__RESIZE_MAX);
}

enum { SCALE_TARGET, SCALE_RANGE, SCALE_FILTER, SCALE_LIKE };
static const leat__param scale_params[] = {
    {.name = "target_size",
     .kind = LEAT__PARAM_INTS,
     .min = 1,
     .max = 65535,
     .help = "size the image fits at scale 1: one number or (height, width)"},
    {.name = "scale_range",
     .kind = LEAT__PARAM_FLOATS,
     .def = "0.1,2",
     .min = 1e-3,
     .max = 1e3,
     .arity = 2,
     .help = "lowest and highest scale"},
    FILTER_PARAM("bilinear"),
    LIKE_PARAM,
};

static int scale_check(const leat__op_spec *op, leat_error *err)
{
    LEAT_TRY(check_size(op, err));
    return check_ranges(op, SCALE_RANGE, err);
}

static int scale_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__op_size target = size_of(&op->value[SCALE_TARGET]);
    const double *const range = op->value[SCALE_RANGE].list;
    const double fit = LEAT_MIN((double)target.height / r->height, (double)target.width / r->width);
    return add_scaled(r, fit * leat__rng_range(rng, range[0], range[1]), &op->value[SCALE_FILTER],
                      &op->value[SCALE_LIKE], err);
}

/* At scale 1 the image fits into the target, so the scaled target is the bound. */
static void scale_reach(const leat__op_spec *op, leat__op_reach *r)
{
    const leat__op_size target = size_of(&op->value[SCALE_TARGET]);
    const double most = op->value[SCALE_RANGE].list[1];
    r->width_min = r->height_min = 1;
    r->width_max = (uint32_t)fmin(LEAT_MAX(target.width * most, 1), LEAT__RESIZE_MAX);
    r->height_max = (uint32_t)fmin(LEAT_MAX(target.height * most, 1), LEAT__RESIZE_MAX);
}

enum { SHORT_MIN, SHORT_MAX, SHORT_FILTER, SHORT_LIKE };
static const leat__param short_params[] = {
    {.name = "min_size",
     .kind = LEAT__PARAM_INTS,
     .min = 1,
     .max = 65535,
     .help = "lengths of the shorter side, up to 16: one of them is drawn"},
    {.name = "max_size",
     .kind = LEAT__PARAM_INT,
     .def = "0",
     .min = 0,
     .max = 65535,
     .help = "highest length of the longer side, 0 = none"},
    FILTER_PARAM("bilinear"),
    LIKE_PARAM,
};

static int short_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__value *const sizes = &op->value[SHORT_MIN];
    const double size = sizes->list[leat__rng_below(rng, (uint64_t)sizes->count)];
    double factor = size / LEAT_MIN(r->width, r->height);
    if (op->value[SHORT_MAX].i)
        factor = fmin(factor, (double)op->value[SHORT_MAX].i / LEAT_MAX(r->width, r->height));
    return add_scaled(r, factor, &op->value[SHORT_FILTER], &op->value[SHORT_LIKE], err);
}

/* The shorter side is at most the largest length; the longer side is that length times the aspect ratio. */
static void short_reach(const leat__op_spec *op, leat__op_reach *r)
{
    const leat__value *const sizes = &op->value[SHORT_MIN];
    double size = 1;
    for (int i = 0; i < sizes->count; i++) size = fmax(size, sizes->list[i]);
    const double ratio = fmax((double)r->width_max / r->height_min, (double)r->height_max / r->width_min);
    double most = ceil(size * fmax(ratio, 1));
    if (op->value[SHORT_MAX].i) most = fmin(most, (double)op->value[SHORT_MAX].i);
    r->width_min = r->height_min = 1;
    r->width_max = r->height_max = (uint32_t)fmin(most, LEAT__RESIZE_MAX);
}

const leat__op_def leat__ops_geometry[] = {
    {"RandomResizedCrop", "crops a random part of random size and shape and resizes it", LEAT_OP_GEOMETRY,
     rrc_params, LEAT_COUNT(rrc_params), rrc_check, fixed_size, rrc_draw, .in_place = true},
    {"Resize", "resizes, by the shorter side or to a given size", LEAT_OP_GEOMETRY, resize_params,
     LEAT_COUNT(resize_params), resize_check, resize_size, resize_draw, true, .in_place = true,
     .reach = resize_reach},
    {"CenterCrop", "crops the middle, by size or by a share of the shorter side", LEAT_OP_GEOMETRY,
     center_params, LEAT_COUNT(center_params), center_check, fixed_size, center_draw, true, .in_place = true},
    {"RandomCrop", "crops a random part of a given size, after padding if asked", LEAT_OP_GEOMETRY,
     crop_params, LEAT_COUNT(crop_params), crop_check, fixed_size, crop_draw},
    {"Pad", "adds a border", LEAT_OP_GEOMETRY, pad_params, LEAT_COUNT(pad_params), pad_check, pad_size,
     pad_draw, true, .reach = pad_reach},
    {"RandomHorizontalFlip", "mirrors left and right with probability p", LEAT_OP_GEOMETRY, flip_params,
     LEAT_COUNT(flip_params), NULL, NULL, hflip_draw, .in_place = true},
    {"RandomVerticalFlip", "mirrors top and bottom with probability p", LEAT_OP_GEOMETRY, flip_params,
     LEAT_COUNT(flip_params), NULL, NULL, vflip_draw, .in_place = true},
    {"RandomZoomOut", "puts the image somewhere on a larger canvas with probability p", LEAT_OP_GEOMETRY,
     zoom_params, LEAT_COUNT(zoom_params), zoom_check, unknown_size, zoom_draw, .canvas = true,
     .reach = zoom_reach},
    {"ScaleJitter", "resizes by a random factor", LEAT_OP_GEOMETRY, scale_params, LEAT_COUNT(scale_params),
     scale_check, unknown_size, scale_draw, .reach = scale_reach},
    {"RandomShortestSize", "resizes the shorter side to one of some lengths", LEAT_OP_GEOMETRY, short_params,
     LEAT_COUNT(short_params), NULL, unknown_size, short_draw, .reach = short_reach},
    {0},
};
