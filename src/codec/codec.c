/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of codecs, and the part of a request that does not depend on the format: checks the region and
 * fills in default limits. A decoder keeps the scratch of each codec it has used, but no state that could
 * affect a later image. One decoder per thread; the table is constant.
 */
#include "codec/codec.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/built_codecs.h" /* generated: LEAT__BUILT_CODECS */
#include "base/str.h"
#include "codec/codec_ops.h"
#include "codec/jpeg_encode.h"
#include "codec/magic.h"
#include "codec/png_encode.h"
#include "codec/raw.h"
#include "dsp/idct_small.h"
#include "probe/cpu.h"

#define MAX_PIXELS UINT64_C(178956970)
#define MAX_OUT_BYTES (UINT64_C(1) << 30)
#define MAX_SCANS 500
#define MAX_WORK UINT64_C(4000000000)

struct leat__decoder {
    void *state[LEAT__CODEC_COUNT];
    bool opened[LEAT__CODEC_COUNT];
};

static const leat__codec_facts facts[LEAT__CODEC_COUNT] = {
    [LEAT__CODEC_NONE] = {.name = "unknown", .label = "unknown", .suffixes = "", .method = "plain"},
#define ROW(id, number, ...) [LEAT__CODEC_##id] = {__VA_ARGS__},
    LEAT_CODEC_MAP(ROW)
#undef ROW
};

/* Decoders in this build; NULL for a format whose library was missing. */
#define DECLARE(id, name) extern const leat__codec_ops leat__codec_ops_##name;
LEAT__BUILT_CODECS(DECLARE)
static const leat__codec_ops *const table[LEAT__CODEC_COUNT] = {
#define ROW(id, name) [LEAT__CODEC_##id] = &leat__codec_ops_##name,
    LEAT__BUILT_CODECS(ROW)
#undef ROW
};

uint32_t leat__sample_bytes(leat__sample_type type)
{
    LEAT_ASSERT((unsigned)type < LEAT__SAMPLE_COUNT);
    static const uint8_t bytes[LEAT__SAMPLE_COUNT] = {1, 2, 4};
    return bytes[type];
}

leat_dtype leat__sample_dtype(leat__sample_type type)
{
    LEAT_ASSERT((unsigned)type < LEAT__SAMPLE_COUNT);
    static const leat_dtype dtypes[LEAT__SAMPLE_COUNT] = {LEAT_DTYPE_U8, LEAT_DTYPE_U16, LEAT_DTYPE_F32};
    return dtypes[type];
}

const char *leat__sample_name(leat__sample_type type)
{
    LEAT_ASSERT((unsigned)type < LEAT__SAMPLE_COUNT);
    static const char *const text[LEAT__SAMPLE_COUNT] = {"uint8", "uint16", "float32"};
    return text[type];
}

static const leat__codec_ops *ops_of(leat__codec_id id)
{
    return (unsigned)id < LEAT__CODEC_COUNT ? table[id] : NULL;
}

const leat__codec_facts *leat__codec_facts_of(leat__codec_id id)
{
    return &facts[(unsigned)id < LEAT__CODEC_COUNT ? id : LEAT__CODEC_NONE];
}

const char *leat__codec_name(leat__codec_id id)
{
    return leat__codec_facts_of(id)->name;
}

leat__codec_id leat__codec_of_suffix(const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *suffix = dot != NULL ? dot + 1 : name;
    const size_t len = strlen(suffix);
    for (int id = 1; id < LEAT__CODEC_COUNT && len > 0; id++)
        for (const char *s = facts[id].suffixes; *s; s += strspn(s, " ")) {
            size_t n = strcspn(s, " ");
            if (n == len && strncasecmp(s, suffix, n) == 0) return (leat__codec_id)id;
            s += n;
        }
    return LEAT__CODEC_NONE;
}

bool leat__codec_built(leat__codec_id id)
{
    return ops_of(id) != NULL;
}

/* Also recognises formats that this build cannot read, so that the error says "png: not in this build"
 * instead of "unknown". */
leat__codec_id leat__codec_sniff(const uint8_t *data, size_t len)
{
    for (int id = 1; id < LEAT__CODEC_COUNT; id++)
        if (table[id] && table[id]->sniff && table[id]->sniff(data, len)) return (leat__codec_id)id;
    return leat__magic(data, len);
}

static int not_built(leat__codec_id id, leat_error *err)
{
    if (id > LEAT__CODEC_NONE && id < LEAT__CODEC_COUNT)
        return leat__fail(err, LEAT_ENOTSUP, "%s images are not part of this build", leat__codec_name(id));
    return leat__fail(err, LEAT_EFORMAT, "not an image format that leat reads");
}

const leat__codec_ops *leat__codec_ops_for(leat__codec_id id)
{
    return ops_of(id);
}

int leat__codec_probe(leat__codec_id id, const uint8_t *data, size_t len, leat__image_info *info,
                      leat_error *err)
{
    const leat__codec_ops *ops = ops_of(id);
    if (!ops) return not_built(id, err);
    memset(info, 0, sizeof *info);
    info->codec = id;
    info->orientation = 1;
    info->bits = 8;
    LEAT_TRY(ops->probe(data, len, info, err));
    LEAT_ASSERT(info->codec == id);
    LEAT_ASSERT(info->channels >= 1);
    if (info->width == 0 || info->height == 0)
        return leat__fail(err, LEAT_EDATA, "%s image of zero size (%u x %u)", ops->name, info->width,
                          info->height);
    return 0;
}

int leat__decoder_open(leat__decoder **d, leat_error *err)
{
    *d = NULL;
    LEAT_TRY(leat__cpu_check(err));
    *d = LEAT_NEW(CODEC, leat__decoder);
    return *d ? 0 : leat__fail_nomem(err, sizeof **d, "a decoder");
}

void leat__decoder_close(leat__decoder **d)
{
    if (!*d) return;
    for (int id = 0; id < LEAT__CODEC_COUNT; id++)
        if ((*d)->opened[id]) table[id]->close(&(*d)->state[id]);
    leat__free(*d);
    *d = NULL;
}

void leat__decode_limits_fill(leat__decode_limits *limits)
{
    if (limits->max_pixels == 0) limits->max_pixels = MAX_PIXELS;
    if (limits->max_out_bytes == 0) limits->max_out_bytes = MAX_OUT_BYTES;
    if (limits->max_scans == 0) limits->max_scans = MAX_SCANS;
    if (limits->max_work == 0) limits->max_work = MAX_WORK;
}

int leat__decode_limits_check(const leat__decode_limits *limits, const leat__image_info *info,
                              leat_error *err)
{
    uint64_t pixels = (uint64_t)info->width * info->height;
    if (pixels > limits->max_pixels)
        return leat__fail(err, LEAT_ELIMIT, "%u x %u pixels are over the limit of %llu", info->width,
                          info->height, (unsigned long long)limits->max_pixels);
    return 0;
}

bool leat__decode_over(uint32_t width, uint32_t height)
{
    return (uint64_t)width * height > MAX_PIXELS;
}

static int check_bytes(const leat__decode_limits *limits, uint32_t width, uint32_t height, uint32_t channels,
                       leat__sample_type type, leat_error *err)
{
    uint64_t out = (uint64_t)width * height; /* fits: both are 32 bits */
    if (channels >= 1 && channels <= LEAT__CHANNELS_MAX &&
        leat__mul_u64(out, (uint64_t)channels * leat__sample_bytes(type), &out) &&
        out <= limits->max_out_bytes)
        return 0;
    return leat__fail(err, LEAT_ELIMIT, "%u x %u x %u bytes are over the limit of %s", width, height,
                      channels * leat__sample_bytes(type), leat__as_size(limits->max_out_bytes).text);
}

int leat__decode_limits_whole(const leat__decode_limits *limits, const leat__image_info *info,
                              leat_error *err)
{
    leat__decode_limits l = *limits;
    leat__decode_limits_fill(&l);
    LEAT_TRY(leat__decode_limits_check(&l, info, err));
    LEAT_TRY(check_bytes(&l, info->width, info->height, info->channels, info->type, err));
    bool scans = info->codec == LEAT__CODEC_JPEG || info->codec == LEAT__CODEC_TILE;
    if (scans && (uint64_t)info->width * info->height > l.max_work) /* at least one scan */
        return leat__fail(err, LEAT_ELIMIT,
                          "a scan of %u x %u pixels is over the limit of %llu on "
                          "pixels times scans",
                          info->width, info->height, (unsigned long long)l.max_work);
    return 0;
}

/* Components have at most as many bytes as pixels, so the limit on pixels also covers them. */
static int check_parts(const leat__image_info *info, const leat__decode_request *request, leat_error *err)
{
    for (uint32_t c = 0; c < info->channels; c++) {
        const leat__ycc_part *p = &request->parts[c];
        if (info->chroma_h == 0 || p->shrink >= LEAT__IDCT_SHRINKS)
            return leat__fail(err, LEAT_EINVAL, "this image cannot be decoded by components");
        uint32_t across = (c == 0 ? 1 : info->chroma_h) << p->shrink;
        uint32_t down = (c == 0 ? 1 : info->chroma_v) << p->shrink;
        uint64_t width = leat__ceil_div(info->width, across);
        uint64_t height = leat__ceil_div(info->height, down);
        if (p->width == 0 || p->height == 0 || !leat__range_inside(p->x, p->width, width) ||
            !leat__range_inside(p->y, p->height, height))
            return leat__fail(err, LEAT_EINVAL,
                              "part %u x %u at (%u, %u) is not inside the "
                              "component",
                              p->width, p->height, p->x, p->y);
    }
    return 0;
}

/* Checks the request and fills *job from it. */
static int check_request(const leat__codec_ops *ops, const leat__image_info *info,
                         const leat__decode_request *request, leat__decode_job *job, leat_error *err)
{
    job->scale_denom = request->scale_denom ? request->scale_denom : 1;
    bool known =
        job->scale_denom == 1 || job->scale_denom == 2 || job->scale_denom == 4 || job->scale_denom == 8;
    if (!known || (job->scale_denom > 1 && !ops->scales))
        return leat__fail(err, LEAT_EINVAL, "%s images cannot be decoded at 1/%u", ops->name,
                          job->scale_denom);
    uint32_t full_w = leat__scaled_side(info->width, job->scale_denom);
    uint32_t full_h = leat__scaled_side(info->height, job->scale_denom);
    job->x = request->x;
    job->y = request->y;
    job->width = request->width;
    job->height = request->height;
    if (request->width == 0) {
        job->x = job->y = 0;
        job->width = full_w;
        job->height = full_h;
    }
    if (job->height == 0 || !leat__range_inside(job->x, job->width, full_w) ||
        !leat__range_inside(job->y, job->height, full_h))
        return leat__fail(err, LEAT_EINVAL, "region %u x %u at (%u, %u) is not inside the %u x %u image",
                          job->width, job->height, job->x, job->y, full_w, full_h);
    job->whole = request->parts ? request->to_end : job->width == full_w && job->height == full_h;
    job->parts = request->parts;
    if (request->parts) LEAT_TRY(check_parts(info, request, err));
    job->limits = request->limits;
    leat__decode_limits_fill(&job->limits);
    LEAT_TRY(leat__decode_limits_check(&job->limits, info, err));
    return check_bytes(&job->limits, job->width, job->height, info->channels, info->type, err);
}

/* Refuses wide images unless the caller accepts them: samples are never silently reduced to 8 bits, nor
 * channels dropped. */
static int check_wide(const leat__image_info *info, bool taken, leat_error *err)
{
    if (!leat__image_wide(info) || taken) return 0;
    return leat__fail(err, LEAT_EFORMAT,
                      "%s samples with %u channel%s: only 8-bit images of 1, 3 or 4 channels are handled "
                      "here",
                      leat__sample_name(info->type), info->channels, info->channels == 1 ? "" : "s");
}

int leat__codec_decode(leat__decoder *d, const leat__image_info *info, const uint8_t *data, size_t len,
                       const leat__decode_request *request, const leat__row_sink *sink, leat_error *err)
{
    static const leat__decode_request whole;
    if (!request) request = &whole;
    const leat__codec_ops *ops = ops_of(info->codec);
    if (!ops) return not_built(info->codec, err);
    leat__decode_job job = {.info = info,
                            .data = data,
                            .len = len,
                            .tables = request->tables,
                            .entries = request->entries,
                            .entries_len = request->entries_len,
                            .sink = sink};
    LEAT_TRY(check_wide(info, sink->wide != NULL, err));
    LEAT_TRY(check_request(ops, info, request, &job, err));
    if (!d->opened[info->codec] && ops->open) {
        LEAT_TRY(ops->open(&d->state[info->codec], err));
        d->opened[info->codec] = true;
    }
    return ops->decode(d->state[info->codec], &job, err);
}

static int collect(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride)
{
    leat__planes *out = ctx;
    for (uint32_t c = 0; c < out->channels; c++)
        for (uint32_t i = 0; i < count; i++)
            memcpy(out->plane[c] + (y + i) * out->stride, plane[c] + i * stride, out->width);
    return 0;
}

int leat__codec_decode_planes(leat__decoder *d, const leat__image_info *info, const uint8_t *data, size_t len,
                              const leat__decode_request *request, leat__planes *out, leat_error *err)
{
    static const leat__decode_request whole;
    if (!request) request = &whole;
    const leat__codec_ops *ops = ops_of(info->codec);
    if (!ops) return not_built(info->codec, err);
    leat__decode_job job = {.info = info};
    LEAT_TRY(check_wide(info, false, err));
    LEAT_TRY(check_request(ops, info, request, &job, err));
    LEAT_TRY(leat__planes_resize(out, job.width, job.height, info->channels, err));
    leat__row_sink sink = {collect, out};
    return leat__codec_decode(d, info, data, len, request, &sink, err);
}

int leat__codec_encode(leat__codec_id id, const leat__planes *image, const leat__encode_opts *opts,
                       struct leat__buf *out, leat_error *err)
{
    static const leat__encode_opts defaults;
    if (!opts) opts = &defaults;
    if (image->width == 0 || image->height == 0)
        return leat__fail(err, LEAT_EINVAL, "an empty image cannot be encoded");
    if (id == LEAT__CODEC_JPEG) return leat__jpeg_encode(image, opts, out, err);
    if (id == LEAT__CODEC_RAW) return leat__raw_encode(image, opts, out, err);
#ifdef LEAT_HAVE_PNG
    if (id == LEAT__CODEC_PNG) return leat__png_encode(image, opts, out, err);
#endif
    return leat__fail(err, LEAT_ENOTSUP, "%s images cannot be written from pixels", leat__codec_name(id));
}
