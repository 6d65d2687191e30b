/* SPDX-License-Identifier: Apache-2.0
 *
 * WebP through libwebp: lossy and lossless stills, with or without alpha. For an animation, the first frame
 * on a canvas that is zero (transparent) elsewhere, or all frames, as in Pillow. libwebp decodes a crop
 * into a buffer of its size. Its upsampler treats the crop's edges as those of the image. So MARGIN pixels
 * more are decoded around the region and discarded, which makes a region bit-identical to the same part of
 * a full decode.
 *
 * One state per decoder, used by one thread at a time.
 */
#include <stdio.h>
#include <string.h>

#include <webp/decode.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/codec_ops.h"
#include "codec/exif.h"
#include "codec/animation.h"
#include "codec/planes.h"

#define MARGIN 4 /* even: libwebp moves crops to even positions */
#define EXIF_FLAG 0x08
#define XMP_FLAG 0x04

typedef struct webp_state {
    leat__band band;
    uint8_t *pixels;
    size_t capacity;
} webp_state;

typedef struct rect {
    uint32_t x, y, width, height;
} rect;

static bool webp_sniff(const uint8_t *data, size_t len)
{
    return len >= 16 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0;
}

static int bad(leat_error *err, int code, size_t offset, const char *what)
{
    leat__fail(err, code, "WebP: %s at byte %zu", what, offset);
    leat__error_at(err, NULL, -1, (int64_t)offset);
    return code;
}

/* Searches EXIF and XMP, which are chunks of the extended format, usually the last ones. */
static uint32_t find_orientation(const uint8_t *data, size_t len)
{
    if (len < 30 || memcmp(data + 12, "VP8X", 4) != 0 || !(data[20] & (EXIF_FLAG | XMP_FLAG))) return 1;
    leat__exif_seen seen = {0};
    for (size_t at = 12; leat__range_inside(at, 8, len);) {
        size_t n = leat__load_u32(data + at + 4);
        if (!leat__range_inside(at + 8, n, len)) break;
        if (memcmp(data + at, "EXIF", 4) == 0 && !seen.has_exif) {
            seen.has_exif = true;
            seen.exif = leat__exif_orientation(data + at + 8, n);
        }
        if (memcmp(data + at, "XMP ", 4) == 0) seen.xmp = leat__xmp_orientation(data + at + 8, n);
        at += 8 + n + (n & 1);
    }
    return leat__orientation_of(&seen);
}

static uint32_t load_u24(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
}

/* A frame of an animation: its position on the canvas, and its own chunks. */
typedef struct anmf {
    rect at;
    bool blend, clear; /* drawn over the canvas with alpha; cleared before the next frame */
    const uint8_t *data;
    size_t len, next;
} anmf;

/* Finds the first frame from `pos` on. False when there is none, or it is incomplete; f->next is then where
 * the search stopped. */
static bool find_frame(const uint8_t *data, size_t len, size_t pos, anmf *f)
{
    while (leat__range_inside(pos, 8, len)) {
        const size_t n = leat__load_u32(data + pos + 4);
        const uint8_t *p = data + pos + 8;
        const bool frame = memcmp(p - 8, "ANMF", 4) == 0;
        if (!leat__range_inside(pos + 8, n, len) || (frame && n < 16)) break;
        pos += 8 + n + (n & 1);
        if (!frame) continue;
        *f = (anmf){.at = {2 * load_u24(p), 2 * load_u24(p + 3), 1 + load_u24(p + 6), 1 + load_u24(p + 9)},
                    .blend = !(p[15] & 2),
                    .clear = p[15] & 1,
                    .data = p + 16,
                    .len = n - 16,
                    .next = pos};
        return true;
    }
    f->next = pos;
    return false;
}

/* Returns the bytes that decoding a still image takes besides its result. libwebp decodes a lossless
 * image to 4 bytes per pixel, and its transforms take up to 1 more. The alpha plane of a lossy image has a
 * byte per pixel and is usually such a lossless image itself. Otherwise libwebp holds only some rows. */
static uint64_t own_bytes(const WebPBitstreamFeatures *f)
{
    const bool lossless = f->format == 2;
    return lossless || f->has_alpha ? (uint64_t)f->width * (uint64_t)f->height * 5 : 0;
}

/* Returns the maximum of own_bytes over the frames of an animation. */
static uint64_t frames_bytes(const uint8_t *data, size_t len)
{
    anmf f = {.next = 12};
    uint64_t most = 0;
    WebPBitstreamFeatures w;
    while (find_frame(data, len, f.next, &f))
        if (WebPGetFeatures(f.data, f.len, &w) == VP8_STATUS_OK) most = LEAT_MAX(most, own_bytes(&w));
    return most;
}

static int webp_probe(const uint8_t *data, size_t len, leat__image_info *info, leat_error *err)
{
    WebPBitstreamFeatures f;
    if (!webp_sniff(data, len)) return bad(err, LEAT_EDATA, 0, "no signature");
    VP8StatusCode status = WebPGetFeatures(data, len, &f);
    if (status == VP8_STATUS_NOT_ENOUGH_DATA)
        return bad(err, LEAT_EDATA, len, "premature end of file (truncated)");
    if (status != VP8_STATUS_OK) return bad(err, LEAT_EDATA, 12, "damaged header");
    info->animated = f.has_animation;
    info->width = (uint32_t)f.width;
    info->height = (uint32_t)f.height;
    info->channels = f.has_alpha ? 4 : 3;
    info->orientation = find_orientation(data, len);
    info->memory = (uint64_t)info->width * info->height * info->channels +
                   (f.has_animation ? frames_bytes(data, len) : own_bytes(&f));
    snprintf(info->format, sizeof info->format, "webp %s%s",
             f.has_animation ? "animated"
             : f.format == 2 ? "lossless"
                             : "lossy",
             f.has_alpha ? " alpha" : "");
    return 0;
}

static int webp_open(void **state, leat_error *err)
{
    *state = LEAT_NEW(CODEC, webp_state);
    return *state ? 0 : leat__fail_nomem(err, sizeof(webp_state), "a WebP decoder");
}

static void webp_close(void **state)
{
    webp_state *s = *state;
    leat__band_reset(&s->band);
    leat__free(s->pixels);
    leat__free(s);
    *state = NULL;
}

static rect with_margin(const leat__decode_job *job)
{
    uint32_t x = job->x > MARGIN ? (job->x - MARGIN) & ~1u : 0;
    uint32_t y = job->y > MARGIN ? (job->y - MARGIN) & ~1u : 0;
    uint64_t right = (uint64_t)job->x + job->width + MARGIN;
    uint64_t bottom = (uint64_t)job->y + job->height + MARGIN;
    if (right > job->info->width) right = job->info->width;
    if (bottom > job->info->height) bottom = job->info->height;
    return (rect){x, y, (uint32_t)right - x, (uint32_t)bottom - y};
}

/* Decodes rectangle r of the image in `data` to `to`, whose rows are `stride` bytes apart. */
static int run(const uint8_t *data, size_t len, rect r, uint32_t channels, uint8_t *to, size_t stride,
               leat_error *err)
{
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return leat__fail(err, LEAT_ENOTSUP, "libwebp has an incompatible version");
    config.options.use_cropping = 1;
    config.options.crop_left = (int)r.x;
    config.options.crop_top = (int)r.y;
    config.options.crop_width = (int)r.width;
    config.options.crop_height = (int)r.height;
    config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = to;
    config.output.u.RGBA.stride = (int)stride;
    config.output.u.RGBA.size = stride * (r.height - 1) + (size_t)r.width * channels;
    VP8StatusCode status = WebPDecode(data, len, &config);
    WebPFreeDecBuffer(&config.output);
    switch (status) {
    case VP8_STATUS_OK: return 0;
    case VP8_STATUS_OUT_OF_MEMORY: return leat__fail_nomem(err, 0, "a WebP image");
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED: return bad(err, LEAT_EDATA, len, "premature end of file (truncated)");
    case VP8_STATUS_UNSUPPORTED_FEATURE: return bad(err, LEAT_EFORMAT, 12, "unsupported feature");
    default:
        /* libwebp does not report the offset */
        return leat__fail(err, LEAT_EDATA, "WebP: damaged data (status %d)", (int)status);
    }
}

/* Decodes a frame to its position on a canvas; the rest of the canvas does not change. */
static int run_frame(const leat__image_info *info, const uint8_t *data, const anmf *f, uint32_t channels,
                     uint8_t *canvas, bool *alpha, leat_error *err)
{
    const size_t stride = (size_t)info->width * channels;
    WebPBitstreamFeatures w;
    if (!leat__range_inside(f->at.x, f->at.width, info->width) ||
        !leat__range_inside(f->at.y, f->at.height, info->height) ||
        WebPGetFeatures(f->data, f->len, &w) != VP8_STATUS_OK || w.has_animation ||
        (uint32_t)w.width != f->at.width || (uint32_t)w.height != f->at.height)
        return bad(err, LEAT_EDATA, (size_t)(f->data - data), "damaged frame");
    *alpha = w.has_alpha;
    return run(f->data, f->len, (rect){0, 0, f->at.width, f->at.height}, channels,
               canvas + f->at.y * stride + (size_t)f->at.x * channels, stride, err);
}

/* Draws the first frame on the canvas; s->pixels holds all of it. */
static int run_first(webp_state *s, const leat__decode_job *job, leat_error *err)
{
    const leat__image_info *const i = job->info;
    anmf f;
    bool alpha;
    if (!find_frame(job->data, job->len, 12, &f))
        return bad(err, LEAT_EDATA, job->len, "an animation without a whole first frame (truncated?)");
    memset(s->pixels, 0, (size_t)i->width * i->channels * i->height);
    return run_frame(i, job->data, &f, i->channels, s->pixels, &alpha, err);
}

static int webp_decode(void *state, const leat__decode_job *job, leat_error *err)
{
    webp_state *s = state;
    leat__image_info now = {.orientation = 1};
    LEAT_TRY(webp_probe(job->data, job->len, &now, err));
    if (now.width != job->info->width || now.height != job->info->height ||
        now.channels != job->info->channels)
        return bad(err, LEAT_EDATA, 12, "header does not match what was probed");
    size_t size = leat__load_u32(job->data + 4);
    if (job->whole && size > job->len - 8)
        return bad(err, LEAT_EDATA, job->len, "premature end of file (truncated)");
    rect r = now.animated ? (rect){0, 0, now.width, now.height} : with_margin(job);
    uint32_t channels = now.channels;
    size_t stride = (size_t)r.width * channels, bytes;
    if (!leat__mul_size(stride, r.height, &bytes))
        return bad(err, LEAT_ELIMIT, 12, "more pixels than the limit allows");
    if (bytes > s->capacity) {
        uint8_t *grown = leat__alloc(LEAT__MEM_CODEC, bytes);
        if (!grown) return leat__fail_nomem(err, bytes, "WebP pixels");
        leat__free(s->pixels);
        s->pixels = grown;
        s->capacity = bytes;
    }
    LEAT_TRY(leat__band_fit(&s->band, job->width, channels, err));
    if (now.animated) LEAT_TRY(run_first(s, job, err));
    else LEAT_TRY(run(job->data, job->len, r, channels, s->pixels, stride, err));
    const uint8_t *src = s->pixels + (job->y - r.y) * stride + (job->x - r.x) * channels;
    for (uint32_t y = 0; y < job->height; y++, src += stride) {
        uint8_t *row[4];
        leat__band_next(&s->band, row);
        leat__planar_split(src, job->width, channels, row);
        s->band.count++;
        if (leat__band_full(&s->band) || y + 1 == job->height)
            LEAT_TRY(leat__band_flush(&s->band, job->sink, y + 1 - s->band.count));
    }
    return 0;
}

/* ---- all frames ---- */

static uint64_t webp_count_frames(const uint8_t *data, size_t len)
{
    anmf f = {.next = 12};
    uint64_t n = 0;
    while (find_frame(data, len, f.next, &f)) n++;
    return n;
}

/* Blends `src` over `dst`, without premultiplied colours, with libwebp's integer arithmetic. */
static void blend(uint8_t src[4], const uint8_t dst[4])
{
    const uint32_t a = src[3];
    if (a == 255) return;
    if (a == 0) {
        memcpy(src, dst, 4);
        return;
    }
    const uint32_t under = dst[3] * (256 - a) >> 8, sum = a + under, scale = (1u << 24) / sum;
    for (int c = 0; c < 3; c++) src[c] = (uint8_t)((src[c] * a + dst[c] * under) * scale >> 24);
    src[3] = (uint8_t)sum;
}

static bool inside(const leat__anim_rect *r, uint32_t x, uint32_t y)
{
    return x - r->x < r->width && y - r->y < r->height; /* negative differences wrap around */
}

/* Blends the frame with the canvas below it, except where the last frame was cleared. */
static void blend_frame(leat__anim *f, const rect *at)
{
    for (uint32_t y = at->y; y < at->y + at->height; y++)
        for (uint32_t x = at->x; x < at->x + at->width; x++) {
            const size_t i = ((size_t)y * f->info.width + x) * 4;
            if (!f->dispose || !inside(&f->last, x, y)) blend(f->canvas + i, f->under + i);
        }
}

static bool covers(const leat__image_info *i, uint32_t width, uint32_t height)
{
    return width == i->width && height == i->height;
}

/* Called when no frame follows byte `at`: checks that the file is complete and ends here. */
static int check_end(const leat__anim *f, size_t at, leat_error *err)
{
    if ((uint64_t)leat__load_u32(f->data + 4) + 8 > f->len)
        return bad(err, LEAT_EDATA, f->len, "premature end of file (truncated)");
    if (leat__range_inside(at, 8, f->len)) return bad(err, LEAT_EDATA, at, "damaged chunk");
    if (f->index == 0) return bad(err, LEAT_EDATA, f->len, "an animation without frames");
    return 0;
}

/* Draws the next frame like libwebp's animation decoder. A key frame is drawn on an empty canvas. */
static int webp_next_frame(leat__anim *f, bool *end, leat_error *err)
{
    const size_t stride = (size_t)f->info.width * 4, bytes = stride * f->info.height;
    anmf a;
    WebPBitstreamFeatures w;
    bool alpha = true;
    *end = !find_frame(f->data, f->len, f->index > 0 ? f->at : 12, &a);
    if (*end) return check_end(f, a.next, err);
    if (WebPGetFeatures(a.data, a.len, &w) == VP8_STATUS_OK) alpha = w.has_alpha;
    f->key = f->index == 0 || ((!alpha || !a.blend) && covers(&f->info, a.at.width, a.at.height)) ||
             (f->dispose && (covers(&f->info, f->last.width, f->last.height) || f->key));
    if (f->key) memset(f->canvas, 0, bytes);
    else memcpy(f->canvas, f->under, bytes);
    LEAT_TRY(run_frame(&f->info, f->data, &a, 4, f->canvas, &alpha, err));
    if (a.blend && !f->key) blend_frame(f, &a.at);
    memcpy(f->under, f->canvas, bytes);
    for (uint32_t y = 0; y < a.at.height && a.clear; y++)
        memset(f->under + (a.at.y + y) * stride + (size_t)a.at.x * 4, 0, (size_t)a.at.width * 4);
    f->last = (leat__anim_rect){a.at.x, a.at.y, a.at.width, a.at.height};
    f->dispose = a.clear;
    f->at = a.next;
    return 0;
}

const leat__codec_ops leat__codec_ops_webp = {
    .name = "webp",
    .sniff = webp_sniff,
    .probe = webp_probe,
    .open = webp_open,
    .close = webp_close,
    .decode = webp_decode,
    .count_frames = webp_count_frames,
    .next_frame = webp_next_frame,
};
