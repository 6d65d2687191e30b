/* SPDX-License-Identifier: Apache-2.0
 *
 * See image_score.h. Contrast and blur of JPEGs are computed from the energies of their
 * coefficients: by Parseval's theorem these are sums of squares of pixels, and a linear filter
 * multiplies each frequency by a constant.
 */
#include "curate/image_score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/num.h"
#include "base/thread.h"

const char *const leat__look_names[LEAT__LOOKS] = {
#define LEAT__LOOK_NAME(id, name, help) name,
    LEAT__LOOK_MAP(LEAT__LOOK_NAME)
#undef LEAT__LOOK_NAME
};

static double laplacian[64]; /* squared response to each frequency */
static leat__once once = LEAT__ONCE_INIT;

static void make_tables(void)
{
    const double step = 3.14159265358979323846 / 8;
    for (int v = 0; v < 8; v++)
        for (int u = 0; u < 8; u++) {
            const double a = 4 - 2 * cos(v * step) - 2 * cos(u * step);
            laplacian[8 * v + u] = a * a;
        }
}

/* Builds IJG's table for a quality. Returns its distance from `quant` or, if that is NULL, the sum of
 * its numbers. */
static int32_t compare_tables(const uint8_t standard[64], int32_t quality, const uint16_t *quant)
{
    const int32_t scale = quality < 50 ? 5000 / quality : 200 - 2 * quality;
    int32_t sum = 0;
    for (int i = 0; i < 64; i++) {
        const int32_t q = LEAT_MIN(LEAT_MAX((standard[i] * scale + 50) / 100, 1), 255);
        sum += quant ? abs(q - quant[i]) : q;
    }
    return sum;
}

/* Returns the quality setting, 1 to 100, of an encoder with IJG's tables; the nearest one for other
 * tables. */
static int jpeg_quality(const uint16_t quant[64])
{
    static const uint8_t standard[64] = {
        16, 11,  10,  16, 24, 40, 51, 61, 12,  12,  14,  19,  26, 58, 60, 55,  14,  13,  16,  24, 40, 57,
        69, 56,  14,  17, 22, 29, 51, 87, 80,  62,  18,  22,  37, 56, 68, 109, 103, 77,  24,  35, 55, 64,
        81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98,  112, 100, 103, 99};
    int32_t sum = 0, low = 1, high = 100;
    for (int i = 0; i < 64; i++) sum += quant[i];
    while (low < high) { /* sums fall as quality rises: find the lowest quality that is not above */
        const int32_t middle = (low + high) / 2;
        if (compare_tables(standard, middle, NULL) > sum) low = middle + 1;
        else high = middle;
    }
    return low > 1 && compare_tables(standard, low - 1, quant) < compare_tables(standard, low, quant)
               ? low - 1
               : low;
}

/* Counts the samples with each value. Uses several tables, so that equal neighbours do not stall. */
static void count_values(const leat__small_plane *p, uint32_t total[256])
{
    uint32_t bins[4][256] = {{0}};
    for (uint32_t y = 0; y < p->height; y++) {
        const uint8_t *row = p->data + y * p->stride;
        uint32_t x = 0;
        for (; x + 8 <= p->width; x += 8) {
            const uint64_t eight = leat__load_u64(row + x);
            for (uint32_t i = 0; i < 8; i++) bins[i % 4][eight >> 8 * i & 255]++;
        }
        for (; x < p->width; x++) bins[x % 4][row[x]]++;
    }
    for (int i = 0; i < 256; i++) total[i] = bins[0][i] + bins[1][i] + bins[2][i] + bins[3][i];
}

/* Caches share x log2(share) of counts from n samples, since small counts are frequent. */
typedef struct information {
    double n, known[64]; /* 0: not computed yet */
} information;

static double information_of(information *f, uint32_t count)
{
    double *known = count < LEAT_COUNT(f->known) ? &f->known[count] : NULL;
    if (known && *known != 0) return *known;
    const double share = count / f->n, bits = share * log2(share);
    if (known) *known = bits;
    return bits;
}

/* Computes mean, percentiles and entropy. Returns the variance of the samples. */
static double score_histogram(const leat__small_plane *p, double score[LEAT__LOOKS])
{
    static const struct {
        leat__look which;
        double share;
    } marks[] = {{LEAT__LOOK_P1, 0.01},
                 {LEAT__LOOK_P5, 0.05},
                 {LEAT__LOOK_P50, 0.5},
                 {LEAT__LOOK_P95, 0.95},
                 {LEAT__LOOK_P99, 0.99}};
    uint32_t bins[256];
    count_values(p, bins);
    const double n = (double)p->width * p->height;
    information known = {.n = n};
    double sum = 0, squares = 0, entropy = 0, below = 0;
    size_t next = 0;
    for (int i = 0; i < 256; i++) {
        const double count = bins[i];
        if (bins[i] == 0) continue;
        sum += count * i;
        squares += count * i * i;
        entropy -= information_of(&known, bins[i]);
        below += count;
        while (next < LEAT_COUNT(marks) && below >= marks[next].share * n) score[marks[next++].which] = i;
    }
    score[LEAT__LOOK_MEAN] = sum / n;
    score[LEAT__LOOK_ENTROPY] = entropy;
    return squares / n - sum / n * (sum / n);
}

/* Returns the variance of the detail finer than the samples, and scores that of the Laplacian of the
 * pixels. `per`: samples per block side; their frequencies are already in the samples. */
static double score_energy(const leat__image_small *s, uint32_t per, double score[LEAT__LOOKS])
{
    double finer = 0, edges = 0;
    for (int i = 1; i < 64; i++) {
        const double q = s->quant[i], energy = (double)s->energy[i] * q * q;
        const bool seen = (uint32_t)(i / 8) < per && (uint32_t)(i % 8) < per;
        if (!seen) finer += energy;
        edges += energy * laplacian[i];
    }
    const double pixels = 64.0 * (double)LEAT_MAX(s->blocks, 1);
    score[LEAT__LOOK_BLUR] = edges / pixels;
    return finer / pixels;
}

static double variance(double sum, double squares, double n)
{
    return n > 0 ? LEAT_MAX(squares / n - sum / n * (sum / n), 0) : 0;
}

/* Computes the distances from grey of up to ROOTS samples; compilers vectorise the loop. */
#define ROOTS 64
static void colour_distances(float *out, const uint8_t *cb, const uint8_t *cr, uint32_t n, int32_t sum[2])
{
    int32_t all[2] = {0};
    for (uint32_t i = 0; i < n; i++) {
        const int a = cb[i] - 128, b = cr[i] - 128;
        all[0] += a;
        all[1] += b;
        out[i] = sqrtf((float)(a * a + b * b));
    }
    sum[0] = all[0];
    sum[1] = all[1];
}

static void score_colour(const leat__image_small *s, double score[LEAT__LOOKS])
{
    const leat__small_plane *cb = &s->plane[1], *cr = &s->plane[2];
    int64_t sum[2] = {0};
    double far = 0;
    if (s->components < 3) return;
    for (uint32_t y = 0; y < cb->height; y++)
        for (uint32_t x = 0; x < cb->width; x += ROOTS) {
            const uint32_t n = LEAT_MIN(cb->width - x, ROOTS);
            float distance[ROOTS];
            int32_t part[2];
            colour_distances(distance, cb->data + y * cb->stride + x, cr->data + y * cr->stride + x, n, part);
            for (uint32_t i = 0; i < n; i++) far += distance[i]; /* in order: the same on every machine */
            sum[0] += part[0];
            sum[1] += part[1];
        }
    const double n = (double)cb->width * cb->height, a = (double)sum[0] / n, b = (double)sum[1] / n;
    score[LEAT__LOOK_SATURATION] = far / n;
    score[LEAT__LOOK_CAST] = sqrt(a * a + b * b);
}

void leat__image_score(const leat__image_small *s, double score[LEAT__LOOKS])
{
    const double width = s->info.width, height = s->info.height;
    leat__once_run(&once, make_tables);
    memset(score, 0, LEAT__LOOKS * sizeof *score);
    double spread = score_histogram(&s->plane[0], score);
    score[LEAT__LOOK_QUALITY] = s->has_quant ? jpeg_quality(s->quant) : -1;
    if (s->coefficients) {
        const uint32_t per = LEAT_MAX(1, (uint32_t)lrintf(8 * s->plane[0].across / (float)s->info.width));
        spread = LEAT_MAX(spread, 0) + score_energy(s, per, score);
    } else {
        spread = variance(s->sum, s->squares, width * height);
        score[LEAT__LOOK_MEAN] = 128 + s->sum / (width * height);
        score[LEAT__LOOK_BLUR] =
            s->edges > 1 ? variance(s->edge_sum, s->edge_squares, (double)s->edges) : (double)NAN;
    }
    score[LEAT__LOOK_CONTRAST] = sqrt(spread);
    score_colour(s, score);
    score[LEAT__LOOK_ASPECT] = LEAT_MAX(width, height) / LEAT_MIN(width, height);
    score[LEAT__LOOK_SIZE] = sqrt(width * height);
    score[LEAT__LOOK_NOISE] = leat__image_noise_level(&s->noise);
}
