/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include <math.h>

enum { DRAWS = 3000 };

static leat__recipe draw(const leat__pipeline *p, uint64_t sample)
{
    leat__recipe r;
    assert_ok(leat__pipeline_draw(p, &(leat__draw_key){4, 0, sample}, 64, 48, &r, NULL));
    return r;
}

static void assert_near(double got, double want, double by)
{
    if (fabs(got - want) > by) fail_msg("%g, not %g", got, want);
}

/* Returns the share of draws that add the step after the crop, and the range of its amount. */
static double share(const char *text, leat__step_kind kind, double *lo, double *hi)
{
    leat__pipeline *p = fixture_pipeline(text);
    int n = 0;
    *lo = INFINITY;
    *hi = -INFINITY;
    for (uint64_t i = 0; i < DRAWS; i++) {
        const leat__recipe r = draw(p, i);
        for (uint32_t k = 0; k < r.count; k++) {
            if (r.step[k].kind != kind) continue;
            *lo = fmin(*lo, r.step[k].amount);
            *hi = fmax(*hi, r.step[k].amount);
            n++;
        }
    }
    leat__pipeline_close(&p);
    return (double)n / DRAWS;
}

static void p_and_ranges_are_kept(void **state)
{
    double lo, hi;
    assert_near(share("CenterCrop(8); GaussianNoise(0, (0.1, 0.3), p=0.3)", LEAT__STEP_NOISE, &lo, &hi), 0.3,
                0.03);
    assert_near(lo, 25.5, 0.3);
    assert_near(hi, 76.5, 0.3);
    assert_near(share("CenterCrop(8); JPEG((20, 30), p=0.6)", LEAT__STEP_JPEG, &lo, &hi), 0.6, 0.03);
    assert_true(lo == 20 && hi == 30);
    assert_true(share("CenterCrop(8); JPEG(55)", LEAT__STEP_JPEG, &lo, &hi) == 1);
    assert_true(lo == 55 && hi == 55);
    assert_near(share("CenterCrop(8); RandomChannelPermutation(0.5)", LEAT__STEP_PERMUTE, &lo, &hi), 0.5,
                0.03);
    assert_near(share("CenterCrop(8); MedianBlur(5, p=0.5)", LEAT__STEP_MEDIAN, &lo, &hi), 0.5, 0.03);
    assert_near(share("CenterCrop(8); CLAHE((2, 3))", LEAT__STEP_CLAHE, &lo, &hi), 0.5, 0.03);
    assert_near(lo, 2, 0.01);
    assert_near(hi, 3, 0.01);
    assert_near(share("CenterCrop(8); GridMask(p=0.5)", LEAT__STEP_GRID, &lo, &hi), 0.5, 0.03);
    assert_near(share("CenterCrop(8); RandomPhotometricDistort()", LEAT__STEP_HUE, &lo, &hi), 0.5, 0.03);
    assert_near(lo, -0.05, 0.001);
    assert_near(hi, 0.05, 0.001);
    assert_near(share("CenterCrop(8); RandomPhotometricDistort(p=0.2)", LEAT__STEP_PERMUTE, &lo, &hi), 0.2,
                0.03);
}

static void contrast_is_second_or_last(void **state)
{
    leat__pipeline *p = fixture_pipeline("CenterCrop(8); RandomPhotometricDistort(p=1)");
    int second = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        const leat__recipe r = draw(p, i);
        assert_int_equal(r.count, 6);
        assert_int_equal(r.step[1].kind, LEAT__STEP_BRIGHTNESS);
        second += r.step[2].kind == LEAT__STEP_CONTRAST;
        assert_true((r.step[2].kind == LEAT__STEP_CONTRAST) != (r.step[4].kind == LEAT__STEP_CONTRAST));
        assert_int_equal(r.step[5].kind, LEAT__STEP_PERMUTE);
    }
    assert_near((double)second / DRAWS, 0.5, 0.03);
    leat__pipeline_close(&p);
}

static void mistakes_are_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"GaussianNoise(0, (2, 1))", "GaussianNoise.sigma: one number, or (lowest, highest)"},
        {"GaussianNoise(0, (1, 2, 3))", "GaussianNoise.sigma"},
        {"JPEG", "needs its parameter 'quality'"},
        {"JPEG(0)", "out of range"},
        {"JPEG((9, 8))", "JPEG.quality"},
        {"MedianBlur(4)", "odd"},
        {"GridMask(d=(9, 3))", "GridMask.d"},
        {"GridMask(fill=(1, 2))", "GridMask.fill"},
        {"RandomPhotometricDistort(hue=(0.1, -0.1))", "RandomPhotometricDistort.hue"},
        {"ToDtype(f32); GaussianNoise()", "GaussianNoise works on 8-bit pixels"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        leat__pipeline *p = NULL;
        leat_error err = {0};
        snprintf(text, sizeof text, "CenterCrop(8); %s", cases[i].text);
        assert_code(LEAT_EINVAL, leat__pipeline_open(&p, &(leat__pipeline_opts){.ops = text}, &err));
        if (!strstr(err.message, cases[i].says)) fail_msg("%s: %s", text, err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p_and_ranges_are_kept),
        cmocka_unit_test(contrast_is_second_or_last),
        cmocka_unit_test(mistakes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
