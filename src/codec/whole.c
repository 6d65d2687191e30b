/* SPDX-License-Identifier: Apache-2.0
 *
 * The pixels of a whole image, and their way to a sink: see whole.h.
 */
#include "codec/whole.h"

#include "base/mem.h"
#include "base/num.h"

int leat__whole_open(void **state, leat_error *err)
{
    *state = LEAT_NEW(CODEC, leat__whole);
    return *state ? 0 : leat__fail_nomem(err, sizeof(leat__whole), "a decoder");
}

void leat__whole_close(void **state)
{
    leat__whole *w = *state;
    leat__band_reset(&w->band);
    leat__free(w->pixels);
    leat__free(w);
    *state = NULL;
}

int leat__whole_bad(leat_error *err, int code, const char *format, size_t offset, const char *what)
{
    leat__fail(err, code, "%s: %s at byte %zu", format, what, offset);
    leat__error_at(err, NULL, -1, (int64_t)offset);
    return code;
}

int leat__whole_sides(const leat__image_info *info, const char *format, leat_error *err)
{
    if (info->width <= LEAT__WHOLE_SIDE_MAX && info->height <= LEAT__WHOLE_SIDE_MAX) return 0;
    return leat__fail(err, LEAT_ELIMIT, "%s: %u x %u pixels are over the limit of %u per side", format,
                      info->width, info->height, LEAT__WHOLE_SIDE_MAX);
}

int leat__whole_same(const leat__decode_job *job, const leat__image_info *now, const char *format,
                     leat_error *err)
{
    uint32_t channels = job->info->indices ? job->info->channels : now->channels;
    if (now->width == job->info->width && now->height == job->info->height &&
        channels == job->info->channels && now->palette == job->info->palette && now->type == job->info->type)
        return 0;
    return leat__whole_bad(err, LEAT_EDATA, format, 0, "header does not match what was probed");
}

int leat__whole_fit(leat__whole *w, size_t stride, uint32_t height, leat_error *err)
{
    size_t bytes;
    if (!leat__mul_size(stride, height, &bytes))
        return leat__fail(err, LEAT_ELIMIT, "more pixels than the limit allows");
    if (bytes <= w->capacity) return 0;
    uint8_t *grown = leat__alloc(LEAT__MEM_CODEC, bytes);
    if (!grown) return leat__fail_nomem(err, bytes, "the pixels of an image");
    leat__free(w->pixels);
    w->pixels = grown;
    w->capacity = bytes;
    return 0;
}

int leat__whole_emit(leat__whole *w, const leat__decode_job *job, const uint8_t *pixels, size_t stride,
                     leat_error *err)
{
    uint32_t channels = job->info->channels;
    if (leat__image_wide(job->info)) {
        const size_t pixel = (size_t)channels * leat__sample_bytes(job->info->type);
        const uint8_t *first = pixels + job->y * stride + job->x * pixel;
        return job->sink->wide(job->sink->ctx, 0, job->height, first, stride);
    }
    LEAT_TRY(leat__band_fit(&w->band, job->width, channels, err));
    const uint8_t *src = pixels + job->y * stride + (size_t)job->x * channels;
    for (uint32_t y = 0; y < job->height; y++, src += stride) {
        uint8_t *row[4];
        leat__band_next(&w->band, row);
        leat__planar_split(src, job->width, channels, row);
        w->band.count++;
        if (leat__band_full(&w->band) || y + 1 == job->height)
            LEAT_TRY(leat__band_flush(&w->band, job->sink, y + 1 - w->band.count));
    }
    return 0;
}
