/* SPDX-License-Identifier: Apache-2.0
 *
 * Alignment of thumbnails, compiled once per ISA. Sums are kept per column and added in one order, so the
 * number of lanes does not matter. The including file sets TMPL_LANES, and defines tmpl_gather and tmpl_root.
 */
#ifndef LEAT_DSP_ALIGN_TMPL_H
#define LEAT_DSP_ALIGN_TMPL_H

#include <math.h>
#include <string.h>

#include "dsp/align.h"

typedef float tmpl_float __attribute__((vector_size(4 * TMPL_LANES)));
typedef int32_t tmpl_int __attribute__((vector_size(4 * TMPL_LANES)));
typedef uint32_t tmpl_bits __attribute__((vector_size(4 * TMPL_LANES)));

static tmpl_int tmpl_gather(const uint32_t *from, tmpl_int at);
static tmpl_float tmpl_root(tmpl_float v);

#define TMPL_SIDE LEAT__ALIGN_SIDE
#define TMPL_FAR 30.999f /* the last place that has a lower and a right neighbour */
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

static inline tmpl_float tmpl_keep(tmpl_float v, tmpl_int mask)
{
    return (tmpl_float)((tmpl_int)v & mask);
}

static inline tmpl_float tmpl_pick(tmpl_int mask, tmpl_float yes, tmpl_float no)
{
    return (tmpl_float)(((tmpl_int)yes & mask) | ((tmpl_int)no & ~mask));
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

/* The sum of 32 columns. */
static inline float tmpl_total(const float *column)
{
    float part[16];
    for (int i = 0; i < 16; i++) part[i] = column[i] + column[i + 16];
    for (int n = 8; n > 0; n /= 2)
        for (int i = 0; i < n; i++) part[i] += part[i + n];
    return part[0];
}

/* Columns x to x + TMPL_LANES - 1, from the middle. */
static inline tmpl_float tmpl_columns(int x)
{
    tmpl_float v;
    for (int i = 0; i < TMPL_LANES; i++) v[i] = (float)(x + i) - LEAT__ALIGN_MIDDLE;
    return v;
}

/* ---- preparing ---- */

typedef uint8_t tmpl_bytes __attribute__((vector_size(TMPL_LANES)));
typedef int16_t tmpl_shorts __attribute__((vector_size(2 * TMPL_LANES)));

static inline tmpl_bits tmpl_widen_bytes(const uint8_t *from)
{
    tmpl_bytes v;
    memcpy(&v, from, sizeof v);
    return __builtin_convertvector(v, tmpl_bits);
}

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
}

/* Averages of a row's pixels: each pixel is added to the one or two averages that cover it. */
static inline void tmpl_shrink_row(const float *pixel, const leat__align_shrink *how, float *out)
{
    enum { PARTS = LEAT__ALIGN_COARSE / TMPL_LANES };
    tmpl_float sum[PARTS] = {{0}};
    for (int x = 0; x < TMPL_SIDE; x++)
        for (int k = 0; k < PARTS; k++) sum[k] += pixel[x] * tmpl_load(how->across[x] + k * TMPL_LANES);
    for (int k = 0; k < PARTS; k++) tmpl_store(out + k * TMPL_LANES, sum[k]);
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
                sum += how->weight[y][t] * tmpl_load(from + t * TMPL_SIDE + x);
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
            const tmpl_shorts narrow = __builtin_convertvector(v, tmpl_shorts);
            memcpy(out + i, &narrow, sizeof narrow);
            squares += v * v;
        }
        for (int k = 0; k < TMPL_LANES; k++) energy += squares[k];
    }
    return energy;
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
    const tmpl_float far = tmpl_all(TMPL_FAR);
    v = tmpl_keep(v, v > 0); /* not a number: 0 */
    return tmpl_pick(v < far, v, far);
}

/* Value and gradient of `d` at a place inside. */
typedef struct tmpl_spot {
    tmpl_float value, gx, gy;
} tmpl_spot;

static inline tmpl_spot tmpl_look(const leat__align_image *d, tmpl_place at)
{
    const tmpl_float x = tmpl_clamp(at.x), y = tmpl_clamp(at.y);
    const tmpl_int ix = __builtin_convertvector(x, tmpl_int), iy = __builtin_convertvector(y, tmpl_int);
    const tmpl_float fx = x - __builtin_convertvector(ix, tmpl_float);
    const tmpl_float fy = y - __builtin_convertvector(iy, tmpl_float);
    const tmpl_bits quad = (tmpl_bits)tmpl_gather(d->quad, (iy * TMPL_SIDE + ix) & (LEAT__ALIGN_PIXELS - 1));
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

static float tmpl_sample(const leat__align_image *q, const leat__align_image *d, const leat__align_map *m,
                         leat__align_probes *out, int *count)
{
    float off[TMPL_SIDE], inside[TMPL_SIDE];
    const float far = TMPL_SIDE - 1;
    for (int x = 0; x < TMPL_SIDE; x += TMPL_LANES) {
        const tmpl_float column = tmpl_columns(x);
        tmpl_float sum = {0}, seen = {0};
        for (int y = 0; y < TMPL_SIDE; y++) {
            const int i = y * TMPL_SIDE + x;
            const tmpl_place at = tmpl_place_of(m, column, (float)y - LEAT__ALIGN_MIDDLE);
            const tmpl_int there = (at.x >= 0) & (at.y >= 0) & (at.x < far) & (at.y < far);
            const tmpl_spot s = tmpl_look(d, at);
            const tmpl_float rest = tmpl_keep(tmpl_load(q->pixel + i) - m->gain * s.value - m->offset, there);
            const tmpl_float one = tmpl_keep(tmpl_all(1), there);
            tmpl_store(out->value + i, s.value);
            tmpl_store(out->gx + i, s.gx);
            tmpl_store(out->gy + i, s.gy);
            tmpl_store(out->rest + i, rest);
            tmpl_store(out->inside + i, one);
            sum += tmpl_abs(rest);
            seen += one;
        }
        tmpl_store(off + x, sum);
        tmpl_store(inside + x, seen);
    }
    *count = (int)tmpl_total(inside);
    return tmpl_total(off);
}

/* Sums of each column, times powers of y. */
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
        const tmpl_float ratio = most / tmpl_pick(off > most, off, most);
        const tmpl_float w = ratio * ratio * tmpl_load(p->inside + i);
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

/* Sums of columns times 1, x and x x. */
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

static float tmpl_compare(const leat__align_image *q, const leat__align_image *d, const leat__align_map *m,
                          float floor)
{
    float value[LEAT__ALIGN_PIXELS + LEAT__ALIGN_PAD];
    int32_t there[LEAT__ALIGN_PIXELS + LEAT__ALIGN_PAD];
    float columns[3][TMPL_SIDE];
    memset(value + LEAT__ALIGN_PIXELS, 0, LEAT__ALIGN_PAD * sizeof *value);
    memset(there + LEAT__ALIGN_PIXELS, 0, LEAT__ALIGN_PAD * sizeof *there);
    for (int i = 0; i < LEAT__ALIGN_PIXELS; i += TMPL_LANES) {
        const float far = TMPL_SIDE - 0.5f;
        const tmpl_place at =
            tmpl_place_of(m, tmpl_columns(i % TMPL_SIDE), (float)(i / TMPL_SIDE) - LEAT__ALIGN_MIDDLE);
        const tmpl_int here = (at.x >= -0.5f) & (at.y >= -0.5f) & (at.x < far) & (at.y < far);
        tmpl_store(value + i, tmpl_keep(tmpl_look(d, at).value, here));
        memcpy(there + i, &here, sizeof here);
    }
    for (int x = 0; x < TMPL_SIDE; x += TMPL_LANES) {
        const tmpl_int inner = tmpl_columns(x) < LEAT__ALIGN_MIDDLE; /* all but the last one */
        tmpl_float aa = {0}, bb = {0}, ab = {0};
        for (int y = 0; y < TMPL_SIDE - 1; y++) {
            const int i = y * TMPL_SIDE + x;
            tmpl_int mask, right, below;
            memcpy(&mask, there + i, sizeof mask);
            memcpy(&right, there + i + 1, sizeof right);
            memcpy(&below, there + i + TMPL_SIDE, sizeof below);
            mask &= right & below & inner;
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

#endif
