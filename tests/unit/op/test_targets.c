/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <math.h>

#include "op/targets.h"

static leat__recipe r;
static const leat__box_rule plain = {.format = LEAT__BOX_XYXY};

static void check_box(const float *box, float x0, float y0, float x1, float y1)
{
    const float want[4] = {x0, y0, x1, y1};
    for (int i = 0; i < 4; i++)
        if (box[i] < want[i] - 1e-3f || box[i] > want[i] + 1e-3f)
            fail_msg("side %d is %g, not %g", i, (double)box[i], (double)want[i]);
}

static void boxes_move(void **state)
{
    float b[8] = {20, 10, 40, 30, 0, 0, 5, 5};
    bool keep[2];
    leat__recipe_start(&r, 100, 50);
    assert_ok(leat__recipe_add(
        &r, &(leat__step){.kind = LEAT__STEP_CROP, .x = 10, .y = 5, .width = 80, .height = 40}, NULL));
    assert_ok(
        leat__recipe_add(&r, &(leat__step){.kind = LEAT__STEP_RESIZE, .width = 160, .height = 20}, NULL));
    assert_ok(leat__recipe_add(&r, &(leat__step){.kind = LEAT__STEP_FLIP_H}, NULL));
    leat__recipe_boxes(&r, &plain, b, keep, 2);
    assert_true(keep[0]);
    check_box(b, 100, 2.5f, 140, 12.5f);
    assert_false(keep[1]); /* left outside by the crop */
}

static void boxes_turn(void **state)
{
    /* output (x, y) shows input (y, 49 - x): a quarter turn of a square */
    float b[4] = {10, 20, 15, 40};
    bool keep;
    leat__recipe_start(&r, 50, 50);
    assert_ok(leat__recipe_add(
        &r,
        &(leat__step){.kind = LEAT__STEP_AFFINE, .width = 50, .height = 50, .matrix = {0, 1, 0, -1, 0, 50}},
        NULL));
    assert_ok(leat__recipe_add(&r, &(leat__step){.kind = LEAT__STEP_FLIP_V}, NULL));
    leat__recipe_boxes(&r, &plain, b, &keep, 1);
    assert_true(keep);
    check_box(b, 10, 35, 30, 40);
    /* a perspective without perspective is a shift */
    float c[4] = {10, 20, 15, 40};
    leat__recipe_start(&r, 50, 50);
    assert_ok(leat__recipe_add(
        &r, &(leat__step){.kind = LEAT__STEP_PERSPECTIVE, .matrix = {1, 0, 3, 0, 1, -4, 0, 0}}, NULL));
    leat__recipe_boxes(&r, &plain, c, &keep, 1);
    check_box(c, 7, 24, 12, 44);
    /* no inverse: the box is lost, not wrong */
    leat__recipe_start(&r, 50, 50);
    assert_ok(
        leat__recipe_add(&r, &(leat__step){.kind = LEAT__STEP_AFFINE, .width = 50, .height = 50}, NULL));
    leat__recipe_boxes(&r, &plain, c, &keep, 1);
    assert_false(keep);
}

static void formats_and_shares(void **state)
{
    static const struct {
        leat__box_format format;
        bool relative;
        float in[4], out[4];
    } cases[] = {
        {LEAT__BOX_XYXY, false, {20, 10, 40, 30}, {10, 5, 30, 25}},
        {LEAT__BOX_XYWH, false, {20, 10, 20, 20}, {10, 5, 20, 20}},
        {LEAT__BOX_CXCYWH, false, {30, 20, 20, 20}, {20, 15, 20, 20}},
        {LEAT__BOX_XYXY, true, {0.2f, 0.2f, 0.4f, 0.6f}, {0.125f, 0.125f, 0.375f, 0.625f}},
        {LEAT__BOX_CXCYWH, true, {0.3f, 0.4f, 0.2f, 0.4f}, {0.25f, 0.375f, 0.25f, 0.5f}},
    };
    leat__recipe_start(&r, 100, 50);
    assert_ok(leat__recipe_add(
        &r, &(leat__step){.kind = LEAT__STEP_CROP, .x = 10, .y = 5, .width = 80, .height = 40}, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const leat__box_rule rule = {.format = cases[i].format, .relative = cases[i].relative};
        float b[4];
        bool keep;
        memcpy(b, cases[i].in, sizeof b);
        leat__recipe_boxes(&r, &rule, b, &keep, 1);
        assert_true(keep);
        check_box(b, cases[i].out[0], cases[i].out[1], cases[i].out[2], cases[i].out[3]);
    }
}

/* A crop leaves a quarter of one box, and a strip of half a pixel of another. */
static void boxes_are_dropped_by_what_is_left(void **state)
{
    const float in[8] = {0, 0, 20, 10, 9.5f, 0, 10.5f, 20};
    leat__recipe_start(&r, 100, 50);
    assert_ok(leat__recipe_add(
        &r, &(leat__step){.kind = LEAT__STEP_CROP, .x = 10, .y = 5, .width = 80, .height = 40}, NULL));
    static const struct {
        float visible, size;
        bool keep[2];
    } cases[] = {{0, 0, {true, true}},
                 {0.25f, 0, {true, true}},
                 {0.26f, 0, {false, true}},
                 {0, 1, {true, false}},
                 {0, 6, {false, false}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const leat__box_rule rule = {.min_visible = cases[i].visible, .min_size = cases[i].size};
        float b[8];
        bool keep[2];
        memcpy(b, in, sizeof b);
        leat__recipe_boxes(&r, &rule, b, keep, 2);
        assert_int_equal(keep[0], cases[i].keep[0]);
        assert_int_equal(keep[1], cases[i].keep[1]);
    }
}

static void points_move(void **state)
{
    float p[6] = {20, 10, 2, 5, 10, 1};
    leat__recipe_start(&r, 100, 50);
    assert_ok(leat__recipe_add(
        &r, &(leat__step){.kind = LEAT__STEP_CROP, .x = 10, .y = 5, .width = 80, .height = 40}, NULL));
    assert_ok(leat__recipe_add(&r, &(leat__step){.kind = LEAT__STEP_FLIP_H}, NULL));
    leat__recipe_points(&r, &(leat__point_rule){.stride = 3}, p, 2);
    assert_true(p[0] == 69 && p[1] == 5 && p[2] == 2);
    assert_true(p[3] == 84 && p[4] == 5 && p[5] == 0); /* outside: no longer visible */
    float share[2] = {0.2f, 0.2f};
    leat__recipe_points(&r, &(leat__point_rule){.stride = 2, .relative = true}, share, 1);
    assert_true(fabsf(share[0] - 69 / 80.0f) < 1e-6f && fabsf(share[1] - 5 / 40.0f) < 1e-6f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_move),         cmocka_unit_test(boxes_turn),
        cmocka_unit_test(formats_and_shares), cmocka_unit_test(boxes_are_dropped_by_what_is_left),
        cmocka_unit_test(points_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
