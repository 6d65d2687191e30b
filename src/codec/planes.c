/* SPDX-License-Identifier: Apache-2.0
 *
 * Planar pixels in memory: a whole image, or a band of rows for a sink. Both keep
 * LEAT__CODEC_PADDING readable bytes around every row, so kernels may load whole vectors.
 * Belongs to one thread at a time.
 */
#include "codec/planes.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"

#define GUARD LEAT__CODEC_PADDING

/* Computes stride and size. Rows of a plane are adjacent; the padding after a row is also the padding before
 * the next. */
static int measure(uint32_t width, uint32_t rows, uint32_t channels, size_t *stride, size_t *total)
{
    uint64_t s, t;
    if (!leat__align_up_u64((uint64_t)width + GUARD, GUARD, &s) || !leat__mul_u64(s, rows, &t) ||
        !leat__mul_u64(t, channels, &t) || !leat__add_u64(t, 2 * GUARD, &t) || !leat__u64_to_size(t, total))
        return LEAT_EOVERFLOW;
    *stride = (size_t)s;
    return 0;
}

int leat__planes_resize(leat__planes *p, uint32_t width, uint32_t height, uint32_t channels, leat_error *err)
{
    size_t stride, total;
    if (channels < 1 || channels > 4 || measure(width, height, channels, &stride, &total) != 0)
        return leat__fail(err, LEAT_EOVERFLOW, "an image of %u x %u x %u does not fit memory", width, height,
                          channels);
    if (total > p->capacity) {
        uint8_t *block = leat__alloc_aligned(LEAT__MEM_SCRATCH, total, 64);
        if (!block) return leat__fail_nomem(err, total, "an image");
        memset(block, 0, total); /* the padding is read, so it must be written once */
        leat__free(p->block);
        p->block = block;
        p->capacity = total;
    }
    p->width = width;
    p->height = height;
    p->channels = channels;
    p->stride = stride;
    LEAT_ASSERT(stride % 64 == 0 && stride >= width);
    for (uint32_t c = 0; c < 4; c++)
        p->plane[c] = c < channels ? p->block + GUARD + c * stride * height : NULL;
    return 0;
}

void leat__planes_reset(leat__planes *p)
{
    leat__free(p->block);
    memset(p, 0, sizeof *p);
}

int leat__band_fit(leat__band *band, uint32_t width, uint32_t channels, leat_error *err)
{
    band->count = 0;
    return leat__planes_resize(&band->rows, width, LEAT__BAND_ROWS, channels, err);
}

void leat__band_reset(leat__band *band)
{
    leat__planes_reset(&band->rows);
    band->count = 0;
}

/* Plain loops with a constant stride: compilers turn them into shuffles. */
static void split3(const uint8_t *restrict src, size_t n, uint8_t *restrict a, uint8_t *restrict b,
                   uint8_t *restrict c)
{
    for (size_t i = 0; i < n; i++) {
        a[i] = src[3 * i];
        b[i] = src[3 * i + 1];
        c[i] = src[3 * i + 2];
    }
}

static void split4(const uint8_t *restrict src, size_t n, uint8_t *restrict a, uint8_t *restrict b,
                   uint8_t *restrict c, uint8_t *restrict d)
{
    for (size_t i = 0; i < n; i++) {
        a[i] = src[4 * i];
        b[i] = src[4 * i + 1];
        c[i] = src[4 * i + 2];
        d[i] = src[4 * i + 3];
    }
}

void leat__planar_split(const uint8_t *src, size_t width, uint32_t channels, uint8_t *const plane[4])
{
    LEAT_ASSERT(channels >= 1 && channels <= 4);
    if (channels == 3) {
        split3(src, width, plane[0], plane[1], plane[2]);
    } else if (channels == 4) {
        split4(src, width, plane[0], plane[1], plane[2], plane[3]);
    } else if (channels == 1) {
        memcpy(plane[0], src, width);
    } else {
        for (size_t i = 0; i < width; i++)
            for (uint32_t c = 0; c < channels; c++) plane[c][i] = src[channels * i + c];
    }
}

void leat__planar_join(const uint8_t *const plane[4], size_t width, uint32_t channels, uint8_t *dst)
{
    LEAT_ASSERT(channels >= 1 && channels <= 4);
    if (channels == 1) {
        memcpy(dst, plane[0], width);
        return;
    }
    for (uint32_t c = 0; c < channels; c++) {
        const uint8_t *restrict src = plane[c];
        for (size_t i = 0; i < width; i++) dst[channels * i + c] = src[i];
    }
}

void leat__band_next(const leat__band *band, uint8_t *row[4])
{
    LEAT_ASSERT(band->count < LEAT__BAND_ROWS);
    for (uint32_t c = 0; c < band->rows.channels; c++)
        row[c] = band->rows.plane[c] + band->count * band->rows.stride;
}

int leat__band_flush(leat__band *band, const leat__row_sink *sink, uint32_t y)
{
    LEAT_ASSERT(band->count <= LEAT__BAND_ROWS);
    if (band->count == 0) return 0;
    const uint8_t *plane[4] = {NULL};
    for (uint32_t c = 0; c < band->rows.channels; c++) plane[c] = band->rows.plane[c];
    uint32_t count = band->count;
    band->count = 0;
    return sink->rows(sink->ctx, y, count, plane, band->rows.stride);
}
