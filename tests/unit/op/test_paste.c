/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include <math.h>

#include "op/paste.h"

enum { W = 7, H = 5 };

static const leat__box_rule corners = {.format = LEAT__BOX_XYXY};

static void check(const float box[4], uint32_t x, uint32_t y, uint32_t width, uint32_t height)
{
    const leat__paste_rect r = leat__paste_pixels(&corners, W, H, box);
    assert_int_equal(r.width, width);
    assert_int_equal(r.height, height);
    if (width == 0 || height == 0) return;
    assert_int_equal(r.x, x);
    assert_int_equal(r.y, y);
}

static void boxes_are_whole_pixels_inside(void **state)
{
    check((const float[]){1, 2, 3, 4}, 1, 2, 2, 2);
    check((const float[]){0.5f, 1.5f, 2.25f, 2.5f}, 0, 1, 3, 2);
    check((const float[]){-9, -9, 100, 100}, 0, 0, W, H);
    check((const float[]){3, 3, 3, 4}, 0, 0, 0, 1);
    check((const float[]){5, 4, 2, 1}, 0, 0, 0, 0);
    check((const float[]){NAN, NAN, NAN, NAN}, 0, 0, 0, 0);
    const leat__box_rule shares = {.format = LEAT__BOX_XYWH, .relative = true};
    const leat__paste_rect r = leat__paste_pixels(&shares, 10, 10, (const float[]){0.2f, 0.3f, 0.5f, 0.1f});
    assert_int_equal(r.x, 2);
    assert_int_equal(r.width, 5);
}

static void marked_pixels_are_copied(void **state)
{
    uint8_t map[H * W] = {0}, mask[H * W] = {0}, from[H * W][2], to[H * W][2];
    const leat__paste_rect r = {1, 1, 3, 2}, other = {5, 0, 2, 5};
    mask[1 * W + 2] = 9;
    leat__paste_mark(map, W, &r, mask);
    assert_int_equal(leat__paste_marked(map, W, &r), 1);
    leat__paste_mark(map, W, &r, NULL);
    leat__paste_mark(map, W, &r, NULL); /* twice is once */
    leat__paste_mark(map, W, &other, NULL);
    assert_int_equal(leat__paste_marked(map, W, &r), 6);
    assert_int_equal(leat__paste_marked(map, W, &(leat__paste_rect){0, 0, W, H}), 16);
    for (int i = 0; i < H * W; i++)
        for (int k = 0; k < 2; k++) {
            from[i][k] = (uint8_t)(i + 100 * k);
            to[i][k] = 255;
        }
    leat__paste_copy(map, H * W, 2, &from[0][0], &to[0][0]);
    for (int i = 0; i < H * W; i++)
        for (int k = 0; k < 2; k++) assert_int_equal(to[i][k], map[i] ? i + 100 * k : 255);
}

static void draws_follow_the_probabilities(void **state)
{
    leat__pipeline *p = fixture_pipeline("CenterCrop(8); CopyPaste(share=0.25, p=0.75)");
    const leat__op_spec *op = leat__pipeline_batch_op(p, 0);
    leat__rng rng;
    int happens = 0, takes = 0;
    assert_true(leat__paste_is(op));
    leat__rng_init(&rng, 1, 2, 3, 4);
    for (int i = 0; i < 4000; i++) {
        happens += leat__paste_happens(op, &rng);
        takes += leat__paste_takes(op, &rng);
    }
    assert_in_range(happens, 2850, 3150);
    assert_in_range(takes, 850, 1150);
    leat__pipeline_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_are_whole_pixels_inside),
        cmocka_unit_test(marked_pixels_are_copied),
        cmocka_unit_test(draws_follow_the_probabilities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
