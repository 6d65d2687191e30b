/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads JPEG marker segments up to the first scan. libjpeg could do this too, but would need to set up a
 * decompressor for every header; this reads a few hundred bytes. The colour rules are libjpeg's, so that
 * probing and decoding agree. No state, any thread.
 */
#include "codec/jpeg_header.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "codec/exif.h"

enum {
    SOF0 = 0xc0,
    DHT = 0xc4,
    JPG = 0xc8,
    DAC = 0xcc,
    SOF15 = 0xcf,
    RST0 = 0xd0,
    RST7 = 0xd7,
    SOI = 0xd8,
    EOI = 0xd9,
    SOS = 0xda,
    DQT = 0xdb,
    DRI = 0xdd,
    APP0 = 0xe0,
    APP1 = 0xe1,
    APP14 = 0xee,
    TEM = 0x01
};

typedef struct walk {
    leat__jpeg_header *header;
    bool frame, jfif, adobe;
    leat__exif_seen orientation;
    uint8_t adobe_transform;
    const uint8_t *quant[4]; /* tables by number: a byte with the width, then the values */
} walk;

static int bad(leat_error *err, size_t offset, const char *what)
{
    leat__fail(err, LEAT_EDATA, "JPEG: %s at byte %zu", what, offset);
    leat__error_at(err, NULL, -1, (int64_t)offset);
    return LEAT_EDATA;
}

static uint32_t be16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static int read_frame(walk *w, uint8_t marker, const uint8_t *seg, size_t n, size_t at, leat_error *err)
{
    leat__jpeg_header *h = w->header;
    if (w->frame) return bad(err, at, "second frame header");
    if (n < 6 || n != 6 + 3u * seg[5]) return bad(err, at, "frame header of wrong length");
    h->bits = seg[0];
    h->height = be16(seg + 1);
    h->width = be16(seg + 3);
    h->components = seg[5];
    unsigned kind = marker & 3u;
    h->progressive = kind == 2;
    h->lossless = kind == 3 || (marker & 4u); /* lossless or hierarchical: not read */
    h->arithmetic = marker > JPG;
    if (h->width == 0 || h->height == 0) return bad(err, at, "image of zero size");
    if (h->components != 1 && h->components != 3 && h->components != 4) {
        leat__fail(err, LEAT_EFORMAT, "JPEG with %u colour components is not supported", h->components);
        leat__error_at(err, NULL, -1, (int64_t)at);
        return LEAT_EFORMAT;
    }
    for (uint32_t i = 0; i < h->components; i++) {
        const uint8_t *c = seg + 6 + 3 * i;
        h->component[i].id = c[0];
        h->component[i].h = c[1] >> 4;
        h->component[i].v = c[1] & 15;
        h->component[i].quant = c[2];
        if (h->component[i].h < 1 || h->component[i].h > 4 || h->component[i].v < 1 || h->component[i].v > 4)
            return bad(err, at, "sampling factor outside 1..4");
    }
    w->frame = true;
    return 0;
}

/* Damaged tables are skipped: the decoder reports them. */
static void read_quant(walk *w, const uint8_t *seg, size_t n)
{
    while (n > 0) {
        const uint32_t wide = seg[0] >> 4, number = seg[0] & 15;
        const size_t size = wide ? 129 : 65;
        if (wide > 1 || number >= LEAT_COUNT(w->quant) || n < size) return;
        w->quant[number] = seg;
        seg += size;
        n -= size;
    }
}

static void read_app(walk *w, uint8_t marker, const uint8_t *seg, size_t n)
{
    if (marker == APP0 && n >= 14 && memcmp(seg, "JFIF\0", 5) == 0) w->jfif = true;
    if (marker == APP14 && n >= 12 && memcmp(seg, "Adobe", 5) == 0) {
        w->adobe = true;
        w->adobe_transform = seg[11];
    }
    leat__exif_seen *o = &w->orientation;
    if (marker == APP1 && !o->has_exif && n >= 6 && memcmp(seg, "Exif\0", 5) == 0) {
        o->has_exif = true;
        o->exif = leat__exif_orientation(seg, n);
    }
    static const char xmp[] = "http://ns.adobe.com/xap/1.0/";
    if (marker == APP1 && n > sizeof xmp && memcmp(seg, xmp, sizeof xmp) == 0)
        o->xmp = leat__xmp_orientation(seg + sizeof xmp, n - sizeof xmp);
}

static leat__jpeg_colour colour_of(const walk *w)
{
    const leat__jpeg_header *h = w->header;
    if (h->components == 1) return LEAT__JPEG_GREY;
    if (h->components == 4) return w->adobe && w->adobe_transform != 0 ? LEAT__JPEG_YCCK : LEAT__JPEG_CMYK;
    if (w->jfif) return LEAT__JPEG_YCC;
    if (w->adobe) return w->adobe_transform == 0 ? LEAT__JPEG_RGB : LEAT__JPEG_YCC;
    bool rgb = h->component[0].id == 'R' && h->component[1].id == 'G' && h->component[2].id == 'B';
    return rgb ? LEAT__JPEG_RGB : LEAT__JPEG_YCC;
}

/* Finds the next marker code after `pos`. Stray bytes are skipped, as libjpeg does. */
static bool next_marker(const uint8_t *data, size_t len, size_t *pos)
{
    size_t p = *pos;
    for (;;) {
        while (p < len && data[p] != 0xff) p++;
        while (p < len && data[p] == 0xff) p++;
        if (p >= len) return false;
        if (data[p] != 0) break;
    }
    *pos = p;
    return true;
}

static int read_segment(walk *w, uint8_t marker, const uint8_t *seg, size_t n, size_t at, leat_error *err)
{
    bool frame = marker >= SOF0 && marker <= SOF15 && marker != DHT && marker != JPG && marker != DAC;
    if (frame) return read_frame(w, marker, seg, n, at, err);
    if (marker == DRI) {
        if (n != 2) return bad(err, at, "restart interval of wrong length");
        w->header->restart_interval = be16(seg);
    } else if (marker == DQT) {
        read_quant(w, seg, n);
    } else if (marker >= APP0 && marker <= APP14) {
        read_app(w, marker, seg, n);
    }
    return 0;
}

static void finish(const walk *w, size_t scan_offset)
{
    leat__jpeg_header *h = w->header;
    const uint32_t number = h->component[0].quant;
    h->colour = colour_of(w);
    h->orientation = leat__orientation_of(&w->orientation);
    h->scan_offset = scan_offset;
    if (number >= LEAT_COUNT(w->quant) || !w->quant[number]) return;
    h->quant = w->quant[number] + 1;
    h->quant_wide = w->quant[number][0] >> 4 != 0;
}

int leat__jpeg_header_read(const uint8_t *data, size_t len, leat__jpeg_header *header, leat_error *err)
{
    memset(header, 0, sizeof *header);
    header->orientation = 1;
    walk w = {.header = header};
    if (len < 4 || data[0] != 0xff || data[1] != SOI) return bad(err, 0, "does not start with a JPEG marker");
    size_t pos = 2;
    while (next_marker(data, len, &pos)) {
        uint8_t marker = data[pos++];
        if (marker == TEM || (marker >= RST0 && marker <= RST7)) continue;
        if (marker == SOI) return bad(err, pos - 2, "second start-of-image marker (SOI)");
        if (marker == EOI) return bad(err, pos - 2, "ends before its first scan");
        if (!leat__range_inside(pos, 2, len)) break;
        size_t n = be16(data + pos);
        if (n < 2) return bad(err, pos, "marker segment shorter than its length field");
        if (!leat__range_inside(pos, n, len)) break;
        const uint8_t *seg = data + pos + 2;
        LEAT_TRY(read_segment(&w, marker, seg, n - 2, pos - 2, err));
        pos += n;
        if (marker != SOS) continue;
        if (!w.frame) return bad(err, pos, "scan without a frame header");
        header->separate_scans = n > 2 && seg[0] < header->components;
        finish(&w, pos);
        return 0;
    }
    return bad(err, len, "truncated before its first scan");
}

bool leat__jpeg_header_quant(const leat__jpeg_header *h, uint16_t quant[64])
{
    uint32_t k = 0;
    if (!h->quant) return false;
    for (int d = 0; d < 15; d++) /* diagonals, alternately down and up */
        for (int i = LEAT_MAX(d - 7, 0); i <= LEAT_MIN(d, 7); i++, k++) {
            const int y = d % 2 ? i : d - i;
            quant[8 * y + d - y] = (uint16_t)(h->quant_wide ? be16(h->quant + 2 * k) : h->quant[k]);
        }
    return true;
}

uint64_t leat__jpeg_header_coefs(const leat__jpeg_header *h)
{
    uint32_t across = 1, down = 1;
    uint64_t blocks = 0; /* per MCU */
    for (uint32_t c = 0; c < h->components; c++) {
        across = LEAT_MAX(across, h->component[c].h);
        down = LEAT_MAX(down, h->component[c].v);
        blocks += (uint64_t)h->component[c].h * h->component[c].v;
    }
    return leat__ceil_div(h->width, 8 * across) * leat__ceil_div(h->height, 8 * down) * blocks * 64 *
           sizeof(int16_t);
}

void leat__jpeg_header_describe(const leat__jpeg_header *header, char *out, size_t size)
{
    const char *name = "odd";
    char ratio[8];
    if (header->colour == LEAT__JPEG_GREY) {
        name = "grey";
    } else if (header->colour == LEAT__JPEG_CMYK) {
        name = "cmyk";
    } else if (header->colour == LEAT__JPEG_YCCK) {
        name = "ycck";
    } else {
        /* J:a:b notation if both chroma components are sampled alike, luma at 1, 2 or 4 times their rate */
        unsigned h = header->component[0].h, v = header->component[0].v;
        bool plain = true;
        for (int i = 1; i < 3; i++)
            plain = plain && header->component[i].h == 1 && header->component[i].v == 1;
        if (plain && h != 3 && v <= 2) {
            unsigned a = 4 / h;
            snprintf(ratio, sizeof ratio, "4:%u:%u", a, v == 2 ? 0 : a);
            if (h == 1 && v == 2) snprintf(ratio, sizeof ratio, "4:4:0");
            name = ratio;
        }
    }
    snprintf(out, size, "jpeg %s%s", name, header->progressive ? " progressive" : "");
}
