/* SPDX-License-Identifier: Apache-2.0
 *
 * Padding as NumPy and Pillow do it, and erased rectangles. One thread per workspace.
 */
#include "op/apply.h"

#include <string.h>

#include "base/rng.h"

int64_t leat__pad_look(int64_t i, int64_t n, leat__edge edge)
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

/* The padding of a row: the source position of each pixel left and right of the image. */
typedef struct sides {
    uint32_t left, right;
    int32_t *look; /* left + right positions */
} sides;

static void pad_row(const uint8_t *src, uint32_t n, uint8_t *dst, const sides *s, bool filled, int fill)
{
    uint8_t *const after = dst + s->left + n;
    memcpy(dst + s->left, src, n);
    if (filled) {
        memset(dst, fill, s->left);
        memset(after, fill, s->right);
        return;
    }
    for (uint32_t x = 0; x < s->left; x++) dst[x] = src[s->look[x]];
    for (uint32_t x = 0; x < s->right; x++) after[x] = src[s->look[s->left + x]];
}

int leat__step_pad(leat__workspace *b, const leat__step *s, leat_error *err)
{
    const leat__planes *const in = &b->image;
    leat__planes *const out = &b->spare;
    const bool filled = s->edge == LEAT__EDGE_CONSTANT;
    sides side = {.left = (uint32_t)s->x, .right = s->width - (uint32_t)s->x - in->width};
    side.look = leat__work_fit(&b->work, ((size_t)side.left + side.right) * sizeof *side.look + 1, err);
    if (!side.look) return LEAT_ENOMEM;
    LEAT_TRY(leat__planes_resize(out, s->width, s->height, in->channels, err));
    for (uint32_t x = 0; x < side.left + side.right; x++) {
        const int64_t i = x < side.left ? (int64_t)x - side.left : (int64_t)x - side.left + in->width;
        side.look[x] = (int32_t)leat__pad_look(i, in->width, s->edge);
    }
    for (uint32_t c = 0; c < in->channels; c++) {
        const int fill = (uint8_t)s->fill[c < 3 ? c : 0];
        for (uint32_t y = 0; y < s->height; y++) {
            uint8_t *const dst = leat__planes_row(out, c, y);
            const int64_t at = leat__pad_look((int64_t)y - s->y, in->height, s->edge);
            if (at < 0) memset(dst, fill, s->width);
            else pad_row(leat__planes_row(in, c, (uint32_t)at), in->width, dst, &side, filled, fill);
        }
    }
    leat__planes_swap(&b->image, &b->spare);
    return 0;
}

void leat__step_erase(leat__workspace *b, const leat__step *s)
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
