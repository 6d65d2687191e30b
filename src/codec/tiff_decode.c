/* SPDX-License-Identifier: Apache-2.0
 *
 * TIFF through libtiff: the first page, in strips or tiles, with any compression that the library supports.
 * Grey and palettes of 1, 2, 4 and 8 bits; RGB, RGBA and YCbCr (JPEG inside) of 8 bits. Palettes become
 * RGB, or palette indices when requested. Grey and RGB of 16-bit integers or 32-bit floats, and of more
 * channels, are wide images with all samples as stored. CMYK and Lab are refused by name. The library reads
 * from memory, reports errors through the call, and prints nothing. One state per decoder, used by one
 * thread at a time.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tiffio.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "codec/library.h"
#include "codec/magic.h"
#include "codec/whole.h"

#define NAME "TIFF"
#define MEMORY_MAX (INT64_C(1) << 30) /* for one allocation of the library */
#define ENCODED_TIMES 10u  /* the library reads at most this many times the bytes of a decoded strip, */
#define ENCODED_MORE 4096u /* and these, as encoded bytes of it */

/* clang-format off */
#define FUNCTIONS(X)                                                                               \
    X(TIFFClientOpenExt) X(TIFFClose) X(TIFFGetField) X(TIFFGetFieldDefaulted) X(TIFFSetField)       \
    X(TIFFIsTiled) X(TIFFLastDirectory) X(TIFFStripSize64) X(TIFFTileSize64) X(TIFFScanlineSize64)   \
    X(TIFFTileRowSize64) X(TIFFReadEncodedStrip) X(TIFFReadEncodedTile) X(TIFFComputeStrip)          \
    X(TIFFComputeTile) X(TIFFOpenOptionsAlloc) X(TIFFOpenOptionsFree)                                \
    X(TIFFOpenOptionsSetErrorHandlerExtR) X(TIFFOpenOptionsSetWarningHandlerExtR)                    \
    X(TIFFOpenOptionsSetMaxSingleMemAlloc)
/* clang-format on */

static struct {
    leat__once once;
    int rc;
    leat_error err;
#define X(f) __typeof__(f) *f;
    FUNCTIONS(X)
#undef X
} lib = {.once = LEAT__ONCE_INIT};

static void load(void)
{
    const leat__library_symbol symbols[] = {
#define X(f) {#f, &lib.f},
        FUNCTIONS(X)
#undef X
    };
    lib.rc = leat__library_load(NAME, "libtiff.so.6", "libtiff6", symbols, LEAT_COUNT(symbols), &lib.err);
}

/* One file in memory, and the last error message of the library. */
typedef struct source {
    const uint8_t *data;
    size_t len, at;
    bool pixels; /* headers are read: from now on a warning means damage, such as a truncated JPEG inside */
    bool ended;  /* bytes past the end were requested */
    char why[160];
} source;

static tmsize_t source_read(thandle_t h, void *to, tmsize_t n)
{
    source *s = (source *)h;
    size_t take = s->at < s->len ? LEAT_MIN((size_t)n, s->len - s->at) : 0;
    memcpy(to, s->data + LEAT_MIN(s->at, s->len), take);
    s->ended |= take < (size_t)n;
    s->at += take;
    return (tmsize_t)take;
}

static tmsize_t source_write(thandle_t h, void *from, tmsize_t n)
{
    return 0;
}

static toff_t source_seek(thandle_t h, toff_t to, int whence)
{
    source *s = (source *)h;
    uint64_t base = whence == SEEK_CUR ? s->at : whence == SEEK_END ? s->len : 0;
    s->at = (size_t)(base + to);
    return s->at;
}

static int source_close(thandle_t h)
{
    return 0;
}

static toff_t source_size(thandle_t h)
{
    return ((source *)h)->len;
}

static int source_map(thandle_t h, void **base, toff_t *size)
{
    return 0; /* the library may write into a mapping */
}

static void source_unmap(thandle_t h, void *base, toff_t size)
{
}

static int on_error(TIFF *tif, void *user, const char *module, const char *format, va_list args)
{
    source *s = user;
    static const char nowhere[] = " at scanline 4294967295"; /* said of strips, which have no scanline */
    if (s->why[0] != '\0') return 1;
    vsnprintf(s->why, sizeof s->why, format, args);
    char *at = strstr(s->why, nowhere);
    if (at) memmove(at, at + sizeof nowhere - 1, strlen(at + sizeof nowhere - 1) + 1);
    return 1;
}

static int on_warning(TIFF *tif, void *user, const char *module, const char *format, va_list args)
{
    source *s = user; /* also a warning, which would be ignored: a tag past the end of a truncated file */
    return s->pixels || strstr(format, "IO error") != NULL ? on_error(tif, user, module, format, args) : 1;
}

/* Reports the error with the library's message. */
static int failed(const source *s, int code, leat_error *err)
{
    leat__fail(err, code, "TIFF: %s%s", s->ended ? "premature end of file (truncated): " : "",
               s->why[0] ? s->why : "damaged data");
    leat__error_at(err, NULL, -1, (int64_t)LEAT_MIN(s->at, s->len));
    return code;
}

static int open_file(source *s, TIFF **tif, leat_error *err)
{
    leat__once_run(&lib.once, load);
    if (lib.rc != 0) {
        if (err != NULL) *err = lib.err;
        return lib.rc;
    }
    if (!leat__magic_tiff(s->data, s->len)) return leat__whole_bad(err, LEAT_EDATA, NAME, 0, "no signature");
    TIFFOpenOptions *o = lib.TIFFOpenOptionsAlloc();
    if (o == NULL) return leat__fail_nomem(err, 0, "a TIFF decoder");
    lib.TIFFOpenOptionsSetErrorHandlerExtR(o, on_error, s);
    lib.TIFFOpenOptionsSetWarningHandlerExtR(o, on_warning, s);
    lib.TIFFOpenOptionsSetMaxSingleMemAlloc(o, MEMORY_MAX);
    *tif = lib.TIFFClientOpenExt("memory", "rm", s, source_read, source_write, source_seek, source_close,
                                 source_size, source_map, source_unmap, o);
    lib.TIFFOpenOptionsFree(o);
    if (*tif != NULL && s->why[0] == '\0') return 0;
    if (*tif != NULL) lib.TIFFClose(*tif);
    return failed(s, LEAT_EDATA, err);
}

/* ---- the page ---- */

typedef struct page {
    uint32_t width, height;
    uint16_t bits, samples, photometric, planar, orientation, compression, format;
    bool alpha, multiplied; /* an extra sample is alpha; colours are premultiplied by it */
    bool more;              /* further pages follow */
    uint16_t *map[3];       /* palette */
    bool wide_map;          /* 16 bits per entry */
    bool wide;              /* decoded with all samples as stored */
    leat__sample_type type;
} page;

static uint32_t colours_of(const page *p)
{
    return p->photometric == PHOTOMETRIC_RGB || p->photometric == PHOTOMETRIC_YCBCR ? 3 : 1;
}

/* Names the unsupported property: channels and sample format first, because the other numbers mean little
 * then. */
static int refuse(const page *p, leat_error *err)
{
    if (p->samples > LEAT__CHANNELS_MAX)
        return leat__fail(err, LEAT_EFORMAT, "TIFF: %u samples per pixel are not supported: at most %d are",
                          p->samples, LEAT__CHANNELS_MAX);
    if (p->format == SAMPLEFORMAT_IEEEFP && p->bits != 32)
        return leat__fail(err, LEAT_EFORMAT,
                          "TIFF: float samples of %u bits are not supported: only 32 bits are", p->bits);
    if (p->format != SAMPLEFORMAT_UINT && p->format != SAMPLEFORMAT_VOID && p->format != SAMPLEFORMAT_IEEEFP)
        return leat__fail(err, LEAT_EFORMAT,
                          "TIFF: %s samples of %u bits are not supported: only unsigned and 32-bit float "
                          "ones are",
                          p->format == SAMPLEFORMAT_INT ? "signed" : "complex", p->bits);
    return leat__fail(err, LEAT_EFORMAT,
                      "TIFF: %u samples of %u bits, photometric %u, compression %u are not supported",
                      p->samples, p->bits, p->photometric, p->compression);
}

/* Reads the palette. Palettes written with 8 bits per entry have no larger numbers. */
static int read_map(TIFF *tif, page *p, leat_error *err)
{
    if (!lib.TIFFGetField(tif, TIFFTAG_COLORMAP, &p->map[0], &p->map[1], &p->map[2]))
        return leat__fail(err, LEAT_EDATA, "TIFF: a palette image without a palette");
    for (int c = 0; c < 3; c++)
        for (uint32_t i = 0; i < 1u << p->bits; i++) p->wide_map |= p->map[c][i] >= 256;
    return 0;
}

/* Decides whether the page is a wide image. False when the page is not supported at all. */
static bool read_kind(page *p)
{
    const bool grey = p->photometric == PHOTOMETRIC_MINISBLACK || p->photometric == PHOTOMETRIC_MINISWHITE;
    const bool rgb = p->photometric == PHOTOMETRIC_RGB;
    const bool whole = p->format == SAMPLEFORMAT_UINT || p->format == SAMPLEFORMAT_VOID;
    const bool floats = p->format == SAMPLEFORMAT_IEEEFP && p->bits == 32;
    if (!whole && !floats) return false;
    p->type = floats ? LEAT__SAMPLE_F32 : p->bits == 16 ? LEAT__SAMPLE_U16 : LEAT__SAMPLE_U8;
    p->wide =
        p->type != LEAT__SAMPLE_U8 || (p->bits == 8 && ((grey && p->samples > 2) || (rgb && p->samples > 4)));
    if (!p->wide) return true;
    p->alpha = p->multiplied = false;
    if (p->photometric == PHOTOMETRIC_MINISWHITE) return p->samples == 1 && p->type == LEAT__SAMPLE_U16;
    return grey || rgb;
}

static int read_page(TIFF *tif, const source *s, page *p, leat_error *err)
{
    uint16_t *kinds, extra = 0;
    *p = (page){.photometric = UINT16_MAX};
    if (!lib.TIFFGetField(tif, TIFFTAG_IMAGEWIDTH, &p->width) ||
        !lib.TIFFGetField(tif, TIFFTAG_IMAGELENGTH, &p->height))
        return failed(s, LEAT_EDATA, err);
    lib.TIFFGetFieldDefaulted(tif, TIFFTAG_BITSPERSAMPLE, &p->bits);
    lib.TIFFGetFieldDefaulted(tif, TIFFTAG_SAMPLESPERPIXEL, &p->samples);
    lib.TIFFGetFieldDefaulted(tif, TIFFTAG_PLANARCONFIG, &p->planar);
    lib.TIFFGetFieldDefaulted(tif, TIFFTAG_ORIENTATION, &p->orientation);
    lib.TIFFGetFieldDefaulted(tif, TIFFTAG_COMPRESSION, &p->compression);
    lib.TIFFGetFieldDefaulted(tif, TIFFTAG_SAMPLEFORMAT, &p->format);
    if (!lib.TIFFGetField(tif, TIFFTAG_EXTRASAMPLES, &extra, &kinds)) extra = 0;
    lib.TIFFGetField(tif, TIFFTAG_PHOTOMETRIC, &p->photometric);
    p->more = !lib.TIFFLastDirectory(tif);
    const bool few = p->bits == 1 || p->bits == 2 || p->bits == 4 || p->bits == 8;
    const uint32_t colours = colours_of(p);
    p->alpha = p->samples == colours + 1 && (extra == 0 || kinds[0] != EXTRASAMPLE_UNSPECIFIED);
    p->multiplied = p->alpha && extra > 0 && kinds[0] == EXTRASAMPLE_ASSOCALPHA;
    if (p->samples < colours || p->samples > LEAT__CHANNELS_MAX || !read_kind(p)) return refuse(p, err);
    if (p->wide) return 0;
    switch (p->photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
        return few && (p->samples == 1 || (p->bits == 8 && p->samples == 2)) ? 0 : refuse(p, err);
    case PHOTOMETRIC_PALETTE: return few && p->samples == 1 ? read_map(tif, p, err) : refuse(p, err);
    case PHOTOMETRIC_YCBCR: /* converted by the library */
        if (p->compression != COMPRESSION_JPEG || p->samples != 3) return refuse(p, err);
        if (p->bits != 8) return refuse(p, err);
        return lib.TIFFSetField(tif, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB) ? 0 : refuse(p, err);
    case PHOTOMETRIC_RGB: return p->bits == 8 && (p->samples == 3 || p->samples == 4) ? 0 : refuse(p, err);
    default: return refuse(p, err);
    }
}

typedef struct grid {
    uint32_t width, height;         /* of a strip or tile */
    uint64_t bytes, stride, pieces; /* pieces: of one plane */
    bool tiled;
} grid;

/* Reads the size of strips or tiles. */
static int read_grid(TIFF *tif, const page *p, const source *s, grid *g, leat_error *err)
{
    g->tiled = lib.TIFFIsTiled(tif);
    if (g->tiled) {
        if (!lib.TIFFGetField(tif, TIFFTAG_TILEWIDTH, &g->width) ||
            !lib.TIFFGetField(tif, TIFFTAG_TILELENGTH, &g->height))
            return failed(s, LEAT_EDATA, err);
        g->bytes = lib.TIFFTileSize64(tif);
        g->stride = lib.TIFFTileRowSize64(tif);
    } else {
        lib.TIFFGetFieldDefaulted(tif, TIFFTAG_ROWSPERSTRIP, &g->height);
        g->height = LEAT_MIN(g->height, p->height);
        g->width = p->width;
        g->stride = lib.TIFFScanlineSize64(tif);
        g->bytes = g->stride * g->height;
    }
    const uint64_t samples = p->planar == PLANARCONFIG_CONTIG ? p->samples : 1;
    if (g->width == 0 || g->height == 0 || g->stride < ((uint64_t)g->width * samples * p->bits + 7) / 8 ||
        g->bytes < g->stride * g->height)
        return failed(s, LEAT_EDATA, err);
    g->pieces = (uint64_t)((p->width - 1) / g->width + 1) * ((p->height - 1) / g->height + 1);
    return 0;
}

/* Tiles may be larger than the image, so their bytes have the same limit as those of the result. */
static int check_grid(const grid *g, const leat__decode_limits *limits, leat_error *err)
{
    if (g->bytes <= (uint64_t)MEMORY_MAX && g->pieces <= limits->max_out_bytes / g->bytes) return 0;
    return leat__fail(err, LEAT_ELIMIT, "TIFF: %llu strips or tiles of %s are over the limit of %s",
                      (unsigned long long)g->pieces, leat__as_size(g->bytes).text,
                      leat__as_size(limits->max_out_bytes).text);
}

/* Returns the bytes that the library allocates to decode a strip or tile: its encoded bytes, which it reads
 * directly to the result if they are not compressed, and what its decoder holds. */
static uint64_t library_bytes(const page *p, const grid *g, size_t len)
{
    const uint64_t pixels = (uint64_t)g->width * g->height;
    const uint64_t encoded = LEAT_MIN((uint64_t)len, ENCODED_TIMES * g->bytes + ENCODED_MORE);
    switch (p->compression) {
    case COMPRESSION_NONE: return 0;
    case COMPRESSION_JPEG: return encoded + pixels * p->samples * 2; /* coefficients, if it is progressive */
    case COMPRESSION_WEBP: return encoded + pixels * 9;
    case COMPRESSION_LZMA:
    case COMPRESSION_ZSTD: return encoded + g->bytes; /* the window */
    case COMPRESSION_LERC: return encoded + g->bytes * 3;
    default: return encoded;
    }
}

/* Returns the bytes that decoding takes. A damaged grid is refused before anything is allocated. */
static uint64_t bytes_of(TIFF *tif, const page *p, const source *s, uint32_t channels)
{
    grid g;
    if (read_grid(tif, p, s, &g, NULL) != 0 || g.bytes > (uint64_t)MEMORY_MAX) return 0;
    return (uint64_t)p->width * p->height * channels * leat__sample_bytes(p->type) + g.bytes +
           library_bytes(p, &g, s->len);
}

static int describe(const page *p, leat__image_info *info, leat_error *err)
{
    info->width = p->width;
    info->height = p->height;
    info->palette = p->photometric == PHOTOMETRIC_PALETTE;
    info->type = p->type;
    info->bits = p->wide ? p->bits : 8;
    info->channels = p->wide ? p->samples : p->alpha ? 4 : info->palette ? 3 : colours_of(p);
    info->orientation = p->orientation >= 1 && p->orientation <= 8 ? p->orientation : 1;
    info->animated = p->more;
    if (p->wide)
        snprintf(info->format, sizeof info->format, "tiff %s x %u", leat__sample_name(p->type), p->samples);
    else
        snprintf(info->format, sizeof info->format, "tiff %s%s",
                 info->palette         ? "palette"
                 : info->channels == 1 ? "grey"
                                       : "rgb",
                 info->channels == 4 ? "a" : "");
    return leat__whole_sides(info, NAME, err);
}

static int tiff_probe(const uint8_t *data, size_t len, leat__image_info *info, leat_error *err)
{
    source s = {.data = data, .len = len};
    TIFF *tif;
    page p;
    LEAT_TRY(open_file(&s, &tif, err));
    int rc = read_page(tif, &s, &p, err);
    if (rc == 0) rc = describe(&p, info, err);
    if (rc == 0) info->memory = bytes_of(tif, &p, &s, info->channels);
    lib.TIFFClose(tif);
    return rc;
}

/* ---- pixels ---- */

/* A strip or a tile: its position in the image, and its bytes. */
typedef struct piece {
    uint32_t x, y, width, height;
    uint16_t plane; /* number of the plane if channels are stored separately, else 0 */
    const uint8_t *data;
    size_t stride;
} piece;

static uint32_t number_at(const uint8_t *row, uint32_t x, uint32_t bits)
{
    if (bits == 8) return row[x];
    const size_t at = (size_t)x * bits;
    return row[at / 8] >> (8 - bits - at % 8) & ((1u << bits) - 1);
}

/* Writes one value of a grey or palette image as its channels. */
static void put_number(const page *p, uint32_t v, bool colour, uint8_t *to)
{
    const uint32_t most = (1u << p->bits) - 1;
    if (p->photometric == PHOTOMETRIC_PALETTE) {
        to[0] = (uint8_t)v;
        for (int c = 0; c < 3 && colour; c++)
            to[c] = (uint8_t)(p->wide_map ? p->map[c][v] >> 8 : p->map[c][v]);
        return;
    }
    if (p->photometric == PHOTOMETRIC_MINISWHITE) v = most - v;
    to[0] = (uint8_t)(v * 255 / most);
}

/* Writes sample `s` of a pixel with several: grey and alpha become RGBA. */
static void put_sample(const page *p, uint32_t s, uint8_t v, uint32_t channels, uint8_t *to)
{
    if (p->samples == 2 && s == 1) {
        if (channels == 4) to[3] = v;
    } else if (p->samples == 2) {
        put_number(p, v, false, to);
        for (uint32_t c = 1; c < channels && c < 3; c++) to[c] = to[0];
    } else if (s < channels) {
        to[s] = v;
    }
}

static void put_row(const page *p, const piece *q, const uint8_t *row, uint32_t channels, uint8_t *to)
{
    const bool together = p->planar == PLANARCONFIG_CONTIG;
    for (uint32_t x = 0; x < q->width; x++, to += channels) {
        if (p->samples == 1) put_number(p, number_at(row, x, p->bits), channels == 3, to);
        else if (!together) put_sample(p, q->plane, row[x], channels, to);
        else
            for (uint32_t s = 0; s < p->samples; s++)
                put_sample(p, s, row[(size_t)x * p->samples + s], channels, to);
    }
}

/* Reverts premultiplied colours, with Pillow's arithmetic. */
static void divide(uint8_t *pixels, size_t count)
{
    for (uint8_t *p = pixels; count > 0; count--, p += 4)
        for (int c = 0; c < 3 && p[3] != 255; c++) {
            uint32_t v = p[3] == 0 ? 0 : p[c] * 255u / p[3];
            p[c] = (uint8_t)LEAT_MIN(v, 255u);
        }
}

/* Copies samples as stored: interleaved pixels, or one sample of each. Only images in which 0 is white are
 * inverted. */
static void put_wide(const page *p, const piece *q, const uint8_t *row, uint8_t *to)
{
    const size_t size = leat__sample_bytes(p->type);
    if (p->planar == PLANARCONFIG_CONTIG) memcpy(to, row, q->width * p->samples * size);
    else
        for (uint32_t x = 0; x < q->width; x++)
            memcpy(to + ((size_t)x * p->samples + q->plane) * size, row + x * size, size);
    for (uint32_t x = 0; p->photometric == PHOTOMETRIC_MINISWHITE && x < q->width; x++) {
        uint16_t v;
        memcpy(&v, to + x * size, sizeof v);
        v = (uint16_t)(UINT16_MAX - v);
        memcpy(to + x * size, &v, sizeof v);
    }
}

static void put_piece(const page *p, const piece *q, uint32_t channels, uint8_t *pixels, size_t stride)
{
    const size_t pixel = (size_t)channels * leat__sample_bytes(p->type);
    for (uint32_t y = 0; p->wide && y < q->height; y++)
        put_wide(p, q, q->data + y * q->stride, pixels + (q->y + y) * stride + q->x * pixel);
    if (p->wide) return;
    for (uint32_t y = 0; y < q->height; y++)
        put_row(p, q, q->data + y * q->stride, channels,
                pixels + (q->y + y) * stride + (size_t)q->x * channels);
}

static int read_piece(TIFF *tif, const grid *g, const piece *q, uint8_t *to, const source *s, leat_error *err)
{
    const tmsize_t want = (tmsize_t)(g->tiled ? g->bytes : g->stride * q->height);
    tmsize_t got;
    if (g->tiled)
        got = lib.TIFFReadEncodedTile(tif, lib.TIFFComputeTile(tif, q->x, q->y, 0, q->plane), to, want);
    else got = lib.TIFFReadEncodedStrip(tif, lib.TIFFComputeStrip(tif, q->y, q->plane), to, want);
    return got == want && s->why[0] == '\0' ? 0 : failed(s, LEAT_EDATA, err);
}

static int read_pixels(leat__whole *w, TIFF *tif, const page *p, const leat__decode_job *job, const source *s,
                       leat_error *err)
{
    grid g;
    const uint32_t channels = job->info->channels;
    const size_t stride = (size_t)p->width * channels * leat__sample_bytes(p->type);
    const uint16_t planes = p->planar == PLANARCONFIG_CONTIG ? 1 : p->samples;
    LEAT_TRY(read_grid(tif, p, s, &g, err));
    LEAT_TRY(check_grid(&g, &job->limits, err));
    const size_t total = (stride * p->height + 15) & ~(size_t)15; /* cannot overflow: limits were checked */
    LEAT_TRY(leat__whole_fit(w, total + (size_t)g.bytes, 1, err));
    uint8_t *room = w->pixels + total;
    for (uint16_t plane = 0; plane < planes; plane++)
        for (uint32_t y = 0; y < p->height; y += g.height)
            for (uint32_t x = 0; x < p->width; x += g.width) {
                piece q = {.x = x,
                           .y = y,
                           .width = LEAT_MIN(g.width, p->width - x),
                           .height = LEAT_MIN(g.height, p->height - y),
                           .plane = plane,
                           .data = room,
                           .stride = (size_t)g.stride};
                LEAT_TRY(read_piece(tif, &g, &q, room, s, err));
                put_piece(p, &q, channels, w->pixels, stride);
            }
    if (p->multiplied) divide(w->pixels, (size_t)p->width * p->height);
    return leat__whole_emit(w, job, w->pixels, stride, err);
}

static int tiff_decode(void *state, const leat__decode_job *job, leat_error *err)
{
    source s = {.data = job->data, .len = job->len};
    leat__image_info now = {.orientation = 1};
    TIFF *tif;
    page p;
    LEAT_TRY(open_file(&s, &tif, err));
    int rc = read_page(tif, &s, &p, err);
    if (rc == 0) rc = describe(&p, &now, err);
    if (rc == 0) rc = leat__whole_same(job, &now, NAME, err);
    s.pixels = true;
    s.why[0] = '\0';
    if (rc == 0) rc = read_pixels(state, tif, &p, job, &s, err);
    lib.TIFFClose(tif);
    return rc;
}

const leat__codec_ops leat__codec_ops_tiff = {
    .name = "tiff",
    .sniff = leat__magic_tiff,
    .probe = tiff_probe,
    .open = leat__whole_open,
    .close = leat__whole_close,
    .decode = tiff_decode,
};
