/* SPDX-License-Identifier: Apache-2.0
 *
 * The entropy decoder of one tile (docs/tile-format.md). Decodes bytes to the positions of the nonzero
 * coefficients of each block, and their values in order, without a branch per coefficient. The result
 * stays sparse: dsp/idct.h expands only the blocks that are needed.
 *
 * The input is not trusted. Kernels check every length before use, read at most LEAT__TILE_OVERREAD bytes
 * past the tile, and write only to `coefs`. Their work is bounded by the number of blocks. All variants
 * give the same result for the same bytes, damaged or not.
 */
#ifndef LEAT_DSP_TILE_ENTROPY_H
#define LEAT_DSP_TILE_ENTROPY_H

#include <stddef.h>
#include <stdint.h>

#define LEAT__TILE_PIXELS 64      /* side of a tile */
#define LEAT__TILE_COMPONENTS 3   /* maximum; grey has one */
#define LEAT__TILE_BLOCKS_MAX 192 /* blocks of a tile at 4:4:4 */
#define LEAT__TILE_VALUES_MAX (LEAT__TILE_BLOCKS_MAX * 64)
#define LEAT__TILE_PLANES_MAX 15 /* a value has at most 15 bits */
#define LEAT__TILE_CODE_BITS 11  /* longest Huffman code */
#define LEAT__TILE_CONTEXTS 14   /* tables for bitmap bytes; two more are for pairs of counts */
#define LEAT__TILE_TABLES (LEAT__TILE_CONTEXTS + 2)
#define LEAT__TILE_PAIRS 81 /* symbols of the two tables of pairs: 9 x 9 */
#define LEAT__TILE_OVERREAD 64

/* Maps a position in a block's bitmap to row * 8 + column. The block is eight groups of two rows by four
 * columns; a group is one byte of the bitmap. */
static const uint8_t leat__tile_order[64] = {
    0,  1,  2,  3,  8,  9,  10, 11, /* left half of rows 0 and 1 */
    16, 17, 18, 19, 24, 25, 26, 27, /* left half of rows 2 and 3 */
    4,  5,  6,  7,  12, 13, 14, 15, /* right half of rows 0 and 1 */
    32, 33, 34, 35, 40, 41, 42, 43, /* left half of rows 4 and 5 */
    20, 21, 22, 23, 28, 29, 30, 31, /* right half of rows 2 and 3 */
    48, 49, 50, 51, 56, 57, 58, 59, /* left half of rows 6 and 7 */
    36, 37, 38, 39, 44, 45, 46, 47, /* right half of rows 4 and 5 */
    52, 53, 54, 55, 60, 61, 62, 63, /* right half of rows 6 and 7 */
};

/* Bits of the groups in the 4x4 corner of low frequencies: groups 0 and 1. */
#define LEAT__TILE_CORNER UINT64_C(0xffff)

/* A pack's tables in the form for decoding. entry: length
 * symbol << 8, indexed by the next LEAT__TILE_CODE_BITS bits. context: [0 luma, 1 chroma][groups used][group]
 * -> table. */
typedef struct leat__tile_codes {
    uint16_t entry[LEAT__TILE_TABLES][1 << LEAT__TILE_CODE_BITS];
    uint8_t context[2][9][8];
} leat__tile_codes;

/* The blocks of each component of a tile, in raster order within a component. */
typedef struct leat__tile_shape {
    uint32_t components;
    uint32_t wide[LEAT__TILE_COMPONENTS], high[LEAT__TILE_COMPONENTS];
    uint32_t count[LEAT__TILE_COMPONENTS]; /* wide * high */
    uint32_t blocks;                       /* sum of counts, <= LEAT__TILE_BLOCKS_MAX */
} leat__tile_shape;

/* Blocks that kernels read ahead, because they process four at a time. */
#define LEAT__TILE_BLOCKS_PAD 8

/* The content of a tile. Block b has the coefficients whose bits are set in mask[b] (positions by
 * leat__tile_order), with values from value[first[b]] on. The DC coefficient is dc[b], after prediction
 * (modulo 2^16); the value of bit 0, if set, is only the difference. Entries past the last block are empty
 * blocks. The rest is scratch of the kernels. */
typedef struct leat__tile_coefs {
    _Alignas(64) int16_t value[LEAT__TILE_VALUES_MAX + 128];
    _Alignas(64) uint8_t size[2][LEAT__TILE_VALUES_MAX + 128];
    uint64_t mask[LEAT__TILE_BLOCKS_MAX + LEAT__TILE_BLOCKS_PAD];
    uint32_t first[LEAT__TILE_BLOCKS_MAX + LEAT__TILE_BLOCKS_PAD];
    int16_t dc[LEAT__TILE_BLOCKS_MAX + LEAT__TILE_BLOCKS_PAD];
    uint8_t groups[LEAT__TILE_BLOCKS_MAX + 64]; /* bytes in each block's bitmap */
    uint8_t table[LEAT__TILE_BLOCKS_MAX * 8 + 64];
    uint8_t symbol[LEAT__TILE_BLOCKS_MAX * 8 + 64];
} leat__tile_coefs;

/* Why a tile is refused. */
typedef enum leat__tile_damage {
    LEAT__TILE_WHOLE = 0,
    LEAT__TILE_SHORT,      /* too short for its own parts */
    LEAT__TILE_BAD_STREAM, /* a Huffman stream does not end where the next one begins */
    LEAT__TILE_BAD_PLANES, /* more than LEAT__TILE_PLANES_MAX planes, or truncated */
    LEAT__TILE_BAD_END     /* the extra bits do not end with the tile */
} leat__tile_damage;

/* Decodes `len` bytes at `in`. `codes` NULL: the bitmaps are not Huffman-coded. */
typedef leat__tile_damage (*leat__tile_decode_fn)(leat__tile_coefs *coefs, const uint8_t *in, size_t len,
                                                  const leat__tile_shape *shape,
                                                  const leat__tile_codes *codes);

typedef struct leat__tile_entropy_dsp {
    leat__tile_decode_fn decode;
    const char *isa; /* "c", "avx2", "avx2 without pdep", "avx512" */
} leat__tile_entropy_dsp;

/* Fills the table for these CPU flags (leat__cpu_flags()). */
void leat__tile_entropy_init(leat__tile_entropy_dsp *dsp, uint32_t cpu_flags);

const char *leat__tile_damage_text(leat__tile_damage damage);

#endif
