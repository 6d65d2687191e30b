/* SPDX-License-Identifier: Apache-2.0
 *
 * Wide images in memory: see wide.h.
 */
#include "codec/wide.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"

#define ALIGN 64

int leat__wide_resize(leat__wide *w, leat__sample_type type, uint32_t channels, uint32_t width,
                      uint32_t height, leat_error *err)
{
    uint64_t stride, bytes;
    size_t total;
    if (channels < 1 || channels > LEAT__CHANNELS_MAX ||
        !leat__mul_u64(width, channels * leat__sample_bytes(type), &stride) ||
        !leat__align_up_u64(stride, ALIGN, &stride) || !leat__mul_u64(stride, height, &bytes) ||
        !leat__u64_to_size(bytes, &total) || total > PTRDIFF_MAX)
        return leat__fail(err, LEAT_EOVERFLOW, "an image of %u x %u x %u does not fit memory", width, height,
                          channels);
    if (total > w->capacity) {
        leat__free(w->block);
        w->capacity = 0;
        w->block = leat__alloc_aligned(LEAT__MEM_SCRATCH, total, ALIGN);
        if (!w->block) return leat__fail_nomem(err, total, "an image");
        w->capacity = total;
    }
    w->type = type;
    w->channels = channels;
    w->width = width;
    w->height = height;
    w->stride = (size_t)stride;
    w->pixels = w->block;
    return 0;
}

void leat__wide_reset(leat__wide *w)
{
    leat__free(w->block);
    memset(w, 0, sizeof *w);
}

static int collect(void *ctx, uint32_t y, uint32_t count, const uint8_t *pixels, size_t stride)
{
    const leat__wide *const w = ctx;
    for (uint32_t i = 0; i < count; i++)
        memcpy(leat__wide_row(w, y + i), pixels + i * stride, w->width * leat__wide_pixel(w));
    return 0;
}

int leat__codec_decode_wide(leat__decoder *d, const leat__image_info *info, const uint8_t *data, size_t len,
                            const leat__decode_request *request, leat__wide *out, leat_error *err)
{
    const bool whole = request == NULL || request->width == 0;
    static const leat__decode_limits usual;
    if (!leat__image_wide(info))
        return leat__fail(err, LEAT_EINTERNAL, "an 8-bit image of %u channels is not wide", info->channels);
    LEAT_TRY(leat__decode_limits_whole(request != NULL ? &request->limits : &usual, info, err));
    LEAT_TRY(leat__wide_resize(out, info->type, info->channels, whole ? info->width : request->width,
                               whole ? info->height : request->height, err));
    const leat__row_sink sink = {.wide = collect, .ctx = out};
    return leat__codec_decode(d, info, data, len, request, &sink, err);
}

/* The position of the rotated image's first pixel in the stored one, and the steps down and right. */
typedef struct walk {
    ptrdiff_t first, down, right;
} walk;

static walk walk_of(const leat__wide *in, uint32_t orientation)
{
    const ptrdiff_t pixel = (ptrdiff_t)leat__wide_pixel(in), line = (ptrdiff_t)in->stride;
    const ptrdiff_t end = ((ptrdiff_t)in->width - 1) * pixel, bottom = ((ptrdiff_t)in->height - 1) * line;
    switch (orientation) {
    case 2: return (walk){end, line, -pixel};
    case 3: return (walk){bottom + end, -line, -pixel};
    case 4: return (walk){bottom, -line, pixel};
    case 5: return (walk){0, pixel, line};
    case 6: return (walk){bottom, pixel, -line};
    case 7: return (walk){bottom + end, -pixel, -line};
    case 8: return (walk){end, -pixel, line};
    default: return (walk){0, line, pixel};
    }
}

int leat__wide_turn(const leat__wide *in, uint32_t orientation, leat__wide *out, leat_error *err)
{
    const bool turned = orientation >= 5 && orientation <= 8;
    const walk go = walk_of(in, orientation);
    const size_t pixel = leat__wide_pixel(in);
    LEAT_TRY(leat__wide_resize(out, in->type, in->channels, turned ? in->height : in->width,
                               turned ? in->width : in->height, err));
    for (uint32_t y = 0; y < out->height; y++) {
        const uint8_t *from = in->pixels + go.first + (ptrdiff_t)y * go.down;
        uint8_t *to = leat__wide_row(out, y);
        for (uint32_t x = 0; x < out->width; x++, to += pixel, from += go.right) memcpy(to, from, pixel);
    }
    return 0;
}
