/* SPDX-License-Identifier: Apache-2.0
 *
 * Entry points of a JPEG: positions in its entropy-coded data at which decoding can start, so that a region
 * costs only its own area, not the area above and left of it. They are computed when an image is packed,
 * and stored beside the file's bytes (docs/format.md, section 3.1). They are optional: if they are missing
 * or wrong, the file is decoded from its start.
 *
 * There is one entry every `step` MCUs, in scan order. Each is a record with a fixed number of bits, so
 * that any of them can be looked up without the others.
 */
#ifndef LEAT_CODEC_JPEG_ENTRIES_H
#define LEAT_CODEC_JPEG_ENTRIES_H

#include "base/buf.h"
#include "codec/jpeg_scan.h"

/* One record of about six bytes per this many bytes of the file. */
#define LEAT__JPEG_ENTRY_SPACING 1024

/* A view of encoded entry points, checked against the file's headers. */
typedef struct leat__jpeg_entries {
    const uint8_t *records;
    uint64_t bytes; /* of all records */
    uint32_t step;  /* MCUs from one entry to the next */
    uint32_t components;
    uint32_t position_bits, dc_bits[3];
    uint32_t record_bits;
} leat__jpeg_entries;

/* Opens encoded entry points. False when they are damaged or not of this file. */
bool leat__jpeg_entries_view(leat__jpeg_entries *e, const uint8_t *data, size_t len,
                             const leat__jpeg_scan *scan) LEAT_MUST_CHECK;

/* Finds the last entry at or before an MCU of the image. Its content is not trusted: leat__jpeg_scan accepts
 * any cursor. */
void leat__jpeg_entries_find(const leat__jpeg_entries *e, uint32_t mcu, leat__jpeg_cursor *at);

/* Receives the MCUs of a scan. `begin` is called once, first; false: the MCUs are not wanted. `mcus` decodes
 * the next ones and moves the cursor past them; false: as leat__jpeg_scan_mcus. */
typedef struct leat__jpeg_taker {
    void *ctx;
    bool (*begin)(void *ctx, const leat__jpeg_scan *scan);
    bool (*mcus)(void *ctx, const leat__jpeg_scan *scan, leat__jpeg_cursor *at, uint32_t count);
} leat__jpeg_taker;

/* Decodes the whole file and appends its entry points to `out`; none when the file is too short to benefit.
 * `taker` (or NULL) gets all MCUs. *whole: the file is within the limits (zeroed: the defaults), valid up to
 * its end marker, and of a kind whose regions leat decodes itself. Otherwise nothing is appended, and
 * libjpeg-turbo must decode the file. Fails only with LEAT_ENOMEM. */
int leat__jpeg_entries_make(leat__jpeg_scan *scan, const uint8_t *data, size_t len,
                            const leat__decode_limits *limits, const leat__jpeg_taker *taker, leat__buf *out,
                            bool *whole, leat_error *err) LEAT_MUST_CHECK;

#endif
