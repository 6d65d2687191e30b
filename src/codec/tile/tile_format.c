/* SPDX-License-Identifier: Apache-2.0
 *
 * The header of a tiled sample: parsing, writing, geometry. Any thread; no state.
 */
#include "codec/tile/tile_format.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/num.h"

static const struct {
    uint8_t components, h, v;
} samplings[LEAT__TILE_SAMPLINGS] = {
    [LEAT__TILE_GREY] = {1, 1, 1}, [LEAT__TILE_444] = {3, 1, 1}, [LEAT__TILE_422] = {3, 2, 1},
    [LEAT__TILE_420] = {3, 2, 2},  [LEAT__TILE_440] = {3, 1, 2}, [LEAT__TILE_411] = {3, 4, 1},
};

void leat__tile_geometry(leat__tile_header *h)
{
    LEAT_ASSERT((unsigned)h->sampling < LEAT__TILE_SAMPLINGS);
    LEAT_ASSERT(h->width > 0 && h->height > 0);
    h->components = samplings[h->sampling].components;
    h->h = samplings[h->sampling].h;
    h->v = samplings[h->sampling].v;
    h->mcus_x = (uint32_t)leat__ceil_div(h->width, 8u * h->h);
    h->mcus_y = (uint32_t)leat__ceil_div(h->height, 8u * h->v);
    h->tiles_x = (uint32_t)leat__ceil_div(h->width, LEAT__TILE_PIXELS);
    h->tiles_y = (uint32_t)leat__ceil_div(h->height, LEAT__TILE_PIXELS);
}

void leat__tile_shape_at(const leat__tile_header *h, uint32_t tx, uint32_t ty, leat__tile_shape *shape)
{
    LEAT_ASSERT(tx < h->tiles_x && ty < h->tiles_y);
    shape->components = h->components;
    shape->blocks = 0;
    for (uint32_t c = 0; c < h->components; c++) {
        uint32_t bx = leat__tile_blocks_x(h, c), by = leat__tile_blocks_y(h, c);
        shape->wide[c] = LEAT_MIN(bx, leat__tile_grid_x(h, c) - tx * bx);
        shape->high[c] = LEAT_MIN(by, leat__tile_grid_y(h, c) - ty * by);
        shape->count[c] = shape->wide[c] * shape->high[c];
        shape->blocks += shape->count[c];
    }
}

static int bad(leat_error *err, int code, int64_t offset, const char *what)
{
    int rc = leat__fail(err, code, "tiled image: %s (at byte %lld)", what, (long long)offset);
    leat__error_at(err, NULL, -1, offset);
    return rc;
}

/* Parses the quantisation tables: 1 to 3 are stored, each with 64 u8, or u16 when wide; two bits per
 * component select its table. */
static int parse_quant(leat__tile_header *h, const uint8_t *data, size_t len, size_t *at, leat_error *err)
{
    uint32_t stored = data[12], map = data[13] & 63, wide = data[13] >> 7;
    if (stored < 1 || stored > h->components || (data[13] & 64) != 0)
        return bad(err, LEAT_EDATA, 12, "invalid number of quantisation tables");
    size_t each = wide ? 128 : 64;
    if (len - *at < stored * each) return bad(err, LEAT_EDATA, 12, "truncated in its header");
    for (uint32_t c = 0; c < h->components; c++) {
        uint32_t index = map >> (2 * c) & 3;
        if (index >= stored) return bad(err, LEAT_EDATA, 13, "invalid quantisation table index");
        const uint8_t *table = data + *at + index * each;
        for (uint32_t i = 0; i < 64; i++) h->quant[c][i] = wide ? leat__load_u16(table + 2 * i) : table[i];
    }
    *at += stored * each;
    return 0;
}

/* Returns the format version: readers of version 1 cannot restore progressive files. */
static uint8_t version_of(uint32_t flags)
{
    const uint32_t both = LEAT__TILE_FLAG_EXACT | LEAT__TILE_FLAG_PROGRESSIVE;
    return (flags & both) == both ? 2 : 1;
}

int leat__tile_header_parse(leat__tile_header *h, const uint8_t *data, size_t len, leat_error *err)
{
    memset(h, 0, sizeof *h);
    if (len < LEAT__TILE_FIXED || memcmp(data, LEAT__TILE_MAGIC, 4) != 0)
        return bad(err, LEAT_EDATA, 0, "no tile header");
    if (data[4] < 1 || data[4] > LEAT__TILE_VERSION)
        return bad(err, LEAT_EFORMAT, 4, "a version this library does not know");
    h->flags = data[5];
    h->orientation = data[7];
    h->width = leat__load_u16(data + 8);
    h->height = leat__load_u16(data + 10);
    h->tables_id = leat__load_u32(data + 16);
    h->tile_bytes = leat__load_u32(data + 20);
    h->restore_bytes = leat__load_u32(data + 24);
    h->skeleton_bytes = leat__load_u32(data + 28);
    h->file_bytes = leat__load_u32(data + 32);
    if ((h->flags & ~(uint32_t)LEAT__TILE_FLAGS) != 0) return bad(err, LEAT_EDATA, 5, "unknown flags");
    if (data[4] != version_of(h->flags)) return bad(err, LEAT_EDATA, 4, "version does not match its flags");
    if (data[6] >= LEAT__TILE_SAMPLINGS) return bad(err, LEAT_EDATA, 6, "unknown sampling");
    if (h->orientation < 1 || h->orientation > 8) return bad(err, LEAT_EDATA, 7, "orientation out of range");
    if (h->width == 0 || h->height == 0) return bad(err, LEAT_EDATA, 8, "empty image");
    if (leat__load_u16(data + 14) != 0) return bad(err, LEAT_EDATA, 14, "reserved bytes are not 0");
    h->sampling = (leat__tile_sampling)data[6];
    leat__tile_geometry(h);

    size_t at = LEAT__TILE_FIXED;
    LEAT_TRY(parse_quant(h, data, len, &at, err));
    uint64_t tiles = (uint64_t)h->tiles_x * h->tiles_y;
    uint64_t header = (at + 2 * tiles + LEAT__TILE_ALIGN - 1) & ~(uint64_t)(LEAT__TILE_ALIGN - 1);
    uint64_t whole = header + h->tile_bytes + LEAT__TILE_GUARD + h->restore_bytes;
    if (whole != len) return bad(err, LEAT_EDATA, 20, "length does not match its parts");
    h->lengths = data + at;
    h->header_bytes = (uint32_t)header;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < tiles; i++) sum += leat__load_u16(h->lengths + 2 * i);
    if (sum != h->tile_bytes)
        return bad(err, LEAT_EDATA, (int64_t)at,
                   "the lengths of the tiles do not sum to the size of their data");
    return 0;
}

/* Orders the distinct tables by first use. */
static uint32_t quant_map(const leat__tile_header *h, uint32_t order[3], uint32_t *map, bool *wide)
{
    uint32_t stored = 0;
    *map = 0;
    *wide = false;
    for (uint32_t c = 0; c < h->components; c++) {
        uint32_t i = 0;
        while (i < stored && memcmp(h->quant[order[i]], h->quant[c], sizeof h->quant[c]) != 0) i++;
        if (i == stored) order[stored++] = c;
        *map |= i << (2 * c);
        for (uint32_t k = 0; k < 64; k++) *wide = *wide || h->quant[c][k] > 255;
    }
    return stored;
}

void leat__tile_header_totals(const leat__tile_header *h, uint8_t *sample)
{
    sample[4] = version_of(h->flags);
    sample[5] = (uint8_t)h->flags;
    leat__store_u32(sample + 20, h->tile_bytes);
    leat__store_u32(sample + 32, h->file_bytes);
}

int leat__tile_header_write(leat__tile_header *h, leat__buf *out, size_t *lengths)
{
    uint32_t order[3], map, stored;
    bool wide;
    uint8_t fixed[LEAT__TILE_FIXED] = LEAT__TILE_MAGIC;
    size_t start = out->len;

    stored = quant_map(h, order, &map, &wide);
    fixed[6] = (uint8_t)h->sampling;
    fixed[7] = (uint8_t)h->orientation;
    leat__store_u16(fixed + 8, (uint16_t)h->width);
    leat__store_u16(fixed + 10, (uint16_t)h->height);
    fixed[12] = (uint8_t)stored;
    fixed[13] = (uint8_t)(map | (wide ? 128u : 0u));
    leat__store_u32(fixed + 16, h->tables_id);
    leat__store_u32(fixed + 24, h->restore_bytes);
    leat__store_u32(fixed + 28, h->skeleton_bytes);
    leat__tile_header_totals(h, fixed);
    leat__buf_append(out, fixed, sizeof fixed);
    for (uint32_t i = 0; i < stored; i++)
        for (uint32_t k = 0; k < 64; k++) {
            uint8_t le[2];
            leat__store_u16(le, h->quant[order[i]][k]);
            leat__buf_append(out, le, wide ? 2 : 1);
        }
    LEAT_ASSERT(stored >= 1 && stored <= h->components);
    uint64_t tiles = (uint64_t)h->tiles_x * h->tiles_y;
    *lengths = out->len;
    leat__buf_zeros(out, tiles * sizeof(uint16_t));
    size_t used = out->len - start;
    leat__buf_zeros(out, (0 - used) & (LEAT__TILE_ALIGN - 1));
    h->header_bytes = (uint32_t)(out->len - start);
    LEAT_ASSERT(h->header_bytes % LEAT__TILE_ALIGN == 0 || leat__buf_status(out) != 0);
    return leat__buf_status(out);
}

int leat__tile_describe(const uint8_t *data, size_t len, leat__tile_facts *facts, leat_error *err)
{
    leat__tile_header h;
    LEAT_TRY(leat__tile_header_parse(&h, data, len, err));
    *facts = (leat__tile_facts){
        .density = (h.flags & LEAT__TILE_FLAG_SMALL) ? LEAT__TILE_SMALL : LEAT__TILE_FAST,
        .exact = (h.flags & LEAT__TILE_FLAG_EXACT) != 0,
        .progressive = (h.flags & LEAT__TILE_FLAG_PROGRESSIVE) != 0,
        .tiles = h.tiles_x * h.tiles_y,
        .tables_id = h.tables_id,
        .file_bytes = h.file_bytes,
        .tile_bytes = h.tile_bytes + LEAT__TILE_GUARD,
        .header_bytes = h.header_bytes,
        .restore_bytes = h.restore_bytes,
    };
    return 0;
}

static const char *const kept_texts[LEAT__TILE_KEPT_COUNT][2] = {
#define LEAT__TILE_KEPT_TEXT(id, name, text) {name, text},
    LEAT__TILE_KEPT_MAP(LEAT__TILE_KEPT_TEXT)
#undef LEAT__TILE_KEPT_TEXT
};

const char *leat__tile_kept_name(leat__tile_kept kept)
{
    return (unsigned)kept < LEAT__TILE_KEPT_COUNT ? kept_texts[kept][0] : "unknown";
}

const char *leat__tile_kept_text(leat__tile_kept kept)
{
    return (unsigned)kept < LEAT__TILE_KEPT_COUNT ? kept_texts[kept][1] : "unknown";
}
