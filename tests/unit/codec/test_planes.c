/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/make_image.h"

#include "base/fault.h"
#include "base/mem.h"
#include "codec/planes.h"

static void split_and_join_are_inverse(void **state)
{
    for (uint32_t n = 1; n <= 4; n++)
        for (uint32_t w = 1; w < 200; w += 7) {
            uint8_t *src = make_pixels(w, 1, n, w), *back = malloc((size_t)w * n);
            uint8_t *plane[4] = {NULL};
            for (uint32_t c = 0; c < n; c++) plane[c] = malloc(w);
            leat__planar_split(src, w, n, plane);
            for (uint32_t i = 0; i < w; i++)
                for (uint32_t c = 0; c < n; c++) assert_int_equal(plane[c][i], src[i * n + c]);
            leat__planar_join((const uint8_t *const *)plane, w, n, back);
            assert_memory_equal(back, src, (size_t)w * n);
            for (uint32_t c = 0; c < n; c++) free(plane[c]);
            free(src);
            free(back);
        }
}

/* Rows are inside the block with the promised bytes around them, and do not overlap. */
static void rows_have_their_guards(void **state)
{
    leat__planes p = {0};
    static const uint32_t sizes[][3] = {{1, 1, 1}, {64, 3, 3}, {65, 2, 4}, {300, 7, 3}};
    for (int i = 0; i < 4; i++) {
        uint32_t w = sizes[i][0], h = sizes[i][1], n = sizes[i][2];
        assert_int_equal(leat__planes_resize(&p, w, h, n, NULL), 0);
        assert_true(p.stride >= w + LEAT__CODEC_PADDING);
        for (uint32_t c = 0; c < n; c++) {
            const uint8_t *first = p.plane[c] - LEAT__CODEC_PADDING;
            const uint8_t *last = p.plane[c] + (h - 1) * p.stride + w + LEAT__CODEC_PADDING;
            assert_true(first >= p.block && last <= p.block + p.capacity);
            if (c > 0) assert_true(p.plane[c] - p.plane[c - 1] >= (ptrdiff_t)(h * p.stride));
        }
    }
    size_t kept = p.capacity;
    assert_int_equal(leat__planes_resize(&p, 1, 1, 1, NULL), 0);
    assert_int_equal(p.capacity, kept);
    leat__planes_reset(&p);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void impossible_sizes_are_refused(void **state)
{
    leat__planes p = {0};
    assert_int_equal(leat__planes_resize(&p, 4, 4, 0, NULL), LEAT_EOVERFLOW);
    assert_int_equal(leat__planes_resize(&p, 4, 4, 5, NULL), LEAT_EOVERFLOW);
    int rc = leat__planes_resize(&p, UINT32_MAX, UINT32_MAX, 4, NULL);
    assert_true(rc == LEAT_EOVERFLOW || rc == LEAT_ENOMEM);
    assert_null(p.block);
    if (!leat__fault_available()) return;
    leat__fault_arm(LEAT__FAULT_ALLOC, 1, false);
    assert_int_equal(leat__planes_resize(&p, 4, 4, 3, NULL), LEAT_ENOMEM);
    leat__fault_disarm();
    assert_int_equal(leat__planes_resize(&p, 4, 4, 3, NULL), 0);
    leat__planes_reset(&p);
}

static int count_rows(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride)
{
    uint32_t *seen = ctx;
    assert_int_equal(y, *seen);
    for (uint32_t i = 0; i < count; i++) assert_int_equal(plane[1][i * stride], (y + i) & 255);
    *seen += count;
    return 0;
}

static void bands_hand_over_rows_in_order(void **state)
{
    leat__band band = {0};
    uint32_t seen = 0;
    leat__row_sink sink = {count_rows, &seen};
    assert_int_equal(leat__band_fit(&band, 10, 3, NULL), 0);
    for (uint32_t y = 0; y < 40; y++) {
        uint8_t *row[4];
        leat__band_next(&band, row);
        memset(row[1], (int)y, 10);
        band.count++;
        if (leat__band_full(&band)) leat__band_flush(&band, &sink, y + 1 - band.count);
    }
    assert_int_equal(seen, 32);
    assert_int_equal(leat__band_flush(&band, &sink, 32), 0);
    assert_int_equal(seen, 40);
    assert_int_equal(leat__band_flush(&band, &sink, 40), 0);
    leat__band_reset(&band);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split_and_join_are_inverse),
        cmocka_unit_test(rows_have_their_guards),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(bands_hand_over_rows_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
