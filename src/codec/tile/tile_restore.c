/* SPDX-License-Identifier: Apache-2.0
 *
 * The file around the coefficients. A baseline JPEG is a *skeleton* (everything but the
 * entropy-coded bytes of its scans) and scans that follow from the coefficients and the
 * skeleton's Huffman tables, restart interval and scan headers. Restoring writes the scans
 * back where they were. Whatever an unusual encoder did shows as a difference when packing.
 */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/num.h"
#include "codec/tile/tile_format.h"
#include "probe/cpu.h"

enum {
    SOF0 = 0xc0, SOF1 = 0xc1, DHT = 0xc4, RST0 = 0xd0, RST7 = 0xd7, SOI = 0xd8, EOI = 0xd9,
    SOS = 0xda, DQT = 0xdb, DRI = 0xdd, APP0 = 0xe0, APP15 = 0xef, COM = 0xfe, TEM = 0x01
};

enum { SKELETON_MAX = 64 << 20, SCANS_MAX = 4, STAGE = 16384 };

static const uint8_t zigzag[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

/* ---- walking the marker segments ---- */

typedef struct segment {
    uint8_t marker;
    size_t end;          /* of the segment, from the start of the file */
    const uint8_t *body; /* after the length, NULL when the marker has none */
    size_t body_len;
} segment;

static bool stands_alone(uint8_t marker)
{
    return marker == SOI || marker == EOI || marker == TEM || marker == 0
           || (marker >= RST0 && marker <= RST7);
}

/* The next marker segment at or after `at`; bytes before the marker belong to it. False when
 * there is none that is whole. */
static bool next_segment(const uint8_t *data, size_t len, size_t at, segment *s)
{
    while (at + 1 < len && !(data[at] == 0xff && data[at + 1] != 0xff)) at++;
    if (at + 1 >= len) return false;
    *s = (segment){.marker = data[at + 1], .end = at + 2};
    if (stands_alone(s->marker)) return true;
    if (len - at < 4) return false;
    size_t size = (size_t)data[at + 2] << 8 | data[at + 3];
    if (size < 2 || len - at - 2 < size) return false;
    s->body = data + at + 4;
    s->body_len = size - 2;
    s->end = at + 2 + size;
    return true;
}

/* First byte that is no entropy-coded data: a marker other than a restart, or fill bytes. */
static size_t scan_end(const uint8_t *data, size_t len, size_t at)
{
    while (at < len) {
        const uint8_t *ff = memchr(data + at, 0xff, len - at);
        if (ff == NULL) return len;
        at = (size_t)(ff - data);
        if (at + 1 == len) return at;
        uint8_t next = data[at + 1];
        if (next != 0 && !(next >= RST0 && next <= RST7)) return at;
        at += 2;
    }
    return len;
}

int leat__tile_skeleton_of(const uint8_t *jpeg, size_t len, leat__buf *out)
{
    size_t at = 0, kept = 0;
    segment s;
    while (next_segment(jpeg, len, at, &s)) {
        at = s.end;
        if (s.marker == EOI) break;
        if (s.marker != SOS) continue;
        leat__buf_append(out, jpeg + kept, at - kept);
        at = kept = scan_end(jpeg, len, at);
    }
    leat__buf_append(out, jpeg + kept, len - kept);
    return leat__buf_status(out);
}

/* ---- a skeleton for files whose own cannot be used ---- */

/* Annex K.3: counts of codes per length, then symbols. */
static const uint8_t std_dc[2][28] = {
    {0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
    {0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
};
static const uint8_t std_ac[2][178] = {
    {0,    2,    1,    3,    3,    2,    4,    3,    5,    5,    4,    4,    0,    0,    1,
     0x7d, 0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51,
     0x61, 0x07, 0x22, 0x71, 0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15,
     0x52, 0xd1, 0xf0, 0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a,
     0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44,
     0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63,
     0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a,
     0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98,
     0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5,
     0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2,
     0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7,
     0xe8, 0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa},
    {0,    2,    1,    2,    4,    4,    3,    4,    7,    5,    4,    4,    0,    1,    2,
     0x77, 0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07,
     0x61, 0x71, 0x13, 0x22, 0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09, 0x23,
     0x33, 0x52, 0xf0, 0x15, 0x62, 0x72, 0xd1, 0x0a, 0x16, 0x24, 0x34, 0xe1, 0x25, 0xf1, 0x17,
     0x18, 0x19, 0x1a, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43,
     0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a,
     0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79,
     0x7a, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96,
     0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3,
     0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9,
     0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6,
     0xe7, 0xe8, 0xe9, 0xea, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa},
};

static void put_marker(leat__buf *out, uint8_t marker, size_t body)
{
    const uint8_t bytes[4] = {0xff, marker, (uint8_t)((body + 2) >> 8), (uint8_t)(body + 2)};
    leat__buf_append(out, bytes, 4);
}

static void put_quant(leat__buf *out, uint32_t number, const uint16_t *quant)
{
    bool wide = false;
    for (int k = 0; k < 64; k++) wide = wide || quant[k] > 255;
    put_marker(out, DQT, wide ? 129 : 65);
    leat__buf_putc(out, (char)((wide ? 16u : 0u) | number));
    for (int k = 0; k < 64; k++) {
        uint16_t q = quant[zigzag[k]];
        if (wide) leat__buf_putc(out, (char)(q >> 8));
        leat__buf_putc(out, (char)q);
    }
}

static void put_huffman(leat__buf *out, uint8_t id, const uint8_t *table, size_t len)
{
    put_marker(out, DHT, 1 + len);
    leat__buf_putc(out, (char)id);
    leat__buf_append(out, table, len);
}

int leat__tile_skeleton_baseline(const leat__jpeg_coefs *coefs, leat__buf *out)
{
    const uint8_t soi[2] = {0xff, SOI}, eoi[2] = {0xff, EOI};
    size_t at = 2;
    segment s;
    leat__buf_append(out, soi, 2);
    while (next_segment(coefs->header, coefs->header_len, at, &s) && s.marker != SOS) {
        if ((s.marker >= APP0 && s.marker <= APP15) || s.marker == COM)
            leat__buf_append(out, s.body - 4, s.body_len + 4);
        at = s.end;
    }
    uint32_t n = coefs->components;
    for (uint32_t c = 0; c < n; c++) put_quant(out, c, coefs->component[c].quant);
    put_marker(out, SOF1, 6 + 3 * n); /* allows wide tables; baseline otherwise */
    const uint8_t frame[6] = {8, (uint8_t)(coefs->height >> 8), (uint8_t)coefs->height,
                              (uint8_t)(coefs->width >> 8), (uint8_t)coefs->width, (uint8_t)n};
    leat__buf_append(out, frame, sizeof frame);
    for (uint32_t c = 0; c < n; c++) {
        const leat__jpeg_component *comp = &coefs->component[c];
        const uint8_t entry[3] = {(uint8_t)comp->id, (uint8_t)(comp->h << 4 | comp->v),
                                  (uint8_t)c};
        leat__buf_append(out, entry, 3);
    }
    for (uint8_t t = 0; t < (n > 1 ? 2 : 1); t++) {
        put_huffman(out, t, std_dc[t], sizeof std_dc[t]);
        put_huffman(out, 0x10 | t, std_ac[t], sizeof std_ac[t]);
    }
    put_marker(out, SOS, 4 + 2 * n);
    leat__buf_putc(out, (char)n);
    for (uint32_t c = 0; c < n; c++) {
        leat__buf_putc(out, (char)coefs->component[c].id);
        leat__buf_putc(out, (char)(c > 0 ? 0x11 : 0));
    }
    const uint8_t whole[3] = {0, 63, 0};
    leat__buf_append(out, whole, sizeof whole);
    leat__buf_append(out, eoi, 2);
    return leat__buf_status(out);
}

/* ---- writing scans ---- */

/* Worst block: 64 symbols of 31 bits, and what is written past them. */
enum { BLOCK_ROOM = 512 };

/* Entries are bits << 8 | their number; 0: no code. */
enum { NEAR = 16 };
typedef struct huffman {
    uint32_t entry[256];
    uint32_t near[16][2 * NEAR]; /* by run and value + NEAR: symbol and extra bits in one */
} huffman;

/* A block in the order of the scan. Only the coefficients that `ac` names are set, and at[0]. */
typedef struct scan_block {
    uint64_t ac;
    int16_t at[64];
} scan_block;

/* Bits on their way into bytes, high first; fewer than eight wait between calls. */
typedef struct bit_queue {
    uint64_t acc; /* from its highest bit on */
    uint32_t bits;
    uint8_t *at;
} bit_queue;

typedef struct writer {
    const leat__tile_header *h;
    const uint8_t *data; /* the sample */
    const leat__tile_codes *codes;
    leat__tile_entropy_dsp entropy;
    leat__tile_coefs *coefs;
    scan_block *blocks[LEAT__TILE_COMPONENTS]; /* one tile row */
    size_t row_offset;                         /* of the next tile row */
    huffman dc[4], ac[4];
    uint32_t restart;  /* interval in MCUs, 0 = none */
    uint8_t id[LEAT__TILE_COMPONENTS];
    uint8_t place[64]; /* bit of a tile's bitmap -> place in the scan */
    bool no_code;      /* a symbol had no code */
    uint32_t scans;
    leat__buf *out;
    bit_queue queue;
    uint8_t stage[STAGE]; /* on the way to `out`, not yet stuffed */
} writer;

/* After every byte 0xff goes a zero, so that it is no marker. */
static void put_staged(writer *w)
{
    const uint8_t *at = w->stage, *end = w->queue.at, *ff;
    while (at < end && (ff = memchr(at, 0xff, (size_t)(end - at))) != NULL) {
        leat__buf_append(w->out, at, (size_t)(ff + 1 - at));
        leat__buf_putc(w->out, 0);
        at = ff + 1;
    }
    leat__buf_append(w->out, at, (size_t)(end - at));
    w->queue.at = w->stage;
}

/* At most 56 bits, the rest of `value` zero. No branch: how full the queue is cannot be
 * foreseen. Writes up to eight bytes, of which those count that are full. */
static inline void put_bits(bit_queue *q, uint64_t value, uint32_t n)
{
    q->bits += n;
    q->acc |= value << (63 - q->bits) << 1; /* nothing may be put, too */
    leat__store_u64(q->at, __builtin_bswap64(q->acc));
    q->at += q->bits >> 3;
    q->acc <<= q->bits & 56;
    q->bits &= 7;
}

static void pad_bits(writer *w)
{
    uint32_t fill = (8 - w->queue.bits) % 8;
    bool zeros = (w->h->flags & LEAT__TILE_FLAG_PAD_ZERO) != 0;
    put_bits(&w->queue, zeros ? 0 : (1u << fill) - 1, fill);
    put_staged(w);
}

/* Symbol and extra bits of any value, as in an entry but wider. */
static uint64_t code_of(const huffman *t, uint32_t run, int v)
{
    uint32_t size = v == 0 ? 0 : 32 - (uint32_t)__builtin_clz((uint32_t)abs(v));
    uint32_t entry = size > 15 ? 0 : t->entry[run << 4 | size]; /* a damaged sample has larger */
    uint64_t extra = (uint32_t)(v + (v >> 31)) & ((1u << size) - 1);
    if (entry == 0) return 0;
    return ((uint64_t)(entry >> 8) << size | extra) << 8 | ((entry & 255) + size);
}

static void find_near(huffman *t)
{
    for (uint32_t run = 0; run < 16; run++)
        for (int v = -NEAR; v < NEAR; v++)
            t->near[run][v + NEAR] = (uint32_t)code_of(t, run, v); /* at most 16 + 5 bits */
}

static inline void put_code(bit_queue *q, uint64_t code)
{
    put_bits(q, code >> 8, code & 255);
}

/* Two codes in one turn, which halves the chain from turn to turn. */
static inline void put_two(bit_queue *q, uint64_t a, uint64_t b)
{
    uint32_t n = (uint32_t)(a & 255) + (uint32_t)(b & 255);
    if (__builtin_expect(n > 56, 0)) {
        put_code(q, a);
        put_code(q, b);
    } else {
        put_bits(q, a >> 8 << (b & 255) | b >> 8, n);
    }
}

/* The code of the lowest coefficient in *mask, *last being the one before. What comes before it,
 * and sixteen zeros, are put here where there are so many. */
static inline uint64_t next_code(bit_queue *q, uint64_t *before, const scan_block *block,
                                 const huffman *ac, uint64_t *mask, uint32_t *last, bool *bad)
{
    uint32_t k = (uint32_t)__builtin_ctzll(*mask), run = k - *last - 1;
    int v = block->at[k];
    *mask &= *mask - 1;
    *last = k;
    for (; __builtin_expect(run > 15, 0); run -= 16) {
        put_two(q, *before, ac->entry[0xf0]);
        *before = 0;
        *bad |= ac->entry[0xf0] == 0;
    }
    uint64_t code = __builtin_expect((uint32_t)(v + NEAR) < 2 * NEAR, 1)
                        ? ac->near[run][v + NEAR]
                        : code_of(ac, run, v);
    *bad |= code == 0;
    return code;
}

static void put_block(writer *w, const scan_block *block, const huffman *dc, const huffman *ac,
                      int *guess)
{
    bit_queue q = w->queue; /* a copy stays in registers */
    uint64_t mask = block->ac, before = code_of(dc, 0, block->at[0] - *guess);
    uint32_t last = 0;
    bool bad = before == 0;
    *guess = block->at[0];
    while (mask != 0) {
        uint64_t code = next_code(&q, &before, block, ac, &mask, &last, &bad);
        put_two(&q, before, code);
        before = 0;
        if (mask == 0) break;
        before = next_code(&q, &before, block, ac, &mask, &last, &bad);
    }
    uint64_t end = last < 63 ? ac->entry[0] : 0;
    bad |= last < 63 && end == 0;
    put_two(&q, before, end);
    w->no_code = w->no_code || bad;
    w->queue = q;
    if (q.at > w->stage + STAGE - BLOCK_ROOM) put_staged(w);
}

static void order_block(const writer *w, scan_block *out, uint32_t b)
{
    const leat__tile_coefs *coefs = w->coefs;
    const int16_t *value = coefs->value + coefs->first[b];
    uint64_t ac = 0;
    for (uint64_t mask = coefs->mask[b]; mask != 0; mask &= mask - 1) {
        uint32_t k = w->place[__builtin_ctzll(mask)];
        out->at[k] = *value++;
        ac |= UINT64_C(1) << k;
    }
    out->ac = ac & ~UINT64_C(1);
    out->at[0] = coefs->dc[b];
}

static int load_tile_row(writer *w, uint32_t ty, leat_error *err)
{
    const leat__tile_header *h = w->h;
    if (ty == 0) w->row_offset = h->header_bytes;
    for (uint32_t tx = 0; tx < h->tiles_x; tx++) {
        leat__tile_shape shape;
        size_t len = leat__load_u16(h->lengths + 2 * ((size_t)ty * h->tiles_x + tx));
        leat__tile_shape_at(h, tx, ty, &shape);
        leat__tile_damage damage =
            w->entropy.decode(w->coefs, w->data + w->row_offset, len, &shape, w->codes);
        if (damage != LEAT__TILE_WHOLE) {
            leat__fail(err, LEAT_EDATA, "tiled image: tile %u: %s (at byte %zu)",
                       ty * h->tiles_x + tx, leat__tile_damage_text(damage), w->row_offset);
            leat__error_at(err, NULL, -1, (int64_t)w->row_offset);
            return LEAT_EDATA;
        }
        w->row_offset += len;
        for (uint32_t c = 0, b = 0; c < h->components; c++)
            for (uint32_t i = 0; i < shape.count[c]; i++, b++) {
                size_t x = tx * leat__tile_blocks_x(h, c) + i % shape.wide[c];
                size_t y = i / shape.wide[c];
                order_block(w, w->blocks[c] + y * leat__tile_grid_x(h, c) + x, b);
            }
    }
    return 0;
}

typedef struct scan {
    uint32_t components;
    uint32_t index[LEAT__TILE_COMPONENTS]; /* of the frame */
    uint8_t dc[LEAT__TILE_COMPONENTS], ac[LEAT__TILE_COMPONENTS];
    uint32_t mcus_x, mcus_y;
    bool alone; /* one component: an MCU is one block, padding blocks are not in it */
} scan;

static bool scan_parse(const writer *w, const segment *s, scan *out)
{
    const leat__tile_header *h = w->h;
    *out = (scan){0};
    if (s->body_len < 1) return false;
    out->components = s->body[0];
    if (out->components < 1 || out->components > h->components
        || s->body_len != 4 + 2 * (size_t)out->components)
        return false;
    const uint8_t *rest = s->body + 1 + 2 * out->components;
    if (rest[0] != 0 || rest[1] != 63 || rest[2] != 0) return false;
    for (uint32_t i = 0; i < out->components; i++) {
        uint32_t c = 0;
        while (c < h->components && w->id[c] != s->body[1 + 2 * i]) c++;
        if (c == h->components) return false;
        out->index[i] = c;
        out->dc[i] = s->body[2 + 2 * i] >> 4;
        out->ac[i] = s->body[2 + 2 * i] & 15;
        if (out->dc[i] > 3 || out->ac[i] > 3) return false;
    }
    out->alone = out->components == 1;
    /* Two interleaved components of three would have other MCUs: no encoder does it. */
    if (!out->alone && out->components != h->components) return false;
    out->mcus_x = h->mcus_x;
    out->mcus_y = h->mcus_y;
    if (out->alone) {
        uint32_t dx = out->index[0] == 0 ? 1 : h->h, dy = out->index[0] == 0 ? 1 : h->v;
        out->mcus_x = (uint32_t)leat__ceil_div(leat__ceil_div(h->width, dx), 8);
        out->mcus_y = (uint32_t)leat__ceil_div(leat__ceil_div(h->height, dy), 8);
    }
    return true;
}

static void put_mcu(writer *w, const scan *s, uint32_t mx, uint32_t my, int guess[3])
{
    const leat__tile_header *h = w->h;
    for (uint32_t i = 0; i < s->components; i++) {
        uint32_t c = s->index[i];
        uint32_t across = s->alone || c > 0 ? 1 : h->h, down = s->alone || c > 0 ? 1 : h->v;
        for (uint32_t b = 0; b < across * down; b++) {
            uint32_t x = mx * across + b % across;
            uint32_t y = (my * down + b / across) % leat__tile_blocks_y(h, c);
            put_block(w, w->blocks[c] + (size_t)y * leat__tile_grid_x(h, c) + x,
                      &w->dc[s->dc[i]], &w->ac[s->ac[i]], &guess[c]);
        }
    }
}

static int bad_skeleton(leat_error *err, const char *what)
{
    return leat__fail(err, LEAT_EDATA, "tiled image: its file headers: %s", what);
}

static int put_scan(writer *w, const scan *s, leat_error *err)
{
    const leat__tile_header *h = w->h;
    uint32_t down = s->alone || h->components == 1 ? 1 : h->v;
    uint32_t per_tile = leat__tile_blocks_y(h, s->alone ? s->index[0] : 0) / down;
    int guess[3] = {0};
    uint64_t done = 0, total = (uint64_t)s->mcus_x * s->mcus_y;
    w->queue = (bit_queue){.at = w->stage};
    for (uint32_t my = 0; my < s->mcus_y; my++) {
        if (my % per_tile == 0) LEAT_TRY(load_tile_row(w, my / per_tile, err));
        for (uint32_t mx = 0; mx < s->mcus_x; mx++) {
            put_mcu(w, s, mx, my, guess);
            done++;
            if (w->restart == 0 || done % w->restart != 0 || done == total) continue;
            pad_bits(w);
            leat__buf_putc(w->out, (char)0xff);
            leat__buf_putc(w->out, (char)(RST0 + (done / w->restart - 1) % 8));
            memset(guess, 0, sizeof guess);
        }
        put_staged(w);
        if (w->no_code) return bad_skeleton(err, "a coefficient has no code");
        if (leat__buf_status(w->out) != 0)
            return leat__fail(err, leat__buf_status(w->out), "restored file does not fit");
    }
    pad_bits(w);
    return 0;
}

/* ---- restoring ---- */

/* Canonical codes of a DHT segment, which may hold several tables. */
static bool read_huffman(writer *w, const segment *s)
{
    const uint8_t *p = s->body, *end = s->body + s->body_len;
    while (end - p >= 17) {
        if ((p[0] & 0xe0) != 0 || (p[0] & 15) > 3) return false;
        huffman *t = (p[0] & 0x10) ? &w->ac[p[0] & 3] : &w->dc[p[0] & 3];
        const uint8_t *counts = p + 1, *symbol = p + 17;
        uint32_t code = 0;
        memset(t, 0, sizeof *t);
        for (uint32_t length = 1; length <= 16; length++, code <<= 1)
            for (uint32_t i = 0; i < counts[length - 1]; i++) {
                if (symbol == end || code >= 1u << length) return false;
                t->entry[*symbol++] = code++ << 8 | length;
            }
        find_near(t);
        p = symbol;
    }
    return p == end;
}

static bool read_frame(writer *w, const segment *s)
{
    uint32_t n = w->h->components;
    if (s->body_len != 6 + 3 * (size_t)n || s->body[5] != n) return false;
    for (uint32_t c = 0; c < n; c++) w->id[c] = s->body[6 + 3 * c];
    return true;
}

static int write_file(writer *w, const uint8_t *skeleton, size_t len, leat_error *err)
{
    size_t at = 0, copied = 0;
    segment s;
    scan sc;
    while (next_segment(skeleton, len, at, &s)) {
        at = s.end;
        if (s.marker == EOI) break;
        if (s.marker == DHT && !read_huffman(w, &s)) return bad_skeleton(err, "codes");
        if ((s.marker == SOF0 || s.marker == SOF1) && !read_frame(w, &s))
            return bad_skeleton(err, "frame");
        if (s.marker == DRI && s.body_len == 2)
            w->restart = (uint32_t)s.body[0] << 8 | s.body[1];
        if (s.marker != SOS) continue;
        leat__buf_append(w->out, skeleton + copied, at - copied);
        copied = at;
        if (!scan_parse(w, &s, &sc) || ++w->scans > SCANS_MAX)
            return bad_skeleton(err, "scan");
        LEAT_TRY(put_scan(w, &sc, err));
    }
    leat__buf_append(w->out, skeleton + copied, len - copied);
    int rc = leat__buf_status(w->out);
    return rc == 0 ? 0 : leat__fail(err, rc, "restored file does not fit its buffer");
}

static int unpack_skeleton(const leat__tile_header *h, const uint8_t *data,
                           const leat__tile_tables *tables, uint8_t *out, leat_error *err)
{
    const uint8_t *packed = data + h->header_bytes + h->tile_bytes + LEAT__TILE_GUARD;
    ZSTD_DCtx *ctx = ZSTD_createDCtx();
    if (ctx == NULL) return leat__fail_nomem(err, 0, "zstd");
    size_t n = (h->flags & LEAT__TILE_FLAG_DICTIONARY)
                   ? ZSTD_decompress_usingDDict(ctx, out, h->skeleton_bytes, packed,
                                                h->restore_bytes, tables->ddict)
                   : ZSTD_decompressDCtx(ctx, out, h->skeleton_bytes, packed, h->restore_bytes);
    ZSTD_freeDCtx(ctx);
    if (ZSTD_isError(n) || n != h->skeleton_bytes) return bad_skeleton(err, "damaged");
    return 0;
}

static int check_restorable(const leat__tile_header *h, const leat__tile_tables *tables,
                            leat_error *err)
{
    if (h->skeleton_bytes > SKELETON_MAX) return bad_skeleton(err, "too long");
    uint32_t needs = h->flags & (LEAT__TILE_FLAG_SMALL | LEAT__TILE_FLAG_DICTIONARY);
    if (needs == 0) return 0;
    if (tables == NULL)
        return leat__fail(err, LEAT_EINVAL, "tiled image: its pack's tables are needed");
    if (tables->id != h->tables_id)
        return leat__fail(err, LEAT_EDATA, "tiled image: made with tables %08x, not %08x",
                          h->tables_id, tables->id);
    if ((needs & LEAT__TILE_FLAG_DICTIONARY) && tables->ddict == NULL)
        return bad_skeleton(err, "its dictionary is missing");
    return 0;
}

static void find_places(writer *w)
{
    uint8_t in_scan[64];
    for (uint8_t k = 0; k < 64; k++) in_scan[zigzag[k]] = k;
    for (uint32_t bit = 0; bit < 64; bit++) w->place[bit] = in_scan[leat__tile_order[bit]];
}

static int writer_memory(writer *w, leat_error *err)
{
    w->coefs = leat__alloc_aligned(LEAT__MEM_CODEC, sizeof *w->coefs, 64);
    if (w->coefs == NULL) return leat__fail_nomem(err, sizeof *w->coefs, "tile coefficients");
    memset(w->coefs, 0, sizeof *w->coefs);
    for (uint32_t c = 0; c < w->h->components; c++) {
        size_t n = (size_t)leat__tile_grid_x(w->h, c) * leat__tile_blocks_y(w->h, c);
        w->blocks[c] = leat__zalloc_array(LEAT__MEM_CODEC, n, sizeof(scan_block));
        if (w->blocks[c] == NULL)
            return leat__fail_nomem(err, n * sizeof(scan_block), "a row of tiles");
    }
    return 0;
}

int leat__tile_rebuild(const leat__tile_header *h, const uint8_t *data,
                       const leat__tile_tables *tables, leat__buf *out, leat_error *err)
{
    uint8_t *skeleton = NULL;
    int rc = 0;
    LEAT_TRY(check_restorable(h, tables, err));
    writer *w = LEAT_NEW(CODEC, writer);
    if (w == NULL) return leat__fail_nomem(err, sizeof *w, "restoring a tiled image");
    w->h = h;
    w->data = data;
    w->out = out;
    w->codes = (h->flags & LEAT__TILE_FLAG_SMALL) ? &tables->codes : NULL;
    find_places(w);
    leat__tile_entropy_init(&w->entropy, leat__cpu_flags());
    LEAT_GO(rc, out, writer_memory(w, err));
    skeleton = leat__alloc(LEAT__MEM_CODEC, h->skeleton_bytes);
    if (skeleton == NULL)
        LEAT_GO(rc, out, leat__fail_nomem(err, h->skeleton_bytes, "file headers"));
    LEAT_GO(rc, out, unpack_skeleton(h, data, tables, skeleton, err));
    rc = write_file(w, skeleton, h->skeleton_bytes, err);
out:
    leat__free(skeleton);
    leat__free(w->coefs);
    for (uint32_t c = 0; c < LEAT__TILE_COMPONENTS; c++) leat__free(w->blocks[c]);
    leat__free(w);
    return rc;
}

int leat__tile_restore(const uint8_t *data, size_t len, const leat__tile_tables *tables,
                       leat__buf *out, leat_error *err)
{
    leat__tile_header h;
    size_t before = out->len;
    LEAT_TRY(leat__tile_header_parse(&h, data, len, err));
    LEAT_TRY(leat__tile_rebuild(&h, data, tables, out, err));
    if (out->len - before != h.file_bytes)
        return bad_skeleton(err, "the restored file has another length");
    return 0;
}
