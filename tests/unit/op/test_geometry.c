/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include <math.h>

#include "op/step.h"

static leat__recipe r;

static void draw(const char *text, uint64_t sample, uint32_t w, uint32_t h)
{
    leat__pipeline *p = fixture_pipeline(text);
    assert_ok(leat__pipeline_draw(p, &(leat__draw_key){9, 0, sample}, w, h, &r, NULL));
    leat__pipeline_close(&p);
}

/* Area and ratio of the crops have the requested distribution; positions cover the whole image. */
static void random_resized_crop_distribution(void **state)
{
    enum { N = 4000 };
    double area = 0, left = 0, lowest = 1, highest = 0;
    for (uint64_t i = 0; i < N; i++) {
        draw("RandomResizedCrop(224, scale=(0.2, 0.6))", i, 400, 400);
        const leat__step *s = &r.step[0];
        const double share = (double)s->width * s->height / 160000;
        const double ratio = (double)s->width / s->height;
        assert_true(share > 0.19 && share < 0.61);
        assert_true(ratio > 0.74 && ratio < 1.35);
        lowest = fmin(lowest, share);
        highest = fmax(highest, share);
        area += share;
        left += s->width == 400 ? 0.5 : (double)s->x / (400 - s->width);
        assert_int_equal(r.step[1].kind, LEAT__STEP_RESIZE);
    }
    assert_true(fabs(area / N - 0.4) < 0.01);
    assert_true(fabs(left / N - 0.5) < 0.02);
    assert_true(lowest < 0.21 && highest > 0.59);
}

/* No attempt can succeed: the result is the central crop that the ratio allows. */
static void random_resized_crop_falls_back(void **state)
{
    draw("RandomResizedCrop(8, scale=(1, 1))", 1, 1000, 10);
    assert_int_equal(r.step[0].width, 13);
    assert_int_equal(r.step[0].height, 10);
    assert_int_equal(r.step[0].x, (1000 - 13) / 2);
    draw("RandomResizedCrop(8, scale=(1, 1))", 1, 10, 1000);
    assert_int_equal(r.step[0].height, 13);
    draw("RandomResizedCrop(8, scale=(1, 1))", 1, 1, 1);
    assert_int_equal(r.width, 8);
}

static void resize_rounds_as_torchvision(void **state)
{
    static const struct {
        const char *text;
        uint32_t w, h, rw, rh;
    } cases[] = {
        {"Resize(256)", 500, 375, 341, 256},    {"Resize(256)", 375, 500, 256, 341},
        {"Resize(256)", 333, 500, 256, 384},    {"Resize(100, max_size=120)", 500, 200, 120, 48},
        {"Resize((30, 40))", 500, 200, 40, 30},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[96];
        snprintf(text, sizeof text, "%s; CenterCrop(10)", cases[i].text);
        draw(text, 0, cases[i].w, cases[i].h);
        assert_int_equal(r.step[0].width, cases[i].rw);
        assert_int_equal(r.step[0].height, cases[i].rh);
    }
    /* nothing to do: no step */
    draw("Resize((20, 30))", 0, 30, 20);
    assert_int_equal(r.count, 0);
}

static void center_crop_rounds_half_to_even(void **state)
{
    draw("CenterCrop(10)", 0, 15, 13);
    assert_int_equal(r.step[0].x, 2); /* 2.5 */
    assert_int_equal(r.step[0].y, 2); /* 1.5 */
    draw("CenterCrop(10)", 0, 7, 20);
    assert_int_equal(r.step[0].kind, LEAT__STEP_PAD);
    assert_int_equal(r.step[0].x, 1);
    assert_int_equal(r.step[0].width, 10);
    assert_int_equal(r.step[1].y, 5);
}

static void random_crop_pads_and_refuses(void **state)
{
    bool seen[9][9] = {{false}};
    for (uint64_t i = 0; i < 2000; i++) {
        draw("RandomCrop(32, padding=4)", i, 32, 32);
        const leat__step *s = &r.step[r.count - 1];
        const bool cropped = s->kind == LEAT__STEP_CROP;
        assert_true(cropped);
        seen[s->y][s->x] = true;
    }
    for (int i = 0; i < 81; i++) assert_true(seen[i / 9][i % 9]);
    leat__pipeline *p = fixture_pipeline("RandomCrop(32)");
    leat_error err = {0};
    assert_code(LEAT_EINVAL, leat__pipeline_draw(p, &(leat__draw_key){0}, 31, 40, &r, &err));
    assert_contains(err.message, "31x40");
    leat__pipeline_close(&p);
    draw("RandomCrop(32, pad_if_needed=true)", 3, 20, 40);
    assert_int_equal(r.step[0].width, 20 + 12 + 12);
}

static void flips_happen_with_their_probability(void **state)
{
    int count = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        draw("RandomHorizontalFlip(0.3); CenterCrop(4)", i, 4, 4);
        count += r.count == 1;
    }
    assert_in_range(count, 1100, 1300);
    draw("RandomHorizontalFlip(0); RandomVerticalFlip(1); CenterCrop(4)", 0, 4, 4);
    assert_int_equal(r.count, 1);
    assert_int_equal(r.step[0].kind, LEAT__STEP_FLIP_V);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_resized_crop_distribution),
        cmocka_unit_test(random_resized_crop_falls_back),
        cmocka_unit_test(resize_rounds_as_torchvision),
        cmocka_unit_test(center_crop_rounds_half_to_even),
        cmocka_unit_test(random_crop_pads_and_refuses),
        cmocka_unit_test(flips_happen_with_their_probability),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
