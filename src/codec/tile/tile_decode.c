/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles -> rows of pixels: LEAT__CODEC_TILE behind codec/codec.h. Works through the tile rows
 * that the region touches, one at a time; keeps the planes of one tile row, and one row of the
 * row before where chroma is interpolated vertically. Decodes only the tiles, transforms only
 * the blocks, converts only the pixels that the region needs. One state per thread.
 *
 *   tile bytes --entropy--> sparse blocks --idct--> planes --upsample, colour--> band --> sink
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/num.h"
#include "codec/codec_ops.h"
#include "codec/planes.h"
#include "codec/tile/tile_format.h"
#include "dsp/idct.h"
#include "dsp/ycc.h"
#include "probe/cpu.h"

enum { CARRY = 1 }; /* rows kept of the tile row before */

typedef struct tile_state {
    leat__tile_entropy_dsp entropy;
    leat__idct_dsp idct;
    leat__ycc_dsp ycc;
    uint32_t cpu_flags; /* that the tables were filled for */
    leat__tile_coefs *coefs;
    leat__planes planes;   /* CARRY + LEAT__TILE_PIXELS rows of each component */
    leat__planes chroma;   /* two upsampled rows */
    leat__band band;
} tile_state;

/* Samples of a component that the region needs, and the blocks they are in. */
typedef struct span {
    uint32_t x0, x1, y0, y1;     /* samples */
    uint32_t bx0, bx1, by0, by1; /* blocks */
    uint32_t width, height;      /* of the whole component, in samples */
} span;

typedef struct region {
    leat__tile_header h;
    span comp[LEAT__TILE_COMPONENTS];
    uint32_t x, y, width, height; /* in pixels */
    uint32_t tx0, tx1, ty0, ty1;  /* tiles, last ones included */
    bool smooth;                  /* chroma is interpolated, not repeated */
    const uint8_t *data;
    const leat__tile_codes *codes;
} region;

static void find_spans(region *r)
{
    const leat__tile_header *h = &r->h;
    r->tx0 = r->ty0 = UINT32_MAX;
    r->tx1 = r->ty1 = 0;
    for (uint32_t c = 0; c < h->components; c++) {
        span *s = &r->comp[c];
        uint32_t dx = c == 0 ? 1 : h->h, dy = c == 0 ? 1 : h->v;
        s->width = (uint32_t)leat__ceil_div(h->width, dx);
        s->height = (uint32_t)leat__ceil_div(h->height, dy);
        s->x0 = r->x / dx;
        s->x1 = (r->x + r->width - 1) / dx + 1;
        s->y0 = r->y / dy;
        s->y1 = (r->y + r->height - 1) / dy + 1;
        /* Interpolation looks at one sample more on each side. */
        if (dx == 2 && s->x0 > 0) s->x0--;
        if (dx == 2 && s->x1 < s->width) s->x1++;
        if (dy == 2 && s->y0 > 0) s->y0--;
        if (dy == 2 && s->y1 < s->height) s->y1++;
        s->bx0 = s->x0 / 8;
        s->bx1 = (s->x1 + 7) / 8;
        s->by0 = s->y0 / 8;
        s->by1 = (s->y1 + 7) / 8;
        r->tx0 = LEAT_MIN(r->tx0, s->bx0 / leat__tile_blocks_x(h, c));
        r->ty0 = LEAT_MIN(r->ty0, s->by0 / leat__tile_blocks_y(h, c));
        r->tx1 = LEAT_MAX(r->tx1, (s->bx1 - 1) / leat__tile_blocks_x(h, c));
        r->ty1 = LEAT_MAX(r->ty1, (s->by1 - 1) / leat__tile_blocks_y(h, c));
    }
    /* libjpeg-turbo repeats where there are too few columns to interpolate. */
    r->smooth = h->components == 3 && (h->h == 1 || r->comp[1].width > 2);
}

static uint32_t rows_per_tile(const region *r, uint32_t c)
{
    return LEAT__TILE_PIXELS / (c == 0 ? 1 : r->h.v);
}

/* Where sample x of row y of component c is while tile row `ty` is in the planes. */
static uint8_t *sample_at(const tile_state *s, const region *r, uint32_t ty, uint32_t c,
                          uint32_t x, uint32_t y)
{
    uint32_t row = y + CARRY - ty * rows_per_tile(r, c);
    return s->planes.plane[c] + row * s->planes.stride + (x - r->comp[c].bx0 * 8);
}

/* Transforms the blocks of one tile that the region needs. */
static void transform_tile(tile_state *s, const region *r, const leat__tile_shape *shape,
                           uint32_t tx, uint32_t ty)
{
    uint32_t base = 0;
    for (uint32_t c = 0; c < shape->components; base += shape->count[c], c++) {
        const span *need = &r->comp[c];
        uint32_t gx = tx * leat__tile_blocks_x(&r->h, c);
        uint32_t gy = ty * leat__tile_blocks_y(&r->h, c);
        uint32_t x0 = LEAT_MAX(need->bx0, gx), x1 = LEAT_MIN(need->bx1, gx + shape->wide[c]);
        uint32_t y0 = LEAT_MAX(need->by0, gy), y1 = LEAT_MIN(need->by1, gy + shape->high[c]);
        for (uint32_t y = y0; y < y1 && x0 < x1; y++)
            s->idct.row(sample_at(s, r, ty, c, 8 * x0, 8 * y), s->planes.stride, s->coefs,
                        base + (y - gy) * shape->wide[c] + (x0 - gx), x1 - x0,
                        r->h.quant[c]);
    }
}

static int bad_tile(const region *r, uint32_t tx, uint32_t ty, size_t offset,
                    leat__tile_damage damage, leat_error *err)
{
    int rc = leat__fail(err, LEAT_EDATA, "tiled image: tile %u (column %u, row %u): %s "
                        "(at byte %zu)", ty * r->h.tiles_x + tx, tx, ty,
                        leat__tile_damage_text(damage), offset);
    leat__error_at(err, NULL, -1, (int64_t)offset);
    return rc;
}

static size_t skip_tiles(const region *r, uint32_t from, uint32_t count)
{
    size_t bytes = 0;
    for (uint32_t i = from; i < from + count; i++)
        bytes += leat__load_u16(r->h.lengths + 2 * (size_t)i);
    return bytes;
}

/* Decodes the needed tiles of a tile row that begins at *offset, and moves it on. */
static int decode_tile_row(tile_state *s, const region *r, uint32_t ty, size_t *offset,
                           leat_error *err)
{
    uint32_t first = ty * r->h.tiles_x;
    size_t at = *offset + skip_tiles(r, first, r->tx0);
    for (uint32_t tx = r->tx0; tx <= r->tx1; tx++) {
        leat__tile_shape shape;
        size_t len = skip_tiles(r, first + tx, 1);
        leat__tile_shape_at(&r->h, tx, ty, &shape);
        leat__tile_damage damage =
            s->entropy.decode(s->coefs, r->data + at, len, &shape, r->codes);
        if (damage != LEAT__TILE_WHOLE) return bad_tile(r, tx, ty, at, damage, err);
        transform_tile(s, r, &shape, tx, ty);
        at += len;
    }
    *offset = at + skip_tiles(r, first + r->tx1 + 1, r->h.tiles_x - r->tx1 - 1);
    return 0;
}

/* Interpolation at the left and right edge of the image sees the edge sample again. */
static void repeat_edges(tile_state *s, const region *r, uint32_t ty)
{
    for (uint32_t c = 1; c < r->h.components; c++) {
        const span *need = &r->comp[c];
        uint32_t y0 = LEAT_MAX(need->y0, ty * rows_per_tile(r, c));
        uint32_t y1 = LEAT_MIN(need->y1, (ty + 1) * rows_per_tile(r, c));
        for (uint32_t y = y0; y < y1; y++) {
            if (need->x0 == 0) {
                uint8_t *left = sample_at(s, r, ty, c, 0, y);
                left[-1] = left[0];
            }
            if (need->x1 == need->width) {
                uint8_t *right = sample_at(s, r, ty, c, need->width - 1, y);
                right[1] = right[0];
            }
        }
    }
}

/* Chroma of pixel row y at full resolution; points at the pixel r->x. */
static const uint8_t *chroma_row(tile_state *s, const region *r, uint32_t ty, uint32_t c,
                                 uint32_t y)
{
    const uint32_t dx = r->h.h, dy = r->h.v;
    const uint32_t first = r->x / dx, n = (r->x + r->width - 1) / dx + 1 - first;
    const uint32_t near = y / dy;
    const uint8_t *in = sample_at(s, r, ty, c, first, near), *far = in;
    uint8_t *out = s->chroma.plane[c - 1];
    const bool below = (y & 1) != 0;

    if (dy == 2) {
        uint32_t other = below ? near + 1 : near - (near > 0);
        other = LEAT_MIN(other, r->comp[c].height - 1);
        far = sample_at(s, r, ty, c, first, other);
    }
    if (dx == 1 && dy == 1) return in;
    if (dx == 1) s->ycc.h1v2(out, in, far, n, below ? 2 : 1);
    else if (dx == 4) s->ycc.repeat4(out, in, n);
    else if (!r->smooth) s->ycc.repeat2(out, in, n);
    else if (dy == 1) s->ycc.h2v1(out, in, n);
    else s->ycc.h2v2(out, in, far, n);
    return out + (r->x - first * dx);
}

/* Rows y0 .. y1-1 of the image, which are complete, to the sink. */
static int emit_rows(tile_state *s, const region *r, const leat__row_sink *sink, uint32_t ty,
                     uint32_t y0, uint32_t y1)
{
    if (y0 >= y1) return 0;
    if (r->h.components == 1) {
        const uint8_t *plane[4] = {sample_at(s, r, ty, 0, r->x, y0)};
        return sink->rows(sink->ctx, y0 - r->y, y1 - y0, plane, s->planes.stride);
    }
    for (uint32_t y = y0; y < y1; y++) {
        uint8_t *row[4];
        const uint8_t *cb = chroma_row(s, r, ty, 1, y), *cr = chroma_row(s, r, ty, 2, y);
        leat__band_next(&s->band, row);
        s->ycc.rgb(row[0], row[1], row[2], sample_at(s, r, ty, 0, r->x, y), cb, cr, r->width);
        s->band.count++;
        if (leat__band_full(&s->band) || y + 1 == y1)
            LEAT_TRY(leat__band_flush(&s->band, sink, y + 1 - r->y - s->band.count));
    }
    return 0;
}

/* The last row of each plane becomes the row before the next tile row's first. */
static void carry_rows(tile_state *s, const region *r)
{
    for (uint32_t c = 0; c < r->h.components; c++) {
        uint8_t *rows = s->planes.plane[c] - LEAT__CODEC_PADDING;
        memcpy(rows, rows + rows_per_tile(r, c) * s->planes.stride, s->planes.stride);
    }
}

static int fit_scratch(tile_state *s, const region *r, leat_error *err)
{
    uint32_t width = 0;
    for (uint32_t c = 0; c < r->h.components; c++)
        width = LEAT_MAX(width, 8 * (r->comp[c].bx1 - r->comp[c].bx0));
    LEAT_TRY(leat__planes_resize(&s->planes, width, CARRY + LEAT__TILE_PIXELS,
                                 r->h.components, err));
    if (r->h.components == 1) return 0;
    /* Four times a chroma row may be up to six pixels wider than the region. */
    LEAT_TRY(leat__planes_resize(&s->chroma, r->width + 8, 1, 2, err));
    return leat__band_fit(&s->band, r->width, 3, err);
}

static void choose_kernels(tile_state *s)
{
    s->cpu_flags = leat__cpu_flags();
    leat__tile_entropy_init(&s->entropy, s->cpu_flags);
    leat__idct_init(&s->idct, s->cpu_flags);
    leat__ycc_init(&s->ycc, s->cpu_flags);
}

static int find_codes(region *r, const leat__tile_tables *tables, leat_error *err)
{
    if ((r->h.flags & LEAT__TILE_FLAG_SMALL) == 0) return 0;
    if (tables == NULL)
        return leat__fail(err, LEAT_EINVAL, "tiled image: its pack's tables are needed");
    if (tables->id != r->h.tables_id)
        return leat__fail(err, LEAT_EDATA, "tiled image: made with tables %08x, not %08x",
                          r->h.tables_id, tables->id);
    r->codes = &tables->codes;
    return 0;
}

static int tile_decode(void *state, const leat__decode_job *job, leat_error *err)
{
    tile_state *s = state;
    region r = {.data = job->data, .x = job->x, .y = job->y, .width = job->width,
                .height = job->height};
    LEAT_TRY(leat__tile_header_parse(&r.h, job->data, job->len, err));
    if (r.h.width != job->info->width || r.h.height != job->info->height
        || r.h.components != job->info->channels)
        return leat__fail(err, LEAT_EDATA, "tiled image: not the one that was probed");
    LEAT_TRY(find_codes(&r, job->tables, err));
    find_spans(&r);
    LEAT_TRY(fit_scratch(s, &r, err));
    if (s->cpu_flags != leat__cpu_flags()) choose_kernels(s); /* masked since */

    size_t offset = r.h.header_bytes + skip_tiles(&r, 0, r.ty0 * r.h.tiles_x);
    uint32_t y = r.y;
    for (uint32_t ty = r.ty0; ty <= r.ty1; ty++) {
        LEAT_TRY(leat__decode_in_time(job, err));
        LEAT_TRY(decode_tile_row(s, &r, ty, &offset, err));
        if (r.h.h == 2) repeat_edges(s, &r, ty);
        uint32_t end = r.y + r.height;
        /* A tile row's last row waits for the chroma below it. */
        if (ty < r.ty1)
            end = LEAT_MIN(end, (ty + 1) * LEAT__TILE_PIXELS - (r.h.v == 2 ? CARRY : 0));
        int rc = emit_rows(s, &r, job->sink, ty, y, end);
        if (rc != 0) return rc;
        y = LEAT_MAX(y, end);
        if (ty < r.ty1 && r.h.v == 2) carry_rows(s, &r);
    }
    return 0;
}

static bool tile_sniff(const uint8_t *data, size_t len)
{
    return len >= LEAT__TILE_FIXED && memcmp(data, LEAT__TILE_MAGIC, 4) == 0;
}

static int tile_probe(const uint8_t *data, size_t len, leat__image_info *info, leat_error *err)
{
    static const char *const names[LEAT__TILE_SAMPLINGS] = {
        "tiled grey", "tiled 4:4:4", "tiled 4:2:2", "tiled 4:2:0", "tiled 4:4:0",
        "tiled 4:1:1",
    };
    leat__tile_header h;
    LEAT_TRY(leat__tile_header_parse(&h, data, len, err));
    info->width = h.width;
    info->height = h.height;
    info->channels = h.components;
    info->orientation = h.orientation;
    info->progressive = (h.flags & LEAT__TILE_FLAG_PROGRESSIVE) != 0;
    snprintf(info->format, sizeof info->format, "%s", names[h.sampling]);
    return 0;
}

static int tile_open(void **state, leat_error *err)
{
    tile_state *s = LEAT_NEW(CODEC, tile_state);
    *state = NULL;
    if (s == NULL) return leat__fail_nomem(err, sizeof *s, "tile decoder");
    s->coefs = leat__alloc_aligned(LEAT__MEM_SCRATCH, sizeof *s->coefs, 64);
    if (s->coefs == NULL) {
        leat__free(s);
        return leat__fail_nomem(err, sizeof *s->coefs, "coefficients of a tile");
    }
    memset(s->coefs, 0, sizeof *s->coefs);
    choose_kernels(s);
    *state = s;
    return 0;
}

static void tile_close(void **state)
{
    tile_state *s = *state;
    if (s == NULL) return;
    leat__planes_reset(&s->planes);
    leat__planes_reset(&s->chroma);
    leat__band_reset(&s->band);
    leat__free(s->coefs);
    leat__free(s);
    *state = NULL;
}

const leat__codec_ops leat__codec_ops_tile = {
    .name = "tiled",
    .sniff = tile_sniff,
    .probe = tile_probe,
    .open = tile_open,
    .close = tile_close,
    .decode = tile_decode,
};
