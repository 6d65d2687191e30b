/* SPDX-License-Identifier: Apache-2.0
 *
 * Image codecs behind one table. A codec reads the headers of an encoded image and decodes a rectangle as
 * *planar rows* into a sink. Parts that are not needed are not decoded, and codecs that can stream never
 * hold more than a band of rows.
 *
 *   probe  -> width, height, channels, orientation: cheap, reads headers only
 *   decode -> calls the sink with bands of rows, top to bottom
 *
 * Input is not trusted: every codec checks every length before use, obeys the limits, and reports damage
 * as LEAT_EDATA with the byte offset. Encoded input must be followed by LEAT__CODEC_PADDING readable bytes
 * (their values do not matter). One decoder per thread. Third-party headers and setjmp stay inside this
 * module.
 */
#ifndef LEAT_CODEC_CODEC_H
#define LEAT_CODEC_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <leat/pack.h>

#include "base/error.h"
#include "codec/codec_map.h"
#include "dsp/ycc_resizer.h"

#define LEAT__CODEC_PADDING 64

/* How an image is stored in a sample: LEAT__CODEC_JPEG = 1 and so on, from the table of formats. */
/* clang-format off */
typedef enum leat__codec_id {
    LEAT__CODEC_NONE = 0,
#define LEAT__CODEC_ROW(id, number, ...) LEAT__CODEC_##id = number,
    LEAT_CODEC_MAP(LEAT__CODEC_ROW)
#undef LEAT__CODEC_ROW
    LEAT__CODEC_COUNT
} leat__codec_id;
/* clang-format on */

/* A row of the table of formats: codec_map.h explains its columns. */
typedef struct leat__codec_facts {
    const char *name, *label, *suffixes;
    uint32_t memory, cost_kilobyte, cost_kilopixel, cost_channel;
    const char *method;
    uint32_t lossless;
    const char *media;
} leat__codec_facts;

/* Type of one sample of a pixel. */
typedef enum leat__sample_type {
    LEAT__SAMPLE_U8 = 0,
    LEAT__SAMPLE_U16 = 1,
    LEAT__SAMPLE_F32 = 2,
    LEAT__SAMPLE_COUNT
} leat__sample_type;
#define LEAT__CHANNELS_MAX 16

uint32_t leat__sample_bytes(leat__sample_type type);
leat_dtype leat__sample_dtype(leat__sample_type type);
const char *leat__sample_name(leat__sample_type type); /* "uint16" */

typedef struct leat__image_info {
    leat__codec_id codec;
    uint32_t width, height;      /* as stored, before orientation */
    uint32_t channels;           /* of decoded images: 1 grey, 3 RGB, 4 RGBA; wide images: 1 to 16 */
    uint32_t orientation;        /* EXIF 1..8; 1 when the file has none */
    uint32_t bits;               /* per sample in the file */
    leat__sample_type type;      /* of decoded samples */
    bool progressive, cmyk;      /* JPEG; CMYK and YCCK are decoded to RGB, as Pillow converts them */
    uint32_t chroma_h, chroma_v; /* pixels per chroma sample (1 when grey) if components can be decoded
                                    instead of pixels, else 0 */
    char format[24];             /* for people: "jpeg 4:2:0", "png rgba" … */
    bool palette;                /* set `indices` to get palette indices instead of colours */
    bool animated;               /* more frames or pages follow the first, the only one decoded */
    bool indices;                /* set by leat__image_as_indices: decode delivers indices, in one plane */
    uint64_t memory;             /* maximum bytes that decoding the whole image takes, besides the file,
                                    bands of rows and what the sink keeps; headers cannot tell all of it */
} leat__image_info;

/* Makes a palette image decode to palette indices (class ids of masks) instead of colours. Other images do
 * not change. */
static inline void leat__image_as_indices(leat__image_info *info)
{
    if (!info->palette) return;
    info->indices = true;
    info->channels = 1;
}

/* True for an image that does not fit 8-bit planes: other sample types, or 2 or 5 to 16 channels. */
static inline bool leat__image_wide(const leat__image_info *info)
{
    return info->type != LEAT__SAMPLE_U8 || info->channels == 2 || info->channels > 4;
}

/* Zero means the default in the comment. */
typedef struct leat__decode_limits {
    uint64_t max_pixels;    /* 178,956,970 (Pillow's bomb limit) */
    uint64_t max_out_bytes; /* 1 GiB */
    uint32_t max_scans;     /* JPEG: 500 */
    uint64_t max_work;      /* JPEG: pixels times scans, 4,000,000,000 */
} leat__decode_limits;
/* Returns LEAT_ELIMIT when the whole image exceeds a limit, however it is stored: its pixels, its
 * bytes, or the minimum work to decode it. */
int leat__decode_limits_whole(const leat__decode_limits *limits, const leat__image_info *info,
                              leat_error *err) LEAT_MUST_CHECK;

/* True when an image of this size has more pixels than the default allows. */
bool leat__decode_over(uint32_t width, uint32_t height);

/* Receives bands of planar rows: rows y .. y+count-1 of the region, top to bottom, each row once. plane[c]
 * points at row y of channel c; rows are `stride` bytes apart and have as many pixels as the region is wide.
 * 64 bytes before and after each row are readable, with any content. The pixels are valid only during the
 * call. Returns 0 to continue.
 *
 * `part` receives components instead, if they were requested: the next `count` rows of the part of component
 * c. Components alternate.
 *
 * `tile`, if set, gets each tile of a tiled image after it is decoded, before its pixels: its position and a
 * leat__tile_coefs.
 *
 * `blocks`, if set, gets the luma coefficients of ordinary JPEGs before their inverse transform: `count`
 * blocks as in leat__idct_plain_fn, from block x of row y on. Each block of the region comes once.
 *
 * `wide` receives wide images instead of `rows`: `count` rows of the region with interleaved samples in
 * native byte order, not aligned. A sink without it refuses such images. */
typedef struct leat__row_sink {
    int (*rows)(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride);
    void *ctx;
    int (*part)(void *ctx, uint32_t c, uint32_t count, const uint8_t *rows, size_t stride);
    int (*tile)(void *ctx, uint32_t tx, uint32_t ty, const void *coefs);
    void (*blocks)(void *ctx, const int16_t *blocks, uint32_t x, uint32_t y, uint32_t count,
                   const uint16_t quant[64]);
    int (*wide)(void *ctx, uint32_t y, uint32_t count, const uint8_t *pixels, size_t stride);
} leat__row_sink;

typedef struct leat__decode_request {
    uint32_t x, y, width, height; /* region in stored pixels; width 0 = whole image */
    uint32_t scale_denom;         /* JPEG only: 1 (0), 2, 4, 8: decode at 1/n; region is in scaled px */
    /* If set, decodes a part of each component instead of pixels; the region above is ignored. Only if
     * info.chroma_h is not 0. LEAT_ENOTSUP: this file can only be decoded to pixels. */
    const leat__ycc_part *parts;
    bool to_end;            /* parts: LEAT_ENOTSUP unless the JPEG is valid up to its end marker */
    const void *tables;     /* tile codec: decoded tables of the pack (leat__tile_tables) */
    const uint8_t *entries; /* JPEG: its entry points (codec/jpeg_entries.h), or NULL */
    size_t entries_len;
    leat__decode_limits limits;
} leat__decode_request;

/* Owns the scratch of all codecs, which grows as needed. One per thread. */
typedef struct leat__decoder leat__decoder;
int leat__decoder_open(leat__decoder **d, leat_error *err) LEAT_MUST_CHECK;
void leat__decoder_close(leat__decoder **d);

/* Recognises a format by its magic bytes; LEAT__CODEC_NONE when unknown. */
leat__codec_id leat__codec_sniff(const uint8_t *data, size_t len);
/* Finds a format by the suffix of a file name (photo.JPG, .jpg, jpg), in upper or lower case. */
leat__codec_id leat__codec_of_suffix(const char *name);
const leat__codec_facts *leat__codec_facts_of(leat__codec_id id); /* name "unknown" for an unknown id */
const char *leat__codec_name(leat__codec_id id);
bool leat__codec_built(leat__codec_id id); /* part of this build */

/* LEAT_EDATA: damaged. LEAT_EFORMAT: not a format that this codec reads. LEAT_ENOTSUP: not in this build. */
int leat__codec_probe(leat__codec_id id, const uint8_t *data, size_t len, leat__image_info *info,
                      leat_error *err) LEAT_MUST_CHECK;

/* Decodes the region. `info` is the result of probe. LEAT_EDATA: damaged (at err->offset). LEAT_EFORMAT: a
 * kind that the sink does not accept (16-bit PNG …). LEAT_ELIMIT: over a limit. LEAT_ENOTSUP: not in this
 * build. Else the sink's own result. Decoding the whole image (not a region) also proves that the file is
 * valid up to its end marker. */
int leat__codec_decode(leat__decoder *d, const leat__image_info *info, const uint8_t *data, size_t len,
                       const leat__decode_request *request, const leat__row_sink *sink,
                       leat_error *err) LEAT_MUST_CHECK;

/* A whole planar image in memory. Rows are `stride` apart, with the same 64 readable bytes around them as in
 * a sink. Zeroed is empty. */
typedef struct leat__planes {
    uint8_t *plane[4];
    size_t stride;
    uint32_t width, height, channels;
    uint8_t *block; /* owned; grows, never shrinks */
    size_t capacity;
} leat__planes;
int leat__planes_resize(leat__planes *p, uint32_t width, uint32_t height, uint32_t channels,
                        leat_error *err) LEAT_MUST_CHECK;
void leat__planes_reset(leat__planes *p);

/* Decodes the region into `out`, which is resized to fit. */
int leat__codec_decode_planes(leat__decoder *d, const leat__image_info *info, const uint8_t *data, size_t len,
                              const leat__decode_request *request, leat__planes *out,
                              leat_error *err) LEAT_MUST_CHECK;

/* Returns the width or height of an image decoded at 1/denom: libjpeg's rule, rounded up. */
static inline uint32_t leat__scaled_side(uint32_t side, uint32_t denom)
{
    return denom <= 1 ? side : (side + denom - 1) / denom;
}

/* Zero means the default after the colon. */
typedef struct leat__encode_opts {
    uint32_t quality;     /* JPEG 1..100: 90 */
    uint32_t subsampling; /* JPEG: 420, 422 or 444: 420 */
    uint32_t orientation; /* raw: stored in the header; else an EXIF segment when not 1 */
    bool plain_tables;    /* JPEG: use the standard Huffman tables: faster to encode, larger files */
    int (*progress)(void *cookie, uint32_t rows); /* PNG, may be NULL: called after each row with the
                                                     number of rows done; a result other than 0 stops with
                                                     LEAT_ECANCELED */
    void *cookie;
} leat__encode_opts;

/* Encodes pixels, appending to `out`: JPEG (1 or 3 channels; alpha is dropped), PNG if it is in the build,
 * and raw. The tile codec re-codes JPEG coefficients and has its own call in codec/tile/. */
struct leat__buf;
int leat__codec_encode(leat__codec_id id, const leat__planes *image, const leat__encode_opts *opts,
                       struct leat__buf *out, leat_error *err) LEAT_MUST_CHECK;

#endif
