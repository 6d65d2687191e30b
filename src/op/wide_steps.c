/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps on wide images: see wide_ops.h. A crop moves the view. Flips, pads and nearest maps copy pixels;
 * nearest maps use the same positions as for 8-bit images and masks. Bilinear and bicubic maps compute in
 * double with Pillow's formulas. One thread per workspace.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "op/apply.h"
#include "op/wide_ops.h"
#include "probe/cpu.h"

void leat__wide_workspace_reset(leat__wide_workspace *b)
{
    leat__wide_reset(&b->image);
    leat__wide_reset(&b->spare);
    leat__axis_reset(&b->x);
    leat__axis_reset(&b->y);
    leat__free(b->work.block);
    memset(b, 0, sizeof *b);
}

static void swap(leat__wide_workspace *b)
{
    const leat__wide t = b->image;
    b->image = b->spare;
    b->spare = t;
}

static void crop(leat__wide *im, const leat__step *s)
{
    im->pixels += (size_t)s->y * im->stride + (size_t)s->x * leat__wide_pixel(im);
    im->width = s->width;
    im->height = s->height;
}

/* Writes one pixel of the fill, in the type of the image. */
static void fill_pixel(const leat__wide *im, const leat__step *s, uint8_t *pixel)
{
    leat__wide_from_float(im->type, s->fill, pixel, im->channels);
}

static int pad(leat__wide_workspace *b, const leat__step *s, leat_error *err)
{
    const leat__wide *const in = &b->image;
    const size_t pixel = leat__wide_pixel(in);
    uint8_t fill[LEAT__CHANNELS_MAX * sizeof(float)];
    fill_pixel(in, s, fill);
    LEAT_TRY(leat__wide_resize(&b->spare, in->type, in->channels, s->width, s->height, err));
    for (uint32_t y = 0; y < s->height; y++) {
        const int64_t row = leat__pad_look((int64_t)y - s->y, in->height, s->edge);
        uint8_t *to = leat__wide_row(&b->spare, y);
        for (uint32_t x = 0; x < s->width; x++, to += pixel) {
            const int64_t at = row < 0 ? -1 : leat__pad_look((int64_t)x - s->x, in->width, s->edge);
            memcpy(to, at < 0 ? fill : leat__wide_row(in, (uint32_t)row) + (size_t)at * pixel, pixel);
        }
    }
    swap(b);
    return 0;
}

/* ---- maps ---- */

/* Computes the source (u, v) of output position (x, y). */
static void move(const leat__step *s, double x, double y, double *u, double *v)
{
    const double *const a = s->matrix;
    *u = a[0] * x + a[1] * y + a[2];
    *v = a[3] * x + a[4] * y + a[5];
    if (s->kind == LEAT__STEP_AFFINE) return;
    const double by = a[6] * x + a[7] * y + 1;
    *u /= by;
    *v /= by;
}

static uint32_t within(int64_t i, uint32_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : (uint32_t)i;
}

/* Reads four neighbours along a row, from `x` - 1 on; pixels outside repeat the border. */
static void row_of(const leat__wide *im, int64_t x, int64_t y, uint32_t c, double v[4])
{
    const size_t size = leat__sample_bytes(im->type), pixel = leat__wide_pixel(im);
    const uint8_t *const row = leat__wide_row(im, within(y, im->height)) + c * size;
    for (int k = 0; k < 4; k++) {
        float f;
        leat__wide_to_float(im->type, row + within(x - 1 + k, im->width) * pixel, &f, 1);
        v[k] = f;
    }
}

static double cubic(const double v[4], double d)
{
    const double p2 = -v[0] + v[2], p3 = 2 * (v[0] - v[1]) + v[2] - v[3], p4 = -v[0] + v[1] - v[2] + v[3];
    return v[1] + d * (p2 + d * (p3 + d * p4));
}

static float blend(const leat__wide *im, bool bicubic, double u, double v, uint32_t c)
{
    const double x = floor(u - 0.5), y = floor(v - 0.5), dx = u - 0.5 - x, dy = v - 0.5 - y;
    double at[4], down[4];
    if (bicubic) {
        for (int k = 0; k < 4; k++) {
            row_of(im, (int64_t)x, (int64_t)y - 1 + k, c, at);
            down[k] = cubic(at, dx);
        }
        return (float)cubic(down, dy);
    }
    for (int k = 0; k < 2; k++) {
        row_of(im, (int64_t)x, (int64_t)y + k, c, at);
        down[k] = at[1] + (at[2] - at[1]) * dx;
    }
    return (float)(down[0] + (down[1] - down[0]) * dy);
}

/* A nearest map in progress. */
typedef struct nearest {
    const leat__wide *in, *out;
    const uint8_t *fill;
    const int32_t *at; /* source of each pixel of a row; -1 = the fill */
} nearest;

static void copy_row(void *ctx, uint32_t y)
{
    const nearest *const j = ctx;
    const uint32_t w = j->in->width;
    const size_t pixel = leat__wide_pixel(j->in);
    uint8_t *to = leat__wide_row(j->out, y);
    for (uint32_t x = 0; x < j->out->width; x++, to += pixel) {
        const uint32_t at = (uint32_t)j->at[x];
        memcpy(to, j->at[x] < 0 ? j->fill : leat__wide_row(j->in, at / w) + at % w * pixel, pixel);
    }
}

/* Uses the same positions as for 8-bit images. */
static int warp_nearest(leat__wide_workspace *b, const leat__step *s, const uint8_t *fill, leat_error *err)
{
    const leat__wide *const in = &b->image;
    const size_t n = leat__warp_spots_for(s->width);
    if (leat__warp_pixels(in->width, in->height) == 0)
        return leat__fail(err, LEAT_ELIMIT, "an image of %u x %u is too large to be rotated or warped",
                          in->width, in->height);
    if (!b->warp) b->warp = leat__warp_dsp_for(leat__cpu_flags());
    double *const work = leat__work_fit(&b->work, n * (2 * sizeof(double) + 2 * sizeof(int32_t)), err);
    if (!work) return LEAT_ENOMEM;
    int32_t *const at = (int32_t *)(work + 2 * n);
    nearest j = {.in = in, .out = &b->spare, .fill = fill, .at = at};
    leat__warp_rows(&(leat__warp_walk){
        .dsp = b->warp,
        .step = s,
        .in = {.stride = (int32_t)in->width, .outside = -1, .width = in->width, .height = in->height},
        .spots = {.at = at, .dx = work, .dy = work + n},
        .columns = at + n,
        .row = copy_row,
        .ctx = &j});
    return 0;
}

static void warp_blended(leat__wide_workspace *b, const leat__step *s, const uint8_t *fill)
{
    const leat__wide *const in = &b->image;
    const size_t pixel = leat__wide_pixel(in), size = leat__sample_bytes(in->type);
    const double w = in->width, h = in->height;
    for (uint32_t y = 0; y < s->height; y++) {
        uint8_t *to = leat__wide_row(&b->spare, y);
        for (uint32_t x = 0; x < s->width; x++, to += pixel) {
            double u, v;
            move(s, x + 0.5, y + 0.5, &u, &v);
            if (!(u >= 0 && v >= 0 && u < w && v < h)) {
                memcpy(to, fill, pixel);
                continue;
            }
            for (uint32_t c = 0; c < in->channels; c++) {
                const float f = blend(in, s->filter == LEAT__FILTER_BICUBIC, u, v, c);
                leat__wide_from_float(in->type, &f, to + c * size, 1);
            }
        }
    }
}

static int warp(leat__wide_workspace *b, const leat__step *step, leat_error *err)
{
    const leat__wide *const in = &b->image;
    uint8_t fill[LEAT__CHANNELS_MAX * sizeof(float)];
    leat__step s = *step;
    if (s.kind == LEAT__STEP_PERSPECTIVE) {
        s.width = in->width;
        s.height = in->height;
    }
    fill_pixel(in, &s, fill);
    LEAT_TRY(leat__wide_resize(&b->spare, in->type, in->channels, s.width, s.height, err));
    if (s.filter == LEAT__FILTER_NEAREST) LEAT_TRY(warp_nearest(b, &s, fill, err));
    else warp_blended(b, &s, fill);
    swap(b);
    return 0;
}

static int turn(leat__wide_workspace *b, uint32_t orientation, leat_error *err)
{
    LEAT_TRY(leat__wide_turn(&b->image, orientation, &b->spare, err));
    swap(b);
    return 0;
}

int leat__wide_apply(leat__wide_workspace *b, const leat__step *s, leat_error *err)
{
    switch (s->kind) {
    case LEAT__STEP_CROP: crop(&b->image, s); return 0;
    case LEAT__STEP_FLIP_H: return turn(b, 2, err);
    case LEAT__STEP_FLIP_V: return turn(b, 4, err);
    case LEAT__STEP_RESIZE: return leat__wide_resample(b, s, err);
    case LEAT__STEP_PAD: return pad(b, s, err);
    case LEAT__STEP_AFFINE:
    case LEAT__STEP_PERSPECTIVE: return warp(b, s, err);
    default:
        return leat__fail(err, LEAT_EINTERNAL, "the step %s has no place here", leat__step_name(s->kind));
    }
}
