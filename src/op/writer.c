/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes rows into the batch: see writer.h. A row is converted while it is in the L1 cache.
 */
#include "op/writer.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/rng.h"
#include "probe/cpu.h"

int leat__writer_begin(leat__writer *w, const leat__output_spec *spec, const leat__norm *norm, void *out,
                       leat_error *err)
{
    LEAT_ASSERT(spec->width > 0 && spec->height > 0);
    LEAT_ASSERT(spec->channels == 1 || spec->channels == 3);
    const size_t pitch = ((size_t)spec->width + 127) & ~(size_t)63;
    const size_t bytes = 3 * pitch * (1 + sizeof(float));
    if (!w->dsp) w->dsp = leat__pixel_dsp_for(leat__cpu_flags());
    if (bytes > w->cap) {
        leat__free(w->line);
        w->cap = 0;
        w->line = leat__alloc_aligned(LEAT__MEM_SCRATCH, bytes, 64);
        if (!w->line) return leat__fail_nomem(err, bytes, "row scratch");
        memset(w->line, 0, bytes);
        w->cap = bytes;
    }
    w->spec = spec;
    w->norm = norm;
    w->planes = 3;
    w->out = out;
    w->pitch = pitch;
    w->row = spec->width * (size_t)leat_dtype_size(spec->dtype);
    w->plane = spec->height * w->row;
    w->direct = spec->dtype == LEAT_DTYPE_U8 && (spec->layout == LEAT__LAYOUT_NCHW || spec->channels == 1);
    return 0;
}

void leat__writer_reset(leat__writer *w)
{
    leat__free(w->line);
    memset(w, 0, sizeof *w);
}

/* Returns the start of row y of channel c in a planar output. */
static uint8_t *planar_row(const leat__writer *w, uint32_t y, uint32_t c)
{
    LEAT_ASSERT(y < w->spec->height && c < w->spec->channels);
    return w->out + c * w->plane + y * w->row;
}

static void convert(const leat__writer *w, uint32_t c, const uint8_t *src, void *dst)
{
    const leat__norm *const n = &w->norm[c];
    const size_t count = w->spec->width;
    switch (w->spec->dtype) {
    case LEAT_DTYPE_U8: memcpy(dst, src, count); break;
    case LEAT_DTYPE_F16: w->dsp->to_f16(n, src, dst, count); break;
    case LEAT_DTYPE_BF16: w->dsp->to_bf16(n, src, dst, count); break;
    case LEAT_DTYPE_F32: w->dsp->to_f32(n, src, dst, count); break;
    default: break; /* U16: only for wide images, which are not written here */
    }
}

/* Channels last: converts the three rows, then interleaves them. */
static void write_woven(const leat__writer *w, uint32_t y, const uint8_t *const row[3])
{
    const size_t n = w->spec->width, size = leat_dtype_size(w->spec->dtype);
    uint8_t *const dst = w->out + (size_t)y * n * 3 * size;
    if (size == 1) {
        w->dsp->interleave8(row, dst, n);
        return;
    }
    uint8_t *wide[3];
    for (uint32_t c = 0; c < 3; c++) {
        wide[c] = w->line + (3 + sizeof(float) * c) * w->pitch;
        convert(w, c, row[c], wide[c]);
    }
    if (size == 2) {
        const uint16_t *const v[3] = {(uint16_t *)wide[0], (uint16_t *)wide[1], (uint16_t *)wide[2]};
        w->dsp->interleave16(v, (uint16_t *)dst, n);
    } else {
        const uint32_t *const v[3] = {(uint32_t *)wide[0], (uint32_t *)wide[1], (uint32_t *)wide[2]};
        w->dsp->interleave32(v, (uint32_t *)dst, n);
    }
}

static void write_row(const leat__writer *w, uint32_t y, const uint8_t *const row[3])
{
    LEAT_ASSERT(y < w->spec->height);
    if (w->spec->layout == LEAT__LAYOUT_NHWC && w->spec->channels == 3) {
        write_woven(w, y, row);
        return;
    }
    for (uint32_t c = 0; c < w->spec->channels; c++) convert(w, c, row[c], planar_row(w, y, c));
}

static uint8_t *target(void *ctx, uint32_t y, uint32_t plane)
{
    LEAT_ASSERT(plane < 3);
    leat__writer *const w = ctx;
    if (w->direct && plane < w->spec->channels) return planar_row(w, y, plane);
    return w->line + plane * w->pitch;
}

static int done(void *ctx, uint32_t y)
{
    leat__writer *const w = ctx;
    if (w->direct) {
        for (uint32_t c = w->planes; c < w->spec->channels; c++)
            memcpy(planar_row(w, y, c), planar_row(w, y, 0), w->spec->width);
        return 0;
    }
    const bool grey = w->planes == 1;
    const uint8_t *const row[3] = {w->line, w->line + (grey ? 0 : w->pitch),
                                   w->line + (grey ? 0 : 2 * w->pitch)};
    write_row(w, y, row);
    return 0;
}

leat__resize_out leat__writer_rows(leat__writer *w)
{
    return (leat__resize_out){.target = target, .done = done, .ctx = w};
}

void leat__writer_image(leat__writer *w, const leat__planes *im)
{
    LEAT_ASSERT(im->width == w->spec->width && im->height == w->spec->height);
    for (uint32_t y = 0; y < im->height; y++) {
        const uint8_t *row[3];
        for (uint32_t c = 0; c < 3; c++) row[c] = leat__planes_row(im, im->channels == 3 ? c : 0, y);
        write_row(w, y, row);
    }
}

void leat__writer_put(leat_dtype dtype, void *out, size_t index, float v)
{
    switch (dtype) {
    case LEAT_DTYPE_U8: ((uint8_t *)out)[index] = (uint8_t)(v > 0 ? v < 255 ? v : 255 : 0); break;
    case LEAT_DTYPE_U16: ((uint16_t *)out)[index] = (uint16_t)(v > 0 ? v < 65535 ? v : 65535 : 0); break;
    case LEAT_DTYPE_F16: ((uint16_t *)out)[index] = leat__f16_of(v); break;
    case LEAT_DTYPE_BF16: ((uint16_t *)out)[index] = leat__bf16_of(v); break;
    case LEAT_DTYPE_F32: ((float *)out)[index] = v; break;
    default: LEAT_ASSERT(!"an output type"); break;
    }
}

/* ---- erasing the finished output ---- */

void leat__writer_erase(leat__writer *w, const leat__step *s)
{
    LEAT_ASSERT(s->x >= 0 && (uint32_t)s->x + s->width <= w->spec->width);
    LEAT_ASSERT(s->y >= 0 && (uint32_t)s->y + s->height <= w->spec->height);
    const leat__output_spec *const o = w->spec;
    const bool woven = o->layout == LEAT__LAYOUT_NHWC;
    leat__rng rng;
    leat__rng_init(&rng, s->noise_seed, 0, 0, 0);
    for (uint32_t c = 0; c < o->channels; c++)
        for (uint32_t y = (uint32_t)s->y; y < (uint32_t)s->y + s->height; y++)
            for (uint32_t x = (uint32_t)s->x; x < (uint32_t)s->x + s->width; x++) {
                const size_t pixel = (size_t)y * o->width + x;
                const size_t index =
                    woven ? pixel * o->channels + c : (size_t)c * o->width * o->height + pixel;
                leat__writer_put(w->spec->dtype, w->out, index,
                                 s->noise ? (float)leat__rng_normal(&rng) : s->fill[c]);
            }
}
