/* SPDX-License-Identifier: Apache-2.0
 *
 * Padding as NumPy and Pillow do it, and erased rectangles. One thread per bench.
 */
#include "op/apply.h"

#include <string.h>

#include "base/rng.h"

/* Where position i (which may lie outside) looks into n pixels; -1 = the fill. */
static int64_t look(int64_t i, int64_t n, leat__edge edge)
{
    if (i >= 0 && i < n) return i;
    int64_t period;
    switch (edge) {
    case LEAT__EDGE_EDGE: return i < 0 ? 0 : n - 1;
    case LEAT__EDGE_REFLECT:
        if (n == 1) return 0;
        period = 2 * (n - 1);
        i = ((i % period) + period) % period;
        return i < n ? i : period - i;
    case LEAT__EDGE_SYMMETRIC:
        period = 2 * n;
        i = ((i % period) + period) % period;
        return i < n ? i : period - 1 - i;
    default: return -1;
    }
}

static void pad_row(const uint8_t *src, uint32_t n, uint8_t *dst, const leat__step *s,
                    uint8_t fill)
{
    const uint32_t left = (uint32_t)s->x, end = left + n;
    for (uint32_t x = 0; x < s->width; x++) {
        if (x == left) {
            memcpy(dst + x, src, n);
            x = end - 1;
            continue;
        }
        const int64_t at = look((int64_t)x - left, n, s->edge);
        dst[x] = at < 0 ? fill : src[at];
    }
}

int leat__step_pad(leat__bench *b, const leat__step *s, leat_error *err)
{
    const leat__planes *const in = &b->image;
    leat__planes *const out = &b->spare;
    LEAT_TRY(leat__planes_resize(out, s->width, s->height, in->channels, err));
    for (uint32_t c = 0; c < in->channels; c++) {
        const uint8_t fill = (uint8_t)s->fill[c < 3 ? c : 0];
        for (uint32_t y = 0; y < s->height; y++) {
            uint8_t *const dst = leat__planes_row(out, c, y);
            const int64_t at = look((int64_t)y - s->y, in->height, s->edge);
            if (at < 0)
                memset(dst, fill, s->width);
            else
                pad_row(leat__planes_row(in, c, (uint32_t)at), in->width, dst, s, fill);
        }
    }
    leat__planes_swap(&b->image, &b->spare);
    return 0;
}

void leat__step_erase(leat__bench *b, const leat__step *s)
{
    leat__rng rng;
    leat__rng_init(&rng, s->noise_seed, 0, 0, 0);
    for (uint32_t c = 0; c < b->image.channels; c++)
        for (uint32_t y = 0; y < s->height; y++) {
            uint8_t *const row = leat__planes_row(&b->image, c, (uint32_t)s->y + y) + s->x;
            if (!s->noise) {
                memset(row, (int)s->fill[c < 3 ? c : 0], s->width);
                continue;
            }
            for (uint32_t x = 0; x < s->width; x++) row[x] = (uint8_t)leat__rng_u32(&rng);
        }
}
