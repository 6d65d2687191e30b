/* SPDX-License-Identifier: Apache-2.0
 *
 * Portable upsampling and colour conversion (the reference), and the selection of a variant. Any thread; no
 * state.
 */
#include "dsp/ycc.h"

#ifdef LEAT_X86
#include "dsp/x86/tile_x86.h"
#endif

/* The rounding alternates between the two outputs of a sample, so that errors do not accumulate. */
static void h2v1_c(uint8_t *restrict out, const uint8_t *restrict in, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *p = in + i;
        out[2 * i] = (uint8_t)((3 * p[0] + p[-1] + 1) >> 2);
        out[2 * i + 1] = (uint8_t)((3 * p[0] + p[1] + 2) >> 2);
    }
}

static void h2v2_c(uint8_t *restrict out, const uint8_t *restrict near, const uint8_t *restrict far,
                   uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *a = near + i, *b = far + i;
        int left = 3 * a[-1] + b[-1], here = 3 * a[0] + b[0], right = 3 * a[1] + b[1];
        out[2 * i] = (uint8_t)((3 * here + left + 8) >> 4);
        out[2 * i + 1] = (uint8_t)((3 * here + right + 7) >> 4);
    }
}

static void h1v2_c(uint8_t *restrict out, const uint8_t *restrict near, const uint8_t *restrict far,
                   uint32_t n, uint32_t bias)
{
    for (uint32_t i = 0; i < n; i++) out[i] = (uint8_t)((3u * near[i] + far[i] + bias) >> 2);
}

static void repeat2_c(uint8_t *restrict out, const uint8_t *restrict in, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) out[2 * i] = out[2 * i + 1] = in[i];
}

static void repeat4_c(uint8_t *restrict out, const uint8_t *restrict in, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) out[4 * i] = out[4 * i + 1] = out[4 * i + 2] = out[4 * i + 3] = in[i];
}

static inline uint8_t clamp8(int v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* Constants with 16 fraction bits: 1.402, 0.344136, 0.714136, 1.772. */
static void rgb_c(uint8_t *restrict r, uint8_t *restrict g, uint8_t *restrict b, const uint8_t *restrict y,
                  const uint8_t *restrict cb, const uint8_t *restrict cr, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int u = cb[i] - 128, v = cr[i] - 128;
        r[i] = clamp8(y[i] + ((91881 * v + 32768) >> 16));
        g[i] = clamp8(y[i] + ((-22554 * u - 46802 * v + 32768) >> 16));
        b[i] = clamp8(y[i] + ((116130 * u + 32768) >> 16));
    }
}

void leat__ycc_init(leat__ycc_dsp *dsp, uint32_t cpu_flags)
{
    *dsp = (leat__ycc_dsp){h2v1_c, h2v2_c, h1v2_c, repeat2_c, repeat4_c, rgb_c, "c"};
#ifdef LEAT_X86
    leat__ycc_init_x86(dsp, cpu_flags);
#endif
}
