/* SPDX-License-Identifier: Apache-2.0
 *
 * Portable reference of the packing kernels, and the selection of a variant. Any thread; no state.
 */
#include "dsp/tile_pack.h"

#include "dsp/tile_pack_tmpl.h"
#ifdef LEAT_X86
#include "dsp/x86/tile_x86.h"
#endif

/* Returns a bit for each of the four coefficients in a word that is not zero. Bit 15 of each lane is set
 * then, and the product gathers the four bits without carries. */
static inline uint64_t nonzero4(uint64_t word)
{
    const uint64_t low = UINT64_C(0x7fff7fff7fff7fff);
    uint64_t bit = (((word & low) + low) | word) >> 15 & UINT64_C(0x0001000100010001);
    return (bit * UINT64_C(0x0001000200040008)) >> 48 & 15;
}

/* Copies the block in tile order, half a row at a time, and returns its bitmap. */
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

static uint32_t take_c(leat__tile_parts *p, uint32_t b, const int16_t *blocks, uint32_t count, int16_t guess)
{
    uint16_t all = 0;
    for (uint32_t i = 0; i < count; i++, blocks += 64) {
        int16_t ordered[64];
        int16_t *value = p->value + p->values;
        uint64_t mask = order_block(ordered, blocks);
        for (uint32_t k = 1; k < 64; k++) all |= (uint16_t)(ordered[k] ^ (ordered[k] >> 15));
        ordered[0] = (int16_t)(ordered[0] - guess);
        guess = blocks[0];
        mask = (mask & ~UINT64_C(1)) | (ordered[0] != 0);
        pack_note(p, b + i, mask);
        p->values += (uint32_t)__builtin_popcountll(mask);
        for (; mask != 0; mask &= mask - 1) *value++ = ordered[__builtin_ctzll(mask)];
    }
    return all;
}

static uint8_t *put_values_c(uint8_t *at, leat__tile_parts *p)
{
    for (uint32_t i = 0; i < p->values; i++) p->size[i] = (uint8_t)pack_size(p->value[i]);
    for (uint32_t l = 1, left = p->values; left > 0; l++) {
        uint32_t next = pack_plane(at, p->size, left, l);
        at += (left + 7) / 8;
        left = next;
    }
    pack_bits b = {.at = at};
    uint32_t i = 0;
    for (; i + 3 <= p->values; i += 3) { /* three values of 15 bits fit in addition to seven waiting bits */
        for (uint32_t k = i; k < i + 3; k++) pack_extra(&b, p->value[k]);
        pack_spill(&b);
    }
    for (; i < p->values; i++) pack_extra(&b, p->value[i]);
    return pack_flush(&b);
}

static void order_c(leat__scan_block *out, const leat__tile_coefs *coefs, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) pack_order(out + i, coefs, first + i);
}

static bool same_c(const leat__tile_coefs *coefs, uint32_t first, const int16_t *blocks, uint32_t count)
{
    bool same = true;
    for (uint32_t i = 0; i < count; i++) same &= pack_same(coefs, first + i, blocks + 64 * i);
    return same;
}

void leat__tile_pack_init(leat__tile_pack_dsp *dsp, uint32_t cpu_flags)
{
    dsp->take = take_c;
    dsp->put_values = put_values_c;
    dsp->order = order_c;
    dsp->same = same_c;
    dsp->isa = "c";
#ifdef LEAT_X86
    leat__tile_pack_init_x86(dsp, cpu_flags);
#endif
}
