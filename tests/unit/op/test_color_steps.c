/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include "op/apply.h"

/* Runs one step on the standard picture; the caller resets the workspace. */
static void apply(leat__workspace *b, leat__step_kind kind, double amount)
{
    memset(b, 0, sizeof *b);
    fixture_picture(&b->image, 40, 30, 3);
    const leat__step s = {.kind = kind, .amount = amount};
    assert_ok(leat__step_apply(b, &s, false, NULL));
}

static void check_each(leat__step_kind kind, double amount, int (*want)(int v, double amount))
{
    leat__workspace b;
    leat__planes before = {0};
    fixture_picture(&before, 40, 30, 3);
    apply(&b, kind, amount);
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t y = 0; y < 30; y++)
            for (uint32_t x = 0; x < 40; x++)
                assert_int_equal(leat__planes_row(&b.image, c, y)[x],
                                 want(leat__planes_row(&before, c, y)[x], amount));
    leat__workspace_reset(&b);
    leat__planes_reset(&before);
}

static int inverted(int v, double a)
{
    return 255 - v;
}

static int solarized(int v, double a)
{
    return v < a ? v : 255 - v;
}

static int posterized(int v, double a)
{
    return v / (256 >> (int)a) * (256 >> (int)a);
}

static int brighter(int v, double a)
{
    return v * a > 255 ? 255 : (int)((float)a * (float)v);
}

static int same(int v, double a)
{
    return v;
}

static void tables(void **state)
{
    check_each(LEAT__STEP_INVERT, 0, inverted);
    check_each(LEAT__STEP_SOLARIZE, 0, solarized);
    check_each(LEAT__STEP_SOLARIZE, 77, solarized);
    check_each(LEAT__STEP_SOLARIZE, 256, solarized);
    for (int bits = 1; bits <= 8; bits++) check_each(LEAT__STEP_POSTERIZE, bits, posterized);
    check_each(LEAT__STEP_BRIGHTNESS, 1.5, brighter);
    check_each(LEAT__STEP_BRIGHTNESS, 1, same);
    check_each(LEAT__STEP_CONTRAST, 1, same);
    check_each(LEAT__STEP_SATURATION, 1, same);
    assert_no_leaks();
}

static void autocontrast_and_equalize_stretch(void **state)
{
    static const leat__step_kind kinds[] = {LEAT__STEP_AUTOCONTRAST, LEAT__STEP_EQUALIZE};
    for (int k = 0; k < 2; k++) {
        leat__workspace b = {0};
        assert_ok(leat__planes_resize(&b.image, 64, 16, 3, NULL));
        for (uint32_t y = 0; y < 16; y++)
            for (uint32_t x = 0; x < 64; x++) {
                leat__planes_row(&b.image, 0, y)[x] = (uint8_t)(100 + x / 2);
                leat__planes_row(&b.image, 1, y)[x] = 7; /* flat: stays */
                leat__planes_row(&b.image, 2, y)[x] = (uint8_t)(x < 32 ? 50 : 60);
            }
        assert_ok(leat__step_apply(&b, &(leat__step){.kind = kinds[k]}, false, NULL));
        assert_int_equal(leat__planes_row(&b.image, 0, 3)[0], 0);
        assert_true(leat__planes_row(&b.image, 0, 3)[63] >= 246);
        assert_int_equal(leat__planes_row(&b.image, 1, 3)[9], 7);
        assert_int_equal(leat__planes_row(&b.image, 2, 0)[0], 0);
        leat__workspace_reset(&b);
    }
}

static void grayscale_equals_saturation_of_zero(void **state)
{
    leat__workspace a, b;
    apply(&a, LEAT__STEP_GRAYSCALE, 0);
    apply(&b, LEAT__STEP_SATURATION, 0);
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t y = 0; y < 30; y++) {
            assert_memory_equal(leat__planes_row(&a.image, c, y), leat__planes_row(&b.image, c, y), 40);
            assert_memory_equal(leat__planes_row(&a.image, c, y), leat__planes_row(&a.image, 0, y), 40);
        }
    leat__workspace_reset(&a);
    leat__workspace_reset(&b);
}

/* A hue shift of a third turns red to green, and green to blue. */
static void hue_turns(void **state)
{
    leat__workspace b = {0};
    assert_ok(leat__planes_resize(&b.image, 1, 1, 3, NULL));
    b.image.plane[0][0] = 200;
    b.image.plane[1][0] = b.image.plane[2][0] = 0;
    assert_ok(leat__step_apply(&b, &(leat__step){.kind = LEAT__STEP_HUE, .amount = 85 / 255.0}, false, NULL));
    assert_int_equal(b.image.plane[0][0], 0);
    assert_int_equal(b.image.plane[1][0], 200);
    assert_ok(leat__step_apply(&b, &(leat__step){.kind = LEAT__STEP_HUE, .amount = -170 / 255.0 + 1e-9},
                               false, NULL));
    assert_int_equal(b.image.plane[2][0], 200);
    leat__workspace_reset(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables),
        cmocka_unit_test(autocontrast_and_equalize_stretch),
        cmocka_unit_test(grayscale_equals_saturation_of_zero),
        cmocka_unit_test(hue_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
