/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes tiles to rows of pixels: LEAT__CODEC_TILE of codec/codec.h. Processes the tile rows of the
 * region one at a time; each is a strip of codec/raster.h. Decodes only the tiles, transforms only the
 * blocks, and converts only the pixels that the region needs. One state per thread.
 *
 *   tile bytes --entropy--> sparse blocks --idct--> planes --upsample, colour--> band --> sink
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/num.h"
#include "codec/codec_ops.h"
#include "codec/raster.h"
#include "codec/tile/tile_format.h"
#include "dsp/idct_small.h"
#include "probe/cpu.h"

typedef struct tile_state {
    leat__tile_entropy_dsp entropy;
    leat__idct_small_dsp idct;
    uint32_t cpu_flags; /* for which the tables were filled */
    leat__tile_coefs *coefs;
    leat__raster raster; /* a strip is a row of tiles */
} tile_state;

typedef struct region {
    leat__tile_header h;
    uint32_t tx0, tx1; /* columns of tiles, inclusive */
    const uint8_t *data;
    const leat__tile_codes *codes;
    const leat__row_sink *sink;
} region;

static void find_columns(region *r, const leat__raster *raster)
{
    r->tx0 = UINT32_MAX;
    r->tx1 = 0;
    for (uint32_t c = 0; c < r->h.components; c++) {
        const leat__raster_span *s = &raster->comp[c];
        r->tx0 = LEAT_MIN(r->tx0, s->bx0 / leat__tile_blocks_x(&r->h, c));
        r->tx1 = LEAT_MAX(r->tx1, (s->bx1 - 1) / leat__tile_blocks_x(&r->h, c));
    }
    LEAT_ASSERT(r->tx0 <= r->tx1);
}

/* Transforms the blocks of one tile that the region needs. */
static void transform_tile(tile_state *s, const region *r, const leat__tile_shape *shape, uint32_t tx,
                           uint32_t ty)
{
    LEAT_ASSERT(tx < r->h.tiles_x && ty < r->h.tiles_y);
    uint32_t base = 0;
    for (uint32_t c = 0; c < shape->components; base += shape->count[c], c++) {
        const leat__raster_span *need = &s->raster.comp[c];
        uint32_t gx = tx * leat__tile_blocks_x(&r->h, c);
        uint32_t gy = ty * leat__tile_blocks_y(&r->h, c);
        uint32_t x0 = LEAT_MAX(need->bx0, gx), x1 = LEAT_MIN(need->bx1, gx + shape->wide[c]);
        uint32_t y0 = LEAT_MAX(need->by0, gy), y1 = LEAT_MIN(need->by1, gy + shape->high[c]);
        if (x0 >= x1 || y0 >= y1) continue;
        const leat__idct_area area = {base + (y0 - gy) * shape->wide[c] + (x0 - gx), x1 - x0, y1 - y0,
                                      shape->wide[c]};
        s->idct.area[need->shrink](leat__raster_at(&s->raster, ty, c, need->side * x0, need->side * y0),
                                   s->raster.planes.stride, s->coefs, &area, r->h.quant[c]);
    }
}

static int bad_tile(const region *r, uint32_t tx, uint32_t ty, size_t offset, leat__tile_damage damage,
                    leat_error *err)
{
    int rc = leat__fail(err, LEAT_EDATA,
                        "tiled image: tile %u (column %u, row %u): %s "
                        "(at byte %zu)",
                        ty * r->h.tiles_x + tx, tx, ty, leat__tile_damage_text(damage), offset);
    leat__error_at(err, NULL, -1, (int64_t)offset);
    return rc;
}

static size_t skip_tiles(const region *r, uint32_t from, uint32_t count)
{
    LEAT_ASSERT(from + count <= r->h.tiles_x * r->h.tiles_y);
    size_t bytes = 0;
    for (uint32_t i = from; i < from + count; i++) bytes += leat__load_u16(r->h.lengths + 2 * (size_t)i);
    return bytes;
}

/* Prefetches the bytes of tile `index`, which begin at `at`. */
static void fetch_ahead(const region *r, size_t at, uint32_t index)
{
    const uint8_t *const tile = r->data + at;
    for (size_t i = 0, len = skip_tiles(r, index, 1); i < len; i += 64) __builtin_prefetch(tile + i, 0, 2);
}

/* Decodes the needed tiles of the tile row at *offset, and moves *offset past the row. */
static int decode_tile_row(tile_state *s, const region *r, uint32_t ty, size_t *offset, leat_error *err)
{
    LEAT_ASSERT(ty < r->h.tiles_y && r->tx0 <= r->tx1 && r->tx1 < r->h.tiles_x);
    LEAT_ASSERT(*offset >= r->h.header_bytes);
    uint32_t first = ty * r->h.tiles_x;
    size_t at = *offset + skip_tiles(r, first, r->tx0);
    for (uint32_t tx = r->tx0; tx <= r->tx1; tx++) {
        leat__tile_shape shape;
        size_t len = skip_tiles(r, first + tx, 1);
        leat__tile_shape_at(&r->h, tx, ty, &shape);
        LEAT_ASSERT(at + len <= (size_t)r->h.header_bytes + r->h.tile_bytes);
        leat__tile_damage damage = s->entropy.decode(s->coefs, r->data + at, len, &shape, r->codes);
        if (damage != LEAT__TILE_WHOLE) return bad_tile(r, tx, ty, at, damage, err);
        if (r->sink->tile) LEAT_TRY(r->sink->tile(r->sink->ctx, tx, ty, s->coefs));
        at += len;
        if (tx < r->tx1) fetch_ahead(r, at, first + tx + 1);
        transform_tile(s, r, &shape, tx, ty);
    }
    *offset = at + skip_tiles(r, first + r->tx1 + 1, r->h.tiles_x - r->tx1 - 1);
    return 0;
}

static void choose_kernels(tile_state *s)
{
    s->cpu_flags = leat__cpu_flags();
    leat__tile_entropy_init(&s->entropy, s->cpu_flags);
    leat__idct_small_init(&s->idct, s->cpu_flags);
}

static int find_codes(region *r, const leat__tile_tables *tables, leat_error *err)
{
    if ((r->h.flags & LEAT__TILE_FLAG_SMALL) == 0) return 0;
    if (tables == NULL) return leat__fail(err, LEAT_EINVAL, "tiled image: its pack's tables are needed");
    if (tables->id != r->h.tables_id)
        return leat__fail(err, LEAT_EDATA, "tiled image: made with tables %08x, not %08x", r->h.tables_id,
                          tables->id);
    r->codes = &tables->codes;
    return 0;
}

static int tile_decode(void *state, const leat__decode_job *job, leat_error *err)
{
    tile_state *s = state;
    region r = {.data = job->data, .sink = job->sink};
    LEAT_TRY(leat__tile_header_parse(&r.h, job->data, job->len, err));
    if (r.h.width != job->info->width || r.h.height != job->info->height ||
        r.h.components != job->info->channels)
        return leat__fail(err, LEAT_EDATA, "tiled image: not the one that was probed");
    LEAT_TRY(find_codes(&r, job->tables, err));
    const leat__raster_shape shape = {r.h.width, r.h.height, r.h.components, r.h.h, r.h.v};
    if (job->parts)
        LEAT_TRY(leat__raster_begin_parts(&s->raster, &shape, job->parts, LEAT__TILE_PIXELS, err));
    else
        LEAT_TRY(leat__raster_begin(&s->raster, &shape, job->x, job->y, job->width, job->height,
                                    LEAT__TILE_PIXELS, err));
    find_columns(&r, &s->raster);
    if (s->cpu_flags != leat__cpu_flags()) choose_kernels(s); /* the flags were masked in the meantime */

    size_t offset = r.h.header_bytes + skip_tiles(&r, 0, s->raster.first * r.h.tiles_x);
    for (uint32_t ty = s->raster.first; ty <= s->raster.last; ty++) {
        LEAT_TRY(decode_tile_row(s, &r, ty, &offset, err));
        if (ty < s->raster.last) {
            const uint32_t next = (ty + 1) * r.h.tiles_x;
            fetch_ahead(&r, offset + skip_tiles(&r, next, r.tx0), next + r.tx0);
        }
        LEAT_TRY(leat__raster_emit(&s->raster, ty, job->sink));
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
        "tiled grey", "tiled 4:4:4", "tiled 4:2:2", "tiled 4:2:0", "tiled 4:4:0", "tiled 4:1:1",
    };
    leat__tile_header h;
    LEAT_TRY(leat__tile_header_parse(&h, data, len, err));
    info->width = h.width;
    info->height = h.height;
    info->channels = h.components;
    info->orientation = h.orientation;
    info->progressive = (h.flags & LEAT__TILE_FLAG_PROGRESSIVE) != 0;
    if (!info->progressive) { /* the JPEG codec decodes progressive files only to pixels: the same here */
        info->chroma_h = h.h;
        info->chroma_v = h.v;
    }
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
    leat__raster_reset(&s->raster);
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
