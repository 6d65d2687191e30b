/* SPDX-License-Identifier: Apache-2.0
 *
 * Axes of 8-bit weights, the portable kernels, and the selection of a variant: see ycc_resize.h. Any
 * thread; no state.
 */
#include "dsp/ycc_resize.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "dsp/x86/ycc_resize_x86.h"

/* ---- axes ---- */

static size_t no_bytes(const leat__axis *a, bool vertical)
{
    return 0;
}

static void no_pack(const leat__axis *a, bool vertical, void *packed)
{
}

static bool is_positive(leat__filter f)
{
    return f == LEAT__FILTER_BOX || f == LEAT__FILTER_BILINEAR || f == LEAT__FILTER_HAMMING;
}

static int make_room(leat__ycc_axis *a, leat_error *err)
{
    const size_t n = a->stride;
    const size_t bytes =
        n * (sizeof *a->first + sizeof *a->base + ((size_t)a->pairs + 1) * sizeof *a->weight);
    if (bytes > a->cap) {
        leat__free(a->block);
        a->cap = 0;
        a->block = leat__alloc_aligned(LEAT__MEM_SCRATCH, bytes, 64);
        if (!a->block) return leat__fail_nomem(err, bytes, "resize coefficients");
        a->cap = bytes;
    }
    a->weight = a->block;
    a->take = a->weight + n * a->pairs;
    a->first = (uint32_t *)(void *)(a->take + n);
    a->base = (int32_t *)(a->first + n);
    return 0;
}

/* Joins two 8-bit weights. A weight of 256, which is then the only one, gives 1 to the other. */
static inline uint32_t two_weights(uint32_t a, uint32_t b)
{
    const uint32_t whole_a = a >> 8, whole_b = b >> 8;
    a = a - whole_a + whole_b;
    b = b - whole_b + whole_a;
    return a | b << 8;
}

/* Rounds the running sum of the weights, not each weight, so that they add up to 256. `sum` is the previous
 * sum of each output. */
static void round_pair(const leat__ycc_axis *a, uint32_t pair, uint32_t *restrict sum)
{
    enum { SHIFT = LEAT__RESIZE_BITS - 8, HALF = 1 << (SHIFT - 1) };
    const leat__axis *const e = &a->exact;
    const int32_t *restrict const w0 = e->weight + (size_t)(2 * pair) * e->stride;
    const int32_t *restrict const w1 = w0 + e->stride;
    uint16_t *restrict const out = a->weight + (size_t)pair * a->stride;
    for (uint32_t j = 0; j < e->stride; j++) {
        const uint32_t s0 = sum[j], s1 = s0 + (uint32_t)w0[j], s2 = s1 + (uint32_t)w1[j];
        const uint32_t c0 = (s0 + HALF) >> SHIFT, c1 = (s1 + HALF) >> SHIFT;
        const uint32_t c2 = (s2 + HALF) >> SHIFT;
        out[j] = (uint16_t)two_weights(c1 - c0, c2 - c1);
        sum[j] = s2;
    }
}

/* Moves back taps that would reach past the end, and shifts their exact weights accordingly. These have rows
 * for a multiple of four taps. */
static void stay_inside(leat__ycc_axis *a)
{
    const leat__axis *const e = &a->exact;
    const uint32_t taps = 2 * a->pairs, last = a->width - taps;
    memcpy(a->first, e->first, a->count * sizeof *a->first);
    for (uint32_t j = 0; j < a->count; j++) {
        if (a->first[j] <= last) continue;
        const uint32_t back = a->first[j] - last;
        for (uint32_t t = taps; t-- > 0;)
            e->weight[(size_t)t * e->stride + j] =
                t >= back ? e->weight[(size_t)(t - back) * e->stride + j] : 0;
        a->first[j] = last;
    }
    for (uint32_t j = a->count; j < a->stride; j++) a->first[j] = a->first[a->count - 1];
}

/* Decides where each group loads: at its lowest input, moved back if that would exceed the row's slack. False
 * when a group does not find its first pair there. */
static bool place_loads(leat__ycc_axis *a, uint32_t group, int32_t load)
{
    const int32_t end = (int32_t)a->width + LEAT__RESIZE_SLACK - 2 * (int32_t)(a->pairs - 1);
    for (uint32_t j = 0; j < a->stride; j += group) {
        /* outputs ascend or, when mirrored, descend */
        const uint32_t one = a->first[j], other = a->first[j + group - 1];
        const uint32_t low = LEAT_MIN(one, other), high = LEAT_MAX(one, other);
        const int32_t base = LEAT_MIN((int32_t)low, end - load);
        if (base < -LEAT__RESIZE_SLACK || (int32_t)high + 2 - base > load) return false;
        a->base[j / group] = base;
        for (uint32_t i = j; i < j + group; i++) {
            const uint32_t at = (uint32_t)((int32_t)a->first[i] - base);
            a->take[i] = (uint16_t)(at | (at + 1) << 8);
        }
    }
    return true;
}

int leat__ycc_axis_build(leat__ycc_axis *a, const leat__axis_request *request,
                         const leat__ycc_resize_dsp *dsp, uint32_t cpu_flags, bool *fits, leat_error *err)
{
    leat__resize_dsp weights = *leat__resize_dsp_for(cpu_flags);
    leat__axis *const e = &a->exact;
    weights.pack_bytes = no_bytes;
    weights.pack = no_pack;
    *fits = false;
    if (!is_positive(request->filter)) return 0;
    LEAT_TRY(leat__axis_build(e, request, &weights, false, err));
    a->lo = e->lo;
    a->width = e->hi - e->lo;
    a->count = e->count;
    a->stride = (a->count + 63) & ~63u;
    a->pairs = (e->taps + 1) / 2;
    if (2 * a->pairs > LEAT__YCC_TAPS_MAX || 2 * a->pairs > a->width) return 0;
    LEAT_TRY(make_room(a, err));
    /* the scratch of the exact build is free now */
    uint32_t *const sum = (uint32_t *)(void *)e->sum;
    memset(sum, 0, e->stride * sizeof *sum);
    memset(a->weight, 0, (size_t)a->stride * a->pairs * sizeof *a->weight);
    stay_inside(a);
    for (uint32_t p = 0; p < a->pairs; p++) round_pair(a, p, sum);
    a->loads = 0;
    for (uint32_t n = 1; n <= 2 && a->loads == 0 && dsp->group > 0; n++)
        if (place_loads(a, dsp->group, (int32_t)(n * dsp->load))) a->loads = n;
    *fits = true;
    return 0;
}

void leat__ycc_axis_reset(leat__ycc_axis *a)
{
    leat__axis_reset(&a->exact);
    leat__free(a->block);
    memset(a, 0, sizeof *a);
}

/* ---- portable kernels ---- */

/* Scales a sum and rounds. Sums are at most 256 times a sample centred at 0, so they fit 16 bits. */
static inline int32_t scaled(int16_t sum, int32_t k)
{
    return (sum * k + (1 << 14)) >> 15;
}

static inline uint8_t clamp8(int32_t v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* Resizes one row. `pairs` is a constant for the common counts, so that the inner loop is unrolled. */
static inline __attribute__((always_inline)) void row_c(const leat__ycc_axis *a, const uint8_t *src,
                                                        int8_t *dst, const uint32_t pairs)
{
    const uint32_t n = a->count, *const first = a->first;
    const size_t stride = a->stride;
    for (uint32_t j = 0; j < n; j++) {
        const uint8_t *const s = src + first[j];
        const uint16_t *const w = a->weight + j;
        int32_t sum = -128 * 256; /* weights sum up to 256 */
        for (uint32_t p = 0; p < pairs; p++)
            sum += (w[p * stride] & 255) * s[2 * p] + (w[p * stride] >> 8) * s[2 * p + 1];
        dst[j] = (int8_t)((sum + 128) >> 8);
    }
}

static void across_c(const leat__ycc_axis *a, uint32_t rows, const uint8_t *src, size_t src_stride,
                     int8_t *dst, size_t dst_stride)
{
    for (; rows > 0; rows--, src += src_stride, dst += dst_stride) {
        if (a->pairs == 1) row_c(a, src, dst, 1);
        else if (a->pairs == 2) row_c(a, src, dst, 2);
        else row_c(a, src, dst, a->pairs);
    }
}

enum { STRIP = 32 }; /* pixels whose sums stay in registers or L1 */

static void sums_of(const leat__ycc_taps *t, size_t x, int16_t sum[STRIP])
{
    const int8_t *at = t->rows + x;
    memset(sum, 0, STRIP * sizeof *sum);
    for (uint32_t p = 0; p < t->pairs; p++, at += 2 * t->pitch) {
        const int16_t w0 = t->weight[p * t->step] & 255;
        const int16_t w1 = (int16_t)(t->weight[p * t->step] >> 8);
        const int8_t *const below = at + t->pitch;
        for (int i = 0; i < STRIP; i++)
            sum[i] = (int16_t)(sum[i] + (int16_t)(w0 * at[i]) + (int16_t)(w1 * below[i]));
    }
}

static void grey_c(const leat__ycc_taps *y, uint8_t *dst, size_t n)
{
    for (size_t x = 0; x < n; x += STRIP) {
        int16_t sum[STRIP];
        uint8_t out[STRIP];
        sums_of(y, x, sum);
        for (int i = 0; i < STRIP; i++) out[i] = (uint8_t)(scaled(sum[i], LEAT__YCC_ROUND8) + 128);
        memcpy(dst + x, out, LEAT_MIN(n - x, (size_t)STRIP));
    }
}

static void colour_c(const leat__ycc_taps comp[3], uint8_t *const dst[3], size_t n)
{
    for (size_t x = 0; x < n; x += STRIP) {
        int16_t y[STRIP], cb[STRIP], cr[STRIP];
        uint8_t out[3][STRIP];
        sums_of(&comp[0], x, y);
        sums_of(&comp[1], x, cb);
        sums_of(&comp[2], x, cr);
        for (int i = 0; i < STRIP; i++) {
            const int32_t luma = scaled(y[i], LEAT__YCC_ROUND4) + LEAT__YCC_BIAS;
            const int32_t green = scaled(cb[i], LEAT__YCC_GREEN_CB) + scaled(cr[i], LEAT__YCC_GREEN_CR);
            out[0][i] = clamp8((luma + scaled(cr[i], LEAT__YCC_RED)) >> 4);
            out[1][i] = clamp8((luma - green) >> 4);
            out[2][i] = clamp8((luma + scaled(cb[i], LEAT__YCC_BLUE)) >> 4);
        }
        for (int c = 0; c < 3; c++) memcpy(dst[c] + x, out[c], LEAT_MIN(n - x, (size_t)STRIP));
    }
}

static const leat__ycc_resize_dsp ycc_c = {
    .isa = "scalar", .across = across_c, .grey = grey_c, .colour = colour_c};

const leat__ycc_resize_dsp *leat__ycc_resize_dsp_for(uint32_t cpu_flags)
{
    const leat__ycc_resize_dsp *best = &ycc_c;
#ifdef LEAT_X86
    if (cpu_flags & LEAT__CPU_AVX2) best = &leat__ycc_resize_avx2;
    if (cpu_flags & LEAT__CPU_AVX512ICL) best = &leat__ycc_resize_avx512;
#endif
    return best;
}
