/* SPDX-License-Identifier: Apache-2.0
 *
 * CopyPaste on a frame made by hand. Through the loader, against NumPy: python/tests/test_paste.py.
 */
#include "leat_test.h"

#include "loader/pasting.h"

enum { SIDE = 4, AREA = SIDE * SIDE };

static void objects_go_to_the_next_sample(void **state)
{
    uint8_t pixels[2][3 * AREA], mask[2][AREA];
    float boxes[16] = {0, 0, 2, 2, 1, 1, 4, 4}; /* one each; room for two */
    int64_t at[3] = {0, 4, 8}, shapes[4] = {1, 4, 1, 4};
    leat_tensor tensors[3] = {
        {.data = pixels},
        {.data = mask},
        {.dtype = LEAT_DTYPE_F32, .data = boxes, .offsets = at, .ragged_shapes = shapes, .ragged_ndim = 2}};
    leat__frame f = {.tensors = tensors, .batch.samples = 2};
    leat__follower list[] = {{.role = LEAT__ROLE_MASK, .column = 1}, {.role = LEAT__ROLE_BOXES, .column = 2}};
    const leat__follow follow = {.list = list, .count = 2};
    leat__pipeline *p = NULL;
    leat_error err = {0};
    if (leat__pipeline_open(&p, &(leat__pipeline_opts){.ops = "Resize((4, 4)); CopyPaste(1, 1)"}, &err) != 0)
        fail_msg("%s", err.message);
    leat__mixed_image image = {.column = 0, .pipeline = p};
    const leat__mixing m = {.images = &image, .image_count = 1, .follow = &follow, .seed = 3, .world = 1};
    for (int row = 0; row < 2; row++)
        for (int i = 0; i < AREA; i++) {
            mask[row][i] = (uint8_t)(row == 1 && i == 5 ? 0 : 7 + row); /* a hole in the second one */
            for (int c = 0; c < 3; c++) pixels[row][c * AREA + i] = (uint8_t)(100 * row + 30 * c + i);
        }
    assert_ok(leat__paste_batch(&m, leat__pipeline_batch_op(p, 0), &f, 0, 0, &err));
    for (int i = 0; i < AREA; i++) {
        const int x = i % SIDE, y = i / SIDE;
        const bool first = x >= 1 && y >= 1 && i != 5, second = x < 2 && y < 2;
        for (int c = 0; c < 3; c++) {
            assert_int_equal(pixels[0][c * AREA + i], (first ? 100 : 0) + 30 * c + i);
            assert_int_equal(pixels[1][c * AREA + i], (second ? 0 : 100) + 30 * c + i);
        }
        assert_int_equal(mask[0][i], first ? 8 : 7);
        assert_int_equal(mask[1][i], second ? 7 : i == 5 ? 0 : 8);
    }
    assert_int_equal(at[1], 8); /* both keep their own: parts of them are still seen */
    assert_int_equal(at[2], 16);
    assert_true(boxes[4] == 1 && boxes[8] == 1 && boxes[12] == 0);
    assert_int_equal(shapes[0], 2);
    leat__pipeline_close(&p);
    assert_no_leaks();
}

static void one_sample_stays_as_it_is(void **state)
{
    uint8_t pixels[3 * AREA] = {1, 2, 3};
    float boxes[4] = {0, 0, 2, 2};
    int64_t at[2] = {0, 4}, shapes[2] = {1, 4};
    leat_tensor tensors[2] = {
        {.data = pixels},
        {.dtype = LEAT_DTYPE_F32, .data = boxes, .offsets = at, .ragged_shapes = shapes, .ragged_ndim = 2}};
    leat__frame f = {.tensors = tensors, .batch.samples = 1};
    leat__follower list[] = {{.role = LEAT__ROLE_BOXES, .column = 1}};
    const leat__follow follow = {.list = list, .count = 1};
    leat__pipeline *p = NULL;
    leat_error err = {0};
    const leat__pipeline_opts opts = {.ops = "Resize((4, 4)); CopyPaste(1, 1)"};
    assert_ok(leat__pipeline_open(&p, &opts, &err));
    leat__mixed_image image = {.column = 0, .pipeline = p};
    const leat__mixing m = {.images = &image, .image_count = 1, .follow = &follow, .world = 1};
    assert_ok(leat__paste_batch(&m, leat__pipeline_batch_op(p, 0), &f, 0, 0, &err));
    assert_int_equal(at[1], 4);
    assert_int_equal(pixels[1], 2);
    assert_null(leat__paste_follower(&follow, LEAT__ROLE_MASK));
    leat__pipeline_close(&p);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_go_to_the_next_sample),
        cmocka_unit_test(one_sample_stays_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
