/* SPDX-License-Identifier: Apache-2.0
 *
 * Headers and entropy-coded data of ordinary JPEGs; see jpeg_scan.h. The bottlenecks of decoding are the
 * dependency chain from one code to the next (bits -> table -> shift) and unpredictable branches. So one
 * lookup gives two coefficients if their codes are short, of any size without a branch (jpeg_huff.h).
 * Three lookups share one refill. The bit buffer is refilled eight bytes at a time unless one of them is
 * 0xff, which is searched for ahead. All sizes come from checked headers. Bits past the end read as zeros
 * and are detected after each MCU.
 */
#include "codec/jpeg_scan.h"

#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/codec_ops.h"
#include "codec/jpeg_header.h"
#include "codec/jpeg_huff.h"
#include "probe/cpu.h"

enum {
    SOF0 = 0xc0,
    SOF1 = 0xc1,
    DHT = 0xc4,
    RST0 = 0xd0,
    SOI = 0xd8,
    EOI = 0xd9,
    SOS = 0xda,
    DQT = 0xdb,
    DRI = 0xdd,
    APP0 = 0xe0,
    APP15 = 0xef,
    COM = 0xfe
};

enum { MCU_BLOCKS_MAX = 10, TABLES = 4 };

/* Zigzag to natural order. */
static const uint8_t natural[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

struct leat__jpeg_scan {
    const uint8_t *data;
    size_t len;
    leat__jpeg_coefs frame;
    uint32_t mcus_x, mcus_y, mcus;
    uint32_t blocks; /* per MCU */
    struct {
        uint8_t component, x, y;
    } block[MCU_BLOCKS_MAX];
    uint32_t mcu_h[4];
    const leat__huff *dc[4], *ac[4]; /* by component */
    leat__huff dc_table[TABLES], ac_table[TABLES];
};

int leat__jpeg_scan_open(leat__jpeg_scan **scan, leat_error *err)
{
    *scan = LEAT_NEW(CODEC, leat__jpeg_scan);
    if (*scan == NULL) return leat__fail_nomem(err, sizeof **scan, "a JPEG scan");
    return 0;
}

void leat__jpeg_scan_close(leat__jpeg_scan **scan)
{
    leat__free(*scan);
    *scan = NULL;
}

const leat__jpeg_coefs *leat__jpeg_scan_frame(const leat__jpeg_scan *s)
{
    return &s->frame;
}

uint32_t leat__jpeg_scan_mcus_x(const leat__jpeg_scan *s)
{
    return s->mcus_x;
}

uint32_t leat__jpeg_scan_mcus_y(const leat__jpeg_scan *s)
{
    return s->mcus_y;
}

/* ---- headers ---- */

/* The tables as last defined: views. */
typedef struct tables {
    const uint8_t *quant[TABLES];   /* 64 values each */
    bool wide[TABLES];              /* two bytes per value */
    const uint8_t *huff[2][TABLES]; /* DC, AC: counts, then symbols */
} tables;

static uint32_t be16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static bool read_quant(tables *t, const uint8_t *p, size_t n)
{
    while (n > 0) {
        uint32_t wide = p[0] >> 4, number = p[0] & 15;
        size_t size = 1 + (wide ? 128 : 64);
        if (wide > 1 || number >= TABLES || n < size) return false;
        t->quant[number] = p + 1;
        t->wide[number] = wide != 0;
        p += size;
        n -= size;
    }
    return true;
}

static bool read_huffman(tables *t, const uint8_t *p, size_t n)
{
    while (n > 0) {
        uint32_t kind = p[0] >> 4, number = p[0] & 15;
        size_t size = 17;
        if (kind > 1 || number >= TABLES || n < size) return false;
        for (int l = 1; l <= 16; l++) size += p[l];
        if (size > 17 + 256 || n < size) return false;
        t->huff[kind][number] = p + 1;
        p += size;
        n -= size;
    }
    return true;
}

/* Reads the header of a scan of all components in the frame's order. */
static bool read_scan_header(leat__jpeg_scan *s, const tables *t, const uint8_t *p, size_t n)
{
    uint32_t components = s->frame.components;
    if (n != 4 + 2 * (size_t)components || p[0] != components) return false;
    p++;
    for (uint32_t c = 0; c < components; c++, p += 2) {
        uint32_t dc = p[1] >> 4, ac = p[1] & 15;
        if (p[0] != s->frame.component[c].id || dc >= TABLES || ac >= TABLES) return false;
        const uint8_t *dc_from = t->huff[0][dc], *ac_from = t->huff[1][ac];
        if (dc_from == NULL || ac_from == NULL) return false;
        if (!leat__huff_build(&s->dc_table[dc], dc_from, dc_from + 16, true) ||
            !leat__huff_build(&s->ac_table[ac], ac_from, ac_from + 16, false))
            return false;
        s->dc[c] = &s->dc_table[dc];
        s->ac[c] = &s->ac_table[ac];
    }
    return p[0] == 0 && p[1] == 63 && p[2] == 0;
}

/* Reads marker segments up to the scan. They must be adjacent and of known kinds. */
static bool read_segments(leat__jpeg_scan *s, const uint8_t *data, size_t end)
{
    tables t = {0};
    for (size_t at = 2; at + 4 <= end;) {
        uint8_t marker = data[at + 1];
        size_t size = be16(data + at + 2);
        if (data[at] != 0xff || size < 2 || size > end - at - 2) return false;
        const uint8_t *p = data + at + 4;
        bool good = true;
        if (marker == DQT) good = read_quant(&t, p, size - 2);
        else if (marker == DHT) good = read_huffman(&t, p, size - 2);
        else if (marker == SOS) good = at + 2 + size == end && read_scan_header(s, &t, p, size - 2);
        else
            good = marker == SOF0 || marker == SOF1 || marker == DRI || marker == COM ||
                   (marker >= APP0 && marker <= APP15);
        if (!good) return false;
        at += 2 + size;
        if (marker != SOS) continue;
        for (uint32_t c = 0; c < s->frame.components; c++) {
            leat__jpeg_component *comp = &s->frame.component[c];
            const uint8_t *q = comp->quant_index < TABLES ? t.quant[comp->quant_index] : NULL;
            if (q == NULL) return false;
            bool wide = t.wide[comp->quant_index];
            for (uint32_t k = 0; k < 64; k++)
                comp->quant[natural[k]] = (uint16_t)(wide ? be16(q + 2 * k) : q[k]);
        }
        return true;
    }
    return false;
}

static void describe_component(leat__jpeg_coefs *f, const leat__jpeg_header *h, uint32_t i)
{
    leat__jpeg_component *c = &f->component[i];
    c->id = h->component[i].id;
    c->h = h->component[i].h;
    c->v = h->component[i].v;
    c->quant_index = h->component[i].quant;
    c->width = (uint32_t)leat__ceil_div((uint64_t)f->width * c->h, f->max_h);
    c->height = (uint32_t)leat__ceil_div((uint64_t)f->height * c->v, f->max_v);
    c->blocks_x = (uint32_t)leat__ceil_div((uint64_t)f->width * c->h, 8ull * f->max_h);
    c->blocks_y = (uint32_t)leat__ceil_div((uint64_t)f->height * c->v, 8ull * f->max_v);
    c->grid_x = (uint32_t)leat__ceil_div(c->blocks_x, c->h) * c->h;
    c->grid_y = (uint32_t)leat__ceil_div(c->blocks_y, c->v) * c->v;
}

static bool describe_frame(leat__jpeg_scan *s, const leat__jpeg_header *h)
{
    leat__jpeg_coefs *f = &s->frame;
    memset(f, 0, sizeof *f);
    if (h->bits != 8 || h->progressive || h->arithmetic || h->lossless) return false;
    f->width = h->width;
    f->height = h->height;
    f->components = h->components;
    f->colour = h->colour;
    f->scans = 1;
    f->restart_interval = h->restart_interval;
    for (uint32_t i = 0; i < h->components; i++) {
        f->max_h = LEAT_MAX(f->max_h, h->component[i].h);
        f->max_v = LEAT_MAX(f->max_v, h->component[i].v);
        for (uint32_t k = 0; k < i; k++)
            if (h->component[k].id == h->component[i].id) return false;
    }
    f->mcus_x = (uint32_t)leat__ceil_div(f->width, 8ull * f->max_h);
    f->mcus_y = (uint32_t)leat__ceil_div(f->height, 8ull * f->max_v);
    for (uint32_t i = 0; i < h->components; i++) describe_component(f, h, i);
    return true;
}

/* Lists the blocks of an MCU in scan order. */
static bool lay_out_mcu(leat__jpeg_scan *s)
{
    const leat__jpeg_coefs *f = &s->frame;
    bool alone = f->components == 1;
    s->mcus_x = alone ? f->component[0].blocks_x : f->mcus_x;
    s->mcus_y = alone ? f->component[0].blocks_y : f->mcus_y;
    s->mcus = s->mcus_x * s->mcus_y; /* both are at most 8192 */
    s->blocks = 0;
    for (uint32_t c = 0; c < f->components; c++) {
        uint32_t across = alone ? 1 : f->component[c].h, down = alone ? 1 : f->component[c].v;
        s->mcu_h[c] = across;
        if (s->blocks + across * down > MCU_BLOCKS_MAX) return false;
        for (uint8_t y = 0; y < down; y++)
            for (uint8_t x = 0; x < across; x++, s->blocks++) {
                s->block[s->blocks].component = (uint8_t)c;
                s->block[s->blocks].x = x;
                s->block[s->blocks].y = y;
            }
    }
    return true;
}

bool leat__jpeg_scan_start(leat__jpeg_scan *s, const uint8_t *data, size_t len)
{
    leat__jpeg_header h;
    s->data = NULL;
    s->len = 0;
    s->mcus = 0;
    if (leat__jpeg_header_read(data, len, &h, NULL) != 0) return false;
    if (!describe_frame(s, &h) || !read_segments(s, data, h.scan_offset) || !lay_out_mcu(s)) return false;
    s->data = data;
    s->len = len;
    s->frame.header = data;
    s->frame.header_len = h.scan_offset;
    s->frame.scan = data + h.scan_offset;
    s->frame.scan_len = len - h.scan_offset;
    return true;
}

/* ---- bits ---- */

/* The next bits are at the top of `acc`; `bits` of them are valid. The last `pad` of those are zeros added
 * because the data ended. Bits below the valid ones are zero or what the next refill will put there. */
typedef struct reader {
    uint64_t acc;
    uint32_t bits; /* modulo 64 between refills within an MCU */
    uint32_t pad;
    const uint8_t *at;
    const uint8_t *stop; /* no byte from `at` up to here is 0xff */
    const uint8_t *end;
} reader;

#define INLINE static inline __attribute__((always_inline))

enum { AHEAD = 1024 }; /* bytes searched for a 0xff at a time */

/* Moves `stop` to the next 0xff, or to the end of the searched bytes. */
static void look_ahead(reader *r)
{
    const size_t n = LEAT_MIN((size_t)(r->end - r->stop), AHEAD);
    const uint8_t *found = n > 0 ? memchr(r->stop, 0xff, n) : NULL;
    r->stop = found ? found : r->stop + n;
}

/* Takes as many of eight bytes as there is room for. */
INLINE void put_bytes(reader *r, uint64_t eight)
{
    r->acc |= __builtin_bswap64(eight) >> r->bits;
    r->at += (63 - r->bits) >> 3;
    r->bits |= 56;
}

/* True when one of the lowest n (0 to 7) of eight bytes is 0xff. */
INLINE bool has_ff(uint64_t bytes, uint32_t n)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), low = (UINT64_C(1) << 8 * n) - 1;
    return ((~bytes - ones) & bytes & ones << 7 & low) != 0;
}

/* Refills with the bytes around a single 0xff and the zero after it. False when there are more of them. */
static bool refill_over_ff(reader *r)
{
    const uint32_t n = (63 - r->bits) >> 3, before = (uint32_t)(r->stop - r->at);
    if (r->end - r->at < 9) return false;
    uint64_t next = leat__load_u64(r->at);
    if (before < n) {
        const uint64_t low = (UINT64_C(1) << 8 * (before + 1)) - 1; /* up to the 0xff */
        if (r->stop[1] != 0) return false;
        const uint64_t rest = (next >> 8 | (uint64_t)r->at[8] << 56) & ~low;
        if (has_ff(rest, n)) return false;
        next = (next & low) | rest;
    }
    put_bytes(r, next);
    if (before < n) r->stop = ++r->at;
    return true;
}

/* Refills byte by byte: at the end, and near a marker. */
static void refill_bytes(reader *r)
{
    for (; r->bits < 56; r->bits += 8) {
        uint64_t byte = 0;
        size_t left = (size_t)(r->end - r->at);
        if (left > 0 && r->at[0] != 0xff) {
            byte = *r->at++;
        } else if (left >= 2 && r->at[1] == 0) {
            byte = 0xff;
            r->at += 2;
        } else {
            r->pad += 8;
        }
        r->acc |= byte << (56 - r->bits);
    }
    if (r->stop < r->at) r->stop = r->at;
}

static __attribute__((noinline)) void refill_slowly(reader *r)
{
    while (r->stop - r->at < 8 && r->stop < r->end && *r->stop != 0xff) look_ahead(r);
    if (r->stop - r->at >= 8) put_bytes(r, leat__load_u64(r->at));
    else if (!refill_over_ff(r)) refill_bytes(r);
}

/* Refills to 56 bits or more. */
INLINE void refill(reader *r)
{
    r->bits &= 63;
    if (__builtin_expect(r->stop - r->at >= 8, 1)) {
        put_bytes(r, leat__load_u64(r->at));
    } else {
        reader copy = *r; /* only its address is taken, so `r` itself stays in registers */
        refill_slowly(&copy);
        *r = copy;
    }
}

/* Consumes n mod 64 bits. */
INLINE void take(reader *r, uint32_t n)
{
    r->acc <<= n & 63;
    r->bits -= n;
}

static bool reader_load(reader *r, const leat__jpeg_scan *s, const leat__jpeg_cursor *at)
{
    if (at->byte > s->len || at->bit > 7) return false;
    *r = (reader){.at = s->data + at->byte, .stop = s->data + at->byte, .end = s->data + s->len};
    refill(r);
    take(r, at->bit);
    return r->pad <= r->bits;
}

/* Stores the position: steps back over the bytes waiting in the buffer, and over the zeros after 0xff. */
static void reader_save(const reader *r, const leat__jpeg_scan *s, leat__jpeg_cursor *at)
{
    uint32_t waiting = r->bits - r->pad, bytes = (waiting + 7) / 8;
    const uint8_t *p = r->at;
    for (uint32_t i = 0; i < bytes; i++) p -= p[-1] == 0 && p - s->data >= 2 && p[-2] == 0xff ? 2 : 1;
    at->byte = (uint64_t)(p - s->data);
    at->bit = bytes * 8 - waiting;
}

/* True when this marker is next, without a whole byte before it. */
static bool at_marker(const reader *r, uint8_t marker)
{
    return r->bits - r->pad < 8 && r->end - r->at >= 2 && r->at[0] == 0xff && r->at[1] == marker;
}

/* ---- blocks ---- */

typedef enum step { GO_ON, OTHER, DONE, BAD } step;

/* Stores the value of a symbol whose code was consumed; *k is the position of the previous one. */
INLINE step put_symbol(reader *r, uint32_t symbol, uint32_t *k, int16_t *block, bool keep)
{
    uint32_t size = symbol & 15;
    *k += (symbol >> 4) + 1;
    if (*k > 63) return BAD;
    if (size == 0) return symbol == 0xf0 && *k < 63 ? GO_ON : BAD;
    if (keep) block[natural[*k]] = (int16_t)leat__huff_extend(r->acc, size);
    take(r, size);
    return *k < 63 ? GO_ON : DONE;
}

/* Decodes one code of any length. */
static __attribute__((noinline)) step decode_slowly(reader *r, const leat__huff *ac, uint32_t *k,
                                                    int16_t *block)
{
    const leat__huff_short *e = &ac->known[r->acc >> (64 - LEAT__HUFF_LOOK)];
    uint32_t symbol = e->symbol, length = e->bits;
    if (length == 0) length = leat__huff_code(ac, r->acc, &symbol);
    if (length == 0) return BAD;
    take(r, length);
    return symbol == 0 ? DONE : put_symbol(r, symbol, k, block, block != NULL);
}

/* Decodes the coefficients of one lookup if they are inside the block. Needs LEAT__HUFF_TAKE bits. */
INLINE step decode_look(reader *r, const leat__huff *ac, uint32_t *k, int16_t *block, bool keep)
{
    uint64_t seen = r->acc >> (64 - LEAT__HUFF_LOOK);
    const leat__huff_look *e = &ac->look[seen];
    /* The chain from code to code goes through `bits`, which should not wait for the address that the other
     * fields share. */
    __asm__("" : "+r"(e));
    uint32_t bits = ac->look[seen].bits, first = *k + e->first, last = *k + e->last;
    if (__builtin_expect(last > 63, 0)) return OTHER;
    if (keep) {
        uint32_t value = (uint32_t)(r->acc >> (-bits & 63)) & e->mask;
        block[natural[first]] = e->value;
        block[natural[last]] = (int16_t)leat__huff_signed(value, e->mask);
    }
    take(r, bits);
    *k = last;
    if (__builtin_expect(((bits | (last + 1)) & LEAT__HUFF_END) == 0, 1)) return GO_ON;
    *k = last - bits / LEAT__HUFF_END;
    return DONE;
}

/* Decodes a DC difference. Needs 31 bits. */
INLINE bool decode_dc(reader *r, const leat__huff *dc, int16_t *guess)
{
    const leat__huff_mean *e = &dc->mean[r->acc >> (64 - LEAT__HUFF_LOOK_DC)];
    uint32_t bits = e->bits, code = e->code, size = e->size;
    if (__builtin_expect(bits == 0, 0)) {
        code = leat__huff_code(dc, r->acc, &size);
        bits = code + size;
        if (code == 0) return false;
    }
    int32_t value = *guess + leat__huff_extend(r->acc << code, size);
    take(r, bits);
    *guess = (int16_t)value;
    return *guess == value;
}

/* Like memset, which some compilers turn into a slow `rep stos`. */
INLINE void clear(int16_t block[64])
{
    typedef int16_t row __attribute__((vector_size(16), aligned(16), may_alias));
    for (uint32_t i = 0; i < 8; i++) ((row *)(void *)block)[i] = (row){0};
}

/* Decodes one block; `block` NULL: only skips it. *last: position of the last coefficient. */
INLINE bool decode_block(reader *r, const leat__huff *dc, const leat__huff *ac, int16_t *guess,
                         int16_t *block, uint32_t *last, bool keep)
{
    refill(r);
    if (!decode_dc(r, dc, guess)) return false;
    if (keep) {
        clear(block);
        block[0] = *guess;
    }
    uint32_t k = 0;
    step next = decode_look(r, ac, &k, block, keep); /* the DC leaves 25 bits or more */
    while (next < DONE) {
        refill(r);
        if (next == OTHER) {
            reader copy = *r; /* as in refill */
            uint32_t from = k;
            next = decode_slowly(&copy, ac, &from, keep ? block : NULL);
            *r = copy;
            k = from;
            continue;
        }
        next = decode_look(r, ac, &k, block, keep);
        if (next == GO_ON) next = decode_look(r, ac, &k, block, keep);
        if (next == GO_ON) next = decode_look(r, ac, &k, block, keep);
    }
    *last = k;
    return next == DONE;
}

/* ---- MCUs ---- */

void leat__jpeg_scan_begin(const leat__jpeg_scan *s, leat__jpeg_cursor *at)
{
    *at = (leat__jpeg_cursor){.byte = s->frame.header_len};
}

/* Records the bits between the last code and a marker. */
static void note_unused(const reader *r, leat__jpeg_traits *traits)
{
    uint32_t n = r->bits - r->pad;
    if (traits == NULL || n == 0) return;
    traits->ones |= r->acc >> (64 - n) != 0;
    traits->zeros |= ~r->acc >> (64 - n) != 0;
}

/* Before every interval except the first: consumes the restart marker, which must come next. */
static bool restart(reader *r, leat__jpeg_cursor *at, uint32_t interval, leat__jpeg_traits *traits)
{
    uint32_t number = (at->mcu / interval - 1) & 7;
    if (!at_marker(r, (uint8_t)(RST0 + number))) return false;
    note_unused(r, traits);
    *r = (reader){.at = r->at + 2, .stop = r->at + 2, .end = r->end};
    memset(at->dc, 0, sizeof at->dc);
    return true;
}

/* One block of an MCU: its tables and its destination. The work between two blocks follows a mispredicted
 * branch, so it is kept minimal. */
typedef struct place {
    const leat__huff *dc, *ac;
    int16_t *guess;
    int16_t *block;
    uint8_t *last;
    size_t step; /* to the same block of the next MCU */
    bool mean_only;
} place;

static void find_places(const leat__jpeg_scan *s, leat__jpeg_cursor *at, const leat__jpeg_blocks *to,
                        place places[MCU_BLOCKS_MAX])
{
    for (uint32_t i = 0; i < s->blocks; i++) {
        uint32_t c = s->block[i].component;
        places[i] = (place){.dc = s->dc[c], .ac = s->ac[c], .guess = &at->dc[c]};
        if (to == NULL) continue;
        size_t n = s->block[i].y * to->stride[c] + s->block[i].x;
        places[i].block = to->block[c] + 64 * n;
        places[i].last = to->last[c] ? to->last[c] + n : NULL;
        places[i].step = s->mcu_h[c];
        places[i].mean_only = to->traits == NULL && to->means_only[c];
    }
}

/* The use of decoded blocks. */
typedef enum purpose { SKIP, KEEP, KEEP_AND_WATCH } purpose;

/* Decodes one MCU. Also sets *odd when a block ends with a run of zeros. */
INLINE bool decode_mcu(reader *r, place *p, uint32_t blocks, bool *odd, const purpose why)
{
    reader local = *r;
    for (place *end = p + blocks; p < end; p++) {
        uint32_t last;
        if (why == KEEP && p->mean_only) {
            if (!decode_block(&local, p->dc, p->ac, p->guess, NULL, &last, false)) return false;
            p->block[0] = *p->guess;
        } else if (!decode_block(&local, p->dc, p->ac, p->guess, p->block, &last, why != SKIP)) {
            return false;
        }
        if (why == SKIP) continue;
        if (why == KEEP_AND_WATCH) *odd |= last != 0 && p->block[natural[last]] == 0;
        p->block += 64 * p->step;
        if (p->last == NULL) continue;
        *p->last = (uint8_t)last;
        p->last += p->step;
    }
    *r = local;
    r->bits &= 63;
    return r->pad <= r->bits; /* no bit past the end was consumed */
}

INLINE bool decode_mcus(const leat__jpeg_scan *s, leat__jpeg_cursor *at, uint32_t count,
                        const leat__jpeg_blocks *to, const purpose why)
{
    reader r;
    place places[MCU_BLOCKS_MAX];
    find_places(s, at, to, places);
    uint32_t interval = s->frame.restart_interval;
    leat__jpeg_traits *traits = to ? to->traits : NULL;
    bool odd = false;
    if (at->mcu > s->mcus || count > s->mcus - at->mcu || !reader_load(&r, s, at)) return false;
    for (uint32_t i = 0; i < count; i++, at->mcu++) {
        if (interval != 0 && at->mcu != 0 && at->mcu % interval == 0 && !restart(&r, at, interval, traits))
            return false;
        if (!decode_mcu(&r, places, s->blocks, &odd, why)) return false;
    }
    if (traits) traits->odd |= odd;
    reader_save(&r, s, at);
    return true;
}

INLINE bool decode_any(const leat__jpeg_scan *s, leat__jpeg_cursor *at, uint32_t count,
                       const leat__jpeg_blocks *to)
{
    if (to == NULL) return decode_mcus(s, at, count, NULL, SKIP);
    return to->traits ? decode_mcus(s, at, count, to, KEEP_AND_WATCH) : decode_mcus(s, at, count, to, KEEP);
}

static bool decode_plain(const leat__jpeg_scan *s, leat__jpeg_cursor *at, uint32_t count,
                         const leat__jpeg_blocks *to)
{
    return decode_any(s, at, count, to);
}

#ifdef LEAT_X86
/* Shifts by a variable take one instruction instead of two or three, and do not change the flags. */
__attribute__((target("bmi,bmi2"))) static bool decode_bmi2(const leat__jpeg_scan *s, leat__jpeg_cursor *at,
                                                            uint32_t count, const leat__jpeg_blocks *to)
{
    return decode_any(s, at, count, to);
}
#endif

static bool decode(const leat__jpeg_scan *s, leat__jpeg_cursor *at, uint32_t count,
                   const leat__jpeg_blocks *to)
{
#ifdef LEAT_X86
    if (leat__cpu_flags() & LEAT__CPU_AVX2) return decode_bmi2(s, at, count, to);
#endif
    return decode_plain(s, at, count, to);
}

bool leat__jpeg_scan_mcus(const leat__jpeg_scan *s, leat__jpeg_cursor *at, uint32_t count,
                          const leat__jpeg_blocks *to)
{
    return decode(s, at, count, to);
}

bool leat__jpeg_scan_skip(const leat__jpeg_scan *s, leat__jpeg_cursor *at, uint32_t count)
{
    return decode(s, at, count, NULL);
}

bool leat__jpeg_scan_finish(const leat__jpeg_scan *s, const leat__jpeg_cursor *at, size_t *end,
                            leat__jpeg_traits *traits)
{
    reader r;
    if (at->mcu != s->mcus || s->mcus == 0 || !reader_load(&r, s, at)) return false;
    if (!at_marker(&r, EOI)) return false;
    *end = (size_t)(r.at + 2 - s->data);
    note_unused(&r, traits);
    for (uint32_t c = 0; traits && c < s->frame.components; c++)
        traits->odd |= !s->dc[c]->unique || !s->ac[c]->unique;
    return true;
}

/* True when libjpeg can convert the coefficients to pixels: it upsamples only by whole factors, and there are
 * limits. */
static bool has_pixels(const leat__jpeg_coefs *f, const leat__decode_limits *limits)
{
    leat__decode_limits bounds = limits ? *limits : (leat__decode_limits){0};
    leat__image_info info = {.width = f->width, .height = f->height};
    uint64_t bytes = (uint64_t)f->width * f->height * (f->components == 1 ? 1 : 3);
    leat__decode_limits_fill(&bounds);
    for (uint32_t c = 0; c < f->components; c++)
        if (f->max_h % f->component[c].h != 0 || f->max_v % f->component[c].v != 0) return false;
    return leat__decode_limits_check(&bounds, &info, NULL) == 0 && bytes <= bounds.max_out_bytes;
}

bool leat__jpeg_scan_whole(leat__jpeg_scan *s, const uint8_t *data, size_t len,
                           const leat__decode_limits *limits)
{
    leat__jpeg_cursor at;
    size_t end;
    if (!leat__jpeg_scan_start(s, data, len) || !has_pixels(&s->frame, limits)) return false;
    leat__jpeg_scan_begin(s, &at);
    return leat__jpeg_scan_skip(s, &at, s->mcus) && leat__jpeg_scan_finish(s, &at, &end, NULL);
}

/* ---- damage ---- */

/* Decodes one block without the tables of pairs. Returns the reason why no encoder writes it, or NULL. Sets
 * *known when libjpeg warns about the damage itself. */
static const char *find_fault(reader *r, const leat__huff *dc, const leat__huff *ac, int16_t *guess,
                              bool *known)
{
    uint32_t size = 0;
    refill(r);
    const uint32_t code = leat__huff_code(dc, r->acc, &size);
    *known = code == 0;
    if (*known) return NULL;
    const int32_t mean = *guess + leat__huff_extend(r->acc << code, size);
    take(r, code + size);
    *guess = (int16_t)mean;
    if (*guess != mean) return "a DC coefficient out of range";
    for (uint32_t k = 0; k < 63;) {
        uint32_t symbol = 0;
        refill(r);
        const uint32_t length = leat__huff_code(ac, r->acc, &symbol);
        *known = length == 0;
        if (*known) return NULL;
        take(r, length + (symbol & 15));
        if (symbol == 0) return NULL; /* the end of the block */
        if ((symbol & 15) == 0 && symbol != 0xf0) return "an undefined Huffman symbol";
        k += (symbol >> 4) + 1;
        if (k > 63) return "a block of more than 64 coefficients";
    }
    return NULL;
}

/* Like find_fault, for an MCU. */
static const char *find_fault_of_mcu(const leat__jpeg_scan *s, reader *r, leat__jpeg_cursor *at, bool *known)
{
    for (uint32_t i = 0; i < s->blocks; i++) {
        const uint32_t c = s->block[i].component;
        const char *fault = find_fault(r, s->dc[c], s->ac[c], &at->dc[c], known);
        r->bits &= 63;
        *known |= r->pad > r->bits; /* the data ended */
        if (fault || *known) return *known ? NULL : fault;
    }
    at->mcu++;
    return NULL;
}

enum {
    CHANCE = 6, /* blocks; random bytes may decode as fewer than this */
    ROUND = 16, /* lines; encoders of cameras round the height up to a multiple of this */
};

/* True when this number of MCUs is whole rows, which an encoder may have added to round the height up. */
static bool is_rounding(const leat__jpeg_scan *s, uint32_t mcus)
{
    const uint32_t lines = s->frame.components == 1 ? 8 : 8 * s->frame.max_v; /* of an MCU */
    return mcus % s->mcus_x == 0 && mcus / s->mcus_x * lines < ROUND;
}

/* True when more MCUs follow the last one, up to the end of the scan: then earlier codes were lost, or the
 * image had more rows. Not if the remaining bytes are not codes (padding, notes of cameras). */
static bool has_more(const leat__jpeg_scan *s, reader *r, leat__jpeg_cursor *at)
{
    const uint32_t first = at->mcu, rest = r->bits % 8; /* bits up to the next byte */
    const uint32_t interval = s->frame.restart_interval;
    const bool ended = rest == 0 || ~r->acc >> (64 - rest) == 0;
    for (bool known = false; !known && at->mcu < UINT32_MAX;) {
        const uint32_t more = at->mcu - first;
        leat__jpeg_traits unused = {0};
        refill(r);
        if (at_marker(r, EOI)) {
            note_unused(r, &unused);
            return !unused.zeros && more > 0 && !is_rounding(s, more) &&
                   (!ended || more * (uint64_t)s->blocks >= CHANCE);
        }
        if (interval != 0 && at->mcu % interval == 0 && !restart(r, at, interval, NULL)) return false;
        if (find_fault_of_mcu(s, r, at, &known)) return false;
    }
    return false;
}

const char *leat__jpeg_scan_fault(leat__jpeg_scan *s, const uint8_t *data, size_t len, size_t *offset)
{
    leat__jpeg_cursor at;
    reader r;
    bool known = false;
    if (!leat__jpeg_scan_start(s, data, len)) return NULL;
    leat__jpeg_scan_begin(s, &at);
    if (leat__jpeg_scan_skip(s, &at, s->mcus) && leat__jpeg_scan_finish(s, &at, offset, NULL)) return NULL;
    leat__jpeg_scan_begin(s, &at);
    const uint32_t interval = s->frame.restart_interval;
    if (!reader_load(&r, s, &at)) return NULL;
    while (at.mcu < s->mcus) {
        if (interval != 0 && at.mcu != 0 && at.mcu % interval == 0 && !restart(&r, &at, interval, NULL))
            return NULL;
        const char *fault = find_fault_of_mcu(s, &r, &at, &known);
        *offset = (size_t)(r.at - s->data);
        if (fault || known) return fault;
    }
    return has_more(s, &r, &at) ? "more blocks than the image has" : NULL;
}
