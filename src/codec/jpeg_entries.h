/* SPDX-License-Identifier: Apache-2.0
 *
 * Entry points of a JPEG: places in its entropy-coded data from which decoding can start, so
 * that a region costs only its own area, not the area above and left of it. Made when an
 * image is packed, kept beside the file's bytes (docs/format.md, section 3.1), never needed:
 * without them, or when they turn out wrong, the file is decoded from its beginning.
 *
 * There is one every `step` MCUs, in the order of the scan. An entry is a record of a fixed
 * number of bits, so that any of them is found without the others.
 */
#ifndef LEAT_CODEC_JPEG_ENTRIES_H
#define LEAT_CODEC_JPEG_ENTRIES_H

#include "base/buf.h"
#include "codec/jpeg_scan.h"

/* One record of about six bytes for this many bytes of the file. */
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

/* False: not entry points of this file, or damaged. */
bool leat__jpeg_entries_view(leat__jpeg_entries *e, const uint8_t *data, size_t len,
                             const leat__jpeg_scan *scan) LEAT_MUST_CHECK;

/* The last entry at or before an MCU of the image. What it says comes from outside:
 * leat__jpeg_scan takes any cursor. */
void leat__jpeg_entries_find(const leat__jpeg_entries *e, uint32_t mcu, leat__jpeg_cursor *at);

/* Takes the next MCUs of a scan and moves the cursor past them; `begin` is called first, once. False: as
 * leat__jpeg_scan_mcus, or not wanted. */
typedef struct leat__jpeg_taker {
    void *ctx;
    bool (*begin)(void *ctx, const leat__jpeg_scan *scan);
    bool (*mcus)(void *ctx, const leat__jpeg_scan *scan, leat__jpeg_cursor *at, uint32_t count);
} leat__jpeg_taker;

/* Walks through the whole file and appends its entry points to `out`; none when it is too
 * short to gain. `taker` (or NULL) gets all MCUs on the way. *whole: the file is within the limits (zeroed:
 * the defaults), sound up to its end marker, and of a kind of which leat decodes regions itself. Otherwise
 * nothing is appended, and libjpeg-turbo has to be asked about the file. LEAT_ENOMEM, nothing else. */
int leat__jpeg_entries_make(leat__jpeg_scan *scan, const uint8_t *data, size_t len,
                            const leat__decode_limits *limits, const leat__jpeg_taker *taker, leat__buf *out,
                            bool *whole, leat_error *err) LEAT_MUST_CHECK;

#endif
