/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes coefficients as a tiled sample, and proves that it is correct: the tiles decode to
 * libjpeg-turbo's pixels, and the file can be restored. One encoder per thread; it keeps its scratch
 * between images.
 */
#include <string.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/num.h"
#include "codec/tile/tile_format.h"
#include "dsp/pixel.h"
#include "probe/cpu.h"

enum {
    TILE_ROOM = 64 * 1024, /* largest tile: 12,288 values of 30 bits, and their bitmaps */
    STREAMS = 4,
    PLAIN_LEVEL = 12 /* zstd without a dictionary */
};

struct leat__tile_encoder {
    const leat__tile_tables *tables;
    leat__decoder *decoder;
    leat__tile_restorer *restorer;
    ZSTD_CCtx *zstd;
    leat__tile_pack_dsp dsp;
    leat__tile_entropy_dsp entropy;
    leat__tile_parts parts;
    leat__tile_coefs *coefs; /* of a tile that is decoded for the proof */
    leat__buf skeleton, packed;
    leat__buf row; /* one row of interleaved pixels */
};

int leat__tile_encoder_open(leat__tile_encoder **out, const leat__tile_tables *tables, leat_error *err)
{
    leat__tile_encoder *e = LEAT_NEW(CODEC, leat__tile_encoder);
    int rc = 0;
    *out = NULL;
    if (e == NULL) return leat__fail_nomem(err, sizeof *e, "tile encoder");
    leat__buf *bufs[] = {&e->skeleton, &e->packed, &e->row};
    for (size_t i = 0; i < LEAT_COUNT(bufs); i++) leat__buf_init(bufs[i], LEAT__MEM_CODEC, (size_t)1 << 31);
    e->tables = tables;
    leat__tile_pack_init(&e->dsp, leat__cpu_flags());
    leat__tile_entropy_init(&e->entropy, leat__cpu_flags());
    e->coefs = leat__alloc_aligned(LEAT__MEM_CODEC, sizeof *e->coefs, 64);
    if (e->coefs == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, sizeof *e->coefs, "tile coefficients"));
    memset(e->coefs, 0, sizeof *e->coefs);
    e->zstd = ZSTD_createCCtx();
    if (e->zstd == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, 0, "zstd"));
    LEAT_GO(rc, out, leat__decoder_open(&e->decoder, err));
    LEAT_GO(rc, out, leat__tile_restorer_open(&e->restorer, err));
    *out = e;
    e = NULL;
out:
    leat__tile_encoder_close(&e);
    return rc;
}

void leat__tile_encoder_close(leat__tile_encoder **pe)
{
    leat__tile_encoder *e = *pe;
    if (e == NULL) return;
    leat__buf *bufs[] = {&e->skeleton, &e->packed, &e->row};
    for (size_t i = 0; i < LEAT_COUNT(bufs); i++) leat__buf_reset(bufs[i]);
    leat__decoder_close(&e->decoder);
    leat__tile_restorer_close(&e->restorer);
    ZSTD_freeCCtx(e->zstd);
    leat__free(e->coefs);
    leat__free(e);
    *pe = NULL;
}

/* ---- bits, low first ---- */

typedef struct bits {
    uint8_t *at;
    uint64_t acc;
    uint32_t n;
} bits;

/* Appends bits, at most 56 between two calls of spill. */
static inline void put(bits *b, uint32_t value, uint32_t n)
{
    b->acc |= (uint64_t)value << b->n;
    b->n += n;
}

/* Stores eight bytes and advances past the full ones: without a branch. */
static inline void spill(bits *b)
{
    leat__store_u64(b->at, b->acc);
    b->at += b->n >> 3;
    b->acc >>= b->n & 56;
    b->n &= 7;
}

static inline void flush(bits *b)
{
    spill(b);
    b->at += b->n > 0;
    b->acc = b->n = 0;
}

/* ---- one tile ---- */

static uint8_t *put_fast(uint8_t *at, const leat__tile_parts *p, uint32_t blocks)
{
    bits b = {.at = at};
    uint32_t nibbles[LEAT__TILE_BLOCKS_MAX];
    for (uint32_t i = 0; i < blocks; i++) {
        uint64_t mask = p->mask[i];
        nibbles[i] = mask == 0 ? 1 : (uint32_t)(67 - __builtin_clzll(mask)) / 4;
        put(&b, nibbles[i] - 1, 4);
        spill(&b);
    }
    flush(&b);
    for (uint32_t i = 0; i < blocks; i++) {
        uint32_t low = LEAT_MIN(nibbles[i], 8);
        put(&b, (uint32_t)p->mask[i], 4 * low);
        spill(&b);
        put(&b, (uint32_t)(p->mask[i] >> 32), 4 * (nibbles[i] - low));
        spill(&b);
    }
    flush(&b);
    return b.at;
}

/* The symbols of a tile in coding order, each with its table << 8: pairs of counts, then bitmap bytes. Bytes
 * are written eight at a time even if fewer are used. */
typedef struct symbols {
    uint32_t pairs, n;
    uint16_t at[LEAT__TILE_BLOCKS_MAX * 9 + 8];
} symbols;

/* Writes the bytes of a bitmap, each with its table << 8. */
static inline void eight_pairs(uint16_t *to, uint64_t mask, const uint8_t table[8])
{
    typedef uint8_t bytes __attribute__((vector_size(16)));
    typedef uint64_t words __attribute__((vector_size(16)));
    bytes low = (bytes)(words){mask}, high = (bytes)(words){leat__load_u64(table)};
    bytes pairs = __builtin_shufflevector(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    memcpy(to, &pairs, sizeof pairs);
}

static void collect_symbols(symbols *s, const leat__tile_parts *p, const leat__tile_shape *shape,
                            const leat__tile_codes *codes)
{
    uint32_t n = 0;
    for (uint32_t c = 0, b = 0; c < shape->components; b += shape->count[c], c++)
        for (uint32_t i = 0; i < (shape->count[c] + 1) / 2; i++, n++) {
            uint32_t pair = leat__tile_pair_symbol(p->groups + b, shape->count[c], i);
            s->at[n] = (uint16_t)((LEAT__TILE_CONTEXTS + (c > 0)) << 8 | pair);
        }
    s->pairs = n;
    for (uint32_t c = 0, b = 0; c < shape->components; c++)
        for (uint32_t i = 0; i < shape->count[c]; i++, b++) {
            eight_pairs(s->at + n, p->mask[b], codes->context[c > 0][p->groups[b]]);
            n += p->groups[b];
        }
    s->n = n;
}

enum { ROUNDS = 4 }; /* codes that fit in addition to seven waiting bits */

/* Writes the symbols of one stream: every fourth one of `from` to `end`. */
static inline void deal(bits *to, const symbols *s, uint32_t from, uint32_t end, const leat__tile_tables *t)
{
    const uint16_t *codes = t->put[0]; /* of all tables, adjacent */
    bits b = *to;                      /* a copy stays in registers */
    uint32_t i = from;
    for (; i + (ROUNDS - 1) * STREAMS < end; i += ROUNDS * STREAMS) {
#pragma GCC unroll 4
        for (uint32_t k = i; k < i + ROUNDS * STREAMS; k += STREAMS) {
            uint32_t code = codes[s->at[k]];
            put(&b, code >> 4, code & 15);
        }
        spill(&b);
    }
    for (; i < end; i += STREAMS) {
        uint32_t code = codes[s->at[i]];
        put(&b, code >> 4, code & 15);
        spill(&b);
    }
    *to = b;
}

static uint8_t *put_small(uint8_t *at, const leat__tile_parts *p, const leat__tile_shape *shape,
                          const leat__tile_tables *t)
{
    symbols s;
    collect_symbols(&s, p, shape, &t->codes);
    uint8_t *header = at;
    at += 2 * (STREAMS - 1);
    for (uint32_t k = 0; k < STREAMS; k++) {
        bits b = {.at = at};
        deal(&b, &s, k, s.pairs, t);
        deal(&b, &s, s.pairs + k, s.n, t);
        flush(&b);
        if (k < STREAMS - 1) leat__store_u16(header + 2 * k, (uint16_t)(b.at - at));
        at = b.at;
    }
    return at;
}

/* True when a decoded tile has the coefficients it was encoded from. */
static bool same_tile(const leat__tile_pack_dsp *dsp, const leat__tile_coefs *tile,
                      const leat__tile_header *h, const leat__jpeg_coefs *coefs, uint32_t tx, uint32_t ty)
{
    leat__tile_shape shape;
    bool same = true;
    leat__tile_shape_at(h, tx, ty, &shape);
    for (uint32_t c = 0, b = 0; c < shape.components; c++) {
        const leat__jpeg_component *comp = &coefs->component[c];
        const int16_t *row = comp->coefs + 64 * (size_t)tx * leat__tile_blocks_x(h, c);
        size_t y = (size_t)ty * leat__tile_blocks_y(h, c), end = y + shape.high[c];
        for (; y < end; y++, b += shape.wide[c])
            same &= dsp->same(tile, b, row + 64 * y * comp->grid_x, shape.wide[c]);
    }
    return same;
}

/* Appends a tile to `out`. If *good is true, decodes the tile again and clears *good if the coefficients
 * differ. */
static int encode_tile(leat__tile_encoder *e, const leat__tile_header *h, const leat__jpeg_coefs *coefs,
                       uint32_t tx, uint32_t ty, leat__buf *out, leat__tile_kept *kept, bool *good)
{
    const leat__tile_tables *small = (h->flags & LEAT__TILE_FLAG_SMALL) ? e->tables : NULL;
    leat__tile_shape shape;
    *kept = leat__tile_take_apart(&e->dsp, &e->parts, h, coefs, tx, ty);
    if (*kept != LEAT__TILE_KEPT_NONE) return 0;
    leat__tile_shape_at(h, tx, ty, &shape);
    LEAT_TRY(leat__buf_reserve(out, TILE_ROOM));
    uint8_t *start = (uint8_t *)out->data + out->len;
    uint8_t *at =
        small ? put_small(start, &e->parts, &shape, small) : put_fast(start, &e->parts, shape.blocks);
    at = e->dsp.put_values(at, &e->parts);
    size_t len = (size_t)(at - start);
    *good =
        *good &&
        e->entropy.decode(e->coefs, start, len, &shape, small ? &small->codes : NULL) == LEAT__TILE_WHOLE &&
        same_tile(&e->dsp, e->coefs, h, coefs, tx, ty);
    out->len += len;
    return 0;
}

/* Appends all tiles and stores their lengths; *good as in encode_tile. */
static int encode_tiles(leat__tile_encoder *e, leat__tile_header *h, const leat__jpeg_coefs *coefs,
                        leat__buf *out, size_t lengths, leat__tile_kept *kept, bool *good)
{
    size_t first = out->len;
    for (uint32_t ty = 0; ty < h->tiles_y; ty++)
        for (uint32_t tx = 0; tx < h->tiles_x; tx++, lengths += 2) {
            size_t from = out->len;
            LEAT_TRY(encode_tile(e, h, coefs, tx, ty, out, kept, good));
            if (*kept != LEAT__TILE_KEPT_NONE) return 0;
            leat__store_u16(out->data + lengths, (uint16_t)(out->len - from));
        }
    h->tile_bytes = (uint32_t)(out->len - first);
    return 0;
}

/* ---- the rest of the sample ---- */

/* Writes everything except the scans. If there is only one usual scan, its ends are known. */
static int make_skeleton(leat__buf *out, const leat__jpeg_coefs *coefs, const uint8_t *jpeg, size_t len)
{
    if (!coefs->usual) return leat__tile_skeleton_of(jpeg, len, out);
    leat__buf_append(out, coefs->header, coefs->header_len);
    leat__buf_append(out, coefs->tail, coefs->tail_len);
    return leat__buf_status(out);
}

static int pack_skeleton(leat__tile_encoder *e, leat__tile_header *h, const leat__jpeg_coefs *coefs,
                         const uint8_t *jpeg, size_t len)
{
    leat__buf_clear(&e->skeleton);
    leat__buf_clear(&e->packed);
    LEAT_TRY(make_skeleton(&e->skeleton, coefs, jpeg, len));
    size_t room = ZSTD_compressBound(e->skeleton.len);
    LEAT_TRY(leat__buf_reserve(&e->packed, room));
    size_t n;
    if (e->tables != NULL && e->tables->cdict != NULL) {
        h->flags |= LEAT__TILE_FLAG_DICTIONARY;
        n = ZSTD_compress_usingCDict(e->zstd, e->packed.data, room, e->skeleton.data, e->skeleton.len,
                                     e->tables->cdict);
    } else {
        n = ZSTD_compressCCtx(e->zstd, e->packed.data, room, e->skeleton.data, e->skeleton.len, PLAIN_LEVEL);
    }
    if (ZSTD_isError(n)) return LEAT_ENOMEM;
    e->packed.len = n;
    h->skeleton_bytes = (uint32_t)e->skeleton.len;
    h->restore_bytes = (uint32_t)n;
    return 0;
}

/* Writes the whole sample. *good as in encode_tile. */
static int assemble(leat__tile_encoder *e, leat__tile_header *h, const leat__jpeg_coefs *coefs,
                    leat__buf *out, leat__tile_kept *kept, bool *good)
{
    size_t lengths;
    leat__buf_clear(out);
    LEAT_TRY(leat__tile_header_write(h, out, &lengths));
    LEAT_TRY(encode_tiles(e, h, coefs, out, lengths, kept, good));
    if (*kept != LEAT__TILE_KEPT_NONE) return 0;
    leat__tile_header_totals(h, (uint8_t *)out->data);
    leat__buf_zeros(out, LEAT__TILE_GUARD);
    leat__buf_append(out, e->packed.data, e->packed.len);
    LEAT_TRY(leat__buf_status(out));
    /* decoders require readable bytes after every input */
    return leat__buf_reserve(out, LEAT__CODEC_PADDING);
}

/* ---- proofs ---- */

/* Checks whether the sample restores the file, and sets the padding flag that this needs. If `usual` is
 * given, first tries without writing the scan; else, or if that fails, tries both paddings. */
static int try_file(leat__tile_encoder *e, leat__tile_header *h, const uint8_t *sample, const uint8_t *jpeg,
                    size_t len, const leat__jpeg_coefs *usual, bool *same, leat_error *err)
{
    const uint32_t flags = h->flags;
    int rc = 0;
    *same = false;
    for (int way = usual ? 0 : 1; way < 3 && !*same && rc == 0; way++) {
        bool zeros = way == 0 ? usual->pads_zero : way == 2;
        h->flags = flags | (zeros ? LEAT__TILE_FLAG_PAD_ZERO : 0);
        rc = leat__tile_rebuilds(e->restorer, h, sample, e->tables, jpeg, len, way == 0 ? usual : NULL, same,
                                 err);
        if (way == 0 && rc == LEAT_EDATA) rc = 0;
    }
    return rc;
}

/* Sets the `exact` and padding flags by trial, in the header fields in place: nothing else depends on them.
 * `usual` as in leat__tile_rebuilds. */
static int prove_file(leat__tile_encoder *e, const leat__jpeg_coefs *usual, const uint8_t *jpeg, size_t len,
                      leat__buf *out, leat__tile_kept *kept, leat_error *err)
{
    uint8_t *sample = (uint8_t *)out->data;
    leat__tile_header h;
    bool same = false;
    LEAT_TRY(leat__tile_header_parse(&h, sample, out->len, err));
    int rc = try_file(e, &h, sample, jpeg, len, usual, &same, err);
    h.file_bytes = (uint32_t)len;
    if (rc == 0 && same) h.flags |= LEAT__TILE_FLAG_EXACT;
    if (rc != 0 && rc != LEAT_EDATA) return rc;
    if (rc != 0 || !same) *kept = LEAT__TILE_KEPT_RESTORE;
    leat__tile_header_totals(&h, sample);
    return 0;
}

typedef struct comparison {
    leat__jpeg_coef_reader *libjpeg;
    const leat__pixel_dsp *dsp;
    const leat__tile_encoder *encoder;
    const leat__jpeg_coefs *coefs;
    leat__tile_header h;
    uint32_t tiles; /* whose coefficients are the same */
    uint32_t width, channels;
    uint8_t *row;
    leat_error *err;
    bool differ;
} comparison;

/* Compares rows with libjpeg's. All rows come, in order. */
static int compare_rows(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride)
{
    comparison *cmp = ctx;
    for (uint32_t i = 0; i < count && !cmp->differ; i++) {
        const uint8_t *got[3] = {plane[0] + i * stride}, *want;
        for (uint32_t c = 1; c < cmp->channels; c++) got[c] = plane[c] + i * stride;
        LEAT_TRY(leat__jpeg_coef_row(cmp->libjpeg, &want, cmp->err));
        if (cmp->channels == 3) {
            cmp->dsp->interleave8(got, cmp->row, cmp->width);
            got[0] = cmp->row;
        }
        cmp->differ = memcmp(got[0], want, (size_t)cmp->width * cmp->channels) != 0;
    }
    return cmp->differ ? LEAT_ECANCELED : 0;
}

static int compare_tile(void *ctx, uint32_t tx, uint32_t ty, const void *tile)
{
    comparison *cmp = ctx;
    cmp->tiles += same_tile(&cmp->encoder->dsp, tile, &cmp->h, cmp->coefs, tx, ty);
    return 0;
}

/* Compares with libjpeg-turbo's pixels of the same coefficients. That these are the coefficients of the file
 * is proved by restoring it; those of a progressive file were read by libjpeg-turbo itself. *good: all tiles
 * decoded to the coefficients. */
static int prove_pixels(leat__tile_encoder *e, const leat__jpeg_coefs *coefs, const leat__buf *out,
                        leat__tile_kept *kept, bool *good, leat_error *err)
{
    const uint8_t *sample = (const uint8_t *)out->data;
    leat__image_info info;
    leat__decode_request request = {.tables = e->tables};
    comparison cmp = {.libjpeg = coefs->pixels, .encoder = e, .coefs = coefs, .err = err};
    leat__row_sink sink = {.rows = compare_rows, .ctx = &cmp, .tile = compare_tile};

    if (coefs->pixels == NULL) return leat__fail(err, LEAT_EINVAL, "nothing to compare the tiles with");
    LEAT_TRY(leat__codec_probe(LEAT__CODEC_TILE, sample, out->len, &info, err));
    LEAT_TRY(leat__tile_header_parse(&cmp.h, sample, out->len, err));
    leat__buf_clear(&e->row);
    if (leat__buf_reserve(&e->row, (size_t)3 * info.width) != 0)
        return leat__fail_nomem(err, (size_t)3 * info.width, "a row of pixels");
    cmp.dsp = leat__pixel_dsp_for(leat__cpu_flags());
    cmp.width = info.width;
    cmp.channels = info.channels;
    cmp.row = (uint8_t *)e->row.data;
    LEAT_TRY(leat__jpeg_coef_pixels(coefs->pixels, err));
    int rc = leat__codec_decode(e->decoder, &info, sample, out->len, &request, &sink, err);
    *good = rc == 0 && cmp.tiles == cmp.h.tiles_x * cmp.h.tiles_y;
    if (!cmp.differ) return rc;
    *kept = LEAT__TILE_KEPT_PIXELS;
    return 0;
}

static int encode_and_prove(leat__tile_encoder *e, const leat__jpeg_coefs *coefs, const uint8_t *jpeg,
                            size_t len, const leat__tile_encode_opts *opts, leat__buf *out,
                            leat__tile_kept *kept, leat_error *err)
{
    leat__tile_header h;
    leat__image_info info;
    *kept = leat__tile_header_from(&h, coefs);
    if (*kept == LEAT__TILE_KEPT_NONE && len > UINT32_MAX / 2) *kept = LEAT__TILE_KEPT_SIZE;
    if (*kept != LEAT__TILE_KEPT_NONE) return 0;
    LEAT_TRY(leat__codec_probe(LEAT__CODEC_JPEG, jpeg, len, &info, err));
    h.orientation = info.orientation;
    if (opts->density == LEAT__TILE_SMALL) h.flags |= LEAT__TILE_FLAG_SMALL;
    /* A usual scan only needs a decode to coefficients, which the comparison of pixels includes. */
    bool usual = coefs->usual && coefs->header == jpeg, pixels = usual && !opts->trust;
    bool good = usual && !pixels;
    int rc = pack_skeleton(e, &h, coefs, jpeg, len);
    if ((h.flags & (LEAT__TILE_FLAG_SMALL | LEAT__TILE_FLAG_DICTIONARY)) != 0) h.tables_id = e->tables->id;
    if (rc == 0) rc = assemble(e, &h, coefs, out, kept, &good);
    if (rc != 0) return leat__fail(err, rc, "tiling an image of %zu bytes", len);
    if (*kept != LEAT__TILE_KEPT_NONE) return 0;
    if (pixels) LEAT_TRY(prove_pixels(e, coefs, out, kept, &good, err));
    if (*kept != LEAT__TILE_KEPT_NONE) return 0;
    LEAT_TRY(prove_file(e, good ? coefs : NULL, jpeg, len, out, kept, err));
    if (*kept != LEAT__TILE_KEPT_NONE || pixels) return 0;
    return opts->trust ? 0 : prove_pixels(e, coefs, out, kept, &good, err);
}

int leat__tile_encode(leat__tile_encoder *e, const leat__jpeg_coefs *coefs, const uint8_t *jpeg, size_t len,
                      const leat__tile_encode_opts *opts, leat__buf *out, leat__tile_kept *kept,
                      leat_error *err)
{
    *kept = LEAT__TILE_KEPT_NONE;
    leat__buf_clear(out);
    if (opts->density == LEAT__TILE_SMALL && e->tables == NULL)
        return leat__fail(err, LEAT_EINVAL, "small tiles need tables");
    int rc = encode_and_prove(e, coefs, jpeg, len, opts, out, kept, err);
    if (rc != 0 || *kept != LEAT__TILE_KEPT_NONE) leat__buf_clear(out);
    return rc;
}
