/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "loader/moved.h"

/* Two rows with one and two boxes, and a label each; room for twice as many. */
static void boxes_take_their_labels_along(void **state)
{
    float boxes[24] = {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6};
    int64_t labels[6] = {10, 20, 30};
    int64_t box_at[3] = {0, 4, 12}, label_at[3] = {0, 1, 3};
    int64_t box_shapes[4] = {1, 4, 2, 4}, label_shapes[2] = {1, 2};
    leat_tensor tensors[2] = {{.dtype = LEAT_DTYPE_F32,
                               .data = boxes,
                               .offsets = box_at,
                               .ragged_shapes = box_shapes,
                               .ragged_ndim = 2},
                              {.dtype = LEAT_DTYPE_I64,
                               .data = labels,
                               .offsets = label_at,
                               .ragged_shapes = label_shapes,
                               .ragged_ndim = 1}};
    leat__frame f = {.tensors = tensors, .batch.samples = 2};
    const leat__follower list[] = {{.role = LEAT__ROLE_BOXES, .column = 0},
                                   {.role = LEAT__ROLE_LABELS, .column = 1}};
    leat__moved_boxes b;
    leat_error err = {0};
    const float other[4] = {9, 9, 9, 9};
    if (leat__moved_open(&b, &f, list, 2, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(leat__moved_count(&b, 1), 2);
    assert_true(leat__moved_box(&b, 1, 1)[0] == 5);
    leat__moved_begin(&b, 0); /* the first row gets the second box of the other one, then its own */
    leat__moved_put(&b, 1, 1, other);
    leat__moved_put(&b, 0, 0, leat__moved_box(&b, 0, 0));
    leat__moved_end(&b, 0);
    leat__moved_begin(&b, 1); /* the second loses all */
    leat__moved_end(&b, 1);
    leat__moved_finish(&b, 2);
    leat__moved_close(&b);
    assert_true(boxes[0] == 9 && boxes[4] == 1);
    assert_int_equal(labels[0], 30);
    assert_int_equal(labels[1], 10);
    assert_int_equal(box_at[1], 8);
    assert_int_equal(box_at[2], 8);
    assert_int_equal(label_at[2], 2);
    assert_int_equal(box_shapes[0], 2);
    assert_int_equal(box_shapes[2], 0);
    assert_int_equal(label_shapes[1], 0);
    assert_int_equal(tensors[0].shape[0], 8);
    assert_no_leaks();
}

static void too_many_labels_are_refused(void **state)
{
    float boxes[4] = {0};
    int64_t at[2] = {0, 0}, shapes[2] = {0, 4};
    leat_tensor tensor = {
        .dtype = LEAT_DTYPE_F32, .data = boxes, .offsets = at, .ragged_shapes = shapes, .ragged_ndim = 2};
    leat__frame f = {.tensors = &tensor, .batch.samples = 1};
    leat__follower list[10] = {{.role = LEAT__ROLE_BOXES}};
    leat__moved_boxes b;
    leat_error err = {0};
    for (int i = 1; i < 10; i++) list[i].role = LEAT__ROLE_LABELS;
    assert_code(LEAT_ELIMIT, leat__moved_open(&b, &f, list, 10, &err));
    leat__moved_close(&b);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_take_their_labels_along),
        cmocka_unit_test(too_many_labels_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
