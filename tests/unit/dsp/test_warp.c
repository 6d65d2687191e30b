/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "dsp/warp.h"
#include "probe/cpu.h"

enum { W = 9, H = 5 };

static const leat__warp_dsp *kernels(size_t i)
{
    static const uint32_t flags[] = {LEAT__CPU_SSE42, LEAT__CPU_AVX2, LEAT__CPU_AVX2 | LEAT__CPU_AVX512ICL};
    if (i >= 3 || (leat__cpu_detected() & flags[i]) != flags[i]) return NULL;
    return leat__warp_dsp_for(flags[i]);
}

static leat__warp_image lay(const leat__warp_dsp *d, uint32_t *memory)
{
    static uint8_t plane[3][W * H];
    const uint8_t fill[4] = {201, 202, 203, 204};
    for (int i = 0; i < W * H; i++)
        for (int c = 0; c < 3; c++) plane[c][i] = (uint8_t)(i * 4 + c);
    const uint8_t *const planes[4] = {plane[0], plane[1], plane[2], plane[0]};
    return leat__warp_image_lay(d, planes, W, W, H, fill, memory);
}

static uint32_t pixel(int x, int y)
{
    const uint32_t v = (uint32_t)(y * W + x) * 4;
    return v | (v + 1) << 8 | (v + 2) << 16 | v << 24;
}

/* The border repeats the edge, and the position outside is surrounded by pixels of the fill. */
static void the_layout_needs_no_test_for_edges(void **state)
{
    const leat__warp_dsp *d;
    uint32_t memory[(W + 4) * (H + 8)];
    assert_int_equal(leat__warp_pixels(W, H), (W + 4) * (H + 8));
    assert_int_equal(leat__warp_pixels(UINT32_MAX, UINT32_MAX), 0);
    assert_int_equal(leat__warp_pixels(1 << 16, 1 << 15), 0);
    for (size_t k = 0; (d = kernels(k)); k++) {
        const leat__warp_image im = lay(d, memory);
        for (int y = -2; y < H + 2; y++)
            for (int x = -2; x < W + 2; x++) {
                const int cx = x < 0 ? 0 : x < W ? x : W - 1, cy = y < 0 ? 0 : y < H ? y : H - 1;
                assert_int_equal(im.origin[y * im.stride + x], pixel(cx, cy));
            }
        for (int y = -1; y < 3; y++)
            for (int x = -1; x < 3; x++)
                assert_int_equal(im.origin[im.outside + y * im.stride + x], 0xcccbcac9);
    }
}

static void positions_find_their_pixels(void **state)
{
    const leat__warp_dsp *d;
    uint32_t memory[(W + 4) * (H + 8)], px[64];
    int32_t at[64];
    double dx[64], dy[64];
    const leat__warp_spots s = {at, dx, dy};
    for (size_t k = 0; (d = kernels(k)); k++) {
        const leat__warp_image im = lay(d, memory);
        /* from (-2.5, 1.25), one pixel a step */
        const uint32_t from[2] = {(uint32_t)-163840, 81920}, step[2] = {65536, 0};
        d->fixed(&im, at, 20, from, step);
        d->nearest(&im, s, px, 20);
        for (int i = 0; i < 20; i++)
            assert_int_equal(px[i], i < 3 || i >= 3 + W ? 0xcccbcac9 : pixel(i - 3, 1));
        leat__warp_map m = {.a = {0.5, 0, 0.25, 0, 1, 0}, .flat = true};
        d->mapped(&im, &m, 2, 20, s);
        d->bilinear(&im, s, px, 20);
        for (int i = 0; i < 20; i++) {
            const double u = 0.5 * (i + 0.5) + 0.25 - 0.5; /* 4 grey levels a pixel, from the middle */
            const double want = u >= W - 0.5 ? 201 : 2 * W * 4 + (u < 0 ? 0 : u > W - 1 ? W - 1 : u) * 4;
            assert_int_equal(px[i] & 255, (int)want);
        }
        m.flat = false; /* over -x/4 + 1: half the row is behind the viewer */
        m.nearest = true;
        m.a[6] = -0.25;
        d->mapped(&im, &m, 2, 20, s);
        for (int i = 0; i < 20; i++) {
            const double by = -0.25 * (i + 0.5) + 1, u = (0.5 * (i + 0.5) + 0.25) / by, v = 2.5 / by;
            const bool in = u >= 0 && v >= 0 && u < W && v < H;
            assert_int_equal(at[i], in ? (int)v * im.stride + (int)u : im.outside);
        }
    }
}

static void channels_come_back(void **state)
{
    const leat__warp_dsp *d;
    uint32_t px[100];
    uint8_t out[4][101];
    uint8_t *const plane[4] = {out[0], out[1], out[2], out[3]};
    for (uint32_t i = 0; i < 100; i++) px[i] = i * 0x01030509u;
    for (size_t k = 0; (d = kernels(k)); k++)
        for (size_t n = 0; n <= 100; n += 11)
            for (uint32_t channels = 1; channels <= 4; channels++) {
                memset(out, 0x5a, sizeof out);
                d->unpack(px, plane, channels, n);
                for (uint32_t c = 0; c < 4; c++)
                    for (size_t i = 0; i <= n; i++)
                        assert_int_equal(out[c][i], i < n && c < channels ? px[i] >> 8 * c & 255 : 0x5a);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_layout_needs_no_test_for_edges),
        cmocka_unit_test(positions_find_their_pixels),
        cmocka_unit_test(channels_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
