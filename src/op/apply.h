/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps on pixels. A workspace holds the image in flight and the scratch that steps need; each
 * step takes `image` and leaves its result there. One per worker.
 */
#ifndef LEAT_OP_APPLY_H
#define LEAT_OP_APPLY_H

#include "base/buf.h"
#include "dsp/color.h"
#include "dsp/warp.h"
#include "op/image.h"
#include "op/step.h"

/* Scratch memory of one step. Zeroed is empty. */
typedef struct leat__work {
    void *block;
    size_t capacity;
} leat__work;

/* Returns at least `bytes`, aligned to 64, or NULL when out of memory. The next call invalidates the
 * block. */
void *leat__work_fit(leat__work *w, size_t bytes, leat_error *err);

typedef struct leat__workspace {
    leat__planes image; /* in flight */
    leat__planes spare; /* result of a step that cannot work in place */
    const leat__color_dsp *color;
    const leat__warp_dsp *warp;
    leat__work work;
    leat__planes base; /* BLEND: the image that all copies start from */
    float *sum;        /* BLEND: sum of the weighted copies */
    size_t sum_cap;
    leat__decoder *decoder; /* of JPEG steps; opened by the first one */
    leat__buf file;         /* output of the JPEG encoder */
} leat__workspace;

/* A zeroed struct is empty. */
void leat__workspace_reset(leat__workspace *b);

/* Applies any step except those that the head takes and ERASE_OUT. nearest: the image is a mask, so pixels
 * are only moved: filters become nearest, and colour steps do nothing. */
int leat__step_apply(leat__workspace *b, const leat__step *s, bool nearest, leat_error *err) LEAT_MUST_CHECK;

/* The families: pad.c, color_steps.c, blur_steps.c, distort_steps.c,
 * clahe_steps.c, blend_steps.c, warp_steps.c, elastic.c. */
int leat__step_pad(leat__workspace *b, const leat__step *s, leat_error *err) LEAT_MUST_CHECK;
void leat__step_erase(leat__workspace *b, const leat__step *s);
int leat__step_color(leat__workspace *b, const leat__step *s, leat_error *err) LEAT_MUST_CHECK;
int leat__step_sharpness(leat__workspace *b, const leat__step *s, leat_error *err) LEAT_MUST_CHECK;
int leat__step_blur(leat__workspace *b, const leat__step *s, leat_error *err) LEAT_MUST_CHECK;
int leat__step_distort(leat__workspace *b, const leat__step *s, leat_error *err) LEAT_MUST_CHECK;
int leat__step_clahe(leat__workspace *b, const leat__step *s, leat_error *err) LEAT_MUST_CHECK;
int leat__step_blend(leat__workspace *b, const leat__step *s, leat_error *err) LEAT_MUST_CHECK;
int leat__step_elastic(leat__workspace *b, const leat__step *s, leat_error *err) LEAT_MUST_CHECK;
int leat__step_warp(leat__workspace *b, const leat__step *s, leat_error *err) LEAT_MUST_CHECK;

/* Walks over the output of an affine or perspective step from the top, and calls `row` with the source
 * positions of each row. The step's width and height are those of the output. Images and masks use the same
 * arithmetic, so they stay aligned. */
typedef struct leat__warp_walk {
    const leat__warp_dsp *dsp;
    const leat__step *step;
    leat__warp_image in;
    leat__warp_spots spots; /* of one row */
    int32_t *columns;       /* scratch for one more row */
    void (*row)(void *ctx, uint32_t y);
    void *ctx;
} leat__warp_walk;
void leat__warp_rows(const leat__warp_walk *w);

/* Returns the source of position i (which may be outside) among n pixels, or -1 for the fill. */
int64_t leat__pad_look(int64_t i, int64_t n, leat__edge edge);

/* Shared by steps that blur. leat__gaussian computes torchvision's kernel of `taps` weights. leat__reflect
 * returns the index to which a position outside n elements reflects, without repeating the last one. */
void leat__gaussian(float *k, uint32_t taps, double sigma);
uint32_t leat__reflect(int64_t i, uint32_t n);

#endif
