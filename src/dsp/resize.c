/* SPDX-License-Identifier: Apache-2.0
 *
 * Coefficients of a resize and the portable kernels: see resize.h.
 *
 * The arithmetic must stay the same as Pillow's: weights in double, summed in tap order,
 * divided by their sum, then rounded half away from zero to 22 fraction bits; pixels summed
 * in 32-bit integers, rounded once per pass. The file is built without contraction to FMA,
 * which would change the last bit of a weight.
 */
#include "dsp/resize.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "dsp/x86/resize_x86.h"

#define ONE (1 << LEAT__RESIZE_BITS)
#define HALF (1 << (LEAT__RESIZE_BITS - 1))

/* ---- filters ---- */

static double filter_box(double x)
{
    return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

static double filter_bilinear(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static double filter_hamming(double x)
{
    x = fabs(x);
    if (x == 0.0) return 1.0;
    if (x >= 1.0) return 0.0;
    x *= M_PI;
    return sin(x) / x * ((double)0.54f + (double)0.46f * cos(x));
}

static double filter_bicubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
    return 0.0;
}

static double sinc(double x)
{
    if (x == 0.0) return 1.0;
    x *= M_PI;
    return sin(x) / x;
}

static double filter_lanczos(double x)
{
    return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

static const struct {
    double support;
    double (*at)(double);
} filters[LEAT__FILTER_COUNT] = {
    [LEAT__FILTER_BOX] = {0.5, filter_box},         [LEAT__FILTER_BILINEAR] = {1.0, filter_bilinear},
    [LEAT__FILTER_HAMMING] = {1.0, filter_hamming}, [LEAT__FILTER_BICUBIC] = {2.0, filter_bicubic},
    [LEAT__FILTER_LANCZOS] = {3.0, filter_lanczos},
};

/* ---- building an axis ---- */

/* Grows *block to at least `bytes`; the old content is lost. */
static int grow(void *block, size_t *cap, size_t bytes, leat_error *err)
{
    void **p = block;
    if (bytes <= *cap) return 0;
    leat__free(*p);
    *cap = 0;
    *p = leat__alloc_aligned(LEAT__MEM_SCRATCH, bytes, 64);
    if (!*p) return leat__fail_nomem(err, bytes, "resize coefficients");
    *cap = bytes;
    return 0;
}

/* Makes room for `taps` (rounded up to 4) rows of weights. Sizes come from images, so they are checked for
 * overflow. */
static int grow_weights(leat__axis *a, leat_error *err)
{
    uint64_t cells, bytes;
    if (!leat__mul_u64(((uint64_t)a->taps + 3) & ~3ull, a->stride, &cells) ||
        !leat__mul_u64(cells, sizeof(double), &bytes) || bytes > (uint64_t)PTRDIFF_MAX)
        return leat__fail(err, LEAT_EOVERFLOW, "resize from %u to %u pixels is too large", a->request.in,
                          a->request.out);
    LEAT_TRY(grow(&a->weight, &a->weight_cap, cells * sizeof(int32_t), err));
    return grow(&a->work, &a->work_cap, bytes, err);
}

static int grow_outputs(leat__axis *a, leat_error *err)
{
    const size_t n = a->stride;
    LEAT_TRY(grow(&a->center, &a->output_cap, n * (2 * sizeof(double) + 2 * sizeof(uint32_t)), err));
    a->sum = a->center + n;
    a->first = (uint32_t *)(a->sum + n);
    a->taps_of = a->first + n;
    return 0;
}

static uint32_t output_at(const leat__axis_request *q, uint32_t n, uint32_t j)
{
    return q->from + (q->mirror_out ? n - 1 - j : j);
}

/* Finds the first input and the number of taps of each output, with Pillow's bounds. `first` is still
 * relative to input 0; padding outputs repeat the last. */
static void place_taps(leat__axis *a, double in0, double scale, double support)
{
    const leat__axis_request *q = &a->request;
    const int32_t in = (int32_t)q->in;
    const int32_t step = q->mirror_out ? -1 : 1;
    const int32_t start = (int32_t)output_at(q, a->count, 0);
    const uint32_t n = a->count;
    double *restrict const center = a->center; /* restrict: needed for vectorisation */
    uint32_t *restrict const first = a->first, *restrict const taps_of = a->taps_of;
    uint32_t most = 1;
    for (uint32_t j = 0; j < n; j++) {
        const double c = in0 + ((double)(start + step * (int32_t)j) + 0.5) * scale;
        const int32_t lo = (int32_t)(c - support + 0.5);
        const int32_t hi = (int32_t)(c + support + 0.5);
        const int32_t from = lo < 0 ? 0 : lo;
        center[j] = c;
        first[j] = (uint32_t)from;
        taps_of[j] = (uint32_t)((hi > in ? in : hi) - from);
        most = LEAT_MAX(most, taps_of[j]);
    }
    for (uint32_t j = n; j < a->stride; j++) {
        center[j] = center[n - 1];
        first[j] = first[n - 1];
        taps_of[j] = taps_of[n - 1];
    }
    a->taps = most;
}

/* One loop for all filters, inlined per filter so that the cheap ones vectorise. */
static inline __attribute__((always_inline)) void weigh(leat__axis *a, double scale,
                                                        double (*const at)(double))
{
    const uint32_t n = a->count, *const first = a->first, *const taps_of = a->taps_of;
    const double *const center = a->center;
    double *const sum = a->sum;
    for (uint32_t j = 0; j < n; j++) sum[j] = 0.0;
    for (uint32_t t = 0; t < a->taps; t++) {
        double *const row = a->work + (size_t)t * a->stride;
        for (uint32_t j = 0; j < n; j++) {
            const double x = (double)(int32_t)(first[j] + t) - center[j] + 0.5;
            const double v = t < taps_of[j] ? at(x * scale) : 0.0;
            row[j] = v;
            sum[j] += v;
        }
    }
}

static void weigh_by(leat__axis *a, double scale)
{
    switch (a->request.filter) {
    case LEAT__FILTER_BILINEAR: weigh(a, scale, filter_bilinear); break;
    case LEAT__FILTER_BICUBIC: weigh(a, scale, filter_bicubic); break;
    default: weigh(a, scale, filters[a->request.filter].at); break;
    }
}

static void round_weights(leat__axis *a)
{
    const double *const sum = a->sum;
    for (uint32_t t = 0; t < a->taps; t++) {
        const double *const row = a->work + (size_t)t * a->stride;
        int32_t *const out = a->weight + (size_t)t * a->stride;
        for (uint32_t j = 0; j < a->count; j++) {
            const double k = (sum[j] != 0.0 ? row[j] / sum[j] : row[j]) * ONE;
            out[j] = (int32_t)(k + (k < 0 ? -0.5 : 0.5));
        }
    }
}

static int build_filtered(leat__axis *a, const leat__resize_dsp *dsp, leat_error *err)
{
    const leat__axis_request *q = &a->request;
    const bool boxed = q->box_hi > 0;
    const double in0 = boxed ? (double)q->box_lo : 0.0;
    const double span = boxed ? (double)(q->box_hi - q->box_lo) : (double)q->in;
    const double scale = span / q->out, stretch = scale < 1.0 ? 1.0 : scale;
    place_taps(a, in0, scale, filters[q->filter].support * stretch);
    LEAT_TRY(grow_weights(a, err));
    if (q->filter == LEAT__FILTER_BILINEAR && dsp->weigh_bilinear) {
        dsp->weigh_bilinear(a, 1.0 / stretch);
    } else {
        weigh_by(a, 1.0 / stretch);
        round_weights(a);
    }
    return 0;
}

/* Uses one tap per output. Steps through the input by repeated addition, like Pillow. */
static int build_nearest(leat__axis *a, leat_error *err)
{
    const leat__axis_request *q = &a->request;
    const bool boxed = q->box_hi > 0;
    const double in0 = boxed ? (double)q->box_lo : 0.0;
    const double span = boxed ? (double)(q->box_hi - q->box_lo) : (double)q->in;
    const double step = span / q->out;
    a->taps = 1;
    LEAT_TRY(grow_weights(a, err));
    double at = in0 + step * 0.5;
    for (uint32_t i = 0; i < q->from; i++) at += step;
    for (uint32_t j = 0; j < a->count; j++, at += step) {
        const uint32_t k = q->mirror_out ? a->count - 1 - j : j;
        const uint32_t x = q->in == q->out && !boxed ? q->from + j : (uint32_t)at;
        a->first[k] = LEAT_MIN(x, q->in - 1);
        a->taps_of[k] = 1;
        a->weight[k] = ONE;
    }
    return 0;
}

/* Reverses the taps for an input that is read mirrored. */
static void mirror_taps(leat__axis *a)
{
    for (uint32_t j = 0; j < a->count; j++) {
        const uint32_t n = a->taps_of[j];
        a->first[j] = a->request.in - a->first[j] - n;
        for (uint32_t t = 0; t < n / 2; t++) {
            int32_t *const lo = &a->weight[(size_t)t * a->stride + j];
            int32_t *const hi = &a->weight[(size_t)(n - 1 - t) * a->stride + j];
            const int32_t swap = *lo;
            *lo = *hi;
            *hi = swap;
        }
    }
}

/* Finds the range of inputs, clears weights in the padding, and makes `first` relative to the range. */
static void finish(leat__axis *a)
{
    const uint32_t n = a->count, taps4 = (a->taps + 3) & ~3u;
    uint32_t lo = UINT32_MAX, hi = 0;
    for (uint32_t j = 0; j < n; j++) {
        lo = LEAT_MIN(lo, a->first[j]);
        hi = LEAT_MAX(hi, a->first[j] + a->taps_of[j]);
    }
    a->lo = lo;
    a->hi = hi;
    for (uint32_t j = 0; j < n; j++) a->first[j] -= lo;
    for (uint32_t j = n; j < a->stride; j++) {
        a->first[j] = a->first[n - 1];
        a->taps_of[j] = 1;
    }
    for (uint32_t t = 0; t < a->taps; t++)
        memset(a->weight + (size_t)t * a->stride + n, 0, (a->stride - n) * sizeof(int32_t));
    memset(a->weight + (size_t)a->taps * a->stride, 0,
           (size_t)(taps4 - a->taps) * a->stride * sizeof(int32_t));
}

static int check_request(const leat__axis_request *q, leat_error *err)
{
    if (q->in == 0 || q->out == 0 || q->in > LEAT__RESIZE_MAX || q->out > LEAT__RESIZE_MAX)
        return leat__fail(err, LEAT_EINVAL, "cannot resize %u pixels to %u", q->in, q->out);
    if (!leat__range_inside(q->from, q->count, q->out))
        return leat__fail(err, LEAT_EINVAL, "window %u+%u is outside the %u output pixels", q->from, q->count,
                          q->out);
    if (q->box_hi != 0 && !(q->box_lo >= 0 && q->box_lo < q->box_hi && q->box_hi <= (float)q->in))
        return leat__fail(err, LEAT_EINVAL, "resize box %g to %g is outside the %u input pixels",
                          (double)q->box_lo, (double)q->box_hi, q->in);
    if ((unsigned)q->filter >= LEAT__FILTER_COUNT)
        return leat__fail(err, LEAT_EINVAL, "unknown resize filter %d", (int)q->filter);
    return 0;
}

int leat__axis_build(leat__axis *a, const leat__axis_request *request, const leat__resize_dsp *dsp,
                     bool vertical, leat_error *err)
{
    LEAT_TRY(check_request(request, err));
    a->request = *request;
    leat__axis_request *q = &a->request;
    const bool same = q->in == q->out && q->box_hi == 0;
    if (q->count == 0) q->count = q->out - q->from;
    a->count = q->count;
    a->stride = (a->count + 15) & ~15u;
    LEAT_TRY(grow_outputs(a, err));
    /* an axis of unchanged length is copied, whatever the filter */
    if (same || q->filter == LEAT__FILTER_NEAREST) {
        LEAT_TRY(build_nearest(a, err));
    } else {
        LEAT_TRY(build_filtered(a, dsp, err));
    }
    if (q->mirror_in) mirror_taps(a);
    finish(a);
    a->copy = same && q->mirror_in == q->mirror_out;
    a->reverse = same && q->mirror_in != q->mirror_out;
    a->request = *request;
    LEAT_TRY(grow(&a->packed, &a->packed_cap, dsp->pack_bytes(a, vertical), err));
    dsp->pack(a, vertical, a->packed);
    return 0;
}

/* Taps ascend with the outputs, so the first and the last output give the range. */
static void filtered_range(const leat__axis_request *q, uint32_t count, uint32_t *lo, uint32_t *hi)
{
    const bool boxed = q->box_hi > 0;
    const double in0 = boxed ? (double)q->box_lo : 0.0;
    const double span = boxed ? (double)(q->box_hi - q->box_lo) : (double)q->in;
    const double scale = span / q->out, stretch = scale < 1.0 ? 1.0 : scale;
    const double support = filters[q->filter].support * stretch;
    const double first = in0 + ((double)(int32_t)q->from + 0.5) * scale;
    const double last = in0 + ((double)(int32_t)(q->from + count - 1) + 0.5) * scale;
    const int32_t from = (int32_t)(first - support + 0.5), to = (int32_t)(last + support + 0.5);
    *lo = from < 0 ? 0 : (uint32_t)from;
    *hi = LEAT_MIN((uint32_t)to, q->in);
}

/* Uses repeated addition, like the build. */
static void nearest_range(const leat__axis_request *q, uint32_t count, uint32_t *lo, uint32_t *hi)
{
    const bool boxed = q->box_hi > 0, same = q->in == q->out && !boxed;
    const double in0 = boxed ? (double)q->box_lo : 0.0;
    const double span = boxed ? (double)(q->box_hi - q->box_lo) : (double)q->in;
    const double step = span / q->out;
    double at = in0 + step * 0.5;
    for (uint32_t i = 0; i < q->from; i++) at += step;
    *lo = LEAT_MIN(same ? q->from : (uint32_t)at, q->in - 1);
    for (uint32_t i = 1; i < count; i++) at += step;
    *hi = LEAT_MIN(same ? q->from + count - 1 : (uint32_t)at, q->in - 1) + 1;
}

int leat__axis_range(const leat__axis_request *q, uint32_t *lo, uint32_t *hi, leat_error *err)
{
    LEAT_TRY(check_request(q, err));
    const uint32_t count = q->count == 0 ? q->out - q->from : q->count;
    const bool same = q->in == q->out && q->box_hi == 0;
    if (same || q->filter == LEAT__FILTER_NEAREST) nearest_range(q, count, lo, hi);
    else filtered_range(q, count, lo, hi);
    if (!q->mirror_in) return 0;
    const uint32_t low = *lo;
    *lo = q->in - *hi;
    *hi = q->in - low;
    return 0;
}

void leat__axis_reset(leat__axis *a)
{
    leat__free(a->center);
    leat__free(a->weight);
    leat__free(a->work);
    leat__free(a->packed);
    memset(a, 0, sizeof *a);
}

/* ---- portable kernels ---- */

static uint8_t clip(int32_t v)
{
    v >>= LEAT__RESIZE_BITS;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static size_t pack_bytes_c(const leat__axis *a, bool vertical)
{
    return (size_t)a->taps * a->count * sizeof(int32_t);
}

/* Orders weights by output: the taps of one output are adjacent, for both passes. */
static void pack_c(const leat__axis *a, bool vertical, void *packed)
{
    int32_t *k = packed;
    for (uint32_t j = 0; j < a->count; j++)
        for (uint32_t t = 0; t < a->taps; t++) *k++ = a->weight[(size_t)t * a->stride + j];
}

/* Resizes one row. `taps` is a constant for the common counts, so that the inner loop is unrolled. Weights
 * past an output's own taps are 0, and the pixels there are readable. */
static inline __attribute__((always_inline)) void row_c(const leat__axis *a, const uint8_t *src, uint8_t *dst,
                                                        const uint32_t taps)
{
    const int32_t *k = a->packed;
    for (uint32_t j = 0; j < a->count; j++, k += taps) {
        const uint8_t *const s = src + a->first[j];
        int32_t sum = HALF;
        for (uint32_t t = 0; t < taps; t++) sum += s[t] * k[t];
        dst[j] = clip(sum);
    }
}

static void horizontal_row_c(const leat__axis *a, const uint8_t *src, uint8_t *dst)
{
    switch (a->taps) {
    case 1: row_c(a, src, dst, 1); break;
    case 2: row_c(a, src, dst, 2); break;
    case 3: row_c(a, src, dst, 3); break;
    case 4: row_c(a, src, dst, 4); break;
    case 5: row_c(a, src, dst, 5); break;
    case 6: row_c(a, src, dst, 6); break;
    default:
        for (uint32_t j = 0; j < a->count; j++) {
            const int32_t *const k = (const int32_t *)a->packed + (size_t)j * a->taps;
            const uint8_t *const s = src + a->first[j];
            int32_t sum = HALF;
            for (uint32_t t = 0; t < a->taps_of[j]; t++) sum += s[t] * k[t];
            dst[j] = clip(sum);
        }
    }
}

static void horizontal_c(const leat__axis *a, const uint8_t *const *src, uint8_t *const *dst, uint32_t rows)
{
    for (uint32_t i = 0; i < rows; i++) horizontal_row_c(a, src[i], dst[i]);
}

static void vertical_c(const leat__axis *a, uint32_t index, const uint8_t *const *rows, uint8_t *dst,
                       size_t n)
{
    enum { STRIP = 16 }; /* sums that stay in registers */
    const int32_t *const k = (const int32_t *)a->packed + (size_t)index * a->taps;
    const uint32_t taps = a->taps_of[index];
    for (size_t x = 0; x < n; x += STRIP) {
        int32_t sum[STRIP];
        uint8_t out[STRIP];
        for (int i = 0; i < STRIP; i++) sum[i] = HALF;
        for (uint32_t t = 0; t < taps; t++) {
            const uint8_t *const s = rows[t] + x;
            const int32_t w = k[t];
            for (int i = 0; i < STRIP; i++) sum[i] += s[i] * w;
        }
        for (int i = 0; i < STRIP; i++) out[i] = clip(sum[i]);
        memcpy(dst + x, out, n - x < STRIP ? n - x : STRIP);
    }
}

static const leat__resize_dsp resize_c = {
    .isa = "scalar",
    .tap_group = 1,
    .pack_bytes = pack_bytes_c,
    .pack = pack_c,
    .horizontal = horizontal_c,
    .vertical = vertical_c,
};

const leat__resize_dsp *leat__resize_dsp_for(uint32_t cpu_flags)
{
    const leat__resize_dsp *best = &resize_c;
#ifdef LEAT_X86
    if (cpu_flags & LEAT__CPU_AVX2) best = &leat__resize_avx2;
    if (cpu_flags & LEAT__CPU_AVX512ICL) best = &leat__resize_avx512;
#endif
    return best;
}
