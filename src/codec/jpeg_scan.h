/* SPDX-License-Identifier: Apache-2.0
 *
 * The entropy-coded data of ordinary JPEGs, decoded by leat itself: 8-bit sequential Huffman
 * files with one scan of all components, any sampling, with or without restart intervals.
 * Everything else, and everything in which anything at all is odd or damaged, is answered
 * with false: "not mine, ask libjpeg-turbo", which then gives the verdict and the words. What
 * is decoded here without false are the coefficients that libjpeg-turbo decodes.
 *
 *   leat__jpeg_scan_start(s, data, len)    headers and tables
 *   leat__jpeg_scan_begin(s, &at)          a cursor on the first MCU
 *   leat__jpeg_scan_mcus(s, &at, n, &to)   decodes n MCUs, leat__jpeg_scan_skip passes over n
 *   leat__jpeg_scan_finish(s, &at, &end)   behind the last MCU: the end marker is there
 *
 * A cursor is a value: a copy of it is an entry point, from which decoding can continue at any
 * later time without the data before it. A scan belongs to one thread; a cursor to its
 * holder. Nothing is read outside [data, data + len), whatever a cursor says.
 */
#ifndef LEAT_CODEC_JPEG_SCAN_H
#define LEAT_CODEC_JPEG_SCAN_H

#include "codec/jpeg_coef.h"

typedef struct leat__jpeg_scan leat__jpeg_scan;

/* Where decoding stands: before MCU number `mcu`, with `bit` bits taken of data[byte]. */
typedef struct leat__jpeg_cursor {
    uint64_t byte; /* from the start of the file */
    uint32_t bit;  /* 0..7, from the highest */
    uint32_t mcu;
    int16_t dc[4]; /* of the last block of each component; 0 after a restart */
} leat__jpeg_cursor;

/* What a scan has beside its coefficients. Without oddities and with unused bits of one kind,
 * it is the only scan that the usual encoder can make of them: see tile_restore.c. */
typedef struct leat__jpeg_traits {
    bool odd;         /* a symbol with two codes, or a run of zeros before the end of a block */
    bool ones, zeros; /* among the unused bits before markers */
} leat__jpeg_traits;

/* Where the blocks of a run of MCUs go. Block (x, y) of component c in the n-th MCU of the run
 * is written to block[c] + 64 * (y * stride[c] + n * mcu_h + x), in natural order and whole,
 * zeros too. mcu_h is the component's h, or 1 in a scan of one component. */
typedef struct leat__jpeg_blocks {
    int16_t *block[4];         /* 16-byte aligned */
    size_t stride[4];          /* in blocks */
    uint8_t *last[4];          /* or NULL: at the same places without the 64, the zigzag place
                                * behind which all coefficients are zero */
    leat__jpeg_traits *traits; /* or NULL: added to */
    bool means_only[4];        /* without traits: only coefficient 0 of each block is written */
} leat__jpeg_blocks;

/* One per thread, for any number of files: keeps tables that the next file has too. */
int leat__jpeg_scan_open(leat__jpeg_scan **s, leat_error *err) LEAT_MUST_CHECK;
void leat__jpeg_scan_close(leat__jpeg_scan **s);

/* Reads the headers. `data` must live while the scan is used. False: not mine. */
bool leat__jpeg_scan_start(leat__jpeg_scan *s, const uint8_t *data, size_t len) LEAT_MUST_CHECK;

/* What the headers say, valid until the next start: all fields of leat__jpeg_coefs except the
 * coefficients, tail and pixels (NULL, 0); scan_len is up to the end of the data. */
const leat__jpeg_coefs *leat__jpeg_scan_frame(const leat__jpeg_scan *s);

/* MCUs per row and rows of them: as in the frame, but of single blocks when there is one
 * component. */
uint32_t leat__jpeg_scan_mcus_x(const leat__jpeg_scan *s);
uint32_t leat__jpeg_scan_mcus_y(const leat__jpeg_scan *s);

void leat__jpeg_scan_begin(const leat__jpeg_scan *s, leat__jpeg_cursor *at);

/* Decodes `count` MCUs and moves the cursor past them; skip does not keep what it decodes.
 * False: damaged or not mine, or fewer MCUs are left; cursor and blocks are then worthless. */
bool leat__jpeg_scan_mcus(const leat__jpeg_scan *s, leat__jpeg_cursor *at, uint32_t count,
                          const leat__jpeg_blocks *to) LEAT_MUST_CHECK;
bool leat__jpeg_scan_skip(const leat__jpeg_scan *s, leat__jpeg_cursor *at, uint32_t count) LEAT_MUST_CHECK;

/* Whether the scan ends here as it should: no MCU and no byte is left, and the end marker
 * follows. *end is then just after it, and `traits` (or NULL), if all MCUs were decoded with
 * them, complete. */
bool leat__jpeg_scan_finish(const leat__jpeg_scan *s, const leat__jpeg_cursor *at, size_t *end,
                            leat__jpeg_traits *traits) LEAT_MUST_CHECK;

/* Starts and decodes all MCUs, keeping nothing: whether the file is valid, within the limits
 * (zeroed: the defaults), and such that libjpeg-turbo would decode it to pixels without a
 * complaint. False: not known. */
bool leat__jpeg_scan_whole(leat__jpeg_scan *s, const uint8_t *data, size_t len,
                           const leat__decode_limits *limits) LEAT_MUST_CHECK;

/* Finds damage that libjpeg passes over without a warning: codes that no encoder writes. Returns the first
 * one in words, with its place in the file, or NULL: none, or not mine. */
const char *leat__jpeg_scan_fault(leat__jpeg_scan *s, const uint8_t *data, size_t len, size_t *offset);

#endif
