/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts strips of component samples to rows of pixels: see raster.h. One thread at a time.
 */
#include "codec/raster.h"

#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "probe/cpu.h"

enum { CARRY = LEAT__RASTER_CARRY };

/* Finds the samples that the region needs. */
static void find_spans(leat__raster *r)
{
    const leat__raster_shape *shape = &r->shape;
    for (uint32_t c = 0; c < shape->components; c++) {
        leat__raster_span *s = &r->comp[c];
        uint32_t dx = c == 0 ? 1 : shape->h, dy = c == 0 ? 1 : shape->v;
        s->width = (uint32_t)leat__ceil_div(shape->width, dx);
        s->height = (uint32_t)leat__ceil_div(shape->height, dy);
        s->shrink = 0;
        s->x0 = r->x / dx;
        s->x1 = (r->x + r->width - 1) / dx + 1;
        s->y0 = r->y / dy;
        s->y1 = (r->y + r->height - 1) / dy + 1;
        /* Interpolation needs one more sample on each side. */
        if (dx == 2 && s->x0 > 0) s->x0--;
        if (dx == 2 && s->x1 < s->width) s->x1++;
        if (dy == 2 && s->y0 > 0) s->y0--;
        if (dy == 2 && s->y1 < s->height) s->y1++;
    }
    /* libjpeg-turbo repeats samples if there are too few columns to interpolate. */
    r->smooth = shape->components == 3 && (shape->h == 1 || r->comp[1].width > 2);
}

/* Finds the blocks that contain the samples of each component, and the strips. */
static void find_blocks(leat__raster *r)
{
    r->first = UINT32_MAX;
    r->last = 0;
    for (uint32_t c = 0; c < r->shape.components; c++) {
        leat__raster_span *s = &r->comp[c];
        s->side = 8 >> s->shrink;
        s->strip_rows = (r->strip_rows / (c == 0 ? 1 : r->shape.v)) >> s->shrink;
        s->bx0 = s->x0 / s->side;
        s->bx1 = (s->x1 + s->side - 1) / s->side;
        s->by0 = s->y0 / s->side;
        s->by1 = (s->y1 + s->side - 1) / s->side;
        r->first = LEAT_MIN(r->first, s->y0 / s->strip_rows);
        r->last = LEAT_MAX(r->last, (s->y1 - 1) / s->strip_rows);
    }
}

static int fit_scratch(leat__raster *r, leat_error *err)
{
    uint32_t width = 0;
    for (uint32_t c = 0; c < r->shape.components; c++)
        width = LEAT_MAX(width, r->comp[c].side * (r->comp[c].bx1 - r->comp[c].bx0));
    LEAT_TRY(leat__planes_resize(&r->planes, width, CARRY + r->strip_rows, r->shape.components, err));
    if (r->parts || r->shape.components == 1) return 0;
    /* Four times a chroma row may be up to six pixels wider than the region. */
    LEAT_TRY(leat__planes_resize(&r->chroma, r->width + 8, 1, 2, err));
    return leat__band_fit(&r->band, r->width, 3, err);
}

void leat__raster_find(leat__raster *r, const leat__raster_shape *shape, uint32_t x, uint32_t y,
                       uint32_t width, uint32_t height, uint32_t strip_rows)
{
    r->shape = *shape;
    r->x = x;
    r->y = y;
    r->width = width;
    r->height = height;
    r->strip_rows = strip_rows;
    r->done = 0;
    r->parts = false;
    find_spans(r);
    find_blocks(r);
}

int leat__raster_begin(leat__raster *r, const leat__raster_shape *shape, uint32_t x, uint32_t y,
                       uint32_t width, uint32_t height, uint32_t strip_rows, leat_error *err)
{
    LEAT_ASSERT(width > 0 && height > 0 && x + width <= shape->width && y + height <= shape->height);
    LEAT_ASSERT(strip_rows > 0 && strip_rows % (8 * shape->v) == 0);
    leat__raster_find(r, shape, x, y, width, height, strip_rows);
    if (r->ycc.rgb == NULL || r->cpu_flags != leat__cpu_flags()) { /* the flags were masked in the meantime */
        r->cpu_flags = leat__cpu_flags();
        leat__ycc_init(&r->ycc, r->cpu_flags);
    }
    return fit_scratch(r, err);
}

int leat__raster_begin_parts(leat__raster *r, const leat__raster_shape *shape, const leat__ycc_part *part,
                             uint32_t strip_rows, leat_error *err)
{
    r->shape = *shape;
    r->strip_rows = strip_rows;
    r->done = 0;
    r->parts = true;
    for (uint32_t c = 0; c < shape->components; c++) {
        const leat__ycc_part *p = &part[c];
        r->comp[c] = (leat__raster_span){
            .x0 = p->x, .x1 = p->x + p->width, .y0 = p->y, .y1 = p->y + p->height, .shrink = p->shrink};
    }
    find_blocks(r);
    return fit_scratch(r, err);
}

void leat__raster_reset(leat__raster *r)
{
    leat__planes_reset(&r->planes);
    leat__planes_reset(&r->chroma);
    leat__band_reset(&r->band);
    memset(r, 0, sizeof *r);
}

/* Repeats the edge samples: interpolation at the left and right edge of the image reads them again. */
static void repeat_edges(leat__raster *r, uint32_t strip)
{
    for (uint32_t c = 1; c < r->shape.components; c++) {
        const leat__raster_span *need = &r->comp[c];
        uint32_t y0 = LEAT_MAX(need->y0, strip * need->strip_rows);
        uint32_t y1 = LEAT_MIN(need->y1, (strip + 1) * need->strip_rows);
        for (uint32_t y = y0; y < y1; y++) {
            if (need->x0 == 0) {
                uint8_t *left = leat__raster_at(r, strip, c, 0, y);
                left[-1] = left[0];
            }
            if (need->x1 == need->width) {
                uint8_t *right = leat__raster_at(r, strip, c, need->width - 1, y);
                right[1] = right[0];
            }
        }
    }
}

/* Returns chroma of pixel row y at full resolution, starting at pixel r->x. */
static const uint8_t *chroma_row(leat__raster *r, uint32_t strip, uint32_t c, uint32_t y)
{
    LEAT_ASSERT(c == 1 || c == 2);
    const uint32_t dx = r->shape.h, dy = r->shape.v;
    const uint32_t first = r->x / dx, n = (r->x + r->width - 1) / dx + 1 - first;
    const uint32_t near = y / dy;
    const uint8_t *in = leat__raster_at(r, strip, c, first, near), *far = in;
    uint8_t *out = r->chroma.plane[c - 1];
    const bool below = (y & 1) != 0;

    if (dy == 2) {
        uint32_t other = below ? near + 1 : near - (near > 0);
        other = LEAT_MIN(other, r->comp[c].height - 1);
        far = leat__raster_at(r, strip, c, first, other);
    }
    if (dx == 1 && dy == 1) return in;
    if (dx == 1) r->ycc.h1v2(out, in, far, n, below ? 2 : 1);
    else if (dx == 4) r->ycc.repeat4(out, in, n);
    else if (!r->smooth) r->ycc.repeat2(out, in, n);
    else if (dy == 1) r->ycc.h2v1(out, in, n);
    else r->ycc.h2v2(out, in, far, n);
    return out + (r->x - first * dx);
}

static int emit_grey(leat__raster *r, uint32_t strip, uint32_t y0, uint32_t y1, const leat__row_sink *sink)
{
    LEAT_ASSERT(y0 < y1 && y1 <= r->y + r->height);
    const uint8_t *plane[4] = {leat__raster_at(r, strip, 0, r->x, y0)};
    r->done = y1 - r->y;
    return sink->rows(sink->ctx, y0 - r->y, y1 - y0, plane, r->planes.stride);
}

/* Passes rows y0 .. y1-1 of the image, which are complete, to the sink. */
static int emit_colour(leat__raster *r, uint32_t strip, uint32_t y0, uint32_t y1, const leat__row_sink *sink)
{
    LEAT_ASSERT(y0 < y1 && y1 <= r->y + r->height);
    LEAT_ASSERT(r->band.count == 0);
    for (uint32_t y = y0; y < y1; y++) {
        uint8_t *row[4];
        const uint8_t *cb = chroma_row(r, strip, 1, y), *cr = chroma_row(r, strip, 2, y);
        leat__band_next(&r->band, row);
        r->ycc.rgb(row[0], row[1], row[2], leat__raster_at(r, strip, 0, r->x, y), cb, cr, r->width);
        r->band.count++;
        if (!leat__band_full(&r->band) && y + 1 < y1) continue;
        uint32_t from = r->done;
        r->done = y + 1 - r->y;
        LEAT_TRY(leat__band_flush(&r->band, sink, from));
    }
    return 0;
}

/* Copies the last row of each plane to the row before the next strip's first. */
static void carry_rows(leat__raster *r)
{
    LEAT_ASSERT(r->shape.v == 2);
    for (uint32_t c = 0; c < r->shape.components; c++) {
        uint8_t *rows = r->planes.plane[c] - LEAT__CODEC_PADDING;
        memcpy(rows, rows + r->comp[c].strip_rows * r->planes.stride, r->planes.stride);
    }
}

static int emit_parts(leat__raster *r, uint32_t strip, const leat__row_sink *sink)
{
    for (uint32_t c = 0; c < r->shape.components; c++) {
        const leat__raster_span *need = &r->comp[c];
        uint32_t y0 = LEAT_MAX(need->y0, strip * need->strip_rows);
        uint32_t y1 = LEAT_MIN(need->y1, (strip + 1) * need->strip_rows);
        if (y0 >= y1) continue;
        LEAT_TRY(
            sink->part(sink->ctx, c, y1 - y0, leat__raster_at(r, strip, c, need->x0, y0), r->planes.stride));
    }
    return 0;
}

int leat__raster_emit(leat__raster *r, uint32_t strip, const leat__row_sink *sink)
{
    LEAT_ASSERT(strip >= r->first && strip <= r->last);
    if (r->parts) return emit_parts(r, strip, sink);
    uint32_t y = r->y + r->done, end = r->y + r->height;
    if (r->shape.h == 2) repeat_edges(r, strip);
    /* The last row of a strip needs the chroma below it, so it waits for the next strip. */
    if (strip < r->last) end = LEAT_MIN(end, (strip + 1) * r->strip_rows - (r->shape.v == 2 ? CARRY : 0));
    if (y < end)
        LEAT_TRY(r->shape.components == 1 ? emit_grey(r, strip, y, end, sink)
                                          : emit_colour(r, strip, y, end, sink));
    if (strip < r->last && r->shape.v == 2) carry_rows(r);
    return 0;
}
