/* SPDX-License-Identifier: Apache-2.0
 *
 * See image_noise.h. The levels of blocks are counted in bins, so their order does not matter.
 */
#include "curate/image_noise.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/thread.h"
#include "dsp/tile_entropy.h"

#define BIN 0.25 /* levels per bin */
/* The filter's squared response to white noise of variance 1: to pixels, and to the frequencies of a block,
 * whose edges are mirrored */
#define GAIN_PIXELS 36.0
#define GAIN_BLOCK 25.0
#define FRACTION 16.0  /* weights are multiples of 1/16 */
#define QUANT_MOST 255 /* larger steps count as this one, so that sums fit in 64 bits */

static double response[64]; /* of the filter to each frequency, squared */
static leat__once once = LEAT__ONCE_INIT;

static void make_response(void)
{
    const double step = 3.14159265358979323846 / 8;
    for (int v = 0; v < 8; v++)
        for (int u = 0; u < 8; u++) {
            const double a = (2 - 2 * cos(v * step)) * (2 - 2 * cos(u * step));
            response[8 * v + u] = a * a;
        }
}

void leat__image_noise_begin(leat__image_noise *n, uint32_t width, uint32_t height, const uint16_t *quant)
{
    memset(n, 0, sizeof *n);
    n->wide = width / 8;
    n->high = height / 8;
    n->last_row = height > 1 ? height - 2 : 0;
    n->step = 1;
    while (leat__ceil_div(n->wide, n->step) * leat__ceil_div(n->high, n->step) > LEAT__NOISE_BLOCKS)
        n->step++;
    if (!quant) return;
    leat__once_run(&once, make_response);
    for (int i = 0; i < 64; i++) {
        const double q = LEAT_MIN(quant[i], QUANT_MOST);
        n->weight[i] = (uint64_t)llrint(response[i] * q * q * FRACTION);
    }
}

static bool is_measured(const leat__image_noise *n, uint32_t x, uint32_t y)
{
    return x < n->wide && y < n->high && x % n->step == 0 && y % n->step == 0;
}

static void add_level(leat__image_noise *n, double mean_square)
{
    const double level = sqrt(mean_square);
    n->count[(uint32_t)LEAT_MIN(level / BIN, LEAT__NOISE_BINS - 1)]++;
}

void leat__image_noise_plain(leat__image_noise *n, const int16_t *blocks, uint32_t x, uint32_t y,
                             uint32_t count)
{
    if (y % n->step != 0) return;
    for (uint32_t b = 0; b < count; b++, blocks += 64) {
        uint64_t sum = 0;
        if (!is_measured(n, x + b, y)) continue;
        for (int i = 0; i < 64; i++) sum += n->weight[i] * (uint64_t)((int64_t)blocks[i] * blocks[i]);
        add_level(n, (double)sum / (64 * FRACTION * GAIN_BLOCK));
    }
}

static uint64_t sum_sparse(const leat__image_noise *n, const leat__tile_coefs *coefs, uint32_t b)
{
    const int16_t *value = coefs->value + coefs->first[b];
    uint64_t sum = 0;
    for (uint64_t mask = coefs->mask[b]; mask != 0; mask &= mask - 1, value++)
        sum += n->weight[leat__tile_order[__builtin_ctzll(mask)]] * (uint64_t)((int64_t)*value * *value);
    return sum;
}

void leat__image_noise_area(leat__image_noise *n, const leat__tile_coefs *coefs, const leat__idct_area *area,
                            uint32_t x, uint32_t y)
{
    for (uint32_t i = 0; i < area->high; i++)
        for (uint32_t k = 0; k < area->wide; k++)
            if (is_measured(n, x + k, y + i))
                add_level(n, (double)sum_sparse(n, coefs, area->first + i * area->pitch + k) /
                                 (64 * FRACTION * GAIN_BLOCK));
}

/* Counts the blocks of a finished row. */
static void end_row(leat__image_noise *n)
{
    const uint32_t measured = (uint32_t)leat__ceil_div(n->wide, n->step);
    for (uint32_t i = 0; i < measured; i++)
        if (n->pixels[i] > 0) add_level(n, (double)n->sum[i] / (GAIN_PIXELS * n->pixels[i]));
    memset(n->sum, 0, sizeof n->sum);
    memset(n->pixels, 0, sizeof n->pixels);
}

void leat__image_noise_row(leat__image_noise *n, uint32_t y, const int16_t *above, const int16_t *at,
                           const int16_t *below, uint32_t width)
{
    if (!is_measured(n, 0, y / 8)) return;
    for (uint32_t b = 0; b < n->wide; b += n->step) {
        const uint32_t from = LEAT_MAX(8 * b, 1), to = LEAT_MIN(8 * b + 8, width - 1);
        uint64_t sum = 0;
        for (uint32_t x = from; x < to; x++) {
            const int v = above[x - 1] - 2 * above[x] + above[x + 1] - 2 * at[x - 1] + 4 * at[x] -
                          2 * at[x + 1] + below[x - 1] - 2 * below[x] + below[x + 1];
            sum += (uint64_t)(v * v);
        }
        n->sum[b / n->step] += sum;
        n->pixels[b / n->step] += to - from;
    }
    if (y % 8 == 7 || y == n->last_row) end_row(n);
}

double leat__image_noise_level(const leat__image_noise *n)
{
    double blocks = 0, below = 0;
    for (int i = 0; i < LEAT__NOISE_BINS; i++) blocks += n->count[i];
    for (int i = 0; i < LEAT__NOISE_BINS; i++) {
        if (blocks == 0 || below + n->count[i] < blocks / 4) {
            below += n->count[i];
            continue;
        }
        return i == 0 ? 0 : BIN * (i + (blocks / 4 - below) / n->count[i]);
    }
    return (double)NAN;
}
