/* SPDX-License-Identifier: Apache-2.0
 *
 * The JPEG decoder and the reader of coefficients against any bytes; entry points made from the
 * file, which must not change any pixel, and entry points of any bytes, which must be harmless.
 */
#include "fuzz_codec.h"

#include "base/buf.h"
#include "base/hash.h"
#include "codec/jpeg_coef.h"
#include "codec/jpeg_entries.h"

/* libjpeg's pixels of the coefficients: whatever was read, either all rows or an error. */
static void read_pixels(const leat__jpeg_coefs *coefs)
{
    const uint8_t *row;
    if (coefs->pixels == NULL || leat__jpeg_coef_pixels(coefs->pixels, NULL) != 0) return;
    for (uint32_t y = 0; y < coefs->height; y++)
        if (leat__jpeg_coef_row(coefs->pixels, &row, NULL) != 0) return;
    if (leat__jpeg_coef_row(coefs->pixels, &row, NULL) != LEAT_EINVAL) abort();
}

static void read_coefs(const uint8_t *data, size_t size)
{
    leat__jpeg_coef_reader *r = NULL;
    leat__jpeg_coefs coefs;
    leat__decode_limits limits = {
        .max_pixels = 1 << 22, .max_out_bytes = 1 << 24, .max_scans = 50, .max_work = 100000000};
    if (leat__jpeg_coef_reader_open(&r, NULL) != 0) return;
    if (leat__jpeg_coef_read(r, data, size, &limits, &coefs, NULL) == 0) {
        if (coefs.header_len + coefs.scan_len + coefs.tail_len != size) abort();
        for (uint32_t i = 0; i < coefs.components; i++) {
            const leat__jpeg_component *c = &coefs.component[i];
            volatile int16_t last = c->coefs[(size_t)c->grid_x * c->grid_y * 64 - 1];
            (void)last;
        }
        read_pixels(&coefs);
    }
    leat__jpeg_coef_reader_close(&r);
}

static const leat__decode_limits small = {
    .max_pixels = 1 << 20, .max_out_bytes = 1 << 22, .max_scans = 50, .max_work = 100000000};

typedef struct picture {
    uint32_t width, channels, next;
    uint64_t hash;
} picture;

static int hash_rows(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride)
{
    picture *p = ctx;
    if (y != p->next) abort();
    p->next += count;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t c = 0; c < p->channels; c++)
            p->hash = leat__hash64(plane[c] + i * stride, p->width, p->hash);
    return 0;
}

/* Hash of the region's pixels; 0 when it does not decode. */
static uint64_t region_hash(leat__decoder *d, const leat__image_info *info, const uint8_t *data, size_t size,
                            leat__decode_request rq, const leat__buf *entries)
{
    picture p = {rq.width, info->channels, 0, 1};
    leat__row_sink sink = {hash_rows, &p};
    rq.limits = small;
    if (entries) {
        rq.entries = (const uint8_t *)entries->data;
        rq.entries_len = entries->len;
    }
    if (leat__codec_decode(d, info, data, size, &rq, &sink, NULL) != 0) return 0;
    if (p.next != rq.height) abort();
    return p.hash;
}

static void enter(leat__decoder *d, leat__jpeg_scan *scan, const uint8_t *data, size_t size)
{
    leat__image_info info;
    leat__buf entries;
    bool whole;
    leat__buf_init(&entries, LEAT__MEM_MISC, 1 << 20);
    if (leat__codec_probe(LEAT__CODEC_JPEG, data, size, &info, NULL) == 0 &&
        leat__jpeg_entries_make(scan, data, size, &small, NULL, &entries, &whole, NULL) == 0 && whole) {
        leat__decode_request rq = {.x = info.width / 3,
                                   .y = info.height / 3,
                                   .width = 1 + info.width / 4,
                                   .height = 1 + info.height / 4};
        if (rq.x + rq.width > info.width) rq.x = 0;
        if (rq.y + rq.height > info.height) rq.y = 0;
        uint64_t plain = region_hash(d, &info, data, size, rq, NULL);
        if (plain == 0 || region_hash(d, &info, data, size, rq, &entries) != plain) abort();
        for (size_t i = 12; i < entries.len; i++) entries.data[i] ^= (char)data[size - 1 - i % size];
        (void)region_hash(d, &info, data, size, rq, &entries);
        if (entries.len > 0) memcpy(entries.data, data, entries.len < size ? entries.len : size);
        (void)region_hash(d, &info, data, size, rq, &entries);
    }
    leat__buf_reset(&entries);
}

static void enter_anywhere(const uint8_t *data, size_t size)
{
    leat__decoder *d = NULL;
    leat__jpeg_scan *scan = NULL;
    uint8_t *padded = calloc(1, size + LEAT__CODEC_PADDING);
    if (padded && size > 0 && leat__decoder_open(&d, NULL) == 0 && leat__jpeg_scan_open(&scan, NULL) == 0) {
        memcpy(padded, data, size);
        enter(d, scan, padded, size);
    }
    leat__jpeg_scan_close(&scan);
    leat__decoder_close(&d);
    free(padded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_codec(LEAT__CODEC_JPEG, data, size);
    enter_anywhere(data, size);
    read_coefs(data, size);
    return 0;
}
