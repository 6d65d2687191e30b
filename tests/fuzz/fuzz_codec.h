/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the targets of all image codecs: probe, decode the whole image, decode a region and a
 * scaled one drawn from the input, with small limits. Whatever the bytes, the result is pixels or
 * an error with a message; memory stays within the limits.
 */
#ifndef LEAT_FUZZ_CODEC_H
#define LEAT_FUZZ_CODEC_H

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "dsp/idct_small.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int fuzz_rows(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride)
{
    uint32_t *next = ctx;
    if (y != *next || count == 0) abort(); /* every row once, top to bottom */
    *next += count;
    return 0;
}

/* Rows of wide images: `*next` counts rows, and every byte is read. */
typedef struct fuzz_wide_seen {
    uint32_t rows;
    size_t line;
    uint64_t digest;
} fuzz_wide_seen;

static int fuzz_wide(void *ctx, uint32_t y, uint32_t count, const uint8_t *pixels, size_t stride)
{
    fuzz_wide_seen *seen = ctx;
    if (y != seen->rows || count == 0) abort();
    for (uint32_t i = 0; i < count; i++)
        seen->digest = leat__hash64(pixels + i * stride, seen->line, seen->digest);
    seen->rows += count;
    return 0;
}

static void fuzz_decode_wide(leat__decoder *d, const leat__image_info *info, const uint8_t *data, size_t size,
                             leat__decode_request rq, uint32_t height)
{
    leat_error err = {0};
    const uint32_t width = rq.width > 0 ? rq.width : info->width;
    fuzz_wide_seen seen = {.line = (size_t)width * info->channels * leat__sample_bytes(info->type)};
    leat__row_sink sink = {.wide = fuzz_wide, .ctx = &seen};
    rq.limits = (leat__decode_limits){.max_pixels = 1 << 22, .max_out_bytes = 1 << 24};
    int rc = leat__codec_decode(d, info, data, size, &rq, &sink, &err);
    if (rc == 0 && seen.rows != height) abort();
    if (rc != 0 && (err.code != rc || err.message[0] == 0)) abort();
}

static void fuzz_decode(leat__decoder *d, const leat__image_info *info, const uint8_t *data, size_t size,
                        leat__decode_request rq, uint32_t height)
{
    leat_error err = {0};
    uint32_t rows = 0;
    leat__row_sink sink = {fuzz_rows, &rows};
    if (leat__image_wide(info)) {
        fuzz_decode_wide(d, info, data, size, rq, height);
        return;
    }
    rq.limits = (leat__decode_limits){
        .max_pixels = 1 << 22, .max_out_bytes = 1 << 24, .max_scans = 50, .max_work = 100000000};
    int rc = leat__codec_decode(d, info, data, size, &rq, &sink, &err);
    if (rc == 0 && rows != height) abort();
    if (rc != 0 && (err.code != rc || err.message[0] == 0)) abort();
}

/* Components instead of pixels: a rectangle of each, drawn from `a` and `b`, halved `shrink`
 * times. *digest covers all samples. The sink checks that every row of every component comes
 * once. */
typedef struct fuzz_parts_seen {
    leat__ycc_part part[4];
    uint32_t rows[4];
    uint64_t digest;
} fuzz_parts_seen;

static int fuzz_part_rows(void *ctx, uint32_t c, uint32_t count, const uint8_t *rows, size_t stride)
{
    fuzz_parts_seen *seen = ctx;
    if (c >= 4 || count == 0 || seen->rows[c] + count > seen->part[c].height) abort();
    for (uint32_t i = 0; i < count; i++)
        seen->digest = leat__hash64(rows + i * stride, seen->part[c].width, seen->digest);
    seen->rows[c] += count;
    return 0;
}

static inline int fuzz_parts(leat__decoder *d, const leat__image_info *info, const uint8_t *data, size_t size,
                             leat__decode_request rq, uint32_t shrink, uint32_t a, uint32_t b,
                             uint64_t *digest)
{
    fuzz_parts_seen seen = {.digest = 0};
    leat__row_sink sink = {.ctx = &seen, .part = fuzz_part_rows};
    leat_error err = {0};
    for (uint32_t c = 0; c < info->channels; c++) {
        uint32_t across = (c == 0 ? 1 : info->chroma_h) << shrink;
        uint32_t down = (c == 0 ? 1 : info->chroma_v) << shrink;
        uint32_t width = (info->width + across - 1) / across, height = (info->height + down - 1) / down;
        leat__ycc_part p = {.x = a * width / 300, .y = b * height / 300, .shrink = shrink};
        p.width = 1 + (width - p.x - 1) * b / 256;
        p.height = 1 + (height - p.y - 1) * a / 256;
        seen.part[c] = p;
    }
    rq.parts = seen.part;
    int rc = leat__codec_decode(d, info, data, size, &rq, &sink, &err);
    if (rc != 0 && (err.code != rc || err.message[0] == 0)) abort();
    for (uint32_t c = 0; rc == 0 && c < info->channels; c++)
        if (seen.rows[c] != seen.part[c].height) abort();
    *digest = rc == 0 ? seen.digest : 0;
    return rc;
}

static inline void fuzz_codec(leat__codec_id id, const uint8_t *data, size_t size)
{
    leat__image_info info;
    leat__decoder *d = NULL;
    leat_error err = {0};
    uint8_t *padded = calloc(1, size + LEAT__CODEC_PADDING);
    if (!padded) return;
    if (size > 0) memcpy(padded, data, size);
    leat__mem_limit_set(256u << 20);
    (void)leat__codec_sniff(padded, size);
    int rc = leat__codec_probe(id, padded, size, &info, &err);
    if (rc == 0 && leat__decoder_open(&d, NULL) == 0) {
        if (info.width == 0 || info.height == 0 || info.channels < 1 || info.channels > LEAT__CHANNELS_MAX ||
            info.orientation < 1 || info.orientation > 8)
            abort();
        fuzz_decode(d, &info, padded, size, (leat__decode_request){0}, info.height);
        uint32_t a = size > 40 ? padded[size / 2] : 3, b = size > 40 ? padded[size / 3] : 5;
        leat__decode_request part = {.x = a * info.width / 300, .y = b * info.height / 300};
        part.width = 1 + (info.width - part.x - 1) * b / 256;
        part.height = 1 + (info.height - part.y - 1) * a / 256;
        if ((uint64_t)info.width * info.height < (1u << 24)) {
            fuzz_decode(d, &info, padded, size, part, part.height);
            if (id == LEAT__CODEC_JPEG)
                fuzz_decode(d, &info, padded, size, (leat__decode_request){.scale_denom = 4},
                            leat__scaled_side(info.height, 4));
            uint64_t digest;
            if (info.chroma_h != 0)
                (void)fuzz_parts(d, &info, padded, size, (leat__decode_request){0},
                                 (a ^ b) % LEAT__IDCT_SHRINKS, a, b, &digest);
        }
    }
    leat__decoder_close(&d);
    if (leat__mem_blocks() != 0) abort();
    free(padded);
}

#endif
