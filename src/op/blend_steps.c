/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of AugMix: weighted copies of an image are added in float, in torchvision's order, and the sum
 * is truncated to integers. One thread per workspace.
 */
#include <string.h>

#include "base/mem.h"
#include "op/apply.h"

static float *sum_row(const leat__workspace *b, uint32_t c, uint32_t y)
{
    return b->sum + ((size_t)c * b->image.height + y) * b->image.width;
}

static void copy_image(const leat__planes *from, const leat__planes *to)
{
    for (uint32_t c = 0; c < from->channels; c++)
        for (uint32_t y = 0; y < from->height; y++)
            memcpy(leat__planes_row(to, c, y), leat__planes_row(from, c, y), from->width);
}

static int start(leat__workspace *b, leat_error *err)
{
    const leat__planes *const im = &b->image;
    const size_t n = (size_t)im->width * im->height * im->channels;
    LEAT_TRY(leat__planes_resize(&b->base, im->width, im->height, im->channels, err));
    if (n > b->sum_cap) {
        leat__free(b->sum);
        b->sum_cap = 0;
        b->sum = leat__alloc_aligned(LEAT__MEM_SCRATCH, n * sizeof *b->sum, 64);
        if (!b->sum) return leat__fail_nomem(err, n * sizeof *b->sum, "the scratch of a step");
        b->sum_cap = n;
    }
    memset(b->sum, 0, n * sizeof *b->sum);
    copy_image(im, &b->base);
    return 0;
}

static void add(leat__workspace *b, float weight)
{
    const leat__planes *const im = &b->image;
    for (uint32_t c = 0; c < im->channels; c++)
        for (uint32_t y = 0; y < im->height; y++) {
            const uint8_t *const src = leat__planes_row(im, c, y);
            float *const sum = sum_row(b, c, y);
            for (uint32_t x = 0; x < im->width; x++) sum[x] += weight * (float)src[x];
        }
}

static void finish(leat__workspace *b)
{
    const leat__planes *const im = &b->image;
    const uint32_t width = im->width; /* a local copy: the bytes written below may alias im->width */
    for (uint32_t c = 0; c < im->channels; c++)
        for (uint32_t y = 0; y < im->height; y++) {
            const float *const sum = sum_row(b, c, y);
            uint8_t *const dst = leat__planes_row(im, c, y);
            for (uint32_t x = 0; x < width; x++) dst[x] = (uint8_t)(sum[x] < 255.0f ? sum[x] : 255.0f);
        }
}

int leat__step_blend(leat__workspace *b, const leat__step *s, leat_error *err)
{
    if (s->kind == LEAT__STEP_BLEND_START) LEAT_TRY(start(b, err));
    add(b, (float)s->amount);
    if (s->kind == LEAT__STEP_BLEND_START) return 0;
    if (s->x) finish(b);
    else copy_image(&b->base, &b->image);
    return 0;
}
