/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that pack a JPEG into tiles and restore it (docs/tile-format.md). Packing converts blocks of
 * coefficients to the parts of a tile, and these to planes and extra bits. Restoring converts a decoded
 * tile to blocks in scan order, ready for lookups in Huffman tables. All variants give the same result for
 * any coefficients.
 */
#ifndef LEAT_DSP_TILE_PACK_H
#define LEAT_DSP_TILE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dsp/tile_entropy.h"

#define LEAT__TILE_OVERWRITE 64 /* values or bytes that may be written past the last valid one */

/* One tile split into parts, in coding order. */
typedef struct leat__tile_parts {
    int16_t value[LEAT__TILE_VALUES_MAX + LEAT__TILE_OVERWRITE];
    uint8_t size[LEAT__TILE_VALUES_MAX + LEAT__TILE_OVERWRITE]; /* scratch */
    uint64_t mask[LEAT__TILE_BLOCKS_MAX];
    uint8_t groups[LEAT__TILE_BLOCKS_MAX + 1]; /* one entry past a component's last is read */
    uint32_t values;
} leat__tile_parts;

/* Appends `count` adjacent blocks (64 coefficients each, row by row) to `parts`, whose next block is number
 * b. `guess` predicts the DC of the first block; each other DC is predicted by the previous block. Returns
 * the bitwise union of all AC magnitudes: every
 * c
 * is at most one more. */
typedef uint32_t (*leat__tile_take_fn)(leat__tile_parts *parts, uint32_t b, const int16_t *blocks,
                                       uint32_t count, int16_t guess);

/* Writes size planes and extra bits of the values, which have at most 15 bits each. Returns the end; up to
 * LEAT__TILE_OVERWRITE bytes after it are written. */
typedef uint8_t *(*leat__tile_put_values_fn)(uint8_t *at, leat__tile_parts *parts);

/* A block to be written to a scan: the symbols of its AC coefficients (preceding zeros << 4
 * bits of the value) and their extra bits, 1 to 63 of them. The last may be "only zeros follow". NOTHING is
 * appended, so that symbols can be taken in pairs. If there are more than fifteen consecutive zeros, `plain`
 * is set instead, and the positions in `ac` (zigzag) have their coefficients in `at`. */
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
#define LEAT__SCAN_NOTHING 0x10 /* not a symbol of JPEG */
#define LEAT__SCAN_RUN_MAX 15

/* Converts blocks first .. first+count-1 of a decoded tile. */
typedef void (*leat__tile_order_fn)(leat__scan_block *out, const leat__tile_coefs *coefs, uint32_t first,
                                    uint32_t count);

/* True when blocks first .. first+count-1 of a decoded tile equal the given ones, which are adjacent as for
 * `take`. */
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
