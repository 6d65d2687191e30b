/* SPDX-License-Identifier: Apache-2.0
 *
 * ElasticTransform: see elastic.h for the shifts. The step that moves pixels by them follows torchvision's
 * grid sampling, including the fill at the border. One thread per workspace.
 */
#include "op/elastic.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/num.h"
#include "op/apply.h"

enum { RUN = 64 }; /* blur_row processes this many elements at a time */

void leat__elastic_init(leat__elastic *e, const leat__step *s, uint32_t width, uint32_t height, int axis)
{
    const double *const sigma = s->matrix + 2;
    e->width = width;
    e->height = height;
    e->axis = axis;
    e->seed = s->noise_seed;
    e->scale = (float)(0.5 * s->matrix[axis]);
    e->taps = sigma[0] > 0 ? (uint32_t)(8 * sigma[axis] + 1) | 1u : 1;
    for (int k = 0; k < 2; k++) leat__gaussian(e->kernel[k], e->taps, fmax(sigma[k], 1e-3));
}

/* Returns noise in [-1, 1), with 24 bits. */
static float noise(const leat__elastic *e, uint32_t x, uint32_t y)
{
    const uint64_t h = leat__mix64(e->seed + ((uint64_t)y * e->width + x) * UINT64_C(0x9E3779B97F4A7C15));
    const uint32_t bits = (uint32_t)(e->axis ? h >> 8 : h >> 40) & 0xffffffu;
    return (float)bits * 0x1p-23f - 1.0f;
}

/* Computes the same sums as the whole field does, in the same order. */
float leat__elastic_at(const leat__elastic *e, uint32_t x, uint32_t y)
{
    const int64_t half = e->taps / 2;
    float sum = 0;
    for (uint32_t t = 0; t < e->taps; t++) {
        const uint32_t v = leat__reflect((int64_t)y + t - half, e->height);
        float row = 0;
        for (uint32_t u = 0; u < e->taps; u++)
            row += e->kernel[0][u] * noise(e, leat__reflect((int64_t)x + u - half, e->width), v);
        sum += e->kernel[1][t] * row;
    }
    return sum * e->scale;
}

/* ---- the whole field ---- */

typedef struct rows {
    float *padded, *blurred; /* one row or column with its reflected ends, and the same blurred */
    float *turned;           /* blurred along x, column by column */
} rows;

static void blur_line(const leat__color_dsp *dsp, const rows *w, const float *kernel, uint32_t taps,
                      uint32_t n)
{
    const uint32_t half = taps / 2;
    for (uint32_t i = 0; i < half; i++) {
        w->padded[i] = w->padded[half + leat__reflect((int64_t)i - half, n)];
        w->padded[half + n + i] = w->padded[half + leat__reflect((int64_t)n + i, n)];
    }
    dsp->blur_row(w->padded, w->blurred, n, kernel, taps);
}

static void make_field(const leat__color_dsp *dsp, const leat__elastic *e, const rows *w, float *field)
{
    const uint32_t half = e->taps / 2;
    for (uint32_t y = 0; y < e->height; y++) {
        for (uint32_t x = 0; x < e->width; x++) w->padded[half + x] = noise(e, x, y);
        blur_line(dsp, w, e->kernel[0], e->taps, e->width);
        for (uint32_t x = 0; x < e->width; x++) w->turned[(size_t)x * e->height + y] = w->blurred[x];
    }
    for (uint32_t x = 0; x < e->width; x++) {
        memcpy(w->padded + half, w->turned + (size_t)x * e->height, e->height * sizeof *field);
        blur_line(dsp, w, e->kernel[1], e->taps, e->height);
        for (uint32_t y = 0; y < e->height; y++) field[(size_t)y * e->width + x] = w->blurred[y] * e->scale;
    }
}

/* ---- pixels ---- */

typedef struct job {
    const leat__warp_dsp *dsp;
    const leat__step *step;
    const leat__planes *in, *out;
    leat__warp_image laid;
    leat__warp_spots spots; /* of one row */
    uint32_t *row;          /* its pixels */
    float *shift[2];
} job;

static void nearest_row(const job *j, uint32_t y)
{
    const uint32_t w = j->in->width, h = j->in->height;
    const float *const dx = j->shift[0] + (size_t)y * w, *const dy = j->shift[1] + (size_t)y * w;
    for (uint32_t x = 0; x < w; x++) {
        const double u = rint(x + (double)dx[x]), v = rint(y + (double)dy[x]);
        const bool in = u >= 0 && v >= 0 && u < w && v < h;
        j->spots.at[x] = in ? (int32_t)v * j->laid.stride + (int32_t)u : j->laid.outside;
    }
    j->dsp->nearest(&j->laid, j->spots, j->row, w);
}

/* Computes a pixel that is partly outside. torchvision applies the share inside twice: once because pixels
 * outside count as 0, and once when it blends with the fill. */
static uint32_t border_pixel(const job *j, double u, double v)
{
    const double x0 = floor(u), y0 = floor(v);
    double sum[4] = {0}, share = 0;
    uint32_t px = 0;
    for (int k = 0; k < 4; k++) {
        const double x = x0 + k % 2, y = y0 + k / 2;
        if (!(x >= 0 && y >= 0 && x < j->in->width && y < j->in->height)) continue;
        const double weight = (1 - fabs(u - x)) * (1 - fabs(v - y));
        share += weight;
        for (uint32_t c = 0; c < j->in->channels; c++)
            sum[c] += weight * leat__planes_row(j->in, c, (uint32_t)y)[(uint32_t)x];
    }
    for (uint32_t c = 0; c < j->in->channels; c++) {
        const double fill = (uint8_t)j->step->fill[c < 3 ? c : 0];
        px |= (uint32_t)(uint8_t)rint((sum[c] - fill) * share + fill) << 8 * c;
    }
    return px;
}

static void bilinear_row(const job *j, uint32_t y)
{
    const uint32_t w = j->in->width, h = j->in->height;
    const float *const dx = j->shift[0] + (size_t)y * w, *const dy = j->shift[1] + (size_t)y * w;
    bool border = false;
    for (uint32_t x = 0; x < w; x++) {
        const double u = x + (double)dx[x], v = y + (double)dy[x];
        const bool in = u >= 0 && v >= 0 && u < w - 1.0 && v < h - 1.0;
        const int32_t left = in ? (int32_t)u : 0, top = in ? (int32_t)v : 0;
        border |= !in;
        j->spots.at[x] = in ? top * j->laid.stride + left : j->laid.outside;
        j->spots.dx[x] = in ? u - left : 0;
        j->spots.dy[x] = in ? v - top : 0;
    }
    j->dsp->rounded(&j->laid, j->spots, j->row, w);
    for (uint32_t x = 0; border && x < w; x++)
        if (j->spots.at[x] == j->laid.outside)
            j->row[x] = border_pixel(j, x + (double)dx[x], y + (double)dy[x]);
}

static void move_pixels(const job *j)
{
    for (uint32_t y = 0; y < j->in->height; y++) {
        uint8_t *dst[4] = {NULL};
        for (uint32_t c = 0; c < j->in->channels; c++) dst[c] = leat__planes_row(j->out, c, y);
        if (j->step->filter == LEAT__FILTER_NEAREST) nearest_row(j, y);
        else bilinear_row(j, y);
        j->dsp->unpack(j->row, dst, j->in->channels, j->in->width);
    }
}

/* Length of a line: the taps on both sides, and the blocks that may begin at its last element. */
static size_t line_floats(const leat__planes *im)
{
    return (size_t)LEAT_MAX(im->width, im->height) + LEAT__ELASTIC_TAPS_MAX + 2 * RUN;
}

int leat__step_elastic(leat__workspace *b, const leat__step *s, leat_error *err)
{
    const leat__planes *const in = &b->image;
    const size_t n = leat__warp_spots_for(in->width), area = (size_t)in->width * in->height;
    const size_t laid = leat__warp_pixels(in->width, in->height), line = line_floats(in);
    leat__elastic e;
    if (laid == 0)
        return leat__fail(err, LEAT_ELIMIT, "an image of %u x %u is too large for ElasticTransform",
                          in->width, in->height);
    const size_t floats = 2 * n + laid + 3 * area + 2 * line;
    double *const work = leat__work_fit(&b->work, 2 * n * sizeof *work + floats * sizeof(float), err);
    if (!work) return LEAT_ENOMEM;
    LEAT_TRY(leat__planes_resize(&b->spare, in->width, in->height, in->channels, err));
    int32_t *const at = (int32_t *)(work + 2 * n);
    uint32_t *const memory = (uint32_t *)(at + 2 * n);
    float *const field = (float *)(memory + laid);
    const rows lines = {
        .turned = field + 2 * area, .padded = field + 3 * area, .blurred = field + 3 * area + line};
    memset(lines.padded, 0, 2 * line * sizeof *field); /* block ends are read, never used */
    const uint8_t *plane[4];
    uint8_t fill[4];
    for (uint32_t c = 0; c < 4; c++) {
        plane[c] = in->plane[c < in->channels ? c : 0];
        fill[c] = (uint8_t)s->fill[c < 3 ? c : 0];
    }
    const job j = {.dsp = b->warp,
                   .step = s,
                   .in = in,
                   .out = &b->spare,
                   .laid =
                       leat__warp_image_lay(b->warp, plane, in->stride, in->width, in->height, fill, memory),
                   .spots = {.at = at, .dx = work, .dy = work + n},
                   .row = (uint32_t *)(at + n),
                   .shift = {field, field + area}};
    for (int axis = 0; axis < 2; axis++) {
        leat__elastic_init(&e, s, in->width, in->height, axis);
        make_field(b->color, &e, &lines, j.shift[axis]);
    }
    move_pixels(&j);
    leat__planes_swap(&b->image, &b->spare);
    return 0;
}
