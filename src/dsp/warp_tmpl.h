/* SPDX-License-Identifier: Apache-2.0
 *
 * The warp kernels, compiled once per ISA: only static functions. Positions are plain C that the compiler
 * vectorises along the row; filters process the four channels of a pixel as one vector. Included by warp.c
 * and its siblings in x86/.
 */
#include <string.h>

#include "dsp/warp.h"

#if defined(__SSE4_1__)
#include <immintrin.h>
#endif

enum { TMPL_RUN = LEAT__WARP_RUN };

static __attribute__((unused)) void tmpl_pack(const uint8_t *const plane[4], uint32_t *restrict dst, size_t n)
{
    const uint8_t *const a = plane[0], *const b = plane[1], *const c = plane[2], *const d = plane[3];
    for (size_t i = 0; i < n; i++)
        dst[i] = (uint32_t)a[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16 | (uint32_t)d[i] << 24;
}

static void tmpl_unpack(const uint32_t *restrict px, uint8_t *const dst[4], uint32_t channels, size_t n)
{
    for (uint32_t c = 0; c < channels; c++) {
        uint8_t *restrict const to = dst[c];
        for (size_t i = 0; i < n; i++) to[i] = (uint8_t)(px[i] >> 8 * c);
    }
}

/* ---- positions ---- */

static void tmpl_fixed(const leat__warp_image *im, int32_t *restrict at, size_t n, const uint32_t from[2],
                       const uint32_t step[2])
{
    const uint32_t w = im->width, h = im->height, stride = (uint32_t)im->stride;
    const uint32_t x0 = from[0], y0 = from[1], dx = step[0], dy = step[1];
    const int32_t outside = im->outside;
    for (size_t i = 0; i < n; i++) {
        const int32_t x = (int32_t)(x0 + (uint32_t)i * dx) >> 16;
        const int32_t y = (int32_t)(y0 + (uint32_t)i * dy) >> 16;
        const int32_t out = -((uint32_t)x >= w) | -((uint32_t)y >= h);
        at[i] = ((int32_t)((uint32_t)y * stride + (uint32_t)x) & ~out) | (outside & out);
    }
}

/* Processes pixels in stages that the compiler vectorises: first all positions as doubles, then which are
 * inside, then pixel and distance of positions that fit an integer. */
static inline void tmpl_pick(const leat__warp_image *im, double half, const double *restrict u,
                             const double *restrict v, int32_t *restrict at, double *restrict dx,
                             double *restrict dy)
{
    const double w = im->width, h = im->height;
    const int32_t stride = im->stride, outside = im->outside;
    int32_t in[TMPL_RUN], left[TMPL_RUN], top[TMPL_RUN];
    for (int j = 0; j < TMPL_RUN; j++) in[j] = -((u[j] >= 0.0) & (v[j] >= 0.0) & (u[j] < w) & (v[j] < h));
    for (int j = 0; j < TMPL_RUN; j++) {
        const double low = u[j] > 0.0 ? u[j] : 0.0, x = (low < w ? low : w) - half;
        const int32_t whole = (int32_t)x;
        left[j] = whole - (x < (double)whole);
        dx[j] = x - (double)left[j];
    }
    for (int j = 0; j < TMPL_RUN; j++) {
        const double low = v[j] > 0.0 ? v[j] : 0.0, y = (low < h ? low : h) - half;
        const int32_t whole = (int32_t)y;
        top[j] = whole - (y < (double)whole);
        dy[j] = y - (double)top[j];
    }
    for (int j = 0; j < TMPL_RUN; j++) at[j] = ((top[j] * stride + left[j]) & in[j]) | (outside & ~in[j]);
}

static inline void tmpl_affine(const double a[8], double y, size_t from, double *restrict u,
                               double *restrict v)
{
    const double a0 = a[0], a1y = a[1] * y, a2 = a[2], a3 = a[3], a4y = a[4] * y, a5 = a[5];
    for (int j = 0; j < TMPL_RUN; j++) {
        const double x = (double)((int32_t)from + j) + 0.5;
        u[j] = a0 * x + a1y + a2;
        v[j] = a3 * x + a4y + a5;
    }
}

static inline void tmpl_divide(const double a[8], double y, size_t from, double *restrict u,
                               double *restrict v)
{
    const double a6 = a[6], a7y = a[7] * y;
    for (int j = 0; j < TMPL_RUN; j++) {
        const double x = (double)((int32_t)from + j) + 0.5, by = a6 * x + a7y + 1;
        u[j] /= by;
        v[j] /= by;
    }
}

static void tmpl_mapped(const leat__warp_image *im, const leat__warp_map *m, uint32_t y, size_t n,
                        leat__warp_spots s)
{
    double u[TMPL_RUN], v[TMPL_RUN];
    const double half = m->nearest ? 0.0 : 0.5;
    for (size_t i = 0; i < n; i += TMPL_RUN) {
        tmpl_affine(m->a, y + 0.5, i, u, v);
        if (!m->flat) tmpl_divide(m->a, y + 0.5, i, u, v);
        tmpl_pick(im, half, u, v, s.at + i, s.dx + i, s.dy + i);
    }
}

/* ---- pixels ---- */

static __attribute__((unused)) void tmpl_nearest(const leat__warp_image *im, leat__warp_spots s,
                                                 uint32_t *restrict px, size_t n)
{
    for (size_t i = 0; i < n; i++) px[i] = im->origin[s.at[i]];
}

/* The channels of a pixel in one vector: all four, or two at a time if a register holds no more. */
#if defined(__AVX__)
enum { TMPL_LANES = 4 };
#else
enum { TMPL_LANES = 2 };
#endif
typedef int32_t tmpl_ints __attribute__((vector_size(16)));
typedef double tmpl_doubles __attribute__((vector_size(8 * TMPL_LANES)));

static inline tmpl_ints tmpl_channels(uint32_t px, int first)
{
    px >>= 8 * first;
#if defined(__SSE4_1__)
    return (tmpl_ints)_mm_cvtepu8_epi32(_mm_cvtsi32_si128((int)px));
#else
    return (tmpl_ints){(int32_t)(px & 255), (int32_t)(px >> 8 & 255)};
#endif
}

/* Current compilers convert element by element unless an intrinsic is used. */
static inline tmpl_doubles tmpl_exact(tmpl_ints v)
{
#if defined(__AVX__)
    return (tmpl_doubles)_mm256_cvtepi32_pd((__m128i)v);
#elif defined(__SSE4_1__)
    return (tmpl_doubles)_mm_cvtepi32_pd((__m128i)v);
#else
    return (tmpl_doubles){v[0], v[1]};
#endif
}

/* Rounds towards zero and clips to 0..255. */
static inline uint32_t tmpl_bytes(tmpl_doubles v, int first)
{
#if defined(__SSE4_1__)
#if defined(__AVX__)
    const __m128i i = _mm256_cvttpd_epi32((__m256d)v);
#else
    const __m128i i = _mm_cvttpd_epi32((__m128d)v);
#endif
    const __m128i words = _mm_packus_epi32(i, i);
    return (uint32_t)_mm_cvtsi128_si32(_mm_packus_epi16(words, words)) << 8 * first;
#else
    uint32_t px = 0;
    for (int c = 0; c < TMPL_LANES; c++)
        px |= (uint32_t)(v[c] <= 0 ? 0 : v[c] >= 255 ? 255 : v[c]) << 8 * (first + c);
    return px;
#endif
}

static inline tmpl_doubles tmpl_between(const uint32_t *p, double d, int first)
{
    const tmpl_ints a = tmpl_channels(p[0], first), b = tmpl_channels(p[1], first);
    return tmpl_exact(a) + tmpl_exact(b - a) * d;
}

static inline void tmpl_mix(const leat__warp_image *im, leat__warp_spots s, uint32_t *restrict px, size_t n,
                            double add)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t *const p = im->origin + s.at[i], *const q = p + im->stride;
        uint32_t all = 0;
        for (int c = 0; c < 4; c += TMPL_LANES) {
            const tmpl_doubles up = tmpl_between(p, s.dx[i], c), down = tmpl_between(q, s.dx[i], c);
            all |= tmpl_bytes(up + (down - up) * s.dy[i] + add, c);
        }
        px[i] = all;
    }
}

static void tmpl_bilinear(const leat__warp_image *im, leat__warp_spots s, uint32_t *restrict px, size_t n)
{
    tmpl_mix(im, s, px, n, 0.0);
}

static void tmpl_rounded(const leat__warp_image *im, leat__warp_spots s, uint32_t *restrict px, size_t n)
{
    tmpl_mix(im, s, px, n, 0.5);
}

/* Evaluates a cubic through four values, in Pillow's form. For bytes, its coefficients are exact integers. */
static inline tmpl_doubles tmpl_cubic_row(const uint32_t *p, double d, int first)
{
    const tmpl_ints v1 = tmpl_channels(p[-1], first), v2 = tmpl_channels(p[0], first);
    const tmpl_ints v3 = tmpl_channels(p[1], first), v4 = tmpl_channels(p[2], first);
    const tmpl_doubles p2 = tmpl_exact(v3 - v1), p3 = tmpl_exact(2 * (v1 - v2) + v3 - v4);
    const tmpl_doubles p4 = tmpl_exact(v2 - v1 - v3 + v4);
    return tmpl_exact(v2) + d * (p2 + d * (p3 + d * p4));
}

static inline tmpl_doubles tmpl_cubic(const tmpl_doubles v[4], double d)
{
    const tmpl_doubles p2 = -v[0] + v[2];
    const tmpl_doubles p3 = 2 * (v[0] - v[1]) + v[2] - v[3];
    const tmpl_doubles p4 = -v[0] + v[1] - v[2] + v[3];
    return v[1] + d * (p2 + d * (p3 + d * p4));
}

static void tmpl_bicubic(const leat__warp_image *im, leat__warp_spots s, uint32_t *restrict px, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t *const p = im->origin + s.at[i] - im->stride;
        uint32_t all = 0;
        for (int c = 0; c < 4; c += TMPL_LANES) {
            tmpl_doubles v[4];
            for (int k = 0; k < 4; k++) v[k] = tmpl_cubic_row(p + k * im->stride, s.dx[i], c);
            all |= tmpl_bytes(tmpl_cubic(v, s.dy[i]), c);
        }
        px[i] = all;
    }
}

/* The members of a leat__warp_dsp that are the same for every ISA. */
#define WARP_TMPL_MEMBERS                                                                                    \
    .mapped = tmpl_mapped, .bilinear = tmpl_bilinear, .rounded = tmpl_rounded, .bicubic = tmpl_bicubic
