/* SPDX-License-Identifier: Apache-2.0
 *
 * Alignment of thumbnails, compiled once per ISA. Sums are kept per column and added in one order, so the
 * number of lanes does not matter. The including file sets TMPL_LANES and TMPL_MASK, the type of a lane
 * mask, and defines the functions declared below.
 */
#ifndef LEAT_DSP_ALIGN_TMPL_H
#define LEAT_DSP_ALIGN_TMPL_H

#include <math.h>
#include <string.h>

#include "dsp/align.h"

typedef float tmpl_float __attribute__((vector_size(4 * TMPL_LANES)));
typedef int32_t tmpl_int __attribute__((vector_size(4 * TMPL_LANES)));
typedef int16_t tmpl_short __attribute__((vector_size(2 * TMPL_LANES)));
typedef uint32_t tmpl_bits __attribute__((vector_size(4 * TMPL_LANES)));

static inline tmpl_float tmpl_root(tmpl_float v);
static inline tmpl_float tmpl_max(tmpl_float v, tmpl_float other); /* NaN: returns the other */
static inline tmpl_float tmpl_min(tmpl_float v, tmpl_float other);
static inline TMPL_MASK tmpl_within(tmpl_float v, float low, float high); /* low <= v < high */
static inline tmpl_float tmpl_keep(tmpl_float v, TMPL_MASK mask);         /* other lanes become 0 */
static inline uint32_t tmpl_mask_bits(TMPL_MASK mask);
static inline TMPL_MASK tmpl_bits_mask(uint32_t bits);
static inline tmpl_bits tmpl_widen_bytes(const uint8_t *from);
static inline void tmpl_store_shorts(int16_t *to, tmpl_int v);
/* Loads pixels `at` of a row of 32. */
static inline tmpl_float tmpl_pixels(const float *row, tmpl_int at);
/* Loads the quads of pixels of `d` at rows y, columns x, both below 31. */
static inline tmpl_bits tmpl_quads(const leat__align_image *d, tmpl_int x, tmpl_int y);
/* Sums 32 columns: adds halves until one number is left. */
static inline float tmpl_total(const float *column);

#define TMPL_SIDE LEAT__ALIGN_SIDE
#define TMPL_FAR 30.999f /* the last position with a lower and a right neighbour */
#define TMPL_SIGN INT32_MIN

static inline tmpl_float tmpl_load(const float *from)
{
    tmpl_float v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline void tmpl_store(float *to, tmpl_float v)
{
    memcpy(to, &v, sizeof v);
}

static inline tmpl_float tmpl_abs(tmpl_float v)
{
    return (tmpl_float)((tmpl_int)v & ~TMPL_SIGN);
}

static inline tmpl_float tmpl_all(float v)
{
    return v - (tmpl_float){0};
}

static inline tmpl_float tmpl_signed_root(tmpl_float v)
{
    return (tmpl_float)((tmpl_int)tmpl_root(tmpl_abs(v)) | ((tmpl_int)v & TMPL_SIGN));
}

/* Returns columns x to x + TMPL_LANES - 1, relative to the centre. */
static inline tmpl_float tmpl_columns(int x)
{
    tmpl_float v;
    for (int i = 0; i < TMPL_LANES; i++) v[i] = (float)(x + i) - LEAT__ALIGN_MIDDLE;
    return v;
}

/* ---- preparing ---- */

static void tmpl_prepare(const uint8_t *thumb, leat__align_image *out)
{
    for (int y = 0; y < TMPL_SIDE; y++) {
        const uint8_t *row = thumb + y * TMPL_SIDE, *below = y + 1 < TMPL_SIDE ? row + TMPL_SIDE : row;
        uint32_t *quad = out->quad + y * TMPL_SIDE;
        for (int x = 0; x < TMPL_SIDE; x += TMPL_LANES) {
            const tmpl_bits a = tmpl_widen_bytes(row + x);
            const tmpl_bits all = a | tmpl_widen_bytes(row + x + 1) << 8 | tmpl_widen_bytes(below + x) << 16 |
                                  tmpl_widen_bytes(below + x + 1) << 24;
            memcpy(quad + x, &all, sizeof all);
            tmpl_store(out->pixel + y * TMPL_SIDE + x,
                       __builtin_convertvector((tmpl_int)a, tmpl_float) - 128);
        }
        const uint32_t last = row[TMPL_SIDE - 1] | (uint32_t)below[TMPL_SIDE - 1] << 16;
        quad[TMPL_SIDE - 1] = last | last << 8;
    }
    memset(out->pixel + LEAT__ALIGN_PIXELS, 0, LEAT__ALIGN_PAD * sizeof *out->pixel);
    memcpy(out->byte, thumb, LEAT__ALIGN_PIXELS);
    memset(out->byte + LEAT__ALIGN_PIXELS, 0, LEAT__ALIGN_BYTE_PAD);
}

/* Averages the pixels of a row. */
static inline void tmpl_shrink_row(const float *row, const leat__align_shrink *how, float *out)
{
    for (int k = 0; k < LEAT__ALIGN_COARSE; k += TMPL_LANES) {
        tmpl_float sum = {0};
        tmpl_int at;
        memcpy(&at, how->first + k, sizeof at);
        for (int t = 0; t < how->taps; t++) sum += tmpl_pixels(row, at + t) * tmpl_load(how->weight[t] + k);
        tmpl_store(out + k, sum);
    }
}

static int32_t tmpl_shrink(const leat__align_image *image, const leat__align_shrink *how, int16_t *out)
{
    float value[LEAT__ALIGN_COARSE * LEAT__ALIGN_COARSE], columns[TMPL_SIDE] = {0};
    const int n = how->n;
    int32_t energy = 0;
    for (int y = 0; y < n; y++) {
        float row[TMPL_SIDE];
        const float *from = image->pixel + how->first[y] * TMPL_SIDE;
        for (int x = 0; x < TMPL_SIDE; x += TMPL_LANES) {
            tmpl_float sum = {0};
            for (int t = 0; t < how->taps; t++)
                sum += how->weight[t][y] * tmpl_load(from + t * TMPL_SIDE + x);
            tmpl_store(row + x, sum);
        }
        tmpl_shrink_row(row, how, value + y * LEAT__ALIGN_COARSE);
    }
    for (int y = 0; y < n; y++)
        for (int x = 0; x < LEAT__ALIGN_COARSE; x++) columns[x] += value[y * LEAT__ALIGN_COARSE + x];
    const float mean = tmpl_total(columns) / (float)(n * n), round = 12582912; /* 1.5 x 2^23 */
    for (int x = 0; x < LEAT__ALIGN_COARSE; x += TMPL_LANES) {
        const tmpl_int inner = tmpl_columns(x) < (float)n - LEAT__ALIGN_MIDDLE;
        tmpl_int squares = {0};
        for (int y = 0; y < n; y++) {
            const int i = y * LEAT__ALIGN_COARSE + x;
            const tmpl_float near = (tmpl_load(value + i) - mean) * LEAT__ALIGN_SCALE + round - round;
            const tmpl_int v = __builtin_convertvector(near, tmpl_int) & inner;
            tmpl_store_shorts(out + i, v);
            squares += v * v;
        }
        for (int k = 0; k < TMPL_LANES; k++) energy += squares[k];
    }
    return energy;
}

/* Converts 16-bit numbers. */
static inline tmpl_float tmpl_load_shorts(const int16_t *from)
{
    tmpl_short v;
    memcpy(&v, from, sizeof v);
    return __builtin_convertvector(__builtin_convertvector(v, tmpl_int), tmpl_float);
}

static float tmpl_outlines(const int16_t *a, const int16_t *b, int n, float floor)
{
    float columns[3][TMPL_SIDE] = {{0}};
    for (int x = 0; x < n - 1; x += TMPL_LANES) {
        /* the last column has no right neighbour */
        const tmpl_int inner = tmpl_columns(x) < (float)(n - 1) - LEAT__ALIGN_MIDDLE;
        tmpl_float aa = {0}, bb = {0}, ab = {0}, v = tmpl_load_shorts(a + x), w = tmpl_load_shorts(b + x);
        for (int y = 0; y < n - 1; y++) {
            const int i = y * LEAT__ALIGN_COARSE + x;
            const tmpl_float below_v = tmpl_load_shorts(a + i + LEAT__ALIGN_COARSE),
                             below_w = tmpl_load_shorts(b + i + LEAT__ALIGN_COARSE);
            const tmpl_float vx = tmpl_load_shorts(a + i + 1) - v, vy = below_v - v;
            const tmpl_float wx = tmpl_load_shorts(b + i + 1) - w, wy = below_w - w;
            aa += tmpl_abs(vx) + tmpl_abs(vy);
            bb += tmpl_abs(wx) + tmpl_abs(wy);
            ab += tmpl_signed_root(vx * wx) + tmpl_signed_root(vy * wy);
            v = below_v;
            w = below_w;
        }
        tmpl_store(columns[0] + x, (tmpl_float)((tmpl_int)aa & inner));
        tmpl_store(columns[1] + x, (tmpl_float)((tmpl_int)bb & inner));
        tmpl_store(columns[2] + x, (tmpl_float)((tmpl_int)ab & inner));
    }
    return tmpl_total(columns[2]) /
           sqrtf((tmpl_total(columns[0]) + floor) * (tmpl_total(columns[1]) + floor));
}

/* ---- aligning ---- */

typedef struct tmpl_place {
    tmpl_float x, y; /* in pixels */
} tmpl_place;

static inline tmpl_place tmpl_place_of(const leat__align_map *m, tmpl_float x, float y)
{
    const float *p = m->p;
    return (tmpl_place){p[1] * x + (p[0] + p[2] * y + LEAT__ALIGN_MIDDLE),
                        p[4] * x + (p[3] + p[5] * y + LEAT__ALIGN_MIDDLE)};
}

static inline tmpl_float tmpl_clamp(tmpl_float v)
{
    return tmpl_min(tmpl_max(v, tmpl_all(0)), tmpl_all(TMPL_FAR)); /* NaN becomes 0 */
}

/* Value and gradient of `d` at a position inside. */
typedef struct tmpl_spot {
    tmpl_float value, gx, gy;
} tmpl_spot;

static inline tmpl_spot tmpl_look(const leat__align_image *d, tmpl_place at)
{
    const tmpl_float x = tmpl_clamp(at.x), y = tmpl_clamp(at.y);
    const tmpl_int ix = __builtin_convertvector(x, tmpl_int), iy = __builtin_convertvector(y, tmpl_int);
    const tmpl_float fx = x - __builtin_convertvector(ix, tmpl_float);
    const tmpl_float fy = y - __builtin_convertvector(iy, tmpl_float);
    const tmpl_bits quad = tmpl_quads(d, ix, iy);
#define TMPL_BYTE(n) __builtin_convertvector((tmpl_int)(quad >> (8 * (n)) & 255), tmpl_float)
    const tmpl_float a = TMPL_BYTE(0), c = TMPL_BYTE(2), ab = TMPL_BYTE(1) - a, cd = TMPL_BYTE(3) - c;
#undef TMPL_BYTE
    const tmpl_float upper = a + ab * fx, lower = c + cd * fx;
    tmpl_spot s;
    s.gy = lower - upper;
    s.gx = ab + (cd - ab) * fy;
    s.value = upper + s.gy * fy - 128;
    return s;
}

/* Returns the lanes whose position is at least `low` and less than 31 - low. */
static inline TMPL_MASK tmpl_there(tmpl_place at, float low)
{
    const float high = TMPL_SIDE - 1 - low;
    return tmpl_within(at.x, low, high) & tmpl_within(at.y, low, high);
}

static float tmpl_sample(const leat__align_image *q, const leat__align_image *d, const leat__align_map *m,
                         leat__align_probes *out, int *count)
{
    float off[TMPL_SIDE];
    memset(out->inside, 0, sizeof out->inside);
    for (int x = 0; x < TMPL_SIDE; x += TMPL_LANES) {
        const tmpl_float column = tmpl_columns(x);
        tmpl_float sum = {0};
        for (int y = 0; y < TMPL_SIDE; y++) {
            const int i = y * TMPL_SIDE + x;
            const tmpl_place at = tmpl_place_of(m, column, (float)y - LEAT__ALIGN_MIDDLE);
            const TMPL_MASK there = tmpl_there(at, 0);
            const tmpl_spot s = tmpl_look(d, at);
            const tmpl_float rest = tmpl_keep(tmpl_load(q->pixel + i) - m->gain * s.value - m->offset, there);
            tmpl_store(out->value + i, s.value);
            tmpl_store(out->gx + i, s.gx);
            tmpl_store(out->gy + i, s.gy);
            tmpl_store(out->rest + i, rest);
            out->inside[y] |= tmpl_mask_bits(there) << x;
            sum += tmpl_abs(rest);
        }
        tmpl_store(off + x, sum);
    }
    *count = 0;
    for (int y = 0; y < TMPL_SIDE; y++) *count += __builtin_popcount(out->inside[y]);
    return tmpl_total(off);
}

/* Sums of each column, multiplied by powers of y. */
enum { TMPL_SECOND = 3, TMPL_FIRST = 6, TMPL_PLAIN = 5 };
typedef struct tmpl_columns_of {
    float second[TMPL_SECOND][3][TMPL_SIDE], first[TMPL_FIRST][2][TMPL_SIDE], plain[TMPL_PLAIN][TMPL_SIDE];
} tmpl_columns_of;

static inline void tmpl_add_columns(const leat__align_probes *p, float limit, int x, tmpl_columns_of *to)
{
    tmpl_float second[TMPL_SECOND][3] = {{{0}}}, first[TMPL_FIRST][2] = {{{0}}}, plain[TMPL_PLAIN] = {{0}};
    const tmpl_float most = tmpl_all(limit);
    for (int y = 0; y < TMPL_SIDE; y++) {
        const int i = y * TMPL_SIDE + x;
        const float row = (float)y - LEAT__ALIGN_MIDDLE;
        const tmpl_float rest = tmpl_load(p->rest + i), off = tmpl_abs(rest);
        const tmpl_float ratio = most / tmpl_max(off, most);
        const tmpl_float w = tmpl_keep(ratio * ratio, tmpl_bits_mask(p->inside[y] >> x));
        const tmpl_float gx = tmpl_load(p->gx + i), gy = tmpl_load(p->gy + i), v = tmpl_load(p->value + i);
        const tmpl_float wx = w * gx, wy = w * gy, wv = w * v;
        const tmpl_float f2[TMPL_SECOND] = {wx * gx, wx * gy, wy * gy};
        const tmpl_float f1[TMPL_FIRST] = {wx, wx * v, wx * rest, wy, wy * v, wy * rest};
        for (int k = 0; k < TMPL_SECOND; k++) {
            const tmpl_float by_y = f2[k] * row;
            second[k][0] += f2[k];
            second[k][1] += by_y;
            second[k][2] += by_y * row;
        }
        for (int k = 0; k < TMPL_FIRST; k++) {
            first[k][0] += f1[k];
            first[k][1] += f1[k] * row;
        }
        plain[0] += wv * v;
        plain[1] += wv * rest;
        plain[2] += wv;
        plain[3] += w * rest;
        plain[4] += w;
    }
    for (int k = 0; k < TMPL_SECOND; k++)
        for (int n = 0; n < 3; n++) tmpl_store(to->second[k][n] + x, second[k][n]);
    for (int k = 0; k < TMPL_FIRST; k++)
        for (int n = 0; n < 2; n++) tmpl_store(to->first[k][n] + x, first[k][n]);
    for (int k = 0; k < TMPL_PLAIN; k++) tmpl_store(to->plain[k] + x, plain[k]);
}

/* Sums columns multiplied by 1, x and x x. */
static inline void tmpl_moments(const float *column, int n, float *out)
{
    float by_x[TMPL_SIDE];
    memcpy(by_x, column, sizeof by_x);
    for (int k = 0; k < n; k++) {
        if (k > 0)
            for (int x = 0; x < TMPL_SIDE; x += TMPL_LANES)
                tmpl_store(by_x + x, tmpl_load(by_x + x) * tmpl_columns(x));
        out[k] = tmpl_total(by_x);
    }
}

static void tmpl_sums(const leat__align_probes *p, float limit, float out[LEAT__ALIGN_SUMS])
{
    tmpl_columns_of c;
    float m[3];
    for (int x = 0; x < TMPL_SIDE; x += TMPL_LANES) tmpl_add_columns(p, limit, x, &c);
    for (int k = 0; k < TMPL_SECOND; k++) {
        float *to = out + LEAT__ALIGN_XX + 6 * k;
        tmpl_moments(c.second[k][0], 3, m);
        to[0] = m[0];
        to[1] = m[1];
        to[3] = m[2];
        tmpl_moments(c.second[k][1], 2, m);
        to[2] = m[0];
        to[4] = m[1];
        to[5] = tmpl_total(c.second[k][2]);
    }
    for (int k = 0; k < TMPL_FIRST; k++) {
        float *to = out + LEAT__ALIGN_X1 + 3 * k;
        tmpl_moments(c.first[k][0], 2, to);
        to[2] = tmpl_total(c.first[k][1]);
    }
    for (int k = 0; k < TMPL_PLAIN; k++) out[LEAT__ALIGN_VV + k] = tmpl_total(c.plain[k]);
}

/* Correlates the gradients of q with those of `value`, samples of the other image at the positions of `m`. */
static float tmpl_compare_values(const leat__align_image *q, const float *value, const leat__align_map *m,
                                 float floor)
{
    uint32_t there[TMPL_SIDE] = {0};
    float columns[3][TMPL_SIDE];
    for (int x = 0; x < TMPL_SIDE; x += TMPL_LANES)
        for (int y = 0; y < TMPL_SIDE; y++) {
            const tmpl_place at = tmpl_place_of(m, tmpl_columns(x), (float)y - LEAT__ALIGN_MIDDLE);
            there[y] |= tmpl_mask_bits(tmpl_there(at, -0.5f)) << x;
        }
    for (int x = 0; x < TMPL_SIDE; x += TMPL_LANES) {
        tmpl_float aa = {0}, bb = {0}, ab = {0};
        for (int y = 0; y < TMPL_SIDE - 1; y++) {
            const int i = y * TMPL_SIDE + x;
            /* the last column has no right neighbour */
            const TMPL_MASK mask = tmpl_bits_mask((there[y] & there[y] >> 1 & there[y + 1]) >> x);
            const tmpl_float v = tmpl_load(value + i), p = tmpl_load(q->pixel + i);
            const tmpl_float a = tmpl_keep(tmpl_load(value + i + 1) - v, mask),
                             c = tmpl_keep(tmpl_load(value + i + TMPL_SIDE) - v, mask);
            const tmpl_float b = tmpl_keep(tmpl_load(q->pixel + i + 1) - p, mask),
                             e = tmpl_keep(tmpl_load(q->pixel + i + TMPL_SIDE) - p, mask);
            aa += tmpl_abs(a) + tmpl_abs(c);
            bb += tmpl_abs(b) + tmpl_abs(e);
            ab += tmpl_signed_root(a * b) + tmpl_signed_root(c * e);
        }
        tmpl_store(columns[0] + x, aa);
        tmpl_store(columns[1] + x, bb);
        tmpl_store(columns[2] + x, ab);
    }
    return tmpl_total(columns[2]) /
           sqrtf((tmpl_total(columns[0]) + floor) * (tmpl_total(columns[1]) + floor));
}

static float tmpl_compare_sampled(const leat__align_image *q, const leat__align_probes *p,
                                  const leat__align_map *m, float floor)
{
    return tmpl_compare_values(q, p->value, m, floor);
}

static float tmpl_compare(const leat__align_image *q, const leat__align_image *d, const leat__align_map *m,
                          float floor)
{
    float value[LEAT__ALIGN_PIXELS];
    for (int x = 0; x < TMPL_SIDE; x += TMPL_LANES)
        for (int y = 0; y < TMPL_SIDE; y++) {
            const tmpl_place at = tmpl_place_of(m, tmpl_columns(x), (float)y - LEAT__ALIGN_MIDDLE);
            tmpl_store(value + y * TMPL_SIDE + x, tmpl_look(d, at).value);
        }
    return tmpl_compare_values(q, value, m, floor);
}

#endif
