/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes TIFF: see tiff_encode.h. The file consists of header, one directory, values that do not fit into
 * its entries, and the pixels.
 */
#include "codec/tiff_encode.h"

#include <string.h>

#include "base/bytes.h"
#include "base/num.h"

enum { SHORT = 3, LONG = 4 };
enum { ENTRIES = 13, DIRECTORY = 8, VALUES = DIRECTORY + 2 + 12 * ENTRIES + 4 };
enum { VALUES_MAX = 3 * LEAT__CHANNELS_MAX * 2 }; /* bits, format and extra samples of each channel */

/* The start of the file being written. */
typedef struct head {
    uint8_t bytes[VALUES + VALUES_MAX];
    size_t entry, value; /* positions of the next ones */
} head;

/* Adds an entry with `count` times the same number. */
static void put(head *h, uint16_t tag, uint16_t type, uint32_t count, uint32_t number)
{
    uint8_t *const e = h->bytes + h->entry;
    h->entry += 12;
    leat__store_u16(e, tag);
    leat__store_u16(e + 2, type);
    leat__store_u32(e + 4, count);
    if (type == LONG) {
        leat__store_u32(e + 8, number);
        return;
    }
    uint8_t *to = e + 8;
    if (count > 2) {
        leat__store_u32(e + 8, (uint32_t)h->value);
        to = h->bytes + h->value;
        h->value += 2 * (size_t)count;
    }
    for (uint32_t i = 0; i < count; i++) leat__store_u16(to + 2 * i, (uint16_t)number);
}

static void make_head(head *h, const leat__wide *im, uint32_t orientation, uint32_t size)
{
    const uint32_t n = im->channels, colours = n == 3 || n == 4 ? 3 : 1, extra = n - colours;
    *h = (head){.entry = DIRECTORY + 2, .value = VALUES};
    memcpy(h->bytes, "II*\0", 4);
    leat__store_u32(h->bytes + 4, DIRECTORY);
    leat__store_u16(h->bytes + DIRECTORY, extra > 0 ? ENTRIES : ENTRIES - 1);
    put(h, 256, LONG, 1, im->width);
    put(h, 257, LONG, 1, im->height);
    put(h, 258, SHORT, n, 8 * leat__sample_bytes(im->type));
    put(h, 259, SHORT, 1, 1);                    /* no compression */
    put(h, 262, SHORT, 1, colours == 3 ? 2 : 1); /* RGB, or 0 is black */
    put(h, 273, LONG, 1, VALUES + VALUES_MAX);   /* the strip */
    put(h, 274, SHORT, 1, orientation);
    put(h, 277, SHORT, 1, n);
    put(h, 278, LONG, 1, im->height);
    put(h, 279, LONG, 1, size);
    put(h, 284, SHORT, 1, 1); /* interleaved samples */
    if (extra > 0) put(h, 338, SHORT, extra, 0);
    put(h, 339, SHORT, n, im->type == LEAT__SAMPLE_F32 ? 3 : 1);
}

int leat__tiff_encode(const leat__wide *image, uint32_t orientation, leat__buf *out, leat_error *err)
{
    const size_t line = image->width * leat__wide_pixel(image);
    uint64_t size;
    head h;
    if (!leat__mul_u64(line, image->height, &size) || size > UINT32_MAX - sizeof h.bytes)
        return leat__fail(err, LEAT_EOVERFLOW, "an image of %u x %u is too large for a TIFF file",
                          image->width, image->height);
    make_head(&h, image, orientation >= 1 && orientation <= 8 ? orientation : 1, (uint32_t)size);
    if (leat__buf_reserve(out, sizeof h.bytes + (size_t)size) != 0)
        return leat__fail_nomem(err, size, "a TIFF file");
    leat__buf_append(out, h.bytes, sizeof h.bytes);
    for (uint32_t y = 0; y < image->height; y++) leat__buf_append(out, leat__wide_row(image, y), line);
    return 0;
}
