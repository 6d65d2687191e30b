/* SPDX-License-Identifier: Apache-2.0
 *
 * See image_small.h. Sums are integers, or doubles added in pixel order: the same on every machine.
 */
#include "curate/image_small.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/jpeg_header.h"
#include "codec/jpeg_scan.h"
#include "codec/tile/tile_format.h"
#include "dsp/energy.h"
#include "dsp/idct_small.h"
#include "probe/cpu.h"

#define LUMA_SIDE 40 /* samples on the shorter side, if the image has as many */
#define CHROMA_SIDE 20
#define SUM_BLOCKS 32 /* blocks whose sums fit in 32 bits */

struct leat__image_looker {
    leat__decoder *decoder;
    leat__jpeg_scan *scan; /* for JPEGs decoded by libjpeg; NULL before the first */
    const leat__energy_dsp *energy;
    leat__decode_limits limits;
    leat__image_small small;
    leat__tile_header header; /* header of a tiled image */
    bool begun;               /* `small` has rows of the next image, */
    bool prepared;            /* and all of them: only info is missing */
    leat__ycc_part part[3];   /* how to shrink each component */
    leat__idct_small_dsp idct;
    uint8_t *strip; /* pixel rows of a row of blocks */
    uint8_t *last;  /* index of the last coefficient per block: always 63 */
    size_t strip_stride;
    /* For images decoded to pixels: */
    uint32_t factor;    /* pixels per sample in each direction */
    uint32_t *sums;     /* three components of `room` columns each */
    int16_t *rows;      /* the last three rows of luma */
    uint8_t *flat;      /* one row of three components over grey, for images with alpha */
    uint32_t room, row; /* columns allocated; rows seen */
    uint64_t alpha;     /* hash of the alpha plane */
    bool transparent;   /* some pixel is not opaque */
};

int leat__image_looker_open(leat__image_looker **out, const leat__decode_limits *limits, leat_error *err)
{
    leat__image_looker *l = leat__alloc_aligned(LEAT__MEM_CURATE, sizeof *l, _Alignof(leat__image_looker));
    if (!l) return leat__fail_nomem(err, sizeof *l, "an image decoder");
    memset(l, 0, sizeof *l); /* not LEAT_NEW, which aligns to 16 bytes: the header of tiles needs 64 */
    if (limits) l->limits = *limits;
    l->energy = leat__energy_dsp_for(leat__cpu_flags());
    leat__idct_small_init(&l->idct, leat__cpu_flags());
    int rc = leat__decoder_open(&l->decoder, err);
    if (rc != 0) leat__image_looker_close(&l);
    *out = l;
    return rc;
}

void leat__image_looker_close(leat__image_looker **looker)
{
    leat__image_looker *l = *looker;
    if (!l) return;
    leat__decoder_close(&l->decoder);
    leat__jpeg_scan_close(&l->scan);
    for (int c = 0; c < 3; c++) leat__free(l->small.plane[c].data);
    leat__free(l->sums);
    leat__free(l->rows);
    leat__free(l->flat);
    leat__free(l->strip);
    leat__free(l->last);
    leat__free(l);
    *looker = NULL;
}

static void clear(leat__image_small *s)
{
    leat__small_plane plane[3];
    memcpy(plane, s->plane, sizeof plane);
    memset(s, 0, sizeof *s);
    memcpy(s->plane, plane, sizeof plane);
}

static int fit_plane(leat__small_plane *p, uint32_t width, uint32_t height, leat_error *err)
{
    size_t need = (size_t)width * height;
    p->width = width;
    p->height = height;
    p->stride = width;
    p->filled = 0;
    if (need <= p->capacity) return 0;
    leat__free(p->data);
    p->data = leat__alloc(LEAT__MEM_CURATE, need);
    p->capacity = p->data ? need : 0;
    return p->data ? 0 : leat__fail_nomem(err, need, "a small image");
}

/* Returns how often to halve a side of 8 samples so that `shorter` keeps `enough` samples. */
static uint32_t shrink_for(uint32_t shorter, uint32_t enough, uint32_t most)
{
    uint32_t shrink = most;
    while (shrink > 0 && (shorter >> shrink) < enough) shrink--;
    return shrink;
}

uint64_t leat__image_look_bytes(const leat__image_info *info)
{
    const uint32_t shrink = shrink_for(LEAT_MIN(info->width, info->height), LUMA_SIDE, 2);
    const uint64_t width = leat__ceil_div(info->width, UINT64_C(1) << shrink);
    return width * leat__ceil_div(info->height, UINT64_C(1) << shrink) * (info->channels >= 3 ? 3 : 1);
}

/* ---- coefficients ---- */

static int take_part(void *ctx, uint32_t c, uint32_t count, const uint8_t *rows, size_t stride)
{
    leat__small_plane *p = &((leat__image_looker *)ctx)->small.plane[c];
    for (uint32_t i = 0; i < count && p->filled < p->height; i++, p->filled++)
        memcpy(p->data + p->filled * p->stride, rows + i * stride, p->width);
    return 0;
}

/* Sums of SUM_BLOCKS blocks fit in 32 bits: JPEG coefficients have at most 11 bits; larger ones wrap
 * around. */
static void take_blocks(void *ctx, const int16_t *blocks, uint32_t x, uint32_t y, uint32_t count,
                        const uint16_t quant[64])
{
    leat__image_looker *l = ctx;
    leat__image_small *s = &l->small;
    uint32_t sum[64] = {0};
    if (s->blocks == 0) leat__image_noise_begin(&s->noise, s->info.width, s->info.height, quant);
    leat__image_noise_plain(&s->noise, blocks, x, y, count);
    l->energy->plain(sum, blocks, count);
    for (int i = 1; i < 64; i++) s->energy[i] += sum[i]; /* without DC */
    memcpy(s->quant, quant, sizeof s->quant);
    s->blocks += count;
}

static int take_tile(void *ctx, uint32_t tx, uint32_t ty, const void *coefs)
{
    leat__image_looker *l = ctx;
    const leat__tile_coefs *tile = coefs;
    const leat__tile_header *h = &l->header;
    leat__tile_shape shape;
    uint32_t sum[64] = {0}; /* indexed by position in the bitmap */
    leat__tile_shape_at(h, tx, ty, &shape);
    /* The blocks that pad the image to whole MCUs have no pixels. */
    const uint32_t x0 = tx * leat__tile_blocks_x(h, 0), y0 = ty * leat__tile_blocks_y(h, 0);
    const uint32_t across = (uint32_t)leat__ceil_div(h->width, 8),
                   down = (uint32_t)leat__ceil_div(h->height, 8);
    const uint32_t wide = LEAT_MIN(shape.wide[0], across - x0), high = LEAT_MIN(shape.high[0], down - y0);
    const leat__idct_area area = {0, wide, high, shape.wide[0]};
    leat__image_noise_area(&l->small.noise, tile, &area, x0, y0);
    l->energy->area(sum, tile, &area);
    for (int i = 1; i < 64; i++) l->small.energy[leat__tile_order[i]] += sum[i];
    l->small.blocks += (uint64_t)wide * high;
    return 0;
}

static uint64_t hash_planes(const leat__image_small *s, uint64_t seed)
{
    uint64_t h = seed;
    for (uint32_t c = 0; c < s->components; c++) {
        const leat__small_plane *p = &s->plane[c];
        h = leat__hash64(p->data, (size_t)p->width * p->height, h);
    }
    return h;
}

/* Hashes the size without the alpha channel, so that an opaque RGBA image has the hash of the RGB image. */
static uint64_t hash_size(const leat__image_small *s)
{
    const uint32_t size[3] = {s->info.width, s->info.height, s->components};
    return leat__hash64(size, sizeof size, 0);
}

/* Sizes the planes of an image with one chroma sample per h x v pixels. */
static int fit_planes(leat__image_small *s, uint32_t h, uint32_t v, leat__ycc_part part[3], leat_error *err)
{
    const leat__image_info *info = &s->info;
    for (uint32_t c = 0; c < info->channels; c++, part++) {
        const uint32_t dx = c == 0 ? 1 : h, dy = c == 0 ? 1 : v;
        const uint32_t width = (uint32_t)leat__ceil_div(info->width, dx);
        const uint32_t height = (uint32_t)leat__ceil_div(info->height, dy);
        const uint32_t shorter = LEAT_MIN(width, height);
        const uint32_t shrink =
            c == 0 ? shrink_for(shorter, LUMA_SIDE, 2) : shrink_for(shorter, CHROMA_SIDE, 3);
        *part = (leat__ycc_part){.shrink = shrink};
        part->width = (uint32_t)leat__ceil_div(info->width, (uint64_t)dx << shrink);
        part->height = (uint32_t)leat__ceil_div(info->height, (uint64_t)dy << shrink);
        LEAT_TRY(fit_plane(&s->plane[c], part->width, part->height, err));
        s->plane[c].across = (float)info->width / (float)(dx << shrink);
        s->plane[c].down = (float)info->height / (float)(dy << shrink);
    }
    s->components = info->channels;
    return 0;
}

static void finish_coefficients(leat__image_small *s)
{
    s->coefficients = s->has_quant = true;
    s->content = leat__hash64(s->energy, sizeof s->energy, hash_size(s));
    s->content = hash_planes(s, leat__hash64(s->quant, sizeof s->quant, s->content));
}

/* Shrinks the image from its coefficients. LEAT_ENOTSUP: it must be decoded to pixels instead. */
static int look_at_coefficients(leat__image_looker *l, const uint8_t *data, size_t len,
                                const leat__tile_tables *tables, leat_error *err)
{
    leat__image_small *s = &l->small;
    const leat__image_info *info = &s->info;
    leat__ycc_part part[3] = {{0}};
    LEAT_TRY(fit_planes(s, info->chroma_h, info->chroma_v, part, err));
    if (info->codec == LEAT__CODEC_TILE) {
        LEAT_TRY(leat__tile_header_parse(&l->header, data, len, err));
        memcpy(s->quant, l->header.quant[0], sizeof s->quant);
        leat__image_noise_begin(&s->noise, info->width, info->height, s->quant);
    }
    const leat__row_sink sink = {.part = take_part, .ctx = l, .tile = take_tile, .blocks = take_blocks};
    const leat__decode_request request = {
        .parts = part, .to_end = true, .tables = tables, .limits = l->limits};
    LEAT_TRY(leat__codec_decode(l->decoder, info, data, len, &request, &sink, err));
    finish_coefficients(s);
    return 0;
}

/* ---- coefficients that the packer has ---- */

static int fit_strip(leat__image_looker *l, uint32_t blocks, leat_error *err)
{
    const size_t wide = (size_t)leat__ceil_div(8 * (uint64_t)blocks, LEAT__IDCT_ROUND) * LEAT__IDCT_ROUND;
    if (wide <= l->strip_stride) return 0;
    leat__free(l->strip);
    leat__free(l->last);
    l->strip_stride = 0;
    l->strip = leat__alloc(LEAT__MEM_CURATE, 8 * wide);
    l->last = leat__alloc(LEAT__MEM_CURATE, wide / 8);
    if (!l->strip || !l->last) return leat__fail_nomem(err, 9 * wide, "rows of an image");
    memset(l->last, 63, wide / 8);
    l->strip_stride = wide;
    return 0;
}

static int prepare_component(leat__image_looker *l, const leat__jpeg_component *from, uint32_t c,
                             leat_error *err)
{
    const leat__small_plane *p = &l->small.plane[c];
    const uint32_t shrink = l->part[c].shrink, side = 8 >> shrink;
    const uint32_t blocks = (uint32_t)leat__ceil_div(p->width, side);
    LEAT_TRY(fit_strip(l, blocks, err));
    for (uint32_t y = 0; y < from->grid_y && p->filled < p->height; y++) {
        const int16_t *row = from->coefs + 64 * (size_t)y * from->grid_x;
        if (c == 0)
            for (uint32_t x = 0; x < blocks; x += SUM_BLOCKS)
                take_blocks(l, row + 64 * (size_t)x, x, p->filled / side, LEAT_MIN(blocks - x, SUM_BLOCKS),
                            from->quant);
        l->idct.plain[shrink](l->strip, l->strip_stride, row, l->last, blocks, from->quant);
        (void)take_part(l, c, side, l->strip, l->strip_stride);
    }
    return 0;
}

/* True when coefficients can be used. Not for progressive images: leat check decodes these to pixels,
 * so that tiles and files have the same columns. */
static bool can_prepare(const leat__jpeg_coefs *coefs)
{
    if (coefs->progressive || (coefs->components != 1 && coefs->components != 3)) return false;
    for (uint32_t c = 1; c < coefs->components; c++)
        if (coefs->component[c].h != 1 || coefs->component[c].v != 1) return false;
    return true;
}

static int begin_prepare(leat__image_looker *l, const leat__jpeg_coefs *coefs, leat_error *err)
{
    leat__image_small *s = &l->small;
    clear(s);
    s->info =
        (leat__image_info){.width = coefs->width, .height = coefs->height, .channels = coefs->components};
    return fit_planes(s, coefs->max_h, coefs->max_v, l->part, err);
}

int leat__image_prepare(leat__image_looker *l, const leat__jpeg_coefs *coefs, leat_error *err)
{
    const bool begun = l->begun && !l->prepared;
    l->begun = l->prepared = false;
    if (!coefs || !can_prepare(coefs)) return 0;
    if (!begun) LEAT_TRY(begin_prepare(l, coefs, err));
    bool all = true;
    for (uint32_t c = 0; c < coefs->components; c++) {
        LEAT_TRY(prepare_component(l, &coefs->component[c], c, err));
        all &= l->small.plane[c].filled == l->small.plane[c].height;
    }
    l->begun = true;
    l->prepared = all;
    if (all) finish_coefficients(&l->small);
    return 0;
}

/* ---- pixels ---- */

static int fit_rows(leat__image_looker *l, uint32_t width, leat_error *err)
{
    if (width <= l->room) return 0;
    leat__free(l->sums);
    leat__free(l->rows);
    leat__free(l->flat);
    l->room = 0;
    l->sums = leat__zalloc_array(LEAT__MEM_CURATE, 3 * (size_t)width, sizeof *l->sums);
    l->rows = leat__zalloc_array(LEAT__MEM_CURATE, 3 * (size_t)width, sizeof *l->rows);
    l->flat = leat__alloc_array(LEAT__MEM_CURATE, width, 3);
    if (!l->sums || !l->rows || !l->flat)
        return leat__fail_nomem(err, 21 * (size_t)width, "rows of an image");
    l->room = width;
    return 0;
}

/* Adds the Laplacian and the noise of the middle row of the last three. */
static void add_edges(leat__image_looker *l, uint32_t width)
{
    const int16_t *above = l->rows + (l->row % 3) * (size_t)l->room; /* the oldest: overwritten next */
    const int16_t *at = l->rows + ((l->row + 1) % 3) * (size_t)l->room;
    const int16_t *below = l->rows + ((l->row + 2) % 3) * (size_t)l->room;
    int64_t sum = 0, squares = 0;
    for (uint32_t x = 1; x + 1 < width; x++) {
        int v = 4 * at[x] - at[x - 1] - at[x + 1] - above[x] - below[x];
        sum += v;
        squares += v * v;
    }
    l->small.edge_sum += (double)sum;
    l->small.edge_squares += (double)squares;
    l->small.edges += width - 2;
    leat__image_noise_row(&l->small.noise, l->row - 2, above, at, below, width);
}

/* Turns the sums of `rows` rows into a row of means. */
static void flush_sums(leat__image_looker *l, uint32_t rows)
{
    leat__image_small *s = &l->small;
    const uint32_t width = s->info.width, f = l->factor;
    for (uint32_t c = 0; c < s->components; c++) {
        leat__small_plane *p = &s->plane[c];
        uint32_t *sums = l->sums + c * (size_t)l->room;
        uint8_t *to = p->data + p->filled++ * p->stride;
        for (uint32_t i = 0; i < p->width; i++) {
            const uint32_t n = LEAT_MIN(f, width - i * f);
            uint32_t sum = 0;
            for (uint32_t k = 0; k < n; k++) sum += sums[i * f + k];
            to[i] = (uint8_t)((sum + n * rows / 2) / (n * rows));
        }
        memset(sums, 0, width * sizeof *sums);
    }
}

static void add_row(leat__image_looker *l, const uint8_t *r, const uint8_t *g, const uint8_t *b)
{
    leat__image_small *s = &l->small;
    const uint32_t width = s->info.width;
    uint32_t *y = l->sums, *cb = y + l->room, *cr = cb + l->room;
    int16_t *luma = l->rows + (l->row % 3) * (size_t)l->room;
    int64_t sum = 0, squares = 0;
    for (uint32_t x = 0; x < width; x++) {
        int v = r[x];
        if (s->components == 3) {
            v = (19595 * r[x] + 38470 * g[x] + 7471 * b[x] + 32768) >> 16;
            cb[x] += (uint32_t)((-11059 * r[x] - 21709 * g[x] + 32768 * b[x] + 8421375) >> 16);
            cr[x] += (uint32_t)((32768 * r[x] - 27439 * g[x] - 5329 * b[x] + 8421375) >> 16);
        }
        y[x] += (uint32_t)v;
        luma[x] = (int16_t)v;
        sum += v - 128;
        squares += (v - 128) * (v - 128);
    }
    s->sum += (double)sum;
    s->squares += (double)squares;
    l->row++;
    if (l->row >= 3 && width > 2) add_edges(l, width);
    if (l->row % l->factor == 0 || l->row == s->info.height) flush_sums(l, (l->row - 1) % l->factor + 1);
}

static bool is_opaque(const uint8_t *alpha, uint32_t width)
{
    uint8_t all = 255;
    for (uint32_t x = 0; x < width; x++) all &= alpha[x];
    return all == 255;
}

/* Hashes a row of alpha, and draws a row that is not opaque over grey (128). Black and white shapes
 * then both stay visible, and colours of invisible pixels do not count. */
static void take_alpha(leat__image_looker *l, const uint8_t *alpha, const uint8_t *row[3])
{
    const uint32_t width = l->small.info.width;
    l->alpha = leat__hash64(alpha, width, l->alpha);
    if (is_opaque(alpha, width)) return;
    l->transparent = true;
    for (uint32_t c = 0; c < 3; c++) {
        uint8_t *to = l->flat + c * (size_t)l->room;
        for (uint32_t x = 0; x < width; x++)
            to[x] = (uint8_t)((row[c][x] * alpha[x] + 128u * (255u - alpha[x]) + 127) / 255);
        row[c] = to;
    }
}

static int take_rows(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride)
{
    leat__image_looker *l = ctx;
    leat__image_small *s = &l->small;
    const bool colour = s->components == 3;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *row[3];
        for (int c = 0; c < 3; c++) row[c] = plane[colour ? c : 0] + i * stride;
        for (uint32_t c = 0; c < s->components; c++)
            s->content = leat__hash64(row[c], s->info.width, s->content);
        if (s->info.channels == 4) take_alpha(l, plane[3] + i * stride, row);
        add_row(l, row[0], row[1], row[2]);
    }
    return 0;
}

static int look_at_pixels(leat__image_looker *l, const uint8_t *data, size_t len,
                          const leat__tile_tables *tables, leat_error *err)
{
    leat__image_small *s = &l->small;
    const leat__image_info *info = &s->info;
    s->components = info->channels >= 3 ? 3 : 1;
    s->content = hash_size(s);
    l->alpha = 0;
    l->transparent = false;
    l->factor = 1u << shrink_for(LEAT_MIN(info->width, info->height), LUMA_SIDE, 2);
    LEAT_TRY(leat__decode_limits_whole(&l->limits, info, err));
    LEAT_TRY(fit_rows(l, info->width, err));
    memset(l->sums, 0, 3 * (size_t)l->room * sizeof *l->sums);
    l->row = 0;
    leat__image_noise_begin(&s->noise, info->width, info->height, NULL);
    for (uint32_t c = 0; c < s->components; c++) {
        LEAT_TRY(fit_plane(&s->plane[c], (uint32_t)leat__ceil_div(info->width, l->factor),
                           (uint32_t)leat__ceil_div(info->height, l->factor), err));
        s->plane[c].across = (float)info->width / (float)l->factor;
        s->plane[c].down = (float)info->height / (float)l->factor;
    }
    const leat__row_sink sink = {.rows = take_rows, .ctx = l};
    const leat__decode_request request = {.tables = tables, .limits = l->limits};
    LEAT_TRY(leat__codec_decode(l->decoder, info, data, len, &request, &sink, err));
    if (l->transparent) s->content = leat__hash64(&l->alpha, sizeof l->alpha, s->content);
    return 0;
}

/* Fails for codes that no encoder writes, or for rows that the image does not have. libjpeg decodes such
 * files. */
static int refuse_faults(leat__image_looker *l, const uint8_t *data, size_t len, leat_error *err)
{
    size_t offset = 0;
    if (!l->scan) LEAT_TRY(leat__jpeg_scan_open(&l->scan, err));
    const char *fault = leat__jpeg_scan_fault(l->scan, data, len, &offset);
    return fault ? leat__fail(err, LEAT_EDATA, "JPEG: %s at byte %zu", fault, offset) : 0;
}

/* Reads the quantisation table of a JPEG that was decoded to pixels, such as a progressive one. */
static void read_quant(leat__image_small *s, const uint8_t *data, size_t len)
{
    leat__jpeg_header header;
    if (leat__jpeg_header_read(data, len, &header, NULL) != 0) return;
    s->has_quant = leat__jpeg_header_quant(&header, s->quant);
}

/* Adds the orientation to the hash: the same pixels in another orientation are another image. */
static void hash_orientation(leat__image_small *s)
{
    const uint32_t orientation = s->info.orientation;
    if (orientation > 1) s->content = leat__hash64(&orientation, sizeof orientation, s->content);
}

static int look(leat__image_looker *l, const uint8_t *data, size_t len, const leat__tile_tables *tables,
                leat_error *err)
{
    leat__image_info info;
    const leat__codec_id codec = leat__codec_sniff(data, len);
    const bool prepared = l->prepared && (codec == LEAT__CODEC_TILE || codec == LEAT__CODEC_JPEG);
    l->begun = l->prepared = false;
    if (!prepared) clear(&l->small);
    LEAT_TRY(leat__codec_probe(codec, data, len, &info, err));
    l->small.info = info;
    if (prepared) return 0;
    if (info.chroma_h > 0 && info.channels <= 3) {
        int rc = look_at_coefficients(l, data, len, tables, err);
        if (rc != LEAT_ENOTSUP) return rc;
        clear(&l->small);
        l->small.info = info;
    }
    if (codec == LEAT__CODEC_JPEG) read_quant(&l->small, data, len);
    LEAT_TRY(look_at_pixels(l, data, len, tables, err));
    return codec == LEAT__CODEC_JPEG ? refuse_faults(l, data, len, err) : 0;
}

int leat__image_look(leat__image_looker *l, const uint8_t *data, size_t len, const leat__tile_tables *tables,
                     const leat__image_small **small, leat_error *err)
{
    *small = &l->small;
    LEAT_TRY(look(l, data, len, tables, err));
    hash_orientation(&l->small);
    return 0;
}
