/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/num.h"
#include "base/rng.h"
#include "loader/spread.h"

/* An image column of u16 and the column that says where it is. */
static leat__frames *open_frames(leat_budget *budget, uint32_t channels, bool last)
{
    leat__shape s = {.count = 2, .sized = 1};
    leat__frames *frames;
    s.columns = leat__zalloc(LEAT__MEM_LOADER, 2 * sizeof(leat__column));
    s.columns[0] = (leat__column){.kind = LEAT__COLUMN_IMAGE,
                                  .sizing = LEAT__SIZING_PADDED,
                                  .channels = channels,
                                  .channels_last = last,
                                  .multiple = 1,
                                  .fill = {0x34, 0x12},
                                  .tensor = {.dtype = LEAT_DTYPE_U16, .ndim = channels > 0 ? 4 : 3}};
    s.columns[1] = (leat__column){.kind = LEAT__COLUMN_FIXED,
                                  .sizing = LEAT__SIZING_SEEN,
                                  .multiple = 1,
                                  .tensor = {.dtype = LEAT_DTYPE_BOOL, .ndim = 3}};
    s.columns[0].tensor.name = leat__strdup(LEAT__MEM_LOADER, "image");
    s.columns[1].tensor.name = leat__strdup(LEAT__MEM_LOADER, "image_mask");
    assert_ok(leat__frames_open(&frames, budget, &s, NULL));
    return frames;
}

/* Element (c, y, x) of an image of width w and height h, and its place there. */
static size_t place(uint32_t channels, bool last, leat__size s, uint32_t c, uint32_t y, uint32_t x)
{
    return last ? ((size_t)y * s.width + x) * channels + c : ((size_t)c * s.height + y) * s.width + x;
}

static void one_case(leat_budget *budget, uint32_t channels, bool last, leat__size own, leat__size whole)
{
    const uint32_t planes = LEAT_MAX(channels, 1u), at = channels > 0 && !last ? 2 : 1;
    const uint64_t pixels = (uint64_t)whole.width * whole.height;
    const uint64_t ragged[2] = {2 * pixels * planes * 2, 2 * pixels};
    leat__frames *frames = open_frames(budget, channels, last);
    leat__frame *f;

    assert_ok(leat__frame_open(&f, frames, 2, ragged, false, NULL));
    for (uint32_t c = 0; c < 2; c++) {
        const uint32_t first = c == 0 ? at : 1;
        f->tensors[c].shape[first] = whole.height;
        f->tensors[c].shape[first + 1] = whole.width;
    }
    f->sizes[1] = own;
    uint16_t *row = leat__frame_row(f, 0, 1);
    for (uint32_t c = 0; c < planes; c++)
        for (uint32_t y = 0; y < own.height; y++)
            for (uint32_t x = 0; x < own.width; x++)
                row[place(planes, last, own, c, y, x)] = (uint16_t)(1 + c * 10000 + y * 100 + x);
    leat__spread_row(f, 1);
    const uint8_t *seen = leat__frame_row(f, 1, 1);
    for (uint32_t y = 0; y < whole.height; y++) {
        for (uint32_t x = 0; x < whole.width; x++) {
            const bool inside = x < own.width && y < own.height;
            assert_int_equal(seen[(size_t)y * whole.width + x], inside);
            for (uint32_t c = 0; c < planes; c++)
                assert_int_equal(row[place(planes, last, whole, c, y, x)],
                                 inside ? 1 + c * 10000 + y * 100 + x : 0x1234);
        }
    }
    leat__frame_unref(f);
    leat__frames_close(&frames);
}

static void rows_are_spread_in_place(void **state)
{
    leat_budget *budget;
    leat__rng rng;
    (void)state;
    leat__rng_init(&rng, 1, 0, 0, 0);
    assert_ok(leat_budget_open(&budget, 64 << 20, NULL));
    for (int i = 0; i < 300; i++) {
        const leat__size own = {1 + (uint32_t)leat__rng_below(&rng, 20),
                                1 + (uint32_t)leat__rng_below(&rng, 20)};
        const leat__size whole = {own.width + (uint32_t)leat__rng_below(&rng, 9) * (i % 3 != 0),
                                  own.height + (uint32_t)leat__rng_below(&rng, 9) * (i % 5 != 0)};
        one_case(budget, i % 4, i % 2 != 0 && i % 4 != 0, own, whole);
    }
    one_case(budget, 3, false, (leat__size){0, 0}, (leat__size){4, 4}); /* no image at all */
    leat_budget_close(&budget);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_spread_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
