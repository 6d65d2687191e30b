/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows bitmaps, without a library: palettes of 1, 4 and 8 bits (also run-length coded), 16, 24 and 32
 * bits. Palettes become RGB, or palette indices when requested. The fourth byte of a pixel is alpha only if
 * the header has a mask for it, as in Pillow. JPEG and PNG inside a bitmap are refused by name. One state
 * per decoder, used by one thread at a time.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/num.h"
#include "codec/whole.h"

#define NAME "BMP"
#define FILE_HEADER 14

enum { PLAIN = 0, RLE8 = 1, RLE4 = 2, BITFIELDS = 3, ALPHA_BITFIELDS = 6 };

typedef struct bmp_header {
    uint32_t width, height, bits, compression, colours;
    bool top_down;
    uint32_t mask[4];      /* red, green, blue, alpha; for 16 and 32 bits */
    size_t palette, entry; /* offset of the palette, bytes per entry */
    size_t pixels, stride;
} bmp_header;

static bool bmp_sniff(const uint8_t *data, size_t len)
{
    if (len < FILE_HEADER + 4 || data[0] != 'B' || data[1] != 'M') return false;
    uint32_t size = leat__load_u32(data + FILE_HEADER); /* two letters alone are not enough */
    return size == 12 || size == 40 || size == 52 || size == 56 || size == 64 || size == 108 || size == 124;
}

static int bad(leat_error *err, int code, size_t offset, const char *what)
{
    return leat__whole_bad(err, code, NAME, offset, what);
}

static int truncated(leat_error *err, size_t len)
{
    return bad(err, LEAT_EDATA, len, "premature end of file (truncated)");
}

/* Reads the size and the kind of pixels. */
static int read_sides(const uint8_t *data, size_t len, bmp_header *h, leat_error *err)
{
    uint32_t size = leat__load_u32(data + FILE_HEADER);
    const uint8_t *p = data + FILE_HEADER;
    if (!leat__range_inside(FILE_HEADER, size, len)) return truncated(err, len);
    if (size == 12) {
        h->width = leat__load_u16(p + 4);
        h->height = leat__load_u16(p + 6);
        h->bits = leat__load_u16(p + 10);
        h->entry = 3;
        return 0;
    }
    int32_t width = (int32_t)leat__load_u32(p + 4), height = (int32_t)leat__load_u32(p + 8);
    if (width <= 0 || height == 0 || height == INT32_MIN)
        return bad(err, LEAT_EDATA, FILE_HEADER + 4, "image of zero or impossible size");
    h->width = (uint32_t)width;
    h->top_down = height < 0;
    h->height = (uint32_t)(height < 0 ? -height : height);
    h->bits = leat__load_u16(p + 14);
    h->compression = leat__load_u32(p + 16);
    h->colours = leat__load_u32(p + 32);
    h->entry = 4;
    return 0;
}

/* Reads the colour masks: in the header from 52 bytes on, else after it. */
static int read_masks(const uint8_t *data, size_t len, bmp_header *h, leat_error *err)
{
    static const uint32_t of16[4] = {0x7c00, 0x3e0, 0x1f, 0}, of32[4] = {0xff0000, 0xff00, 0xff, 0};
    uint32_t size = leat__load_u32(data + FILE_HEADER), count = 3;
    memcpy(h->mask, h->bits == 16 ? of16 : of32, sizeof h->mask);
    if (h->compression != BITFIELDS && h->compression != ALPHA_BITFIELDS) return 0;
    if (size >= 56 || h->compression == ALPHA_BITFIELDS) count = 4;
    if (!leat__range_inside(FILE_HEADER + 40, count * 4u, len)) return truncated(err, len);
    for (uint32_t i = 0; i < count; i++) h->mask[i] = leat__load_u32(data + FILE_HEADER + 40 + i * 4u);
    if (size == 40) h->palette += count * 4u;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t m = h->mask[i];
        uint32_t low = m == 0 ? 0 : m >> __builtin_ctz(m);
        if ((m == 0 && i < 3) || (low & (low + 1)) != 0 || low > 255)
            return bad(err, LEAT_EFORMAT, FILE_HEADER + 40 + i * 4u, "unsupported colour mask");
    }
    return 0;
}

static bool combination_ok(const bmp_header *h)
{
    switch (h->compression) {
    case PLAIN:
        return h->bits == 1 || h->bits == 4 || h->bits == 8 || h->bits == 16 || h->bits == 24 ||
               h->bits == 32;
    case RLE8: return h->bits == 8 && !h->top_down;
    case RLE4: return h->bits == 4 && !h->top_down;
    case BITFIELDS:
    case ALPHA_BITFIELDS: return h->bits == 16 || h->bits == 32;
    default: return false;
    }
}

static int read_header(const uint8_t *data, size_t len, bmp_header *h, leat_error *err)
{
    *h = (bmp_header){0};
    if (!bmp_sniff(data, len)) return bad(err, LEAT_EDATA, 0, "no signature");
    LEAT_TRY(read_sides(data, len, h, err));
    if (!combination_ok(h)) {
        leat__fail(err, LEAT_EFORMAT, "BMP: %u bits per pixel with compression %u are not supported", h->bits,
                   h->compression);
        leat__error_at(err, NULL, -1, FILE_HEADER + 14);
        return LEAT_EFORMAT;
    }
    h->palette = FILE_HEADER + (size_t)leat__load_u32(data + FILE_HEADER);
    if (h->bits > 8) LEAT_TRY(read_masks(data, len, h, err));
    h->stride = ((size_t)h->width * h->bits + 31) / 32 * 4;
    h->pixels = leat__load_u32(data + 10);
    if (h->bits > 8) return 0;
    if (h->colours == 0) h->colours = 1u << h->bits;
    if (h->colours > 1u << h->bits)
        return bad(err, LEAT_EDATA, FILE_HEADER + 32, "palette with more colours than its bits can index");
    if (!leat__range_inside(h->palette, h->colours * h->entry, len)) return truncated(err, len);
    return 0;
}

/* Palette indices of the whole image are unpacked before its colours. */
static bool has_runs(const bmp_header *h)
{
    return h->compression == RLE8 || h->compression == RLE4;
}

static int bmp_probe(const uint8_t *data, size_t len, leat__image_info *info, leat_error *err)
{
    bmp_header h;
    LEAT_TRY(read_header(data, len, &h, err));
    info->width = h.width;
    info->height = h.height;
    info->palette = h.bits <= 8;
    info->channels = h.bits > 8 && h.mask[3] ? 4 : 3;
    info->memory = (uint64_t)h.width * h.height * (info->channels + has_runs(&h));
    snprintf(info->format, sizeof info->format, "bmp %s%s", info->palette ? "palette" : "rgb",
             info->channels == 4 ? "a" : "");
    return leat__whole_sides(info, NAME, err);
}

/* ---- pixels ---- */

/* Decodes run-length coded palette indices, one byte each, in the order of the file's rows. Pixels that no
 * run covers get index 0. */
static int unpack_runs(const uint8_t *data, size_t len, const bmp_header *h, uint8_t *to, leat_error *err)
{
    const bool four = h->compression == RLE4;
    size_t at = h->pixels;
    uint32_t x = 0, y = 0;
    memset(to, 0, (size_t)h->width * h->height);
    for (;;) {
        if (!leat__range_inside(at, 2, len)) return truncated(err, len);
        uint32_t n = data[at], v = data[at + 1];
        at += 2;
        if (n == 0 && v == 1) return 0; /* end of the bitmap */
        if (n == 0 && v == 0) {
            x = 0;
            if (++y > h->height) return bad(err, LEAT_EDATA, at, "more rows than the image has");
            continue;
        }
        if (n == 0 && v == 2) {
            if (!leat__range_inside(at, 2, len)) return truncated(err, len);
            x += data[at];
            y += data[at + 1];
            at += 2;
            if (x > h->width || y > h->height) return bad(err, LEAT_EDATA, at, "a run outside of the image");
            continue;
        }
        const bool literal = n == 0;
        const uint32_t count = literal ? v : n;
        const size_t bytes = four ? (count + 1) / 2 : count;
        if (y >= h->height || count > h->width - x)
            return bad(err, LEAT_EDATA, at, "a run outside of the image");
        if (literal && !leat__range_inside(at, bytes, len)) return truncated(err, len);
        uint8_t *out = to + (size_t)y * h->width + x;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t b = literal ? data[at + (four ? i / 2 : i)] : v;
            out[i] = (uint8_t)(four ? (i & 1 ? b & 15 : b >> 4) : b);
        }
        x += count;
        if (literal) at += bytes + (bytes & 1);
    }
}

static uint32_t number_at(const uint8_t *row, uint32_t x, uint32_t bits)
{
    const size_t at = (size_t)x * bits;
    return row[at / 8] >> (8 - bits - at % 8) & ((1u << bits) - 1);
}

/* Writes a row of palette indices, as such or as colours. Indices past the end of the palette are black. */
static void put_palette_row(const uint8_t *data, const bmp_header *h, const uint8_t *row, uint32_t bits,
                            bool indices, uint8_t *to)
{
    for (uint32_t x = 0; x < h->width; x++) {
        uint32_t v = number_at(row, x, bits);
        if (indices) {
            to[x] = (uint8_t)v;
            continue;
        }
        const uint8_t *c = data + h->palette + v * h->entry;
        for (int k = 0; k < 3; k++) to[x * 3 + (uint32_t)k] = v < h->colours ? c[2 - k] : 0;
    }
}

static void put_mask_row(const bmp_header *h, const uint8_t *row, uint32_t channels, uint8_t *to)
{
    uint32_t shift[4] = {0}, most[4] = {0};
    for (uint32_t c = 0; c < channels; c++) {
        shift[c] = (uint32_t)__builtin_ctz(h->mask[c]);
        most[c] = h->mask[c] >> shift[c];
    }
    for (uint32_t x = 0; x < h->width; x++) {
        const uint8_t *at = row + (size_t)x * (h->bits / 8);
        uint32_t v = h->bits == 16 ? leat__load_u16(at) : leat__load_u32(at);
        for (uint32_t c = 0; c < channels; c++)
            *to++ = (uint8_t)(((v & h->mask[c]) >> shift[c]) * 255 / most[c]);
    }
}

static void put_row(const uint8_t *data, const bmp_header *h, const uint8_t *row,
                    const leat__image_info *info, uint8_t *to)
{
    if (h->bits <= 8) {
        put_palette_row(data, h, row, h->compression == PLAIN ? h->bits : 8, info->indices, to);
    } else if (h->bits == 24) {
        for (uint32_t x = 0; x < h->width; x++)
            for (uint32_t k = 0; k < 3; k++) to[x * 3 + k] = row[x * 3 + 2 - k];
    } else {
        put_mask_row(h, row, info->channels, to);
    }
}

static int bmp_decode(void *state, const leat__decode_job *job, leat_error *err)
{
    leat__whole *w = state;
    bmp_header h;
    leat__image_info now = {.orientation = 1};
    LEAT_TRY(bmp_probe(job->data, job->len, &now, err));
    LEAT_TRY(leat__whole_same(job, &now, NAME, err));
    LEAT_TRY(read_header(job->data, job->len, &h, err));
    const size_t stride = (size_t)h.width * job->info->channels;
    const bool runs = has_runs(&h);
    const size_t numbers = runs ? h.width : 0; /* palette indices of a row, stored before the pixels */
    LEAT_TRY(leat__whole_fit(w, stride + numbers, h.height, err));
    uint8_t *pixels = w->pixels + numbers * h.height;
    const uint8_t *rows = job->data + h.pixels;
    if (runs) {
        LEAT_TRY(unpack_runs(job->data, job->len, &h, w->pixels, err));
        rows = w->pixels;
        h.stride = h.width;
    } else if (!leat__range_inside(h.pixels, h.stride * h.height, job->len)) {
        return truncated(err, job->len);
    }
    for (uint32_t y = 0; y < h.height; y++) {
        uint32_t from = h.top_down ? y : h.height - 1 - y;
        put_row(job->data, &h, rows + from * h.stride, job->info, pixels + y * stride);
    }
    return leat__whole_emit(w, job, pixels, stride, err);
}

const leat__codec_ops leat__codec_ops_bmp = {
    .name = "bmp",
    .sniff = bmp_sniff,
    .probe = bmp_probe,
    .open = leat__whole_open,
    .close = leat__whole_close,
    .decode = bmp_decode,
};
