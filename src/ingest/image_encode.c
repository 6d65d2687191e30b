/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepares images for a pack. See image_encode.h. The result depends only on the image, its key and the
 * plan, never on the thread or the order, so packs are equal byte for byte.
 */
#include "ingest/image_encode.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "codec/animation.h"
#include "codec/jpeg_coef.h"
#include "codec/jpeg_entries.h"
#include "codec/jpeg_header.h"
#include "codec/jpeg_scan.h"
#include "codec/planes.h"
#include "codec/raw.h"
#include "codec/wide.h"
#include "dsp/resizer.h"
#include "ingest/image_cost.h"
#include "pack/kind.h"

#define MIX_SEED UINT64_C(0x6d69782d726177) /* "mix-raw": changing it changes which images are stored raw */
#define DEFAULT_QUALITY 90
#define FRAMES_BYTES (UINT64_C(1) << 30) /* limit for all frames, if none is given */
#define BYTES_MAX (UINT64_C(1) << 36)
#define ENTRIES_LEAST 4096u   /* bytes of entry points and padding of any image */
#define COEFS_MOST (5u << 20) /* bytes of a row of MCUs; part of the stage's scratch memory */

struct leat__encoder {
    const leat__encode_plan *plan;
    leat__decoder *decoder;
    leat__jpeg_scan *scan;
    leat__jpeg_coef_reader *coefs;
    leat__tile_encoder *tiles;
    leat__resizer *resizer;
    leat__planes planes, frame;       /* pixels to encode; a frame before it is shrunk */
    leat__tile_density density;       /* density of new tiles */
    leat__buf work, jpeg;             /* work: the encoded image; jpeg: a restored or newly made JPEG */
    const leat__inspector *inspector; /* for the next image, or NULL */
    void *looker;
};

int leat__encoder_open(leat__encoder **out, const leat__encode_plan *plan, leat_error *err)
{
    int rc;
    leat__encoder *e = LEAT_NEW(INGEST, leat__encoder);
    if (!e) return leat__fail_nomem(err, sizeof *e, "an encoder");
    e->plan = plan;
    e->density = plan->density;
    leat__buf_init(&e->work, LEAT__MEM_INGEST, BYTES_MAX);
    leat__buf_init(&e->jpeg, LEAT__MEM_INGEST, BYTES_MAX);
    LEAT_GO(rc, out, leat__decoder_open(&e->decoder, err));
    LEAT_GO(rc, out, leat__jpeg_scan_open(&e->scan, err));
    if (plan->images == LEAT_IMAGES_TILED) {
        LEAT_GO(rc, out, leat__jpeg_coef_reader_open(&e->coefs, err));
        LEAT_GO(rc, out, leat__tile_encoder_open(&e->tiles, plan->tables, err));
    }
    if (plan->max_side > 0) LEAT_GO(rc, out, leat__resizer_open(&e->resizer, err));
    *out = e;
    e = NULL;
out:
    leat__encoder_close(&e);
    return rc;
}

void leat__encoder_close(leat__encoder **encoder)
{
    leat__encoder *e = *encoder;
    if (!e) return;
    leat__decoder_close(&e->decoder);
    leat__jpeg_scan_close(&e->scan);
    leat__jpeg_coef_reader_close(&e->coefs);
    leat__tile_encoder_close(&e->tiles);
    leat__resizer_close(&e->resizer);
    leat__planes_reset(&e->planes);
    leat__planes_reset(&e->frame);
    leat__buf_reset(&e->work);
    leat__buf_reset(&e->jpeg);
    leat__free(e);
    *encoder = NULL;
}

void leat__encoder_watch(leat__encoder *e, const leat__inspector *inspector, void *looker)
{
    e->inspector = inspector;
    e->looker = looker;
}

void leat__encode_size(uint32_t max_side, uint32_t *width, uint32_t *height)
{
    uint32_t longer = LEAT_MAX(*width, *height);
    if (max_side == 0 || longer <= max_side) return;
    uint64_t w = ((uint64_t)*width * max_side * 2 + longer) / (2 * (uint64_t)longer);
    uint64_t h = ((uint64_t)*height * max_side * 2 + longer) / (2 * (uint64_t)longer);
    *width = (uint32_t)LEAT_MAX(w, 1);
    *height = (uint32_t)LEAT_MAX(h, 1);
}

bool leat__encode_is_raw(const leat__encode_plan *plan, const char *key, size_t len)
{
    if (plan->images == LEAT_IMAGES_RAW) return true;
    if (plan->images != LEAT_IMAGES_MIX) return false;
    double draw = (double)(leat__hash64(key, len, MIX_SEED) >> 11) * 0x1.0p-53;
    return draw < plan->mix_raw;
}

static int ignore_wide(void *ctx, uint32_t y, uint32_t count, const uint8_t *pixels, size_t stride)
{
    return 0;
}

static int ignore_rows(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride)
{
    return 0;
}

/* Verifies that an image can be decoded. An ordinary JPEG is complete when all its entropy-coded data
 * decodes and its end marker is present. Other images are decoded to pixels. */
static int check_whole(leat__encoder *e, const leat__image_info *info, const uint8_t *data, size_t len,
                       const leat__tile_tables *tables, leat_error *err)
{
    if (info->codec == LEAT__CODEC_JPEG && leat__jpeg_scan_whole(e->scan, data, len, &e->plan->limits))
        return 0;
    leat__row_sink sink = {.rows = ignore_rows, .wide = ignore_wide};
    leat__decode_request request = {.limits = e->plan->limits, .tables = tables};
    return leat__codec_decode(e->decoder, info, data, len, &request, &sink, err);
}

static int give_coefs(leat__encoder *e, const leat__jpeg_coefs *coefs, leat_error *err)
{
    return e->inspector->coefs(e->inspector->cookie, e->looker, coefs, err);
}

/* Passes coefficients, which are decoded to find entry points, to an inspector, one row of MCUs at a time. */
typedef struct coef_taker {
    leat__encoder *encoder;
    leat__jpeg_coefs coefs;
    int rc; /* result of the inspector */
    leat_error *err;
} coef_taker;

static bool begin_coefs(void *ctx, const leat__jpeg_scan *scan)
{
    coef_taker *t = ctx;
    return leat__jpeg_coef_begin(t->encoder->coefs, scan, COEFS_MOST, &t->coefs);
}

static bool take_coefs(void *ctx, const leat__jpeg_scan *scan, leat__jpeg_cursor *at, uint32_t count)
{
    coef_taker *t = ctx;
    const uint32_t wide = leat__jpeg_scan_mcus_x(scan);
    for (uint32_t n; count > 0 && t->rc == 0; count -= n) {
        n = LEAT_MIN(count, wide - at->mcu % wide);
        if (!leat__jpeg_coef_put(t->encoder->coefs, scan, &t->coefs, at, n)) return false;
        if (at->mcu % wide == 0) t->rc = give_coefs(t->encoder, &t->coefs, t->err);
    }
    return t->rc == 0;
}

/* Finds the entry points of an ordinary JPEG. *whole: the file was read to its end and is valid; false when
 * it must be decoded to find out. */
static int index_jpeg(leat__encoder *e, leat__records *run, leat__item *item, const uint8_t *data, size_t len,
                      bool *whole, leat_error *err)
{
    const bool inspected = e->inspector && e->inspector->coefs;
    if (inspected && !e->coefs) LEAT_TRY(leat__jpeg_coef_reader_open(&e->coefs, err));
    coef_taker t = {.encoder = e, .err = err};
    const leat__jpeg_taker taker = {.ctx = &t, .begin = begin_coefs, .mcus = take_coefs};
    item->entries_at = run->out.len;
    LEAT_TRY(leat__jpeg_entries_make(e->scan, data, len, &e->plan->limits, inspected ? &taker : NULL,
                                     &run->out, whole, err));
    item->entries_size = run->out.len - item->entries_at;
    if (t.rc != 0 || *whole || !inspected) return t.rc;
    return give_coefs(e, NULL, err); /* drops the coefficients before the damage */
}

/* ---- smaller ---- */

static uint8_t *resize_target(void *ctx, uint32_t y, uint32_t plane)
{
    leat__planes *p = ctx;
    return p->plane[plane] + y * p->stride;
}

static int resize_done(void *ctx, uint32_t y)
{
    return 0;
}

static int resize_rows(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride)
{
    return leat__resizer_rows(ctx, y, count, plane, stride);
}

/* Resizes with the antialiased bicubic filter of Pillow, as everywhere in leat. */
static int decode_smaller(leat__encoder *e, const leat__image_info *info, const uint8_t *data, size_t len,
                          const leat__tile_tables *tables, leat_error *err)
{
    uint32_t w = info->width, h = info->height;
    leat__encode_size(e->plan->max_side, &w, &h);
    LEAT_TRY(leat__planes_resize(&e->planes, w, h, info->channels, err));
    leat__axis_request x = {.in = info->width, .out = w, .filter = LEAT__FILTER_BICUBIC};
    leat__axis_request y = {.in = info->height, .out = h, .filter = LEAT__FILTER_BICUBIC};
    leat__resize_need need;
    leat__resize_out to = {resize_target, resize_done, &e->planes};
    LEAT_TRY(leat__resizer_plan(e->resizer, &x, &y, LEAT__PASS_PILLOW13, &need, err));
    LEAT_TRY(leat__resizer_begin(e->resizer, info->channels, &to, err));
    leat__row_sink sink = {resize_rows, e->resizer};
    leat__decode_request request = {.x = need.x,
                                    .y = need.y,
                                    .width = need.width,
                                    .height = need.height,
                                    .limits = e->plan->limits,
                                    .tables = tables};
    return leat__codec_decode(e->decoder, info, data, len, &request, &sink, err);
}

static int decode_pixels(leat__encoder *e, const leat__image_info *info, const uint8_t *data, size_t len,
                         const leat__tile_tables *tables, bool smaller, leat_error *err)
{
    if (smaller) return decode_smaller(e, info, data, len, tables, err);
    leat__decode_request request = {.limits = e->plan->limits, .tables = tables};
    return leat__codec_decode_planes(e->decoder, info, data, len, &request, &e->planes, err);
}

/* ---- results ---- */

static void describe(leat__item *item, const leat__image_info *info, size_t len, uint8_t flags)
{
    item->image = (leat_pack_image){
        .width = info->width,
        .height = info->height,
        .codec = (uint8_t)info->codec,
        .channels = (uint8_t)info->channels,
        .orientation = (uint8_t)info->orientation,
        .flags = flags | leat__kind_flags(info->type),
        .cost = leat__image_cost(info, len),
    };
}

/* Appends an encoded image to the run's output. */
static int put(leat__records *run, leat__item *item, const leat__buf *from, leat_error *err)
{
    size_t at = run->out.len;
    if (leat__buf_append(&run->out, from->data, from->len) != 0)
        return leat__fail_nomem(err, from->len, "an encoded image");
    item->coded = true;
    item->at = at;
    item->size = from->len;
    return 0;
}

static int store(leat__encoder *e, leat__records *run, leat__item *item, leat__codec_id codec,
                 const leat__buf *bytes, uint8_t flags, leat_error *err)
{
    leat__image_info info;
    LEAT_TRY(leat__codec_probe(codec, (const uint8_t *)bytes->data, bytes->len, &info, err));
    LEAT_TRY(put(run, item, bytes, err));
    describe(item, &info, bytes->len, flags);
    return 0;
}

/* Tiles the JPEG in `data`. *done is false when it is better kept unchanged. */
static int tile(leat__encoder *e, leat__records *run, leat__item *item, const uint8_t *data, size_t len,
                uint8_t flags, bool *done, leat_error *err)
{
    leat__jpeg_coefs coefs;
    leat__tile_kept kept;
    const leat__decode_limits *limits = &e->plan->limits;
    leat__tile_encode_opts opts = {.density = e->density, .trust = e->plan->trust};
    *done = false;
    LEAT_TRY(leat__jpeg_coef_read(e->coefs, data, len, limits, &coefs, err));
    leat__buf_clear(&e->work);
    LEAT_TRY(leat__tile_encode(e->tiles, &coefs, data, len, &opts, &e->work, &kept, err));
    if (kept != LEAT__TILE_KEPT_NONE) return 0;
    if (e->inspector && e->inspector->coefs) LEAT_TRY(give_coefs(e, &coefs, err));
    leat__tile_facts facts;
    LEAT_TRY(leat__tile_describe((const uint8_t *)e->work.data, e->work.len, &facts, err));
    if (facts.exact) flags |= LEAT_PACK_IMAGE_RECODED;
    *done = true;
    return store(e, run, item, LEAT__CODEC_TILE, &e->work, flags, err);
}

/* Stores a JPEG that the encoder just made, unchanged or tiled. */
static int store_jpeg(leat__encoder *e, leat__records *run, leat__item *item, leat_error *err)
{
    bool tiled = false;
    if (e->plan->images == LEAT_IMAGES_TILED) {
        size_t len = e->jpeg.len; /* decoders may read a few bytes past the end */
        if (leat__buf_zeros(&e->jpeg, LEAT__CODEC_PADDING) != 0)
            return leat__fail_nomem(err, LEAT__CODEC_PADDING, "an encoded image");
        e->jpeg.len = len;
        LEAT_TRY(
            tile(e, run, item, (const uint8_t *)e->jpeg.data, len, LEAT_PACK_IMAGE_RESIZED, &tiled, err));
    }
    if (tiled) {
        /* the source file of a re-encoded image cannot be restored */
        item->image.flags &= (uint8_t)~LEAT_PACK_IMAGE_RECODED;
        return 0;
    }
    bool whole; /* ignored: the JPEG was just made */
    LEAT_TRY(store(e, run, item, LEAT__CODEC_JPEG, &e->jpeg, LEAT_PACK_IMAGE_RESIZED, err));
    return index_jpeg(e, run, item, (const uint8_t *)e->jpeg.data, e->jpeg.len, &whole, err);
}

/* ---- raw: rows go directly into the run's output ---- */

typedef struct raw_rows {
    leat__buf *out;
    uint32_t width, channels;
    size_t pixel; /* bytes */
} raw_rows;

static int put_raw_rows(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride)
{
    raw_rows *r = ctx;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *row[4] = {NULL};
        for (uint32_t c = 0; c < r->channels; c++) row[c] = plane[c] + i * stride;
        leat__planar_join(row, r->width, r->channels, (uint8_t *)r->out->data + r->out->len);
        r->out->len += (size_t)r->width * r->channels; /* reserved by encode_raw */
    }
    return 0;
}

static int put_wide_rows(void *ctx, uint32_t y, uint32_t count, const uint8_t *pixels, size_t stride)
{
    raw_rows *r = ctx;
    for (uint32_t i = 0; i < count; i++) leat__buf_append(r->out, pixels + i * stride, r->width * r->pixel);
    return 0; /* reserved by encode_raw */
}

static int encode_raw(leat__encoder *e, leat__records *run, leat__item *item, const leat__image_info *info,
                      const uint8_t *data, size_t len, const leat__tile_tables *from, leat_error *err)
{
    size_t at = run->out.len, size;
    uint64_t bytes = (uint64_t)info->width * info->height;
    uint8_t header[LEAT__RAW_HEADER];
    LEAT_TRY(leat__decode_limits_whole(&e->plan->limits, info, err)); /* before anything is allocated */
    const size_t pixel = (size_t)info->channels * leat__sample_bytes(info->type);
    if (!leat__mul_u64(bytes, pixel, &bytes) || !leat__u64_to_size(bytes + LEAT__RAW_HEADER, &size) ||
        leat__buf_reserve(&run->out, size) != 0) {
        run->out.status = 0;
        return leat__fail_nomem(err, bytes, "the pixels of an image");
    }
    leat__raw_header(header, info->width, info->height, info->channels, info->type, info->orientation);
    (void)leat__buf_append(&run->out, header, sizeof header);
    raw_rows rows = {&run->out, info->width, info->channels, pixel};
    leat__row_sink sink = {.rows = put_raw_rows, .ctx = &rows, .wide = put_wide_rows};
    leat__decode_request request = {.limits = e->plan->limits, .tables = from};
    int rc = leat__codec_decode(e->decoder, info, data, len, &request, &sink, err);
    leat__image_info stored;
    if (rc == 0)
        rc = leat__codec_probe(LEAT__CODEC_RAW, (uint8_t *)run->out.data + at, run->out.len - at, &stored,
                               err);
    if (rc != 0) {
        run->out.len = at;
        return rc;
    }
    item->coded = true;
    item->at = at;
    item->size = run->out.len - at;
    describe(item, &stored, item->size, 0);
    return 0;
}

static int encode_again(leat__encoder *e, leat__records *run, leat__item *item, const leat__image_info *info,
                        const uint8_t *data, size_t len, const leat__tile_tables *from, bool raw,
                        bool smaller, leat_error *err)
{
    if (raw && !smaller) return encode_raw(e, run, item, info, data, len, from, err);
    if (leat__image_wide(info))
        return leat__fail(err, LEAT_EFORMAT,
                          "%s works on 8-bit images of 1, 3 or 4 channels, and this one "
                          "has %u of %s",
                          smaller ? "max_side" : "quality", info->channels, leat__sample_name(info->type));
    LEAT_TRY(decode_pixels(e, info, data, len, from, smaller, err));
    leat__encode_opts opts = {.orientation = info->orientation,
                              .quality = e->plan->quality ? e->plan->quality : DEFAULT_QUALITY};
    if (raw) {
        leat__buf_clear(&e->work);
        LEAT_TRY(leat__codec_encode(LEAT__CODEC_RAW, &e->planes, &opts, &e->work, err));
        return store(e, run, item, LEAT__CODEC_RAW, &e->work, LEAT_PACK_IMAGE_RESIZED, err);
    }
    leat__buf_clear(&e->jpeg);
    LEAT_TRY(leat__codec_encode(LEAT__CODEC_JPEG, &e->planes, &opts, &e->jpeg, err));
    return store_jpeg(e, run, item, err);
}

/* ---- frames ---- */

/* Shrinks e->frame into e->planes. */
static int shrink_frame(leat__encoder *e, uint32_t width, uint32_t height, leat_error *err)
{
    const leat__planes *const from = &e->frame;
    const leat__axis_request x = {.in = from->width, .out = width, .filter = LEAT__FILTER_BICUBIC};
    const leat__axis_request y = {.in = from->height, .out = height, .filter = LEAT__FILTER_BICUBIC};
    leat__resize_need need;
    const leat__resize_out to = {resize_target, resize_done, &e->planes};
    LEAT_TRY(leat__planes_resize(&e->planes, width, height, from->channels, err));
    LEAT_TRY(leat__resizer_plan(e->resizer, &x, &y, LEAT__PASS_PILLOW13, &need, err));
    LEAT_TRY(leat__resizer_begin(e->resizer, from->channels, &to, err));
    const uint8_t *plane[4] = {NULL};
    for (uint32_t c = 0; c < from->channels; c++) plane[c] = from->plane[c] + need.y * from->stride + need.x;
    return leat__resizer_rows(e->resizer, 0, need.height, plane, from->stride);
}

/* Stores the frame on the canvas: its pixels, a JPEG if requested, else a PNG. */
static int encode_frame(leat__encoder *e, const leat__anim *f, leat__records *run, bool raw, leat__item *item,
                        leat_error *err)
{
    const leat__encode_plan *plan = e->plan;
    uint32_t w = f->info.width, h = f->info.height;
    leat__encode_size(plan->max_side, &w, &h);
    const bool smaller = w != f->info.width || h != f->info.height;
    LEAT_TRY(leat__anim_planes(f, smaller ? &e->frame : &e->planes, err));
    if (smaller) LEAT_TRY(shrink_frame(e, w, h, err));
    const leat__encode_opts opts = {.orientation = f->info.orientation,
                                    .quality = plan->quality ? plan->quality : DEFAULT_QUALITY};
    if (!raw && (smaller || plan->quality > 0)) {
        leat__buf_clear(&e->jpeg);
        LEAT_TRY(leat__codec_encode(LEAT__CODEC_JPEG, &e->planes, &opts, &e->jpeg, err));
        return store_jpeg(e, run, item, err);
    }
    const leat__codec_id codec = raw ? LEAT__CODEC_RAW : LEAT__CODEC_PNG;
    leat__buf_clear(&e->work);
    LEAT_TRY(leat__codec_encode(codec, &e->planes, &opts, &e->work, err));
    return store(e, run, item, codec, &e->work, LEAT_PACK_IMAGE_RESIZED, err);
}

static int check_frames(const leat__encode_plan *plan, const leat__image_info *info, uint64_t count,
                        leat_error *err)
{
    leat__decode_limits limits = plan->limits;
    uint64_t bytes = (uint64_t)info->width * info->height * info->channels;
    if (limits.max_out_bytes == 0) limits.max_out_bytes = FRAMES_BYTES;
    if (count <= UINT32_MAX && leat__mul_u64(bytes, count, &bytes) && bytes <= limits.max_out_bytes) return 0;
    return leat__fail(err, LEAT_ELIMIT, "%llu frames of %u x %u x %u are over the limit of %s",
                      (unsigned long long)count, info->width, info->height, info->channels,
                      leat__as_size(limits.max_out_bytes).text);
}

/* Stores all frames in run->frames. The first one also becomes the item, for users of a single image. */
static int encode_frames(leat__encoder *e, leat__records *run, leat__record *r, leat__item *item,
                         const leat__image_info *info, const uint8_t *data, size_t len, leat_error *err)
{
    const bool raw = leat__encode_is_raw(e->plan, leat__records_str(run, r->key), r->key_size);
    leat__anim f;
    const leat__item none = *item;
    int rc = 0;
    leat__encoder_watch(e, NULL, NULL);
    if (r->frame_count > 0)
        return leat__fail(err, LEAT_EFORMAT, "two animations in one sample: their frames cannot be paired");
    LEAT_TRY(check_frames(e->plan, info, leat__anim_count(info->codec, data, len), err));
    r->frame_field = (uint32_t)(item - r->items);
    r->frames_at = run->frames.len;
    LEAT_TRY(leat__anim_open(&f, info->codec, data, len, &e->plan->limits, err));
    for (;;) {
        leat__item one = none;
        bool end;
        LEAT_GO(rc, out, leat__anim_next(&f, &end, err));
        if (end) break;
        LEAT_GO(rc, out, encode_frame(e, &f, run, raw, &one, err));
        if (leat__buf_append(&run->frames, &one, sizeof one) != 0)
            LEAT_GO(rc, out, leat__fail_nomem(err, sizeof one, "a frame"));
        if (r->frame_count++ == 0) *item = one;
    }
out:
    leat__anim_close(&f);
    return rc;
}

/* Restores the JPEG of an image whose tiles have other tables or another density than the pack's; it
 * is then encoded as usual. */
static int restore(leat__encoder *e, const leat__tile_tables *from, const uint8_t **data, size_t *len,
                   leat_error *err)
{
    leat__buf_clear(&e->jpeg);
    LEAT_TRY(leat__tile_restore(*data, *len, from, &e->jpeg, err));
    *len = e->jpeg.len;
    if (leat__buf_zeros(&e->jpeg, LEAT__CODEC_PADDING) != 0)
        return leat__fail_nomem(err, LEAT__CODEC_PADDING, "a restored image");
    e->jpeg.len = *len;
    *data = (const uint8_t *)e->jpeg.data;
    return 0;
}

/* Stores the image at `data` without re-encoding: verifies it, then tiles or keeps it. `restored`: the image
 * is in e->jpeg. `entries`: size of its existing entry points. */
static int keep(leat__encoder *e, leat__records *run, leat__item *item, leat__image_info *info,
                const uint8_t *data, size_t len, bool restored, size_t entries, uint8_t flags,
                leat_error *err)
{
    bool tiled = false, whole = false;
    if (e->plan->images == LEAT_IMAGES_TILED && info->codec == LEAT__CODEC_JPEG && info->bits == 8)
        LEAT_TRY(tile(e, run, item, data, len, flags, &tiled, err));
    if (tiled) return 0;
    if (e->plan->trust) {
        flags |= LEAT_PACK_IMAGE_UNCHECKED;
        item->entries_size = entries;
    } else {
        if (info->codec == LEAT__CODEC_JPEG) LEAT_TRY(index_jpeg(e, run, item, data, len, &whole, err));
        if (!whole) LEAT_TRY(check_whole(e, info, data, len, NULL, err));
    }
    if (restored) return store(e, run, item, LEAT__CODEC_JPEG, &e->jpeg, flags, err);
    describe(item, info, len, flags);
    return 0;
}

/* True for tiles that cannot be decoded with the tables of the result. */
static bool has_other_tables(const leat__encode_plan *plan, const leat__tile_facts *facts)
{
    return facts->tables_id != 0 && !(plan->tables && facts->tables_id == leat__tile_tables_id(plan->tables));
}

/* True for tiles that encoding the restored file would reproduce: with the pack's tables and density. */
static bool can_copy(const leat__encode_plan *plan, const leat__tile_facts *facts)
{
    if (plan->images != LEAT_IMAGES_TILED || facts->density != plan->density) return false;
    return !has_other_tables(plan, facts);
}

/* For merging: re-encodes tiles that have other tables, at their density; everything else stays. */
static int keep_stored(leat__encoder *e, leat__records *run, leat__item *item, const leat__tile_tables *from,
                       leat_error *err)
{
    const uint8_t *data = leat__records_data(run, item);
    size_t len = item->size;
    leat__image_info info;
    leat__tile_facts facts;
    if (item->image.codec != LEAT__CODEC_TILE) return 0;
    LEAT_TRY(leat__tile_describe(data, len, &facts, err));
    if (!has_other_tables(e->plan, &facts)) return 0;
    item->entries_size = 0;
    uint8_t flags = item->image.flags & LEAT_PACK_IMAGE_RESIZED;
    if (!leat_pack_image_exact(&item->image)) flags |= LEAT_PACK_IMAGE_RESIZED;
    e->density = facts.density;
    LEAT_TRY(restore(e, from, &data, &len, err));
    LEAT_TRY(leat__codec_probe(LEAT__CODEC_JPEG, data, len, &info, err));
    return keep(e, run, item, &info, data, len, true, 0, flags, err);
}

static int copy_tiles(leat__encoder *e, leat__item *item, const leat__image_info *info, const uint8_t *data,
                      size_t len, uint8_t flags, leat_error *err)
{
    if (e->plan->trust) flags |= item->image.flags & LEAT_PACK_IMAGE_UNCHECKED;
    else LEAT_TRY(check_whole(e, info, data, len, e->plan->tables, err));
    describe(item, info, len, flags | (item->image.flags & LEAT_PACK_IMAGE_RECODED));
    return 0;
}

int leat__encoder_image(leat__encoder *e, leat__records *run, leat__record *r, leat__item *item,
                        const leat__tile_tables *from, leat_error *err)
{
    const leat__encode_plan *plan = e->plan;
    const uint8_t *data = leat__records_data(run, item);
    size_t len = item->size;
    if (plan->stored) return keep_stored(e, run, item, from, err);
    uint8_t flags = item->image.flags & (LEAT_PACK_IMAGE_RESIZED); /* earlier changes stay recorded */
    size_t entries = item->entries_size;
    item->entries_size = 0;
    leat__image_info info;
    if (len == 0) return leat__fail(err, LEAT_EDATA, "an empty file");
    leat__codec_id codec = leat__codec_sniff(data, len);
    LEAT_TRY(leat__codec_probe(codec, data, len, &info, err));
    if (plan->frames && info.animated && leat__anim_known(codec))
        return encode_frames(e, run, r, item, &info, data, len, err);
    item->animated = info.animated;
    uint32_t w = info.width, h = info.height;
    leat__encode_size(plan->max_side, &w, &h);
    bool smaller = w != info.width || h != info.height; /* may be decoded at a reduced size */
    if (!smaller) LEAT_TRY(leat__decode_limits_whole(&plan->limits, &info, err));
    bool raw = leat__encode_is_raw(plan, leat__records_str(run, r->key), r->key_size);
    bool again = smaller || (raw ? codec != LEAT__CODEC_RAW : plan->quality > 0);
    if (again) return encode_again(e, run, item, &info, data, len, from, raw, smaller, err);
    /* restoring does not give the original source file */
    if (codec == LEAT__CODEC_TILE && !leat_pack_image_exact(&item->image)) flags |= LEAT_PACK_IMAGE_RESIZED;
    if (codec != LEAT__CODEC_TILE) return keep(e, run, item, &info, data, len, false, entries, flags, err);
    leat__tile_facts facts;
    LEAT_TRY(leat__tile_describe(data, len, &facts, err));
    if (can_copy(plan, &facts)) return copy_tiles(e, item, &info, data, len, flags, err);
    LEAT_TRY(restore(e, from, &data, &len, err));
    LEAT_TRY(leat__codec_probe(LEAT__CODEC_JPEG, data, len, &info, err));
    return keep(e, run, item, &info, data, len, true, 0, flags, err);
}

/* Returns the bytes that decoding an image takes, or making tiles of it: the coefficients twice and the
 * pixels twice. */
static uint64_t work_bytes(const leat__image_info *info, bool tiling, const uint8_t *data, size_t len)
{
    const uint64_t pixels = (uint64_t)info->width * info->height;
    leat__jpeg_header h;
    if (!tiling) return info->memory;
    if (info->codec != LEAT__CODEC_JPEG || leat__jpeg_header_read(data, len, &h, NULL) != 0)
        return pixels * 18;
    return 2 * leat__jpeg_header_coefs(&h) + pixels * 6;
}

/* Returns a bound on the bytes that the encoder adds to a run for an image stored as one value. */
static uint64_t result_bytes(const leat__encode_plan *plan, bool tiling, uint64_t pixel_bytes, bool again,
                             size_t len)
{
    const bool raw = plan->images == LEAT_IMAGES_RAW || plan->images == LEAT_IMAGES_MIX;
    const uint64_t entries = len / 8 + ENTRIES_LEAST; /* entry points of a JPEG */
    if (raw || again) return pixel_bytes + entries;
    return tiling ? len + len / 4 + entries : entries;
}

leat__encode_bytes leat__encode_need(const leat__encode_plan *plan, const uint8_t *data, size_t len)
{
    static const leat__encode_bytes none = {0, 0};
    leat__image_info info;
    leat__codec_id codec = leat__codec_sniff(data, len);
    leat__tile_facts facts;
    if (plan->stored && (codec != LEAT__CODEC_TILE || leat__tile_describe(data, len, &facts, NULL) != 0 ||
                         !has_other_tables(plan, &facts)))
        return none; /* copied unchanged */
    if (leat__codec_probe(codec, data, len, &info, NULL) != 0) return none;
    const uint64_t pixels = (uint64_t)info.width * info.height, most = plan->limits.max_pixels;
    if (most > 0 ? pixels > most : leat__decode_over(info.width, info.height))
        return none;                                                /* refused later */
    leat__encode_bytes need = {.work = (uint64_t)info.width * 256}; /* bands of rows */
    bool tiling =
        plan->images == LEAT_IMAGES_TILED && (codec == LEAT__CODEC_JPEG || codec == LEAT__CODEC_TILE);
    need.work += work_bytes(&info, tiling, data, len) + (plan->inspect ? plan->inspect(&info) : 0);
    uint32_t w = info.width, h = info.height;
    leat__encode_size(plan->max_side, &w, &h);
    const uint64_t pixel = (uint64_t)info.channels * leat__sample_bytes(info.type);
    if (plan->frames && info.animated && leat__anim_known(codec)) { /* three canvases, planes, the results */
        const uint64_t count = leat__anim_count(codec, data, len);
        if (check_frames(plan, &info, count, NULL) != 0) return none;
        need.work += pixels * 16;
        need.result = pixels * pixel * count + ENTRIES_LEAST * count;
        return need;
    }
    const bool again = plan->quality > 0 || w != info.width || h != info.height;
    need.result = result_bytes(plan, tiling, (uint64_t)w * h * pixel, again, len);
    if (again) need.work += (uint64_t)w * h * pixel * 2; /* planes, the result again */
    return need;
}
