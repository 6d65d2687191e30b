/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include "op/writer.h"

/* Rows in any order, grey or colour, give the same as a whole image. */
static void rows_and_images_agree(void **state)
{
    static leat__norm norm[3];
    leat__writer w = {0};
    leat__planes im = {0};
    static uint8_t by_rows[3 * 33 * 20 * 4], whole[3 * 33 * 20 * 4];
    for (int c = 0; c < 3; c++) leat__norm_init(&norm[c], true, 0.1f * (float)c, 0.5f);
    for (uint32_t channels = 1; channels <= 3; channels += 2)
        for (uint32_t planes = 1; planes <= 3; planes += 2)
            for (uint32_t k = 0; leat__output_dtype(k / 2) != LEAT_DTYPE_NONE; k++) {
                leat__output_spec o = {.width = 33,
                                       .height = 20,
                                       .channels = channels,
                                       .dtype = leat__output_dtype(k / 2),
                                       .layout = (leat__layout)(k % 2)};
                if (o.dtype == LEAT_DTYPE_U16) continue; /* of wide images only */
                o.bytes = (size_t)33 * 20 * channels * leat_dtype_size(o.dtype);
                fixture_picture(&im, 33, 20, planes);
                memset(by_rows, 0xcc, sizeof by_rows);
                memset(whole, 0xcc, sizeof whole);
                assert_ok(leat__writer_begin(&w, &o, norm, whole, NULL));
                leat__writer_image(&w, &im);
                assert_ok(leat__writer_begin(&w, &o, norm, by_rows, NULL));
                w.planes = planes;
                const leat__resize_out out = leat__writer_rows(&w);
                for (uint32_t i = 0; i < 20; i++) {
                    const uint32_t y = (i * 7) % 20;
                    for (uint32_t c = 0; c < planes; c++)
                        memcpy(out.target(out.ctx, y, c), leat__planes_row(&im, c, y), 33);
                    assert_ok(out.done(out.ctx, y));
                }
                assert_memory_equal(by_rows, whole, o.bytes);
                for (size_t i = o.bytes; i < sizeof whole; i++) assert_int_equal(whole[i], 0xcc);
            }
    leat__writer_reset(&w);
    leat__planes_reset(&im);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_and_images_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
