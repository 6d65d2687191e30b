/* SPDX-License-Identifier: Apache-2.0
 *
 * Strips of samples to pixels: libjpeg's coefficients, transformed and stored by the test, give libjpeg's
 * pixels for every sampling, region and height of strips.
 */
#include "codec/make_image.h"

#include "base/mem.h"
#include "codec/jpeg_coef.h"
#include "codec/raster.h"
#include "dsp/idct.h"
#include "probe/cpu.h"

typedef struct seen {
    leat__planes out;
    uint32_t next;   /* row that must come now */
    uint32_t refuse; /* row at which the sink says no; 0: never */
} seen;

static int take_rows(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride)
{
    seen *s = ctx;
    assert_int_equal(y, s->next);
    assert_true(count > 0 && y + count <= s->out.height);
    s->next = y + count;
    if (s->refuse != 0 && s->next >= s->refuse) return LEAT_ECANCELED;
    for (uint32_t c = 0; c < s->out.channels; c++)
        for (uint32_t i = 0; i < count; i++)
            memcpy(s->out.plane[c] + (y + i) * s->out.stride, plane[c] + i * stride, s->out.width);
    return 0;
}

static void put_strip(leat__raster *r, const leat__jpeg_coefs *coefs, const leat__idct_dsp *idct,
                      uint32_t strip)
{
    static const uint8_t full[64] = {[0 ... 63] = 63};
    for (uint32_t c = 0; c < coefs->components; c++) {
        const leat__jpeg_component *from = &coefs->component[c];
        const leat__raster_span *need = &r->comp[c];
        uint32_t high = r->comp[c].strip_rows / 8;
        for (uint32_t by = strip * high; by < (strip + 1) * high && by < from->grid_y; by++)
            for (uint32_t bx = need->bx0; bx < need->bx1; bx++) {
                /* Kernels read and write past one block: give them room, then copy. */
                int16_t block[(1 + LEAT__IDCT_BLOCKS_PAD) * 64] = {0};
                uint8_t samples[8][LEAT__IDCT_ROUND];
                memcpy(block, from->coefs + ((size_t)by * from->grid_x + bx) * 64, 128);
                idct->plain(samples[0], LEAT__IDCT_ROUND, block, full, 1, from->quant);
                uint8_t *dst = leat__raster_at(r, strip, c, 8 * bx, 8 * by);
                for (size_t y = 0; y < 8; y++) memcpy(dst + y * r->planes.stride, samples[y], 8);
            }
    }
}

static void check_pixels(const char *name, const leat__raster *r, const seen *s, const uint8_t *ref,
                         uint32_t w, uint32_t channels)
{
    for (uint32_t y = 0; y < s->out.height; y++)
        for (uint32_t x = 0; x < s->out.width; x++)
            for (uint32_t c = 0; c < s->out.channels; c++)
                if (s->out.plane[c][y * s->out.stride + x] !=
                    plain_at(ref, w, channels, r->x + x, r->y + y, c))
                    fail_msg("%s: region %u,%u %ux%u, strips of %u: differs at %u,%u,%u", name, r->x, r->y,
                             r->width, r->height, r->strip_rows, x, y, c);
}

static void check_kind(const jpeg_kind *kind, uint32_t w, uint32_t h)
{
    uint32_t state = w * 31 + h, rw, rh, channels;
    bytes b = make_jpeg(kind, w, h, 80, w ^ h);
    uint8_t *ref = plain_jpeg(b, 1, &rw, &rh, &channels);
    leat__jpeg_coef_reader *reader = NULL;
    leat__jpeg_coefs coefs;
    leat__idct_dsp idct;
    leat__idct_init(&idct, leat__cpu_flags());
    assert_int_equal(leat__jpeg_coef_reader_open(&reader, NULL), 0);
    assert_int_equal(leat__jpeg_coef_read(reader, b.data, b.len, NULL, &coefs, NULL), 0);
    leat__raster r = {0};
    seen s = {0};
    bool grey = coefs.components == 1;
    leat__raster_shape shape = {w, h, coefs.components, grey ? 1 : coefs.max_h, grey ? 1 : coefs.max_v};
    for (uint32_t i = 0; i < 40; i++) {
        uint32_t rows = 8 * shape.v << dice_below(&state, 4);
        uint32_t width = i == 0 ? w : 1 + dice_below(&state, i % 3 == 0 && w > 9 ? 9 : w);
        uint32_t height = i == 0 ? h : 1 + dice_below(&state, i % 5 == 0 && h > 9 ? 9 : h);
        uint32_t x = dice_below(&state, w - width + 1), y = dice_below(&state, h - height + 1);
        assert_int_equal(leat__raster_begin(&r, &shape, x, y, width, height, rows, NULL), 0);
        assert_int_equal(leat__planes_resize(&s.out, width, height, grey ? 1 : 3, NULL), 0);
        leat__row_sink sink = {take_rows, &s};
        s.next = 0;
        for (uint32_t strip = r.first; strip <= r.last; strip++) {
            put_strip(&r, &coefs, &idct, strip);
            assert_int_equal(leat__raster_emit(&r, strip, &sink), 0);
            assert_int_equal(r.done, s.next);
        }
        assert_int_equal(s.next, height);
        check_pixels(kind->name, &r, &s, ref, rw, channels);
    }
    leat__raster_reset(&r);
    leat__planes_reset(&s.out);
    leat__jpeg_coef_reader_close(&reader);
    free(ref);
    free(b.data);
}

static void strips_give_libjpegs_pixels(void **state)
{
    static const uint32_t sizes[][2] = {{1, 1}, {3, 2}, {9, 70}, {33, 17}, {64, 64}, {130, 97}};
    for (size_t k = 0; k < JPEG_KINDS; k++) {
        const jpeg_kind *kind = &jpeg_kinds[k];
        bool known = kind->v <= 2 && kind->h * kind->v <= 4 && !kind->odd_chroma;
        if (!known || (kind->file != JCS_YCbCr && kind->file != JCS_GRAYSCALE)) continue;
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            check_kind(kind, sizes[i][0], sizes[i][1]);
    }
    assert_int_equal(leat__mem_blocks(), 0);
}

static void a_sink_may_refuse(void **state)
{
    leat__raster r = {0};
    seen s = {.refuse = 30};
    leat__raster_shape shape = {100, 100, 3, 2, 2};
    leat__row_sink sink = {take_rows, &s};
    assert_int_equal(leat__raster_begin(&r, &shape, 10, 0, 50, 90, 16, NULL), 0);
    assert_int_equal(leat__planes_resize(&s.out, 50, 90, 3, NULL), 0);
    assert_int_equal(leat__raster_emit(&r, 0, &sink), 0);
    assert_int_equal(s.next, 15); /* the last one waits for the chroma below it */
    assert_int_equal(leat__raster_emit(&r, 1, &sink), LEAT_ECANCELED);
    leat__planes_reset(&s.out);
    leat__raster_reset(&r);
    assert_int_equal(leat__mem_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strips_give_libjpegs_pixels),
        cmocka_unit_test(a_sink_may_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
