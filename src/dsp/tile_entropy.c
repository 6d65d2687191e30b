/* SPDX-License-Identifier: Apache-2.0
 *
 * Portable reference of the tile entropy decoder, and the selection of a variant. Any thread; no state.
 */
#include "dsp/tile_entropy.h"

#include "dsp/tile_front_tmpl.h"
#ifdef LEAT_X86
#include "dsp/x86/tile_x86.h"
#endif

/* Computes sizes bottom-up. The values of size > l + 1 have sizes 1 + (their sizes above level l). So level l
 * is the level above it, expanded by the bits of plane l, plus one. */
static const uint8_t *sizes(leat__tile_coefs *c, const tile_planes *p)
{
    uint8_t *above = c->size[0], *level = c->size[1];
    memset(above, 1, p->count[p->planes - 1] + 8);
    for (uint32_t l = p->planes - 1; l-- > 0;) {
        const uint8_t *from = above;
        for (uint32_t i = 0; i < p->count[l]; i += 8) {
            uint32_t bits = p->plane[l][i / 8];
            for (uint32_t j = 0; j < 8; j++) {
                uint32_t bit = bits >> j & 1;
                level[i + j] = (uint8_t)(1 + (*from & (0u - bit)));
                from += bit;
            }
        }
        uint8_t *swap = above;
        above = level;
        level = swap;
    }
    return above;
}

static leat__tile_damage decode_c(leat__tile_coefs *c, const uint8_t *in, size_t len,
                                  const leat__tile_shape *shape, const leat__tile_codes *codes)
{
    tile_planes p;
    leat__tile_damage damage = tile_front(c, in, len, shape, codes, &p);
    if (damage != LEAT__TILE_WHOLE) return damage;
    if (p.values > 0) {
        const uint8_t *size = sizes(c, &p);
        uint64_t pos = 0;
        for (uint32_t i = 0; i < p.values; i++) {
            c->value[i] = tile_amplitude(tile_bits_at(p.extra, pos), size[i]);
            pos += size[i];
        }
    }
    tile_finish(c, shape);
    return LEAT__TILE_WHOLE;
}

void leat__tile_entropy_init(leat__tile_entropy_dsp *dsp, uint32_t cpu_flags)
{
    dsp->decode = decode_c;
    dsp->isa = "c";
#ifdef LEAT_X86
    leat__tile_entropy_init_x86(dsp, cpu_flags);
#endif
}

const char *leat__tile_damage_text(leat__tile_damage damage)
{
    switch (damage) {
    case LEAT__TILE_WHOLE: return "no damage";
    case LEAT__TILE_SHORT: return "shorter than its parts";
    case LEAT__TILE_BAD_STREAM: return "a code stream ends in the wrong place";
    case LEAT__TILE_BAD_PLANES: return "size planes are truncated or too many";
    case LEAT__TILE_BAD_END: return "extra bits do not end with the tile";
    }
    return "unknown damage";
}
