/* SPDX-License-Identifier: Apache-2.0
 *
 * Warp kernels: every variant must equal the portable C bit for bit, for any map and length, and
 * read nothing outside the prepared image: it ends at a guard page.
 */
#include <string.h>

#include "base/num.h"
#include "check.h"
#include "dsp/warp.h"

enum { MOST = 300 };

typedef struct row {
    int32_t at[MOST + LEAT__WARP_RUN];
    double dx[MOST + LEAT__WARP_RUN], dy[MOST + LEAT__WARP_RUN];
} row;

static leat__warp_spots spots_of(row *r)
{
    return (leat__warp_spots){r->at, r->dx, r->dy};
}

static double drawn(check *c, double low, double high)
{
    return low + (high - low) * (double)check_below(c, 1 << 20) / (double)(1 << 20);
}

static leat__warp_map draw_map(check *c, uint32_t w, uint32_t h)
{
    leat__warp_map m = {.flat = check_below(c, 2), .nearest = check_below(c, 3) == 0};
    for (int i = 0; i < 6; i++) m.a[i] = drawn(c, -1.5, 1.5);
    m.a[2] = drawn(c, -0.5, 1) * w;
    m.a[5] = drawn(c, -0.5, 1) * h;
    m.a[6] = drawn(c, -0.01, 0.01); /* some rows divide by zero */
    m.a[7] = drawn(c, -0.01, 0.01);
    if (check_below(c, 8) == 0) m.a[0] = 1e300;
    return m;
}

/* Every variant prepares the image in the same way; its last byte is the last that may be
 * read. */
static leat__warp_image lay(check *c, const leat__warp_dsp *dsp, uint32_t w, uint32_t h, const uint8_t *plane)
{
    const uint8_t fill[4] = {7, 8, 9, 10};
    const uint8_t *const planes[4] = {plane, plane + 1, plane + 2, plane + 3};
    uint32_t *const memory = (uint32_t *)check_alloc(c, leat__warp_pixels(w, h) * sizeof *memory);
    return leat__warp_image_lay(dsp, planes, w, w, h, fill, memory);
}

static void check_pixels(check *c, const leat__warp_dsp *ref, const leat__warp_dsp *opt,
                         const leat__warp_image *im, row *r, uint32_t n)
{
    static uint32_t want[MOST];
    uint32_t *const got = (uint32_t *)check_alloc(c, n * sizeof *got);
    ref->nearest(im, spots_of(r), want, n);
    opt->nearest(im, spots_of(r), got, n);
    CHECK(c, memcmp(want, got, n * sizeof *got) == 0, "nearest, %u", n);
    ref->bilinear(im, spots_of(r), want, n);
    opt->bilinear(im, spots_of(r), got, n);
    CHECK(c, memcmp(want, got, n * sizeof *got) == 0, "bilinear, %u", n);
    ref->rounded(im, spots_of(r), want, n);
    opt->rounded(im, spots_of(r), got, n);
    CHECK(c, memcmp(want, got, n * sizeof *got) == 0, "rounded, %u", n);
    ref->bicubic(im, spots_of(r), want, n);
    opt->bicubic(im, spots_of(r), got, n);
    CHECK(c, memcmp(want, got, n * sizeof *got) == 0, "bicubic, %u", n);
    for (uint32_t channels = 1; channels <= 4; channels++) {
        uint8_t *plane[4] = {NULL};
        bool same = true;
        for (uint32_t k = 0; k < channels; k++) plane[k] = check_alloc(c, n);
        opt->unpack(got, plane, channels, n);
        for (uint32_t i = 0; i < n * channels; i++)
            same &= plane[i % channels][i / channels] == (uint8_t)(got[i / channels] >> 8 * (i % channels));
        CHECK(c, same, "unpack %u, %u", channels, n);
    }
}

static void check_maps(check *c)
{
    static row want, got;
    const leat__warp_dsp *const ref = leat__warp_dsp_for(CHECK_REFERENCE);
    const leat__warp_dsp *const opt = leat__warp_dsp_for(c->flags);
    const uint32_t w = 1 + check_below(c, 60), h = 1 + check_below(c, 60), n = 1 + check_below(c, MOST - 1);
    uint8_t *const plane = check_alloc(c, (size_t)w * h + 3);
    check_random(c, plane, (size_t)w * h + 3);
    const leat__warp_image im = lay(c, ref, w, h, plane), other = lay(c, opt, w, h, plane);
    const size_t head = 2 * (size_t)im.stride + 2;
    for (uint32_t y = 0; y < h; y++)
        CHECK(c,
              memcmp(im.origin - head + y * im.stride, other.origin - head + y * im.stride,
                     (size_t)im.stride * 4) == 0,
              "pack, %u x %u, row %u", w, h, y);
    const leat__warp_map m = draw_map(c, w, h);
    const uint32_t y = check_below(c, MOST);
    ref->mapped(&im, &m, y, n, spots_of(&want));
    opt->mapped(&im, &m, y, n, spots_of(&got));
    bool same = memcmp(want.at, got.at, n * sizeof *got.at) == 0;
    for (uint32_t i = 0; i < n; i++)
        same &= want.at[i] == im.outside || (want.dx[i] == got.dx[i] && want.dy[i] == got.dy[i]);
    CHECK(c, same, "mapped, %u", n);
    check_pixels(c, ref, opt, &other, &want, n);
    uint32_t from[2], step[2];
    check_random(c, from, sizeof from);
    check_random(c, step, sizeof step);
    for (int k = 0; k < 2; k++) {
        from[k] >>= check_below(c, 16);
        step[k] >>= 8 + check_below(c, 10);
    }
    ref->fixed(&im, want.at, n, from, step);
    opt->fixed(&im, got.at, n, from, step);
    CHECK(c, memcmp(want.at, got.at, n * sizeof *got.at) == 0, "fixed, %u", n);
    ref->nearest(&other, spots_of(&want), (uint32_t *)(void *)got.dx, n);
}

static void time_maps(check *c)
{
    enum { SIDE = 224 };
    static row r;
    static uint32_t px[SIDE];
    static uint8_t rows[3][SIDE];
    const leat__warp_dsp *const opt = leat__warp_dsp_for(c->flags);
    uint8_t *const plane = check_alloc(c, SIDE * SIDE + 3), *const dst[4] = {rows[0], rows[1], rows[2]};
    const uint8_t *const src[4] = {plane, plane + SIDE, plane + 2 * SIDE, plane};
    const leat__warp_image im = lay(c, opt, SIDE, SIDE, plane);
    const leat__warp_map m = {.a = {0.866, 0.5, 10, -0.5, 0.866, 70}, .flat = true};
    const uint32_t from[2] = {65536, 70 << 16}, step[2] = {56755, (uint32_t)-32768};
    CHECK_TIME(c, "fixed", SIDE * 4, opt->fixed(&im, r.at, SIDE, from, step));
    CHECK_TIME(c, "mapped", SIDE * 20, opt->mapped(&im, &m, 100, SIDE, spots_of(&r)));
    CHECK_TIME(c, "nearest", SIDE * 8, opt->nearest(&im, spots_of(&r), px, SIDE));
    CHECK_TIME(c, "bilinear", SIDE * 20, opt->bilinear(&im, spots_of(&r), px, SIDE));
    CHECK_TIME(c, "bicubic", SIDE * 68, opt->bicubic(&im, spots_of(&r), px, SIDE));
    CHECK_TIME(c, "unpack", SIDE * 7, opt->unpack(px, dst, 3, SIDE));
    CHECK_TIME(c, "pack", SIDE * 8, opt->pack(src, px, SIDE));
}

static void many_maps(check *c)
{
    for (int i = 0; i < 12; i++) check_maps(c);
    time_maps(c);
}

CHECK_MAIN({"maps", many_maps})
