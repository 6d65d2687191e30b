/* SPDX-License-Identifier: Apache-2.0
 *
 * GIF, without a library: the first frame on the canvas, or all frames as Pillow shows them. Colours are
 * RGB, or RGBA when one of them is transparent, or palette indices when requested. Pixels outside the frame
 * have the transparent index, else 0. A frame whose data ends early is an error, also one after the first.
 * One state per decoder, used by one thread at a time.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/num.h"
#include "codec/animation.h"
#include "codec/whole.h"

#define NAME "GIF"
#define CODES 4096
#define NOTHING 0xffffu

typedef struct gif_header {
    uint32_t width, height; /* of the canvas */
    uint32_t x, y, frame_width, frame_height;
    bool interlaced, more;  /* more: other frames follow */
    bool pending;           /* the file cannot end here: there was no frame yet, or an extension came last */
    int transparent;        /* palette index, or -1 */
    uint32_t dispose;       /* what happens to the frame afterwards: 2: replaced by a colour; above 2: by
                               the previous content */
    uint8_t background;     /* palette index */
    const uint8_t *palette; /* NULL: grey */
    uint32_t colours;
    size_t data; /* offset of the first code's size; blocks of codes follow */
} gif_header;

static bool gif_sniff(const uint8_t *data, size_t len)
{
    return len >= 6 && (memcmp(data, "GIF87a", 6) == 0 || memcmp(data, "GIF89a", 6) == 0);
}

static int bad(leat_error *err, int code, size_t offset, const char *what)
{
    return leat__whole_bad(err, code, NAME, offset, what);
}

static int truncated(leat_error *err, size_t len)
{
    return bad(err, LEAT_EDATA, len, "premature end of file (truncated)");
}

/* Returns the offset of the terminator of the blocks that start at `at`; `len` when the file ends before it,
 * len + 1 when it ends inside a block. */
static size_t find_terminator(const uint8_t *data, size_t len, size_t at)
{
    while (at < len && data[at] != 0) at += (size_t)data[at] + 1;
    return LEAT_MIN(at, len + 1);
}

/* Returns the end of the blocks that start at `at`, whose terminator may be missing at the end of the file;
 * len + 1 when the file ends inside a block. */
static size_t skip_blocks(const uint8_t *data, size_t len, size_t at)
{
    at = find_terminator(data, len, at);
    return at < len ? at + 1 : at;
}

static void use_palette(gif_header *h, const uint8_t *data, uint8_t flags, size_t *at)
{
    h->colours = 2u << (flags & 7);
    h->palette = data + *at;
    *at += (size_t)h->colours * 3;
}

/* Finds the next image descriptor; stores the content of extensions before it in h. Returns `len` when there
 * is none, len + 1 when the file ends too early: inside an extension or after it, or without any frame. */
static size_t find_frame(const uint8_t *data, size_t len, size_t at, gif_header *h)
{
    while (at < len && data[at] != ',') {
        if (data[at] == ';') return len;
        if (data[at] != '!') { /* stray bytes between blocks are skipped, as in Pillow */
            at++;
            continue;
        }
        if (!leat__range_inside(at, 3, len)) return len + 1;
        if (data[at + 1] == 0xf9 && data[at + 2] >= 4 && leat__range_inside(at, 8, len)) {
            if (data[at + 3] & 1) h->transparent = data[at + 6];
            if (data[at + 3] >> 2 & 7) h->dispose = data[at + 3] >> 2 & 7;
        }
        at = find_terminator(data, len, at + 2);
        if (at >= len) return len + 1;
        at++;
        h->pending = true;
    }
    return at < len || !h->pending ? at : len + 1;
}

/* Reads the header before the first frame; *at becomes the first byte after it. */
static int read_screen(const uint8_t *data, size_t len, gif_header *h, size_t *at, leat_error *err)
{
    *h = (gif_header){.transparent = -1, .pending = true};
    if (!gif_sniff(data, len)) return bad(err, LEAT_EDATA, 0, "no signature");
    if (len < 13) return truncated(err, len);
    *at = 13;
    h->width = leat__load_u16(data + 6);
    h->height = leat__load_u16(data + 8);
    if (data[10] & 0x80) {
        h->background = data[11];
        use_palette(h, data, data[10], at);
    }
    return *at <= len ? 0 : truncated(err, len);
}

/* Reads the image descriptor at `at`. */
static int read_frame(const uint8_t *data, size_t len, size_t at, gif_header *h, leat_error *err)
{
    if (!leat__range_inside(at, 11, len)) return truncated(err, len);
    const uint8_t *p = data + at;
    at += 10;
    h->x = leat__load_u16(p + 1);
    h->y = leat__load_u16(p + 3);
    h->frame_width = leat__load_u16(p + 5);
    h->frame_height = leat__load_u16(p + 7);
    h->interlaced = (p[9] & 0x40) != 0;
    if (p[9] & 0x80) use_palette(h, data, p[9], &at);
    h->data = at;
    h->pending = false;
    return at + 1 < len ? 0 : truncated(err, len);
}

/* Reads the descriptor of a frame that is to be decoded. */
static int read_image(const uint8_t *data, size_t len, size_t at, gif_header *h, leat_error *err)
{
    LEAT_TRY(read_frame(data, len, at, h, err));
    if (h->frame_width > 0 && h->frame_height > 0) return 0;
    return bad(err, LEAT_EDATA, at + 5, "a frame of zero size");
}

static int read_header(const uint8_t *data, size_t len, gif_header *h, leat_error *err)
{
    size_t at = 0;
    LEAT_TRY(read_screen(data, len, h, &at, err));
    at = find_frame(data, len, at, h);
    if (at > len) return truncated(err, len);
    if (at == len) return bad(err, LEAT_EDATA, len, "no image");
    LEAT_TRY(read_image(data, len, at, h, err));
    h->width = LEAT_MAX(h->width, h->x + h->frame_width);
    h->height = LEAT_MAX(h->height, h->y + h->frame_height);
    gif_header next = *h;
    h->more = find_frame(data, len, skip_blocks(data, len, h->data + 1), &next) < len;
    return 0;
}

static int gif_probe(const uint8_t *data, size_t len, leat__image_info *info, leat_error *err)
{
    gif_header h;
    LEAT_TRY(read_header(data, len, &h, err));
    info->width = h.width;
    info->height = h.height;
    info->palette = true;
    info->channels = h.transparent >= 0 ? 4 : 3;
    info->animated = h.more;
    info->memory = (uint64_t)h.width * h.height * (info->channels + 1);
    snprintf(info->format, sizeof info->format, "gif%s%s", h.transparent >= 0 ? " alpha" : "",
             h.more ? " animated" : "");
    return 0;
}

/* ---- LZW ---- */

typedef struct codes {
    const uint8_t *data;
    size_t len, at, block_end; /* block_end: offset of the next block's length */
    uint32_t held, held_bits;
} codes;

/* Reads the next code; NOTHING at the end of the blocks, LEAT_EDATA at the end of the file. */
static int next_code(codes *c, uint32_t bits, uint32_t *code)
{
    while (c->held_bits < bits) {
        if (c->at == c->block_end) {
            if (c->at >= c->len) return LEAT_EDATA;
            uint32_t n = c->data[c->at];
            if (n == 0) {
                *code = NOTHING;
                return 0;
            }
            c->at++;
            if (!leat__range_inside(c->at, n, c->len)) return LEAT_EDATA;
            c->block_end = c->at + n;
        }
        c->held |= (uint32_t)c->data[c->at++] << c->held_bits;
        c->held_bits += 8;
    }
    *code = c->held & ((1u << bits) - 1);
    c->held >>= bits;
    c->held_bits -= bits;
    return 0;
}

typedef struct lzw {
    uint16_t before[CODES]; /* the code without its last index */
    uint8_t last[CODES], first[CODES];
    uint16_t length[CODES];
} lzw;

/* Writes the indices of a code to to[at ..], up to `total`; returns how many. */
static uint32_t put_code(const lzw *t, uint32_t code, uint8_t *to, size_t at, size_t total)
{
    const uint32_t n = t->length[code];
    for (uint32_t i = n; i-- > 0; code = t->before[code])
        if (at + i < total) to[at + i] = t->last[code];
    return (uint32_t)LEAT_MIN((size_t)n, total - at);
}

static void add_code(lzw *t, uint32_t next, uint32_t before, uint8_t last)
{
    t->before[next] = (uint16_t)before;
    t->last[next] = last;
    t->first[next] = t->first[before];
    t->length[next] = (uint16_t)(t->length[before] + 1);
}

/* Decodes `total` indices to `to`. A full code table stays unchanged until the next clear code. */
static int unpack(const uint8_t *data, size_t len, size_t start, uint8_t *to, size_t total, leat_error *err)
{
    lzw t;
    codes c = {.data = data, .len = len, .at = start + 1, .block_end = start + 1};
    const uint32_t size = data[start];
    if (size < 1 || size > 8) return bad(err, LEAT_EDATA, start, "impossible size of codes");
    const uint32_t clear = 1u << size, end = clear + 1;
    for (uint32_t i = 0; i < clear; i++) {
        t.last[i] = t.first[i] = (uint8_t)i;
        t.length[i] = 1;
        t.before[i] = 0;
    }
    uint32_t next = end + 1, bits = size + 1, before = NOTHING, code;
    for (size_t at = 0; at < total;) {
        if (next_code(&c, bits, &code) != 0) return truncated(err, len);
        if (code == NOTHING || code == end) return bad(err, LEAT_EDATA, c.at, "pixels are missing");
        if (code == clear) {
            next = end + 1;
            bits = size + 1;
            before = NOTHING;
            continue;
        }
        if (code > next || (code == next && (before == NOTHING || next == CODES)) ||
            (before == NOTHING && code > end))
            return bad(err, LEAT_EDATA, c.at, "impossible code");
        if (before != NOTHING && next < CODES) {
            add_code(&t, next, before, t.first[code == next ? before : code]);
            next++;
            if (next == 1u << bits && bits < 12) bits++;
        }
        at += put_code(&t, code, to, at, total);
        before = code;
    }
    return 0;
}

/* ---- the frame on its canvas ---- */

/* Returns the row of the frame that the i-th row of an interlaced file contains. */
static uint32_t interlaced_row(uint32_t i, uint32_t height)
{
    static const uint32_t first[4] = {0, 4, 2, 1}, step[4] = {8, 8, 4, 2};
    for (int pass = 0; pass < 4; pass++) {
        uint32_t rows = height > first[pass] ? (height - first[pass] + step[pass] - 1) / step[pass] : 0;
        if (i < rows) return first[pass] + i * step[pass];
        i -= rows;
    }
    return 0;
}

static void put_row(const gif_header *h, const uint8_t *numbers, uint32_t width, uint32_t channels,
                    uint8_t *to)
{
    for (uint32_t x = 0; x < width; x++, to += channels) {
        const uint32_t v = numbers[x];
        to[0] = (uint8_t)v;
        if (channels == 1) continue;
        if (h->palette) {
            for (uint32_t k = 0; k < 3; k++) to[k] = v < h->colours ? h->palette[v * 3 + k] : 0;
        } else {
            to[1] = to[2] = to[0];
        }
        if (channels == 4) to[3] = (int)v == h->transparent ? 0 : 255;
    }
}

static void put_canvas(const gif_header *h, const uint8_t *numbers, uint32_t channels, uint8_t *to)
{
    const uint8_t outside = (uint8_t)(h->transparent >= 0 ? h->transparent : 0);
    const size_t stride = (size_t)h->width * channels;
    const bool covered = h->frame_width == h->width && h->frame_height == h->height;
    for (uint32_t y = 0; y < h->height && !covered; y++)
        for (uint32_t x = 0; x < h->width; x++)
            put_row(h, &outside, 1, channels, to + y * stride + (size_t)x * channels);
    for (uint32_t i = 0; i < h->frame_height; i++) {
        uint32_t y = h->interlaced ? interlaced_row(i, h->frame_height) : i;
        put_row(h, numbers + (size_t)i * h->frame_width, h->frame_width, channels,
                to + (h->y + y) * stride + (size_t)h->x * channels);
    }
}

/* Checks that the blocks after the first frame are complete. Their pixels are not decoded. The trailer, and
 * the terminator of the first frame before it, may be missing: many files end so, and no pixel depends on
 * them. */
static int check_rest(const uint8_t *data, size_t len, const gif_header *first, leat_error *err)
{
    gif_header h = *first;
    size_t at = skip_blocks(data, len, h.data + 1);
    if (at > len) return truncated(err, len);
    while ((at = find_frame(data, len, at, &h)) < len) {
        LEAT_TRY(read_frame(data, len, at, &h, err));
        at = find_terminator(data, len, h.data + 1);
        if (at >= len) return truncated(err, len);
        at++;
    }
    return at > len ? truncated(err, len) : 0;
}

static int gif_decode(void *state, const leat__decode_job *job, leat_error *err)
{
    leat__whole *w = state;
    gif_header h;
    leat__image_info now = {.orientation = 1};
    LEAT_TRY(gif_probe(job->data, job->len, &now, err));
    LEAT_TRY(leat__whole_same(job, &now, NAME, err));
    LEAT_TRY(read_header(job->data, job->len, &h, err));
    const size_t stride = (size_t)h.width * job->info->channels;
    LEAT_TRY(leat__whole_fit(w, stride + h.width, h.height, err)); /* the canvas, then the palette indices */
    uint8_t *numbers = w->pixels + stride * h.height;
    LEAT_TRY(unpack(job->data, job->len, h.data, numbers, (size_t)h.frame_width * h.frame_height, err));
    if (job->whole) LEAT_TRY(check_rest(job->data, job->len, &h, err));
    put_canvas(&h, numbers, job->info->channels, w->pixels);
    return leat__whole_emit(w, job, w->pixels, stride, err);
}

/* ---- all frames ---- */

static uint64_t gif_count_frames(const uint8_t *data, size_t len)
{
    gif_header h;
    size_t at;
    uint64_t n = 0;
    if (read_screen(data, len, &h, &at, NULL) != 0) return 0;
    for (; (at = find_frame(data, len, at, &h)) < len; n++) {
        if (read_frame(data, len, at, &h, NULL) != 0) break;
        at = skip_blocks(data, len, h.data + 1);
    }
    return n;
}

/* Looks up a palette colour; indices past the end give the first colour, as in Pillow. */
static void take_colour(const gif_header *h, uint32_t number, uint8_t alpha, uint8_t to[4])
{
    uint8_t v = (uint8_t)(h->palette && number >= h->colours ? 0 : number);
    put_row(h, &v, 1, 4, to);
    to[3] = alpha;
}

/* Restores the rectangle of the last frame from `under`, or fills it with a colour. */
static void dispose_last(leat__anim *f)
{
    const size_t stride = (size_t)f->info.width * 4;
    for (uint32_t y = 0; y < f->last.height && f->dispose >= 2; y++) {
        const size_t at = (f->last.y + y) * stride + (size_t)f->last.x * 4;
        if (f->dispose > 2) memcpy(f->canvas + at, f->under + at, (size_t)f->last.width * 4);
        for (uint32_t x = 0; x < f->last.width && f->dispose == 2; x++)
            memcpy(f->canvas + at + 4 * (size_t)x, f->colour, 4);
    }
}

static void draw_frame(const gif_header *h, leat__anim *f)
{
    const size_t stride = (size_t)f->info.width * 4;
    for (uint32_t i = 0; i < h->frame_height; i++) {
        const uint32_t y = h->interlaced ? interlaced_row(i, h->frame_height) : i;
        const uint8_t *numbers = f->work + (size_t)i * h->frame_width;
        uint8_t *to = f->canvas + (h->y + y) * stride + (size_t)h->x * 4;
        for (uint32_t x = 0; x < h->frame_width; x++, to += 4)
            if (numbers[x] != h->transparent) put_row(h, numbers + x, 1, 4, to);
    }
}

/* Records how to remove this frame before the next one. There is nothing to restore below the first frame: it
 * becomes transparent, or stays. */
static void note_disposal(const gif_header *h, leat__anim *f)
{
    const bool clear = h->transparent >= 0;
    f->last = (leat__anim_rect){h->x, h->y, h->frame_width, h->frame_height};
    f->dispose = h->dispose;
    if (f->index == 0 && f->dispose > 2) f->dispose = clear ? 2 : 0;
    take_colour(h, clear ? (uint32_t)h->transparent : h->background, clear ? 0 : 255, f->colour);
}

static int gif_next_frame(leat__anim *f, bool *end, leat_error *err)
{
    gif_header h;
    size_t at;
    LEAT_TRY(read_screen(f->data, f->len, &h, &at, err));
    if (f->index > 0) at = f->at;
    h.pending = f->index == 0;
    h.dispose = f->said;
    at = find_frame(f->data, f->len, at, &h);
    *end = at >= f->len;
    if (at > f->len) return truncated(err, f->len);
    if (*end) return 0;
    LEAT_TRY(read_image(f->data, f->len, at, &h, err));
    h.width = f->info.width;
    h.height = f->info.height;
    if (!leat__range_inside(h.x, h.frame_width, h.width) ||
        !leat__range_inside(h.y, h.frame_height, h.height))
        return bad(err, LEAT_EDATA, at, "a frame outside of the canvas");
    LEAT_TRY(unpack(f->data, f->len, h.data, f->work, (size_t)h.frame_width * h.frame_height, err));
    f->at = skip_blocks(f->data, f->len, h.data + 1);
    if (f->index == 0) {
        put_canvas(&h, f->work, 4, f->canvas);
    } else {
        dispose_last(f);
        if (h.dispose > 2) memcpy(f->under, f->canvas, (size_t)h.width * h.height * 4);
        draw_frame(&h, f);
    }
    f->said = h.dispose;
    note_disposal(&h, f);
    return 0;
}

const leat__codec_ops leat__codec_ops_gif = {
    .name = "gif",
    .sniff = gif_sniff,
    .probe = gif_probe,
    .open = leat__whole_open,
    .close = leat__whole_close,
    .decode = gif_decode,
    .count_frames = gif_count_frames,
    .next_frame = gif_next_frame,
};
