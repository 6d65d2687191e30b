/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of the distortions: noise, JPEG artefacts, channel order, median, grid. One thread per workspace.
 */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/hash.h"
#include "base/num.h"
#include "op/apply.h"

/* ---- noise ---- */

/* Quantiles of the normal distribution at (i + 0.5) / 65536 above the median. A draw of 15 bits and a sign
 * gives one normal number, limited to 4.3 standard deviations. */
enum { QUANTILES = 32768 };
static float quantile[QUANTILES];
static pthread_once_t quantiles_made = PTHREAD_ONCE_INIT;

static void make_quantiles(void)
{
    double x = 0;
    for (int i = 0; i < QUANTILES; i++) {
        const double want = (QUANTILES - 0.5 - i) / (2.0 * QUANTILES); /* probability of values above x */
        for (int k = 0; k < 6; k++) /* Newton's method, from the last quantile */
            x += (0.5 * erfc(x * M_SQRT1_2) - want) / (exp(-0.5 * x * x) * 0.3989422804014327);
        quantile[i] = (float)x;
    }
}

/* As torchvision does for 8-bit images: the noise is truncated to integers, the sum clipped to 0..255. One
 * hash of a counter serves four pixels, which takes a third of the time of the generator for draws. */
static uint64_t noise_row(uint8_t *row, uint32_t n, uint64_t counter, float mean, float sigma)
{
    uint64_t bits = 0;
    for (uint32_t x = 0; x < n; x++) {
        bits = x % 4 ? bits >> 16 : leat__mix64(counter++ * UINT64_C(0x9E3779B97F4A7C15));
        const float z = quantile[bits & (QUANTILES - 1)];
        const int v = row[x] + (int)(mean + (bits & QUANTILES ? -z : z) * sigma);
        row[x] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
    return counter;
}

static void noise(leat__workspace *b, const leat__step *s)
{
    uint64_t counter = s->noise_seed;
    pthread_once(&quantiles_made, make_quantiles);
    for (uint32_t c = 0; c < b->image.channels; c++)
        for (uint32_t y = 0; y < b->image.height; y++)
            counter = noise_row(leat__planes_row(&b->image, c, y), b->image.width, counter, s->fill[0],
                                (float)s->amount);
}

/* ---- JPEG ---- */

static int jpeg(leat__workspace *b, uint32_t quality, leat_error *err)
{
    leat__buf *const file = &b->file;
    leat__image_info info;
    if (!b->decoder) LEAT_TRY(leat__decoder_open(&b->decoder, err));
    if (!file->data) leat__buf_init(file, LEAT__MEM_SCRATCH, SIZE_MAX);
    leat__buf_clear(file);
    const leat__encode_opts opts = {.quality = quality, .plain_tables = true};
    LEAT_TRY(leat__codec_encode(LEAT__CODEC_JPEG, &b->image, &opts, file, err));
    const size_t len = file->len;
    if (leat__buf_zeros(file, LEAT__CODEC_PADDING) != 0)
        return leat__fail_nomem(err, len, "a JPEG of a step");
    const uint8_t *const data = (const uint8_t *)file->data;
    LEAT_TRY(leat__codec_probe(LEAT__CODEC_JPEG, data, len, &info, err));
    const leat__decode_request whole = {.width = info.width, .height = info.height};
    return leat__codec_decode_planes(b->decoder, &info, data, len, &whole, &b->image, err);
}

/* ---- channels ---- */

static int permute(leat__workspace *b, int32_t order, leat_error *err)
{
    const leat__planes *const in = &b->image;
    if (in->channels < 3) return 0;
    LEAT_TRY(leat__planes_resize(&b->spare, in->width, in->height, in->channels, err));
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t y = 0; y < in->height; y++)
            memcpy(leat__planes_row(&b->spare, c, y), leat__planes_row(in, (uint32_t)(order >> 2 * c) & 3, y),
                   in->width);
    leat__planes_swap(&b->image, &b->spare);
    return 0;
}

/* ---- median ---- */

/* Counts of the values in the square, and the last median found, which changes little from pixel to pixel. */
typedef struct window {
    uint32_t count[256];
    uint32_t below; /* values smaller than the median */
    uint32_t median, half;
} window;

static void put(window *w, uint8_t v, uint32_t by)
{
    w->count[v] += by; /* by = 1, or -1 modulo 2^32 */
    if (v < w->median) w->below += by;
}

static uint8_t settle(window *w)
{
    while (w->below > w->half) w->below -= w->count[--w->median];
    while (w->below + w->count[w->median] <= w->half) w->below += w->count[w->median++];
    return (uint8_t)w->median;
}

/* Pixels outside repeat the border, as in Pillow's MedianFilter. `column` maps -half .. width + half. */
static void median_row(const uint8_t *const *row, const uint32_t *column, uint32_t side, uint8_t *dst,
                       uint32_t width)
{
    window w = {.half = side * side / 2};
    for (uint32_t t = 0; t < side; t++)
        for (uint32_t x = 0; x < side; x++) put(&w, row[t][column[x]], 1);
    dst[0] = settle(&w);
    for (uint32_t x = 1; x < width; x++) {
        for (uint32_t t = 0; t < side; t++) {
            put(&w, row[t][column[x - 1]], UINT32_MAX);
            put(&w, row[t][column[x + side - 1]], 1);
        }
        dst[x] = settle(&w);
    }
}

static int median(leat__workspace *b, uint32_t side, leat_error *err)
{
    const leat__planes *const in = &b->image;
    const uint32_t half = side / 2, n = in->width + 2 * half;
    const uint8_t **const row = leat__work_fit(&b->work, side * sizeof *row + n * sizeof(uint32_t), err);
    if (!row) return LEAT_ENOMEM;
    uint32_t *const column = (uint32_t *)(row + side);
    for (uint32_t x = 0; x < n; x++) column[x] = x < half ? 0 : LEAT_MIN(x - half, in->width - 1);
    LEAT_TRY(leat__planes_resize(&b->spare, in->width, in->height, in->channels, err));
    for (uint32_t c = 0; c < in->channels; c++)
        for (uint32_t y = 0; y < in->height; y++) {
            for (uint32_t t = 0; t < side; t++)
                row[t] = leat__planes_row(in, c, y + t < half ? 0 : LEAT_MIN(y + t - half, in->height - 1));
            median_row(row, column, side, leat__planes_row(&b->spare, c, y), in->width);
        }
    leat__planes_swap(&b->image, &b->spare);
    return 0;
}

/* ---- grid ---- */

static void grid(leat__workspace *b, const leat__step *s)
{
    const leat__planes *const im = &b->image;
    const uint32_t d = s->width, hole = s->height;
    for (uint32_t c = 0; c < im->channels; c++)
        for (uint32_t y = 0; y < im->height; y++) {
            if ((y + (uint32_t)s->y) % d >= hole) continue;
            uint8_t *const row = leat__planes_row(im, c, y);
            for (uint32_t x = 0, at = (uint32_t)s->x % d; x < im->width; x++, at = at + 1 == d ? 0 : at + 1)
                if (at < hole) row[x] = (uint8_t)s->fill[c < 3 ? c : 0];
        }
}

int leat__step_distort(leat__workspace *b, const leat__step *s, leat_error *err)
{
    switch (s->kind) {
    case LEAT__STEP_NOISE: noise(b, s); return 0;
    case LEAT__STEP_JPEG: return jpeg(b, (uint32_t)s->amount, err);
    case LEAT__STEP_PERMUTE: return permute(b, s->x, err);
    case LEAT__STEP_MEDIAN: return median(b, s->width, err);
    default: grid(b, s); return 0;
    }
}
