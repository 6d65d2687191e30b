/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of packing a JPEG into tiles and of writing one back (docs/tile-format.md): blocks of
 * coefficients -> the parts of a tile -> its planes and extra bits; and a decoded tile -> blocks
 * in the order of a scan, ready to be looked up in Huffman tables. All variants give the same
 * answer, for any coefficients at all.
 */
#ifndef LEAT_DSP_TILE_PACK_H
#define LEAT_DSP_TILE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dsp/tile_entropy.h"

#define LEAT__TILE_OVERWRITE 64 /* values or bytes written behind the last one that counts */

/* One tile taken apart, in coding order. */
typedef struct leat__tile_parts {
    int16_t value[LEAT__TILE_VALUES_MAX + LEAT__TILE_OVERWRITE];
    uint8_t size[LEAT__TILE_VALUES_MAX + LEAT__TILE_OVERWRITE]; /* scratch */
    uint64_t mask[LEAT__TILE_BLOCKS_MAX];
    uint8_t groups[LEAT__TILE_BLOCKS_MAX + 1]; /* one behind a component's last is read */
    uint32_t values;
} leat__tile_parts;

/* Appends `count` blocks that lie one behind the other (64 coefficients each, row by row) to
 * `parts`, whose next block is number b. `guess`: what the first one's DC is told from; the
 * others are told from the block before. Returns the union of all magnitudes but the DCs':
 * every |c| is at most one more. */
typedef uint32_t (*leat__tile_take_fn)(leat__tile_parts *parts, uint32_t b, const int16_t *blocks,
                                       uint32_t count, int16_t guess);

/* Writes size planes and extra bits of the values, all of which have 15 bits at most. Returns
 * the end; up to LEAT__TILE_OVERWRITE bytes after it are written. */
typedef uint8_t *(*leat__tile_put_values_fn)(uint8_t *at, leat__tile_parts *parts);

/* A block to be written to a scan: the symbols of its AC coefficients (zeros before << 4 | bits of
 * the value) and their extra bits, 1 to 63 of them. The last may be "only zeros follow", and
 * NOTHING follows it, so that they can be taken two by two. If there are more than fifteen
 * consecutive zeros, `plain` is set instead, and the places named in `ac` (zigzag) have their
 * coefficients in `at`. */
typedef struct leat__scan_block {
    union {
        uint16_t extra[64];
        int16_t at[64];
    };
    uint8_t symbol[64];
    uint64_t ac;
    int16_t dc;
    uint8_t symbols;
    bool plain;
} leat__scan_block;

#define LEAT__SCAN_END 0
#define LEAT__SCAN_NOTHING 0x10 /* no symbol of JPEG's */
#define LEAT__SCAN_RUN_MAX 15

/* Blocks first .. first+count-1 of a decoded tile. */
typedef void (*leat__tile_order_fn)(leat__scan_block *out, const leat__tile_coefs *coefs, uint32_t first,
                                    uint32_t count);

/* Whether blocks first .. first+count-1 of a decoded tile are these, which lie one behind the
 * other as for `take`. */
typedef bool (*leat__tile_same_fn)(const leat__tile_coefs *coefs, uint32_t first, const int16_t *blocks,
                                   uint32_t count);

typedef struct leat__tile_pack_dsp {
    leat__tile_take_fn take;
    leat__tile_put_values_fn put_values;
    leat__tile_order_fn order;
    leat__tile_same_fn same;
    const char *isa;
} leat__tile_pack_dsp;

void leat__tile_pack_init(leat__tile_pack_dsp *dsp, uint32_t cpu_flags);

#endif
