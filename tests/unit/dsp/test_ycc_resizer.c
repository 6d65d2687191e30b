/* SPDX-License-Identifier: Apache-2.0
 *
 * Components to pixels: which parts are requested, that chroma is not shifted against luma, and that
 * mirroring, windows and refusals work.
 */
#include "leat_test.h"

#include <math.h>

#include "base/num.h"
#include "dsp/ycc_resizer.h"

enum { SIDE = 48, EDGE = 7 /* where filters are cut at the crop's end */ };

typedef struct canvas {
    uint8_t row[SIDE][3][SIDE];
    uint32_t seen, refuse; /* rows; row at which `done` says no, plus one */
} canvas;

static uint8_t *target(void *ctx, uint32_t y, uint32_t plane)
{
    return ((canvas *)ctx)->row[y][plane];
}

static int done(void *ctx, uint32_t y)
{
    canvas *const c = ctx;
    c->seen++;
    return c->refuse == y + 1 ? LEAT_ECANCELED : 0;
}

/* Returns the value at (x, y) of the image, in pixels: ramps with a different slope per component. */
static double ramp(uint32_t c, double x, double y)
{
    return c == 0 ? x / 2 - 40 : c == 1 ? y / 2 - 40 : (x + y) / 4 - 30;
}

/* Delivers the parts as samples of the ramps. */
static void deliver(leat__ycc_resizer *r, const leat__ycc_grid *grid, const leat__ycc_part part[3])
{
    static uint8_t rows[512 * 1024];
    for (uint32_t c = 0; c < grid->components; c++) {
        const leat__ycc_part *const p = &part[c];
        const uint32_t across = (c ? grid->h : 1) << p->shrink;
        const uint32_t down = (c ? grid->v : 1) << p->shrink;
        assert_true(p->width <= 512 && p->height <= 512);
        for (uint32_t y = 0; y < p->height; y++)
            for (uint32_t x = 0; x < p->width; x++)
                rows[64 + y * 1024 + x] =
                    (uint8_t)lrint(128 + ramp(c, (p->x + x + 0.5) * across, (p->y + y + 0.5) * down));
        /* in two goes, as a decoder would */
        leat__ycc_resizer_rows(r, c, p->height / 2, rows + 64, 1024);
        leat__ycc_resizer_rows(r, c, p->height - p->height / 2, rows + 64 + p->height / 2 * 1024, 1024);
    }
}

static int level(double v)
{
    return v < 0 ? 0 : v > 255 ? 255 : (int)(v + 0.5);
}

/* Computes RGB of the ramps at a position, as JFIF defines it. */
static void colour_at(double x, double y, int rgb[3])
{
    const double l = ramp(0, x, y) + 128, cb = ramp(1, x, y), cr = ramp(2, x, y);
    rgb[0] = level(l + 1.402 * cr);
    rgb[1] = level(l - 0.344136 * cb - 0.714136 * cr);
    rgb[2] = level(l + 1.772 * cb);
}

/* Resizes the crop (left, top) + in x in to SIDE x SIDE: the result must be the ramps at the outputs'
 * positions. */
static void follows_the_ramps(const leat__ycc_grid *grid, uint32_t left, uint32_t top, uint32_t in,
                              bool mirror_x, bool mirror_y)
{
    leat__ycc_resizer *r = NULL;
    leat__ycc_part part[3];
    static canvas c;
    bool fits = false;
    const leat__axis_request x = {
        .in = in, .out = SIDE, .count = SIDE, .mirror_in = mirror_x, .filter = LEAT__FILTER_BILINEAR};
    const leat__axis_request y = {
        .in = in, .out = SIDE, .count = SIDE, .mirror_out = mirror_y, .filter = LEAT__FILTER_BILINEAR};
    const leat__resize_out out = {target, done, &c};
    c = (canvas){0};
    assert_ok(leat__ycc_resizer_open(&r, NULL));
    assert_ok(leat__ycc_resizer_plan(r, grid, left, top, &x, &y, part, &fits, NULL));
    assert_true(fits);
    deliver(r, grid, part);
    assert_ok(leat__ycc_resizer_finish(r, &out));
    assert_int_equal(c.seen, SIDE);
    const double step = (double)in / SIDE;
    for (uint32_t i = EDGE; i < SIDE - EDGE; i++)
        for (uint32_t j = EDGE; j < SIDE - EDGE; j++) {
            int want[3];
            colour_at(left + ((mirror_x ? SIDE - 1 - j : j) + 0.5) * step,
                      top + ((mirror_y ? SIDE - 1 - i : i) + 0.5) * step, want);
            for (int k = 0; k < (grid->components == 1 ? 0 : 3); k++)
                assert_true(abs(c.row[i][k][j] - want[k]) <= 3);
            if (grid->components == 1)
                assert_true(
                    abs(c.row[i][0][j] -
                        level(ramp(0, left + ((mirror_x ? SIDE - 1 - j : j) + 0.5) * step, 0) + 128)) <= 1);
        }
    leat__ycc_resizer_close(&r);
}

static void chroma_is_where_luma_is(void **state)
{
    static const leat__ycc_grid grids[] = {{1, 1, 1}, {3, 1, 1}, {3, 2, 1}, {3, 2, 2}, {3, 1, 2}, {3, 4, 1}};
    for (size_t g = 0; g < LEAT_COUNT(grids); g++)
        for (int mirror = 0; mirror < 4; mirror++) {
            follows_the_ramps(&grids[g], 0, 0, 60, mirror & 1, mirror & 2);
            follows_the_ramps(&grids[g], 13, 7, 61, mirror & 1, mirror & 2);
            follows_the_ramps(&grids[g], 5, 2, 30, mirror & 1, mirror & 2);
            follows_the_ramps(&grids[g], 3, 1, 150, mirror & 1, mirror & 2); /* halved */
        }
    assert_no_leaks();
}

/* Blocks are halved as long as no component has fewer samples than the output. */
static void halves_what_is_fine_enough(void **state)
{
    const leat__ycc_grid grid = {3, 2, 2};
    static const struct {
        uint32_t x, y, luma, chroma;
    } cases[] = {{95, 95, 0, 0}, {96, 96, 1, 0}, {192, 100, 1, 0}, {192, 192, 2, 1}, {400, 400, 3, 2}};
    leat__ycc_resizer *r = NULL;
    assert_ok(leat__ycc_resizer_open(&r, NULL));
    for (size_t i = 0; i < LEAT_COUNT(cases); i++) {
        const leat__axis_request x = {
            .in = cases[i].x, .out = SIDE, .count = SIDE, .filter = LEAT__FILTER_BILINEAR};
        const leat__axis_request y = {
            .in = cases[i].y, .out = SIDE, .count = SIDE, .filter = LEAT__FILTER_BILINEAR};
        leat__ycc_part part[3];
        bool fits = false;
        assert_ok(leat__ycc_resizer_plan(r, &grid, 0, 0, &x, &y, part, &fits, NULL));
        assert_true(fits);
        assert_int_equal(part[0].shrink, cases[i].luma);
        assert_int_equal(part[1].shrink, cases[i].chroma);
        assert_memory_equal(&part[1], &part[2], sizeof part[1]);
        assert_int_equal(part[0].width, leat__ceil_div(cases[i].x, 1u << part[0].shrink));
    }
    leat__ycc_resizer_close(&r);
    assert_no_leaks();
}

static void missing_and_refused_parts_are_errors(void **state)
{
    const leat__ycc_grid grid = {1, 1, 1};
    leat__axis_request q = {.in = 60, .out = SIDE, .count = SIDE, .filter = LEAT__FILTER_BILINEAR};
    static canvas c;
    const leat__resize_out out = {target, done, &c};
    leat__ycc_resizer *r = NULL;
    leat__ycc_part part[3];
    leat_error err;
    bool fits = false;
    assert_ok(leat__ycc_resizer_open(&r, NULL));
    assert_ok(leat__ycc_resizer_plan(r, &grid, 0, 0, &q, &q, part, &fits, NULL));
    assert_int_equal(leat__ycc_resizer_finish(r, &out), LEAT_EINTERNAL);
    deliver(r, &grid, part);
    c.refuse = 5;
    assert_int_equal(leat__ycc_resizer_finish(r, &out), LEAT_ECANCELED);
    q.filter = LEAT__FILTER_LANCZOS;
    assert_ok(leat__ycc_resizer_plan(r, &grid, 0, 0, &q, &q, part, &fits, NULL));
    assert_false(fits);
    q = (leat__axis_request){.in = 60, .filter = LEAT__FILTER_BILINEAR};
    assert_int_equal(leat__ycc_resizer_plan(r, &grid, 0, 0, &q, &q, part, &fits, &err), LEAT_EINVAL);
    leat__ycc_resizer_close(&r);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chroma_is_where_luma_is),
        cmocka_unit_test(halves_what_is_fine_enough),
        cmocka_unit_test(missing_and_refused_parts_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
