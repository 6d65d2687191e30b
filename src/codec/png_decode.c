/* SPDX-License-Identifier: Apache-2.0
 *
 * PNG through libspng: 8 bits per sample or fewer; grey, RGB, RGBA, grey + alpha (as RGBA) and palettes (as
 * RGB, or RGBA when entries are transparent, or as palette indices when requested). Images of 16 bits are
 * wide images with the channels of the file. A colour key on grey or RGB images is ignored, as in Pillow's
 * convert("RGB"). Checksums are verified. Rows stream; only interlaced files are held whole. Decoding
 * cannot start in the middle of a PNG: a region costs all rows above it.
 *
 * One state per decoder, used by one thread at a time.
 */
#include <stdio.h>
#include <string.h>

#include <spng.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/num.h"
#include "codec/codec_ops.h"
#include "codec/exif.h"
#include "codec/planes.h"

#define CHUNK_MAX (64u << 20) /* for one ancillary chunk, and for all of them together */
#define TEXT_MAX (1u << 20)   /* for one decompressed text chunk, as in Pillow */
#define ANCILLARY 0x20        /* in the first letter of a chunk's type */
#define SIDE_MAX 1000000u     /* as in libpng: a row costs much more than one pixel */

typedef struct png_state {
    leat__band band;
    uint8_t *pixels; /* one row, or the whole image when interlaced */
    size_t capacity;
} png_state;

typedef struct png_source {
    const uint8_t *data;
    size_t len, at;
    size_t chunk; /* offset of the next chunk */
} png_source;

typedef struct png_header {
    uint32_t width, height;
    uint8_t bits, colour, interlace;
    bool transparent;
    uint32_t orientation;
} png_header;

enum { GREY = 0, RGB = 2, PALETTE = 3, GREY_ALPHA = 4, RGBA = 6 };

static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

static bool png_sniff(const uint8_t *data, size_t len)
{
    return len >= sizeof signature && memcmp(data, signature, sizeof signature) == 0;
}

static int bad(leat_error *err, int code, size_t offset, const char *what)
{
    leat__fail(err, code, "PNG: %s at byte %zu", what, offset);
    leat__error_at(err, NULL, -1, (int64_t)offset);
    return code;
}

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Applies `find` to the value of a text chunk at `at`, which is decompressed first when `packed`. */
static uint32_t find_in_text(const uint8_t *at, size_t n, bool packed,
                             uint32_t (*find)(const uint8_t *, size_t))
{
    if (!packed) return find(at, n);
    uLongf len = TEXT_MAX;
    uint32_t found = LEAT__EXIF_NONE;
    uint8_t *text = leat__alloc(LEAT__MEM_CODEC, len);
    if (text && uncompress(text, &len, at, (uLong)n) == Z_OK) found = find(text, len);
    leat__free(text);
    return found;
}

/* Reads a tEXt, zTXt or iTXt chunk: keyword, zero, fields that depend on the kind, value. */
static void read_text(const uint8_t *type, const uint8_t *p, size_t n, leat__exif_seen *seen)
{
    static const char profile[] = "Raw profile type exif", xmp[] = "XML:com.adobe.xmp";
    bool plain = memcmp(type, "tEXt", 4) == 0, packed = memcmp(type, "zTXt", 4) == 0;
    if ((plain || packed) && n > sizeof profile + 1 && memcmp(p, profile, sizeof profile) == 0) {
        size_t skip = sizeof profile + (packed ? 1 : 0); /* the compression method */
        seen->profile = find_in_text(p + skip, n - skip, packed, leat__profile_orientation);
    }
    if (memcmp(type, "iTXt", 4) != 0 || n < sizeof xmp + 4 || memcmp(p, xmp, sizeof xmp) != 0) return;
    packed = p[sizeof xmp] != 0; /* flag, method, language, zero, translated keyword, zero */
    const uint8_t *at = p + sizeof xmp + 2, *end = p + n;
    for (int zeros = 0; zeros < 2; zeros++, at++) {
        at = memchr(at, 0, (size_t)(end - at));
        if (at == NULL) return;
    }
    seen->xmp = find_in_text(at, (size_t)(end - at), packed, leat__xmp_orientation);
}

/* Reads the chunks that matter before decoding. EXIF may follow the pixels, so all chunks are visited, with 8
 * bytes read of each. Stops where the file is truncated: the decode will report it. */
static int read_header(const uint8_t *data, size_t len, png_header *h, leat_error *err)
{
    leat__exif_seen seen = {0};
    *h = (png_header){.orientation = 1};
    if (!png_sniff(data, len)) return bad(err, LEAT_EDATA, 0, "no signature");
    if (len < 33 || be32(data + 8) != 13 || memcmp(data + 12, "IHDR", 4) != 0)
        return bad(err, LEAT_EDATA, 8, "no header chunk");
    h->width = be32(data + 16);
    h->height = be32(data + 20);
    h->bits = data[24];
    h->colour = data[25];
    h->interlace = data[28];
    if (h->width == 0 || h->height == 0 || h->width > INT32_MAX || h->height > INT32_MAX)
        return bad(err, LEAT_EDATA, 16, "image of zero or impossible size");
    for (size_t at = 33; leat__range_inside(at, 12, len);) {
        size_t n = be32(data + at);
        const uint8_t *type = data + at + 4;
        if (!leat__range_inside(at + 12, n, len)) break;
        if (memcmp(type, "tRNS", 4) == 0) h->transparent = true;
        if (memcmp(type, "eXIf", 4) == 0) {
            seen.has_exif = true;
            seen.exif = leat__exif_orientation(data + at + 8, n);
        }
        if (memcmp(type + 1, "TXt", 3) == 0 || memcmp(type, "tEXt", 4) == 0)
            read_text(type, data + at + 8, n, &seen);
        if (memcmp(type, "IEND", 4) == 0) break;
        at += 12 + n;
    }
    h->orientation = leat__orientation_of(&seen);
    return 0;
}

static uint32_t channels_of(const png_header *h)
{
    if (h->colour == GREY) return 1;
    if (h->colour == GREY_ALPHA && h->bits == 16) return 2;
    if (h->colour == GREY_ALPHA || h->colour == RGBA) return 4;
    return h->colour == PALETTE && h->transparent ? 4 : 3;
}

static int png_probe(const uint8_t *data, size_t len, leat__image_info *info, leat_error *err)
{
    static const char *const kind[] = {"grey", "?", "rgb", "palette", "grey alpha", "?", "rgba"};
    png_header h;
    LEAT_TRY(read_header(data, len, &h, err));
    if (h.colour > RGBA || kind[h.colour][0] == '?') return bad(err, LEAT_EDATA, 25, "unknown colour type");
    if (h.width > SIDE_MAX || h.height > SIDE_MAX)
        return bad(err, LEAT_ELIMIT, 16, "more than 1,000,000 pixels wide or high");
    info->width = h.width;
    info->height = h.height;
    info->bits = h.bits;
    info->type = h.bits == 16 ? LEAT__SAMPLE_U16 : LEAT__SAMPLE_U8;
    info->channels = channels_of(&h);
    info->orientation = h.orientation;
    info->palette = h.colour == PALETTE;
    if (h.interlace)
        info->memory = (uint64_t)h.width * h.height * info->channels * leat__sample_bytes(info->type);
    snprintf(info->format, sizeof info->format, "png %s%s", kind[h.colour], h.bits == 16 ? " 16-bit" : "");
    return 0;
}

static int png_open(void **state, leat_error *err)
{
    *state = LEAT_NEW(CODEC, png_state);
    return *state ? 0 : leat__fail_nomem(err, sizeof(png_state), "a PNG decoder");
}

static void png_close(void **state)
{
    png_state *s = *state;
    leat__band_reset(&s->band);
    leat__free(s->pixels);
    leat__free(s);
    *state = NULL;
}

static void *spng_malloc_cb(size_t size)
{
    return leat__alloc(LEAT__MEM_CODEC, size);
}

static void *spng_realloc_cb(void *ptr, size_t size)
{
    return leat__realloc(LEAT__MEM_CODEC, ptr, size);
}

static void *spng_calloc_cb(size_t count, size_t size)
{
    return leat__zalloc_array(LEAT__MEM_CODEC, count, size);
}

/* Skips intact chunks that no pixel depends on, such as comments and colour profiles: the library would keep
 * a copy of each, after decompressing it to up to a thousand times its bytes. Damaged ones are left to it. */
static void skip_chunks(png_source *src)
{
    while (src->chunk <= src->at && leat__range_inside(src->chunk, 12, src->len)) {
        const uint8_t *p = src->data + src->chunk;
        const size_t n = be32(p);
        const bool here = src->chunk == src->at;
        if (!leat__range_inside(src->chunk + 12, n, src->len)) return;
        src->chunk += 12 + n;
        if (!here) continue;
        if (!(p[4] & ANCILLARY) || memcmp(p + 4, "tRNS", 4) == 0) return;
        if (crc32(0, p + 4, (uInt)n + 4) != be32(p + 8 + n)) return;
        src->at = src->chunk;
    }
}

static int source_read(spng_ctx *ctx, void *user, void *dest, size_t length)
{
    png_source *src = user;
    skip_chunks(src);
    if (!leat__range_inside(src->at, length, src->len)) {
        src->at = src->len;
        return SPNG_IO_EOF;
    }
    memcpy(dest, src->data + src->at, length);
    src->at += length;
    return 0;
}

static int spng_failed(const png_source *src, int code, leat_error *err)
{
    int ours = LEAT_EDATA;
    if (code == SPNG_EMEM) ours = LEAT_ENOMEM;
    if (code == SPNG_ECHUNK_LIMITS || code == SPNG_EUSER_WIDTH || code == SPNG_EUSER_HEIGHT)
        ours = LEAT_ELIMIT;
    bool cut = code == SPNG_IO_EOF;
    return bad(err, ours, src->at, cut ? "premature end of file (truncated)" : spng_strerror(code));
}

static int make_room(png_state *s, size_t bytes, leat_error *err)
{
    if (bytes <= s->capacity) return 0;
    uint8_t *grown = leat__alloc(LEAT__MEM_CODEC, bytes);
    if (!grown) return leat__fail_nomem(err, bytes, "PNG pixels");
    leat__free(s->pixels);
    s->pixels = grown;
    s->capacity = bytes;
    return 0;
}

/* Unpacks palette indices of fewer than 8 bits, packed from the highest bit on, to one byte each: in place,
 * starting at the end of the row. */
static void unpack_row(uint8_t *row, uint32_t width, uint32_t bits)
{
    for (uint32_t x = width; bits < 8 && x-- > 0;) {
        const size_t at = (size_t)x * bits;
        row[x] = row[at / 8] >> (8 - bits - at % 8) & ((1u << bits) - 1);
    }
}

/* Copies row y of the interleaved image to the band if it is in the region. */
static int take_row(png_state *s, const leat__decode_job *job, uint32_t y, uint8_t *src)
{
    if (y < job->y || y - job->y >= job->height) return 0;
    const size_t pixel = (size_t)job->info->channels * leat__sample_bytes(job->info->type);
    if (leat__image_wide(job->info))
        return job->sink->wide(job->sink->ctx, y - job->y, 1, src + job->x * pixel, 0);
    if (job->info->indices) unpack_row(src, job->info->width, job->info->bits);
    uint8_t *row[4];
    uint32_t channels = job->info->channels;
    leat__band_next(&s->band, row);
    leat__planar_split(src + (size_t)job->x * channels, job->width, channels, row);
    s->band.count++;
    uint32_t done = y - job->y + 1;
    if (!leat__band_full(&s->band) && done < job->height) return 0;
    return leat__band_flush(&s->band, job->sink, done - s->band.count);
}

static int decode_rows(png_state *s, const leat__decode_job *job, spng_ctx *ctx, const png_source *src,
                       bool interlaced, leat_error *err)
{
    size_t stride = (size_t)job->info->width * job->info->channels * leat__sample_bytes(job->info->type);
    uint32_t last = job->whole || interlaced ? UINT32_MAX : job->y + job->height;
    for (;;) {
        struct spng_row_info info;
        int code = spng_get_row_info(ctx, &info);
        if (code == SPNG_EOI) break;
        if (code) return spng_failed(src, code, err);
        if (info.row_num >= job->info->height) return bad(err, LEAT_EDATA, src->at, "row outside the image");
        uint8_t *row = s->pixels + (interlaced ? info.row_num * stride : 0);
        code = spng_decode_row(ctx, row, stride);
        if (code && code != SPNG_EOI) return spng_failed(src, code, err);
        if (!interlaced) LEAT_TRY(take_row(s, job, info.row_num, row));
        if (code == SPNG_EOI || info.row_num + 1 >= last) break;
    }
    for (uint32_t y = 0; interlaced && y < job->info->height; y++)
        LEAT_TRY(take_row(s, job, y, s->pixels + y * stride));
    if (!job->whole) return 0;
    int code = spng_decode_chunks(ctx); /* up to the end chunk */
    return code ? spng_failed(src, code, err) : 0;
}

static int set_up(spng_ctx *ctx, png_source *src, const leat__decode_job *job, leat_error *err)
{
    int code = spng_set_png_stream(ctx, source_read, src);
    if (!code) code = spng_set_image_limits(ctx, job->info->width, job->info->height);
    if (!code) code = spng_set_chunk_limits(ctx, CHUNK_MAX, CHUNK_MAX);
    if (!code) code = spng_set_crc_action(ctx, SPNG_CRC_ERROR, SPNG_CRC_ERROR);
    static const int format[5] = {0, SPNG_FMT_G8, 0, SPNG_FMT_RGB8, SPNG_FMT_RGBA8};
    uint32_t channels = job->info->channels;
    const bool wide = leat__image_wide(job->info); /* libspng delivers 16 bits in the machine's byte order */
    int wanted = job->info->indices || wide ? SPNG_FMT_PNG : format[channels];
    int flags = SPNG_DECODE_PROGRESSIVE;
    if (channels == 4 && !wide) flags |= SPNG_DECODE_TRNS;
    if (!code) code = spng_decode_image(ctx, NULL, 0, wanted, flags);
    return code ? spng_failed(src, code, err) : 0;
}

static int png_decode(void *state, const leat__decode_job *job, leat_error *err)
{
    png_state *s = state;
    png_header h;
    LEAT_TRY(read_header(job->data, job->len, &h, err));
    const uint32_t channels = job->info->indices && h.colour == PALETTE ? 1 : channels_of(&h);
    if (h.width != job->info->width || h.height != job->info->height || h.bits != job->info->bits ||
        channels != job->info->channels)
        return bad(err, LEAT_EDATA, 16, "header does not match what was probed");
    size_t bytes, rows = h.interlace ? h.height : 1;
    const size_t pixel = (size_t)job->info->channels * leat__sample_bytes(job->info->type);
    if (!leat__mul_size(h.width * pixel, rows, &bytes) || bytes > job->limits.max_out_bytes)
        return bad(err, LEAT_ELIMIT, 16, "more pixels than the limit allows");
    LEAT_TRY(make_room(s, bytes, err));
    if (!leat__image_wide(job->info))
        LEAT_TRY(leat__band_fit(&s->band, job->width, job->info->channels, err));
    if (h.interlace) memset(s->pixels, 0, bytes);

    struct spng_alloc alloc = {spng_malloc_cb, spng_realloc_cb, spng_calloc_cb, leat__free};
    png_source src = {job->data, job->len, 0, sizeof signature};
    spng_ctx *ctx = spng_ctx_new2(&alloc, 0);
    if (!ctx) return leat__fail_nomem(err, 0, "a PNG decoder");
    int rc = set_up(ctx, &src, job, err);
    if (rc == 0) rc = decode_rows(s, job, ctx, &src, h.interlace, err);
    spng_ctx_free(ctx);
    return rc;
}

const leat__codec_ops leat__codec_ops_png = {
    .name = "png",
    .sniff = png_sniff,
    .probe = png_probe,
    .open = png_open,
    .close = png_close,
    .decode = png_decode,
};
