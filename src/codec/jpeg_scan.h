/* SPDX-License-Identifier: Apache-2.0
 *
 * The entropy-coded data of ordinary JPEGs, decoded by leat itself: 8-bit sequential Huffman
 * files with one scan of all components, any sampling, with or without restart intervals.
 * For everything else, and for any oddity or damage, the functions return false: "not supported here".
 * libjpeg-turbo must then decode the file and report errors. If no function returns false, the
 * coefficients equal those of libjpeg-turbo.
 *
 *   leat__jpeg_scan_start(s, data, len)    headers and tables
 *   leat__jpeg_scan_begin(s, &at)          a cursor on the first MCU
 *   leat__jpeg_scan_mcus(s, &at, n, &to)   decodes n MCUs; leat__jpeg_scan_skip skips n
 *   leat__jpeg_scan_finish(s, &at, &end)   after the last MCU: checks the end marker
 *
 * A cursor is a plain value: a copy of it is an entry point, from which decoding can continue at any later
 * time without the data before it. A scan belongs to one thread, a cursor to its owner. Nothing outside
 * [data, data + len) is read, whatever a cursor contains.
 */
#ifndef LEAT_CODEC_JPEG_SCAN_H
#define LEAT_CODEC_JPEG_SCAN_H

#include "codec/jpeg_coef.h"

typedef struct leat__jpeg_scan leat__jpeg_scan;

/* A decoding position: before MCU number `mcu`, with `bit` bits of data[byte] consumed. */
typedef struct leat__jpeg_cursor {
    uint64_t byte; /* offset in the file */
    uint32_t bit;  /* 0..7, from the highest bit */
    uint32_t mcu;
    int16_t dc[4]; /* of the last block of each component; 0 after a restart */
} leat__jpeg_cursor;

/* Properties of a scan besides its coefficients. Without oddities and with unused bits of one kind, it is the
 * only scan that the usual encoder can write for them: see tile_restore.c. */
typedef struct leat__jpeg_traits {
    bool odd;         /* a symbol with two codes, or a run of zeros before the end of a block */
    bool ones, zeros; /* values of the unused bits before markers */
} leat__jpeg_traits;

/* The destination of the blocks of consecutive MCUs. Block (x, y) of component c in the n-th MCU is written
 * to block[c] + 64 * (y * stride[c] + n * mcu_h + x), in natural order, including zeros. mcu_h is the
 * component's h, or 1 in a scan of one component. */
typedef struct leat__jpeg_blocks {
    int16_t *block[4]; /* 16-byte aligned */
    size_t stride[4];  /* in blocks */
    uint8_t *last[4];  /* or NULL: one byte per block, in the same order as `block`: the zigzag position after
                          which its coefficients are zero */
    leat__jpeg_traits *traits; /* or NULL: updated */
    bool means_only[4];        /* only without traits: writes only coefficient 0 of each block */
} leat__jpeg_blocks;

/* One per thread, for any number of files; keeps tables that the next file shares. */
int leat__jpeg_scan_open(leat__jpeg_scan **s, leat_error *err) LEAT_MUST_CHECK;
void leat__jpeg_scan_close(leat__jpeg_scan **s);

/* Reads the headers. `data` must live while the scan is used. False: not supported here. */
bool leat__jpeg_scan_start(leat__jpeg_scan *s, const uint8_t *data, size_t len) LEAT_MUST_CHECK;

/* Returns the content of the headers, valid until the next start: all fields of leat__jpeg_coefs except the
 * coefficients, tail and pixels (NULL, 0); scan_len extends to the end of the data. */
const leat__jpeg_coefs *leat__jpeg_scan_frame(const leat__jpeg_scan *s);

/* MCUs per row, and rows of MCUs: as in the frame, but an MCU is a single block if there is one component. */
uint32_t leat__jpeg_scan_mcus_x(const leat__jpeg_scan *s);
uint32_t leat__jpeg_scan_mcus_y(const leat__jpeg_scan *s);

void leat__jpeg_scan_begin(const leat__jpeg_scan *s, leat__jpeg_cursor *at);

/* Decode `count` MCUs and move the cursor past them; skip discards the coefficients. False: damaged, not
 * supported here, or fewer MCUs are left; cursor and blocks are then invalid. */
bool leat__jpeg_scan_mcus(const leat__jpeg_scan *s, leat__jpeg_cursor *at, uint32_t count,
                          const leat__jpeg_blocks *to) LEAT_MUST_CHECK;
bool leat__jpeg_scan_skip(const leat__jpeg_scan *s, leat__jpeg_cursor *at, uint32_t count) LEAT_MUST_CHECK;

/* True when the scan ends correctly here: no MCU and no byte is left, and the end marker follows. *end is
 * then just after the marker. `traits` (or NULL) is then complete if all MCUs were decoded with it. */
bool leat__jpeg_scan_finish(const leat__jpeg_scan *s, const leat__jpeg_cursor *at, size_t *end,
                            leat__jpeg_traits *traits) LEAT_MUST_CHECK;

/* Decodes all MCUs without keeping them. True when the file is valid, within the limits (zeroed: the
 * defaults), and libjpeg-turbo would decode it to pixels without a warning. False: unknown. */
bool leat__jpeg_scan_whole(leat__jpeg_scan *s, const uint8_t *data, size_t len,
                           const leat__decode_limits *limits) LEAT_MUST_CHECK;

/* Finds damage that libjpeg decodes without an error: codes that no encoder writes, or for more rows than the
 * image has. Returns a description of the first one, with its offset in the file. NULL: none, or not
 * supported here. */
const char *leat__jpeg_scan_fault(leat__jpeg_scan *s, const uint8_t *data, size_t len, size_t *offset);

#endif
