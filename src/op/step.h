/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps and recipes. A step is one deterministic change of an image, with all numbers already drawn. A
 * recipe is the list of steps for one sample, with the image size tracked along it. Plain data without
 * ownership; each worker holds one recipe.
 */
#ifndef LEAT_OP_STEP_H
#define LEAT_OP_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "codec/codec.h"
#include "dsp/resizer.h"

typedef enum leat__step_kind {
    /* geometry: also applied to masks (nearest) and boxes */
    LEAT__STEP_CROP,   /* x, y, width, height: inside the image; centers */
    LEAT__STEP_RESIZE, /* width, height, filter */
    LEAT__STEP_FLIP_H,
    LEAT__STEP_FLIP_V,
    LEAT__STEP_PAD,         /* x, y = left, top; width, height = size after; edge; fill */
    LEAT__STEP_AFFINE,      /* matrix[0..5] from output to input; width, height; filter; fill */
    LEAT__STEP_PERSPECTIVE, /* matrix[0..7]; filter; fill */
    LEAT__STEP_ELASTIC,     /* matrix = alpha x, y, sigma x, y; noise_seed; filter; fill */
    /* colour */
    LEAT__STEP_BRIGHTNESS, /* amount = factor, as for the next three */
    LEAT__STEP_CONTRAST,
    LEAT__STEP_SATURATION,
    LEAT__STEP_SHARPNESS,
    LEAT__STEP_HUE, /* amount = shift in [-0.5, 0.5] */
    LEAT__STEP_GRAYSCALE,
    LEAT__STEP_INVERT,
    LEAT__STEP_SOLARIZE,  /* amount = threshold */
    LEAT__STEP_POSTERIZE, /* amount = bits kept */
    LEAT__STEP_EQUALIZE,
    LEAT__STEP_AUTOCONTRAST,
    LEAT__STEP_BLUR,        /* width, height = kernel (odd); amount = sigma */
    LEAT__STEP_NOISE,       /* amount = deviation, fill[0] = mean, of 255; noise_seed */
    LEAT__STEP_JPEG,        /* amount = quality */
    LEAT__STEP_PERMUTE,     /* x = two bits per channel: its source channel */
    LEAT__STEP_MEDIAN,      /* width = side of the square (odd) */
    LEAT__STEP_GRID,        /* width = period, height = side of a hole, x, y = offset; fill */
    LEAT__STEP_CLAHE,       /* width, height = tiles; amount = limit of counts, in multiples of their mean */
    LEAT__STEP_BLEND_START, /* amount = weight of the image; later steps work on copies of it */
    LEAT__STEP_BLEND_ADD,   /* amount = weight of this copy; x = 1: last copy, the sum becomes the image */
    LEAT__STEP_ERASE,       /* x, y, width, height; fill (or noise) on 8-bit pixels */
    LEAT__STEP_ERASE_OUT,   /* the same on the finished, normalised output */
    LEAT__STEP_KINDS
} leat__step_kind;

typedef enum leat__edge {
    LEAT__EDGE_CONSTANT,
    LEAT__EDGE_EDGE,
    LEAT__EDGE_REFLECT,  /* without repeating the border pixel */
    LEAT__EDGE_SYMMETRIC /* repeating it */
} leat__edge;
#define LEAT__EDGE_CHOICES "constant|edge|reflect|symmetric"

typedef struct leat__step {
    leat__step_kind kind;
    int32_t x, y;
    uint32_t width, height; /* see the kind; usually the size of the image after the step */
    leat__filter filter;
    leat__pass_order order; /* RESIZE */
    leat__edge edge;
    bool centers; /* CROP: boxes whose centre is outside are dropped */
    bool noise;   /* ERASE: per-pixel random values, from noise_seed */
    uint64_t noise_seed;
    float fill[LEAT__CHANNELS_MAX]; /* per channel */
    double amount;
    double matrix[8];
} leat__step;

#define LEAT__RECIPE_MAX 64

typedef struct leat__recipe {
    uint32_t count;
    uint32_t width, height; /* of the image after the last step */
    uint32_t in_width, in_height;
    uint32_t crop;      /* which of the images that FiveCrop makes */
    const float *boxes; /* corners in the image before all steps, for draws that depend on them */
    float *moved;       /* room for as many: the boxes after the steps so far */
    uint32_t box_count;
    bool normalized; /* Normalize came before: later draws erase the output */
    leat__step step[LEAT__RECIPE_MAX];
} leat__recipe;

void leat__recipe_start(leat__recipe *r, uint32_t width, uint32_t height);

/* Appends a copy of the step and updates the size. LEAT_ELIMIT when the recipe is full, LEAT_EINVAL when the
 * step does not fit the image. */
int leat__recipe_add(leat__recipe *r, const leat__step *step, leat_error *err) LEAT_MUST_CHECK;

bool leat__step_is_geometry(leat__step_kind kind);
const char *leat__step_name(leat__step_kind kind);

#endif
