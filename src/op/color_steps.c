/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that change values in place, as Pillow's ImageEnhance and ImageOps do. Most use a table of 256
 * values per channel. One thread per workspace.
 */
#include <string.h>

#include "op/apply.h"

typedef uint8_t table[256];

static void rows_of(const leat__planes *im, uint32_t y, uint8_t *row[3])
{
    for (uint32_t c = 0; c < 3; c++) row[c] = leat__planes_row(im, c, y);
}

static void apply_table(leat__workspace *b, uint32_t channel, const table t)
{
    for (uint32_t y = 0; y < b->image.height; y++) {
        uint8_t *const row = leat__planes_row(&b->image, channel, y);
        b->color->lut(row, row, b->image.width, t);
    }
}

static void apply_to_all(leat__workspace *b, const table t)
{
    for (uint32_t c = 0; c < 3; c++) apply_table(b, c, t);
}

/* ---- blends ---- */

static void contrast(leat__workspace *b, double factor)
{
    table t;
    uint64_t sum = 0;
    for (uint32_t y = 0; y < b->image.height; y++) {
        uint8_t *row[3];
        rows_of(&b->image, y, row);
        sum += b->color->luma_sum((const uint8_t *const *)row, b->image.width);
    }
    const double mean = (double)sum / ((double)b->image.width * b->image.height);
    leat__blend_table(t, (uint8_t)(mean + 0.5), (float)factor);
    apply_to_all(b, t);
}

static int saturation(leat__workspace *b, double factor, leat_error *err)
{
    uint8_t *const grey = leat__work_fit(&b->work, b->image.width, err);
    if (!grey) return LEAT_ENOMEM;
    for (uint32_t y = 0; y < b->image.height; y++) {
        uint8_t *row[3];
        rows_of(&b->image, y, row);
        b->color->luma((const uint8_t *const *)row, grey, b->image.width);
        for (int c = 0; c < 3; c++) b->color->blend(grey, row[c], row[c], b->image.width, (float)factor);
    }
    return 0;
}

static int grayscale(leat__workspace *b, leat_error *err)
{
    uint8_t *const grey = leat__work_fit(&b->work, b->image.width, err);
    if (!grey) return LEAT_ENOMEM;
    for (uint32_t y = 0; y < b->image.height; y++) {
        uint8_t *row[3];
        rows_of(&b->image, y, row);
        b->color->luma((const uint8_t *const *)row, grey, b->image.width);
        for (int c = 0; c < 3; c++) memcpy(row[c], grey, b->image.width);
    }
    return 0;
}

static void hue(leat__workspace *b, double shift)
{
    /* as in NumPy: the product is truncated towards zero, then taken modulo 256 */
    const uint8_t by = (uint8_t)(int32_t)(shift * 255);
    for (uint32_t y = 0; y < b->image.height; y++) {
        uint8_t *row[3];
        rows_of(&b->image, y, row);
        b->color->hue(row, b->image.width, by);
    }
}

/* ---- tables ---- */

static void count(leat__workspace *b, uint32_t channel, uint32_t counts[256])
{
    b->color->histogram(b->image.plane[channel], b->image.stride, b->image.width, b->image.height, counts);
}

static void identity(table t)
{
    for (int v = 0; v < 256; v++) t[v] = (uint8_t)v;
}

static void equalize(leat__workspace *b)
{
    for (uint32_t c = 0; c < 3; c++) {
        uint32_t counts[256], used = 0;
        uint64_t total = 0, last = 0;
        table t;
        count(b, c, counts);
        for (int v = 0; v < 256; v++) {
            total += counts[v];
            if (counts[v]) {
                last = counts[v];
                used++;
            }
        }
        const uint64_t step = (total - last) / 255;
        if (used <= 1 || step == 0) continue; /* Pillow's table is the identity in this case */
        uint64_t n = step / 2;
        for (int v = 0; v < 256; v++) {
            const uint64_t level = n / step;
            t[v] = (uint8_t)(level > 255 ? 255 : level);
            n += counts[v];
        }
        apply_table(b, c, t);
    }
}

static void autocontrast(leat__workspace *b)
{
    for (uint32_t c = 0; c < 3; c++) {
        uint32_t counts[256];
        int lo = 0, hi = 255;
        table t;
        count(b, c, counts);
        while (lo < 255 && !counts[lo]) lo++;
        while (hi > 0 && !counts[hi]) hi--;
        if (hi <= lo) continue;
        const double scale = 255.0 / (hi - lo), offset = -lo * scale;
        for (int v = 0; v < 256; v++) {
            const double level = v * scale + offset;
            t[v] = (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : (int)level);
        }
        apply_table(b, c, t);
    }
}

/* Keeps the `keep` bits of each value and inverts the `flip` bits: cheaper than a table. */
static void change_bits(leat__workspace *b, uint8_t keep, uint8_t flip)
{
    const uint32_t width = b->image.width; /* a local copy: the bytes written below may alias it */
    for (uint32_t c = 0; c < b->image.channels; c++)
        for (uint32_t y = 0; y < b->image.height; y++) {
            uint8_t *const row = leat__planes_row(&b->image, c, y);
            for (uint32_t x = 0; x < width; x++) row[x] = (uint8_t)((row[x] & keep) ^ flip);
        }
}

static void table_of(const leat__step *s, table t)
{
    switch (s->kind) {
    case LEAT__STEP_BRIGHTNESS: leat__blend_table(t, 0, (float)s->amount); break;
    case LEAT__STEP_SOLARIZE:
        for (int v = 0; v < 256; v++) t[v] = (uint8_t)(v < s->amount ? v : 255 - v);
        break;
    default: identity(t); break;
    }
}

int leat__step_color(leat__workspace *b, const leat__step *s, leat_error *err)
{
    switch (s->kind) {
    case LEAT__STEP_CONTRAST: contrast(b, s->amount); return 0;
    case LEAT__STEP_SATURATION: return saturation(b, s->amount, err);
    case LEAT__STEP_GRAYSCALE: return grayscale(b, err);
    case LEAT__STEP_HUE: hue(b, s->amount); return 0;
    case LEAT__STEP_EQUALIZE: equalize(b); return 0;
    case LEAT__STEP_AUTOCONTRAST: autocontrast(b); return 0;
    case LEAT__STEP_INVERT: change_bits(b, 255, 255); return 0;
    case LEAT__STEP_POSTERIZE: change_bits(b, (uint8_t)(255 << (8 - (int)s->amount)), 0); return 0;
    default: {
        table t;
        table_of(s, t);
        apply_to_all(b, t);
        return 0;
    }
    }
}
