/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of packing that are plain C in more than one variant (dsp/tile_pack.h). Compiled into each ISA
 * file with its own flags, so everything here is static inline.
 */
#ifndef LEAT_DSP_TILE_PACK_TMPL_H
#define LEAT_DSP_TILE_PACK_TMPL_H

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "dsp/tile_pack.h"

#define PACK_INLINE static inline __attribute__((always_inline))

/* ---- bits, low first ---- */

typedef struct pack_bits {
    uint8_t *at;
    uint64_t acc;
    uint32_t n;
} pack_bits;

/* Appends bits, at most 56 between two calls of pack_spill. */
PACK_INLINE void pack_put(pack_bits *b, uint64_t value, uint32_t n)
{
    b->acc |= value << b->n;
    b->n += n;
}

/* Stores eight bytes and advances past the full ones: without a branch. */
PACK_INLINE void pack_spill(pack_bits *b)
{
    leat__store_u64(b->at, b->acc);
    b->at += b->n >> 3;
    b->acc >>= b->n & 56;
    b->n &= 7;
}

PACK_INLINE uint8_t *pack_flush(pack_bits *b)
{
    pack_spill(b);
    b->at += b->n > 0;
    b->acc = b->n = 0;
    return b->at;
}

/* ---- splitting blocks into parts ---- */

/* Records the bitmap of a block and its number of groups. */
PACK_INLINE void pack_note(leat__tile_parts *p, uint32_t b, uint64_t mask)
{
    p->mask[b] = mask;
    p->groups[b] = mask == 0 ? 0 : (uint8_t)((71 - __builtin_clzll(mask)) / 8);
}

/* ---- values ---- */

PACK_INLINE uint32_t pack_size(int32_t v)
{
    return 32 - (uint32_t)__builtin_clz((uint32_t)abs(v));
}

/* Writes a plane, which marks the remaining values that do not fit into `l` bits; those continue in the next
 * plane. Handles eight at a time: bit 7 of each byte is the mark, and the product gathers the eight bits. */
PACK_INLINE uint32_t pack_plane(uint8_t *at, uint8_t *left, uint32_t n, uint32_t l)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint32_t next = 0;
    for (uint32_t i = 0; i < n; i += 8) {
        uint64_t sizes = leat__load_u64(left + i);
        uint64_t larger = (sizes + ones * (127 - l)) >> 7 & ones;
        uint32_t bits8 = (uint32_t)((larger * UINT64_C(0x0102040810204080)) >> 56);
        if (n - i < 8) bits8 &= (1u << (n - i)) - 1;
        *at++ = (uint8_t)bits8;
        for (uint32_t k = 0; k < 8; k++) {
            left[next] = (uint8_t)(sizes >> 8 * k);
            next += bits8 >> k & 1;
        }
    }
    return next;
}

/* Returns the low bits of the value; of a negative one, minus one. */
PACK_INLINE uint32_t pack_low_bits(int32_t v, uint32_t size)
{
    return (uint32_t)(v + (v >> 31)) & ((1u << size) - 1);
}

PACK_INLINE void pack_extra(pack_bits *b, int32_t v)
{
    uint32_t size = pack_size(v);
    pack_put(b, pack_low_bits(v, size), size);
}

/* ---- restoring blocks ---- */

PACK_INLINE bool pack_same(const leat__tile_coefs *coefs, uint32_t b, const int16_t *block)
{
    const int16_t *value = coefs->value + coefs->first[b];
    int16_t whole[64] = {0};
    for (uint64_t mask = coefs->mask[b]; mask != 0; mask &= mask - 1)
        whole[leat__tile_order[__builtin_ctzll(mask)]] = *value++;
    whole[0] = coefs->dc[b];
    return memcmp(whole, block, sizeof whole) == 0;
}

/* ---- restoring scan order ---- */

/* Maps a bit of a tile's bitmap to its position in zigzag order. */
static const uint8_t pack_place[64] = {
    0,  1,  5,  6,  2,  4,  7,  13, 3,  8,  12, 17, 9,  11, 18, 24, 14, 15, 27, 28, 16, 26,
    29, 42, 10, 19, 23, 32, 20, 22, 33, 38, 25, 30, 41, 43, 31, 40, 44, 53, 21, 34, 37, 47,
    35, 36, 48, 49, 39, 45, 52, 54, 46, 51, 55, 60, 50, 56, 59, 61, 57, 58, 62, 63,
};

PACK_INLINE void pack_add_symbol(leat__scan_block *out, uint32_t symbol, uint32_t extra)
{
    out->symbol[out->symbols] = (uint8_t)symbol;
    out->extra[out->symbols] = (uint16_t)extra;
}

/* Converts the coefficients in out->at to symbols in place: writing never overtakes reading. */
PACK_INLINE void pack_symbols(leat__scan_block *out)
{
    uint32_t last = 0;
    out->symbols = 0;
    out->plain = false;
    for (uint64_t mask = out->ac; mask != 0; mask &= mask - 1) {
        uint32_t k = (uint32_t)__builtin_ctzll(mask);
        out->plain |= k - last > LEAT__SCAN_RUN_MAX + 1;
        last = k;
    }
    if (out->plain) return;
    last = 0;
    for (uint64_t mask = out->ac; mask != 0; mask &= mask - 1, out->symbols++) {
        uint32_t k = (uint32_t)__builtin_ctzll(mask);
        int32_t v = out->at[k];
        uint32_t size = pack_size(v);
        pack_add_symbol(out, (k - last - 1) << 4 | size, pack_low_bits(v, size));
        last = k;
    }
    pack_add_symbol(out, LEAT__SCAN_END, 0);
    out->symbols += last < 63;
    pack_add_symbol(out, LEAT__SCAN_NOTHING, 0);
}

PACK_INLINE void pack_order(leat__scan_block *out, const leat__tile_coefs *coefs, uint32_t b)
{
    const int16_t *value = coefs->value + coefs->first[b];
    uint64_t ac = 0;
    for (uint64_t mask = coefs->mask[b]; mask != 0; mask &= mask - 1) {
        uint32_t k = pack_place[__builtin_ctzll(mask)];
        out->at[k] = *value++;
        ac |= UINT64_C(1) << k;
    }
    out->ac = ac & ~UINT64_C(1);
    out->dc = coefs->dc[b];
    pack_symbols(out);
}

#endif
