/* SPDX-License-Identifier: Apache-2.0
 *
 * The colour kernels, compiled once per ISA: only static functions, in plain C that the compiler
 * vectorises. Included by color.c and its siblings in x86/.
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
        /* 32-bit sums of parts that cannot overflow vectorise better */
        const size_t end = n - at > 65536 ? at + 65536 : n;
        uint32_t sum = 0;
        for (; at < end; at++) sum += tmpl_luma_one(r[at], g[at], b[at]);
        all += sum;
    }
    return all;
}

/* Copies 64 at a time through a local array: so the compiler knows that nothing overlaps. */
static void tmpl_blend(const uint8_t *a, const uint8_t *b, uint8_t *dst, size_t n, float alpha)
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

/* Handles 64 pixels at a time in stages, each over numbers of one width, so that every stage vectorises. */
enum { TMPL_RUN = 64 };

typedef struct tmpl_hsv {
    int32_t high[TMPL_RUN], span[TMPL_RUN];
    int32_t h[TMPL_RUN], s[TMPL_RUN]; /* hue and saturation, 0..255; the value is `high` */
    /* the hue in sixths of a turn is base + plus - minus */
    float base[TMPL_RUN], plus[TMPL_RUN], minus[TMPL_RUN];
    int32_t p[TMPL_RUN], q[TMPL_RUN], t[TMPL_RUN], sector[TMPL_RUN];
} tmpl_hsv;

/* Selects with masks and sums of truth values. A branch, or a selection between float operations that might
 * trap, would prevent vectorisation. */
static inline void tmpl_hue_parts(tmpl_hsv *v, const uint8_t *r8, const uint8_t *g8, const uint8_t *b8)
{
    for (int j = 0; j < TMPL_RUN; j++) {
        const int32_t r = r8[j], g = g8[j], b = b8[j];
        const int32_t rg = r > g ? r : g, high = rg > b ? rg : b;
        const int32_t lrg = r < g ? r : g, low = lrg < b ? lrg : b;
        const int32_t is_r = -(r == high), is_g = -(g == high) & ~is_r, is_b = ~is_r & ~is_g;
        const int32_t plus = (b & is_r) | (r & is_g) | (g & is_b);
        const int32_t minus = (g & is_r) | (b & is_g) | (r & is_b);
        /* a grey pixel has no hue: any divisor works */
        const float span = (float)(high - low + (high == low));
        v->high[j] = high;
        v->span[j] = high - low;
        v->base[j] = (float)((2 & is_g) | (4 & is_b));
        v->plus[j] = (float)(high - plus) / span;
        v->minus[j] = (float)(high - minus) / span;
    }
}

static inline void tmpl_hue_bytes(tmpl_hsv *v)
{
    for (int j = 0; j < TMPL_RUN; j++) {
        /* exact in double, then rounded once, like Pillow's mixed expression */
        const float turn = (float)((double)v->base[j] + (double)v->plus[j] - (double)v->minus[j]);
        const double once = (double)turn / 6.0 + 1.0;
        const float hue = (float)(once - (double)(int32_t)once);
        const float sat = (float)v->span[j] / (float)(v->high[j] + (v->high[j] == 0));
        v->h[j] = (int32_t)((double)hue * 255.0) & -(v->span[j] != 0);
        v->s[j] = (int32_t)((double)sat * 255.0);
    }
}

/* Rounds half away from zero, for values that are not negative. */
static inline int32_t tmpl_round(double v)
{
    const int32_t whole = (int32_t)v;
    return whole + (int32_t)((v - (double)whole) * 2.0); /* 0 or 1: doubling is exact */
}

static inline void tmpl_hue_back(tmpl_hsv *v, int shift)
{
    for (int j = 0; j < TMPL_RUN; j++) {
        const int32_t turned = (v->h[j] + shift) & 255;
        const double at = (double)turned * 6.0 / 255.0;
        const int32_t sector = (int32_t)at;
        const float f = (float)(at - (double)sector);
        const float fs = (float)((double)v->s[j] / 255.0);
        const double value = (double)v->high[j];
        v->sector[j] = sector;
        v->p[j] = tmpl_round(value * (1.0 - (double)fs));
        v->q[j] = tmpl_round(value * (1.0 - (double)(fs * f)));
        v->t[j] = tmpl_round(value * (1.0 - (double)fs * (1.0 - (double)f)));
    }
}

/* Without saturation, p, q and t all equal the value, so grey pixels need no special case. */
static inline void tmpl_hue_pick(const tmpl_hsv *v, uint8_t *restrict r, uint8_t *restrict g,
                                 uint8_t *restrict b)
{
    for (int j = 0; j < TMPL_RUN; j++) {
        const int32_t k = v->sector[j], high = v->high[j];
        const int32_t p = v->p[j], q = v->q[j], t = v->t[j];
        const int32_t k0 = -(k == 0) | -(k == 6), k1 = -(k == 1), k2 = -(k == 2);
        const int32_t k3 = -(k == 3), k4 = -(k == 4), k5 = -(k == 5);
        r[j] = (uint8_t)((high & (k0 | k5)) | (q & k1) | (p & (k2 | k3)) | (t & k4));
        g[j] = (uint8_t)((t & k0) | (high & (k1 | k2)) | (q & k3) | (p & (k4 | k5)));
        b[j] = (uint8_t)((p & (k0 | k1)) | (t & k2) | (high & (k3 | k4)) | (q & k5));
    }
}

static void tmpl_hue(uint8_t *const rgb[3], size_t n, uint8_t shift)
{
    tmpl_hsv v;
    uint8_t px[3][TMPL_RUN] = {{0}};
    for (size_t i = 0; i < n; i += TMPL_RUN) {
        const size_t m = n - i < TMPL_RUN ? n - i : TMPL_RUN;
        for (int c = 0; c < 3; c++) memcpy(px[c], rgb[c] + i, m);
        tmpl_hue_parts(&v, px[0], px[1], px[2]);
        tmpl_hue_bytes(&v);
        tmpl_hue_back(&v, shift);
        tmpl_hue_pick(&v, px[0], px[1], px[2]);
        for (int c = 0; c < 3; c++) memcpy(rgb[c] + i, px[c], m);
    }
}

/* ---- neighbourhoods ---- */

static void tmpl_smooth_sums(const uint8_t *restrict src, float *restrict edge, float *restrict middle,
                             size_t n)
{
    const float light = 1.0f / 13.0f, heavy = 5.0f / 13.0f;
    for (size_t i = 0; i < n; i++) {
        const float left = (float)src[i] * light, right = (float)src[i + 2] * light;
        const float at = (float)src[i + 1];
        edge[i] = left + at * light + right;
        middle[i] = left + at * heavy + right;
    }
}

static void tmpl_smooth_join(const float *restrict up, const float *restrict at, const float *restrict down,
                             uint8_t *restrict dst, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        /* adds the row below first: another order changes the last bit */
        float sum = 0.5f + down[i];
        sum += at[i];
        sum += up[i];
        dst[i] = (uint8_t)(int)(sum > 255.0f ? 255.0f : sum);
    }
}

/* As many floats as a register of this ISA holds. Four sums hide the latency of an addition. */
#if defined(__AVX512F__)
enum { TMPL_LANES = 16 };
#elif defined(__AVX2__)
enum { TMPL_LANES = 8 };
#else
enum { TMPL_LANES = 4 };
#endif
typedef float tmpl_floats __attribute__((vector_size(4 * TMPL_LANES), aligned(4), may_alias));
enum { TMPL_SUMS = 4, TMPL_STRIP = TMPL_LANES * TMPL_SUMS }; /* 16, 32 or 64 */

/* Computes one strip: the sum of k[t] times row t, or times the same row from element t on. */
static inline __attribute__((always_inline)) void tmpl_weigh(const float *const *rows, const float *row,
                                                             size_t i, const float *k, size_t taps,
                                                             float out[TMPL_STRIP])
{
    tmpl_floats s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (size_t t = 0; t < taps; t++) {
        const tmpl_floats *const s = (const tmpl_floats *)((rows ? rows[t] : row + t) + i);
        s0 += k[t] * s[0];
        s1 += k[t] * s[1];
        s2 += k[t] * s[2];
        s3 += k[t] * s[3];
    }
    tmpl_floats *const to = (tmpl_floats *)out;
    to[0] = s0;
    to[1] = s1;
    to[2] = s2;
    to[3] = s3;
}

static void tmpl_blur_row(const float *src, float *dst, size_t n, const float *k, size_t taps)
{
    for (size_t i = 0; i < n; i += TMPL_STRIP) tmpl_weigh(NULL, src, i, k, taps, dst + i);
}

static void tmpl_blur_column(const float *const *rows, uint8_t *dst, size_t n, const float *k, size_t taps)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to nearest even */
    for (size_t i = 0; i < n; i += TMPL_STRIP) {
        float sum[TMPL_STRIP];
        uint8_t out[TMPL_STRIP];
        tmpl_weigh(rows, NULL, i, k, taps, sum);
        for (int j = 0; j < TMPL_STRIP; j++) {
            const float v = sum[j] > 255.0f ? 255.0f : sum[j];
            out[j] = (uint8_t)(int)((v + magic) - magic);
        }
        memcpy(dst + i, out, n - i < TMPL_STRIP ? n - i : TMPL_STRIP);
    }
}

/* Uses four tables, because equal neighbours would wait for each other's count. */
static void tmpl_histogram(const uint8_t *src, size_t stride, size_t width, size_t height,
                           uint32_t counts[256])
{
    uint32_t part[4][256] = {{0}};
    for (size_t y = 0; y < height; y++, src += stride) {
        size_t i = 0;
        for (; i + 8 <= width; i += 8) {
            uint64_t eight;
            memcpy(&eight, src + i, 8);
            for (unsigned j = 0; j < 8; j++, eight >>= 8) part[j & 3][eight & 255]++;
        }
        for (; i < width; i++) part[0][src[i]]++;
    }
    for (size_t v = 0; v < 256; v++) counts[v] = part[0][v] + part[1][v] + part[2][v] + part[3][v];
}

/* The members of a leat__color_dsp that are the same for every ISA. */
#define COLOR_TMPL_MEMBERS                                                                                   \
    .luma = tmpl_luma, .luma_sum = tmpl_luma_sum, .blend = tmpl_blend, .hue = tmpl_hue,                      \
    .smooth_sums = tmpl_smooth_sums, .smooth_join = tmpl_smooth_join, .blur_row = tmpl_blur_row,             \
    .blur_column = tmpl_blur_column, .histogram = tmpl_histogram
