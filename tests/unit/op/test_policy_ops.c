/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include <math.h>

static leat__recipe r;

static void draw(leat__pipeline *p, uint64_t sample)
{
    assert_ok(leat__pipeline_draw(p, &(leat__draw_key){8, 0, sample}, 331, 331, &r, NULL));
}

/* RandAugment: 14 equally likely actions (one of them the identity), all of one magnitude, with either
 * sign. */
static void rand_augment(void **state)
{
    enum { N = 7000 };
    leat__pipeline *p = fixture_pipeline("CenterCrop(331); RandAugment(1, 9)");
    int kinds[LEAT__STEP_KINDS] = {0}, none = 0, brighter = 0, darker = 0;
    for (uint64_t i = 0; i < N; i++) {
        draw(p, i);
        if (r.count == 0) {
            none++;
            continue;
        }
        const leat__step *s = &r.step[0];
        kinds[s->kind]++;
        if (s->kind == LEAT__STEP_BRIGHTNESS) {
            assert_true(fabs(fabs(s->amount - 1) - 0.27) < 1e-6); /* 0.9 * 9 / 30 */
            if (s->amount > 1) brighter++;
            else darker++;
        }
        if (s->kind == LEAT__STEP_SOLARIZE) assert_true(fabs(s->amount - 178.5) < 1e-4);
        if (s->kind == LEAT__STEP_POSTERIZE) assert_int_equal((int)s->amount, 7);
    }
    assert_in_range(none, 400, 600);
    assert_in_range(kinds[LEAT__STEP_AFFINE], 2250, 2750); /* two shears, two shifts, a turn */
    static const leat__step_kind single[] = {
        LEAT__STEP_BRIGHTNESS, LEAT__STEP_SATURATION, LEAT__STEP_CONTRAST,     LEAT__STEP_SHARPNESS,
        LEAT__STEP_POSTERIZE,  LEAT__STEP_SOLARIZE,   LEAT__STEP_AUTOCONTRAST, LEAT__STEP_EQUALIZE};
    for (int i = 0; i < 8; i++) assert_in_range(kinds[single[i]], 400, 600);
    assert_int_equal(kinds[LEAT__STEP_INVERT], 0);
    assert_true(brighter > 150 && darker > 150);
    leat__pipeline_close(&p);
}

/* Translations are whole pixels: 150 / 331 of the side at the last bin. */
static void translations_are_whole(void **state)
{
    leat__pipeline *p = fixture_pipeline("CenterCrop(331); RandAugment(1, 30)");
    bool seen = false;
    for (uint64_t i = 0; i < 500; i++) {
        draw(p, i);
        const double *m = r.step[0].matrix;
        if (r.count == 0 || r.step[0].kind != LEAT__STEP_AFFINE || m[0] != 1 || m[1] != 0 || m[3] != 0)
            continue;
        assert_true(fabs(m[2]) == 150 || fabs(m[5]) == 150);
        seen = true;
    }
    assert_true(seen);
    leat__pipeline_close(&p);
}

static void trivial_augment_is_wide(void **state)
{
    leat__pipeline *p = fixture_pipeline("CenterCrop(331); TrivialAugmentWide()");
    double strongest = 0, weakest = 9;
    int bits = 8;
    for (uint64_t i = 0; i < 3000; i++) {
        draw(p, i);
        assert_true(r.count <= 2); /* a half turn is two flips */
        if (r.count && r.step[0].kind == LEAT__STEP_CONTRAST) {
            strongest = fmax(strongest, fabs(r.step[0].amount - 1));
            weakest = fmin(weakest, fabs(r.step[0].amount - 1));
        }
        if (r.count && r.step[0].kind == LEAT__STEP_POSTERIZE && r.step[0].amount < bits)
            bits = (int)r.step[0].amount;
    }
    assert_true(strongest > 0.95 && strongest <= 0.99 + 1e-6 && weakest < 0.05);
    assert_int_equal(bits, 2);
    leat__pipeline_close(&p);
}

/* AutoAugment for ImageNet: 25 rows; equalize is the most frequent action, shears are rare. */
static void auto_augment_rows(void **state)
{
    leat__pipeline *p = fixture_pipeline("CenterCrop(331); AutoAugment()");
    int kinds[LEAT__STEP_KINDS] = {0};
    for (uint64_t i = 0; i < 5000; i++) {
        draw(p, i);
        assert_true(r.count <= 2);
        for (uint32_t k = 0; k < r.count; k++) kinds[r.step[k].kind]++;
    }
    /* sums of the probabilities of the actions over the 25 rows: 10.4, 2.4 and 1.6 per
     * row */
    assert_in_range(kinds[LEAT__STEP_EQUALIZE], 1900, 2400);
    assert_int_equal(kinds[LEAT__STEP_BRIGHTNESS], 0);
    assert_true(kinds[LEAT__STEP_INVERT] > 200 && kinds[LEAT__STEP_SHARPNESS] > 40);
    leat__pipeline_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rand_augment),
        cmocka_unit_test(translations_are_whole),
        cmocka_unit_test(trivial_augment_is_wide),
        cmocka_unit_test(auto_augment_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
