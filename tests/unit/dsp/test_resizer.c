/* SPDX-License-Identifier: Apache-2.0
 *
 * The streaming resize, compared with golden results of Pillow, in bands of every height, mirrored and
 * windowed.
 */
#include "leat_test.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "dsp/resizer.h"
#include "probe/cpu.h"

#include "golden_resize.h"

static uint64_t fnv(const uint8_t *p, size_t n)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 1099511628211u;
    return h;
}

typedef struct plane {
    uint8_t *block, *px;
    size_t stride;
    uint32_t width, height;
} plane;

static plane make_plane(uint32_t w, uint32_t h, uint64_t seed)
{
    plane p = {.width = w, .height = h, .stride = w + LEAT__RESIZE_SLACK};
    p.block = leat__zalloc(LEAT__MEM_MISC, p.stride * h + 2 * LEAT__RESIZE_SLACK);
    assert_non_null(p.block);
    p.px = p.block + LEAT__RESIZE_SLACK;
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            p.px[y * p.stride + x] = (uint8_t)(seed >> 56);
        }
    return p;
}

typedef struct sink {
    uint8_t *px;
    uint32_t width, height, rows;
    int stop_at; /* row at which to fail; -1 = never */
} sink;

static uint8_t *target(void *ctx, uint32_t y, uint32_t c)
{
    const sink *s = ctx;
    assert_true(y < s->height);
    return s->px + (size_t)y * s->width;
}

static int done(void *ctx, uint32_t y)
{
    sink *s = ctx;
    s->rows++;
    return s->stop_at >= 0 && (int)y >= s->stop_at ? LEAT_ECANCELED : 0;
}

/* Resizes a plane in bands; the caller frees the result. */
static uint8_t *resize(leat__resizer *r, const plane *p, const leat__axis_request *x,
                       const leat__axis_request *y, uint32_t band)
{
    leat__resize_need need;
    const uint32_t w = x->count ? x->count : x->out, h = y->count ? y->count : y->out;
    sink s = {.width = w, .height = h, .stop_at = -1};
    uint8_t *const guarded = leat__alloc(LEAT__MEM_MISC, (size_t)w * h + 128);
    assert_non_null(guarded);
    memset(guarded, 0xa5, (size_t)w * h + 128);
    s.px = guarded + 64;
    const leat__resize_out out = {target, done, &s};
    assert_int_equal(leat__resizer_plan(r, x, y, LEAT__PASS_PILLOW13, &need, NULL), 0);
    assert_true(need.x + need.width <= p->width && need.y + need.height <= p->height);
    assert_int_equal(leat__resizer_begin(r, 1, &out, NULL), 0);
    for (uint32_t at = 0; at < need.height; at += band) {
        const uint8_t *const rows[1] = {p->px + (need.y + at) * p->stride + need.x};
        const uint32_t n = LEAT_MIN(band, need.height - at);
        assert_int_equal(leat__resizer_rows(r, at, n, rows, p->stride), 0);
    }
    assert_true(leat__resizer_finished(r));
    assert_int_equal(s.rows, h);
    for (int i = 0; i < 64; i++) {
        assert_int_equal(guarded[i], 0xa5);
        assert_int_equal(guarded[64 + (size_t)w * h + i], 0xa5);
    }
    memmove(guarded, s.px, (size_t)w * h);
    return guarded;
}

static leat__axis_request request(uint32_t in, uint32_t out, leat__filter f, float lo, float hi)
{
    return (leat__axis_request){.in = in, .out = out, .filter = f, .box_lo = lo, .box_hi = hi};
}

static void check_goldens(void)
{
    leat__resizer *r = NULL;
    assert_int_equal(leat__resizer_open(&r, NULL), 0);
    for (size_t i = 0; i < LEAT_COUNT(goldens); i++) {
        const struct golden *g = &goldens[i];
        plane p = make_plane(g->in_w, g->in_h, g->seed);
        const leat__axis_request x = request(g->in_w, g->out_w, g->filter, g->box[0], g->box[2]);
        const leat__axis_request y = request(g->in_h, g->out_h, g->filter, g->box[1], g->box[3]);
        uint8_t *out = resize(r, &p, &x, &y, 1 + (uint32_t)i % 17);
        assert_int_equal(fnv(out, (size_t)g->out_w * g->out_h), g->hash);
        leat__free(out);
        leat__free(p.block);
    }
    leat__resizer_close(&r);
}

static void test_equals_pillow(void **state)
{
    static const uint32_t masks[] = {LEAT__CPU_SSE42, LEAT__CPU_SSE42 | LEAT__CPU_AVX2, ~0u};
    for (size_t i = 0; i < LEAT_COUNT(masks); i++) {
        leat__cpu_mask(masks[i]);
        check_goldens();
    }
    leat__cpu_mask(~0u);
}

/* A mirrored window of the output equals the mirrored part of the whole output. */
static void test_window_and_mirror(void **state)
{
    leat__resizer *r = NULL;
    assert_int_equal(leat__resizer_open(&r, NULL), 0);
    plane p = make_plane(173, 91, 7);
    leat__axis_request x = request(173, 64, LEAT__FILTER_BICUBIC, 0, 0);
    leat__axis_request y = request(91, 70, LEAT__FILTER_BICUBIC, 0, 0);
    uint8_t *whole = resize(r, &p, &x, &y, 16);
    x.from = 11, x.count = 30, x.mirror_out = true;
    y.from = 40, y.count = 25, y.mirror_out = true;
    uint8_t *part = resize(r, &p, &x, &y, 5);
    for (uint32_t j = 0; j < 25; j++)
        for (uint32_t i = 0; i < 30; i++)
            assert_int_equal(part[j * 30 + i], whole[(40 + 24 - j) * 64 + 11 + 29 - i]);
    leat__free(whole);
    leat__free(part);
    leat__free(p.block);
    leat__resizer_close(&r);
}

/* Mirroring the input equals resizing a mirrored image. */
static void test_mirrored_input(void **state)
{
    leat__resizer *r = NULL;
    assert_int_equal(leat__resizer_open(&r, NULL), 0);
    plane p = make_plane(101, 77, 3), q = make_plane(101, 77, 3);
    for (uint32_t y = 0; y < 77; y++)
        for (uint32_t x = 0; x < 101; x++) q.px[y * q.stride + x] = p.px[(76 - y) * p.stride + 100 - x];
    leat__axis_request x = request(101, 40, LEAT__FILTER_BILINEAR, 0, 0);
    leat__axis_request y = request(77, 90, LEAT__FILTER_BILINEAR, 0, 0);
    uint8_t *want = resize(r, &q, &x, &y, 16);
    x.mirror_in = y.mirror_in = true;
    uint8_t *got = resize(r, &p, &x, &y, 16);
    assert_memory_equal(got, want, 40 * 90);
    leat__free(want);
    leat__free(got);
    leat__free(p.block);
    leat__free(q.block);
    leat__resizer_close(&r);
}

static void test_refuses_and_stops(void **state)
{
    leat__resizer *r = NULL;
    leat__resize_need need;
    leat_error err = {0};
    assert_int_equal(leat__resizer_open(&r, NULL), 0);
    leat__axis_request x = request(10, 5, LEAT__FILTER_BOX, 0, 0), y = x;
    y.in = 0;
    assert_int_equal(leat__resizer_plan(r, &x, &y, LEAT__PASS_PILLOW13, &need, &err), LEAT_EINVAL);
    y = x;
    y.from = 3, y.count = 3;
    assert_int_equal(leat__resizer_plan(r, &x, &y, LEAT__PASS_PILLOW13, &need, &err), LEAT_EINVAL);
    y = request(10, 5, LEAT__FILTER_BOX, 2, 11);
    assert_int_equal(leat__resizer_plan(r, &x, &y, LEAT__PASS_PILLOW13, &need, &err), LEAT_EINVAL);

    plane p = make_plane(10, 10, 1);
    uint8_t px[25];
    sink s = {.px = px, .width = 5, .height = 5, .stop_at = 1};
    const leat__resize_out out = {target, done, &s};
    const uint8_t *const rows[1] = {p.px};
    assert_int_equal(leat__resizer_plan(r, &x, &x, LEAT__PASS_PILLOW13, &need, &err), 0);
    assert_int_equal(leat__resizer_begin(r, 1, &out, &err), 0);
    assert_int_equal(leat__resizer_rows(r, 3, 1, rows, p.stride), LEAT_EINTERNAL);
    assert_int_equal(leat__resizer_rows(r, 0, 10, rows, p.stride), LEAT_ECANCELED);
    leat__free(p.block);
    leat__resizer_close(&r);
    assert_null(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_pillow),
        cmocka_unit_test(test_window_and_mirror),
        cmocka_unit_test(test_mirrored_input),
        cmocka_unit_test(test_refuses_and_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
