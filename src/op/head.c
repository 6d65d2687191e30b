/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuses a sequence of geometry steps: see head.h.
 *
 * A flip before the resize mirrors its input, one after it mirrors its output. The two differ in the last
 * bit, because Pillow's coefficients are not symmetric, so they are kept separate.
 */
#include "op/head.h"

#include "base/check.h"
#include "base/num.h"

bool leat__head_takes(leat__step_kind kind)
{
    return kind == LEAT__STEP_CROP || kind == LEAT__STEP_RESIZE || kind == LEAT__STEP_FLIP_H ||
           kind == LEAT__STEP_FLIP_V;
}

/* Narrows the current range of `whole` pixels from *start to its part [at, at+length). */
static void narrow(uint32_t *start, uint32_t *whole, uint32_t at, uint32_t length, bool mirrored)
{
    LEAT_ASSERT(length > 0 && at + length <= *whole);
    *start += mirrored ? *whole - at - length : at;
    *whole = length;
}

static void crop(leat__head *h, const leat__step *s, bool resized)
{
    const uint32_t x = (uint32_t)s->x, y = (uint32_t)s->y;
    if (resized) {
        narrow(&h->ax.from, &h->ax.count, x, s->width, h->ax.mirror_out);
        narrow(&h->ay.from, &h->ay.count, y, s->height, h->ay.mirror_out);
    } else {
        narrow(&h->x, &h->width, x, s->width, h->ax.mirror_in);
        narrow(&h->y, &h->height, y, s->height, h->ay.mirror_in);
    }
}

static void resize(leat__head *h, const leat__step *s)
{
    h->ax.out = h->ax.count = s->width;
    h->ay.out = h->ay.count = s->height;
    h->ax.filter = h->ay.filter = s->filter;
    h->order = s->order;
}

void leat__head_fuse(leat__head *h, const leat__recipe *r, uint32_t from, uint32_t width, uint32_t height)
{
    LEAT_ASSERT(from <= r->count);
    LEAT_ASSERT(width > 0 && height > 0);
    bool resized = false;
    *h = (leat__head){.width = width, .height = height};
    for (uint32_t i = from; i < r->count; i++, h->steps++) {
        const leat__step *const s = &r->step[i];
        if (!leat__head_takes(s->kind) || (resized && s->kind == LEAT__STEP_RESIZE)) break;
        switch (s->kind) {
        case LEAT__STEP_CROP: crop(h, s, resized); break;
        case LEAT__STEP_RESIZE:
            resize(h, s);
            resized = true;
            break;
        default: {
            leat__axis_request *a = s->kind == LEAT__STEP_FLIP_H ? &h->ax : &h->ay;
            bool *mirror = resized ? &a->mirror_out : &a->mirror_in;
            *mirror = !*mirror;
        }
        }
    }
    h->ax.in = h->width;
    h->ay.in = h->height;
    if (!resized) {
        h->ax.out = h->ax.count = h->width;
        h->ay.out = h->ay.count = h->height;
        h->ax.filter = h->ay.filter = LEAT__FILTER_NEAREST;
    }
}

void leat__head_orient(leat__head *h, uint32_t width, uint32_t height, uint32_t orientation)
{
    LEAT_ASSERT(orientation >= 1 && orientation <= 8);
    LEAT_ASSERT(h->x + h->width <= width && h->y + h->height <= height);
    const bool mirror_x = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
    const bool mirror_y = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
    if (mirror_x) {
        h->x = width - h->x - h->width;
        h->ax.mirror_in = !h->ax.mirror_in;
    }
    if (mirror_y) {
        h->y = height - h->y - h->height;
        h->ay.mirror_in = !h->ay.mirror_in;
    }
}
