/* SPDX-License-Identifier: Apache-2.0
 *
 * Raw images. Decoding a region copies its rows. The only damage detected here is a length that does not
 * match the header; the pack's checksum protects the pixels.
 */
#include "codec/raw.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/num.h"
#include "codec/codec_ops.h"
#include "codec/planes.h"

#define VERSION 1
#define VERSION_WIDE 2

static bool raw_sniff(const uint8_t *data, size_t len)
{
    return len >= LEAT__RAW_HEADER && memcmp(data, "LRAW", 4) == 0;
}

static int bad(leat_error *err, size_t offset, const char *what)
{
    leat__fail(err, LEAT_EDATA, "raw image: %s", what);
    leat__error_at(err, NULL, -1, (int64_t)offset);
    return LEAT_EDATA;
}

static int probe_kind(const uint8_t *data, leat__image_info *info, leat_error *err)
{
    if (data[4] == VERSION) {
        if (info->channels == 1 || info->channels == 3 || info->channels == 4) return 0;
        return bad(err, 5, "channels are not 1, 3 or 4");
    }
    if (info->channels < 1 || info->channels > LEAT__CHANNELS_MAX)
        return bad(err, 5, "channels are not 1 to 16");
    if (data[7] >= LEAT__SAMPLE_COUNT) return bad(err, 7, "unknown type of samples");
    info->type = (leat__sample_type)data[7];
    info->bits = 8 * leat__sample_bytes(info->type);
    return leat__image_wide(info) ? 0 : bad(err, 4, "version 2, but the image must be stored as version 1");
}

static int raw_probe(const uint8_t *data, size_t len, leat__image_info *info, leat_error *err)
{
    if (!raw_sniff(data, len)) return bad(err, 0, "no header");
    if (data[4] != VERSION && data[4] != VERSION_WIDE)
        return leat__fail(err, LEAT_EFORMAT, "raw image of version %u", data[4]);
    info->channels = data[5];
    LEAT_TRY(probe_kind(data, info, err));
    info->orientation = data[6];
    info->width = leat__load_u32(data + 8);
    info->height = leat__load_u32(data + 12);
    if (info->orientation < 1 || info->orientation > 8) return bad(err, 6, "no orientation");
    uint64_t bytes;
    if (!leat__mul_u64((uint64_t)info->width * info->height, info->channels * leat__sample_bytes(info->type),
                       &bytes) ||
        bytes != len - LEAT__RAW_HEADER)
        return bad(err, len, "length does not match width, height and channels");
    static const char *const kind[] = {"", "raw grey", "", "raw rgb", "raw rgba"};
    if (leat__image_wide(info))
        snprintf(info->format, sizeof info->format, "raw %s x %u", leat__sample_name(info->type),
                 info->channels);
    else snprintf(info->format, sizeof info->format, "%s", kind[info->channels]);
    return 0;
}

static int raw_open(void **state, leat_error *err)
{
    *state = LEAT_NEW(CODEC, leat__band);
    return *state ? 0 : leat__fail_nomem(err, sizeof(leat__band), "a band of rows");
}

static void raw_close(void **state)
{
    leat__band_reset(*state);
    leat__free(*state);
    *state = NULL;
}

static int raw_decode(void *state, const leat__decode_job *job, leat_error *err)
{
    leat__band *band = state;
    leat__image_info now = {.orientation = 1};
    LEAT_TRY(raw_probe(job->data, job->len, &now, err));
    if (now.width != job->info->width || now.height != job->info->height ||
        now.channels != job->info->channels || now.type != job->info->type)
        return bad(err, 8, "header does not match what was probed");
    const size_t pixel = (size_t)now.channels * leat__sample_bytes(now.type), stride = now.width * pixel;
    const uint8_t *src = job->data + LEAT__RAW_HEADER + job->y * stride + job->x * pixel;
    if (leat__image_wide(&now)) return job->sink->wide(job->sink->ctx, 0, job->height, src, stride);
    LEAT_TRY(leat__band_fit(band, job->width, now.channels, err));
    for (uint32_t y = 0; y < job->height; y++, src += stride) {
        uint8_t *row[4];
        leat__band_next(band, row);
        leat__planar_split(src, job->width, now.channels, row);
        band->count++;
        if (leat__band_full(band) || y + 1 == job->height) {
            LEAT_TRY(leat__band_flush(band, job->sink, y + 1 - band->count));
        }
    }
    return 0;
}

void leat__raw_header(uint8_t header[LEAT__RAW_HEADER], uint32_t width, uint32_t height, uint32_t channels,
                      leat__sample_type type, uint32_t orientation)
{
    const leat__image_info info = {.channels = channels, .type = type};
    memset(header, 0, LEAT__RAW_HEADER);
    memcpy(header, "LRAW", 4);
    header[4] = leat__image_wide(&info) ? VERSION_WIDE : VERSION;
    header[5] = (uint8_t)channels;
    header[6] = orientation >= 1 && orientation <= 8 ? (uint8_t)orientation : 1;
    header[7] = (uint8_t)type;
    leat__store_u32(header + 8, width);
    leat__store_u32(header + 12, height);
}

int leat__raw_encode_wide(const void *pixels, uint32_t width, uint32_t height, uint32_t channels,
                          leat__sample_type type, uint32_t orientation, leat__buf *out, leat_error *err)
{
    uint64_t bytes;
    size_t total;
    uint8_t header[LEAT__RAW_HEADER];
    if (channels < 1 || channels > LEAT__CHANNELS_MAX)
        return leat__fail(err, LEAT_EINVAL, "an image of %u channels: 1 to %d are possible", channels,
                          LEAT__CHANNELS_MAX);
    if (!leat__mul_u64((uint64_t)width * height, channels * leat__sample_bytes(type), &bytes) ||
        !leat__u64_to_size(bytes, &total) || total > SIZE_MAX - LEAT__RAW_HEADER)
        return leat__fail(err, LEAT_EOVERFLOW, "a raw image of %u x %u is too large", width, height);
    leat__raw_header(header, width, height, channels, type, orientation);
    if (leat__buf_reserve(out, total + sizeof header) != 0)
        return leat__fail_nomem(err, total, "a raw image");
    leat__buf_append(out, header, sizeof header);
    leat__buf_append(out, pixels, total);
    return 0;
}

int leat__raw_encode(const leat__planes *image, const leat__encode_opts *opts, leat__buf *out,
                     leat_error *err)
{
    uint64_t bytes;
    size_t total;
    if (image->channels != 1 && image->channels != 3 && image->channels != 4)
        return leat__fail(err, LEAT_EINVAL, "a raw image cannot hold %u channels", image->channels);
    if (!leat__mul_u64((uint64_t)image->width * image->height, image->channels, &bytes) ||
        !leat__add_u64(bytes, LEAT__RAW_HEADER, &bytes) || !leat__u64_to_size(bytes, &total))
        return leat__fail(err, LEAT_EOVERFLOW, "a raw image of %u x %u is too large", image->width,
                          image->height);
    int rc = leat__buf_reserve(out, total);
    if (rc != 0) return leat__fail(err, rc, "no room for a raw image of %zu bytes", total);
    uint8_t header[LEAT__RAW_HEADER];
    leat__raw_header(header, image->width, image->height, image->channels, LEAT__SAMPLE_U8,
                     opts->orientation);
    leat__buf_append(out, header, sizeof header);
    size_t stride = (size_t)image->width * image->channels;
    for (uint32_t y = 0; y < image->height; y++) {
        const uint8_t *plane[4] = {NULL};
        for (uint32_t c = 0; c < image->channels; c++) plane[c] = image->plane[c] + y * image->stride;
        leat__planar_join(plane, image->width, image->channels, (uint8_t *)out->data + out->len);
        out->len += stride; /* reserved above */
    }
    out->data[out->len] = 0;
    return 0;
}

const leat__codec_ops leat__codec_ops_raw = {
    .name = "raw",
    .sniff = raw_sniff,
    .probe = raw_probe,
    .open = raw_open,
    .close = raw_close,
    .decode = raw_decode,
};
