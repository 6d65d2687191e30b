/* SPDX-License-Identifier: Apache-2.0
 *
 * Restores the file around the coefficients. A JPEG consists of a *skeleton* (everything except the
 * entropy-coded bytes of its scans) and its scans. The scans follow from the coefficients and the
 * skeleton's Huffman tables, restart interval and scan headers. Restoring writes them back where they
 * were, those of progressive files by tile_progressive.c. Files of unusual encoders are detected when
 * packing, because the restored file differs.
 *
 * When packing, most scans need not be written to know that they can be restored. Assume that jpeg_scan.c
 * decoded the scan to coefficients that the tiles restore. Then it is a sequence of codes with their extra
 * bits, some unused bits before each marker, and zeros after each byte 0xff. The same coefficients give
 * the same bytes here, provided that
 *
 *  - the symbols are the same. A size and its extra bits stand for values of exactly that size:
 *    a value leads back to both. A run of zeros has one way to be written, as runs of sixteen
 *    and the rest before a value; jpeg_scan.c refuses any other symbol without a value. A block
 *    ends at its last place, or with the end symbol. That leaves runs of sixteen before an end
 *    symbol, which are never written here.
 *  - the codes are the same: the tables are those of the same headers, and no symbol has two.
 *  - unused bits are as written here, all ones or all zeros. There are fewer than eight, or
 *    jpeg_scan.c would not have taken the marker after them.
 *  - markers are where they are written here: after each interval the next of eight, nothing
 *    else between, and an end marker behind the last MCU.
 *
 * leat__jpeg_traits records whether this holds. Then only headers and tail are compared, and whether the
 * parser here understands them as jpeg_scan.c did. The tests and a fuzzer compare this with writing the
 * scan.
 */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/num.h"
#include "codec/tile/tile_format.h"
#include "codec/tile/tile_scan.h"
#include "probe/cpu.h"

enum {
    SOF0 = 0xc0,
    SOF1 = 0xc1,
    SOF2 = 0xc2,
    DHT = 0xc4,
    RST0 = 0xd0,
    RST7 = 0xd7,
    SOI = 0xd8,
    EOI = 0xd9,
    SOS = 0xda,
    DRI = 0xdd,
    TEM = 0x01
};

/* Limits: scans of one file, and pixels of all scans. Encoders write far fewer. */
enum { SKELETON_MAX = 64 << 20, SCANS_MAX = 500, STAGE = 16384 };
#define WORK_MAX UINT64_C(4000000000)

/* Zigzag to natural (row by row) order. */
static const uint8_t natural[64] = {
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
    return marker == SOI || marker == EOI || marker == TEM || marker == 0 ||
           (marker >= RST0 && marker <= RST7);
}

/* Finds the next marker segment at or after `at`; bytes before the marker belong to it. False when no
 * complete one follows. */
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

/* Returns the first byte that is not entropy-coded data: a marker other than a restart, or fill bytes. */
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

/* ---- writing scans ---- */

/* Largest block: 64 symbols of 31 bits, and the bytes written past them. */
enum { BLOCK_ROOM = 512, MCU_BLOCKS_MAX = 10 };

typedef leat__scan_codes huffman;
typedef leat__scan_queue bit_queue;

/* The destination of the file: a buffer, or the bytes to compare it with. */
typedef struct target {
    leat__buf *out;
    const uint8_t *want;
    size_t left;
    bool differs;
} target;

struct leat__tile_restorer {
    leat__tile_entropy_dsp entropy;
    leat__tile_pack_dsp dsp;
    ZSTD_DCtx *zstd;
    leat__tile_coefs *coefs;
    leat__scan_block *blocks; /* one tile row of each component */
    size_t blocks_room;
    leat__buf skeleton;
    huffman dc[4], ac[4];
    uint8_t zigzag[64];   /* zigzag position of each bit of a tile's bitmaps */
    uint8_t stage[STAGE]; /* bytes of a scan, not yet stuffed */
    /* the current file */
    const leat__tile_header *h;
    const uint8_t *data; /* the sample */
    const leat__tile_codes *codes;
    leat__scan_block *rows[LEAT__TILE_COMPONENTS];
    size_t row_offset; /* of the next tile row */
    uint32_t restart;  /* interval in MCUs, 0 = none */
    uint8_t id[LEAT__TILE_COMPONENTS];
    bool no_code; /* a symbol had no code */
    bool progressive;
    leat__scan_run run; /* of the current scan, when progressive */
    uint32_t scans;
    const leat__jpeg_coefs *usual; /* or NULL: scans are written */
    target to;
    bit_queue queue;
};

typedef leat__tile_restorer writer;

static void put_bytes(writer *w, const void *bytes, size_t n)
{
    target *t = &w->to;
    if (t->out != NULL) {
        leat__buf_append(t->out, bytes, n);
        return;
    }
    t->differs = t->differs || n > t->left || memcmp(bytes, t->want, n) != 0;
    if (t->differs) return;
    t->want += n;
    t->left -= n;
}

/* Returns an error when it is pointless to continue. */
static int target_status(const writer *w, leat_error *err)
{
    if (w->to.differs) return leat__fail(err, LEAT_ECANCELED, "the restored file differs");
    int rc = w->to.out != NULL ? leat__buf_status(w->to.out) : 0;
    return rc == 0 ? 0 : leat__fail(err, rc, "restored file does not fit its buffer");
}

/* Writes the staged bytes with a zero after every 0xff, so that it is not a marker. */
static void put_staged(writer *w)
{
    static const uint8_t zero = 0;
    const uint8_t *at = w->stage, *end = w->queue.at, *ff;
    while (at < end && (ff = memchr(at, 0xff, (size_t)(end - at))) != NULL) {
        put_bytes(w, at, (size_t)(ff + 1 - at));
        put_bytes(w, &zero, 1);
        at = ff + 1;
    }
    put_bytes(w, at, (size_t)(end - at));
    w->queue.at = w->stage;
}

static void pad_bits(writer *w)
{
    uint32_t fill = (8 - w->queue.bits) % 8;
    bool zeros = (w->h->flags & LEAT__TILE_FLAG_PAD_ZERO) != 0;
    leat__scan_put_bits(&w->queue, zeros ? 0 : (1u << fill) - 1, fill);
    put_staged(w);
}

/* Writes two codes of at most 31 bits each. Two at a time halve the dependency chain. */
static inline void put_two(bit_queue *q, uint64_t a, uint64_t b)
{
    uint32_t n = (uint32_t)(a & 255) + (uint32_t)(b & 255);
    if (__builtin_expect(n > 56, 0)) {
        leat__scan_put_code(q, a);
        leat__scan_put_code(q, b);
    } else {
        leat__scan_put_bits(q, a >> 8 << (b & 255) | b >> 8, n);
    }
}

/* Writes a block with a long run of zeros. */
static __attribute__((noinline)) bool put_plain(bit_queue *q, const leat__scan_block *block,
                                                const huffman *ac, uint64_t before)
{
    uint32_t last = 0;
    uint64_t none = 0;
    leat__scan_put_code(q, before);
    for (uint64_t mask = block->ac; mask != 0; mask &= mask - 1) {
        uint32_t k = (uint32_t)__builtin_ctzll(mask), run = k - last - 1;
        uint64_t zeros = leat__scan_code_of(ac, 15, 0), code;
        for (; run > LEAT__SCAN_RUN_MAX; run -= 16) {
            none |= zeros;
            leat__scan_put_code(q, zeros);
        }
        code = leat__scan_code_of(ac, run, block->at[k]);
        none |= code;
        leat__scan_put_code(q, code);
        last = k;
    }
    uint64_t end = last < 63 ? leat__scan_code_of(ac, 0, 0) : 0;
    leat__scan_put_code(q, end);
    return ((none | end) & LEAT__SCAN_NO_CODE) == 0;
}

/* Writes one block. False when a symbol has no code. */
static inline bool put_block(bit_queue *q, const leat__scan_block *block, const huffman *dc,
                             const huffman *ac, int *guess)
{
    uint64_t first = leat__scan_code_of(dc, 0, block->dc - *guess), none = first;
    *guess = block->dc;
    if (__builtin_expect(block->plain, 0)) {
        bit_queue copy = *q; /* only its address is taken, so `q` itself stays in registers */
        bool good = put_plain(&copy, block, ac, first);
        *q = copy;
        return good && (none & LEAT__SCAN_NO_CODE) == 0;
    }
    const uint8_t *symbol = block->symbol, *end = symbol + block->symbols;
    const uint16_t *extra = block->extra;
    uint64_t code = ac->entry[*symbol++] | (uint64_t)*extra++ << 8;
    put_two(q, first, code);
    none |= code;
    for (; symbol < end;
         symbol += 2, extra += 2) { /* symbols are taken in pairs; after an odd number, NOTHING follows */
        uint64_t a = ac->entry[symbol[0]] | (uint64_t)extra[0] << 8;
        uint64_t b = ac->entry[symbol[1]] | (uint64_t)extra[1] << 8;
        put_two(q, a, b);
        none |= a | b;
    }
    return (none & LEAT__SCAN_NO_CODE) == 0;
}

/* Stores a block of a progressive file: coefficients stay as they are, because each scan codes parts of
 * them. */
static void order_plain(const writer *w, leat__scan_block *out, uint32_t b)
{
    const int16_t *value = w->coefs->value + w->coefs->first[b];
    *out = (leat__scan_block){.dc = w->coefs->dc[b], .plain = true};
    for (uint64_t mask = w->coefs->mask[b]; mask != 0; mask &= mask - 1) {
        uint32_t k = w->zigzag[__builtin_ctzll(mask)];
        out->at[k] = *value++;
        out->ac |= UINT64_C(1) << k;
    }
    out->ac &= ~UINT64_C(1);
}

static void order_blocks(const writer *w, leat__scan_block *out, uint32_t first, uint32_t count)
{
    if (!w->progressive) {
        w->dsp.order(out, w->coefs, first, count);
        return;
    }
    for (uint32_t i = 0; i < count; i++) order_plain(w, out + i, first + i);
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
            leat__fail(err, LEAT_EDATA, "tiled image: tile %u: %s (at byte %zu)", ty * h->tiles_x + tx,
                       leat__tile_damage_text(damage), w->row_offset);
            leat__error_at(err, NULL, -1, (int64_t)w->row_offset);
            return LEAT_EDATA;
        }
        w->row_offset += len;
        for (uint32_t c = 0, b = 0; c < h->components; c++) {
            leat__scan_block *row = w->rows[c] + tx * leat__tile_blocks_x(h, c);
            for (uint32_t y = 0; y < shape.high[c]; y++, b += shape.wide[c])
                order_blocks(w, row + y * leat__tile_grid_x(h, c), b, shape.wide[c]);
        }
    }
    return 0;
}

typedef struct scan {
    uint32_t components;
    uint32_t index[LEAT__TILE_COMPONENTS]; /* of the frame */
    uint8_t dc[LEAT__TILE_COMPONENTS], ac[LEAT__TILE_COMPONENTS];
    uint32_t mcus_x, mcus_y;
    bool alone;           /* one component: an MCU is one block, without padding blocks */
    leat__scan_pass pass; /* of a progressive file */
} scan;

/* Parses the positions and bits that a scan codes: all of them, or one pass of a progressive file. */
static bool pass_parse(const writer *w, const uint8_t rest[3], scan *out)
{
    uint32_t high = rest[2] >> 4, low = rest[2] & 15;
    if (!w->progressive) return rest[0] == 0 && rest[1] == 63 && rest[2] == 0;
    out->pass = (leat__scan_pass){rest[0], rest[1], low, high != 0};
    if (low > 13 || (high != 0 && high != low + 1)) return false;
    if (rest[0] == 0) return rest[1] == 0;
    return out->components == 1 && rest[0] <= rest[1] && rest[1] <= 63;
}

static bool has_codes(const writer *w, const scan *s, uint32_t i)
{
    bool dc = w->dc[s->dc[i]].defined, ac = w->ac[s->ac[i]].defined;
    if (!w->progressive) return dc && ac;
    return s->pass.first == 0 ? dc || s->pass.refine : ac;
}

static bool scan_parse(const writer *w, const segment *s, scan *out)
{
    const leat__tile_header *h = w->h;
    *out = (scan){0};
    if (s->body_len < 1) return false;
    out->components = s->body[0];
    if (out->components < 1 || out->components > h->components ||
        s->body_len != 4 + 2 * (size_t)out->components)
        return false;
    const uint8_t *rest = s->body + 1 + 2 * out->components;
    if (!pass_parse(w, rest, out)) return false;
    for (uint32_t i = 0; i < out->components; i++) {
        uint32_t c = 0;
        while (c < h->components && w->id[c] != s->body[1 + 2 * i]) c++;
        if (c == h->components) return false;
        out->index[i] = c;
        out->dc[i] = s->body[2 + 2 * i] >> 4;
        out->ac[i] = s->body[2 + 2 * i] & 15;
        if (out->dc[i] > 3 || out->ac[i] > 3) return false;
        if (!has_codes(w, out, i)) return false;
    }
    out->alone = out->components == 1;
    /* Two interleaved components of three would have different MCUs: no encoder writes that. */
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

/* One block of an MCU: its tables and its source. */
typedef struct place {
    const leat__scan_block *block;
    size_t step; /* to the same block of the next MCU */
    const huffman *dc, *ac;
    int *guess;
} place;

/* Like put_mcus, for one pass. */
static uint32_t put_passes(writer *w, const leat__scan_pass *pass, place *places, uint32_t blocks,
                           uint32_t count)
{
    const uint8_t *full = w->stage + STAGE - MCU_BLOCKS_MAX * LEAT__SCAN_PASS_ROOM;
    uint32_t done = 0;
    for (; done < count && w->queue.at <= full; done++)
        for (place *p = places; p < places + blocks; p->block += p->step, p++)
            w->no_code |= !leat__scan_put_pass(&w->queue, p->block, pass, p->dc, p->ac, p->guess, &w->run);
    return done;
}

/* Writes as many MCUs as fit into the stage, at most `count`; returns how many. */
static uint32_t put_mcus(writer *w, place *places, uint32_t blocks, uint32_t count)
{
    const uint8_t *full = w->stage + STAGE - MCU_BLOCKS_MAX * BLOCK_ROOM;
    bit_queue q = w->queue;
    bool good = true;
    uint32_t done = 0;
    for (; done < count && q.at <= full; done++)
        for (place *p = places; p < places + blocks; p->block += p->step, p++)
            good &= put_block(&q, p->block, p->dc, p->ac, p->guess);
    w->queue = q;
    w->no_code = w->no_code || !good;
    return done;
}

/* Finds the blocks of the MCUs of row my. */
static uint32_t find_places(writer *w, const scan *s, uint32_t my, int guess[3], place places[MCU_BLOCKS_MAX])
{
    const leat__tile_header *h = w->h;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->components; i++) {
        uint32_t c = s->index[i];
        uint32_t across = s->alone || c > 0 ? 1 : h->h, down = s->alone || c > 0 ? 1 : h->v;
        for (uint32_t b = 0; b < across * down; b++) {
            uint32_t y = (my * down + b / across) % leat__tile_blocks_y(h, c);
            places[n++] = (place){
                .block = w->rows[c] + (size_t)y * leat__tile_grid_x(h, c) + b % across,
                .step = across,
                .dc = &w->dc[s->dc[i]],
                .ac = &w->ac[s->ac[i]],
                .guess = &guess[c],
            };
        }
    }
    return n;
}

static int bad_skeleton(leat_error *err, const char *what)
{
    return leat__fail(err, LEAT_EDATA, "tiled image: its file headers: %s", what);
}

/* Ends the bits of a scan or of a restart interval. */
static void end_bits(writer *w, const scan *s)
{
    w->no_code |= !leat__scan_end_run(&w->queue, &w->run, &w->ac[s->ac[0]]);
    pad_bits(w);
}

static void put_restart(writer *w, const scan *s, uint64_t number, int guess[3])
{
    const uint8_t marker[2] = {0xff, (uint8_t)(RST0 + number % 8)};
    end_bits(w, s);
    put_bytes(w, marker, sizeof marker);
    memset(guess, 0, 3 * sizeof guess[0]);
}

static int put_scan(writer *w, const scan *s, leat_error *err)
{
    const leat__tile_header *h = w->h;
    uint32_t down = s->alone || h->components == 1 ? 1 : h->v;
    uint32_t per_tile = leat__tile_blocks_y(h, s->alone ? s->index[0] : 0) / down;
    int guess[3] = {0};
    place places[MCU_BLOCKS_MAX];
    uint64_t done = 0, total = (uint64_t)s->mcus_x * s->mcus_y;
    w->queue = (bit_queue){.at = w->stage};
    w->run.blocks = w->run.bits = 0;
    for (uint32_t my = 0; my < s->mcus_y; my++) {
        if (my % per_tile == 0) LEAT_TRY(load_tile_row(w, my / per_tile, err));
        uint32_t n = find_places(w, s, my, guess, places);
        for (uint32_t left = s->mcus_x; left > 0;) {
            uint64_t to_restart = w->restart ? w->restart - done % w->restart : left;
            uint32_t most = (uint32_t)LEAT_MIN(left, to_restart);
            uint32_t now =
                w->progressive ? put_passes(w, &s->pass, places, n, most) : put_mcus(w, places, n, most);
            left -= now;
            done += now;
            if (w->restart != 0 && done % w->restart == 0 && done != total)
                put_restart(w, s, done / w->restart - 1, guess);
            else put_staged(w);
        }
        if (w->no_code) return bad_skeleton(err, "a coefficient has no code");
        LEAT_TRY(target_status(w, err));
    }
    end_bits(w, s);
    return w->no_code ? bad_skeleton(err, "a run of blocks has no code") : 0;
}

/* ---- restoring ---- */

/* Builds canonical codes. False when there are more than fit. Keeps the table if it is the same as in the
 * previous file, which is frequent. */
static bool make_codes(huffman *t, const uint8_t *spec, size_t len)
{
    const uint8_t *symbol = spec + 16;
    uint64_t code = 0;
    if (len == t->spec_len && memcmp(spec, t->spec, len) == 0) return t->defined = true;
    t->spec_len = 0;
    for (uint32_t i = 0; i < 256; i++) t->entry[i] = LEAT__SCAN_NO_CODE;
    for (uint32_t length = 1; length <= 16; length++, code <<= 1)
        for (uint32_t i = 0; i < spec[length - 1]; i++, symbol++, code++) {
            uint32_t size = *symbol & 15;
            if (code >= 1u << length) return false;
            t->entry[*symbol] = code << size << 8 | (length + size);
        }
    t->run_of_two = t->entry[LEAT__SCAN_NOTHING];
    t->entry[LEAT__SCAN_NOTHING] = 0;
    memcpy(t->spec, spec, len);
    t->spec_len = len;
    return t->defined = true;
}

/* Reads a DHT segment, which may contain several tables. */
static bool read_huffman(writer *w, const segment *s)
{
    const uint8_t *p = s->body, *end = s->body + s->body_len;
    while (end - p >= 17) {
        size_t len = 16;
        if ((p[0] & 0xe0) != 0 || (p[0] & 15) > 3) return false;
        for (uint32_t i = 1; i <= 16; i++) len += p[i];
        if (len > 16 + 256 || (size_t)(end - p) < 1 + len) return false;
        huffman *t = (p[0] & 0x10) ? &w->ac[p[0] & 3] : &w->dc[p[0] & 3];
        if (!make_codes(t, p + 1, len)) return false;
        p += 1 + len;
    }
    return p == end;
}

static bool read_frame(writer *w, const segment *s)
{
    uint32_t n = w->h->components;
    if (s->body_len != 6 + 3 * (size_t)n || s->body[5] != n) return false;
    for (uint32_t c = 0; c < n; c++) w->id[c] = s->body[6 + 3 * c];
    w->progressive = s->marker == SOF2;
    return true;
}

/* Skips a scan whose bytes are known to equal those that put_scan would write. */
static int pass_scan(writer *w, const scan *s, leat_error *err)
{
    const leat__jpeg_coefs *f = w->usual;
    bool pads_zero = (w->h->flags & LEAT__TILE_FLAG_PAD_ZERO) != 0;
    bool same = w->scans == 1 && s->components == f->components && w->restart == f->restart_interval &&
                pads_zero == f->pads_zero;
    for (uint32_t i = 0; i < s->components; i++)
        same = same && s->index[i] == i && w->id[i] == f->component[i].id;
    uint32_t mcus_x = s->alone ? f->component[0].blocks_x : f->mcus_x;
    uint32_t mcus_y = s->alone ? f->component[0].blocks_y : f->mcus_y;
    same = same && s->mcus_x == mcus_x && s->mcus_y == mcus_y;
    if (!same) return bad_skeleton(err, "do not match the coefficients");
    w->to.differs = w->to.differs || w->to.want != f->scan || f->scan_len > w->to.left;
    LEAT_TRY(target_status(w, err));
    w->to.want += f->scan_len;
    w->to.left -= f->scan_len;
    return 0;
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
        if (s.marker >= SOF0 && s.marker <= SOF2 && !read_frame(w, &s)) return bad_skeleton(err, "frame");
        if (s.marker == DRI && s.body_len == 2) w->restart = (uint32_t)s.body[0] << 8 | s.body[1];
        if (s.marker != SOS) continue;
        put_bytes(w, skeleton + copied, at - copied);
        copied = at;
        uint64_t work = (uint64_t)++w->scans * w->h->width * w->h->height;
        if (w->scans > SCANS_MAX || work > WORK_MAX) return bad_skeleton(err, "too many scans");
        if (!scan_parse(w, &s, &sc)) return bad_skeleton(err, "scan");
        LEAT_TRY(w->usual ? pass_scan(w, &sc, err) : put_scan(w, &sc, err));
    }
    put_bytes(w, skeleton + copied, len - copied);
    return target_status(w, err);
}

static int unpack_skeleton(writer *w, const leat__tile_tables *tables, leat_error *err)
{
    const leat__tile_header *h = w->h;
    const uint8_t *packed = w->data + h->header_bytes + h->tile_bytes + LEAT__TILE_GUARD;
    leat__buf_clear(&w->skeleton);
    if (leat__buf_reserve(&w->skeleton, h->skeleton_bytes) != 0) {
        leat__buf_reset(&w->skeleton);
        return leat__fail_nomem(err, h->skeleton_bytes, "file headers");
    }
    char *out = w->skeleton.data;
    size_t n = (h->flags & LEAT__TILE_FLAG_DICTIONARY)
                   ? ZSTD_decompress_usingDDict(w->zstd, out, h->skeleton_bytes, packed, h->restore_bytes,
                                                tables->ddict)
                   : ZSTD_decompressDCtx(w->zstd, out, h->skeleton_bytes, packed, h->restore_bytes);
    if (ZSTD_isError(n) || n != h->skeleton_bytes) return bad_skeleton(err, "damaged");
    return 0;
}

static int check_restorable(const leat__tile_header *h, const leat__tile_tables *tables, leat_error *err)
{
    if (h->skeleton_bytes > SKELETON_MAX) return bad_skeleton(err, "too long");
    uint32_t needs = h->flags & (LEAT__TILE_FLAG_SMALL | LEAT__TILE_FLAG_DICTIONARY);
    if (needs == 0) return 0;
    if (tables == NULL) return leat__fail(err, LEAT_EINVAL, "tiled image: its pack's tables are needed");
    if (tables->id != h->tables_id)
        return leat__fail(err, LEAT_EDATA, "tiled image: made with tables %08x, not %08x", h->tables_id,
                          tables->id);
    if ((needs & LEAT__TILE_FLAG_DICTIONARY) && tables->ddict == NULL)
        return bad_skeleton(err, "its dictionary is missing");
    return 0;
}

/* Makes room for a row of tiles. */
static int fit_blocks(writer *w, leat_error *err)
{
    size_t n = 0, at[LEAT__TILE_COMPONENTS] = {0};
    for (uint32_t c = 0; c < w->h->components; c++) {
        at[c] = n;
        n += (size_t)leat__tile_grid_x(w->h, c) * leat__tile_blocks_y(w->h, c);
    }
    if (n > w->blocks_room) {
        leat__scan_block *grown = leat__zalloc_array(LEAT__MEM_CODEC, n, sizeof *grown);
        if (grown == NULL) return leat__fail_nomem(err, n * sizeof *grown, "a row of tiles");
        leat__free(w->blocks);
        w->blocks = grown;
        w->blocks_room = n;
    }
    for (uint32_t c = 0; c < w->h->components; c++) w->rows[c] = w->blocks + at[c];
    return 0;
}

int leat__tile_restorer_open(leat__tile_restorer **out, leat_error *err)
{
    int rc = 0;
    leat__tile_restorer *w = LEAT_NEW(CODEC, leat__tile_restorer);
    *out = NULL;
    if (w == NULL) return leat__fail_nomem(err, sizeof *w, "restoring a tiled image");
    leat__buf_init(&w->skeleton, LEAT__MEM_CODEC, SKELETON_MAX);
    leat__tile_entropy_init(&w->entropy, leat__cpu_flags());
    leat__tile_pack_init(&w->dsp, leat__cpu_flags());
    for (uint32_t bit = 0; bit < 64; bit++)
        for (uint8_t k = 0; k < 64; k++)
            if (natural[k] == leat__tile_order[bit]) w->zigzag[bit] = k;
    w->zstd = ZSTD_createDCtx();
    if (w->zstd == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, 0, "zstd"));
    w->coefs = leat__alloc_aligned(LEAT__MEM_CODEC, sizeof *w->coefs, 64);
    if (w->coefs == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, sizeof *w->coefs, "tile coefficients"));
    memset(w->coefs, 0, sizeof *w->coefs);
    *out = w;
    w = NULL;
out:
    leat__tile_restorer_close(&w);
    return rc;
}

void leat__tile_restorer_close(leat__tile_restorer **restorer)
{
    leat__tile_restorer *w = *restorer;
    if (w == NULL) return;
    ZSTD_freeDCtx(w->zstd);
    leat__free(w->coefs);
    leat__free(w->blocks);
    leat__buf_reset(&w->skeleton);
    leat__free(w);
    *restorer = NULL;
}

static int rebuild(writer *w, const leat__tile_header *h, const uint8_t *data,
                   const leat__tile_tables *tables, leat_error *err)
{
    LEAT_TRY(check_restorable(h, tables, err));
    w->h = h;
    w->data = data;
    w->codes = (h->flags & LEAT__TILE_FLAG_SMALL) ? &tables->codes : NULL;
    w->restart = w->scans = 0;
    w->no_code = w->progressive = false;
    memset(w->id, 0, sizeof w->id);
    for (int i = 0; i < 4; i++) w->dc[i].defined = w->ac[i].defined = false;
    if (w->usual == NULL) LEAT_TRY(fit_blocks(w, err));
    LEAT_TRY(unpack_skeleton(w, tables, err));
    return write_file(w, (const uint8_t *)w->skeleton.data, h->skeleton_bytes, err);
}

/* Restores without checking the length of the result. */
static int rebuild_file(leat__tile_restorer *r, const leat__tile_header *h, const uint8_t *data,
                        const leat__tile_tables *tables, leat__buf *out, leat_error *err)
{
    r->to = (target){.out = out};
    r->usual = NULL;
    return rebuild(r, h, data, tables, err);
}

int leat__tile_rebuilds(leat__tile_restorer *r, const leat__tile_header *h, const uint8_t *data,
                        const leat__tile_tables *tables, const uint8_t *file, size_t len,
                        const leat__jpeg_coefs *usual, bool *same, leat_error *err)
{
    r->to = (target){.want = file, .left = len};
    r->usual = usual;
    int rc = rebuild(r, h, data, tables, err);
    *same = rc == 0 && r->to.left == 0;
    return r->to.differs ? 0 : rc;
}

int leat__tile_restore(const uint8_t *data, size_t len, const leat__tile_tables *tables, leat__buf *out,
                       leat_error *err)
{
    leat__tile_restorer *r;
    leat__tile_header h;
    size_t before = out->len;
    LEAT_TRY(leat__tile_header_parse(&h, data, len, err));
    LEAT_TRY(leat__tile_restorer_open(&r, err));
    int rc = rebuild_file(r, &h, data, tables, out, err);
    leat__tile_restorer_close(&r);
    if (rc == 0 && out->len - before != h.file_bytes)
        return bad_skeleton(err, "the restored file has another length");
    return rc;
}
