/* SPDX-License-Identifier: Apache-2.0
 *
 * Resizes components to pixels: see ycc_resizer.h. Owns the axes and the rows between the passes; one
 * thread. Both chroma components share their axes.
 */
#include "dsp/ycc_resizer.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "dsp/idct_small.h"
#include "probe/cpu.h"

enum { LUMA = 0, CHROMA = 1, X = 0, Y = 1 };

struct leat__ycc_resizer {
    const leat__ycc_resize_dsp *dsp;
    uint32_t cpu_flags;
    leat__ycc_axis axis[2][2]; /* [luma, chroma][x, y] */
    uint32_t components;
    bool reverse_rows;
    uint32_t have[3]; /* rows received */
    int8_t *rows[3];
    int8_t *block;
    size_t cap, pitch;
};

int leat__ycc_resizer_open(leat__ycc_resizer **out, leat_error *err)
{
    leat__ycc_resizer *const r = LEAT_NEW(SCRATCH, leat__ycc_resizer);
    *out = r;
    if (!r) return leat__fail_nomem(err, sizeof *r, "a resizer");
    r->cpu_flags = leat__cpu_flags();
    r->dsp = leat__ycc_resize_dsp_for(r->cpu_flags);
    return 0;
}

void leat__ycc_resizer_close(leat__ycc_resizer **pr)
{
    leat__ycc_resizer *const r = *pr;
    if (!r) return;
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < 2; d++) leat__ycc_axis_reset(&r->axis[i][d]);
    leat__free(r->block);
    leat__free(r);
    *pr = NULL;
}

/* Returns how often samples `step` pixels apart may be halved without having fewer than the output. */
static uint32_t halvings(const leat__axis_request *q, uint32_t step)
{
    uint32_t n = 0;
    while (n + 1 < LEAT__IDCT_SHRINKS && q->in / (step << (n + 1)) >= q->out) n++;
    return n;
}

/* Converts an axis to samples `step` pixels apart; *first is the one at the crop's start. */
static leat__axis_request on_grid(const leat__axis_request *pixels, uint32_t start, uint32_t step,
                                  uint32_t *first)
{
    leat__axis_request q = *pixels;
    const uint32_t end = (uint32_t)leat__ceil_div((uint64_t)start + pixels->in, step);
    *first = start / step;
    q.in = end - *first;
    if (start % step == 0 && pixels->in % step == 0) return q;
    const float lo = (float)(start % step) / (float)step;
    const float length = (float)pixels->in / (float)step;
    q.box_lo = pixels->mirror_in ? (float)q.in - lo - length : lo;
    q.box_hi = q.box_lo + length;
    return q;
}

/* Plans one axis of luma or chroma. */
static int plan_axis(leat__ycc_resizer *r, int kind, int dim, const leat__axis_request *pixels,
                     uint32_t start, uint32_t step, uint32_t *at, uint32_t *length, bool *fits,
                     leat_error *err)
{
    leat__ycc_axis *const a = &r->axis[kind][dim];
    uint32_t first;
    const leat__axis_request q = on_grid(pixels, start, step, &first);
    LEAT_TRY(leat__ycc_axis_build(a, &q, r->dsp, r->cpu_flags, fits, err));
    *at = first + a->lo;
    *length = a->width;
    return 0;
}

static int make_room(leat__ycc_resizer *r, const leat__ycc_part part[3], leat_error *err)
{
    uint64_t rows = 0, bytes;
    r->pitch = r->axis[LUMA][X].stride;
    for (uint32_t c = 0; c < r->components; c++) rows += part[c].height;
    if (!leat__mul_u64(rows, r->pitch, &bytes) || bytes > PTRDIFF_MAX)
        return leat__fail(err, LEAT_EOVERFLOW, "resize of %u rows is too large", part[0].height);
    if (bytes > r->cap) {
        leat__free(r->block);
        r->cap = 0;
        r->block = leat__alloc_aligned(LEAT__MEM_SCRATCH, bytes, 64);
        if (!r->block) return leat__fail_nomem(err, bytes, "rows between two passes");
        memset(r->block, 0, bytes); /* row padding is read, but its result is not used: keep it defined */
        r->cap = bytes;
    }
    r->rows[0] = r->block;
    for (uint32_t c = 1; c < r->components; c++) r->rows[c] = r->rows[c - 1] + part[c - 1].height * r->pitch;
    return 0;
}

int leat__ycc_resizer_plan(leat__ycc_resizer *r, const leat__ycc_grid *grid, uint32_t left, uint32_t top,
                           const leat__axis_request *x, const leat__axis_request *y, leat__ycc_part part[3],
                           bool *fits, leat_error *err)
{
    /* rows come from the top; resizer.c explains in which order they are finished */
    leat__axis_request ordered = *y;
    ordered.mirror_out = y->mirror_in;
    r->reverse_rows = y->mirror_in != y->mirror_out;
    r->components = grid->components;
    for (uint32_t c = 0; c < LEAT_MIN(grid->components, 2u); c++) {
        leat__ycc_part *const p = &part[c];
        const uint32_t h = c == 0 ? 1 : grid->h, v = c == 0 ? 1 : grid->v;
        const int kind = c == 0 ? LUMA : CHROMA;
        p->shrink = LEAT_MIN(halvings(x, h), halvings(y, v));
        LEAT_TRY(plan_axis(r, kind, X, x, left, h << p->shrink, &p->x, &p->width, fits, err));
        if (!*fits) return 0;
        LEAT_TRY(plan_axis(r, kind, Y, &ordered, top, v << p->shrink, &p->y, &p->height, fits, err));
        if (!*fits) return 0;
    }
    part[2] = part[1];
    memset(r->have, 0, sizeof r->have);
    return make_room(r, part, err);
}

void leat__ycc_resizer_rows(leat__ycc_resizer *r, uint32_t c, uint32_t count, const uint8_t *rows,
                            size_t stride)
{
    const leat__ycc_axis *const x = &r->axis[c == 0 ? LUMA : CHROMA][X];
    r->dsp->across(x, count, rows, stride, r->rows[c] + r->have[c] * r->pitch, r->pitch);
    r->have[c] += count;
}

/* Returns the rows under output k of component c. */
static leat__ycc_taps taps_of(const leat__ycc_resizer *r, uint32_t c, uint32_t k)
{
    const leat__ycc_axis *const y = &r->axis[c == 0 ? LUMA : CHROMA][Y];
    return (leat__ycc_taps){r->rows[c] + y->first[k] * r->pitch, r->pitch, y->weight + k, y->stride,
                            y->pairs};
}

int leat__ycc_resizer_finish(leat__ycc_resizer *r, const leat__resize_out *out)
{
    const uint32_t count = r->axis[LUMA][Y].count, width = r->axis[LUMA][X].count;
    for (uint32_t c = 0; c < r->components; c++)
        if (r->have[c] != r->axis[c == 0 ? LUMA : CHROMA][Y].width) return LEAT_EINTERNAL;
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t y = r->reverse_rows ? count - 1 - k : k;
        leat__ycc_taps taps[3];
        uint8_t *dst[3];
        for (uint32_t c = 0; c < r->components; c++) {
            taps[c] = taps_of(r, c, k);
            dst[c] = out->target(out->ctx, y, c);
        }
        if (r->components == 1) r->dsp->grey(taps, dst[0], width);
        else r->dsp->colour(taps, dst, width);
        LEAT_TRY(out->done(out->ctx, y));
    }
    return 0;
}
