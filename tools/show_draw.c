/* SPDX-License-Identifier: Apache-2.0
 *
 * See show_draw.h. Running out of memory is reported by the status of the buffer.
 */
#include "show_draw.h"

#include <string.h>

#include "base/mem.h"
#include "codec/codec.h"

#define LEVELS 6u /* levels of each colour in the palette */
#define COLOURS (LEVELS * LEVELS * LEVELS)
#define KITTY_CHUNK 4096u

show_how show_detect(const char *term, const char *program, const char *kitty)
{
    static const char *const sixels[] = {"sixel", "foot", "mlterm", "yaft", "contour"};
    const char *t = term != NULL ? term : "", *p = program != NULL ? program : "";
    if (kitty != NULL || strstr(t, "kitty") != NULL || strstr(t, "ghostty") != NULL ||
        strcmp(p, "WezTerm") == 0 || strcmp(p, "ghostty") == 0)
        return SHOW_KITTY;
    for (size_t i = 0; i < sizeof sixels / sizeof *sixels; i++)
        if (strstr(t, sixels[i]) != NULL) return SHOW_SIXEL;
    return SHOW_BLOCKS;
}

static const uint8_t *pixel(const show_picture *p, uint32_t x, uint32_t y)
{
    static const uint8_t black[3];
    return y < p->height ? p->rgb + ((size_t)y * p->width + x) * 3 : black;
}

static uint32_t palette(const uint8_t *c)
{
    uint32_t n = 0;
    for (int i = 0; i < 3; i++) n = n * LEVELS + (c[i] * (LEVELS - 1) + 127) / 255;
    return n;
}

void show_blocks(const show_picture *p, bool rich, leat__buf *out)
{
    for (uint32_t y = 0; y < p->height; y += 2) {
        for (uint32_t x = 0; x < p->width; x++) {
            const uint8_t *a = pixel(p, x, y), *b = pixel(p, x, y + 1);
            if (rich)
                (void)leat__buf_printf(out, "\033[38;2;%u;%u;%u;48;2;%u;%u;%um\xe2\x96\x80", a[0], a[1], a[2],
                                       b[0], b[1], b[2]);
            else
                (void)leat__buf_printf(out, "\033[38;5;%u;48;5;%um\xe2\x96\x80", 16 + palette(a),
                                       16 + palette(b));
        }
        (void)leat__buf_puts(out, "\033[0m\n");
    }
}

/* Writes one colour of a band of six rows, run-length encoded. */
static void sixel_row(const show_picture *p, uint32_t y, uint32_t colour, leat__buf *out)
{
    uint32_t run = 0;
    int last = -1;
    for (uint32_t x = 0; x <= p->width; x++) {
        int bits = -1;
        if (x < p->width) {
            bits = 0;
            for (uint32_t k = 0; k < 6 && y + k < p->height; k++)
                if (palette(pixel(p, x, y + k)) == colour) bits |= 1 << k;
        }
        if (bits != last && run > 0) (void)leat__buf_printf(out, "!%u%c", run, 63 + last);
        run = bits == last ? run + 1 : 1;
        last = bits;
    }
}

void show_sixel(const show_picture *p, leat__buf *out)
{
    (void)leat__buf_printf(out, "\033P0;1;0q\"1;1;%u;%u", p->width, p->height);
    for (uint32_t c = 0; c < COLOURS; c++)
        (void)leat__buf_printf(out, "#%u;2;%u;%u;%u", c, c / 36 * 20, c / 6 % 6 * 20, c % 6 * 20);
    for (uint32_t y = 0; y < p->height; y += 6) {
        bool used[COLOURS] = {false};
        for (uint32_t k = 0; k < 6 && y + k < p->height; k++)
            for (uint32_t x = 0; x < p->width; x++) used[palette(pixel(p, x, y + k))] = true;
        for (uint32_t c = 0; c < COLOURS; c++) {
            if (!used[c]) continue;
            (void)leat__buf_printf(out, "#%u", c);
            sixel_row(p, y, c, out);
            (void)leat__buf_puts(out, "$");
        }
        (void)leat__buf_puts(out, "-");
    }
    (void)leat__buf_puts(out, "\033\\\n");
}

int show_png(const show_picture *p, int (*progress)(void *cookie, uint32_t rows), void *cookie,
             leat__buf *out, leat_error *err)
{
    leat__planes planes = {0};
    leat__encode_opts opts = {.orientation = 1, .progress = progress, .cookie = cookie};
    int rc = leat__planes_resize(&planes, p->width, p->height, 3, err);
    for (uint32_t y = 0; y < p->height && rc == 0; y++)
        for (uint32_t x = 0; x < p->width; x++)
            for (uint32_t c = 0; c < 3; c++)
                planes.plane[c][(size_t)y * planes.stride + x] = pixel(p, x, y)[c];
    if (rc == 0) rc = leat__codec_encode(LEAT__CODEC_PNG, &planes, &opts, out, err);
    leat__planes_reset(&planes);
    return rc;
}

static void base64(const uint8_t *data, size_t size, leat__buf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        uint32_t n = (uint32_t)data[i] << 16 | (i + 1 < size ? (uint32_t)data[i + 1] << 8 : 0) |
                     (i + 2 < size ? data[i + 2] : 0);
        char four[5] = {digits[n >> 18], digits[n >> 12 & 63], i + 1 < size ? digits[n >> 6 & 63] : '=',
                        i + 2 < size ? digits[n & 63] : '=', '\0'};
        (void)leat__buf_puts(out, four);
    }
}

int show_kitty(const show_picture *p, leat__buf *out, leat_error *err)
{
    leat__buf png, text;
    leat__buf_init(&png, LEAT__MEM_MISC, (size_t)1 << 30);
    leat__buf_init(&text, LEAT__MEM_MISC, (size_t)1 << 31);
    int rc = show_png(p, NULL, NULL, &png, err);
    if (rc == 0) base64((const uint8_t *)png.data, png.len, &text);
    for (size_t at = 0; rc == 0 && at < text.len; at += KITTY_CHUNK) {
        size_t n = text.len - at < KITTY_CHUNK ? text.len - at : KITTY_CHUNK;
        (void)leat__buf_printf(out, "\033_G%sm=%d;", at == 0 ? "a=T,f=100," : "", at + n < text.len);
        (void)leat__buf_append(out, text.data + at, n);
        (void)leat__buf_puts(out, "\033\\");
    }
    (void)leat__buf_puts(out, "\n");
    leat__buf_reset(&png);
    leat__buf_reset(&text);
    return rc;
}
