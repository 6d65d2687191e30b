/* SPDX-License-Identifier: Apache-2.0
 *
 * leat's own entropy decoding against libjpeg's: a file that leat accepts must be accepted by
 * libjpeg, with the same coefficients, and with pixels if leat said so; a scan called usual must
 * be restored by tiles. Files that leat does not accept are not compared.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "codec/jpeg_scan.h"
#include "codec/tile/tile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const leat__decode_limits limits = {
    .max_pixels = 1 << 20, .max_out_bytes = 1 << 22, .max_scans = 50, .max_work = 100000000};

/* A scan called usual is restored from its coefficients alone, byte for byte. */
static void restore_usual(leat__jpeg_coef_reader *r, const uint8_t *data, size_t size)
{
    leat__jpeg_coefs coefs;
    leat__tile_encoder *e = NULL;
    leat__tile_encode_opts opts = {.density = LEAT__TILE_FAST, .trust = true};
    leat__tile_kept kept;
    leat__buf sample, file;
    if (leat__jpeg_coef_read(r, data, size, &limits, &coefs, NULL) != 0) abort();
    if (!coefs.usual) return;
    leat__buf_init(&sample, LEAT__MEM_MISC, 1 << 26);
    leat__buf_init(&file, LEAT__MEM_MISC, 1 << 26);
    if (leat__tile_encoder_open(&e, NULL, NULL) != 0 ||
        leat__tile_encode(e, &coefs, data, size, &opts, &sample, &kept, NULL) != 0)
        abort();
    if (kept == LEAT__TILE_KEPT_RESTORE) abort();
    if (kept == LEAT__TILE_KEPT_NONE &&
        (leat__tile_restore((const uint8_t *)sample.data, sample.len, NULL, &file, NULL) != 0 ||
         file.len != size || memcmp(file.data, data, size) != 0))
        abort();
    leat__tile_encoder_close(&e);
    leat__buf_reset(&sample);
    leat__buf_reset(&file);
}

/* All blocks of the frame, as leat__jpeg_coefs has them. */
static int16_t *make_blocks(const leat__jpeg_coefs *f, leat__jpeg_blocks *to)
{
    size_t total = 0;
    for (uint32_t c = 0; c < f->components; c++)
        total += 64 * (size_t)f->component[c].grid_x * f->component[c].grid_y;
    int16_t *memory = calloc(total, sizeof *memory), *next = memory;
    if (memory == NULL) abort();
    *to = (leat__jpeg_blocks){0};
    for (uint32_t c = 0; c < f->components; c++) {
        to->block[c] = next;
        to->stride[c] = f->component[c].grid_x;
        next += 64 * (size_t)f->component[c].grid_x * f->component[c].grid_y;
    }
    return memory;
}

static bool decode(const leat__jpeg_scan *s, const leat__jpeg_blocks *blocks, size_t *end)
{
    const leat__jpeg_coefs *f = leat__jpeg_scan_frame(s);
    leat__jpeg_blocks to = *blocks;
    leat__jpeg_cursor at, parts;
    uint32_t across = leat__jpeg_scan_mcus_x(s);
    leat__jpeg_scan_begin(s, &at);
    parts = at;
    for (uint32_t y = 0; y < leat__jpeg_scan_mcus_y(s); y++) {
        bool good = leat__jpeg_scan_mcus(s, &at, across, &to);
        /* skipped in two parts, it is the same position */
        bool again = leat__jpeg_scan_skip(s, &parts, across / 2) &&
                     leat__jpeg_scan_skip(s, &parts, across - across / 2);
        if (good != again || (good && memcmp(&at, &parts, sizeof at) != 0)) abort();
        if (!good) return false;
        for (uint32_t c = 0; c < f->components; c++)
            to.block[c] += 64 * to.stride[c] * (f->components == 1 ? 1 : f->component[c].v);
    }
    return leat__jpeg_scan_finish(s, &at, end, NULL);
}

static void compare(const leat__jpeg_scan *s, const leat__jpeg_blocks *mine, size_t end, const uint8_t *data,
                    size_t size)
{
    const leat__jpeg_coefs *f = leat__jpeg_scan_frame(s);
    leat__jpeg_coef_reader *r = NULL;
    leat__jpeg_coefs want;
    if (leat__jpeg_coef_reader_open(&r, NULL) != 0) abort();
    if (leat__jpeg_coef_read_libjpeg(r, data, size, &limits, &want, NULL) != 0) abort();
    if (want.components != f->components || want.tail != data + end - 2 || want.colour != f->colour ||
        want.mcus_x != f->mcus_x || want.mcus_y != f->mcus_y)
        abort();
    for (uint32_t c = 0; c < f->components; c++) {
        const leat__jpeg_component *a = &want.component[c], *b = &f->component[c];
        size_t n = 64 * (size_t)a->grid_x * a->grid_y;
        if (a->grid_x != b->grid_x || a->grid_y != b->grid_y || a->width != b->width ||
            memcmp(a->quant, b->quant, sizeof a->quant) != 0 ||
            memcmp(a->coefs, mine->block[c], n * sizeof(int16_t)) != 0)
            abort();
    }
    restore_usual(r, data, size);
    leat__jpeg_coef_reader_close(&r);
}

static int ignore_rows(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride)
{
    return 0;
}

static void decode_pixels(const uint8_t *data, size_t size)
{
    leat__decoder *d = NULL;
    leat__image_info info;
    leat__decode_request request = {.limits = limits};
    leat__row_sink sink = {ignore_rows, NULL};
    if (leat__decoder_open(&d, NULL) != 0) abort();
    if (leat__codec_probe(LEAT__CODEC_JPEG, data, size, &info, NULL) != 0) abort();
    if (leat__codec_decode(d, &info, data, size, &request, &sink, NULL) != 0) abort();
    leat__decoder_close(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat__jpeg_scan *s = NULL;
    leat__jpeg_blocks to;
    size_t end = 0;
    if (leat__jpeg_scan_open(&s, NULL) != 0) abort();
    bool whole = leat__jpeg_scan_whole(s, data, size, &limits), mine = false;
    if (leat__jpeg_scan_start(s, data, size) &&
        (uint64_t)leat__jpeg_scan_frame(s)->width * leat__jpeg_scan_frame(s)->height <= limits.max_pixels) {
        int16_t *memory = make_blocks(leat__jpeg_scan_frame(s), &to);
        mine = decode(s, &to, &end);
        if (mine) compare(s, &to, end, data, size);
        free(memory);
    }
    if (whole && !mine) abort();
    size_t place = 0;
    if (leat__jpeg_scan_fault(s, data, size, &place) != NULL && (mine || place > size)) abort();
    if (whole) { /* other decoders may read a little past the end */
        uint8_t *padded = calloc(1, size + LEAT__CODEC_PADDING);
        if (padded == NULL) abort();
        memcpy(padded, data, size);
        decode_pixels(padded, size);
        free(padded);
    }
    leat__jpeg_scan_close(&s);
    if (leat__mem_blocks() != 0) abort();
    return 0;
}
