/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of the resize: both passes of every variant must equal the portable C bit for bit, for
 * all filters, sizes from one pixel to distant taps, mirrored or not, with rows that end at the
 * end of their promised slack.
 */
#include <string.h>

#include "check.h"
#include "dsp/resize.h"

enum { SIDE_MAX = 2600, OUT_MAX = 700, PLANES_MAX = 4 };

static leat__axis_request random_request(check *c)
{
    static const uint32_t spans[] = {3, 40, 300, SIDE_MAX};
    leat__axis_request q = {
        .in = 1 + check_below(c, spans[check_below(c, 4)]),
        .out = 1 + check_below(c, check_below(c, 2) ? 60 : OUT_MAX),
        .filter = (leat__filter)check_below(c, LEAT__FILTER_COUNT),
        .mirror_in = check_below(c, 2),
        .mirror_out = check_below(c, 2),
    };
    if (check_below(c, 3) == 0) {
        q.from = check_below(c, q.out);
        q.count = 1 + check_below(c, q.out - q.from);
    }
    if (check_below(c, 4) == 0 && q.in > 2) {
        q.box_lo = (float)check_below(c, q.in / 2) + 0.25f;
        q.box_hi = q.box_lo + 0.5f + (float)check_below(c, q.in - (uint32_t)q.box_lo - 1);
    }
    return q;
}

/* A row with exactly the slack that kernels may read, random or at the extremes. */
static uint8_t *random_row(check *c, size_t width)
{
    uint8_t *const block = check_alloc(c, width + 2 * LEAT__RESIZE_SLACK);
    check_random(c, block, width + 2 * LEAT__RESIZE_SLACK);
    uint8_t *const row = block + LEAT__RESIZE_SLACK;
    if (check_below(c, 4) == 0) memset(row, check_below(c, 2) ? 255 : 0, width);
    if (check_below(c, 4) == 0)
        for (size_t i = 0; i < width; i++) row[i] = row[i] < 128 ? 0 : 255;
    return row;
}

/* The axes themselves: weights must be equal bit for bit, whichever kernels made them. */
static void check_weights(check *c)
{
    const leat__resize_dsp *const ref = leat__resize_dsp_for(CHECK_REFERENCE);
    const leat__resize_dsp *const opt = leat__resize_dsp_for(c->flags);
    leat__axis a = {0}, b = {0};
    for (int i = 0; i < 400; i++) {
        leat__axis_request q = random_request(c);
        if (i % 4) q.filter = LEAT__FILTER_BILINEAR;
        if (leat__axis_build(&a, &q, ref, false, NULL) || leat__axis_build(&b, &q, opt, false, NULL)) {
            CHECK(c, false, "axis %u to %u", q.in, q.out);
            continue;
        }
        const size_t cells = (size_t)((a.taps + 3) & ~3u) * a.stride;
        CHECK(c,
              a.taps == b.taps && memcmp(a.first, b.first, a.count * sizeof *a.first) == 0 &&
                  memcmp(a.weight, b.weight, cells * sizeof *a.weight) == 0,
              "weights of %u to %u, filter %d, window %u+%u", q.in, q.out, (int)q.filter, q.from, q.count);
    }
    leat__axis_reset(&a);
    leat__axis_reset(&b);
}

static void check_horizontal(check *c)
{
    const leat__resize_dsp *const ref = leat__resize_dsp_for(CHECK_REFERENCE);
    const leat__resize_dsp *const opt = leat__resize_dsp_for(c->flags);
    leat__axis a = {0}, b = {0};
    static uint8_t want[PLANES_MAX][OUT_MAX + 64];
    for (int i = 0; i < 25; i++) {
        const leat__axis_request q = random_request(c);
        const uint32_t rows = 1 + check_below(c, PLANES_MAX);
        const uint8_t *src[PLANES_MAX];
        uint8_t *to[PLANES_MAX], *got[PLANES_MAX];
        if (leat__axis_build(&a, &q, ref, false, NULL) || leat__axis_build(&b, &q, opt, false, NULL)) {
            CHECK(c, false, "axis %u to %u", q.in, q.out);
            continue;
        }
        for (uint32_t k = 0; k < rows; k++) {
            src[k] = random_row(c, a.hi - a.lo);
            got[k] = check_alloc(c, (a.count + 63) & ~63u);
            to[k] = want[k];
        }
        ref->horizontal(&a, src, to, rows);
        opt->horizontal(&b, src, got, rows);
        for (uint32_t k = 0; k < rows; k++)
            CHECK(c, memcmp(want[k], got[k], a.count) == 0, "%u to %u, filter %d, window %u+%u, row %u of %u",
                  q.in, q.out, (int)q.filter, q.from, q.count, k, rows);
    }
    const leat__axis_request q = {.in = 300, .out = 224, .filter = LEAT__FILTER_BILINEAR};
    if (leat__axis_build(&b, &q, opt, false, NULL) == 0) {
        const uint8_t *const src[3] = {random_row(c, 300), random_row(c, 300), random_row(c, 300)};
        uint8_t *const dst[3] = {check_alloc(c, 256), check_alloc(c, 256), check_alloc(c, 256)};
        CHECK_TIME(c, "horizontal 300 to 224, x3", 3 * 524, opt->horizontal(&b, src, dst, 3));
        int rc = 0;
        CHECK_TIME(c, "coefficients 300 to 224", 0, rc |= leat__axis_build(&b, &q, opt, false, NULL));
        CHECK(c, rc == 0, "coefficients");
    }
    leat__axis_reset(&a);
    leat__axis_reset(&b);
}

static void check_vertical(check *c)
{
    enum { WIDTH = 230, ROWS_MAX = 64 };
    const leat__resize_dsp *const ref = leat__resize_dsp_for(CHECK_REFERENCE);
    const leat__resize_dsp *const opt = leat__resize_dsp_for(c->flags);
    leat__axis a = {0}, b = {0};
    static uint8_t want[WIDTH];
    const uint8_t *rows[ROWS_MAX + 4];
    for (int i = 0; i < 18; i++) {
        leat__axis_request q = random_request(c);
        q.in = 1 + q.in % 60; /* no more taps than rows */
        q.box_lo = q.box_hi = 0;
        if (leat__axis_build(&a, &q, ref, true, NULL) || leat__axis_build(&b, &q, opt, true, NULL)) {
            CHECK(c, false, "axis %u to %u", q.in, q.out);
            continue;
        }
        const uint32_t k = check_below(c, a.count), n = 1 + check_below(c, WIDTH);
        /* rows are read up to the next multiple of 64 */
        uint8_t *const shared = check_alloc(c, ((n + 63) & ~63u));
        check_random(c, shared, (n + 63) & ~63u);
        for (uint32_t t = 0; t < ROWS_MAX + 4; t++) rows[t] = shared;
        if (a.taps_of[k] > 1) {
            uint8_t *const other = check_alloc(c, ((n + 63) & ~63u));
            check_random(c, other, (n + 63) & ~63u);
            for (uint32_t t = 1; t < a.taps_of[k]; t += 2) rows[t] = other;
        }
        uint8_t *const got = check_alloc(c, n);
        ref->vertical(&a, k, rows, want, n);
        opt->vertical(&b, k, rows, got, n);
        CHECK(c, memcmp(want, got, n) == 0, "%u to %u, filter %d, output %u, %u bytes", q.in, q.out,
              (int)q.filter, k, n);
    }
    const leat__axis_request q = {.in = 300, .out = 224, .filter = LEAT__FILTER_BILINEAR};
    if (leat__axis_build(&b, &q, opt, true, NULL) == 0) {
        uint8_t *const px = check_alloc(c, 256), *const dst = check_alloc(c, 224);
        for (int t = 0; t < ROWS_MAX + 4; t++) rows[t] = px;
        CHECK_TIME(c, "vertical 224 bytes", 224 * 4, opt->vertical(&b, 100, rows, dst, 224));
    }
    leat__axis_reset(&a);
    leat__axis_reset(&b);
}

CHECK_MAIN({"weights", check_weights}, {"horizontal", check_horizontal}, {"vertical", check_vertical})
