/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the entropy-coded bits of a JPEG scan: a bit queue, Huffman codes, and the passes of progressive
 * files. Shared by tile_restore.c and tile_progressive.c. No state.
 */
#ifndef LEAT_CODEC_TILE_TILE_SCAN_H
#define LEAT_CODEC_TILE_TILE_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "dsp/tile_pack.h"

/* A code is its bits << 8
 * their number. This bit marks a missing code. */
#define LEAT__SCAN_NO_CODE (UINT64_C(1) << 63)

typedef struct leat__scan_codes {
    uint64_t entry[256];    /* code of a symbol, with zeros in place of its extra bits */
    uint64_t run_of_two;    /* code of symbol 0x10, whose entry is LEAT__SCAN_NOTHING's */
    uint8_t spec[16 + 256]; /* counts and symbols that the codes were built from */
    size_t spec_len;
    bool defined; /* by the current file */
} leat__scan_codes;

/* Bits to be packed into bytes, highest first; fewer than eight wait between calls. */
typedef struct leat__scan_queue {
    uint64_t acc; /* the lowest bits are the latest; bits above the waiting ones have no meaning */
    uint32_t bits;
    uint8_t *at;
} leat__scan_queue;

/* Appends at most 56 bits; the rest of `value` must be zero. Has no branch, because the fill of the queue is
 * unpredictable. Stores eight bytes and advances past the full ones. */
static inline void leat__scan_put_bits(leat__scan_queue *q, uint64_t value, uint32_t n)
{
    q->acc = q->acc << n | value;
    q->bits += n;
    leat__store_u64(q->at, __builtin_bswap64(q->acc << 1 << (63 - q->bits)));
    q->at += q->bits >> 3;
    q->bits &= 7;
}

/* Appends a code of at most 31 bits. The mark of a missing code may get into the bits, which is harmless: an
 * error follows. */
static inline void leat__scan_put_code(leat__scan_queue *q, uint64_t code)
{
    leat__scan_put_bits(q, code >> 8, code & 255);
}

/* Returns the Huffman code and the extra bits of value v after `run` zeros. */
static inline uint64_t leat__scan_code_of(const leat__scan_codes *t, uint32_t run, int v)
{
    uint32_t size = v == 0 ? 0 : 32 - (uint32_t)__builtin_clz((uint32_t)abs(v));
    uint64_t extra = (uint32_t)(v + (v >> 31)) & ((1u << size) - 1);
    if (size > 15) return LEAT__SCAN_NO_CODE; /* only damaged samples have such values */
    return t->entry[run << 4 | size] | extra << 8;
}

/* ---- passes of progressive files ---- */

/* The part of the coefficients that a scan codes: positions first .. last (zigzag) of each block, down to bit
 * `low`. `refine`: earlier scans coded the bits above. */
typedef struct leat__scan_pass {
    uint32_t first, last, low;
    bool refine;
} leat__scan_pass;

/* Limits of libjpeg's encoder: blocks in one run, and correction bits that wait with it. Common encoders have
 * them, so files are restored with the same runs. */
enum { LEAT__SCAN_RUN_BLOCKS = 0x7fff, LEAT__SCAN_RUN_BITS = 937 };

/* Ended blocks that are not yet written, and their correction bits. */
typedef struct leat__scan_run {
    uint32_t blocks, bits;
    uint8_t bit[LEAT__SCAN_RUN_BITS + 64];
} leat__scan_run;

/* Bytes that one call may write: a block and the run before it. */
enum { LEAT__SCAN_PASS_ROOM = 512 };

/* Writes the part of one block that a pass codes; the block must have `plain` set. *guess: the DC of the
 * component's previous block. False when a symbol has no code. */
bool leat__scan_put_pass(leat__scan_queue *q, const leat__scan_block *block, const leat__scan_pass *pass,
                         const leat__scan_codes *dc, const leat__scan_codes *ac, int *guess,
                         leat__scan_run *run);

/* Writes the run: before a restart marker and at the end of a scan. */
bool leat__scan_end_run(leat__scan_queue *q, leat__scan_run *run, const leat__scan_codes *ac);

#endif
