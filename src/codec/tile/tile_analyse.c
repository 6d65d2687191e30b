/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts a JPEG's coefficients to the parts of a tile, for trainer and encoder. Any thread; no state.
 */
#include <string.h>

#include "codec/tile/tile_format.h"

static bool factors_are(const leat__jpeg_coefs *coefs, uint32_t h, uint32_t v)
{
    const leat__jpeg_component *c = coefs->component;
    return c[0].h == h && c[0].v == v && c[1].h == 1 && c[1].v == 1 && c[2].h == 1 && c[2].v == 1;
}

static leat__tile_kept find_sampling(const leat__jpeg_coefs *coefs, leat__tile_sampling *sampling)
{
    static const struct {
        leat__tile_sampling sampling;
        uint8_t h, v;
    } known[] = {
        {LEAT__TILE_444, 1, 1}, {LEAT__TILE_422, 2, 1}, {LEAT__TILE_420, 2, 2},
        {LEAT__TILE_440, 1, 2}, {LEAT__TILE_411, 4, 1},
    };
    if (coefs->components == 1 && coefs->colour == LEAT__JPEG_GREY) {
        *sampling = LEAT__TILE_GREY; /* its factors do not matter: there is no other component */
        return LEAT__TILE_KEPT_NONE;
    }
    if (coefs->components != 3 || coefs->colour != LEAT__JPEG_YCC) return LEAT__TILE_KEPT_COLOUR;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (factors_are(coefs, known[i].h, known[i].v)) {
            *sampling = known[i].sampling;
            return LEAT__TILE_KEPT_NONE;
        }
    return LEAT__TILE_KEPT_SAMPLING;
}

leat__tile_kept leat__tile_header_from(leat__tile_header *h, const leat__jpeg_coefs *coefs)
{
    memset(h, 0, sizeof *h);
    if (coefs->arithmetic) return LEAT__TILE_KEPT_CODING;
    leat__tile_kept kept = find_sampling(coefs, &h->sampling);
    if (kept != LEAT__TILE_KEPT_NONE) return kept;
    if (coefs->width == 0 || coefs->height == 0 || coefs->width > UINT16_MAX || coefs->height > UINT16_MAX)
        return LEAT__TILE_KEPT_SIZE;
    h->width = coefs->width;
    h->height = coefs->height;
    h->orientation = 1;
    if (coefs->progressive) h->flags |= LEAT__TILE_FLAG_PROGRESSIVE;
    leat__tile_geometry(h);
    for (uint32_t c = 0; c < h->components; c++) {
        memcpy(h->quant[c], coefs->component[c].quant, sizeof h->quant[c]);
        if (coefs->component[c].grid_x < leat__tile_grid_x(h, c) ||
            coefs->component[c].grid_y < leat__tile_grid_y(h, c))
            return LEAT__TILE_KEPT_SAMPLING;
    }
    return LEAT__TILE_KEPT_NONE;
}

/* True within the ranges in which every implementation of the ISLOW transform agrees: the products fit 16
 * bits, and the DC also after it is scaled by four. Only constructed files are outside. */
static inline bool in_range(int32_t c, int32_t quant, int32_t product_max)
{
    int32_t product = c * quant;
    return (c <= LEAT__TILE_COEF_MAX) & (c >= -LEAT__TILE_COEF_MAX) & (product <= product_max) &
           (product >= -product_max);
}

/* True when all coefficients of a row of blocks are in range, except the first of each. Usually a bound is
 * enough: no magnitude is above the bitwise union of all of them. */
static bool row_in_range(const int16_t *blocks, uint32_t count, const uint16_t *quant, uint32_t all,
                         uint32_t quant_max)
{
    if (all < LEAT__TILE_COEF_MAX && (all + 1) * quant_max <= 32767) return true;
    bool good = true;
    for (uint32_t i = 0; i < 64 * count; i++)
        good &= i % 64 == 0 || in_range(blocks[i], quant[i % 64], 32767);
    return good;
}

static bool means_in_range(const int16_t *blocks, uint32_t count, uint16_t quant)
{
    bool good = true;
    for (uint32_t i = 0; i < count; i++) good &= in_range(blocks[64 * i], quant, 8191);
    return good;
}

static uint32_t largest(const uint16_t *quant)
{
    uint16_t most = 0;
    for (uint32_t k = 0; k < 64; k++) most = quant[k] > most ? quant[k] : most;
    return most;
}

leat__tile_kept leat__tile_take_apart(const leat__tile_pack_dsp *dsp, leat__tile_parts *parts,
                                      const leat__tile_header *h, const leat__jpeg_coefs *coefs, uint32_t tx,
                                      uint32_t ty)
{
    leat__tile_shape shape;
    uint32_t b = 0;
    parts->values = 0;
    leat__tile_shape_at(h, tx, ty, &shape);
    for (uint32_t c = 0; c < shape.components; c++) {
        const leat__jpeg_component *comp = &coefs->component[c];
        const uint16_t *quant = h->quant[c];
        uint32_t quant_max = largest(quant), wide = shape.wide[c];
        uint32_t x0 = tx * leat__tile_blocks_x(h, c), y0 = ty * leat__tile_blocks_y(h, c);
        for (uint32_t y = 0; y < shape.high[c]; y++, b += wide) {
            const size_t stride = 64 * (size_t)comp->grid_x;
            const int16_t *row = comp->coefs + (y0 + y) * stride + 64 * (size_t)x0;
            int16_t above = y > 0 ? row[-(ptrdiff_t)stride] : 0;
            uint32_t all = dsp->take(parts, b, row, wide, above);
            if (!means_in_range(row, wide, quant[0]) || !row_in_range(row, wide, quant, all, quant_max))
                return LEAT__TILE_KEPT_RANGE;
        }
    }
    return LEAT__TILE_KEPT_NONE;
}
