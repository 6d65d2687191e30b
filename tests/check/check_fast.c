/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of like=fast: the inverse DCT at every size of block, the resize of components with
 * 8-bit weights, and their conversion to RGB. Every variant must equal the portable C bit for
 * bit, on photographs' coefficients and on extreme ones, and touch no byte outside its buffers.
 */
#include <string.h>

#include "check.h"
#include "dsp/idct_small.h"
#include "dsp/ycc_resize.h"

enum { BLOCKS = 24, PAD = LEAT__IDCT_BLOCKS_PAD };

/* ---- inverse DCT ---- */

static leat__tile_coefs *coefs_alloc(check *c)
{
    const size_t size = (sizeof(leat__tile_coefs) + 63) / 64 * 64;
    leat__tile_coefs *const out = (leat__tile_coefs *)(void *)check_alloc(c, size);
    memset(out, 0, sizeof *out);
    return out;
}

/* Groups of similar blocks, because kernels choose by four: means, corners, halves, full ones. */
static void random_blocks(check *c, leat__tile_coefs *coefs, bool extreme)
{
    static const uint64_t shapes[4] = {1, LEAT__TILE_CORNER, 0xffffffff, ~UINT64_C(0)};
    uint64_t shape = 1;
    uint32_t n = 0;
    for (uint32_t b = 0; b < BLOCKS; b++) {
        if (check_below(c, 4) == 0) shape = shapes[check_below(c, 4)];
        coefs->mask[b] = leat__rng_u64(&c->rng) & shape;
        coefs->first[b] = n;
        coefs->dc[b] = (int16_t)(extreme ? leat__rng_u32(&c->rng) : check_below(c, 400) - 200);
        for (uint64_t m = coefs->mask[b]; m != 0; m &= m - 1)
            coefs->value[n++] =
                (int16_t)(extreme && check_below(c, 3) ? leat__rng_u32(&c->rng) : check_below(c, 41) - 20);
    }
}

/* `rows` of `width` bytes must be equal; the rest of the canvas untouched. */
static void same_rows(check *c, const uint8_t *got, const uint8_t *want, size_t stride, uint32_t rows,
                      uint32_t width, const char *what)
{
    for (uint32_t y = 0; y < rows; y++)
        CHECK(c, memcmp(got + y * stride, want + y * stride, width) == 0, "%s: row %u of %u", what, y, width);
}

static void check_one_size(check *c, uint32_t shrink)
{
    enum { STRIDE = 96, HIGH = 3 };
    const uint32_t side = 8u >> shrink;
    leat__idct_small_dsp ref, opt;
    leat__idct_small_init(&ref, CHECK_REFERENCE);
    leat__idct_small_init(&opt, c->flags);
    leat__tile_coefs *const coefs = coefs_alloc(c);
    uint16_t *const quant = (uint16_t *)(void *)check_alloc(c, 128);
    int16_t *const all = (int16_t *)(void *)check_alloc(c, (BLOCKS + PAD) * 128);
    uint8_t *const canvas = check_alloc(c, HIGH * side * STRIDE), last[BLOCKS];
    memset(all, 0x33, (BLOCKS + PAD) * 128);
    memset(last, 63, sizeof last);
    for (int round = 0; round < 2000; round++) {
        const uint32_t wide = 1 + check_below(c, LEAT__IDCT_AREA_SIDE);
        const uint32_t high = 1 + check_below(c, HIGH);
        const leat__idct_area area = {check_below(c, BLOCKS + 1 - wide * high), wide, high, wide};
        const uint32_t room = (wide + 3) / 4 * 4 * side; /* the last row ends at the guard page */
        uint8_t want[8 * HIGH * STRIDE];
        uint8_t *const top = canvas + (HIGH - high) * side * STRIDE, *const dst = top + STRIDE - room;
        int16_t *const blocks = all + (BLOCKS - wide) * 64;
        random_blocks(c, coefs, round & 1);
        for (int k = 0; k < 64; k++)
            quant[k] = (uint16_t)(round & 2 ? 1 + check_below(c, 99) : leat__rng_u32(&c->rng));
        memset(canvas, 0x5a, HIGH * side * STRIDE);
        ref.area[shrink](want, STRIDE, coefs, &area, quant);
        opt.area[shrink](dst, STRIDE, coefs, &area, quant);
        same_rows(c, dst, want, STRIDE, side * high, side * wide, "sparse");
        for (uint32_t y = 0; y < side * high; y++)
            for (uint32_t x = 0; x < STRIDE - room; x++)
                if (top[y * STRIDE + x] != 0x5a) CHECK(c, false, "wrote outside");
        for (uint32_t i = 0; i < wide; i++) leat__tile_block_expand(blocks + 64 * i, coefs, area.first + i);
        opt.plain[shrink](dst, STRIDE, blocks, last, wide, quant);
        same_rows(c, dst, want, STRIDE, side, side * wide, "plain");
    }
}

static void time_idct(check *c)
{
    static const char *const names[] = {"64 to 8x8 (exact)", "64 to 4x4", "64 to 2x2", "64 to 1x1"};
    static const uint16_t quant[64] __attribute__((aligned(64))) = {[0 ... 63] = 3};
    leat__idct_small_dsp dsp;
    leat__idct_small_init(&dsp, c->flags);
    leat__tile_coefs *const coefs = coefs_alloc(c);
    uint8_t *const out = check_alloc(c, 64 * 128);
    uint32_t n = 0;
    for (uint32_t b = 0; b < 64; b++) {
        const uint64_t shape = b % 12 < 4 ? LEAT__TILE_CORNER : UINT64_C(0xffffffffff);
        coefs->mask[b] = leat__rng_u64(&c->rng) & leat__rng_u64(&c->rng) & shape;
        coefs->first[b] = n;
        for (uint64_t m = coefs->mask[b]; m != 0; m &= m - 1)
            coefs->value[n++] = (int16_t)(check_below(c, 9) - 4);
    }
    const double bytes = n * 2.0 + 64 * 64;
    for (uint32_t s = 0; s < LEAT__IDCT_SHRINKS; s++)
        CHECK_TIME(c, names[s], bytes, dsp.area[s](out, 128, coefs, &(leat__idct_area){0, 8, 8, 8}, quant));
}

static void idct_small(check *c)
{
    for (uint32_t s = 0; s < LEAT__IDCT_SHRINKS; s++) check_one_size(c, s);
    if (c->timing) time_idct(c);
}

/* ---- resize ---- */

static leat__axis_request random_axis(check *c)
{
    static const leat__filter filters[3] = {LEAT__FILTER_BILINEAR, LEAT__FILTER_BOX, LEAT__FILTER_HAMMING};
    leat__axis_request q = {.in = 2 + check_below(c, 700),
                            .out = 1 + check_below(c, 300),
                            .filter = filters[check_below(c, 3)],
                            .mirror_in = check_below(c, 2),
                            .mirror_out = check_below(c, 2)};
    q.from = check_below(c, q.out);
    q.count = 1 + check_below(c, q.out - q.from);
    if (check_below(c, 2)) {
        q.box_lo = 0.5f;
        q.box_hi = (float)q.in - (check_below(c, 2) ? 0.5f : 0.0f);
    }
    return q;
}

/* Samples of all kinds, including those that reach the limits of 16 bits. */
static void random_samples(check *c, int8_t *to, size_t n)
{
    const uint32_t kind = check_below(c, 4);
    check_random(c, to, n);
    for (size_t i = 0; i < n && kind < 3; i++)
        to[i] = kind == 0 ? INT8_MIN : kind == 1 ? INT8_MAX : to[i] < 0 ? INT8_MIN : INT8_MAX;
}

static void check_across(check *c)
{
    enum { ROWS = 5, IN = 1024, OUT = 320 };
    const leat__ycc_resize_dsp *const ref = leat__ycc_resize_dsp_for(CHECK_REFERENCE);
    const leat__ycc_resize_dsp *const opt = leat__ycc_resize_dsp_for(c->flags);
    leat__ycc_axis a = {0}, b = {0};
    uint8_t *const in = check_alloc(c, ROWS * IN), *const out = check_alloc(c, ROWS * OUT);
    for (int round = 0; round < 3000; round++) {
        const leat__axis_request q = random_axis(c);
        bool fits, same;
        CHECK(c, leat__ycc_axis_build(&a, &q, ref, CHECK_REFERENCE, &fits, NULL) == 0, "build");
        CHECK(c, leat__ycc_axis_build(&b, &q, opt, c->flags, &same, NULL) == 0 && same == fits, "build");
        if (!fits) continue;
        CHECK(c,
              a.lo == b.lo && a.width == b.width && a.pairs == b.pairs &&
                  memcmp(a.first, b.first, a.count * sizeof *a.first) == 0 &&
                  memcmp(a.weight, b.weight, a.pairs * a.stride * sizeof *a.weight) == 0,
              "%u to %u: weights", q.in, q.out);
        for (uint32_t j = 0; j < a.count; j++) {
            uint32_t sum = 0;
            for (uint32_t p = 0; p < a.pairs; p++)
                sum += (a.weight[p * a.stride + j] & 255) + (a.weight[p * a.stride + j] >> 8);
            CHECK(c, sum == 256 && a.first[j] + 2 * a.pairs <= a.width, "%u to %u: output %u", q.in, q.out,
                  j);
        }
        /* the slack of the last row ends at the guard page; the output at another */
        const uint32_t rows = 1 + check_below(c, ROWS);
        const size_t padded = (a.count + 63) / 64 * 64;
        const uint8_t *const src = in + (ROWS - rows) * IN + IN - LEAT__RESIZE_SLACK - a.width;
        int8_t *const got = (int8_t *)out + ROWS * OUT - rows * padded, want[ROWS * OUT];
        random_samples(c, (int8_t *)in, ROWS * IN);
        ref->across(&a, rows, src, IN, want, padded);
        opt->across(&b, rows, src, IN, got, padded);
        for (uint32_t y = 0; y < rows; y++)
            CHECK(c, memcmp(want + y * padded, got + y * padded, a.count) == 0, "%u to %u: row %u of %u",
                  q.in, q.out, y, rows);
    }
    leat__ycc_axis_reset(&a);
    leat__ycc_axis_reset(&b);
}

/* Weights of `pairs` pairs with a sum of 256. */
static void random_weights(check *c, uint16_t *w, uint32_t pairs)
{
    uint32_t left = 256;
    for (uint32_t p = 0; p < pairs; p++) {
        const uint32_t one = p + 1 == pairs ? left / 2 : check_below(c, left / 2 + 1);
        const uint32_t two = p + 1 == pairs ? left - one : check_below(c, left - one + 1);
        w[p] = (uint16_t)(one | (two > 255 ? 255 : two) << 8);
        left -= one + two;
    }
}

static void check_colour(check *c)
{
    enum { MOST = 6, ROW = 320 };
    const leat__ycc_resize_dsp *const ref = leat__ycc_resize_dsp_for(CHECK_REFERENCE);
    const leat__ycc_resize_dsp *const opt = leat__ycc_resize_dsp_for(c->flags);
    uint8_t *rows[3], *out[3];
    for (int k = 0; k < 3; k++) {
        out[k] = check_alloc(c, ROW);
        rows[k] = check_alloc(c, 2 * MOST * ROW);
    }
    for (int round = 0; round < 2000; round++) {
        const uint32_t n = 1 + check_below(c, ROW);
        const size_t pitch = (n + 63) / 64 * 64;
        uint16_t weight[2][MOST];
        leat__ycc_taps comp[3];
        uint8_t want[3][ROW], *wanted[3] = {want[0], want[1], want[2]}, *got[3];
        for (int k = 0; k < 3; k++) {
            const uint32_t pairs = k == 2 ? comp[1].pairs : 1 + check_below(c, MOST);
            if (k < 2) random_weights(c, weight[k], pairs);
            /* the last row ends at the guard page */
            int8_t *const from = (int8_t *)rows[k] + 2 * MOST * ROW - 2 * pairs * pitch;
            random_samples(c, from, 2 * pairs * pitch);
            comp[k] = (leat__ycc_taps){from, pitch, weight[k > 0], 1, pairs};
            got[k] = out[k] + ROW - n;
            memset(out[k], 0x5a, ROW);
        }
        ref->colour(comp, wanted, n);
        opt->colour(comp, got, n);
        for (int k = 0; k < 3; k++) {
            CHECK(c, memcmp(want[k], got[k], n) == 0, "round %d: channel %d of %u", round, k, n);
            CHECK(c, n == ROW || out[k][ROW - n - 1] == 0x5a, "round %d: wrote before", round);
        }
        ref->grey(comp, want[0], n);
        opt->grey(comp, got[0], n);
        CHECK(c, memcmp(want[0], got[0], n) == 0, "round %d: grey of %u", round, n);
    }
}

static void time_resize(check *c)
{
    const leat__ycc_resize_dsp *const dsp = leat__ycc_resize_dsp_for(c->flags);
    const leat__axis_request shrink = {.in = 300, .out = 224, .filter = LEAT__FILTER_BILINEAR};
    const leat__axis_request grow = {.in = 150, .out = 224, .filter = LEAT__FILTER_BILINEAR};
    static uint8_t src[8 * 512];
    static int8_t dst[8 * 256];
    static uint8_t out[3][256];
    uint8_t *const to[3] = {out[0], out[1], out[2]};
    const uint16_t w[2] = {64 | 64 << 8, 64 | 64 << 8};
    leat__ycc_axis a = {0};
    bool fits;
    CHECK(c, leat__ycc_axis_build(&a, &shrink, dsp, c->flags, &fits, NULL) == 0 && fits, "build");
    CHECK_TIME(c, "axis, 300 to 224", 224.0,
               if (leat__ycc_axis_build(&a, &shrink, dsp, c->flags, &fits, NULL) != 0) return );
    CHECK_TIME(c, "across, 8 rows of 300 to 224", 8 * 524, dsp->across(&a, 8, src + 64, 512, dst, 256));
    CHECK(c, leat__ycc_axis_build(&a, &grow, dsp, c->flags, &fits, NULL) == 0 && fits, "build");
    CHECK_TIME(c, "across, 8 rows of 150 to 224", 8 * 374, dsp->across(&a, 8, src + 64, 512, dst, 256));
    const leat__ycc_taps taps[3] = {{dst, 256, w, 1, 2}, {dst, 256, w, 1, 1}, {dst, 256, w, 1, 1}};
    CHECK_TIME(c, "colour, 224 pixels", 224 * 11, dsp->colour(taps, to, 224));
    leat__ycc_axis_reset(&a);
}

static void ycc_resize(check *c)
{
    check_across(c);
    check_colour(c);
    if (c->timing) time_resize(c);
}

CHECK_MAIN({"idct_small", idct_small}, {"ycc_resize", ycc_resize})
