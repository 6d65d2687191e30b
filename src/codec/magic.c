/* SPDX-License-Identifier: Apache-2.0
 *
 * Magic bytes: see magic.h.
 */
#include "codec/magic.h"

#include <string.h>

#include "base/num.h"

static bool starts(const uint8_t *data, size_t len, const void *with, size_t n)
{
    return len >= n && memcmp(data, with, n) == 0;
}

bool leat__magic_tiff(const uint8_t *data, size_t len)
{
    return starts(data, len, "II*\0", 4) || starts(data, len, "MM\0*", 4) || starts(data, len, "II+\0", 4) ||
           starts(data, len, "MM\0+", 4); /* the last two: BigTIFF */
}

bool leat__magic_jxl(const uint8_t *data, size_t len)
{
    return starts(data, len, "\xff\x0a", 2) || starts(data, len, "\0\0\0\x0cJXL \r\n\x87\n", 12);
}

/* True when the file type box has one of these brands, four letters each. */
static bool has_brand(const uint8_t *data, size_t len, const char *brands)
{
    if (len < 16 || memcmp(data + 4, "ftyp", 4) != 0) return false;
    size_t size = (size_t)data[0] << 24 | (size_t)data[1] << 16 | (size_t)data[2] << 8 | data[3];
    size = LEAT_MIN(size, LEAT_MIN(len, (size_t)256));
    for (size_t at = 8; at + 4 <= size; at += at == 8 ? 8 : 4) /* 12: the minor version */
        for (const char *b = brands; *b; b += 4)
            if (memcmp(data + at, b, 4) == 0) return true;
    return false;
}

bool leat__magic_avif(const uint8_t *data, size_t len)
{
    return has_brand(data, len, "avifavis");
}

bool leat__magic_heif(const uint8_t *data, size_t len)
{
    return !leat__magic_avif(data, len) && has_brand(data, len, "heicheixheimheishevchevxmif1msf1");
}

leat__codec_id leat__magic(const uint8_t *data, size_t len)
{
    if (starts(data, len, "\x89PNG\r\n\x1a\n", 8)) return LEAT__CODEC_PNG;
    if (len >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0)
        return LEAT__CODEC_WEBP;
    if (leat__magic_tiff(data, len)) return LEAT__CODEC_TIFF;
    if (leat__magic_avif(data, len)) return LEAT__CODEC_AVIF;
    if (leat__magic_jxl(data, len)) return LEAT__CODEC_JXL;
    if (leat__magic_heif(data, len)) return LEAT__CODEC_HEIF;
    return LEAT__CODEC_NONE;
}
