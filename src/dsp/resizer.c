/* SPDX-License-Identifier: Apache-2.0
 *
 * The streaming resize: see resizer.h. Owns the ring between the passes and a small cache of
 * axes, used by one thread.
 *
 * Vertical mirroring: rows always come from the top, so the vertical axis is built in the order in which
 * its outputs become ready (mirrored taps get mirrored outputs too). Finished row k is passed on as row k
 * or height-1-k.
 */
#include "dsp/resizer.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "dsp/pixel.h"
#include "probe/cpu.h"

/* Pipelines with fixed sizes hit this cache; random crops rarely do, so few entries are enough. */
enum { CACHED = 4, X = 0, Y = 1 };
/* Scratch rows after the ring: one between the passes, and one for the second pass. */
enum { LINES = 2 };

typedef struct cached_axis {
    leat__axis axis;
    uint64_t used; /* 0 = empty */
} cached_axis;

struct leat__resizer {
    const leat__resize_dsp *dsp;
    const leat__pixel_dsp *pixel;
    cached_axis cache[2][CACHED];
    uint64_t clock;
    const leat__axis *axis[2];
    bool reverse_rows;
    bool vertical_first;

    uint8_t *ring; /* (slots * planes + LINES) * pitch bytes */
    size_t ring_cap, pitch;
    uint32_t slots; /* power of two */

    uint32_t planes;
    uint32_t next_in, next_out;
    leat__resize_out out;
    const uint8_t **taps; /* row pointers of one vertical call */
    uint32_t taps_cap, taps_used;
};

int leat__resizer_open(leat__resizer **r, leat_error *err)
{
    *r = LEAT_NEW(SCRATCH, leat__resizer);
    if (!*r) return leat__fail_nomem(err, sizeof(leat__resizer), "a resizer");
    (*r)->dsp = leat__resize_dsp_for(leat__cpu_flags());
    (*r)->pixel = leat__pixel_dsp_for(leat__cpu_flags());
    return 0;
}

void leat__resizer_close(leat__resizer **pr)
{
    leat__resizer *r = *pr;
    if (!r) return;
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < CACHED; i++) leat__axis_reset(&r->cache[d][i].axis);
    leat__free(r->ring);
    leat__free(r->taps);
    leat__free(r);
    *pr = NULL;
}

static bool same_request(const leat__axis_request *a, const leat__axis_request *b)
{
    return a->in == b->in && a->out == b->out && a->box_lo == b->box_lo && a->box_hi == b->box_hi &&
           a->from == b->from && a->count == b->count && a->filter == b->filter &&
           a->mirror_in == b->mirror_in && a->mirror_out == b->mirror_out;
}

static int find_axis(leat__resizer *r, int dim, const leat__axis_request *q, leat_error *err)
{
    LEAT_ASSERT(dim == X || dim == Y);
    cached_axis *oldest = &r->cache[dim][0];
    for (int i = 0; i < CACHED; i++) {
        cached_axis *c = &r->cache[dim][i];
        if (c->used && same_request(&c->axis.request, q)) {
            c->used = ++r->clock;
            r->axis[dim] = &c->axis;
            return 0;
        }
        if (c->used < oldest->used) oldest = c;
    }
    oldest->used = 0;
    LEAT_TRY(leat__axis_build(&oldest->axis, q, r->dsp, dim == Y, err));
    oldest->used = ++r->clock;
    r->axis[dim] = &oldest->axis;
    return 0;
}

bool leat__resize_vertical_first(const leat__axis_request *x, const leat__axis_request *y,
                                 leat__pass_order order)
{
    if (order == LEAT__PASS_PILLOW12) return false;
    const int64_t lost_x = (int64_t)x->in - x->out, lost_y = (int64_t)y->in - y->out;
    return lost_y > 0 && lost_y > 2 * lost_x;
}

int leat__resizer_plan(leat__resizer *r, const leat__axis_request *x, const leat__axis_request *y,
                       leat__pass_order order, leat__resize_need *need, leat_error *err)
{
    leat__axis_request ordered = *y;
    ordered.mirror_out = y->mirror_in;
    r->reverse_rows = y->mirror_in != y->mirror_out;
    r->vertical_first = leat__resize_vertical_first(x, y, order);
    LEAT_TRY(find_axis(r, X, x, err));
    LEAT_TRY(find_axis(r, Y, &ordered, err));
    need->x = r->axis[X]->lo;
    need->width = r->axis[X]->hi - r->axis[X]->lo;
    need->y = r->axis[Y]->lo;
    need->height = r->axis[Y]->hi - r->axis[Y]->lo;
    LEAT_ASSERT(need->width > 0 && need->height > 0);
    return 0;
}

/* Sizes the ring for the taps of one output; row pointers are padded to the kernels' group. */
static int size_ring(leat__resizer *r, uint32_t planes, leat_error *err)
{
    LEAT_ASSERT(r->axis[X] != NULL && r->axis[Y] != NULL);
    const uint32_t taps = r->axis[Y]->taps;
    uint32_t slots = 1;
    while (slots < taps) slots *= 2;
    const leat__axis *const x = r->axis[X];
    const size_t longest = LEAT_MAX((size_t)x->stride, (size_t)(x->hi - x->lo));
    const size_t pitch = ((longest + 63) & ~(size_t)63) + 2 * LEAT__RESIZE_SLACK;
    uint64_t bytes;
    if (!leat__mul_u64((uint64_t)slots * planes + LINES, pitch, &bytes) || bytes > PTRDIFF_MAX)
        return leat__fail(err, LEAT_EOVERFLOW, "resize ring of %u rows is too large", slots);
    if (bytes > r->ring_cap) {
        leat__free(r->ring);
        r->ring_cap = 0;
        r->ring = leat__alloc_aligned(LEAT__MEM_SCRATCH, bytes, 64);
        if (!r->ring) return leat__fail_nomem(err, bytes, "a resize ring");
        memset(r->ring, 0, bytes); /* row padding is read, but its result is not used: keep it defined */
        r->ring_cap = bytes;
    }
    if (taps + 4 > r->taps_cap) {
        leat__free(r->taps);
        r->taps_cap = 0;
        r->taps = leat__alloc_array(LEAT__MEM_SCRATCH, taps + 4, sizeof *r->taps);
        if (!r->taps) return leat__fail_nomem(err, (taps + 4) * sizeof *r->taps, "tap rows");
        r->taps_cap = taps + 4;
    }
    r->slots = slots;
    r->pitch = pitch;
    LEAT_ASSERT(leat__is_pow2(r->slots) && r->slots >= taps);
    LEAT_ASSERT(pitch % 64 == 0 && pitch >= longest);
    return 0;
}

int leat__resizer_begin(leat__resizer *r, uint32_t planes, const leat__resize_out *out, leat_error *err)
{
    LEAT_ASSERT(planes >= 1 && planes <= LEAT__RESIZER_PLANES);
    LEAT_TRY(size_ring(r, planes, err));
    r->planes = planes;
    r->out = *out;
    r->next_in = r->next_out = 0;
    return 0;
}

static uint8_t *slot(const leat__resizer *r, uint32_t row, uint32_t plane)
{
    LEAT_ASSERT(plane < r->planes);
    return r->ring + ((size_t)(row & (r->slots - 1)) * r->planes + plane) * r->pitch + LEAT__RESIZE_SLACK;
}

static uint8_t *line(const leat__resizer *r, uint32_t i)
{
    LEAT_ASSERT(i < LINES);
    return r->ring + ((size_t)r->slots * r->planes + i) * r->pitch + LEAT__RESIZE_SLACK;
}

static uint32_t place_of(const leat__resizer *r, uint32_t k)
{
    LEAT_ASSERT(k < r->axis[Y]->count);
    return r->reverse_rows ? r->axis[Y]->count - 1 - k : k;
}

/* Finds the rows under the taps of output k, of the first plane. */
static void find_taps(leat__resizer *r, uint32_t k)
{
    const leat__axis *const a = r->axis[Y];
    const uint32_t group = r->dsp->tap_group;
    const uint32_t own = a->taps_of[k], padded = (own + group - 1) / group * group;
    for (uint32_t t = 0; t < own; t++) r->taps[t] = slot(r, a->first[k] + t, 0);
    for (uint32_t t = own; t < padded; t++) r->taps[t] = r->taps[own - 1];
    r->taps_used = padded;
    LEAT_ASSERT(padded <= r->taps_cap);
}

/* Runs the vertical pass for output k of one plane: writes `n` bytes at dst. Then advances the taps to the
 * next plane. */
static void run_vertical(leat__resizer *r, uint32_t k, uint8_t *dst, size_t n)
{
    LEAT_ASSERT(k < r->axis[Y]->count);
    const leat__axis *const a = r->axis[Y];
    if (a->taps == 1) memcpy(dst, r->taps[0], n);
    else r->dsp->vertical(a, k, r->taps, dst, n);
    for (uint32_t t = 0; t < r->taps_used; t++) r->taps[t] += r->pitch;
}

/* Writes output k, whose last tap has just arrived. */
static int emit(leat__resizer *r, uint32_t k)
{
    const leat__axis *const x = r->axis[X];
    const uint32_t y = place_of(r, k);
    find_taps(r, k);
    for (uint32_t c = 0; c < r->planes; c++) {
        uint8_t *const dst = r->out.target(r->out.ctx, y, c);
        if (!r->vertical_first || x->copy) {
            run_vertical(r, k, dst, x->count);
            continue;
        }
        /* kernels write whole vectors, so not directly to the target: pixels of a neighbour may follow */
        run_vertical(r, k, line(r, 0), x->hi - x->lo);
        const uint8_t *const from = line(r, 0);
        uint8_t *const to = line(r, 1);
        r->dsp->horizontal(x, &from, &to, 1);
        memcpy(dst, line(r, 1), x->count);
    }
    return r->out.done(r->out.ctx, y);
}

/* No resize: copies the codec's row directly to its destination. */
static int copy_row(leat__resizer *r, const uint8_t *const *plane, size_t offset)
{
    LEAT_ASSERT(r->next_out < r->axis[Y]->count);
    const uint32_t y = place_of(r, r->next_out++);
    for (uint32_t c = 0; c < r->planes; c++) {
        uint8_t *const dst = r->out.target(r->out.ctx, y, c);
        if (r->axis[X]->copy) memcpy(dst, plane[c] + offset, r->axis[X]->count);
        else r->pixel->reverse(plane[c] + offset, dst, r->axis[X]->count);
    }
    return r->out.done(r->out.ctx, y);
}

/* Stores the next row of all planes in the ring. */
static void take_row(leat__resizer *r, const uint8_t *const *plane, size_t offset)
{
    const leat__axis *const ax = r->axis[X];
    const uint8_t *src[LEAT__RESIZER_PLANES];
    uint8_t *dst[LEAT__RESIZER_PLANES];
    for (uint32_t c = 0; c < r->planes; c++) {
        src[c] = plane[c] + offset;
        dst[c] = slot(r, r->next_in, c);
    }
    if (!r->vertical_first && !ax->copy) r->dsp->horizontal(ax, src, dst, r->planes);
    else
        for (uint32_t c = 0; c < r->planes; c++) memcpy(dst[c], src[c], ax->hi - ax->lo);
}

int leat__resizer_rows(leat__resizer *r, uint32_t y, uint32_t count, const uint8_t *const *plane,
                       size_t stride)
{
    const leat__axis *const ax = r->axis[X], *const ay = r->axis[Y];
    if (y != r->next_in) return LEAT_EINTERNAL;
    for (uint32_t i = 0; i < count; i++, r->next_in++) {
        if ((ax->copy || ax->reverse) && ay->copy) {
            LEAT_TRY(copy_row(r, plane, i * stride));
            continue;
        }
        /* outputs are in order of their first row: no later output needs this row */
        if (r->next_out == ay->count || r->next_in < ay->first[r->next_out]) continue;
        take_row(r, plane, i * stride);
        while (r->next_out < ay->count && ay->first[r->next_out] + ay->taps_of[r->next_out] <= r->next_in + 1)
            LEAT_TRY(emit(r, r->next_out++));
    }
    return 0;
}

bool leat__resizer_finished(const leat__resizer *r)
{
    return r->next_out == r->axis[Y]->count;
}
