/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a single tag from TIFF directories, and searches XMP for the same tag. Every offset is checked
 * against the block before it is followed, and only the first directory is read, so no input can make it
 * loop. No state, any thread.
 */
#include "codec/exif.h"

#include <stdbool.h>
#include <string.h>

#include "base/num.h"

#define TAG_ORIENTATION 0x0112
#define TYPE_SHORT 3
#define TYPE_LONG 4
#define TYPE_SBYTE 6
#define TYPE_SSHORT 8
#define TYPE_SLONG 9
#define TYPE_IFD 13
#define ENTRY_BYTES 12

static uint32_t get16(const uint8_t *p, bool big)
{
    return big ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

static uint32_t get32(const uint8_t *p, bool big)
{
    return big ? get16(p, true) << 16 | get16(p + 2, true) : get16(p + 2, false) << 16 | get16(p, false);
}

/* Reads a value of the types that Pillow accepts as integers; unsigned BYTE is not one of them. */
static uint32_t entry_value(const uint8_t *entry, bool big)
{
    uint32_t type = get16(entry + 2, big), count = get32(entry + 4, big), value = 0;
    if (count < 1) return 1;
    if (type == TYPE_SHORT || type == TYPE_SSHORT) value = get16(entry + 8, big);
    if (type == TYPE_LONG || type == TYPE_SLONG || type == TYPE_IFD) value = get32(entry + 8, big);
    if (type == TYPE_SBYTE) value = entry[8];
    return value >= 1 && value <= 8 ? value : 1;
}

uint32_t leat__exif_orientation(const uint8_t *data, size_t len)
{
    if (len >= 6 && memcmp(data, "Exif\0\0", 6) == 0) {
        data += 6;
        len -= 6;
    }
    if (len < 8) return LEAT__EXIF_NONE;
    bool big = memcmp(data, "MM\0*", 4) == 0;
    if (!big && memcmp(data, "II*\0", 4) != 0) return LEAT__EXIF_NONE;
    uint32_t at = get32(data + 4, big);
    if (!leat__range_inside(at, 2, len)) return LEAT__EXIF_NONE;
    uint32_t entries = get16(data + at, big);
    size_t pos = (size_t)at + 2;
    for (uint32_t i = 0; i < entries; i++, pos += ENTRY_BYTES) {
        if (!leat__range_inside(pos, ENTRY_BYTES, len)) return LEAT__EXIF_NONE;
        if (get16(data + pos, big) == TAG_ORIENTATION) return entry_value(data + pos, big);
    }
    return LEAT__EXIF_NONE;
}

uint32_t leat__xmp_orientation(const uint8_t *data, size_t len)
{
    static const char name[] = "tiff:Orientation";
    const size_t n = sizeof name - 1;
    const uint8_t *at = data, *end = data + len;
    while ((at = memmem(at, (size_t)(end - at), name, n)) != NULL) {
        at += n;
        size_t sign = end - at >= 3 && memcmp(at, "=\"", 2) == 0 ? 2 : 1;
        if ((size_t)(end - at) <= sign || (sign == 1 && at[0] != '>')) continue;
        uint32_t digit = (uint32_t)at[sign] - '0';
        if (digit <= 9) return digit >= 1 && digit <= 8 ? digit : 1;
    }
    return LEAT__EXIF_NONE;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

uint32_t leat__profile_orientation(const uint8_t *text, size_t len)
{
    enum { ENOUGH = 8192 }; /* the first directory is at the start */
    uint8_t block[ENOUGH];
    size_t n = 0, at = 0;
    for (uint32_t lines = 0; lines < 3 && at < len; at++) lines += text[at] == '\n';
    for (int high = -1; at < len && n < sizeof block; at++) {
        int digit = hex_digit(text[at]);
        if (digit < 0) continue;
        if (high < 0) {
            high = digit;
        } else {
            block[n++] = (uint8_t)(high << 4 | digit);
            high = -1;
        }
    }
    return leat__exif_orientation(block, n);
}

uint32_t leat__orientation_of(const leat__exif_seen *seen)
{
    uint32_t value = seen->has_exif ? seen->exif : seen->profile;
    if (value == LEAT__EXIF_NONE) value = seen->xmp;
    return value == LEAT__EXIF_NONE ? 1 : value;
}

size_t leat__exif_minimal(uint32_t orientation, uint8_t out[LEAT__EXIF_MINIMAL])
{
    static const uint8_t block[LEAT__EXIF_MINIMAL] = {
        /* clang-format off */
        'E', 'x', 'i', 'f', 0, 0, 'I', 'I', '*', 0, 8, 0, 0, 0, /* directory at 8 */
        1, 0,                                                   /* one entry */
        0x12, 0x01, TYPE_SHORT, 0, 1, 0, 0, 0, 1, 0, 0, 0,      /* orientation: the 1 */
        0, 0, 0, 0};                                            /* no next directory */
    /* clang-format on */
    memcpy(out, block, sizeof block);
    out[24] = (uint8_t)orientation;
    return sizeof block;
}
