/* SPDX-License-Identifier: Apache-2.0
 *
 * Decode cost as a linear function of bytes and pixels: entropy decoding depends on the bytes,
 * the rest on the pixels. The rates are least-squares fits to full decodes of 400 ImageNet JPEGs
 * and 50 images of each other kind on one vCPU of an AMD EPYC (libjpeg-turbo 2.1.5). The mean
 * error is 3 to 7 % for JPEG, 6 to 14 % for PNG and WebP. Tiles: measured during the design of
 * the tile codec. A pack's bytes depend on these numbers: change them only with the format.
 */
#include "ingest/image_cost.h"

#include <string.h>

/* Nanoseconds per 1000 bytes and per 1000 pixels. */
typedef struct rate {
    uint64_t bytes, pixels;
} rate;

static rate jpeg_rate(const leat__image_info *info)
{
    if (info->progressive) return (rate){24500, 3300};
    if (info->cmyk) return (rate){7200, 3500};
    if (info->channels == 1) return (rate){7200, 420};
    if (strstr(info->format, "4:2:0")) return (rate){7100, 1350};
    if (strstr(info->format, "4:4:4")) return (rate){7250, 2050};
    return (rate){6800, 1780};
}

static rate rate_of(const leat__image_info *info)
{
    switch (info->codec) {
    case LEAT__CODEC_JPEG:
        return jpeg_rate(info);
    case LEAT__CODEC_PNG:
        return (rate){6330, 4100 * (uint64_t)info->channels};
    case LEAT__CODEC_WEBP:
        return strstr(info->format, "lossless") ? (rate){5900, 7500} : (rate){44100, 2900};
    case LEAT__CODEC_GIF:
        return (rate){6000, 3000};
    case LEAT__CODEC_TIFF:
        return (rate){5000, 1000 * (uint64_t)info->channels};
    case LEAT__CODEC_AVIF:
    case LEAT__CODEC_HEIF:
        return (rate){60000, 6000};
    case LEAT__CODEC_JXL:
        return (rate){60000, 15000};
    case LEAT__CODEC_TILE:
        return (rate){1800, 950};
    default:
        return (rate){0, 100 * (uint64_t)info->channels};
    }
}

uint32_t leat__image_cost(const leat__image_info *info, size_t bytes)
{
    rate r = rate_of(info);
    uint64_t pixels = (uint64_t)info->width * info->height; /* both far below 2^32 */
    uint64_t us = (bytes / 1000 * r.bytes + pixels / 1000 * r.pixels +
                   (bytes % 1000 * r.bytes + pixels % 1000 * r.pixels) / 1000) / 1000;
    if (us == 0) return 1;
    return us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}
