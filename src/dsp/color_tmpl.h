/* SPDX-License-Identifier: Apache-2.0
 *
 * The colour kernels, to be compiled once per ISA: only static functions, plain C that the
 * compiler vectorises. Included by color.c and its siblings in x86/.
 */
#include <string.h>

#include "dsp/color.h"

static inline uint8_t tmpl_blend_one(int a, int b, float alpha)
{
    const float v = (float)a + alpha * (float)(b - a);
    return (uint8_t)(v <= 0.0f ? 0.0f : v >= 255.0f ? 255.0f : v);
}

static inline uint32_t tmpl_luma_one(uint32_t r, uint32_t g, uint32_t b)
{
    return (r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16;
}

static __attribute__((unused)) void tmpl_lut(const uint8_t *src, uint8_t *dst, size_t n,
                            const uint8_t table[256])
{
    for (size_t i = 0; i < n; i++) dst[i] = table[src[i]];
}

static void tmpl_luma(const uint8_t *const rgb[3], uint8_t *restrict dst, size_t n)
{
    const uint8_t *const r = rgb[0], *const g = rgb[1], *const b = rgb[2];
    for (size_t i = 0; i < n; i++) dst[i] = (uint8_t)tmpl_luma_one(r[i], g[i], b[i]);
}

static uint64_t tmpl_luma_sum(const uint8_t *const rgb[3], size_t n)
{
    const uint8_t *const r = rgb[0], *const g = rgb[1], *const b = rgb[2];
    uint64_t all = 0;
    for (size_t at = 0; at < n;) {
        /* 32-bit sums of runs that cannot overflow vectorise better */
        const size_t end = n - at > 65536 ? at + 65536 : n;
        uint32_t sum = 0;
        for (; at < end; at++) sum += tmpl_luma_one(r[at], g[at], b[at]);
        all += sum;
    }
    return all;
}

/* Runs of 64 through local arrays: the compiler then knows that nothing overlaps. */
static void tmpl_blend(const uint8_t *a, const uint8_t *b, uint8_t *dst, size_t n,
                              float alpha)
{
    enum { RUN = 64 };
    uint8_t out[RUN];
    size_t i = 0;
    for (; i + RUN <= n; i += RUN) {
        for (size_t j = 0; j < RUN; j++) out[j] = tmpl_blend_one(a[i + j], b[i + j], alpha);
        memcpy(dst + i, out, RUN);
    }
    for (; i < n; i++) dst[i] = tmpl_blend_one(a[i], b[i], alpha);
}

/* ---- hue ---- */

/* Round half away from zero, for values that are not negative. */
static inline int tmpl_round(double v)
{
    const int whole = (int)v;
    return whole + (v - (double)whole >= 0.5);
}

static inline void tmpl_hue_one(uint8_t *rp, uint8_t *gp, uint8_t *bp, uint8_t shift)
{
    const int r = *rp, g = *gp, b = *bp;
    const int rg = r > g ? r : g, high = rg > b ? rg : b;
    const int lrg = r < g ? r : g, low = lrg < b ? lrg : b;
    /* a grey pixel has neither hue nor saturation: any divisor will do */
    const int grey = high == low;
    const float span = (float)(grey ? 1 : high - low);
    const float rc = (float)(high - r) / span, gc = (float)(high - g) / span;
    const float bc = (float)(high - b) / span;
    const float h_r = bc - gc;
    const float h_g = (float)(2.0 + (double)rc - (double)bc);
    const float h_b = (float)(4.0 + (double)gc - (double)rc);
    const float turn = r == high ? h_r : g == high ? h_g : h_b;
    const double once = (double)turn / 6.0 + 1.0;
    const float hue = (float)(once >= 1.0 ? once - 1.0 : once);
    const float sat = span / (float)(grey ? 1 : high);
    const int h8 = grey ? 0 : (int)((double)hue * 255.0);
    const int s8 = grey ? 0 : (int)((double)sat * 255.0);

    const int turned = (h8 + shift) & 255;
    const double at = (double)(float)turned * 6.0 / 255.0;
    const int sector = (int)at;
    const float f = (float)(at - (double)(float)sector);
    const float fs = (float)((double)(float)s8 / 255.0);
    const double v = (double)(float)high;
    const int p = tmpl_round(v * (1.0 - (double)fs));
    const int q = tmpl_round(v * (1.0 - (double)(fs * f)));
    const int t = tmpl_round(v * (1.0 - (double)fs * (1.0 - (double)f)));
    const int k = sector == 6 ? 0 : sector;
    const int nr = k == 0 || k == 5 ? high : k == 1 ? q : k == 4 ? t : p;
    const int ng = k == 1 || k == 2 ? high : k == 0 ? t : k == 3 ? q : p;
    const int nb = k == 3 || k == 4 ? high : k == 2 ? t : k == 5 ? q : p;
    *rp = (uint8_t)(s8 == 0 ? high : nr);
    *gp = (uint8_t)(s8 == 0 ? high : ng);
    *bp = (uint8_t)(s8 == 0 ? high : nb);
}

static void tmpl_hue(uint8_t *const rgb[3], size_t n, uint8_t shift)
{
    enum { RUN = 64 };
    uint8_t r[RUN], g[RUN], b[RUN];
    for (size_t i = 0; i < n; i += RUN) {
        const size_t m = n - i < RUN ? n - i : RUN;
        memcpy(r, rgb[0] + i, m);
        memcpy(g, rgb[1] + i, m);
        memcpy(b, rgb[2] + i, m);
        for (size_t j = 0; j < m; j++) tmpl_hue_one(&r[j], &g[j], &b[j], shift);
        memcpy(rgb[0] + i, r, m);
        memcpy(rgb[1] + i, g, m);
        memcpy(rgb[2] + i, b, m);
    }
}

/* ---- neighbourhoods ---- */

static void tmpl_smooth(const uint8_t *const rows[3], uint8_t *restrict dst, size_t n)
{
    const float edge = 1.0f / 13.0f, middle = 5.0f / 13.0f;
    const uint8_t *const up = rows[0], *const at = rows[1], *const down = rows[2];
    for (size_t i = 0; i < n; i++) {
        /* the row below first: the order of the sums shows in the last bit */
        float sum = 0.5f;
        sum += (float)down[i - 1] * edge + (float)down[i] * edge + (float)down[i + 1] * edge;
        sum += (float)at[i - 1] * edge + (float)at[i] * middle + (float)at[i + 1] * edge;
        sum += (float)up[i - 1] * edge + (float)up[i] * edge + (float)up[i + 1] * edge;
        dst[i] = (uint8_t)(sum > 255.0f ? 255.0f : sum);
    }
}

static void tmpl_blur_row(const float *src, float *dst, size_t n, const float *k,
                                 size_t taps)
{
    enum { RUN = 32 };
    for (size_t i = 0; i < n; i += RUN) {
        const size_t m = n - i < RUN ? n - i : RUN;
        float sum[RUN] = {0};
        for (size_t t = 0; t < taps; t++) {
            const float w = k[t], *const s = src + i + t;
            if (m == RUN)
                for (size_t j = 0; j < RUN; j++) sum[j] += w * s[j];
            else
                for (size_t j = 0; j < m; j++) sum[j] += w * s[j];
        }
        memcpy(dst + i, sum, m * sizeof(float));
    }
}

static void tmpl_blur_column(const float *const *rows, uint8_t *dst, size_t n,
                                    const float *k, size_t taps)
{
    enum { RUN = 32 };
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to nearest even */
    for (size_t i = 0; i < n; i += RUN) {
        const size_t m = n - i < RUN ? n - i : RUN;
        float sum[RUN] = {0};
        uint8_t out[RUN];
        for (size_t t = 0; t < taps; t++) {
            const float w = k[t], *const s = rows[t] + i;
            if (m == RUN)
                for (size_t j = 0; j < RUN; j++) sum[j] += w * s[j];
            else
                for (size_t j = 0; j < m; j++) sum[j] += w * s[j];
        }
        for (size_t j = 0; j < RUN; j++) {
            const float v = sum[j] > 255.0f ? 255.0f : sum[j];
            out[j] = (uint8_t)(int)((v + magic) - magic);
        }
        memcpy(dst + i, out, m);
    }
}

/* Four tables: equal neighbours would wait for each other's count. */
static void tmpl_histogram(const uint8_t *src, size_t n, uint32_t counts[256])
{
    uint32_t part[4][256] = {{0}};
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t j = 0; j < 4; j++) part[j][src[i + j]]++;
    for (; i < n; i++) part[0][src[i]]++;
    for (size_t v = 0; v < 256; v++)
        counts[v] += part[0][v] + part[1][v] + part[2][v] + part[3][v];
}

/* The members of a leat__color_dsp that every ISA takes from here. */
#define COLOR_TMPL_MEMBERS                                                                 \
    .luma = tmpl_luma, .luma_sum = tmpl_luma_sum, .blend = tmpl_blend, .hue = tmpl_hue,    \
    .smooth = tmpl_smooth, .blur_row = tmpl_blur_row, .blur_column = tmpl_blur_column,     \
    .histogram = tmpl_histogram
