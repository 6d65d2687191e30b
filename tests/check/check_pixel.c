/* SPDX-License-Identifier: Apache-2.0
 *
 * Row writers and colour kernels: every variant must equal the portable C bit for bit (also the
 * blur, whose sums the compiler may not reorder), for any length, without touching a byte more
 * than promised.
 */
#include <string.h>

#include "check.h"
#include "dsp/color.h"
#include "dsp/pixel.h"

enum { MOST = 400 };

static const uint8_t *random_bytes(check *c, size_t n)
{
    uint8_t *const p = check_alloc(c, n ? n : 1);
    check_random(c, p, n);
    return p;
}

static void check_writers(check *c)
{
    const leat__pixel_dsp *const ref = leat__pixel_dsp_for(CHECK_REFERENCE);
    const leat__pixel_dsp *const opt = leat__pixel_dsp_for(c->flags);
    static uint8_t want[12 * MOST];
    leat__norm norm;
    leat__norm_init(&norm, check_below(c, 2), (float)check_below(c, 100) / 99,
                    0.01f + (float)check_below(c, 100) / 50);
    const size_t n = check_below(c, MOST);
    const uint8_t *const src = random_bytes(c, n);
    float *const full = (float *)check_alloc(c, n * 4 + 4) + 1;
    uint16_t *const half = (uint16_t *)check_alloc(c, n * 2 + 2) + 1;
    ref->to_f32(&norm, src, (float *)want, n);
    opt->to_f32(&norm, src, full, n);
    CHECK(c, memcmp(want, full, 4 * n) == 0, "f32, %zu", n);
    ref->to_f16(&norm, src, (uint16_t *)want, n);
    opt->to_f16(&norm, src, half, n);
    CHECK(c, memcmp(want, half, 2 * n) == 0, "f16, %zu", n);
    ref->to_bf16(&norm, src, (uint16_t *)want, n);
    opt->to_bf16(&norm, src, half, n);
    CHECK(c, memcmp(want, half, 2 * n) == 0, "bf16, %zu", n);
    const uint8_t *wide[3];
    for (int i = 0; i < 3; i++) wide[i] = random_bytes(c, 4 * n);
    const uint32_t *const w32[3] = {(const uint32_t *)wide[0], (const uint32_t *)wide[1],
                                    (const uint32_t *)wide[2]};
    const uint16_t *const w16[3] = {(const uint16_t *)wide[0], (const uint16_t *)wide[1],
                                    (const uint16_t *)wide[2]};
    uint8_t *const woven = check_alloc(c, 12 * n + 4);
    ref->interleave8(wide, want, n);
    opt->interleave8(wide, woven, n);
    CHECK(c, memcmp(want, woven, 3 * n) == 0, "interleave8, %zu", n);
    ref->interleave16(w16, (uint16_t *)want, n);
    opt->interleave16(w16, (uint16_t *)woven, n);
    CHECK(c, memcmp(want, woven, 6 * n) == 0, "interleave16, %zu", n);
    ref->interleave32(w32, (uint32_t *)want, n);
    opt->interleave32(w32, (uint32_t *)woven, n);
    CHECK(c, memcmp(want, woven, 12 * n) == 0, "interleave32, %zu", n);
    uint8_t *const back = check_alloc(c, n + 1) + 1;
    ref->reverse(src, want, n);
    opt->reverse(src, back, n);
    CHECK(c, memcmp(want, back, n) == 0, "reverse, %zu", n);
}

/* Rows as blended by MixUp: finite numbers, weights with a sum of 1. */
static void check_blends(check *c)
{
    const leat__pixel_dsp *const ref = leat__pixel_dsp_for(CHECK_REFERENCE);
    const leat__pixel_dsp *const opt = leat__pixel_dsp_for(c->flags);
    static uint8_t want[4 * MOST];
    leat__norm norm;
    leat__norm_init(&norm, true, 0.4f, 0.01f + (float)check_below(c, 100) / 50);
    const float wa = (float)check_below(c, 1001) / 1000, wb = (float)(1.0 - (double)wa);
    const size_t n = check_below(c, MOST);
    const uint8_t *const x = random_bytes(c, n), *const y = random_bytes(c, n);
    void *const a = (uint8_t *)check_alloc(c, 4 * n + 4) + 4, *const b = check_alloc(c, 4 * n + 4);
    memcpy(want, x, n);
    memcpy(a, x, n);
    ref->blend_u8(want, y, n, wa, wb);
    opt->blend_u8(a, y, n, wa, wb);
    CHECK(c, memcmp(want, a, n) == 0, "blend_u8, %zu", n);
#define BLEND(name, type, size)                                                                              \
    ref->to_##name(&norm, x, (type *)want, n);                                                               \
    ref->to_##name(&norm, x, a, n);                                                                          \
    ref->to_##name(&norm, y, b, n);                                                                          \
    ref->blend_##name((type *)want, b, n, wa, wb);                                                           \
    opt->blend_##name(a, b, n, wa, wb);                                                                      \
    CHECK(c, memcmp(want, a, (size)*n) == 0, "blend_" #name ", %zu", n)
    BLEND(f32, float, 4);
    BLEND(f16, uint16_t, 2);
    BLEND(bf16, uint16_t, 2);
}

static void time_writers(check *c)
{
    const leat__pixel_dsp *const opt = leat__pixel_dsp_for(c->flags);
    leat__norm norm;
    leat__norm_init(&norm, true, 0.485f, 0.229f);
    const uint8_t *const src = random_bytes(c, 224);
    const uint8_t *const rows[3] = {src, src, src};
    void *const dst = check_alloc(c, 224 * 4);
    check_writers(c);
    CHECK_TIME(c, "to_f32", 224 * 5, opt->to_f32(&norm, src, dst, 224));
    CHECK_TIME(c, "to_f16", 224 * 3, opt->to_f16(&norm, src, dst, 224));
    CHECK_TIME(c, "interleave8", 224 * 6, opt->interleave8(rows, dst, 224));
}

static void check_values(check *c)
{
    const leat__color_dsp *const ref = leat__color_dsp_for(CHECK_REFERENCE);
    const leat__color_dsp *const opt = leat__color_dsp_for(c->flags);
    static uint8_t want[MOST], copy[3][MOST];
    uint8_t table[256];
    const size_t n = check_below(c, MOST);
    check_random(c, table, 256);
    const uint8_t *rgb[3];
    uint8_t *got[3];
    for (int i = 0; i < 3; i++) {
        rgb[i] = random_bytes(c, n);
        got[i] = check_alloc(c, n + 1) + 1;
    }
    ref->lut(rgb[0], want, n, table);
    opt->lut(rgb[0], got[0], n, table);
    CHECK(c, memcmp(want, got[0], n) == 0, "lut, %zu", n);
    ref->luma(rgb, want, n);
    opt->luma(rgb, got[0], n);
    CHECK(c, memcmp(want, got[0], n) == 0, "luma, %zu", n);
    CHECK(c, ref->luma_sum(rgb, n) == opt->luma_sum(rgb, n), "luma_sum, %zu", n);
    const float alpha = (float)check_below(c, 400) / 133;
    ref->blend(rgb[0], rgb[1], want, n, alpha);
    opt->blend(rgb[0], rgb[1], got[0], n, alpha);
    CHECK(c, memcmp(want, got[0], n) == 0, "blend %g, %zu", (double)alpha, n);
    const uint8_t shift = (uint8_t)check_below(c, 256);
    uint8_t *const a[3] = {copy[0], copy[1], copy[2]};
    for (int i = 0; i < 3; i++) {
        memcpy(copy[i], rgb[i], n);
        memcpy(got[i], rgb[i], n);
    }
    ref->hue(a, n, shift);
    opt->hue(got, n, shift);
    for (int i = 0; i < 3; i++) CHECK(c, memcmp(copy[i], got[i], n) == 0, "hue %u, %zu", shift, n);
    uint32_t counts[2][256];
    ref->histogram(rgb[0], n / 4, n / 4, 4, counts[0]);
    opt->histogram(rgb[0], n / 4, n / 4, 4, counts[1]);
    CHECK(c, memcmp(counts[0], counts[1], sizeof counts[0]) == 0, "histogram, %zu", n);
    CHECK_TIME(c, "hue 64", 384, opt->hue(a, 64, shift));
    CHECK_TIME(c, "lut 224", 448, opt->lut(rgb[0], want, n < 224 ? n : 224, table));
}

/* All 2^24 colours through one shift: no pixel may differ between instruction sets. */
static void check_every_hue(check *c)
{
    const leat__color_dsp *const ref = leat__color_dsp_for(CHECK_REFERENCE);
    const leat__color_dsp *const opt = leat__color_dsp_for(c->flags);
    static uint8_t px[2][3][256];
    uint8_t *const a[3] = {px[0][0], px[0][1], px[0][2]}, *const b[3] = {px[1][0], px[1][1], px[1][2]};
    uint32_t bad = 0;
    const uint8_t shift = (uint8_t)check_below(c, 256);
    for (uint32_t rg = 0; rg < 65536; rg += 3) {
        for (uint32_t i = 0; i < 256; i++) {
            px[0][0][i] = px[1][0][i] = (uint8_t)rg;
            px[0][1][i] = px[1][1][i] = (uint8_t)(rg >> 8);
            px[0][2][i] = px[1][2][i] = (uint8_t)i;
        }
        ref->hue(a, 256, shift);
        opt->hue(b, 256, shift);
        bad += memcmp(px[0], px[1], sizeof px[0]) != 0;
    }
    CHECK(c, bad == 0, "%u rows of colours differ", bad);
}

static void check_blurs(check *c)
{
    enum { RUN = 256, TAPS = 23 };
    const leat__color_dsp *const ref = leat__color_dsp_for(CHECK_REFERENCE);
    const leat__color_dsp *const opt = leat__color_dsp_for(c->flags);
    static float src[RUN + TAPS + 1], want[2][RUN], got[2][RUN];
    static uint8_t px[RUN + 2], out[2][RUN];
    const float *rows[TAPS];
    float k[TAPS];
    const size_t n = 1 + check_below(c, RUN - 1), taps = 1 + check_below(c, TAPS);
    check_random(c, px, sizeof px);
    for (int i = 0; i < RUN + TAPS; i++) src[i] = (float)check_below(c, 256);
    for (size_t t = 0; t < taps; t++) {
        k[t] = 1.0f / (float)taps;
        rows[t] = src + t;
    }
    ref->blur_row(src, want[0], n, k, taps);
    opt->blur_row(src, got[0], n, k, taps);
    CHECK(c, memcmp(want[0], got[0], n * 4) == 0, "blur_row, %zu, %zu taps", n, taps);
    uint8_t *const exact = check_alloc(c, n);
    ref->blur_column(rows, out[0], n, k, taps);
    opt->blur_column(rows, exact, n, k, taps);
    CHECK(c, memcmp(out[0], exact, n) == 0, "blur_column, %zu, %zu taps", n, taps);
    ref->smooth_sums(px, want[0], want[1], n);
    opt->smooth_sums(px, got[0], got[1], n);
    CHECK(c, memcmp(want[0], got[0], n * 4) == 0 && memcmp(want[1], got[1], n * 4) == 0, "smooth_sums, %zu",
          n);
    ref->smooth_join(want[0], want[1], want[0], out[0], n);
    opt->smooth_join(want[0], want[1], want[0], exact, n);
    CHECK(c, memcmp(out[0], exact, n) == 0, "smooth_join, %zu", n);
}

/* Cases of random length, several per call. */
static void many_writers(check *c)
{
    for (int i = 0; i < 5; i++) {
        check_writers(c);
        check_blends(c);
    }
    time_writers(c);
}

static void many_values(check *c)
{
    for (int i = 0; i < 6; i++) check_values(c);
}

static void many_blurs(check *c)
{
    for (int i = 0; i < 50; i++) check_blurs(c);
}

CHECK_MAIN({"writers", many_writers}, {"values", many_values}, {"hue", check_every_hue},
           {"blurs", many_blurs})
