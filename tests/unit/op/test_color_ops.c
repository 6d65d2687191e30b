/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include <math.h>

static leat__recipe r;

static void draw(const char *text, uint64_t sample)
{
    leat__pipeline *p = fixture_pipeline(text);
    assert_ok(leat__pipeline_draw(p, &(leat__draw_key){4, 0, sample}, 64, 64, &r, NULL));
    leat__pipeline_close(&p);
}

/* All 24 orders occur, factors stay in their ranges, and neutral changes are omitted. */
static void jitter_orders_and_ranges(void **state)
{
    bool seen[4][4] = {{false}};
    for (uint64_t i = 0; i < 400; i++) {
        draw("CenterCrop(64); ColorJitter(0.4, (0.5, 2), 0.3, 0.1)", i);
        assert_int_equal(r.count, 4);
        for (uint32_t k = 0; k < 4; k++) {
            const double v = r.step[k].amount;
            switch (r.step[k].kind) {
            case LEAT__STEP_BRIGHTNESS:
                assert_true(v >= 0.6 && v <= 1.4);
                seen[0][k] = true;
                break;
            case LEAT__STEP_CONTRAST:
                assert_true(v >= 0.5 && v <= 2);
                seen[1][k] = true;
                break;
            case LEAT__STEP_SATURATION:
                assert_true(v >= 0.7 && v <= 1.3);
                seen[2][k] = true;
                break;
            default:
                assert_int_equal(r.step[k].kind, LEAT__STEP_HUE);
                assert_true(fabs(v) <= 0.1);
                seen[3][k] = true;
            }
        }
    }
    for (int i = 0; i < 16; i++) assert_true(seen[i / 4][i % 4]);
    draw("CenterCrop(64); ColorJitter(saturation=2)", 0);
    assert_int_equal(r.count, 1);
    assert_true(r.step[0].amount >= 0);
    draw("CenterCrop(64); ColorJitter(0.4, p=0)", 0);
    assert_int_equal(r.count, 0);
}

static void probabilities(void **state)
{
    static const char *const ops[] = {"RandomGrayscale(0.3)",
                                      "RandomInvert(0.3)",
                                      "RandomAutocontrast(0.3)",
                                      "RandomEqualize(0.3)",
                                      "RandomSolarize(10, p=0.3)",
                                      "RandomPosterize(4, p=0.3)",
                                      "RandomAdjustSharpness(2, p=0.3)",
                                      "GaussianBlur(3, p=0.3)",
                                      "RandomErasing(0.3)",
                                      "Cutout(8, p=0.3)",
                                      "ColorJitter(0.5, p=0.3)"};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        char text[96];
        int count = 0;
        snprintf(text, sizeof text, "CenterCrop(64); %s", ops[k]);
        leat__pipeline *p = fixture_pipeline(text);
        for (uint64_t i = 0; i < 2000; i++) {
            assert_ok(leat__pipeline_draw(p, &(leat__draw_key){4, 0, i}, 64, 64, &r, NULL));
            count += r.count == 1;
        }
        leat__pipeline_close(&p);
        assert_in_range(count, 510, 690);
    }
}

static void erasing_has_area_and_ratio(void **state)
{
    for (uint64_t i = 0; i < 500; i++) {
        draw("CenterCrop(64); RandomErasing(1, scale=(0.1, 0.2), ratio=(0.5, 2))", i);
        const leat__step *s = &r.step[0];
        const double share = s->width * s->height / 4096.0, ratio = (double)s->height / s->width;
        assert_true(share > 0.085 && share < 0.22);
        assert_true(ratio > 0.44 && ratio < 2.3);
    }
    /* squares at the border are cut off */
    bool cut = false;
    for (uint64_t i = 0; i < 100; i++) {
        draw("CenterCrop(64); Cutout(20)", i);
        assert_true(r.step[0].width <= 20 && r.step[0].height <= 20);
        cut = cut || r.step[0].width < 20;
    }
    assert_true(cut);
}

static void blur_needs_room(void **state)
{
    leat__pipeline *p = fixture_pipeline("GaussianBlur(21); CenterCrop(8)");
    leat_error err = {0};
    assert_code(LEAT_EINVAL, leat__pipeline_draw(p, &(leat__draw_key){0}, 10, 40, &r, &err));
    assert_contains(err.message, "21x21");
    leat__pipeline_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jitter_orders_and_ranges),
        cmocka_unit_test(probabilities),
        cmocka_unit_test(erasing_has_area_and_ratio),
        cmocka_unit_test(blur_needs_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
