/* SPDX-License-Identifier: Apache-2.0
 *
 * Recipes: track the image size along the steps. Pure functions.
 */
#include "op/step.h"

#include "base/check.h"
#include "base/num.h"

void leat__recipe_start(leat__recipe *r, uint32_t width, uint32_t height)
{
    LEAT_ASSERT(width > 0 && height > 0);
    r->count = 0;
    r->normalized = false;
    r->crop = r->box_count = 0;
    r->boxes = r->moved = NULL;
    r->width = r->in_width = width;
    r->height = r->in_height = height;
}

bool leat__step_is_geometry(leat__step_kind kind)
{
    return kind <= LEAT__STEP_ELASTIC;
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
        [LEAT__STEP_ELASTIC] = "elastic",
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
        [LEAT__STEP_NOISE] = "noise",
        [LEAT__STEP_JPEG] = "jpeg",
        [LEAT__STEP_PERMUTE] = "permute",
        [LEAT__STEP_MEDIAN] = "median",
        [LEAT__STEP_GRID] = "grid",
        [LEAT__STEP_CLAHE] = "clahe",
        [LEAT__STEP_BLEND_START] = "blend_start",
        [LEAT__STEP_BLEND_ADD] = "blend_add",
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
    const bool sized =
        s->width > 0 && s->height > 0 && s->width <= LEAT__RESIZE_MAX && s->height <= LEAT__RESIZE_MAX;
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
    case LEAT__STEP_MEDIAN: return s->width % 2 == 1;
    case LEAT__STEP_GRID: return s->width > 0;
    case LEAT__STEP_CLAHE: return s->width > 0 && s->height > 0;
    default: return true;
    }
}

int leat__recipe_add(leat__recipe *r, const leat__step *step, leat_error *err)
{
    LEAT_ASSERT((unsigned)step->kind < LEAT__STEP_KINDS);
    LEAT_ASSERT(r->count <= LEAT__RECIPE_MAX);
    if (r->count == LEAT__RECIPE_MAX)
        return leat__fail(err, LEAT_ELIMIT, "more than %d steps for one image", LEAT__RECIPE_MAX);
    if (!fits(r, step))
        return leat__fail(err, LEAT_EINVAL, "%s %d,%d %ux%u does not fit an image of %ux%u",
                          leat__step_name(step->kind), step->x, step->y, step->width, step->height, r->width,
                          r->height);
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
    LEAT_ASSERT(r->width > 0 && r->height > 0);
    return 0;
}
