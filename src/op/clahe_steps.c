/* SPDX-License-Identifier: Apache-2.0
 *
 * Contrast limited adaptive histogram equalisation of each channel, with OpenCV's arithmetic: each tile has
 * a lookup table, and between the centres of four tiles their tables are interpolated. One thread per
 * workspace.
 */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "op/apply.h"

enum { LEVELS = 256 };

/* The tiles along one axis. If the tiles do not divide the image evenly, it is extended by reflection. */
typedef struct axis {
    uint32_t tiles, pixels, tile; /* pixels of the image, and of one tile */
} axis;

/* OpenCV extends both axes when one of them needs it. */
static uint32_t tile_pixels(uint32_t pixels, uint32_t tiles, bool whole)
{
    return whole ? pixels / tiles : (pixels + tiles - pixels % tiles) / tiles;
}

/* Reflects index i into n elements, without repeating the border pixel. */
static uint32_t reflected(uint32_t i, uint32_t n)
{
    if (n == 1) return 0;
    i %= 2 * (n - 1);
    return i < n ? i : 2 * (n - 1) - i;
}

static void clip(uint32_t count[LEVELS], uint32_t limit)
{
    uint32_t over = 0;
    for (int v = 0; v < LEVELS; v++) {
        if (count[v] <= limit) continue;
        over += count[v] - limit;
        count[v] = limit;
    }
    uint32_t rest = over % LEVELS;
    const uint32_t step = rest ? LEAT_MAX(LEVELS / rest, 1) : 1;
    for (int v = 0; v < LEVELS; v++) count[v] += over / LEVELS;
    for (uint32_t v = 0; v < LEVELS && rest > 0; v += step, rest--) count[v]++;
}

static void tile_table(const leat__planes *im, uint32_t c, const axis *ax, const axis *ay, uint32_t tx,
                       uint32_t ty, double limit, uint8_t *table)
{
    uint32_t count[LEVELS] = {0}, sum = 0;
    const uint32_t area = ax->tile * ay->tile;
    for (uint32_t y = ty * ay->tile; y < (ty + 1) * ay->tile; y++) {
        const uint8_t *const row = leat__planes_row(im, c, reflected(y, ay->pixels));
        for (uint32_t x = tx * ax->tile; x < (tx + 1) * ax->tile; x++)
            count[row[x < ax->pixels ? x : reflected(x, ax->pixels)]]++;
    }
    clip(count, (uint32_t)LEAT_MAX(limit * area / LEVELS, 1));
    const float scale = (float)(LEVELS - 1) / (float)area;
    for (int v = 0; v < LEVELS; v++) {
        sum += count[v];
        const float level = rintf((float)sum * scale);
        table[v] = (uint8_t)(level > 255 ? 255 : level);
    }
}

/* The two tiles whose centres are on either side of a pixel, and the weight of the second. */
typedef struct between {
    uint32_t first, second;
    float weight;
} between;

static between find_between(uint32_t i, const axis *a)
{
    const float at = (float)i * (1.0f / (float)a->tile) - 0.5f, low = floorf(at);
    const uint32_t next = (uint32_t)(low + 1);
    return (between){
        .first = low < 0 ? 0 : (uint32_t)low, .second = LEAT_MIN(next, a->tiles - 1), .weight = at - low};
}

static void mix_row(uint8_t *row, const axis *ax, const between *column, const uint8_t *upper,
                    const uint8_t *lower, float weight)
{
    for (uint32_t x = 0; x < ax->pixels; x++) {
        const between *const b = &column[x];
        const uint32_t p = b->first * LEVELS + row[x], q = b->second * LEVELS + row[x];
        const float a = b->weight, a1 = 1.0f - a;
        const float v = ((float)upper[p] * a1 + (float)upper[q] * a) * (1.0f - weight) +
                        ((float)lower[p] * a1 + (float)lower[q] * a) * weight;
        row[x] = (uint8_t)rintf(v);
    }
}

int leat__step_clahe(leat__workspace *b, const leat__step *s, leat_error *err)
{
    const leat__planes *const im = &b->image;
    const bool whole = im->width % s->width == 0 && im->height % s->height == 0;
    const axis ax = {s->width, im->width, tile_pixels(im->width, s->width, whole)};
    const axis ay = {s->height, im->height, tile_pixels(im->height, s->height, whole)};
    const size_t pitch = (size_t)ax.tiles * LEVELS;
    between *const column = leat__work_fit(&b->work, ax.pixels * sizeof *column + ay.tiles * pitch, err);
    if (!column) return LEAT_ENOMEM;
    uint8_t *const tables = (uint8_t *)(column + ax.pixels);
    for (uint32_t x = 0; x < ax.pixels; x++) column[x] = find_between(x, &ax);
    for (uint32_t c = 0; c < im->channels; c++) {
        for (uint32_t ty = 0; ty < ay.tiles; ty++)
            for (uint32_t tx = 0; tx < ax.tiles; tx++)
                tile_table(im, c, &ax, &ay, tx, ty, s->amount, tables + ty * pitch + tx * LEVELS);
        for (uint32_t y = 0; y < ay.pixels; y++) {
            const between at = find_between(y, &ay);
            mix_row(leat__planes_row(im, c, y), &ax, column, tables + at.first * pitch,
                    tables + at.second * pitch, at.weight);
        }
    }
    return 0;
}
