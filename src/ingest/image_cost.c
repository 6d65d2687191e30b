/* SPDX-License-Identifier: Apache-2.0
 *
 * Decode cost as a linear function of bytes and pixels: entropy decoding depends on the bytes, the rest
 * on the pixels. The rates are least-squares fits to full decodes of 400 ImageNet JPEGs and 50 images of
 * each other kind on one vCPU of an AMD EPYC (libjpeg-turbo 2.1.5). The mean error is 3 to 7 % for JPEG,
 * 6 to 14 % for PNG and WebP. Rates of tiles were measured during the design of the tile codec. The
 * bytes of a pack depend on these numbers: change them only with the format.
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
    if (info->codec == LEAT__CODEC_JPEG) return jpeg_rate(info);
    if (info->codec == LEAT__CODEC_WEBP && strstr(info->format, "lossless")) return (rate){5900, 7500};
    const leat__codec_facts *f = leat__codec_facts_of(info->codec);
    return (rate){f->cost_kilobyte, f->cost_kilopixel + (uint64_t)f->cost_channel * info->channels};
}

uint32_t leat__image_cost(const leat__image_info *info, size_t bytes)
{
    rate r = rate_of(info);
    uint64_t pixels = (uint64_t)info->width * info->height; /* both far below 2^32 */
    uint64_t us = (bytes / 1000 * r.bytes + pixels / 1000 * r.pixels +
                   (bytes % 1000 * r.bytes + pixels % 1000 * r.pixels) / 1000) /
                  1000;
    if (us == 0) return 1;
    return us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}
