/* SPDX-License-Identifier: Apache-2.0
 *
 * From a JPEG's coefficients to the parts of a tile: what trainer and encoder both start
 * from. Any thread; no state.
 */
#include <stdlib.h>
#include <string.h>

#include "codec/tile/tile_format.h"

static bool factors_are(const leat__jpeg_coefs *coefs, uint32_t h, uint32_t v)
{
    const leat__jpeg_component *c = coefs->component;
    return c[0].h == h && c[0].v == v && c[1].h == 1 && c[1].v == 1 && c[2].h == 1
           && c[2].v == 1;
}

static leat__tile_kept find_sampling(const leat__jpeg_coefs *coefs,
                                     leat__tile_sampling *sampling)
{
    static const struct {
        leat__tile_sampling sampling;
        uint8_t h, v;
    } known[] = {
        {LEAT__TILE_444, 1, 1}, {LEAT__TILE_422, 2, 1}, {LEAT__TILE_420, 2, 2},
        {LEAT__TILE_440, 1, 2}, {LEAT__TILE_411, 4, 1},
    };
    if (coefs->components == 1 && coefs->colour == LEAT__JPEG_GREY) {
        *sampling = LEAT__TILE_GREY; /* its factors do not matter: nothing to compare with */
        return LEAT__TILE_KEPT_NONE;
    }
    if (coefs->components != 3 || coefs->colour != LEAT__JPEG_YCC)
        return LEAT__TILE_KEPT_COLOUR;
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
    if (coefs->width == 0 || coefs->height == 0 || coefs->width > UINT16_MAX
        || coefs->height > UINT16_MAX)
        return LEAT__TILE_KEPT_SIZE;
    h->width = coefs->width;
    h->height = coefs->height;
    h->orientation = 1;
    if (coefs->progressive) h->flags |= LEAT__TILE_FLAG_PROGRESSIVE;
    leat__tile_geometry(h);
    for (uint32_t c = 0; c < h->components; c++) {
        memcpy(h->quant[c], coefs->component[c].quant, sizeof h->quant[c]);
        if (coefs->component[c].grid_x < leat__tile_grid_x(h, c)
            || coefs->component[c].grid_y < leat__tile_grid_y(h, c))
            return LEAT__TILE_KEPT_SAMPLING;
    }
    return LEAT__TILE_KEPT_NONE;
}

static inline int16_t dc_at(const leat__jpeg_component *comp, uint32_t x, uint32_t y)
{
    return comp->coefs[64 * ((size_t)y * comp->grid_x + x)];
}

/* Ranges within which every implementation of the ISLOW transform agrees: the products fit 16
 * bits, the mean also after it is scaled by four. Only made-up files are outside. */
static inline bool in_range(int32_t c, int32_t quant, int32_t product_max)
{
    int32_t product = c * quant;
    return (c <= LEAT__TILE_COEF_MAX) & (c >= -LEAT__TILE_COEF_MAX)
           & (product <= product_max) & (product >= -product_max);
}

/* Which of the four coefficients in a word are not zero: bit 15 of each lane says so, and the
 * product gathers the four bits, none of which meets another on the way. */
static inline uint64_t nonzero4(uint64_t word)
{
    const uint64_t low = UINT64_C(0x7fff7fff7fff7fff);
    uint64_t bit = (((word & low) + low) | word) >> 15 & UINT64_C(0x0001000100010001);
    return (bit * UINT64_C(0x0001000200040008)) >> 48 & 15;
}

/* The block in tile order, which is a matter of half rows, and its bitmap. */
static inline uint64_t order_block(int16_t ordered[64], const int16_t *block)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < 16; i++) {
        uint64_t word;
        memcpy(&word, block + leat__tile_order[4 * i], sizeof word);
        memcpy(ordered + 4 * i, &word, sizeof word);
        mask |= nonzero4(word) << 4 * i;
    }
    return mask;
}

/* Whether all coefficients but the first are in range. Mostly a bound tells: no magnitude is
 * above the union of all of them. */
static inline bool block_in_range(const int16_t ordered[64], const uint16_t *quant,
                                  int32_t quant_max)
{
    int16_t all = 0;
    bool good = true;
    for (uint32_t k = 1; k < 64; k++) all |= (int16_t)(ordered[k] ^ (ordered[k] >> 15));
    if (all < LEAT__TILE_COEF_MAX && (all + 1) * quant_max <= 32767) return true;
    for (uint32_t k = 1; k < 64; k++)
        good &= in_range(ordered[k], quant[leat__tile_order[k]], 32767);
    return good;
}

static void take_block(leat__tile_parts *parts, uint32_t b, uint64_t mask,
                       const int16_t ordered[64])
{
    int16_t *value = parts->value + parts->values;
    parts->values += (uint32_t)__builtin_popcountll(mask);
    parts->mask[b] = mask;
    parts->groups[b] = mask == 0 ? 0 : (uint8_t)((71 - __builtin_clzll(mask)) / 8);
    for (; mask != 0; mask &= mask - 1) *value++ = ordered[__builtin_ctzll(mask)];
}

static int32_t largest(const uint16_t *quant)
{
    uint16_t most = 0;
    for (uint32_t k = 0; k < 64; k++) most = quant[k] > most ? quant[k] : most;
    return most;
}

leat__tile_kept leat__tile_take_apart(leat__tile_parts *parts, const leat__tile_header *h,
                                      const leat__jpeg_coefs *coefs, uint32_t tx, uint32_t ty)
{
    leat__tile_shape shape;
    uint32_t b = 0;
    parts->values = 0;
    leat__tile_shape_at(h, tx, ty, &shape);
    for (uint32_t c = 0; c < shape.components; c++) {
        const leat__jpeg_component *comp = &coefs->component[c];
        int32_t quant_max = largest(h->quant[c]);
        uint32_t x0 = tx * leat__tile_blocks_x(h, c), y0 = ty * leat__tile_blocks_y(h, c);
        for (uint32_t i = 0; i < shape.count[c]; i++, b++) {
            uint32_t x = i % shape.wide[c], y = i / shape.wide[c];
            const int16_t *block = comp->coefs + 64 * ((size_t)(y0 + y) * comp->grid_x + x0 + x);
            int16_t guess = 0;
            if (x > 0) guess = dc_at(comp, x0 + x - 1, y0 + y);
            else if (y > 0) guess = dc_at(comp, x0 + x, y0 + y - 1);
            int16_t ordered[64];
            uint64_t mask = order_block(ordered, block);
            if (!in_range(block[0], h->quant[c][0], 8191)
                || !block_in_range(ordered, h->quant[c], quant_max))
                return LEAT__TILE_KEPT_RANGE;
            ordered[0] = (int16_t)(ordered[0] - guess);
            take_block(parts, b, (mask & ~UINT64_C(1)) | (ordered[0] != 0), ordered);
        }
    }
    return LEAT__TILE_KEPT_NONE;
}
