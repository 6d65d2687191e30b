/* SPDX-License-Identifier: Apache-2.0
 *
 * Special crops: several fixed ones of one image, and one that depends on the boxes in the image. Draws
 * only, with torchvision's rounding and distributions. Pure functions.
 */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "op/op.h"
#include "op/targets.h"

static int add_crop(leat__recipe *r, uint32_t x, uint32_t y, leat__op_size size, bool centers,
                    leat_error *err)
{
    const leat__step s = {.kind = LEAT__STEP_CROP,
                          .x = (int32_t)x,
                          .y = (int32_t)y,
                          .width = size.width,
                          .height = size.height,
                          .centers = centers};
    return leat__recipe_add(r, &s, err);
}

/* ---- FiveCrop, TenCrop ---- */

#define SIZE_PARAM                                                                                           \
    {                                                                                                        \
        .name = "size", .kind = LEAT__PARAM_INTS, .min = 1, .max = 65535,                                    \
        .help = "size of each crop: one number or (height, width)"                                           \
    }

enum { FIVE_SIZE, TEN_VERTICAL };
static const leat__param five_params[] = {SIZE_PARAM};
static const leat__param ten_params[] = {
    SIZE_PARAM,
    {.name = "vertical_flip",
     .kind = LEAT__PARAM_FLAG,
     .def = "false",
     .min = 1,
     .help = "mirror top and bottom instead of left and right"},
};

static leat__op_size size_of(const leat__value *v)
{
    return (leat__op_size){.height = (uint32_t)v->list[0], .width = (uint32_t)v->list[v->count == 2 ? 1 : 0]};
}

static leat__op_size five_size(const leat__op_spec *op, leat__op_size in)
{
    return size_of(&op->value[FIVE_SIZE]);
}

static int five_check(const leat__op_spec *op, leat_error *err)
{
    if (op->value[FIVE_SIZE].count <= 2) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s.size: one number or (height, width)", op->def->name);
}

/* The corners in reading order, then the centre. */
static int five_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__op_size size = size_of(&op->value[FIVE_SIZE]);
    const uint32_t place = r->crop % 5;
    if (size.width > r->width || size.height > r->height)
        return leat__fail(err, LEAT_EINVAL, "%s: a crop of %ux%u is larger than the image of %ux%u",
                          op->def->name, size.width, size.height, r->width, r->height);
    const uint32_t dx = r->width - size.width, dy = r->height - size.height;
    if (place == 4) return add_crop(r, (uint32_t)rint(dx / 2.0), (uint32_t)rint(dy / 2.0), size, false, err);
    return add_crop(r, place % 2 ? dx : 0, place / 2 ? dy : 0, size, false, err);
}

static int ten_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__step flip = {.kind = op->value[TEN_VERTICAL].i ? LEAT__STEP_FLIP_V : LEAT__STEP_FLIP_H};
    if (r->crop >= 5) LEAT_TRY(leat__recipe_add(r, &flip, err));
    return five_draw(op, rng, r, err);
}

/* ---- RandomIoUCrop ---- */

enum { IOU_MIN, IOU_MAX, IOU_THIN, IOU_WIDE, IOU_OPTIONS, IOU_TRIALS };
enum { ROUNDS = 100 }; /* torchvision has no such limit */
static const leat__param iou_params[] = {
    {.name = "min_scale",
     .kind = LEAT__PARAM_FLOAT,
     .def = "0.3",
     .min = 1e-3,
     .max = 1,
     .help = "lowest share of width and of height"},
    {.name = "max_scale",
     .kind = LEAT__PARAM_FLOAT,
     .def = "1",
     .min = 1e-3,
     .max = 1,
     .help = "highest share of width and of height"},
    {.name = "min_aspect_ratio",
     .kind = LEAT__PARAM_FLOAT,
     .def = "0.5",
     .min = 1e-3,
     .max = 1e3,
     .help = "lowest width over height of the crop"},
    {.name = "max_aspect_ratio",
     .kind = LEAT__PARAM_FLOAT,
     .def = "2",
     .min = 1e-3,
     .max = 1e3,
     .help = "highest width over height of the crop"},
    {.name = "sampler_options",
     .kind = LEAT__PARAM_FLOATS,
     .def = "0,0.1,0.3,0.5,0.7,0.9,1",
     .min = 0,
     .max = 2,
     .help = "overlaps with a box, up to 16, one of which is drawn; 1 leaves the image as it is"},
    {.name = "trials",
     .kind = LEAT__PARAM_INT,
     .def = "40",
     .min = 1,
     .max = 1000,
     .help = "crops that are tried before another overlap is drawn"},
};

static int iou_check(const leat__op_spec *op, leat_error *err)
{
    for (int i = IOU_MIN; i <= IOU_THIN; i += 2)
        if (op->value[i].f > op->value[i + 1].f)
            return leat__fail(err, LEAT_EINVAL, "RandomIoUCrop.%s: is above %s", op->def->params[i].name,
                              op->def->params[i + 1].name);
    if (op->value[IOU_OPTIONS].count == 0)
        return leat__fail(err, LEAT_EINVAL, "RandomIoUCrop.sampler_options: give at least one overlap");
    return 0;
}

static leat__op_size unknown_size(const leat__op_spec *op, leat__op_size in)
{
    return (leat__op_size){0};
}

/* Moves the boxes by the steps so far. Boxes that are completely outside never count. */
static void move_boxes(leat__recipe *r)
{
    const leat__box_rule rule = {.format = LEAT__BOX_XYXY};
    memcpy(r->moved, r->boxes, 4 * (size_t)r->box_count * sizeof *r->boxes);
    for (uint32_t i = 0; i < r->box_count; i++) {
        bool keep;
        leat__recipe_boxes(r, &rule, r->moved + 4 * (size_t)i, &keep, 1);
        if (!keep) r->moved[4 * (size_t)i] = NAN;
    }
}

/* Returns the intersection over union of a box and the crop, or -1 when the box's centre is outside. */
static float overlap(const float b[4], const float crop[4])
{
    const float cx = 0.5f * (b[0] + b[2]), cy = 0.5f * (b[1] + b[3]);
    if (!(crop[0] < cx && cx < crop[2] && crop[1] < cy && cy < crop[3])) return -1;
    const float w = fmaxf(fminf(b[2], crop[2]) - fmaxf(b[0], crop[0]), 0);
    const float h = fmaxf(fminf(b[3], crop[3]) - fmaxf(b[1], crop[1]), 0);
    const float both = (b[2] - b[0]) * (b[3] - b[1]) + (crop[2] - crop[0]) * (crop[3] - crop[1]);
    return w * h / (both - w * h);
}

/* Draws one crop. True when its shape is allowed and it overlaps a box as much as required. */
static bool try_crop(const leat__op_spec *op, leat__rng *rng, const leat__recipe *r, double least,
                     uint32_t at[2], leat__op_size *size)
{
    const leat__value *const v = op->value;
    const double sx = leat__rng_range(rng, v[IOU_MIN].f, v[IOU_MAX].f);
    const double sy = leat__rng_range(rng, v[IOU_MIN].f, v[IOU_MAX].f);
    const double x = leat__rng_double(rng), y = leat__rng_double(rng);
    *size = (leat__op_size){(uint32_t)(r->width * sx), (uint32_t)(r->height * sy)};
    if (size->width == 0 || size->height == 0) return false;
    const double ratio = (double)size->width / size->height;
    if (ratio < v[IOU_THIN].f || ratio > v[IOU_WIDE].f) return false;
    at[0] = (uint32_t)((r->width - size->width) * x);
    at[1] = (uint32_t)((r->height - size->height) * y);
    const float crop[4] = {(float)at[0], (float)at[1], (float)(at[0] + size->width),
                           (float)(at[1] + size->height)};
    float most = -1;
    for (uint32_t i = 0; i < r->box_count; i++) most = fmaxf(most, overlap(r->moved + 4 * (size_t)i, crop));
    return most >= 0 && most >= (float)least;
}

static int iou_draw(const leat__op_spec *op, leat__rng *rng, leat__recipe *r, leat_error *err)
{
    const leat__value *const options = &op->value[IOU_OPTIONS];
    if (r->box_count == 0) return 0;
    move_boxes(r);
    for (int round = 0; round < ROUNDS; round++) {
        const double least = options->list[leat__rng_below(rng, (uint64_t)options->count)];
        if (least >= 1) return 0;
        for (int64_t i = 0; i < op->value[IOU_TRIALS].i; i++) {
            uint32_t at[2];
            leat__op_size size;
            if (try_crop(op, rng, r, least, at, &size)) return add_crop(r, at[0], at[1], size, true, err);
        }
    }
    return 0;
}

const leat__op_def leat__ops_crops[] = {
    {"FiveCrop", "crops the four corners and the middle: five images of each", LEAT_OP_GEOMETRY, five_params,
     LEAT_COUNT(five_params), five_check, five_size, five_draw, true, .splits = true, .crops = 5},
    {"TenCrop", "crops corners and middle of the image and of its mirror image: ten images of each",
     LEAT_OP_GEOMETRY, ten_params, LEAT_COUNT(ten_params), five_check, five_size, ten_draw, true,
     .splits = true, .crops = 10},
    {"RandomIoUCrop", "crops a part that overlaps a box by a random share", LEAT_OP_GEOMETRY, iou_params,
     LEAT_COUNT(iou_params), iou_check, unknown_size, iou_draw, .boxes = true},
    {0},
};
